# SPDX-License-Identifier: BSD-3-Clause
"""The ratios, with their thresholds and targets. A ratio is of two samples of a round, neighbours
in time, that were taken in the same state of the machine (states.py). Median and range are of the
ratios of one state: no number blends two states."""

import math
import os
import statistics

import hosts
import plan
import states


def p50(numbers):
    return numbers["latency_ns"]["p50"]


STATES = ("fast", "slow")
ALL = "all"  # on a machine with one state

# Text, numerator, denominator, field, threshold, target, whether less is better.
RATIOS = [
    ("64 B SEND into an SRQ / testpmd's frames of 122 B", "send 64 srq", "testpmd 122",
     ("messages_per_s", "frames_per_s"), 0.35, 0.50, False),
    ("1 MiB WRITE, MTU 4096 / testpmd's bytes in 4170 B frames", "write 1m", "testpmd 4170",
     ("bytes_per_s", "bytes_per_s"), 0.40, 0.55, False),
    ("1 MiB READ, MTU 4096 / testpmd's bytes in 4170 B frames", "read 1m", "testpmd 4170",
     ("bytes_per_s", "bytes_per_s"), 0.40, 0.55, False),
    ("1 MiB WRITE / testpmd's bytes, both with zero copy", "write 1m zero copy",
     "testpmd 4170 zero copy", ("bytes_per_s", "bytes_per_s"), None, 0.75, False),
    ("1 MiB READ / testpmd's bytes, both with zero copy", "read 1m zero copy",
     "testpmd 4170 zero copy", ("bytes_per_s", "bytes_per_s"), None, 0.75, False),
    ("1 MiB WRITE / TCP over loopback", "write 1m", "tcp bandwidth",
     ("bytes_per_s", "bytes_per_s"), 1.2, 2, False),
    ("1 MiB READ / TCP over loopback", "read 1m", "tcp bandwidth",
     ("bytes_per_s", "bytes_per_s"), 1.2, 2, False),
    ("64 B SEND ping-pong, p50 / raw frames' p50", "send pingpong", "raw pingpong",
     (p50, p50), 2.2, 1.6, True),
    ("TCP's p50 / 64 B SEND ping-pong, p50", "tcp latency", "send pingpong", (p50, p50), 4, 8,
     False),
    ("4,096 QPs round robin / 1 QP, 64 B SEND", "send 64 qps 4096", "send 64 srq",
     ("messages_per_s", "messages_per_s"), 0.70, 0.85, False),
    ("SRQ / RQ, 64 B SEND", "send 64 srq", "send 64 rq", ("messages_per_s", "messages_per_s"),
     0.95, 1.0, False),
    ("2 pairs of engines, a core each / 1 pair, 64 B SEND", "pairs 2", "pairs 1",
     ("messages_per_s", "messages_per_s"), 1.85, 1.95, False),
    ("2 pairs with one SRQ / 1 pair, 64 B SEND", "pairs 2 srq", "pairs 1",
     ("messages_per_s", "messages_per_s"), 1.6, 1.85, False),
    ("2 pairs with one CQ / 1 pair, 64 B SEND", "pairs 2 cq", "pairs 1",
     ("messages_per_s", "messages_per_s"), 1.6, 1.85, False),
    ("1 thread posts, 1 lcore runs the engines / one thread does both, 64 B SEND into an SRQ",
     "posters 1", "posters 0", ("messages_per_s", "messages_per_s"), 0.7, 0.9, False),
    ("2 pairs, all packets handed off / none, 64 B SEND", "pairs 2 crossed", "pairs 2",
     ("messages_per_s", "messages_per_s"), None, None, False),
    ("64 KiB WRITE at 1 % loss / lossless", "write 64k loss 10000", "write 64k",
     ("bytes_per_s", "bytes_per_s"), 0.30, 0.50, False),
    ("4 KiB WRITE, two clients of a daemon / in process", "daemon write 4k", "write 4k",
     ("bytes_per_s", "bytes_per_s"), 1.0, 1.3, False),
    ("memory of 1,000 QPs: own RQs / one SRQ", "memory rq", "memory srq",
     ("memory_bytes", "memory_bytes"), None, None, False),
    ("1 MiB WRITE / UCX over TCP", "write 1m", "ucx bandwidth", ("bytes_per_s", "bytes_per_s"),
     None, None, False),
    ("UCX's (TCP) p50 / 64 B SEND ping-pong, p50", "ucx latency", "send pingpong", (p50, p50),
     None, None, False),
    ("all signaled / 1 of 64, 64 B SEND", "send 64 signaled", "send 64 again",
     ("messages_per_s", "messages_per_s"), None, None, False),
    ("one request a pass / 32, 64 B SEND", "send 64 single", "send 64 again",
     ("messages_per_s", "messages_per_s"), 0.35, 0.50, False),
    ("one request a post / 32, 64 B SEND, two clients of a daemon", "daemon send 64 single",
     "daemon send 64", ("messages_per_s", "messages_per_s"), 0.35, 0.50, False),
    ("4,096 QPs in lists of 8 / 1 QP, 64 B SEND", "send 64 qps 4096 lists", "send 64 again",
     ("messages_per_s", "messages_per_s"), None, None, False),
    ("inline / not, 64 B SEND", "send 64 inline", "send 64 again",
     ("messages_per_s", "messages_per_s"), None, None, False),
    ("UD / RC, 64 B SEND", "send 64 ud", "send 64 again",
     ("messages_per_s", "messages_per_s"), None, None, False),
    ("2 engines / 1, on one core, 64 B SEND over 2 QPs", "send 64 engines 2",
     "send 64 engines 1", ("messages_per_s", "messages_per_s"), None, None, False),
    ("completion channel / polling, 64 B SEND", "send 64 events", "send 64 again",
     ("messages_per_s", "messages_per_s"), None, None, False),
    ("completion channel / polling, SEND ping-pong, p50", "pingpong events", "pingpong again",
     (p50, p50), None, None, True),
    ("TCP's p50 / SEND ping-pong on channels, p50; all asleep", "tcp latency asleep",
     "pingpong events", (p50, p50), None, None, False),
    ("two clients of a daemon / in process, SEND ping-pong, p50", "daemon pingpong",
     "pingpong again", (p50, p50), None, None, True),
    ("two clients of a daemon, SEND ping-pong, p50 / raw frames' p50", "daemon pingpong",
     "raw pingpong again", (p50, p50), 4, 2.5, True),
    ("1 KiB SEND over net_tap / testpmd's frames of 1082 B", "tap send 1024", "tap testpmd 1082",
     ("messages_per_s", "frames_per_s"), 0.9, 1, False),
    ("1 KiB SEND over net_af_packet / testpmd's frames of 1082 B", "packet send 1024",
     "packet testpmd 1082", ("messages_per_s", "frames_per_s"), 0.9, 1, False),
    ("4 KiB WRITE over net_af_packet / testpmd's frames of 4170 B", "packet write 4096",
     "packet testpmd 4170", ("messages_per_s", "frames_per_s"), 0.9, 1, False),
]


def ratios(results):
    """Those of two hosts only if they were asked for."""
    return RATIOS + [row for row in hosts.ratios() if row[1] in results]


PACKET = 4096  # bytes of payload: the path MTU of the measurements of large messages


def message_ns(numbers):
    return 1e9 / (numbers["messages_per_s"] or math.nan)


def packet_ns(numbers):
    return 1e9 * PACKET / (numbers["bytes_per_s"] or math.nan)


def frame_ns(numbers):
    return 1e9 / (numbers["frames_per_s"] or math.nan)


# What Rocade adds to the port, in TSC cycles of an end: text, measurement, time of a message or
# packet, measurement of raw frames, time of a frame, threshold, target. Both ends work at the same
# time: the rate of either measurement is that of its slower end. Thresholds are for the fast state.
ADDED = [
    ("a 64 B SEND into an SRQ", "send 64 srq", message_ns, "testpmd 122", frame_ns, 135, 100),
    ("a 4 KiB packet of 1 MiB WRITE", "write 1m", packet_ns, "testpmd 4170", frame_ns, None, None),
    ("a 4 KiB packet of 1 MiB READ", "read 1m", packet_ns, "testpmd 4170", frame_ns, None, None),
    ("half of a 64 B SEND ping-pong", "send pingpong", p50, "raw pingpong", p50, None, None),
]

# The same over one pass that copies a packet's payload and computes its CRC, on buffers as cold
# (copy_pass.c).
PASSES = [
    ("a 4 KiB packet of 1 MiB WRITE", "write 1m", "testpmd 4170", "copy pass 4096", 1.3, 1.15),
    ("a 4 KiB packet of 1 MiB READ", "read 1m", "testpmd 4170", "copy pass 4096", 1.3, 1.15),
]

# Text, measurement of ends that sleep, the same of ends that poll. Each half of a round trip has one
# wake-up.
WAKE_UPS = [
    ("us a wake-up takes, by a receive interrupt of net_vhost", "asleep vhost", "awake vhost"),
    ("us a wake-up takes on net_memif, which has no interrupts", "asleep memif", "awake memif"),
]

# Text, measurement, field: the rates and latencies in the table below the ratios.
NUMBERS = [
    ("testpmd txonly to rxonly, 122 B frames", "testpmd 122", "frames_per_s"),
    ("testpmd txonly to rxonly, 4170 B frames", "testpmd 4170", "bytes_per_s"),
    ("testpmd, 4170 B frames, zero copy", "testpmd 4170 zero copy", "bytes_per_s"),
    ("SEND 64 B, SRQ, 1 of 64 signaled", "send 64 srq", "messages_per_s"),
    ("SEND 64 B, RQ, 1 of 64 signaled", "send 64 rq", "messages_per_s"),
    ("SEND 64 B, SRQ, all signaled", "send 64 signaled", "messages_per_s"),
    ("SEND 64 B, SRQ, inline", "send 64 inline", "messages_per_s"),
    ("SEND 64 B, SRQ, one request a pass", "send 64 single", "messages_per_s"),
    ("SEND 64 B, SRQ, 4,096 QPs", "send 64 qps 4096", "messages_per_s"),
    ("SEND 64 B, SRQ, 4,096 QPs, lists of 8", "send 64 qps 4096 lists", "messages_per_s"),
    ("UCX over TCP, tag_bw 64 B", "ucx rate", "messages_per_s"),
    ("WRITE 1 MiB, MTU 4096", "write 1m", "bytes_per_s"),
    ("READ 1 MiB, MTU 4096", "read 1m", "bytes_per_s"),
    ("WRITE 1 MiB, MTU 4096, zero copy", "write 1m zero copy", "bytes_per_s"),
    ("READ 1 MiB, MTU 4096, zero copy", "read 1m zero copy", "bytes_per_s"),
    ("WRITE 64 KiB, MTU 4096", "write 64k", "bytes_per_s"),
    ("WRITE 64 KiB, MTU 4096, 1 % loss", "write 64k loss 10000", "bytes_per_s"),
    ("TCP over loopback, 1 MiB writes", "tcp bandwidth", "bytes_per_s"),
    ("UCX over TCP, ucp_put_bw 1 MiB", "ucx bandwidth", "bytes_per_s"),
    ("raw frames of 122 B, half of a round trip", "raw pingpong", "latency_ns"),
    ("SEND 64 B, half of a round trip", "send pingpong", "latency_ns"),
    ("SEND 64 B inline, half of a round trip", "pingpong inline", "latency_ns"),
    ("WRITE 64 B, half of a round trip", "write pingpong", "latency_ns"),
    ("READ 64 B, a round trip", "read latency", "latency_ns"),
    ("TCP over loopback 64 B, half of a round trip", "tcp latency", "latency_ns"),
    ("TCP over loopback 64 B, both ends asleep", "tcp latency asleep", "latency_ns"),
    ("UCX over TCP 64 B, half of a round trip", "ucx latency", "latency_ns"),
    ("rocade-testpmd 64 B over net_vhost, polling", "awake vhost", "latency_ns"),
    ("rocade-testpmd 64 B over net_vhost, asleep", "asleep vhost", "latency_ns"),
    ("rocade-testpmd 64 B over net_memif, polling", "awake memif", "latency_ns"),
    ("rocade-testpmd 64 B over net_memif, asleep", "asleep memif", "latency_ns"),
    ("UD SEND 64 B", "send 64 ud", "messages_per_s"),
    ("UD SEND 64 B, half of a round trip", "pingpong ud", "latency_ns"),
    ("SEND 64 B, completion channel", "send 64 events", "messages_per_s"),
    ("SEND 64 B, completion channels, half of a round trip", "pingpong events", "latency_ns"),
    ("SEND 64 B, 2 QPs, 1 engine", "send 64 engines 1", "messages_per_s"),
    ("SEND 64 B, 2 QPs, 2 engines on the same core", "send 64 engines 2", "messages_per_s"),
    ("SEND 64 B, 1 pair of engines on a core", "pairs 1", "messages_per_s"),
    ("SEND 64 B into an SRQ, 1 pair of engines on a core", "posters 0", "messages_per_s"),
    ("SEND 64 B into an SRQ, 1 thread posts, 1 lcore runs the engines", "posters 1", "messages_per_s"),
    ("SEND 64 B into an SRQ, 2 threads post on a core, 1 lcore", "posters 2", "messages_per_s"),
    ("SEND 64 B into an SRQ, 4 threads post on a core, 1 lcore", "posters 4", "messages_per_s"),
    ("SEND 64 B into an SRQ, 2 threads post on a core, 2 lcores", "posters 2, 2 engines", "messages_per_s"),
    ("SEND 64 B, 2 pairs of engines on 2 cores", "pairs 2", "messages_per_s"),
    ("SEND 64 B, 2 pairs, one SRQ", "pairs 2 srq", "messages_per_s"),
    ("SEND 64 B, 2 pairs, one CQ for each kind", "pairs 2 cq", "messages_per_s"),
    ("SEND 64 B, 2 pairs, all packets handed off", "pairs 2 crossed", "messages_per_s"),
    ("WRITE 4 KiB, MTU 4096", "write 4k", "bytes_per_s"),
    ("WRITE 4 KiB, two clients of a daemon", "daemon write 4k", "bytes_per_s"),
    ("SEND 64 B, two clients of a daemon", "daemon send 64", "messages_per_s"),
    ("SEND 64 B, two clients of a daemon, one request a post", "daemon send 64 single",
     "messages_per_s"),
    ("SEND 64 B, two clients of a daemon, half of a round trip", "daemon pingpong", "latency_ns"),
    ("SEND 64 B, two clients of a daemon, completion channels", "daemon pingpong events",
     "latency_ns"),
    ("testpmd over net_tap and a bridge, 1082 B frames", "tap testpmd 1082", "frames_per_s"),
    ("SEND 1 KiB over net_tap and a bridge", "tap send 1024", "messages_per_s"),
    ("testpmd over net_af_packet and a veth, 1082 B frames", "packet testpmd 1082", "frames_per_s"),
    ("SEND 1 KiB over net_af_packet and a veth", "packet send 1024", "messages_per_s"),
    ("testpmd over net_af_packet and a veth, 4170 B frames", "packet testpmd 4170", "frames_per_s"),
    ("WRITE 4 KiB over net_af_packet and a veth, MTU 4096", "packet write 4096", "messages_per_s"),
    *hosts.numbers(),
]


def value(numbers, field):
    return field(numbers) if callable(field) else numbers[field]


def by_round(samples):
    """{round: sample} without the samples that failed."""
    return {n.get("round", i): n for i, n in enumerate(samples) if n}


def state(numbers):
    return numbers.get("state")


def nearest(samples, number, like):
    """The sample of like's state in the round nearest to number; None: there is none."""
    if state(like) == "mixed":
        return None
    return min((n for n in samples.items() if state(n[1]) == state(like)),
               key=lambda n: (abs(n[0] - number), n[0]), default=(None, None))[1]


def pairs(over, under):
    """[(state, numerator, denominator)] of the rounds that have both. Where the two of a round
    are of different states, one is paired with the nearest sample of its own state."""
    over, under = by_round(over), by_round(under)
    found = []
    for number in sorted(set(over) & set(under)):
        a, b = over[number], under[number]
        for one, other in ((a, nearest(under, number, a)), (nearest(over, number, b), b)):
            if one and other:
                found.append((state(one), one, other))
                break
    return found


def pairs_of(results, row):
    _, over, under, fields, *_ = row
    taken = [results.get(name, []) for name in (over, under)]
    if fields[0] == "memory_bytes":  # is the same in each state
        taken = [[n and {**n, "state": None} for n in samples] for samples in taken]
    return pairs(*taken)


def unpaired(results):
    """The measurements of rows that have samples of both, but no two of one state."""
    names = []
    for row in ratios(results) + [(*row, (p50, p50)) for row in WAKE_UPS]:
        if all(any(results.get(name, [])) for name in row[1:3]) and not pairs_of(results, row):
            names += row[1:3]
    return list(dict.fromkeys(names))


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def by_state(found):
    """{state: values} of [(state, value)]. Where samples have states, those that have none (the
    cache-line probe had no reading) are left out. One state: its key is ALL."""
    grouped = {name: [v for met, v in found if met == name] for name in STATES}
    grouped = {name: values for name, values in grouped.items() if values}
    return grouped or ({ALL: [v for _, v in found]} if found else {})


def ratio_row(results, row):
    text, over, under, fields, threshold, target, less = row
    out = {"text": text, "threshold": threshold, "target": target, "less_is_better": less}
    alike = pairs_of(results, row)
    ratios = [(met, value(a, fields[0]) / value(b, fields[1]))
              for met, a, b in alike if value(b, fields[1])]
    out["states"] = {name: spread(values) for name, values in by_state(ratios).items()}
    if not ratios:
        both = any(results.get(over, [])) and any(results.get(under, []))
        out["verdict"] = "states differ" if both and not alike else "not measured"
        return out
    out["verdict"] = max((verdict(one["median"], threshold, target, less)
                          for one in out["states"].values()), key=VERDICTS.index)
    return out


# From the best to the worst: a row's is that of its worst state.
VERDICTS = ["", "target met", "threshold met", "below target", "BELOW THRESHOLD"]


def verdict(ratio, threshold, target, less):
    def good(limit):
        return ratio <= limit if less else ratio >= limit
    if threshold is None and target is None:
        return ""
    if target is not None and good(target):
        return "target met"
    if threshold is None:
        return "below target"
    return "threshold met" if good(threshold) else "BELOW THRESHOLD"


def bytes_row(text, number, threshold=None, target=None):
    row = {"text": text, "threshold": threshold, "target": target, "less_is_better": True,
           "states": {}, "verdict": "not measured"}
    if number is not None:
        row["states"] = {ALL: spread([number])}
        row["verdict"] = verdict(number, threshold, target, True)
    return row


def qp_rows(results):
    """Bytes, not ratios. QPs with send queues of 64 and of 128 entries give the bytes of a QP
    without its send queue."""
    short, deep, reads = (
        next((n["qp_bytes"] for n in results.get("memory qp " + name, []) if n), None)
        for name in ("64", "128", "reads"))
    idle = 2 * short - deep if short and deep else None
    ring = reads - short if short and reads else None
    return [bytes_row("bytes of an idle RC QP without its rings", idle, 1024, 512),
            bytes_row("bytes of its ring of 16 incoming READs and atomics", ring)]


def wake_up_row(results, text, asleep, awake):
    """Microseconds, not a ratio."""
    costs = [(met, (p50(a) - p50(b)) / 1e3) for met, a, b in pairs(
        results.get(asleep, []), results.get(awake, []))]
    return {"text": text, "threshold": None, "target": None, "less_is_better": True,
            "states": {name: spread(values) for name, values in by_state(costs).items()},
            "verdict": "" if costs else "not measured"}


def in_fast_state(text, found, threshold, target):
    """A row whose verdict is that of the fast state, or of a machine's only one."""
    found = [(met, number) for met, number in found if not math.isnan(number)]
    by = {name: spread(values) for name, values in by_state(found).items()}
    one = by.get(STATES[0]) or by.get(ALL)
    return {"text": text, "threshold": threshold, "target": target, "less_is_better": True,
            "states": by,
            "verdict": verdict(one["median"], threshold, target, True) if one else "not measured"}


def added_row(results, text, over, over_ns, under, under_ns, threshold, target):
    """Cycles, not a ratio."""
    found = [(met, (over_ns(a) - under_ns(b)) * a["tsc_hz"] / 1e9)
             for met, a, b in pairs(results.get(over, []), results.get(under, []))]
    return in_fast_state("cycles that %s adds to the port's, an end" % text, found, threshold,
                         target)


def passes_row(results, text, over, under, copy, threshold, target):
    """A pass is the work of one core, in whichever state the machine is."""
    passes = [n["pass_ns"] for n in results.get(copy, []) if n]
    found = [(met, (packet_ns(a) - frame_ns(b)) / statistics.median(passes))
             for met, a, b in pairs(results.get(over, []), results.get(under, [])) if passes]
    return in_fast_state("%s, less the port's frame / a pass of copy and CRC" % text, found,
                         threshold, target)


def entry_row(results):
    entry = next((n["srq_bytes"] / n["depth"] for n in results.get("memory srq", []) if n), None)
    return bytes_row("bytes of an SRQ entry", entry)


def rows(results):
    return [*(ratio_row(results, row) for row in ratios(results)),
            *(added_row(results, *row) for row in ADDED),
            *(passes_row(results, *row) for row in PASSES),
            *(wake_up_row(results, *row) for row in WAKE_UPS), *qp_rows(results),
            entry_row(results)]


def below_target(results):
    """Rocade's measurements of the rows that do not meet their target."""
    names = []
    for row in ratios(results):
        if ratio_row(results, row)["verdict"] not in VERDICTS[2:]:
            continue
        names += [name for name in row[1:3] if name in plan.BY_NAME and
                  plan.BY_NAME[name].arguments and not name.startswith("raw")]
    return list(dict.fromkeys(names))


def cell(number):
    return "" if number is None else "%.2f" % number if number < 100 else "%d" % number


def states_seen(report):
    """The columns of a table: the two states, or one for a machine with one state."""
    return STATES if report.get("line_ns") else (ALL,)


def spread_text(one):
    """Median and range of a state's ratios; empty without a ratio."""
    if one is None:
        return ""
    if one["low"] == one["high"]:
        return cell(one["median"])
    return "%s (%s-%s)" % tuple(cell(one[part]) for part in ("median", "low", "high"))


def columns(row, seen):
    """The texts of a row's columns. A value without a state stands in the first one."""
    texts = [spread_text(row["states"].get(name)) for name in seen]
    if ALL in row["states"] and ALL not in seen:
        texts[0] = spread_text(row["states"][ALL])
    return texts


def show_ratios(report):
    seen = states_seen(report)
    form = "%-58s" + " %-20s" * len(seen) + " %9s %6s  %s"
    print((form % ("ratio: median (lowest-highest)", *seen, "threshold", "target", "")).rstrip())
    for row in report["rows"]:
        print((form % (row["text"], *columns(row, seen), cell(row["threshold"]),
                       cell(row["target"]), row["verdict"])).rstrip())


def number_text(numbers, what):
    """Median and range of the samples of one state; empty without a sample."""
    if not numbers:
        return ""
    if what == "latency_ns":
        parts = []
        for name, title in (("mean", "mean"), ("p50", "p50"), ("p99", "p99"), ("p999", "p99.9")):
            values = [n[what][name] for n in numbers if name in n[what]]
            if values:
                parts.append("%s %.2f us" % (title, statistics.median(values) / 1e3))
        return ", ".join(parts)
    unit, scale = {"bytes_per_s": ("GB/s", 1e9), "frames_per_s": ("M/s", 1e6),
                   "messages_per_s": ("M/s", 1e6)}[what]
    values = [n[what] / scale for n in numbers]
    return "%.2f %s (%.2f-%.2f)" % (statistics.median(values), unit, min(values), max(values))


def number_rows(report):
    """[(text, a text for each state)] of what was measured."""
    seen = states_seen(report)
    for text, name, what in NUMBERS:
        taken = by_state([(state(n), n) for n in report["results"].get(name, []) if n and
                          state(n) != "mixed"])
        if taken:
            yield text, [number_text(taken.get(one), what) for one in seen]


def show_numbers(report):
    seen = states_seen(report)
    for text, texts in number_rows(report):
        for one, shown in zip(seen, texts):
            if shown:
                print("%-52s %s%s" % (text, "" if one == ALL else one + " ", shown))


def show_cycles(report):
    """Cycles by engine stage at both ends, of each row below its target."""
    for name, ends in report.get("cycles", {}).items():
        print("\n%s, cycles a packet (post, poll, repost: a message):" % name)
        for end, stages in ends.items():
            print("  %-7s %s" % (end, ", ".join("%s %.0f" % stage for stage in stages.items())))


def states_text(report):
    counts = {}
    for numbers in report["results"].values():
        for n in filter(None, numbers):
            counts[state(n)] = counts.get(state(n), 0) + 1
    return ("A cache line took %d or %d ns from core to core: %d samples were taken in the fast "
            "state, %d in the slow one; %d saw both and are not used." % (
                *report["line_ns"], *(counts.get(name, 0) for name in (*STATES, "mixed"))))


def instructions():
    """[(workload, instructions of a message in Rocade's code, both ends)] of the cost gate, which
    counts them (tools/lib/cost.py): they are the same on each machine."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../test/cost/numbers.tsv")
    with open(path, encoding="utf-8") as file:
        rows_read = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [(fields[2], float(fields[4])) for fields in rows_read if fields[0].startswith("gcc")]


def show(report):
    print("%s, %d cores, %s; %.1f minutes%s" % (
        report["machine"]["cpu"], report["machine"]["cpus"], report["machine"]["kernel"],
        report["minutes"], ", --quick" if report["quick"] else ""))
    print(states.cores_text(report["machine"].get("cores")))
    print()
    if report.get("line_ns"):
        print(states_text(report))
        print()
    show_ratios(report)
    print()
    show_numbers(report)
    print("\nTwo clients of a daemon: the client runs on core 0, the server on core 1, rocaded on the "
          "core that the scheduler chooses.")
    print("Instructions of a message in Rocade's code, both ends (the cost gate, gcc): %s." % ", ".join(
        "%s %.0f" % row for row in instructions()))
    show_cycles(report)
