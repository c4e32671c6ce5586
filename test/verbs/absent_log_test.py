#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""absent_log_test.py PROGRAM: runs the program, which makes calls that Rocade does not have. With
ROCADE_LOG=info it prints a line with the name of each call, without it none. With ROCADE_EXPLAIN=1 it
prints each once, at its end."""

import os
import re
import subprocess
import sys

CALLS = {"ibv_create_flow", "ibv_create_flow_action_esp", "ibv_create_counters", "ibv_create_wq",
         "ibv_create_rwq_ind_table", "ibv_alloc_null_mr",
         "ibv_advise_mr", "ibv_modify_qp_rate_limit", "ibv_post_srq_ops", "ibv_create_qp",
         "ibv_create_qp_ex"}


LOG = r"rocade: (ibv_\w+): this device does not have what it asks for \(EOPNOTSUPP\)$"
EXPLAIN = r"rocade: \S+ looked in vain for the call \(EOPNOTSUPP\) (ibv_\w+)$"


def logged(level, pattern=LOG):
    """Returns the exit status and the calls that are named."""
    env = {name: value for name, value in os.environ.items()
           if name not in ("ROCADE_LOG", "ROCADE_EXPLAIN")}
    done = subprocess.run([sys.argv[1]], env={**env, **level}, capture_output=True, text=True,
                          check=False)
    return done.returncode, re.findall(pattern, done.stderr, re.M)


def main():
    status, calls = logged({"ROCADE_LOG": "info"})
    explained = logged({"ROCADE_EXPLAIN": "1"}, EXPLAIN)
    rows = [
        ("a line names each absent call", status == 0 and set(calls) == CALLS),
        ("no line without ROCADE_LOG", logged({}) == (0, []) and logged({}, EXPLAIN) == (0, [])),
        ("ROCADE_EXPLAIN names each once", explained[0] == 0 and sorted(explained[1]) == sorted(CALLS))]
    print("1..%d" % len(rows))
    for number, (name, good) in enumerate(rows, 1):
        print("%s %d - %s" % ("ok" if good else "not ok", number, name))
    if not all(good for _, good in rows):
        print("# status %d, missing %s, more %s" % (status, CALLS - set(calls), set(calls) - CALLS))
        print("# explained %s" % (explained,))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
