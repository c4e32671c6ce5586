#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ports_check.py TOP [--write]: checks that docs/ports.md has what test/ports.def says, that each
row names tests that exist and that compare the row with the port, that the tests against rdma_rxe
name its driver, and that every kind of port that a test opens has a row. --write writes the page
first."""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "e2e", "lib"))
import ports  # noqa: E402
from selftest import Tap, read  # noqa: E402

PAGE = "docs/ports.md"
FOLDERS = ("test/e2e", "test/interop")
OPENED = re.compile(r"\b((?:net|eth)_[a-z_]*[a-z])\d*,")
# net_null carries nothing. Members of a bond are not opened by Rocade.
NO_ROW = {"net_null"}


def split(page):
    """Returns the page in front of the made part, that part, and what is behind."""
    before, begin, rest = page.partition(ports.BEGIN + "\n")
    made, end, after = rest.partition(ports.END)
    return (before + begin, made, end + after) if begin and end else None


def page_wrong(page, rows):
    parts = split(page)
    if parts is None:
        return ["%s: no lines %s and %s" % (PAGE, ports.BEGIN, ports.END)]
    if parts[1] != ports.text(rows):
        return ["%s differs from test/ports.def: run test/tidy/ports_check.py . --write" % PAGE]
    return []


def tests_wrong(sources, rows):
    """sources: {path: text} of the test programs."""
    wrong = []
    for row in rows:
        for test in ports.tests_of(row):
            if test not in sources:
                wrong.append("%s: no test %s" % (row.port, test))
            elif 'Row("%s")' % row.port not in sources[test]:
                wrong.append('%s: %s does not compare: it has no Row("%s")' % (
                    row.port, test, row.port))
        wrong += ["%s: %s does not run %s against rdma_rxe" % (row.port, test, row.driver)
                  for test in ports.rxe_tests_of(row)
                  if not re.search(r"\b%s(?![a-z_])" % row.driver, sources.get(test, ""))]
    known = set(re.findall(r"(?:net|eth)_[a-z_]*[a-z]", " ".join(
        row.driver + " " + row.device for row in rows)))
    for path, text in sources.items():
        wrong += ["%s opens %s, which has no row in test/ports.def" % (path, name)
                  for name in sorted(set(OPENED.findall(text)) - known - NO_ROW)]
    return wrong


def sources_of(top):
    found = {}
    for folder in FOLDERS:
        for where in (folder, folder + "/lib"):
            for name in sorted(os.listdir(os.path.join(top, where))
                               if os.path.isdir(os.path.join(top, where)) else ()):
                if name.endswith(".py"):
                    found[where + "/" + name] = read(top, where + "/" + name)
    return found


def selftest(tap):
    row = ports.Port("net_x", "net_x", "--vdev net_x0,a=b", "none", "1", "1500", "no",
                     "test/e2e/x.py", "test/interop/x.py", "all.", "none.")
    good = "head\n%s\n%s%s\n" % (ports.BEGIN, ports.text([row]), ports.END)
    test = {"test/e2e/x.py": 'ports.Row("net_x")\n"net_x0,a=b"', "test/interop/x.py": '"net_x"'}
    tap.case(page_wrong(good, [row]) == [] and tests_wrong(test, [row]) == [],
             "what is right passes")
    tap.case(len(page_wrong(good.replace("1500", "1501"), [row])) == 1,
             "a page that differs is found")
    tap.case(len(page_wrong("head\n", [row])) == 1, "a page without a table is found")
    tap.case(len(tests_wrong({}, [row])) == 2, "tests that do not exist are found")
    tap.case(len(tests_wrong({**test, "test/e2e/x.py": '"net_x0,a=b"'}, [row])) == 1,
             "a test that does not compare is found")
    tap.case(len(tests_wrong({**test, "test/interop/x.py": '"net_x_user"'}, [row])) == 1,
             "a test against rdma_rxe that does not name the driver is found")
    tap.case(ports.text([row._replace(rxe="no kernel")]).count("no kernel |") == 1 and
             len(tests_wrong({**test, "test/interop/x.py": ""},
                             [row._replace(rxe="no kernel")])) == 0,
             "a port without a kernel at the other end needs no such test")
    tap.case(len(tests_wrong({**test, "test/e2e/y.py": '"net_y0,a=b"'}, [row])) == 1,
             "a kind of port without a row is found")
    text = "".join("%s: %s\n" % pair for pair in zip(ports.FIELDS, row))
    refused = []
    for bad in (text.replace("limits: none.\n", ""), text.replace("mtu: 1500", "mtu:"),
                text + "\n" + text):
        try:
            ports.read(bad)
        except ports.Malformed as why:
            refused.append(why)
    tap.case(ports.read("# comment\n" + text) == [row] and len(refused) == 3,
             "wrong definitions are refused", refused)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--write"]):
        sys.exit("usage: ports_check.py TOP [--write]")
    top = sys.argv[1]
    rows = ports.read(read(top, "test/ports.def"))
    page = read(top, PAGE)
    if sys.argv[2:]:
        before, _, after = split(page)
        page = before + ports.text(rows) + after
        with open(os.path.join(top, PAGE), "w", encoding="utf-8") as file:
            file.write(page)
    tap = Tap()
    wrong = page_wrong(page, rows)
    tap.case(not wrong, "docs/ports.md has the rows of test/ports.def", wrong)
    wrong = tests_wrong(sources_of(top), rows)
    tap.case(not wrong, "each kind of port has tests that compare its row", "; ".join(wrong))
    selftest(tap)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
