#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The coverage gate of tools/test.sh, in TAP.

    coverage.py SOURCE BUILD OUT FOLDER=PERCENT...

gcovr counts the lines of each FOLDER of SOURCE that the tests of BUILD (-Db_coverage=true) ran.
Fewer than PERCENT of all lines of a FOLDER fail. coverage.json and coverage.txt are written to OUT;
the latter has a line for each file with the lines that were not run. The files that miss most lines
are printed."""

import json
import os
import subprocess
import sys

WORST = 10


def gcovr(source, build, out, folders):
    # One thread (no -j): after an error in one thread, the others of gcovr 5.2 wait for ever.
    report = os.path.join(out, "coverage.json")
    filters = ["--filter=%s/" % os.path.join(os.path.realpath(source), f) for f in folders]
    subprocess.run(
        ["gcovr", "--root", source, "--object-directory", build, *filters, "--json-summary",
         report, "--txt", os.path.join(out, "coverage.txt"), build],
        check=True, stdout=sys.stderr)
    with open(report, encoding="utf-8") as file:
        return json.load(file)


def judge(report, least):
    """least: {folder: percent}. Returns the lines to print, and whether each folder has enough."""
    lines, all_good = ["1..%d" % len(least)], True
    for number, (folder, percent) in enumerate(least.items(), 1):
        files = [f for f in report["files"] if f["filename"].startswith(folder + "/")]
        total = sum(f["line_total"] for f in files)
        share = 100 * sum(f["line_covered"] for f in files) / total if total else 0
        good = share >= percent and total > 0
        all_good = all_good and good
        lines += ["%s %d - %.1f %% of %d lines of %s/ (at least %g %%)" % (
            "ok" if good else "not ok", number, share, total, folder, percent)]
    worst = sorted(report["files"], key=lambda f: f["line_covered"] - f["line_total"])[:WORST]
    lines += ["# %s: %d of %d lines not run" % (
        f["filename"], f["line_total"] - f["line_covered"], f["line_total"])
        for f in worst if f["line_covered"] < f["line_total"]]
    return lines, all_good


def main():
    if len(sys.argv) < 5:
        print(__doc__, file=sys.stderr)
        return 2
    source, build, out = sys.argv[1:4]
    try:
        least = {folder: float(percent)
                 for folder, percent in (a.split("=") for a in sys.argv[4:])}
        report = gcovr(source, build, out, least)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print("coverage.py: %s" % error, file=sys.stderr)
        return 2
    lines, good = judge(report, least)
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
