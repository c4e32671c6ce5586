#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI over UCX, both as Debian packages them, through `rocaded --local` and between two hosts.
mpi_check verifies every byte, and the daemons' counters prove that all went through Rocade."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import LIBRARY, RUN, Daemon  # noqa: E402
from hosts import AF_PACKET, SOCKETS, Host, veth  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import is_root  # noqa: E402

SOURCE = os.path.join(os.path.dirname(__file__), "mpi_check.c")
# Open MPI uses UCX only, and UCX verbs only: RC, which it connects over UD. Four ranks may share
# two cores, so an idle rank yields.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc",
          "ucx", "--mca", "btl", "^openib", "--mca", "mpi_yield_when_idle", "1",
          "-x", "UCX_TLS=rc_verbs,ud_verbs:aux,self"]


def built(folder):
    program = os.path.join(folder, "mpi_check")
    made = process.run(["mpicc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE])
    if not case("the program is built", made.returncode == 0, made.stderr):
        raise RuntimeError("no mpi_check")
    return program


def ranks(name, daemon, moved, program, count, *options):
    """Runs the program with `count` ranks. moved(): the bytes that Rocade has carried so far."""
    before = moved()
    done = process.run(daemon.inside + MPIRUN + list(options) + [
        "-np", count, RUN, "--library", LIBRARY, program], 150, env=daemon.env)
    said = re.search(r"(\d+) ranks, (\d+) bytes each", done.stdout)
    least = count * int(said[2]) if said else 1
    bytes_moved = moved() - before
    case("%s, %u ranks: Rocade carries every byte, and all are correct" % (name, count),
         done.returncode == 0 and said and int(said[1]) == count and bytes_moved >= least,
         "exit %d, %d of %d bytes\n%s%s" % (done.returncode, bytes_moved, least, done.stdout,
                                            done.stderr))


def one_host(program):
    with Daemon() as daemon:
        ranks("one host", daemon, daemon.moved, program, 2)
        ranks("one host", daemon, daemon.moved, program, 4)


def two_hosts(program, folder):
    """mpirun starts the remote rank by an agent, which stands in for ssh."""
    if not is_root():
        skip("two hosts", "needs root")
        return
    agent = os.path.join(folder, "agent")
    spaces = veth()
    with Host(spaces, 0, AF_PACKET, "--mtu", "4184") as left, \
            Host(spaces, 1, AF_PACKET, "--mtu", "4184") as right:
        with open(agent, "w", encoding="ascii") as file:
            file.write('#!/bin/sh\nshift\nROCADE_SOCKET=%s exec ip netns exec %s sh -c "$*"\n' %
                       (right.socket, spaces[1]))
        os.chmod(agent, 0o755)
        ranks("two hosts", left, left.wire, program, 2, "--host", ",".join(SOCKETS), "--mca",
              "plm_rsh_agent", agent, "--mca", "oob_tcp_if_include", "sock")


def open_mpi():
    with tempfile.TemporaryDirectory() as folder:
        program = built(folder)
        one_host(program)
        two_hosts(program, folder)


if __name__ == "__main__":
    sys.exit(run(open_mpi))
