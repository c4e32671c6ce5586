#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/lib/coverage.py: which reports pass, and the files that it names."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/lib"))
import coverage  # noqa: E402


def report(*counts):
    return {"files": [{"filename": "lib/%d.c" % i, "line_covered": run, "line_total": total}
                      for i, (run, total) in enumerate(counts)]}


def judge(least, *counts):
    lines, good = coverage.judge(report(*counts), least)
    return lines[1].startswith("ok") is good and good, lines


CASES = [
    ("the least share passes", judge(90, (90, 100))[0]),
    ("one line less fails", not judge(90, (899, 1000))[0]),
    ("a file weighs as many lines as it has", judge(90, (0, 5), (95, 95))[0]),
    ("a report without files fails", not judge(90)[0]),
    ("a fully covered file is not named", len(judge(50, (10, 10), (5, 10))[1]) == 3),
    ("the least covered file is named first", "lib/1.c: 9 of" in judge(1, (8, 10), (1, 10))[1][2]),
]


def main():
    print("1..%d" % len(CASES))
    for number, (name, good) in enumerate(CASES, 1):
        print("%s %d - %s" % ("ok" if good else "not ok", number, name))
    return 0 if all(good for _, good in CASES) else 1


if __name__ == "__main__":
    sys.exit(main())
