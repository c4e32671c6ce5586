# SPDX-License-Identifier: BSD-3-Clause
"""Unchanged programs between the guest, over rdma_rxe, and this host, over rocaded (rocade-run).
Each end is the server once."""

from bench import ADDRESSES, BRIDGE, GUEST, ROCADE, ROCADE6
from daemon import Daemon, rping_status, wait_for_port
from guest import LISTENS
from tap import case

PORT = 18515
# Program, options, and the bytes of messages that must arrive at rocaded in either role, 0 if
# messages go one way only.
PROGRAMS = [
    ("ibv_rc_pingpong", "-c -n 100", 400000),
    ("ibv_uc_pingpong", "-c -n 20", 80000),
    ("ibv_ud_pingpong", "-c -n 20 -s 1000", 20000),
    ("ibv_srq_pingpong", "-c -n 100 -q 4", 400000),
    ("ib_send_bw", "-n 200 -s 4096", 0),
    ("ib_write_bw", "-n 200 -s 4096", 0),
    ("ib_read_bw", "-n 200 -s 4096 -o 16", 0),
    ("ib_atomic_bw", "-n 200 -o 16", 0),
    ("ib_send_lat", "-n 100 -s 2000", 200000),
    ("ib_send_lat", "-n 20 -s 1000 -c UC", 20000),
    ("ib_send_lat", "-n 20 -s 1000 -c UD", 20000),
    ("ib_write_lat", "-n 100 -s 2000", 200000),
    ("ib_read_lat", "-n 100 -s 2000 -o 16", 0),
]
# Programs that connect by RDMA-CM: program, options, options of the server and of the client before
# the address.
CONNECTED = [("rping", "-C 10 -V", "-s -a", "-c -a"), ("ucmatose", "-C 10", "-b", "-s"),
             ("udaddy", "-C 10", "-b", "-s")]
TIMEOUT_S = 60


def command(program, options, gid_index, server=None):
    words = [program] + options.split()
    words += ["-g" if program.startswith("ibv") else "-x", str(gid_index)]
    if not program.startswith("ibv"):
        words += ["-F", "-u", "18"]  # ignore the CPU frequency; an ACK timeout of 1 s
    return words + ([server] if server else [])


def start_in_guest(guest, words):
    return guest.start("timeout %d %s" % (TIMEOUT_S, " ".join(words)))


def kernel_serves(guest, daemon, program, options, gid_index):
    s = start_in_guest(guest, command(program, options, gid_index))
    guest.until("netstat -ltn | grep -q :%d" % PORT)
    local = daemon.start(*command(program, options, 0, GUEST)).finish(TIMEOUT_S)
    return local, guest.finish(s, TIMEOUT_S)


def rocade_serves(guest, daemon, program, options, gid_index):
    server = daemon.start(*command(program, options, 0))
    wait_for_port(PORT, server, 20)
    s = start_in_guest(guest, command(program, options, gid_index, BRIDGE))
    remote = guest.finish(s, TIMEOUT_S)
    return server.finish(TIMEOUT_S), remote


def connected_to_kernel(guest, daemon, version, server, client):
    address = ADDRESSES[version][1]
    s = start_in_guest(guest, server + [address])
    guest.until(LISTENS)
    local = daemon.start(*client, address).finish(TIMEOUT_S)
    return local, guest.finish(s, TIMEOUT_S)


def connected_to_rocade(guest, daemon, version, server, client):
    address = ADDRESSES[version][0]
    process = daemon.start(*server, address)
    daemon.wait_listener(process)
    remote = guest.finish(start_in_guest(guest, client + [address]), TIMEOUT_S)
    return process.finish(TIMEOUT_S), remote


def connected(the_bench, daemon, version):
    """Runs programs that connect by RDMA-CM."""
    for program, options, server, client in CONNECTED:
        ends = [[program] + options.split() + role.split() for role in (server, client)]
        for name, connect in (("the kernel", connected_to_kernel), ("Rocade", connected_to_rocade)):
            before = daemon.moved()
            (code, local), (status, remote) = connect(the_bench.guest, daemon, version, *ends)
            case("%s, IPv%d: %s is the server" % (program, version, name),
                 rping_status(code, local) == 0 and rping_status(status, remote) == 0 and
                 daemon.moved() > before + 1000,
                 "%s, %s\n%s\n%s" % (code, status, local, remote))


def walk(the_bench):
    """A case for each program and each server."""
    the_bench.set_mtu(1500)
    gid_index = the_bench.gid_index(4)
    with Daemon("--address", "%s/24,%s/64" % (ROCADE, ROCADE6), "--sleep-us", "100",
                eal=the_bench.eal()) as daemon:
        case("rocaded starts", "listening at" in daemon.first_line, daemon.first_line)
        for program, options, least in PROGRAMS:
            for name, serve in (("the kernel", kernel_serves), ("Rocade", rocade_serves)):
                before = daemon.moved()
                (code, local), (status, remote) = serve(the_bench.guest, daemon, program, options,
                                                        gid_index)
                moved = daemon.moved() - before
                case("%s %s: %s is the server" % (program, options, name),
                     code == 0 and status == 0 and moved > least,
                     "%s, %s, %d bytes\n%s\n%s" % (code, status, moved, local, remote))
        for version in (4, 6):
            connected(the_bench, daemon, version)
