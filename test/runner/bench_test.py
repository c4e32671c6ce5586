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
            "depth": 10}


def row(results, begin):
    return next(r for r in table.rows(results) if r["text"].startswith(begin))


def ratio(results, begin):
    got = row(results, begin)
    return got["ratio"], got["verdict"]


def pictures():
    """Of a report with everything and of one with nothing: (drawn, drawn)"""
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
    """Of the port, of EAL."""
    arguments = runners.Bench("", "").eal(role, "0@0", 64, True)
    return "zero-copy=yes" in arguments[-2 if role == "client" else -1], \
        "--single-file-segments" in arguments


SEND = "64 B SEND into an SRQ"
BALL = "64 B SEND ping-pong"


def send(*pairs):
    return {"send 64 srq": [sample(a) if a else None for a, _ in pairs],
            "testpmd 122": [sample(b) if b else None for _, b in pairs]}


def balls(ours, raw):
    return {"send pingpong": [sample(p50=ours)], "raw pingpong": [sample(p50=raw)]}


FAST, SLOW = [26, 27, 28], [150, 157, 160]
BOTH, CLOSE = [26, 27, 157], [33, 34, 35]


def met(*line_ns):
    """States by what the witness said during each sample."""
    results = {"some": [{"line_ns": ns} for ns in line_ns] + [None]}
    states.label(results)
    return [n["state"] for n in results["some"][:-1]]


def rates(*taken):
    """Of (rate, state); of round 0, 1, ..."""
    return [{**sample(rate), "state": state, "round": i} if rate else None
            for i, (rate, state) in enumerate(taken)]


def by_state(ours, limit):
    """Of the row's ratio: (median, lowest, highest, fast, slow)"""
    got = row({"send 64 srq": rates(*ours), "testpmd 122": rates(*limit)}, SEND)
    return tuple(got.get(name) for name in ("ratio", "low", "high", "fast", "slow"))


class MadeUp:
    """Of a bench, and of its witness: each sample's line_ns, and what else it costs."""
    window = (0, 0)

    def __init__(self, *line_ns):
        self.line_ns = list(line_ns)
        self.witness = lambda: self
        self.runs = 0

    def between(self, *_):
        return self.line_ns.pop(0)

    def run(self, *_):
        self.runs += 1
        return sample(self.runs)


class Quiet:
    """Of states.Others: nobody, or who is named."""
    parts = []

    def part(self):
        return self.parts.pop(0) if self.parts else 0


def taken(*line_ns, deadline=1e12, others=()):
    """(which of the tries was kept, how often it was taken again)"""
    made_up = MadeUp(*line_ns)
    Quiet.parts, states.Others = list(others), Quiet
    session = bench.Session(made_up, deadline)
    session.sample(plan.Measurement("some", made_up.run), plan.QUICK, 0, 0)
    kept = session.results["some"][0]
    return kept["messages_per_s"], kept["again"]


def printed(text):
    """What markdown.py and table.py make of a row in two states."""
    results = {"send 64 srq": rates((4, "fast"), (1, "slow")),
               "testpmd 122": rates((8, "fast"), (4, "slow"))}
    report = {"line_ns": (27, 157), "results": results, "rows": table.rows(results)}
    return next(line for line in markdown.ratios(report) if text in line)


CYCLES = {"cycles": {"write 1m": {"client": {"build": 400.0, "post": 159.0},
                                  "server": {"build": 268.0, "repost": 9.0}}}}

CASES = [
    ("cycles stand under what they are of", list(markdown.cycles(CYCLES))[1:],
     ["| write 1m, cycles a packet | build | post | repost |", "|---|---|---|---|",
      "| client | 400 | 159 |  |", "| server | 268 |  | 9 |"]),
    ("a ratio at the aim", ratio(send((5, 10)), SEND), (0.5, "aim")),
    ("a ratio that is reached", ratio(send((4, 10)), SEND), (0.4, "reached")),
    ("a ratio below", ratio(send((3, 10)), SEND), (0.3, "BELOW")),
    ("nothing to reach, and below the aim",
     ratio({"write 1m zero copy": [sample(4)], "testpmd 4170 zero copy": [sample(10)]},
           "1 MiB WRITE / testpmd's bytes, both with zero copy"), (0.4, "below aim")),
    ("neighbours in time are compared", ratio(send((1, 2), (10, 100), (40, 100)), SEND),
     (0.4, "reached")),
    ("a round that failed is left out", ratio(send((4, 10), (None, 10), (4, None)), SEND),
     (0.4, "reached")),
    ("nothing measured", ratio({}, SEND), (None, "not measured")),
    ("all rounds failed", ratio(send((None, 10)), SEND), (None, "not measured")),
    ("nothing divided by nothing", ratio(send((4, 0)), SEND), (None, "not measured")),
    ("one state: all are alike", met(FAST, FAST, CLOSE, FAST), [None] * 4),
    ("two states", met(FAST, SLOW, FAST), ["fast", "slow", "fast"]),
    ("two states in one sample", met(FAST, BOTH, SLOW), ["fast", "mixed", "slow"]),
    ("between two states", met(FAST, [60, 65, 70], SLOW, SLOW), ["fast", "mixed", "slow", "slow"]),
    ("a single number far away is no state", met(FAST, FAST, FAST, [27, 27, 900]), [None] * 4),
    ("nor is it the slow one", met(FAST, SLOW, [26, 27, 90000], SLOW),
     ["fast", "slow", "mixed", "slow"]),
    ("a sample that the witness did not see", met(FAST, None, SLOW), ["fast", None, "slow"]),
    ("no witness", met(None, None), [None, None]),
    ("a sample of one state is kept", taken(FAST), (1, 0)),
    ("one of two states is taken again", taken(BOTH, FAST), (2, 1)),
    ("and again, but that is enough", taken(BOTH, BOTH, BOTH, FAST), (3, 2)),
    ("not when it is late", taken(BOTH, FAST, deadline=0), (1, 0)),
    ("not without a witness", taken(None, None), (1, 0)),
    ("what others disturb is taken again", taken(FAST, FAST, others=(0.5,)), (2, 1)),
    ("and is told", states.disturbed({"a": [{"others": 0.05}, {"others": 0.5}, None, {}]}), ["a"]),
    ("each state has its ratio", by_state([(4, "fast"), (1, "slow"), (5, "fast")],
                                          [(8, "fast"), (4, "slow"), (10, "fast")]),
     (0.5, 0.25, 0.5, 0.5, 0.25)),
    ("only what met the same state is compared, in the nearest round",
     by_state([(4, "fast"), (1, "slow"), (2, "slow")],
              [(8, "fast"), (10, "fast"), (4, "slow")]), (0.5, 0.25, 0.5, 0.5, 0.375)),
    ("or the other one finds its like", by_state([(4, "fast"), (3, "mixed")],
                                                 [(8, "fast"), (16, "fast")]),
     (0.375, 0.25, 0.5, 0.375, None)),
    ("rounds go by their numbers", row({
        "send 64 srq": [{**sample(4), "round": 1}],
        "testpmd 122": [{**sample(8), "round": 0}, {**sample(16), "round": 1}]}, SEND)["ratio"],
     0.25),
    ("no two of one state", by_state([(4, "fast"), (4, "mixed")], [(8, "slow"), (8, "mixed")]),
     (None,) * 5),
    ("and that is said", ratio({"send 64 srq": rates((4, "fast")),
                                "testpmd 122": rates((4, "slow"))}, SEND),
     (None, "states differ")),
    ("these are measured once more", table.unpaired({
        "send 64 srq": rates((4, "fast")), "testpmd 122": rates((4, "slow"))}),
     ["send 64 srq", "testpmd 122"]),
    ("what failed is not", table.unpaired({"send 64 srq": [None], "testpmd 122": [sample()]}), []),
    ("memory is the same in each state", ratio({
        "memory rq": [{**sample(), "memory_bytes": 6, "state": "fast"}],
        "memory srq": [{**sample(), "memory_bytes": 2, "state": "slow"}]}, "memory of 1,000"),
     (3, "")),
    ("a column for each state", printed(SEND),
     "| 64 B SEND into an SRQ / testpmd's frames of 122 B | 0.38 | 0.25 to 0.50 | 0.50 | 0.25 | "
     "0.35 | 0.50 |"),
    ("less is better: aim", ratio(balls(13, 10), BALL), (1.3, "aim")),
    ("less is better: reached", ratio(balls(15, 10), BALL), (1.5, "reached")),
    ("less is better: below", ratio(balls(17, 10), BALL), (1.7, "BELOW")),
    ("zero copy beside zero copy", ratio({"write 1m zero copy": [sample(3)],
                                          "testpmd 4170 zero copy": [sample(4)],
                                          "testpmd 4170": [sample(9)]},
                                         "1 MiB WRITE / testpmd's bytes, both with zero copy"),
     (0.75, "aim")),
    ("zero copy is the client's", [zero_copy(role) for role in ("client", "server")],
     [(True, True), (False, False)]),
    ("both of a ratio are measured as often", [
        r[0] for r in table.RATIOS if r[1] and len({
            m.main for m in plan.MEASUREMENTS if m.name in {r[1], r[2]}}) != 1], []),
    ("both of a ratio are there", [
        r[0] for r in table.RATIOS if r[1] and not {r[1], r[2]} <= {
            m.name for m in plan.MEASUREMENTS}], []),
    ("bytes of an idle QP", ratio({"memory qp 64": [{"qp_bytes": 5000}],
                                   "memory qp 128": [{"qp_bytes": 9200}]},
                                  "bytes of an idle RC QP"), (800, "reached")),
    ("bytes of an idle QP that are half measured", ratio({"memory qp 64": [{"qp_bytes": 5000}]},
                                                        "bytes of an idle RC QP"),
     (None, "not measured")),
    ("bytes of the READ ring", ratio({"memory qp 64": [None, {"qp_bytes": 5000}],
                                      "memory qp reads": [{"qp_bytes": 6024}]},
                                     "bytes of its ring"), (1024, "")),
    ("bytes of an SRQ entry", ratio({"memory srq": [sample()]}, "bytes of an SRQ entry"),
     (64, "")),
    ("what is below its aim, without the limit", table.below_aim(send((4, 10))), ["send 64 srq"]),
    ("what reaches its aim", table.below_aim(send((5, 10))), []),
    ("what is compared with TCP", table.below_aim({"tcp latency": [sample(p50=3000)],
                                                   "send pingpong": [sample()]}),
     ["send pingpong"]),
    ("cycles can be taken of what is below its aim", [
        m.name for m in plan.MEASUREMENTS if m.arguments and m.arguments[0] not in (
            "send", "write", "read", "pingpong", "write-lat", "read-lat", "raw-pingpong")], []),
    ("every number names a measurement", [
        n[0] for n in table.NUMBERS if n[1] and n[1] not in {m.name for m in plan.MEASUREMENTS}],
     []),
    ("names are given once", len({m.name for m in plan.MEASUREMENTS}), len(plan.MEASUREMENTS)),
    ("pictures", pictures(), [(6, 6), (0, 0)]),
]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
