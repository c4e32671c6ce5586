#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-pairs PAIRS: control calls beside the traffic of a pair, in all the time or in every second interval. The
rates that it compares are numbers, no verdict."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../e2e/lib"))
from process import run as run_program  # noqa: E402
from tap import case, run, skip  # noqa: E402

PAIRS = sys.argv[1]
CORES = sorted(os.sched_getaffinity(0))
EAL = ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry", "--lcores",
       "0@%d,1@%d" % (CORES[0], CORES[-1]), "--"]


def measured(*options):
    """Returns what a run has written, or the reason why it has not."""
    got = run_program([PAIRS, *EAL, "--loop", "--control-rate", "1000", "--json", "-", *options])
    return json.loads(got.stdout) if got.returncode == 0 else {"failed": got.stderr}


def control():
    for what in ("deregister", "connect"):
        got = measured("--control", what, "--seconds", "1")
        case("%s beside the traffic" % what, got.get("control_rounds", 0) > 0 and got["messages_per_s"] > 0 and
             "control_intervals" not in got, got)
    got = measured("--control", "deregister", "--control-ms", "100")
    name, compared = "every second interval is compared", got.get("control_intervals", -1)
    if compared == 0:
        skip(name, "in no three intervals in a row did the thread of the pair run: other programs had its core")
        return
    # Of the 10 intervals with control calls the last one has none behind it.
    low, high = got.get("control_ratio_quartiles", (0, 0))
    case(name, got.get("control_rounds", 0) > 0 and 0 < compared <= 9 and
         0 < low <= got.get("control_ratio", 0) <= high, got)


if __name__ == "__main__":
    sys.exit(run(control))
