# SPDX-License-Identifier: BSD-3-Clause
"""Counts what the daemons move while a larger program runs, and prints its row of docs/programs.md."""

import time

from rows import row
from tap import case


class Ran:
    """With one daemon, counts what its clients receive from each other; with two, what each port receives
    and sends.

        with Ran([daemon]) as ran:
            ...
        if ran.case("the program does this", good, least_bytes, why):
            ran.row(...)"""

    def __init__(self, daemons):
        self.daemons = daemons
        self.where = {1: "one host", 2: "two hosts"}[len(daemons)]
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
        """A case that passes if the result is good and each daemon has moved at least `least` bytes."""
        return case("%s, %s" % (self.where, name), good and min(self.moved) >= least,
                    "%s of %d bytes moved\n%s" % (self.moved, least, why))

    def row(self, program, package, transport, result, **more):
        row(program, package, "%s, %s" % (transport, self.where), self.took_s, min(self.moved),
            result, **more)
