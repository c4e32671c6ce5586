#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-faults explore and shrink: test/e2e/faults_explore.py needs only this build."""

import os
import sys

E2E = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../e2e")
sys.path[:0] = [E2E, os.path.join(E2E, "lib")]
import faults_explore  # noqa: E402
from tap import run  # noqa: E402

if __name__ == "__main__":
    sys.exit(run(faults_explore.explore, faults_explore.seeds_again, faults_explore.mild, faults_explore.shrink, faults_explore.ends,
                 faults_explore.journals, faults_explore.errors))
