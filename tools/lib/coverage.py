#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The coverage gate of tools/test.sh, in TAP.

    coverage.py SOURCE BUILD OUT PERCENT

gcovr counts the lines of lib/ that the tests of BUILD (-Db_coverage=true) ran. Fewer than PERCENT
of all lines fail. coverage.json and coverage.txt are written to OUT; the latter has a line for each
file with the lines that were not run. The files that miss most lines are printed."""

import json
import os
import subprocess
import sys

WORST = 10


def gcovr(source, build, out):
    report = os.path.join(out, "coverage.json")
    subprocess.run(
        ["gcovr", "--root", source, "--object-directory", build, "--filter",
         os.path.join(os.path.realpath(source), "lib/"), "--json-summary", report,
         "--txt", os.path.join(out, "coverage.txt"), "-j", str(os.cpu_count()), build],
        check=True, stdout=sys.stderr)
    with open(report, encoding="utf-8") as file:
        return json.load(file)


def judge(report, least):
    """(the lines to print, whether enough lines were run)"""
    files = report["files"]
    total = sum(f["line_total"] for f in files)
    run = sum(f["line_covered"] for f in files)
    percent = 100 * run / total if total else 0
    good = percent >= least and total > 0
    lines = ["1..1", "%s 1 - %.1f %% of %d lines of lib/ (at least %g %%)" % (
        "ok" if good else "not ok", percent, total, least)]
    worst = sorted(files, key=lambda f: f["line_covered"] - f["line_total"])[:WORST]
    lines += ["# %s: %d of %d lines not run" % (
        f["filename"], f["line_total"] - f["line_covered"], f["line_total"])
        for f in worst if f["line_covered"] < f["line_total"]]
    return lines, good


def main():
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    source, build, out = sys.argv[1:4]
    lines, good = judge(gcovr(source, build, out), float(sys.argv[4]))
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
