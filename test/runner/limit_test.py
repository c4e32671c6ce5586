#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test/e2e/lib/limit.py, by which the tests in Python wait."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../e2e/lib"))
import limit  # noqa: E402
from tap import case, run  # noqa: E402


def since(passed_s, least_s, *works_s):
    """Returns a limit that began so long ago, on a machine that needs these times for its work in turn."""
    works = list(works_s)
    one = limit.Limit(least_s, lambda: works.pop(0))
    one.began -= passed_s
    return one, works


def limits():
    one, _ = since(10, 60)
    case("a limit is not reached before its least time, and nothing is measured", not one.reached())
    one, _ = since(70, 60, 1)
    case("it is reached when the machine does its work in time", one.reached())
    one, works = since(70, 60, 10)
    case("it is not reached on a busy machine", not one.reached() and not one.reached() and not works)
    one, works = since(70, 60, 10, 1)
    one.reached()
    one.began -= 200
    case("the machine is measured anew at the new limit", one.reached() and not works)
    case("what took long is within the limit of a busy machine only", limit.within(10, 20) and
         not limit.within(100 * limit.TIMES * limit.work_s(), 20))
    case("the fixed piece of work has a second of CPU", limit.work_s() >= 1)


def waits():
    looks = []

    def third():
        looks.append(len(looks))
        return looks[-1] == 2 and "value"
    case("a wait returns the first true value", limit.until(third, every_s=0) == "value" and
         len(looks) == 3, looks)
    case("a wait in vain returns the last value", limit.until(lambda: 0, 0.01, work=lambda: 0) == 0)


def idle():
    sleeper = subprocess.Popen(["sleep", "1000"])
    case("a process that sleeps rests", limit.rests(sleeper.pid) and limit.sleeps_between(sleeper.pid, 1))
    sleeper.kill()
    sleeper.wait()
    program = "import select\nwhile True:\n    select.select([], [], [], 0.001)"
    looks = subprocess.Popen([sys.executable, "-c", program])
    limit.until(lambda: limit.look(looks.pid).sleeps > 100)
    case("a process that looks more often than it may is found", not limit.sleeps_between(looks.pid, 5))
    looks.kill()
    looks.wait()
    spins = subprocess.Popen([sys.executable, "-c", "while True:\n    pass"])
    limit.until(lambda: limit.look(spins.pid).cpu_s > 0.1)
    case("a process that spins is found", not limit.sleeps_between(spins.pid, 5))
    spins.kill()
    spins.wait()


if __name__ == "__main__":
    sys.exit(run(limits, waits, idle))
