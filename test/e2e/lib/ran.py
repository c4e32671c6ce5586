#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a larger program did over Rocade, a row of a table of docs/programs.md: program, version,
transport, hosts, time, bytes, result. A test prints its rows as comments of TAP.

  ran.py FILE...   prints the table from the output of tests (build-test/log/e2e-*.tap)"""

import os
import sys
import time

import process
from tap import case

HEAD = "| program | version | transport | hosts | s | MB | result |\n|---|---|---|---|---|---|---|"
MARK = "# row "
PAGE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../docs/programs.md")


def version(package):
    """Returns a Debian package with its version."""
    done = process.run(["dpkg-query", "-W", "-f", "${Version}", package])
    return "%s %s" % (package, done.stdout if done.returncode == 0 else "of unknown version")


class Ran:
    """Counts what the daemons move while a program runs: with one daemon what it forwards between
    its clients, with two what each port receives and sends.

        with Ran("program", "package", "RC", [daemon]) as ran:
            ...
        ran.case("the program does this", good, least_bytes, why)"""

    def __init__(self, program, package, transport, daemons):
        self.fixed = (program, version(package), transport,
                      {1: "one", 2: "two"}[len(daemons)])
        self.daemons = daemons
        self.moved, self.took_s = [], 0

    def _bytes(self):
        if len(self.daemons) == 1:
            return [self.daemons[0].moved()]
        return [daemon.wire() for daemon in self.daemons]

    def __enter__(self):
        self._before, self._start = self._bytes(), time.monotonic()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.took_s = time.monotonic() - self._start
            self.moved = [now - was for now, was in zip(self._bytes(), self._before)]

    def case(self, name, good, least, why=""):
        """A case that passes if the result is good and each daemon has moved at least `least` bytes.
        Prints the row."""
        passed = case(name, good and min(self.moved) >= least, "%s of %d bytes moved\n%s" % (
            self.moved, least, why))
        print("%s| %s | %.1f | %.1f | %s |" % (
            MARK, " | ".join(self.fixed), self.took_s, min(self.moved) / 1e6,
            "passed" if passed else "failed"), flush=True)
        return passed

    def page(self):
        """Whether the page has the row, with any version, time and bytes."""
        program, built, *rest = self.fixed
        with open(PAGE, encoding="utf-8") as file:
            rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in file]
        return case("docs/programs.md has the row of %s, %s" % (
            program, ", ".join((built, *rest))), any(
            len(row) == 7 and row[0] == program and row[2:4] == rest and row[6] == "passed" and
            row[1].split()[:1] == built.split()[:1]
            for row in rows), "generate the table with test/e2e/lib/ran.py")


def table(paths):
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rows += [line[len(MARK):].strip() for line in file if line.startswith(MARK)]
    return "\n".join([HEAD, *rows])


if __name__ == "__main__":
    print(table(sys.argv[1:]))
