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
import cases  # noqa: E402
import plan  # noqa: E402
import plot  # noqa: E402
import runners  # noqa: E402
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


CASES = [
    ("a ratio at the aim", ratio(send((5, 10)), SEND), (0.5, "aim")),
    ("a ratio that is reached", ratio(send((4, 10)), SEND), (0.4, "reached")),
    ("a ratio below", ratio(send((3, 10)), SEND), (0.3, "BELOW")),
    ("neighbours in time are compared", ratio(send((1, 2), (10, 100), (40, 100)), SEND),
     (0.4, "reached")),
    ("a round that failed is left out", ratio(send((4, 10), (None, 10), (4, None)), SEND),
     (0.4, "reached")),
    ("nothing measured", ratio({}, SEND), (None, "not measured")),
    ("all rounds failed", ratio(send((None, 10)), SEND), (None, "not measured")),
    ("nothing divided by nothing", ratio(send((4, 0)), SEND), (None, "not measured")),
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
