#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs posts.c's program under strace and expects no system call between its marks."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

PARTS = ["a million ibv_post_srq_recv()", "a million ibv_post_send()",
         "a million ibv_post_recv()", "a million armings of an SRQ", "a million passes of the engines and ibv_poll_cq()"]


def skip(why):
    print("1..0 # SKIP " + why)
    sys.exit(0)


def trace(program):
    env = dict(os.environ)
    # The leak check of a sanitized build does not work under a tracer.
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    with tempfile.NamedTemporaryFile("r") as log:
        run = subprocess.run(["strace", "-f", "-o", log.name, program], env=env, check=False)
        return run.returncode, log.read().splitlines()


def main():
    if shutil.which("strace") is None:
        skip("strace is not installed")
    if subprocess.run(["strace", "-o", os.devnull, "true"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        skip("tracing is not permitted")
    status, lines = trace(sys.argv[1])
    between, part = {n: [] for n in range(len(PARTS))}, None
    marks = 0
    for line in lines:
        match = re.search(r"close\(-100([0-5])\)", line)
        if match:
            part = int(match.group(1))
            marks += 1
        elif part is not None and part in between:
            between[part].append(line)
    print("1..%d" % (len(PARTS) + 1))
    ok = status == 0 and marks == len(PARTS) + 1
    print("%s 1 - the program ran (status %d, %d marks)" % ("ok" if ok else "not ok", status,
                                                          marks))
    for n, name in enumerate(PARTS):
        good = ok and not between[n]
        print("%s %d - no system call in %s" % ("ok" if good else "not ok", n + 2, name))
        for line in between[n][:5]:
            print("# " + line)


if __name__ == "__main__":
    main()
