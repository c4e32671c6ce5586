#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that connect by RDMA-CM run unchanged as clients of `rocaded --local`: those of
librdmacm, rsockets, perftest with -R, qperf with -cm1. The daemon's counters prove that Rocade
carried the bytes and that its connection manager made the connections.

  rdmacm.py          all rows
  rdmacm.py WORD...  the rows whose command has all these words
"""

import filecmp
import os
import sys
import time
from collections import namedtuple

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import CLIENTS, Daemon, rping_status, wait_for_port  # noqa: E402
from process import until  # noqa: E402
from tap import case, run  # noqa: E402

CM_ORDER = os.path.join(CLIENTS, "test/e2e/cm_order")
CM_ITSELF = os.path.join(CLIENTS, "test/e2e/cm_itself")
ADDRESS = "192.0.2.1"
TIMEOUT_S = 60

# least: bytes that Rocade must have carried.
# made: connection ends that its connection manager must have established.
# ends: whether the server ends by itself.
# ready: the client starts when the daemon's counter of this name is not 0, or when the server
#   listens at this TCP port.
Row = namedtuple("Row", "server client least made ends ready")


def row(server, client, least, made=0, ends=True, ready="listeners"):
    return Row(server.split(), client.replace("ADDRESS", ADDRESS).split(), int(least), made, ends,
               ready)


def same(program, more, least, **kind):
    """Returns a row whose client and server differ by the address only."""
    return row("%s %s" % (program, more), "%s %s -s ADDRESS" % (program, more), least, **kind)


def perftest(program, more, least):
    command = "%s -R -F %s" % (program, more)
    return row(command, command + " ADDRESS", least)


# Leaves UCX no TCP to fall back to.
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


def wait_ready(daemon, row_, server):
    if isinstance(row_.ready, int):
        wait_for_port(row_.ready, server, TIMEOUT_S)
    else:
        daemon.wait_listener(server, row_.ready)


def pair(daemon, row_):
    """Returns the exit statuses of server and client, that of a server that never ends by itself
    as 0, and their output."""
    server = daemon.start(*row_.server)
    wait_ready(daemon, row_, server)
    status, text = daemon.start(*row_.client).finish(TIMEOUT_S)
    served, said = server.finish(TIMEOUT_S) if row_.ends else (0, server.kill())
    return rping_status(served, said), rping_status(status, text), "server: %s\nclient: %s" % (said[-2000:], text[-2000:])


def row_case(daemon, row_):
    before, start = daemon.moved(), time.monotonic()
    made = daemon.status()["rdma_cm"]["established"]
    served, status, text = pair(daemon, row_)
    left = "" if until(daemon.idle) else "left: %s" % daemon.status()
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
            case("RDMA-CM made the connections", made > 200, str(made))


def copy():
    """rcopy transfers a file over rsockets unchanged."""
    with Daemon() as daemon:
        source, target = (os.path.join(daemon.dir, name) for name in ("source", "target"))
        with open(source, "wb") as file:
            file.write(os.urandom(3 << 20))
        server = daemon.start("rcopy")
        daemon.wait_listener(server)
        client = daemon.run("rcopy", source, "%s:%s" % (ADDRESS, target), timeout_s=TIMEOUT_S)
        server.kill()
        case("rcopy transfers a file unchanged", client.returncode == 0 and
             filecmp.cmp(source, target, False), client.stdout + client.stderr)


def death():
    """The peer of a killed program gets a disconnect event, and the daemon frees all resources."""
    with Daemon() as daemon:
        server = daemon.start("rping", "-s")
        daemon.wait_listener(server)
        client = daemon.start("rping", "-c", "-a", ADDRESS)
        moving = until(lambda: daemon.moved() > 100000)
        client.kill()
        status, text = server.finish()
        case("the peer of a killed client is disconnected", moving and status is not None and
             "DISCONNECT" in text, "%s %s" % (status, text[-500:]))
        case("the daemon frees the resources of both", until(daemon.idle),
             str(daemon.status()))


# Duplicates the descriptor of an event channel in every way and uses the channel under the new one.
DUPLICATED_CHANNEL = """
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


def duplicated_channel():
    with Daemon() as daemon:
        done = daemon.run(sys.executable, "-c", DUPLICATED_CHANNEL)
        case("an event channel works under a duplicated descriptor", done.stdout == "0 0\n" * 5,
             done.stdout + done.stderr)


def refused():
    with Daemon() as daemon:
        no_listener = daemon.run("rping", "-c", "-a", ADDRESS, "-C", "1", timeout_s=TIMEOUT_S)
        text = no_listener.stdout + no_listener.stderr
        case("a connect to a port without a listener is rejected",
             no_listener.returncode != 0 and "REJECTED" in text.upper(), text)
        away = daemon.run("rping", "-c", "-a", "203.0.113.9", "-C", "1", timeout_s=TIMEOUT_S)
        case("an address outside the subnet is not resolved", away.returncode != 0 and "ADDR" in
             (away.stdout + away.stderr).upper(), away.stdout + away.stderr)
        first = daemon.start("rping", "-s")
        daemon.wait_listener(first)
        second = daemon.run("rping", "-s", timeout_s=TIMEOUT_S)
        case("a port has one listener", second.returncode != 0, second.stdout + second.stderr)
        first.kill()


def order():
    """A program has all messages that came before its peer has disconnected when it learns that."""
    with Daemon() as daemon:
        for way, off in (("by a pair", ""), ("by the daemon", "pairs")):
            done = daemon.run("env", "ROCADE_OFF=" + off, CM_ORDER, ADDRESS, 300, timeout_s=TIMEOUT_S)
            case("%s: what is sent before rdma_disconnect() comes before RDMA_CM_EVENT_DISCONNECTED" % way,
                 done.returncode == 0 and done.stdout.startswith("0 messages"), done.stdout + done.stderr)


def itself():
    """A program of one thread disconnects an end of a connection with itself, and waits for its end."""
    with Daemon() as daemon:
        done = daemon.run(CM_ITSELF, ADDRESS, timeout_s=TIMEOUT_S)
        moved = daemon.status()["rdma_cm"]
        case("rdma_disconnect() returns to a program that could only answer itself",
             done.returncode == 0 and done.stdout == "disconnected\n", done.stdout + done.stderr)
        case("its DREQ was not repeated", moved["resent"] == 0 and moved["unanswered"] == 0, moved)


if __name__ == "__main__":
    sys.exit(run(*([programs] if sys.argv[1:] else [programs, copy, death, duplicated_channel,
                                                    refused, order, itself])))
