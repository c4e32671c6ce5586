#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench: ratios and verdicts from made-up samples, and pictures that are well-formed."""

import glob
import os
import sys
import tempfile
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/bench"))
import bench  # noqa: E402
import cases  # noqa: E402
import markdown  # noqa: E402
import plan  # noqa: E402
import plot  # noqa: E402
import runners  # noqa: E402
import states  # noqa: E402
import table  # noqa: E402


def sample(rate=1e6, size=64, p50=1000):
    return {"messages_per_s": rate, "frames_per_s": rate, "bytes_per_s": rate * size,
            "latency_ns": {"p50": p50, "p99": 2 * p50, "p999": 3 * p50}, "srq_bytes": 640,
            "depth": 10, "tsc_hz": 2e9}


def row(results, begin):
    return next(r for r in table.rows(results) if r["text"].startswith(begin))


def ratio(results, begin):
    """(median, verdict) of a row of one state"""
    got = row(results, begin)
    return got["states"].get(table.ALL, {}).get("median"), got["verdict"]


def pictures():
    """[(pictures drawn, files)] of a report with all measurements and of one with none."""
    full = {"results": {m.name: [sample()] for m in plan.MEASUREMENTS}}
    counts = []
    for report in (full, {"results": {}}):
        with tempfile.TemporaryDirectory() as folder:
            drawn = plot.draw(report, folder)
            files = glob.glob(os.path.join(folder, "*.svg"))
            for file in files:
                xml.etree.ElementTree.parse(file)
            counts.append((sum(drawn), len(files)))
    return counts


def zero_copy(role):
    """Whether the port has zero copy, and EAL a single file for its segments."""
    arguments = runners.Bench("", "").eal(role, "0@0", 64, True)
    return "zero-copy=yes" in arguments[-2 if role == "client" else -1], \
        "--single-file-segments" in arguments


SEND = "64 B SEND into an SRQ"
PINGPONG = "64 B SEND ping-pong"


def send(*pairs):
    return {"send 64 srq": [sample(a) if a else None for a, _ in pairs],
            "testpmd 122": [sample(b) if b else None for _, b in pairs]}


def pingpong(ours, raw):
    return {"send pingpong": [sample(p50=ours)], "raw pingpong": [sample(p50=raw)]}


def long_write(rate, frames, *passes):
    """Samples of 1 MiB WRITE with this rate of 4 KiB packets, of the port's frames, and of passes."""
    return {"write 1m": [sample(rate, 4096)], "testpmd 4170": [sample(frames, 4170)],
            "copy pass 4096": [ns and {"pass_ns": ns} for ns in passes]}


ADDED = "cycles that a 64 B SEND into an SRQ adds"
PASSES = "a 4 KiB packet of 1 MiB WRITE, less"

FAST, SLOW = [26, 27, 28], [150, 157, 160]
BOTH, CLOSE = [26, 27, 157], [33, 34, 35]


def met(*line_ns):
    """The states of samples with these readings of the cache-line probe."""
    results = {"some": [{"line_ns": ns} for ns in line_ns] + [None]}
    states.label(results)
    return [n["state"] for n in results["some"][:-1]]


def rates(*taken):
    """Samples of rounds 0, 1, ... from (rate, state)."""
    return [{**sample(rate), "state": state, "round": i} if rate else None
            for i, (rate, state) in enumerate(taken)]


def latencies(*taken):
    """Samples of rounds 0, 1, ... from (p50, state)."""
    return [{**sample(p50=p50), "state": state, "round": i} for i, (p50, state) in enumerate(taken)]


def by_state_of(begin, results):
    """{state: (median, lowest, highest)} of a row"""
    return {name: (one["median"], one["low"], one["high"])
            for name, one in row(results, begin)["states"].items()}


def by_state(ours, limit):
    return by_state_of(SEND, {"send 64 srq": rates(*ours), "testpmd 122": rates(*limit)})


class FakeBench:
    """A bench and its cache-line probe in one: line_ns has the readings of each sample."""
    window = (0, 0)

    def __init__(self, *line_ns):
        self.line_ns = list(line_ns)
        self.line_probe = lambda: self
        self.runs = 0

    def between(self, *_):
        return self.line_ns.pop(0)

    def run(self, *_):
        self.runs += 1
        return sample(self.runs)


class FakeInterference:
    """In place of states.Interference: the shares in parts, then none."""
    parts = []

    def part(self):
        return self.parts.pop(0) if self.parts else 0


def taken(*line_ns, deadline=1e12, interference=()):
    """(which of the tries was kept, how often it was taken again)"""
    fake = FakeBench(*line_ns)
    FakeInterference.parts, states.Interference = list(interference), FakeInterference
    session = bench.Session(fake, deadline)
    session.sample(plan.Measurement("some", fake.run), plan.QUICK, 0, 0)
    kept = session.results["some"][0]
    return kept["messages_per_s"], kept["again"]


def printed(text):
    """The line of markdown.py for a row with two states."""
    results = {"send 64 srq": rates((4, "fast"), (1, "slow")),
               "testpmd 122": rates((8, "fast"), (4, "slow"))}
    report = {"line_ns": (27, 157), "results": results, "rows": table.rows(results)}
    return next(line for line in markdown.ratios(report) if text in line)


def drawn_lines(*met):
    """Of a series with a sample in each of these states: (lines, hollow points, points)."""
    report = {"results": {"loss %d" % ppm: [{**sample(), "state": name}]
                          for ppm, name in zip(plan.LOSSES_PPM, met)}}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "loss.svg")
        plot.by_loss(report, path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
    return text.count("<polyline"), text.count('r="3" stroke="#1b6ca8" fill="#fff"'), \
        text.count("<circle")


def number_line(results):
    """The row of markdown.py for one number, in two states."""
    return list(markdown.numbers({"line_ns": (27, 157), "results": results}))[2:]


def cores(text):
    """Returns the state that states.cores() reads from a rocade-line that prints this text; None: there is no such
    program."""
    with tempfile.TemporaryDirectory() as build:
        program = os.path.join(build, "app", "perf", "rocade-line")
        os.makedirs(os.path.dirname(program))
        if text is not None:
            with open(program, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\necho '%s'\n" % text)
            os.chmod(program, 0o755)
        return states.cores(build)


CORES = {"line_ns": 51.0, "beside": 1.9, "cycles_a_tick": 1.35}

CYCLES = {"cycles": {"write 1m": {"client": {"build": 400.0, "post": 159.0},
                                  "server": {"build": 268.0, "repost": 9.0}}}}

EVERY_RATIO = table.RATIOS + list(table.hosts.ratios())

CASES = [
    ("a table of cycles names its measurement", list(markdown.cycles(CYCLES))[1:],
     ["| write 1m, cycles a packet | build | post | repost |", "|---|---|---|---|",
      "| client | 400 | 159 |  |", "| server | 268 |  | 9 |"]),
    ("rocade-line's three numbers", cores("51.0 1.90 1.35"), CORES),
    ("one number is not three", cores("51.0"), None),
    ("no rocade-line", cores(None), None),
    ("two threads of a core are told", [name in states.cores_text(CORES) for name in (
        "51 ns", "1.90 times", "two threads of one core", "1.35 cycles")], [True] * 4),
    ("two cores are told", "(two cores)" in states.cores_text({**CORES, "beside": 1.02}), True),
    ("no numbers are told", "gave no state" in states.cores_text(None), True),
    ("a ratio that meets its target", ratio(send((5, 10)), SEND), (0.5, "target met")),
    ("a ratio that meets its threshold", ratio(send((4, 10)), SEND), (0.4, "threshold met")),
    ("a ratio below its threshold", ratio(send((3, 10)), SEND), (0.3, "BELOW THRESHOLD")),
    ("a row without a threshold below its target",
     ratio({"write 1m zero copy": [sample(4)], "testpmd 4170 zero copy": [sample(10)]},
           "1 MiB WRITE / testpmd's bytes, both with zero copy"), (0.4, "below target")),
    ("samples of the same round are compared", ratio(send((1, 2), (10, 100), (40, 100)), SEND),
     (0.4, "threshold met")),
    ("a failed round is left out", ratio(send((4, 10), (None, 10), (4, None)), SEND),
     (0.4, "threshold met")),
    # 100 and 40 ns at 2 GHz
    ("cycles that a message adds to a frame", ratio(send((1e7, 25e6)), ADDED),
     (120, "threshold met")),
    ("too many cycles", ratio(send((1e7, 1e8)), ADDED), (180, "BELOW THRESHOLD")),
    ("cycles are judged in the fast state", row(
        {"send 64 srq": rates((1e7, "fast"), (1e6, "slow")),
         "testpmd 122": rates((25e6, "fast"), (25e5, "slow"))}, ADDED)["verdict"],
     "threshold met"),
    ("no cycles of a rate of zero", ratio(send((0, 1e8)), ADDED), (None, "not measured")),
    # 1000 ns a packet, of which 400 are the port's
    ("a packet over a pass of copy and CRC", ratio(long_write(1e6, 25e5, 500, 600, 900), PASSES),
     (1.0, "target met")),
    ("no pass was measured", ratio(long_write(1e6, 25e5, None), PASSES), (None, "not measured")),
    ("the instructions of each workload", {name for name, count in table.instructions()
                                           if count > 100} >= {"send-64", "write-4096"}, True),
    ("nothing measured", ratio({}, SEND), (None, "not measured")),
    ("all rounds failed", ratio(send((None, 10)), SEND), (None, "not measured")),
    ("a rate of zero gives no ratio", ratio(send((4, 0)), SEND), (None, "not measured")),
    ("a machine with one state", met(FAST, FAST, CLOSE, FAST), [None] * 4),
    ("two states", met(FAST, SLOW, FAST), ["fast", "slow", "fast"]),
    ("two states in one sample", met(FAST, BOTH, SLOW), ["fast", "mixed", "slow"]),
    ("between two states", met(FAST, [60, 65, 70], SLOW, SLOW), ["fast", "mixed", "slow", "slow"]),
    ("one outlier is not a state", met(FAST, FAST, FAST, [27, 27, 900]), [None] * 4),
    ("one outlier is not the slow state", met(FAST, SLOW, [26, 27, 90000], SLOW),
     ["fast", "slow", "mixed", "slow"]),
    ("a sample without a reading", met(FAST, None, SLOW), ["fast", None, "slow"]),
    ("no cache-line probe", met(None, None), [None, None]),
    ("a sample of one state is kept", taken(FAST), (1, 0)),
    ("a mixed sample is taken again", taken(BOTH, FAST), (2, 1)),
    ("a sample is taken at most three times", taken(BOTH, BOTH, BOTH, FAST), (3, 2)),
    ("a sample is not taken again after the deadline", taken(BOTH, FAST, deadline=0), (1, 0)),
    ("a sample is not taken again without a cache-line probe", taken(None, None), (1, 0)),
    ("a disturbed sample is taken again", taken(FAST, FAST, interference=(0.5,)), (2, 1)),
    ("a disturbed sample is reported", states.disturbed(
        {"a": [{"interference": 0.05}, {"interference": 0.5}, None, {}]}), ["a"]),
    ("each state has its ratio", by_state([(4, "fast"), (1, "slow"), (5, "fast")],
                                          [(8, "fast"), (4, "slow"), (10, "fast")]),
     {"fast": (0.5, 0.5, 0.5), "slow": (0.25, 0.25, 0.25)}),
    ("samples of different states are paired in the nearest round of the same state",
     by_state([(4, "fast"), (1, "slow"), (2, "slow")],
              [(8, "fast"), (10, "fast"), (4, "slow")]), {"fast": (0.5, 0.5, 0.5), "slow": (0.375, 0.25, 0.5)}),
    ("a mixed numerator leaves the denominator to pair", by_state([(4, "fast"), (3, "mixed")],
                                                 [(8, "fast"), (16, "fast")]),
     {"fast": (0.375, 0.25, 0.5)}),
    ("rounds are matched by number", row({
        "send 64 srq": [{**sample(4), "round": 1}],
        "testpmd 122": [{**sample(8), "round": 0}, {**sample(16), "round": 1}]}, SEND)["states"][
            table.ALL]["median"], 0.25),
    ("no two of one state", by_state([(4, "fast"), (4, "mixed")], [(8, "slow"), (8, "mixed")]),
     {}),
    ("a row without two samples of one state says so", ratio({"send 64 srq": rates((4, "fast")),
                                "testpmd 122": rates((4, "slow"))}, SEND),
     (None, "states differ")),
    ("measurements without a pair are taken once more", table.unpaired({
        "send 64 srq": rates((4, "fast")), "testpmd 122": rates((4, "slow"))}),
     ["send 64 srq", "testpmd 122"]),
    ("failed measurements are not taken once more", table.unpaired({"send 64 srq": [None], "testpmd 122": [sample()]}), []),
    ("memory is the same in each state", ratio({
        "memory rq": [{**sample(), "memory_bytes": 6, "state": "fast"}],
        "memory srq": [{**sample(), "memory_bytes": 2, "state": "slow"}]}, "memory of 1,000"),
     (3, "")),
    ("a column for each state", printed(SEND),
     "| 64 B SEND into an SRQ / testpmd's frames of 122 B | 0.50 | 0.25 | 0.35 | 0.50 |"),
    ("the verdict is that of the worse state", row({
        "send 64 srq": rates((4, "fast"), (1, "slow")),
        "testpmd 122": rates((8, "fast"), (4, "slow"))}, SEND)["verdict"], "BELOW THRESHOLD"),
    ("a number of each state, none of a mixed sample", number_line({
        "send 64 srq": rates((4e6, "fast"), (1e6, "slow"), (9e6, "mixed"), (2e6, "slow"))}),
     ["| SEND 64 B, SRQ, 1 of 64 signaled | 4.00 M/s (4.00-4.00) | 1.50 M/s (1.00-2.00) |"]),
    ("a line joins points of one state", drawn_lines("fast", "fast", "slow", "slow", "fast"),
     (2, 2, 5)),
    ("a picture of one state is one line", drawn_lines(None, None, None, None, None), (1, 0, 5)),
    ("a mixed sample is not drawn", drawn_lines("fast", "mixed", "fast", "fast", "fast"),
     (1, 0, 4)),
    ("less is better: target met", ratio(pingpong(13, 10), PINGPONG), (1.3, "target met")),
    ("less is better: threshold met", ratio(pingpong(20, 10), PINGPONG),
     (2.0, "threshold met")),
    ("less is better: below threshold", ratio(pingpong(23, 10), PINGPONG),
     (2.3, "BELOW THRESHOLD")),
    ("zero copy is compared with zero copy", ratio({"write 1m zero copy": [sample(3)],
                                          "testpmd 4170 zero copy": [sample(4)],
                                          "testpmd 4170": [sample(9)]},
                                         "1 MiB WRITE / testpmd's bytes, both with zero copy"),
     (0.75, "target met")),
    ("only the client has zero copy", [zero_copy(role) for role in ("client", "server")],
     [(True, True), (False, False)]),
    ("both measurements of a ratio are taken equally often", [
        r[0] for r in EVERY_RATIO if r[1] and len({
            m.main for m in plan.MEASUREMENTS if m.name in {r[1], r[2]}}) != 1], []),
    ("both measurements of a ratio exist", [
        r[0] for r in EVERY_RATIO if r[1] and not {r[1], r[2]} <= {
            m.name for m in plan.MEASUREMENTS}], []),
    ("each number is of a measurement", [
        n[0] for n in table.NUMBERS if n[1] not in plan.BY_NAME], []),
    ("two hosts are measured only if they are named", [
        {m.name.startswith("hosts ") for m in bench.chosen(only, False)}
        for only in (None, ["hosts"])], [{False}, {True}]),
    ("two hosts have no rows unless they were asked for", [
        len(table.ratios(results)) - len(table.RATIOS)
        for results in ({}, {"hosts memif send 64 qps 8": []})], [0, 1]),
    ("the tail of a ping-pong between two hosts over its median", ratio(
        {"hosts memif pingpong": [{"latency_ns": {"p50": 5000, "p99": 20000}}]},
        "two hosts over net_memif, SEND ping-pong, p99 / p50"), (4.0, "BELOW THRESHOLD")),
    ("a wake-up takes what a sleeping end's message takes longer, in the same state", by_state_of(
        "us a wake-up takes, by", {"asleep vhost": latencies((9000, "slow"), (5000, "fast")),
                                   "awake vhost": latencies((2000, "fast"), (1000, "fast"))}),
     {"fast": (3.5, 3, 4)}),
    ("a wake-up without the ends that poll", ratio({"asleep memif": [sample()]},
                                                   "us a wake-up takes on net_memif"),
     (None, "not measured")),
    ("both measurements of a wake-up exist", [
        r[0] for r in table.WAKE_UPS if not set(r[1:]) <= {m.name for m in plan.MEASUREMENTS}], []),
    ("ends that sleep are measured once more without a pair", table.unpaired({
        "asleep vhost": latencies((9000, "slow")), "awake vhost": latencies((2000, "fast"))}),
     ["asleep vhost", "awake vhost"]),
    ("bytes of an idle QP", ratio({"memory qp 64": [{"qp_bytes": 5000}],
                                   "memory qp 128": [{"qp_bytes": 9200}]},
                                  "bytes of an idle RC QP"), (800, "threshold met")),
    ("bytes of an idle QP with one of two measurements", ratio({"memory qp 64": [{"qp_bytes": 5000}]},
                                                        "bytes of an idle RC QP"),
     (None, "not measured")),
    ("bytes of the READ ring", ratio({"memory qp 64": [None, {"qp_bytes": 5000}],
                                      "memory qp reads": [{"qp_bytes": 6024}]},
                                     "bytes of its ring"), (1024, "")),
    ("bytes of an SRQ entry", ratio({"memory srq": [sample()]}, "bytes of an SRQ entry"),
     (64, "")),
    ("rows below target, without the limit", table.below_target(send((4, 10))), ["send 64 srq"]),
    ("rows that meet their target", table.below_target(send((5, 10))), []),
    ("rows compared with TCP", table.below_target({"tcp latency": [sample(p50=3000)],
                                                   "send pingpong": [sample()]}),
     ["send pingpong"]),
    ("cycles can be counted for rows below target", [
        m.name for m in plan.MEASUREMENTS if m.arguments and m.arguments[0] not in (
            "send", "write", "read", "pingpong", "write-lat", "read-lat", "raw-pingpong")], []),
    ("every number names a measurement", [
        n[0] for n in table.NUMBERS if n[1] and n[1] not in {m.name for m in plan.MEASUREMENTS}],
     []),
    ("names of measurements are unique", len({m.name for m in plan.MEASUREMENTS}), len(plan.MEASUREMENTS)),
    ("pictures", pictures(), [(6, 6), (0, 0)]),
]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
