#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""app/perf/line.c: numbers that can be so, over two of the cores that there are: line_test.py
PROGRAM."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
import cases  # noqa: E402

PROGRAM = sys.argv[1]
USABLE = sorted(os.sched_getaffinity(0))
MISSING = max(USABLE) + 500


def line(*options):
    """(exit status, the numbers that it prints)"""
    done = subprocess.run([PROGRAM, *map(str, options)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=60, check=False)
    try:
        return done.returncode, [float(word) for word in done.stdout.split()]
    except ValueError:
        return done.returncode, None


def plausible(ns):
    """From one hardware thread to the next, or between busy cores that are put off for a
    while."""
    return 0.5 < ns < 1e6


def one_number(*cores):
    status, numbers = line(*cores)
    return status, len(numbers), all(map(plausible, numbers))


def watched(count):
    """Of a watch that is cut short: whether time goes on and each number can be so."""
    with subprocess.Popen([PROGRAM, "--every-ms", "20", *map(str, USABLE[:2])],
                          stdout=subprocess.PIPE) as process:
        lines = [tuple(map(float, process.stdout.readline().split())) for _ in range(count)]
        process.kill()
    times = [at for at, _ in lines]
    return (times == sorted(times) and 0.02 * (count - 2) < times[-1] - times[0],
            all(plausible(ns) for _, ns in lines))


def may_come_first():
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        os.sched_setscheduler(0, *before)
        return True
    except OSError:
        return False


CASES = [
    ("a core that is not there", line(USABLE[0], MISSING), (3, [])),
    ("one core twice", line(USABLE[0], USABLE[0]), (2, [])),
    ("one core", line(USABLE[0]), (2, [])),
    ("no core", line("x", "y"), (2, [])),
    ("no time", line("--every-ms", "0"), (2, [])),
]
if len(USABLE) > 1:
    CASES += [("between two cores", one_number(*USABLE[:2]), (0, 1, True)),
              ("and back", one_number(*USABLE[1::-1]), (0, 1, True))]
    if may_come_first():
        CASES += [("again and again", watched(10), (True, True))]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
