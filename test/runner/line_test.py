#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""line_test.py PROGRAM: app/perf/cache_line.c prints plausible numbers for two cores of this machine."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
import cases  # noqa: E402

PROGRAM = sys.argv[1]
USABLE = sorted(os.sched_getaffinity(0))
MISSING = max(USABLE) + 500


def line(*options):
    """Returns (exit status, printed numbers)."""
    done = subprocess.run([PROGRAM, *map(str, options)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    try:
        return done.returncode, [float(word) for word in done.stdout.split()]
    except ValueError:
        return done.returncode, None


def plausible(ns):
    """Whether the time is possible: the least between two hardware threads of a core, the most
    between busy cores that are preempted."""
    return 0.5 < ns < 1e6


def one_number(*cores):
    status, numbers = line(*cores)
    return status, len(numbers), all(map(plausible, numbers))


def repeated(count):
    """Stops a repeated measurement. Returns whether its time stamps increase, and whether each
    number is plausible."""
    with subprocess.Popen([PROGRAM, "--every-ms", "20", *map(str, USABLE[:2])],
                          stdout=subprocess.PIPE) as process:
        lines = [tuple(map(float, process.stdout.readline().split())) for _ in range(count)]
        process.kill()
    times = [at for at, _ in lines]
    return (times == sorted(times) and 0.02 * (count - 2) < times[-1] - times[0],
            all(plausible(ns) for _, ns in lines))


def may_use_real_time():
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        os.sched_setscheduler(0, *before)
        return True
    except OSError:
        return False


def state():
    """A time of a cache line, and two factors."""
    status, numbers = line("--state", *USABLE[:2])
    ns, beside, cycles = numbers
    return status, plausible(ns), beside > 0, cycles > 0


CASES = [
    ("--state for one core: status 2", line("--state", USABLE[0]), (2, [])),
    ("a missing core: status 3", line(USABLE[0], MISSING), (3, [])),
    ("the same core twice: status 2", line(USABLE[0], USABLE[0]), (2, [])),
    ("one core: status 2", line(USABLE[0]), (2, [])),
    ("words for cores: status 2", line("x", "y"), (2, [])),
    ("an interval of 0: status 2", line("--every-ms", "0"), (2, [])),
]
if len(USABLE) > 1:
    CASES += [("from one core to another: a plausible number", one_number(*USABLE[:2]),
               (0, 1, True)),
              ("in the other direction: a plausible number", one_number(*USABLE[1::-1]),
               (0, 1, True)),
              ("--state: three plausible numbers", state(), (0, True, True, True))]
    if may_use_real_time():
        CASES += [("at an interval: plausible numbers", repeated(10), (True, True))]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
