#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The library of rocade-run --faults in a program: the groups of test/e2e/faults.py that need only this build."""

import os
import sys

E2E = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../e2e")
sys.path[:0] = [E2E, os.path.join(E2E, "lib")]
import faults  # noqa: E402
from tap import run  # noqa: E402

if __name__ == "__main__":
    sys.exit(run(faults.other_ways, faults.lists, faults.seeds, faults.replays, faults.names, faults.files))
