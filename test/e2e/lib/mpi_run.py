# SPDX-License-Identifier: BSD-3-Clause
"""Starts the ranks of MPI programs, under Open MPI and under MPICH, as clients of the daemon of one
host or of two. Both use UCX, and let UCX use verbs only. Open MPI also uses libfabric in its place,
which connects by RDMA-CM."""

import os
from collections import namedtuple

import process
from daemon import LIBRARY, RUN
from hosts import SOCKETS

# RC, which UCX connects over UD; no TCP and no shared memory.
TLS = "UCX_TLS=rc_verbs,ud_verbs:aux,self"
# package: of Debian, whose version the tests print. over: what carries the messages. remote: options
# that start ranks on the hosts of SOCKETS through an agent, which stands in for rsh.
Mpi = namedtuple("Mpi", "name package compiler over run remote")

# Ranks may share a core, so an idle one yields.
OPEN_MPI_RUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca",
                "mpi_yield_when_idle", "1"]
OPEN_MPI = Mpi(
    "Open MPI", "openmpi-bin", "mpicc.openmpi", "RC over UCX",
    [*OPEN_MPI_RUN, "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib", "-x", TLS],
    lambda agent, hosts: ["--host", hosts, "--mca", "plm_rsh_agent", agent, "--mca",
                          "oob_tcp_if_include", "sock"])
# Its ranks name themselves to each other as RDMA-CM tells them their addresses.
OPEN_MPI_OFI = Mpi(
    "Open MPI", "openmpi-bin", "mpicc.openmpi", "RC over libfabric",
    [*OPEN_MPI_RUN, "--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include",
     "verbs;ofi_rxm"], None)
MPICH = Mpi(
    "MPICH", "mpich", "mpicc.mpich", "RC over UCX", ["mpiexec.mpich", "-genv", *TLS.split("=", 1)],
    lambda agent, hosts: ["-hosts", hosts, "-launcher", "rsh", "-launcher-exec", agent, "-iface",
                          "sock"])
BOTH = (OPEN_MPI, MPICH)


def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def two_hosts(mpi, folder, hosts, ranks_each):
    """Returns the options that start ranks_each ranks on each host, and the program that stands
    before the ranks' own: both libraries give all ranks the environment of the first host."""
    sides = list(zip(SOCKETS, hosts))
    agent = script(folder, "agent", 'to=$1; shift\ncase $to in\n%s\nesac\n' % "\n".join(
        '%s) exec ip netns exec %s sh -c "$*" ;;' % (address, host.space)
        for address, host in sides))
    local = script(folder, "local", 'case $(ip netns identify) in\n%s\nesac\nexport ROCADE_SOCKET\n'
                   'exec "$@"\n' % "\n".join(
                       "%s) ROCADE_SOCKET=%s ;;" % (host.space, host.socket) for _, host in sides))
    return mpi.remote(agent, ",".join("%s:%d" % (a, ranks_each) for a in SOCKETS)), [local]


def start_ranks(mpi, daemon, count, program, options=(), before=(), timeout_s=150, folder=None):
    """Runs `count` ranks of a program to their end. daemon: of the host where they are started."""
    return process.run([*daemon.inside, *mpi.run, *options, "-np", count, *before, RUN, "--library",
                        LIBRARY, *program], timeout_s, env=daemon.env, cwd=folder)
