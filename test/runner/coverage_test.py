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
    lines, good = coverage.judge(report(*counts), {"lib": least})
    return lines[1].startswith("ok") is good and good, lines


def two_folders(lib, drivers):
    files = {"files": [
        {"filename": "lib/a.c", "line_covered": 70, "line_total": 100},
        {"filename": "drivers/shm/a.c", "line_covered": 30, "line_total": 100}]}
    lines, good = coverage.judge(files, {"lib": lib, "drivers": drivers})
    return good and "of 100 lines of drivers/" in lines[2]


CASES = [
    ("the least share passes", judge(90, (90, 100))[0]),
    ("one line less fails", not judge(90, (899, 1000))[0]),
    ("a file weighs as many lines as it has", judge(90, (0, 5), (95, 95))[0]),
    ("a report without files fails", not judge(90)[0]),
    ("a fully covered file is not named", len(judge(50, (10, 10), (5, 10))[1]) == 3),
    ("the least covered file is named first", "lib/1.c: 9 of" in judge(1, (8, 10), (1, 10))[1][2]),
    ("each folder has a limit of its own", two_folders(70, 30)),
    ("one folder below its limit fails", not two_folders(70, 40)),
    ("a folder without files fails",
     not coverage.judge(report((1, 1)), {"lib": 1, "app/run": 1})[1]),
]


def main():
    print("1..%d" % len(CASES))
    for number, (name, good) in enumerate(CASES, 1):
        print("%s %d - %s" % ("ok" if good else "not ok", number, name))
    return 0 if all(good for _, good in CASES) else 1


if __name__ == "__main__":
    sys.exit(main())
