#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI over UCX, both as Debian packages them, through `rocaded --local`: mpi_check looks
at every byte, and the daemon's counters say that none went another way."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import LIBRARY, RUN, Daemon  # noqa: E402
from tap import case, run  # noqa: E402

SOURCE = os.path.join(os.path.dirname(__file__), "mpi_check.c")
# Messages through UCX, and UCX through nothing but verbs: RC, for which UD makes the
# connections. Two cores are fewer than four ranks want, so they give way to each other.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc",
          "ucx", "--mca", "btl", "^openib", "--mca", "mpi_yield_when_idle", "1",
          "-x", "UCX_TLS=rc_verbs,ud_verbs:aux,self"]


def ranks(daemon, program, count):
    before = daemon.moved()
    done = subprocess.run(MPIRUN + ["-np", str(count), RUN, "--library", LIBRARY, program],
                          env=daemon.env, capture_output=True, text=True, check=False, timeout=150)
    said = re.search(r"(\d+) ranks, (\d+) bytes each", done.stdout)
    least = count * int(said[2]) if said else 1
    moved = daemon.moved() - before
    case("%u ranks: every byte is right, and Rocade's" % count,
         done.returncode == 0 and said and int(said[1]) == count and moved >= least,
         "exit %d, %d of %d bytes\n%s%s" % (done.returncode, moved, least, done.stdout,
                                            done.stderr))


def open_mpi():
    with tempfile.TemporaryDirectory() as folder, Daemon() as daemon:
        program = os.path.join(folder, "mpi_check")
        made = subprocess.run(["mpicc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE],
                              capture_output=True, text=True, check=False)
        if case("the program is built", made.returncode == 0, made.stderr):
            ranks(daemon, program, 2)
            ranks(daemon, program, 4)


if __name__ == "__main__":
    sys.exit(run(open_mpi))
