#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test/lib/case.h: which cases of a program run, in which order, and when the program fails.

    case_test.py PROGRAM      # of case_example.c
"""

import os
import re
import subprocess
import sys

import cases

ALL = ["z_is_first", "m_has_a_state", "a_runs_a_function", "again"]


def run(*names, missing=""):
    """(exit status, the cases that passed, the plan, errors)"""
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", EXAMPLE=missing)
    done = subprocess.run([sys.argv[1], *names], env=env, capture_output=True, text=True, check=False)
    # cmocka 2 prints the version of TAP before it.
    plan = done.stdout.removeprefix("TAP version 14\n").split("\n")[0]
    return done.returncode, re.findall(r"^ok \d+ - (\w+)", done.stdout, re.M), plan, done.stderr


def main():
    unknown = run("z_is_first", "nothing")
    rows = [
        ("all cases run in the order of their lines", run()[:3], (0, ALL, "1..4")),
        ("a program runs the cases that are named", run("again", "z_is_first")[:3],
         (0, ["z_is_first", "again"], "1..2")),
        ("a name without a case is an error", unknown[:3], (2, [], "")),
        ("the error has the name and the cases", [name for name in ["nothing"] + ALL
                                                  if name not in unknown[3]], []),
        ("a failed case fails the program", run(missing="case")[:2], (1, ALL[:2])),
        ("a machine without the cases is a skip", run(missing="machine")[:3],
         (0, [], "1..0 # SKIP no such machine")),
    ]
    for kind in ("setup", "teardown"):
        passed = [] if kind == "setup" else ALL
        for what in ("%s of the group", "assertion in the %s of the group"):
            what %= kind
            rows.append(("a failed %s fails the program" % what, run(missing=what)[:2], (1, passed)))
    return cases.run(rows)


if __name__ == "__main__":
    sys.exit(main())
