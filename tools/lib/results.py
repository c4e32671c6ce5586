#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts test cases one by one, for tools/test.sh.

    results.py meson STAGE TESTLOG.json SKIPS RESULTS
    results.py tap STAGE PROGRAM STDOUT EXIT_STATUS SKIPS RESULTS

Reads meson's log or the output of a TAP program. Appends a line "passed|failed|skipped<TAB>STAGE
<TAB>PROGRAM: CASE<TAB>reason" for each case to RESULTS. Prints the failed cases, the counts, and the
last lines of the output of each test of meson that failed and of each program that was killed. A
skip counts as failed unless a pattern of SKIPS matches "PROGRAM: CASE". A program fails that
reports no case, reports another number of cases than it planned, or exits with an error although
every case passed. Exit status: 0 no case failed, 1 a case failed."""

import fcntl
import fnmatch
import json
import re
import sys

CASE = re.compile(r"^(?P<bad>not )?ok\b\s*\d*\s*(?:- )?\s*(?P<name>.*?)\s*"
                  r"(?:(?<!\\)#\s*(?P<directive>skip|todo)\S*\s*(?P<why>.*))?$", re.I)
TAIL_LINES = 20
DIAGNOSTICS = 3  # lines of them that are kept of a failed case
TIMED_OUT = 124  # exit status of timeout(1)
PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*skip\S*\s*(?P<why>.*))?", re.I)


def tap_cases(text):
    """[(result, name, reason)] of a TAP program's output; None: the output is not TAP. The reason of a
    failed case is made of the first lines of diagnostics behind it."""
    cases = []
    planned = None
    diagnosed = 0
    for line in text.splitlines():
        case = CASE.match(line)
        if case:
            diagnosed = DIAGNOSTICS if case["bad"] and not case["directive"] else 0
        elif diagnosed and line.startswith("# "):
            result, name, why = cases[-1]
            cases[-1] = (result, name, "; ".join(part for part in (
                why, " ".join(line[2:].split())) if part))
            diagnosed -= 1
        else:
            diagnosed = 0
        plan = PLAN.match(line)
        if case and case["directive"]:
            # cmocka writes "not ok 1 # SKIP NAME".
            cases.append(("skipped", case["name"] or case["why"], case["why"] or case["directive"]))
        elif case:
            cases.append(("failed" if case["bad"] else "passed", case["name"], ""))
        elif plan and planned is None:
            planned = int(plan[1])
            if planned == 0:
                cases.append(("skipped", "all", plan["why"] or "no case planned"))
                planned = 1
        elif line.startswith("Bail out!"):
            cases.append(("failed", "bailed out", line[9:].strip()))
    if not cases and planned is None:
        return None
    if planned is not None and planned != len(cases):
        cases.append(("failed", "plan", "planned %d, ran %d" % (planned, len(cases))))
    return cases


def close(cases, good, why):
    """Adds a failed case for an exit status that no failed case explains."""
    if not good and not any(result == "failed" for result, _, _ in cases):
        cases.append(("failed", "exit", why))
    return cases


def meson_cases(path, outputs=None):
    """Yields (program, case). outputs: gets what each program has printed."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            test = json.loads(line)
            result = test["result"]
            program = test["name"].split(" / ")[-1]
            if outputs is not None:
                outputs[program] = (test.get("stdout") or "") + (test.get("stderr") or "")
            cases = tap_cases(test.get("stdout") or "")
            if cases is None:
                kinds = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
                cases = [(kinds.get(result, "failed"), "exit", result)]
            # For meson cmocka's form of a skip is a failure.
            skipped = test.get("returncode") == 0 and any(case[0] == "skipped" for case in cases)
            good = result in ("OK", "EXPECTEDFAIL", "SKIP") or result == "FAIL" and skipped
            why = "%s, exit status %s" % (result, test.get("returncode"))
            for case in close(cases, good, why):
                yield program, case


def program_cases(program, path, status):
    with open(path, encoding="utf-8", errors="replace") as file:
        cases = tap_cases(file.read())
    if cases is None:
        cases = [("failed", "cases", "reported none")]
    why = "took too long" if status == TIMED_OUT else "exit status %d" % status
    for case in close(cases, status == 0, why):
        yield program, case


def print_tail(program, text):
    lines = text.splitlines()[-TAIL_LINES:]
    print("  the last lines of %s:" % program)
    print("".join("  | %s\n" % line for line in lines), end="")


def read_skips(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split("#")[0].strip() for line in file]
    return [line for line in lines if line]


def record(stage, cases, skips, results):
    """Appends the cases to the file of results. Returns the counts."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with open(results, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two programs may end at the same time
        for program, (result, name, why) in cases:
            case = "%s: %s" % (program, name)
            if result == "skipped" and not any(fnmatch.fnmatchcase(case, s) for s in skips):
                result = "failed"
                why = "skipped, which the list of skips does not allow: " + why
            counts[result] += 1
            file.write("%s\t%s\t%s\t%s\n" % (result, stage, case, why))
            if result == "failed":
                print("  FAILED %s%s" % (case, " (%s)" % why if why else ""))
    return counts


def main(args):
    if len(args) == 5 and args[0] == "meson":
        _, stage, log, skips, results = args
        label, outputs = "tests", {}
        cases = list(meson_cases(log, outputs))
    elif len(args) == 7 and args[0] == "tap":
        _, stage, label, log, status, skips, results = args
        cases, outputs = list(program_cases(label, log, int(status))), {}
        if int(status) > 1:
            with open(log, encoding="utf-8", errors="replace") as file:
                outputs[label] = file.read()
    else:
        print(__doc__, file=sys.stderr)
        return 2
    if not cases:
        cases = [("meson", ("failed", "cases", "no test ran"))]
    counts = record(stage, cases, read_skips(skips), results)
    for program in sorted({program for program, (result, _, _) in cases if result == "failed"}):
        if outputs.get(program):
            print_tail(program, outputs[program])
    print("  %s: %d passed, %d failed, %d skipped" % (label, *counts.values()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
