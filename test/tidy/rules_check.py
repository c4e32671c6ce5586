#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds test/rules.tsv against the tree: every line has four columns, no line stands twice,
and the test that it names is a function of that file which its main() runs."""

import os
import re
import sys


def registered(path):
    """The tests that a program's main() lists."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    defined = set(re.findall(r"^(test_\w+)\(void \*\*\w+\)\s*\{", text, flags=re.M))
    listed = set(re.findall(r"^\s+[a-z]\w*\(\s*(test_\w+)\b[^;]*?\),?$", text, flags=re.M))
    return defined & listed


def check(top, lines):
    """Sentences about what is wrong; and how many rules there are."""
    wrong, seen, programs, rules = [], set(), {}, 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        rules += 1
        columns = line.split("\t")
        if len(columns) != 4 or not all(columns):
            wrong.append("line %d: not four columns" % number)
            continue
        if line in seen:
            wrong.append("line %d: stands twice" % number)
        seen.add(line)
        _, rule, program, test = columns
        path = os.path.join(top, program)
        if program not in programs:
            programs[program] = registered(path) if os.path.isfile(path) else None
        if programs[program] is None:
            wrong.append("line %d (%s): no file %s" % (number, rule, program))
        elif test not in programs[program]:
            wrong.append("line %d (%s): %s runs no %s" % (number, rule, program, test))
    return wrong, rules


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: rules_check.py TEST_FOLDER")
    top = sys.argv[1]
    with open(os.path.join(top, "rules.tsv"), encoding="utf-8") as file:
        lines = file.readlines()
    wrong, rules = check(top, lines)
    # That the check can fail: a test that is not there, a file that is not, a short line.
    bad, _ = check(top, ["7\ta\tunit/qp/read_test.c\ttest_of_nothing\n",
                         "7\tb\tunit/qp/nothing_test.c\ttest_sizes\n", "7\tc\n"])
    print("1..2")
    print("%s 1 - every rule of rules.tsv (%d) names a test that runs"
          % ("not ok" if wrong or not rules else "ok", rules))
    for line in wrong:
        print("# " + line)
    print("%s 2 - the check finds what is wrong" % ("ok" if len(bad) == 3 else "not ok"))
    return 1 if wrong or not rules or len(bad) != 3 else 0


if __name__ == "__main__":
    sys.exit(main())
