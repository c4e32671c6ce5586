# SPDX-License-Identifier: BSD-3-Clause
"""Programs that nobody changed, across the wire: one end in the guest over rdma_rxe, the other here
over rocaded (rocade-run), each being the server once."""

import re
import select
import subprocess
import time

from bench import BRIDGE, OURS, OURS6, PEER, THEIRS
from daemon import Daemon, wait_for_port
from tap import case

PORT = 18515
# Program, options, the least that has to come in for it here, in bytes: by its messages, in both
# roles where they go both ways.
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
# By RDMA-CM: what the server is told before its address, and the client.
CONNECTED = [("rping", "-C 10 -V", "-s -a", "-c -a"), ("ucmatose", "-C 10", "-b", "-s"),
             ("udaddy", "-C 10", "-b", "-s")]
TIMEOUT_S = 60
TRIES = 3
# Half a second without an answer, which the pingpongs take for the end: the machine is busy.
BUSY = re.compile("(?i)failed status 12|failed status transport retry counter exceeded")


def command(program, options, gid_index, server=None):
    words = [program] + options.split()
    words += ["-g" if program.startswith("ibv") else "-x", str(gid_index)]
    if not program.startswith("ibv"):
        words += ["-F", "-u", "18"]  # whatever the core's frequency; an ACK has a second
    return words + ([server] if server else [])


def start_there(guest, words):
    return guest.start("timeout %d %s" % (TIMEOUT_S, " ".join(words)))


def finish_here(process):
    try:
        text, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
    return process.returncode, text


def kernel_serves(guest, daemon, program, options, gid_index):
    s = start_there(guest, command(program, options, gid_index))
    guest.run("until netstat -ltn | grep -q :%d; do sleep 0.1; done" % PORT)
    ours = finish_here(daemon.start(*command(program, options, 0, THEIRS)))
    return ours, guest.finish(s, TIMEOUT_S)


def we_serve(guest, daemon, program, options, gid_index):
    process = daemon.start(*command(program, options, 0))
    wait_for_port(PORT, process, 20)
    s = start_there(guest, command(program, options, gid_index, BRIDGE))
    theirs = guest.finish(s, TIMEOUT_S)
    return finish_here(process), theirs


def until_it_listens(server_lives, client):
    """The client again and again: before the server listens it is turned away."""
    end = time.monotonic() + 20
    while True:
        code, text = client()
        if code == 0 or time.monotonic() > end or not server_lives():
            return code, text
        time.sleep(0.2)


def connected_to_kernel(guest, daemon, version, server, client):
    address = PEER[version][1]
    s = start_there(guest, server + [address])
    ours = until_it_listens(lambda: not select.select([s], [], [], 0)[0], lambda: finish_here(
        daemon.start(*client, address)))
    return ours, guest.finish(s, TIMEOUT_S)


def connected_to_us(guest, daemon, version, server, client):
    address = PEER[version][0]
    process = daemon.start(*server, address)
    theirs = until_it_listens(lambda: process.poll() is None, lambda: guest.finish(
        start_there(guest, client + [address]), TIMEOUT_S))
    return finish_here(process), theirs


def connected(the_bench, daemon, version):
    """Programs that RDMA-CM connects."""
    for program, options, server, client in CONNECTED:
        ends = [[program] + options.split() + role.split() for role in (server, client)]
        for name, connect in (("the kernel", connected_to_kernel), ("we", connected_to_us)):
            before = daemon.moved()
            (code, ours), (status, theirs) = connect(the_bench.guest, daemon, version, *ends)
            case("%s, IPv%d, %s the server" % (program, version, name),
                 code == 0 and status == 0 and daemon.moved() > before + 1000,
                 "%s, %s\n%s\n%s" % (code, status, ours, theirs))


def walk(the_bench):
    """A case for each program and each server."""
    the_bench.set_mtu(1500)
    gid_index = the_bench.gid_index(4)
    with Daemon("--address", "%s/24,%s/64" % (OURS, OURS6), "--sleep-us", "100",
                eal=the_bench.eal()) as daemon:
        case("rocaded is there", "listening at" in daemon.first_line, daemon.first_line)
        for program, options, least in PROGRAMS:
            for name, serve in (("the kernel", kernel_serves), ("we", we_serve)):
                for _ in range(TRIES):
                    before = daemon.moved()
                    (code, ours), (status, theirs) = serve(the_bench.guest, daemon, program,
                                                           options, gid_index)
                    moved = daemon.moved() - before
                    if not BUSY.search(ours + theirs):
                        break
                    print("# %s: no answer in time" % program)
                case("%s %s, %s the server" % (program, options, name),
                     code == 0 and status == 0 and moved > least,
                     "%s, %s, %d bytes\n%s\n%s" % (code, status, moved, ours, theirs))
        for version in (4, 6):
            connected(the_bench, daemon, version)
