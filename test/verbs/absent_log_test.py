#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""absent_log_test.py PROGRAM: runs the program, which makes calls that Rocade does not have. With
ROCADE_LOG=info it prints a line with the name of each call, without it none."""

import os
import re
import subprocess
import sys

CALLS = {"ibv_create_flow", "ibv_create_flow_action_esp", "ibv_create_counters", "ibv_create_wq",
         "ibv_create_rwq_ind_table", "ibv_alloc_null_mr",
         "ibv_advise_mr", "ibv_modify_qp_rate_limit", "ibv_post_srq_ops", "ibv_create_qp",
         "ibv_create_qp_ex"}


def logged(level):
    """Returns the exit status and the calls that the log names."""
    env = {name: value for name, value in os.environ.items() if name != "ROCADE_LOG"}
    done = subprocess.run([sys.argv[1]], env={**env, **level}, capture_output=True, text=True,
                          check=False)
    return done.returncode, set(re.findall(
        r"rocade: (ibv_\w+): this device does not have what it asks for \(EOPNOTSUPP\)$",
        done.stderr, re.M))


def main():
    status, calls = logged({"ROCADE_LOG": "info"})
    print("1..2")
    good = status == 0 and calls == CALLS
    print("%s 1 - a line names each absent call" % ("ok" if good else "not ok"))
    if not good:
        print("# status %d, missing %s, more %s" % (status, CALLS - calls, calls - CALLS))
    quiet = logged({}) == (0, set())
    print("%s 2 - no line without ROCADE_LOG" % ("ok" if quiet else "not ok"))
    return 0 if good and quiet else 1


if __name__ == "__main__":
    sys.exit(main())
