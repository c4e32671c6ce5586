#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/lib/cost.py: what it counts in a callgrind file, with what it compares the count, and which
counts fail."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/lib"))
import cases  # noqa: E402
import cost  # noqa: E402

GCC = ("gcc 12.2.0", "x86_64+sse4.2+avx2")
FILE = """version: 1
positions: line
events: Ir

ob=/build/test/cost/cost
fl=main.c
fn=measured
10 5
cfn=parse
calls=3 20
11 900
12 2

ob=/usr/lib/libisal.so.2
fn=crc
+4 700
* 30
totals: 737
"""


def outcome(counts, key=GCC, stored=None, workload="send"):
    """Returns (whether the counts pass, number of notes)."""
    base = stored if stored is not None else {GCC: {"send": (1000, 500)}}
    lines, good = cost.report({workload: counts}, key, base, "store it")
    assert ("not ok" in "".join(lines)) != good
    return good, len([line for line in lines if line.startswith("#")]) - 1


def message(counts):
    return cost.report({"send": counts}, GCC, {GCC: {"send": (1000, 500)}}, "store it")[0][-1]


TWO = {GCC: {"send": (1000, 500)}, ("gcc 12.1.0", "x86_64+sse4.2"): {"send": (2000, 1000)},
       ("clang 14.0.6", "x86_64+sse4.2+avx2"): {"send": (100, 50)}}

CASES = [
    ("the cost of callees is not counted twice", cost.tally(FILE.splitlines(), "cost"), (737, 7)),
    ("an equal count passes", outcome((1000, 500)), (True, 0)),
    ("1 % more passes", outcome((1010, 505)), (True, 0)),
    ("1.1 % more fails", outcome((1011, 500)), (False, 0)),
    ("1.2 % more in Rocade's own code fails", outcome((1006, 506)), (False, 0)),
    ("less passes, with a note to store it", outcome((960, 480)), (True, 1)),
    ("the message has count, limit and remedy", message((1100, 500)),
     "not ok 1 - send takes 1100.0 instructions a message, +10.0 % over 1000.0 (limit +1 %); if it "
     "has to: store it"),
    ("another minor version: less than 10 % more passes",
     outcome((1099, 549), ("gcc 12.3.0", GCC[1])), (True, 1)),
    ("another minor version: more than 10 % more fails",
     outcome((1101, 500), ("gcc 12.3.0", GCC[1])), (False, 1)),
    ("another CPU: the numbers with most features in common are chosen",
     cost.choose(TWO, ("gcc 12.2.0", "x86_64+sse4.2+avx2+bmi2"))[0], GCC),
    ("an older CPU: the numbers with most features in common are chosen",
     cost.choose(TWO, ("gcc 12.9.0", "x86_64"))[0],
     ("gcc 12.1.0", "x86_64+sse4.2")),
    ("another compiler: the numbers are only shown",
     outcome((9999, 9999), ("gcc 13.1.0", GCC[1])), (True, 2)),
    ("another architecture: the numbers are only shown",
     outcome((9999, 9999), (GCC[0], "aarch64")), (True, 2)),
    ("a workload without a stored number fails", outcome((1, 1), workload="new"), (False, 1)),
    ("a workload without a stored number, numbers of another CPU: only shown",
     outcome((9999, 9999), ("gcc 12.2.0", "x86_64"), workload="new"), (True, 2)),
    ("no stored numbers: the numbers are only shown", outcome((9999, 9999), stored={}), (True, 2)),
    ("two hosts are compared with the same work in a process",
     cost.report({"send-64": (1000, 500), "hosts-send-64": (1710, 900)}, GCC, {}, "store it")[0][-1],
     "# hosts-send-64: 1.71 times the instructions of send-64 (gate 2.2, reach 1.6)"),
    ("two hosts without that work: no comparison",
     cost.ratios({"hosts-send-64": (1710, 900), "write-4096": (1, 1)}), []),
    ("written numbers can be read", cost.read(cost.write(TWO)), TWO),
    ("the stored numbers of the tree can be read",
     bool(cost.read(open(cost.NUMBERS, encoding="utf-8").read())), True),
]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
