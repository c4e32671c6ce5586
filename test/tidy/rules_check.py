#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks test/rules.tsv against the tree: every line has four columns, no line is repeated, the
test that a line names is a case of its file (test/lib/case.h), and every rule of test/rules.list has a
test."""

import os
import re
import sys


def registered(path):
    """Returns the cases of a program."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    return set(re.findall(r"^TEST(?!_GROUP)\w*\((\w+)", text, flags=re.M))


def rows(lines):
    return [(number, line.rstrip("\n").split("\t")) for number, line in enumerate(lines, 1)
            if line.strip() and not line.startswith("#")]


def check(top, lines, needed):
    """Returns a message for each error, and the number of rules."""
    wrong, seen, programs, shown = [], set(), {}, set()
    for number, columns in rows(lines):
        if len(columns) != 4 or not all(columns):
            wrong.append("line %d: not four columns" % number)
            continue
        if tuple(columns) in seen:
            wrong.append("line %d: repeated" % number)
        seen.add(tuple(columns))
        section, rule, program, test = columns
        path = os.path.join(top, program)
        if program not in programs:
            programs[program] = registered(path) if os.path.isfile(path) else None
        if programs[program] is None:
            wrong.append("line %d (%s): no file %s" % (number, rule, program))
        elif test not in programs[program]:
            wrong.append("line %d (%s): %s runs no %s" % (number, rule, program, test))
        else:
            shown.add((section, rule))
    wrong += ["no test shows rule %s: %s" % tuple(columns) for _, columns in rows(needed)
              if tuple(columns) not in shown]
    return wrong, len(shown)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: rules_check.py TEST_FOLDER")
    top = sys.argv[1]
    with open(os.path.join(top, "rules.tsv"), encoding="utf-8") as file:
        lines = file.readlines()
    with open(os.path.join(top, "rules.list"), encoding="utf-8") as file:
        needed = file.readlines()
    wrong, rules = check(top, lines, needed)
    # Proof that the check finds errors: a missing test, one that is not run, a missing file, a
    # short line, a repeated line, a rule without a test.
    good = "7\td\tunit/qp/read_test.c\tread_sizes\n"
    bad, _ = check(top, ["7\ta\tunit/qp/read_test.c\ttest_of_nothing\n",
                         "7\te\tunit/qp/qp_test.c\tteardown\n",
                         "7\tb\tunit/qp/nothing_test.c\tread_sizes\n", "7\tc\n", good, good],
                   ["7\td\n", "7\ta\n", "8\td\n"])
    print("1..2")
    print("%s 1 - every rule (%d) names a test that runs" % ("not ok" if wrong or not rules else "ok",
                                                            rules))
    for line in wrong:
        print("# " + line)
    print("%s 2 - the check finds errors" % ("ok" if len(bad) == 7 else "not ok"))
    return 1 if wrong or not rules or len(bad) != 7 else 0


if __name__ == "__main__":
    sys.exit(main())
