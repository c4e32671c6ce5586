#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI and MPICH over UCX, and Open MPI over libfabric, all as Debian packages them, through
`rocaded --local` and between two hosts. mpi_check verifies every byte, and the daemons' counters prove that all went through
Rocade."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import mpi_run  # noqa: E402
import process  # noqa: E402
from daemon import Daemon  # noqa: E402
from hosts import joined  # noqa: E402
from mpi_run import start_ranks  # noqa: E402
from ran import Ran  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import is_root  # noqa: E402

SOURCE = os.path.join(os.path.dirname(__file__), "mpi_check.c")


def built(mpi, folder):
    program = os.path.join(folder, "mpi_check." + mpi.package)
    made = process.run([mpi.compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE])
    if not case("%s builds the program" % mpi.name, made.returncode == 0, made.stderr):
        raise RuntimeError("no mpi_check")
    return program


def ranks(mpi, hosts, program, count, options=(), before=()):
    """Runs the program with `count` ranks. On two hosts there are two, so all they send goes
    across."""
    with Ran(hosts) as ran:
        done = start_ranks(mpi, hosts[0], count, [program], options, before)
    said = re.search(r"(\d+) ranks, (\d+) bytes each", done.stdout)
    least = count * int(said[2]) if said else 1
    name = "%d ranks of %s, %s" % (count, mpi.name, mpi.over)
    if ran.case(name + ": Rocade carries every byte, and all are correct",
                done.returncode == 0 and said and int(said[1]) == count, least,
                "exit %d\n%s%s" % (done.returncode, done.stdout, done.stderr)):
        ran.row("mpi_check, %d ranks of %s" % (count, mpi.name), mpi.package, mpi.over,
                "every byte compared")


def one_host(programs):
    with Daemon() as daemon:
        for mpi, program in programs:
            ranks(mpi, [daemon], program, 2)
            ranks(mpi, [daemon], program, 4)
        for count in 2, 4:
            ranks(mpi_run.OPEN_MPI_OFI, [daemon], programs[0][1], count)


def two_hosts(programs, folder):
    if not is_root():
        skip("two hosts", "needs root")
        return
    with joined() as hosts:
        for mpi, program in programs:
            ranks(mpi, hosts, program, 2, *mpi_run.two_hosts(mpi, folder, hosts, 1))


def main():
    with tempfile.TemporaryDirectory() as folder:
        programs = [(mpi, built(mpi, folder)) for mpi in mpi_run.BOTH]
        one_host(programs)
        two_hosts(programs, folder)


if __name__ == "__main__":
    sys.exit(run(main))
