#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long a program under rocade-run takes to start, look at its device and end, by the time of the same program
without Rocade."""
# test.sh: alone its programs have a real-time priority, and it compares their times

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import BUILD, Daemon  # noqa: E402
from tap import case, run  # noqa: E402

MOST = 200 if "sanitize" in BUILD else 20


def start_up():
    """The program without Rocade has no device, so it starts, looks and ends: that is the measure. Both
    run in turn. As root they and the daemon have a real-time priority: other load takes none of their
    time."""
    first = ("chrt", "--rr", "1") if os.geteuid() == 0 else ()
    with Daemon(through=first) as daemon:
        daemon.inside = list(first)

        def both():
            """Returns the shortest time of each."""
            ours, plain = [], []
            for _ in range(20):
                for times, run_ in ((ours, daemon.run),
                                    (plain, lambda program: process.run([*first, program]))):
                    start = time.monotonic()
                    run_("ibv_devinfo")
                    times.append(time.monotonic() - start)
            print("# ibv_devinfo: %.1f ms with rocade-run, %.1f ms without" % (
                1e3 * min(ours), 1e3 * min(plain)))
            return min(ours), min(plain)
        ours, plain = both()
        if ours >= MOST * plain:
            ours, plain = both()
        case("rocade-run ibv_devinfo takes less than %d times as long as without" % MOST,
             ours < MOST * plain, "%s, %s" % (ours, plain))


if __name__ == "__main__":
    sys.exit(run(start_up))
