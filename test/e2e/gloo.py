#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gloo's ring all-reduce over its transport "ibverbs", as Debian packages it, through `rocaded --local`.
gloo_ring compares every sum, and the daemon's counters prove that Rocade carried the bytes."""

import os
import re
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import Daemon  # noqa: E402
from process import until  # noqa: E402
from rows import row  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import LONG  # noqa: E402

SOURCE = os.path.join(os.path.dirname(__file__), "gloo_ring.cc")


def built(folder):
    program = os.path.join(folder, "gloo_ring")
    made = process.run(["g++", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE, "-lgloo"])
    if not case("the program is built", made.returncode == 0, made.stderr):
        raise RuntimeError("no gloo_ring")
    return program


def ranks(daemon, program, count):
    """A ring sends each byte of a sum at least 2 (count - 1) times in all."""
    before, start = daemon.moved(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        started = [daemon.start(program, folder, str(rank), str(count)) for rank in range(count)]
        ends = [rank.finish() for rank in started]
    took, left = time.monotonic() - start, not until(daemon.idle)
    said = [re.search(r"^rank \d+ of %d: (\d+) bytes, 0 sums wrong$" % count, text, re.M)
            for _, text in ends]
    least = 2 * (count - 1) * int(said[0][1]) if said[0] else 1
    moved = daemon.moved() - before
    case("%d ranks: Rocade carries every byte, and all sums are right" % count, all(said) and
         not any(status for status, _ in ends) and moved >= least and not left,
         "%d of %d bytes, left %s\n%s" % (moved, least, left, ends))
    row("gloo, all-reduce by a ring of %d ranks" % count, "libgloo-dev", "RC, one host", took, moved,
        "every sum compared")


def gloo():
    with tempfile.TemporaryDirectory() as folder, Daemon() as daemon:
        program = built(folder)
        for count in [2, 3, 5] if LONG else [3]:
            ranks(daemon, program, count)


if __name__ == "__main__":
    sys.exit(run(gloo))
