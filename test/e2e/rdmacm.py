#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect by RDMA-CM, unchanged, as clients of `rocaded --local`: librdmacm's own,
rsockets, perftest with -R, qperf with -cm1. The daemon's counters say that it was Rocade that
carried the bytes, and its connection manager that it made the connections.

  rdmacm.py          all of them
  rdmacm.py WORD...  those whose command has all these words
"""

import filecmp
import os
import signal
import subprocess
import sys
import time
from collections import namedtuple

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import Daemon, wait_for_port  # noqa: E402
from tap import case, run  # noqa: E402

ADDRESS = "192.0.2.1"
PATIENCE_S = 60

# least: bytes that Rocade must have carried; made: ends of connections that its connection manager
# must have made; ends: the server ends by itself; ready: when the client may come.
Row = namedtuple("Row", "server client least made ends ready")


def row(server, client, least, made=0, ends=True, ready="listeners"):
    return Row(server.split(), client.replace("ADDRESS", ADDRESS).split(), int(least), made, ends,
               ready)


def same(program, more, least, **kind):
    """Client and server differ by the address only."""
    return row("%s %s" % (program, more), "%s %s -s ADDRESS" % (program, more), least, **kind)


def perftest(program, more, least):
    command = "%s -R -F %s" % (program, more)
    return row(command, command + " ADDRESS", least)


# Without a fall-back: UCX has TCP too.
UCX = "env UCX_TLS=rc_verbs,ud_verbs,self UCX_SOCKADDR_TLS_PRIORITY=rdmacm "

ROWS = [
    row("rping -s -C 50 -S 4096 -V", "rping -c -a ADDRESS -C 50 -S 4096 -V", 2 * 50 * 4096),
    row("rping -s -a 127.0.0.1 -p 9000 -C 5", "rping -c -a 127.0.0.1 -p 9000 -C 5", 2 * 5 * 64),
    same("ucmatose", "-c 4 -C 20 -S 1024", 2 * 4 * 20 * 1024),
    same("ucmatose", "-c 4 -C 20 -S 1024 -m", 2 * 4 * 20 * 1024),
    same("udaddy", "-c 2 -C 20 -S 1024", 2 * 2 * 20 * 1024),
    row("rdma_server", "rdma_client -s ADDRESS", 2 * 16),
    row("rdma_xserver", "rdma_xclient -s ADDRESS", 16),
    row("rdma_xserver -c x", "rdma_xclient -s ADDRESS -c x", 16, made=2),
    same("cmtime", "-c 100", 0, made=2 * 100, ends=False),
    row("mckey -m 239.1.1.1 -b " + ADDRESS + " -C 20 -S 1024",
        "mckey -m 239.1.1.1 -b ADDRESS -C 20 -S 1024 -s", 20 * 1024, ready="groups"),
    same("rstream", "-S 65536 -C 100", 2 * 100 * 65536),
    same("rstream", "-S 4096 -C 1000 -T n", 2 * 1000 * 4096),
    same("rstream", "-S 65536 -C 100 -T b", 2 * 100 * 65536),
    same("rstream", "-S 65536 -C 100 -T r -T v", 2 * 100 * 65536),
    same("riostream", "-S 65536 -C 100", 2 * 100 * 65536),
    perftest("ib_send_bw", "-n 500", 500 * 65536),
    perftest("ib_send_bw", "-n 500 -c UD -s 1024", 350 * 1024),
    perftest("ib_send_lat", "-n 500", 2 * 500 * 2),
    perftest("ib_write_bw", "-n 500 -q 4", 4 * 500 * 65536),
    perftest("ib_read_bw", "-n 500", 500 * 65536),
    perftest("ib_atomic_bw", "-n 500", 500 * 8),
    row("qperf", "qperf -cm1 127.0.0.1 -t 1 rc_bw rc_lat rc_rdma_read_lat rc_rdma_write_poll_lat "
        "rc_compare_swap_mr ver_rc_fetch_add", 65536, made=12, ends=False, ready=19765),
    row(UCX + "io_demo -q -d 65536", UCX + "io_demo -q -d 65536 -i 50 -o write,read ADDRESS", 50 * 65536,
        made=2, ends=False),
]


def soon(condition, process=None, timeout_s=PATIENCE_S):
    end = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < end:
        if process is not None and process.poll() is not None:
            return False
        time.sleep(0.02)
    return condition()


def wait_ready(daemon, row_, server):
    if isinstance(row_.ready, int):
        return wait_for_port(row_.ready, server, PATIENCE_S)
    return soon(lambda: daemon.status()["rdma_cm"][row_.ready] > 0, server)


def end(server, ends):
    """Its exit status, 0 for one that never ends by itself, and what it said."""
    if not ends:
        server.send_signal(signal.SIGKILL)
    try:
        text, _ = server.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        return None, server.communicate()[0]
    return (server.returncode if ends else 0), text


def pair(daemon, row_):
    server = daemon.start(*row_.server)
    wait_ready(daemon, row_, server)
    try:
        client = daemon.run(*row_.client, timeout_s=PATIENCE_S)
        status, text = client.returncode, client.stdout + client.stderr
    except subprocess.TimeoutExpired as hung:
        status, text = None, str(hung.output)
        server.kill()
    served, said = end(server, row_.ends)
    return served, status, "server: %s\nclient: %s" % (said[-2000:], text[-2000:])


def idle(daemon):
    """Nothing of those who have ended is left."""
    state = daemon.status()
    return not state["clients"] and state["rdma_cm"]["ids"] == 0


def row_case(daemon, row_):
    before, start = daemon.moved(), time.monotonic()
    made = daemon.status()["rdma_cm"]["established"]
    served, status, text = pair(daemon, row_)
    left = "" if soon(lambda: idle(daemon)) else "left: %s" % daemon.status()
    moved = daemon.moved() - before
    made = daemon.status()["rdma_cm"]["established"] - made
    case(" ".join(row_.client), served == 0 and status == 0 and moved >= row_.least and
         made >= row_.made and not left,
         "server %s, client %s, %d of %d bytes, %d of %d connected\n%s\n%s" % (
             served, status, moved, row_.least, made, row_.made, text, left))
    print("# %12d bytes %5.1f s" % (moved, time.monotonic() - start))


def programs():
    words = sys.argv[1:]
    with Daemon() as daemon:
        for row_ in ROWS:
            if all(w in " ".join(row_.server + row_.client) for w in words):
                row_case(daemon, row_)
        if not words:
            made = daemon.status()["rdma_cm"]["established"]
            case("connections were made by RDMA-CM", made > 200, str(made))


def copy():
    """A file by rsockets arrives as it was."""
    with Daemon() as daemon:
        source, target = (os.path.join(daemon.dir, name) for name in ("source", "target"))
        with open(source, "wb") as file:
            file.write(os.urandom(3 << 20))
        server = daemon.start("rcopy")
        soon(lambda: daemon.status()["rdma_cm"]["listeners"] > 0, server)
        client = daemon.run("rcopy", source, "%s:%s" % (ADDRESS, target), timeout_s=PATIENCE_S)
        end(server, False)
        case("rcopy", client.returncode == 0 and filecmp.cmp(source, target, False),
             client.stdout + client.stderr)


def death():
    """The peer of a program that is killed is told so, and nothing of it is left."""
    with Daemon() as daemon:
        server = daemon.start("rping", "-s")
        soon(lambda: daemon.status()["rdma_cm"]["listeners"] > 0, server)
        client = daemon.start("rping", "-c", "-a", ADDRESS)
        moving = soon(lambda: daemon.moved() > 100000, client)
        client.kill()
        client.communicate()
        status, text = end(server, True)
        case("a killed client's peer ends", moving and status is not None and "DISCONNECT" in text,
             "%s %s" % (status, text[-500:]))
        case("nothing of either is left", soon(lambda: idle(daemon)), str(daemon.status()))


# As a program that keeps its channel under another number.
OTHER_NUMBER = """
import ctypes, os, sys
from ctypes import c_int, c_void_p, POINTER, byref
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
cm.rdma_create_event_channel.restype = POINTER(c_int)
libc = ctypes.CDLL(None, use_errno=True)
channel = cm.rdma_create_event_channel()
for call in (lambda fd: libc.dup(fd), lambda fd: libc.dup2(fd, 50), lambda fd: libc.dup3(fd, 51, 0),
             lambda fd: libc.fcntl(fd, 0, 60), lambda fd: libc.fcntl(fd, 1030, 70)):
    first = channel[0]
    channel[0] = call(first)
    os.close(first)
    id_ = c_void_p()
    print(cm.rdma_create_id(channel, byref(id_), None, 0x106), cm.rdma_destroy_id(id_))
"""


def other_number():
    with Daemon() as daemon:
        done = daemon.run(sys.executable, "-c", OTHER_NUMBER)
        case("a channel's other descriptors", done.stdout == "0 0\n" * 5,
             done.stdout + done.stderr)


def refused():
    with Daemon() as daemon:
        nobody = daemon.run("rping", "-c", "-a", ADDRESS, "-C", "1", timeout_s=PATIENCE_S)
        case("nobody listens", nobody.returncode != 0 and "REJECTED" in
             (nobody.stdout + nobody.stderr).upper(), nobody.stdout + nobody.stderr)
        away = daemon.run("rping", "-c", "-a", "203.0.113.9", "-C", "1", timeout_s=PATIENCE_S)
        case("nobody is there", away.returncode != 0 and "ADDR" in
             (away.stdout + away.stderr).upper(), away.stdout + away.stderr)
        first = daemon.start("rping", "-s")
        soon(lambda: daemon.status()["rdma_cm"]["listeners"] > 0, first)
        second = daemon.run("rping", "-s", timeout_s=PATIENCE_S)
        case("a port has one listener", second.returncode != 0, second.stdout + second.stderr)
        end(first, False)


if __name__ == "__main__":
    sys.exit(run(*([programs] if sys.argv[1:] else [programs, copy, death, other_number, refused])))
