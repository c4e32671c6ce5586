#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a program under rocade-run costs that starts, looks at its device and ends: CPU time, by that of the same
program without Rocade, and how many times its threads sleep."""

import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import SANITIZED, Daemon  # noqa: E402
from tap import case, run  # noqa: E402

TIMES = 20
CPU_TIMES = 200 if SANITIZED else 20
SLEEPS = 20  # it waits for the replies to a few requests


def cost(run_program):
    """CPU seconds and sleeps of a program that runs to its end, and of what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run_program("ibv_devinfo")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            after.ru_nvcsw - before.ru_nvcsw, done)


def start_up():
    """The program without Rocade has no device, so it starts, looks and ends: that is the measure. Both run in
    turn. Other load takes none of their CPU time, and the least of TIMES runs counts."""
    with Daemon() as daemon:
        ours, plain = [], []
        for _ in range(TIMES):
            ours.append(cost(daemon.run))
            plain.append(cost(lambda program: process.run([program])))
        case("each run finds the device", all("rocade" in done.stdout for _, _, done in ours), ours[0][2])
        cpu_s, plain_s = (min(row[0] for row in rows) for rows in (ours, plain))
        sleeps = min(row[1] for row in ours)
        print("# ibv_devinfo: %.1f ms of CPU time and %d sleeps with rocade-run, %.1f ms without" % (
            1e3 * cpu_s, sleeps, 1e3 * plain_s))
        case("rocade-run ibv_devinfo takes less than %d times the CPU time of ibv_devinfo" % CPU_TIMES,
             cpu_s < CPU_TIMES * plain_s, "%s, %s" % (cpu_s, plain_s))
        case("and sleeps at most %d times" % SLEEPS, sleeps <= SLEEPS, sleeps)


if __name__ == "__main__":
    sys.exit(run(start_up))
