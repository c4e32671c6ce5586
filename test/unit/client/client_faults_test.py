#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The library of rocade-run --faults in a program: the groups of test/e2e/faults.py,
faults_requests.py, faults_wire.py, faults_cm.py and faults_link.py that need only this build, and what these do not have."""

import os
import sys

E2E = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../e2e")
sys.path[:0] = [E2E, os.path.join(E2E, "lib")]
import faults  # noqa: E402
import faults_cm  # noqa: E402
import faults_link  # noqa: E402
import faults_requests  # noqa: E402
import faults_wire  # noqa: E402
from daemon import Daemon  # noqa: E402
from tap import case, run  # noqa: E402


def again():
    """A second run with the same journal."""
    with Daemon() as daemon:
        script = faults.Script("call 1 of poll_cq: EIO")
        for _ in range(2):
            done = script.run(daemon, faults.PROGRAM, "verbs")
            case("a poll is refused with -EIO", done.returncode == 3 and done.stdout == "poll_cq: EIO\n", done)
        with open(script.journal, encoding="ascii") as file:
            lines = file.read().splitlines()
        case("a journal has one run", sum(line.startswith("in ") for line in lines) == 1 and
             sum("journal 1: " in line for line in lines) == 1, lines)


if __name__ == "__main__":
    sys.exit(run(faults.other_ways, faults.lists, faults.seeds, faults.replays, faults.names, faults.files,
                 faults.signals, faults_requests.completions, faults_requests.receives, faults_requests.events,
                 faults_requests.counts, faults_requests.replays, faults_requests.errors, faults_wire.packets, faults_wire.again, faults_wire.reads,
                 faults_wire.seeds, faults_wire.errors, faults_cm.events, faults_cm.synchronous, faults_cm.rejects, faults_cm.ends,
                 faults_cm.replays, faults_cm.errors, faults_link.requests, faults_link.times, faults_link.files, faults_link.replays,
                 faults_link.errors, again))
