#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks test/captures/replayed.tsv against the captures and the tests. Each capture has a line, and
each line a capture. A column is "replayed" if, and only if, the test has a row for the capture;
otherwise it has a reason."""

import os
import re
import sys

sys.dont_write_bytecode = True
from selftest import read  # noqa: E402

TESTS = ("unit/qp/capture_test.c", "unit/qp/capture_requester_test.c")
PROGRAMS = "unit/qp/capture_programs.def"  # what both include


def check(captures, lines, sources):
    """Returns a message for each error."""
    wrong, seen = [], set()
    rows = [set(re.findall(r'(?:\.name = |PROGRAM\()"([^"]+)"', source)) for source in sources]
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        columns = line.rstrip("\n").split("\t")
        name = columns[0]
        if len(columns) != 3:
            wrong.append("%s: not three columns" % name)
            continue
        if name in seen:
            wrong.append("%s has two lines" % name)
        seen.add(name)
        if name not in captures:
            wrong.append("no capture %s" % name)
        for test, row, column in zip(TESTS, rows, columns[1:]):
            if column == "replayed" and name not in row:
                wrong.append("%s: %s does not replay it" % (name, test))
            elif column != "replayed" and name in row:
                wrong.append("%s: %s replays it" % (name, test))
            elif column != "replayed" and not re.match(r"no: \S+ \S+", column):
                wrong.append("%s: no reason why %s does not replay it" % (name, test))
    wrong += ["capture %s has no line" % name for name in sorted(captures - seen)]
    wrong += ["%s replays %s, which is not a capture" % (test, name)
              for test, row in zip(TESTS, rows) for name in sorted(row - captures)]
    return wrong


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: captures_check.py TEST_FOLDER")
    top = sys.argv[1]
    captures = {name.removesuffix(".pcap") for name in os.listdir(os.path.join(top, "captures"))
                if name.endswith(".pcap")}
    wrong = check(captures, read(top, "captures/replayed.tsv").splitlines(),
                  [read(top, test) + read(top, PROGRAMS) for test in TESTS])
    # Proof that the check finds each kind of error.
    lines = ["a\treplayed\tno: why ever", "b\tno: why ever\tno:", "b\tno: why ever\tno: why ever",
             "e\treplayed", "d\treplayed\treplayed"]
    bad = check({"a", "b", "c"}, lines,
                ['{.name = "d"}, {.name = "b"}', 'PROGRAM("d", 1)'])
    print("1..2")
    print("%s 1 - each of %d captures is replayed or has a reason why not"
          % ("not ok" if wrong or not captures else "ok", len(captures)))
    for line in wrong:
        print("# " + line)
    found = len(bad) == 10
    print("%s 2 - the check finds errors" % ("ok" if found else "not ok"))
    if not found:
        print("# %r" % bad)
    return 1 if wrong or not captures or not found else 0


if __name__ == "__main__":
    sys.exit(main())
