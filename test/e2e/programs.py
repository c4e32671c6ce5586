#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that were built for libibverbs run unchanged as clients of `rocaded --local`, as two
processes. The daemon's counters prove that Rocade carried the bytes.

  programs.py            the rows of lib/matrix.py that are quick; all with ROCADE_TEST_LONG=1
  programs.py WORD...    the rows whose command has all these words
  programs.py --table    the table that docs/programs.md shows
"""

import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import matrix  # noqa: E402
import process  # noqa: E402
from daemon import LIBRARY, RUN, Daemon, both, wait_for_port  # noqa: E402
from tap import case, run  # noqa: E402

SOURCE = os.environ.get("ROCADE_SOURCE") or os.path.realpath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
LONG = os.environ.get("ROCADE_TEST_LONG") == "1"
TIMEOUT_S = 300 if LONG else 90


def pair(daemon, row):
    """Runs a server and a client. Returns both exit statuses, None after a timeout, and their
    output."""
    server = daemon.start(*matrix.command(row, server=True))
    if row.port:
        wait_for_port(row.port, server, 30)
    else:
        daemon.wait_listener(server)
    return both(server, daemon.start(*matrix.command(row), *matrix.address(row)), TIMEOUT_S)


def row_case(daemon, row):
    before = daemon.moved()
    start = time.monotonic()
    server, client, text = pair(daemon, row)
    moved = daemon.moved() - before
    passed = case(matrix.name(row), server == 0 and client == 0 and moved >= row.least,
                  "server %s, client %s, %d of %d bytes\n%s" % (server, client, moved, row.least,
                                                               text[-4000:]))
    return passed, moved, time.monotonic() - start


def rows(words):
    if words:
        return [r for r in matrix.ROWS if all(w in matrix.name(r) for w in words)]
    return [r for r in matrix.ROWS if r.quick or LONG]


def programs():
    results = []
    # libfabric requires the device's address on an interface of the machine. In a namespace with
    # only a loopback interface it does no harm.
    if [name for _, name in socket.if_nameindex()] == ["lo"]:
        process.run(["ip", "address", "add", matrix.ADDRESS + "/32", "dev", "lo"])
    with Daemon() as daemon:
        for row in rows(sys.argv[1:]):
            results.append((row, *row_case(daemon, row)))
    print("# %-4s %12s %6s  %s" % ("", "bytes", "s", "program"))
    for row, passed, moved, took in results:
        print("# %-4s %12d %6.1f  %s" % ("ok" if passed else "FAIL", moved, took,
                                         matrix.name(row)))


def information():
    """Programs that only show the device."""
    with Daemon() as daemon:
        for program, word in [(("ibv_devices",), "rocade0"), (("ibv_devinfo", "-v"), "RoCE v2"),
                              (("ucx_info", "-d"), "rc_verbs"), (("ucx_info", "-d"), "ud_verbs"),
                              (("fi_info", "-p", "verbs"), "rocade0-dgram"),
                              (("fi_info", "-p", "verbs;ofi_rxd"), "FI_EP_RDM")]:
            done = daemon.run(*program)
            case(" ".join(program) + " shows " + word, done.returncode == 0 and
                 "rocade0" in done.stdout and word in done.stdout, done.stdout + done.stderr)


def async_events():
    """ibv_asyncwatch prints the events of the device."""
    with Daemon() as daemon:
        watch = daemon.start("stdbuf", "-oL", "ibv_asyncwatch")
        first = watch.wait_line()
        case("ibv_asyncwatch opens the device", "rocade0" in first, first)
        daemon.process.kill()
        line = watch.wait_line()
        case("ibv_asyncwatch prints the end of the daemon", "IBV_EVENT_DEVICE_FATAL" in line, line)
        watch.kill()


DEVICE_USER = """
import ctypes, os, stat, sys
from ctypes import c_char_p, c_int, c_void_p
ibv = ctypes.CDLL(None)
ibv.ibv_get_device_list.restype = ctypes.POINTER(c_void_p)
ibv.ibv_get_device_name.argtypes = [c_void_p]
ibv.ibv_get_device_name.restype = c_char_p
node = "/dev/infiniband/rocade0"
types = "/sys/class/infiniband/rocade0/ports/1/gid_attrs/types/0"
before = os.path.exists(node)
name = ibv.ibv_get_device_name(ibv.ibv_get_device_list(None)[0]).decode()
libc_stat = stat.S_ISCHR(os.stat(node).st_mode)
with open(types) as file:
    text = file.read()
usable = os.access(node, os.R_OK | os.W_OK)
missing = os.path.exists(types + "0") or os.path.exists("/dev/infiniband/mlx5_0")
# Look verbs up in a library handle, as NCCL does.
dl = ctypes.CDLL(None)
dl.dlopen.argtypes, dl.dlopen.restype = [c_char_p, c_int], c_void_p
dl.dlvsym.argtypes, dl.dlvsym.restype = [c_void_p, c_char_p, c_char_p], c_void_p
real = dl.dlopen(b"libibverbs.so.1", 2)
found = dl.dlvsym(real, b"ibv_get_device_list", b"IBVERBS_1.1")
ours = ctypes.cast(ibv.ibv_get_device_list, c_void_p).value
dl.dlsym.argtypes, dl.dlsym.restype = [c_void_p, c_char_p], c_void_p
plain = dl.dlsym(real, b"ibv_get_device_list")
other = dl.dlvsym(real, b"ibv_fork_init", b"IBVERBS_1.1")
none = dl.dlvsym(real, b"ibv_get_device_list", b"IBVERBS_9.9")
print(dict(before=before, name=name, stat=libc_stat, text=text, usable=usable, missing=missing,
           symbol=found == plain == ours, other=bool(other), none=none))
"""


def paths_and_symbols():
    with Daemon() as daemon:
        done = daemon.run(sys.executable, "-c", DEVICE_USER)
        case("a client finds the device's paths and symbols", done.stdout.strip() == str(dict(
            before=True, name="rocade0", stat=True, text="RoCE v2\n", usable=True, missing=False,
            symbol=True, other=True, none=None)), done.stdout + done.stderr)


def no_daemon():
    """Without a daemon rocade-run prints a hint, and the preload does not disturb a program that
    opens no device."""
    done = process.run([RUN, "--library", LIBRARY, "--socket", "/nonexistent", "true"])
    case("rocade-run prints a hint when there is no daemon", done.returncode == 1 and
         "/nonexistent" in done.stderr and "rocaded --local" in done.stderr, done.stderr)
    done = process.run(["cat", "/proc/self/comm"], env=dict(
        os.environ, LD_PRELOAD=LIBRARY, ROCADE_SOCKET="/nonexistent"))
    case("a program that opens no device needs no daemon",
         done.returncode == 0 and done.stdout == "cat\n", done.stdout + done.stderr)


def options():
    common = os.path.dirname(LIBRARY)
    with Daemon() as daemon:
        names = "UCX_NET_DEVICES", "UCX_TLS", "NCCL_IB_HCA"
        done = daemon.run("env")
        lines = done.stdout.splitlines()
        case("rocade-run sets the variables of UCX and NCCL", done.returncode == 0 and
             {"UCX_NET_DEVICES=rocade0:1", "UCX_TLS=^shm", "NCCL_IB_HCA==rocade0"} <= set(lines),
             done.stdout)
        daemon.env.update({n: "mine" for n in names})
        done = daemon.run("env")
        case("rocade-run keeps the variables that the user set",
             all(n + "=mine" in done.stdout for n in names), done.stdout)
        done = daemon.run("--device", "rocade0", "true")
        case("--device accepts the daemon's device", done.returncode == 0, done.stderr)
        done = daemon.run("--device", "other", "true")
        case("--device refuses an unknown device and names the daemon's", done.returncode == 1 and
             "rocade0" in done.stderr and "other" in done.stderr, done.stderr)
        done = process.run(["sh", "-c", 'cd "$1" && exec "$0" --library ./"$2" --socket ./"$3" '
                            "sh -c 'cd / && ibv_devices'", RUN, common, *(
                                os.path.relpath(path, common) for path in (LIBRARY, daemon.socket))])
        case("relative paths are those of the directory in which rocade-run is called",
             done.returncode == 0 and "rocade0" in done.stdout and not done.stderr, done.stdout + done.stderr)
        for wrong in "", ".", __file__:
            done = process.run([RUN, "--library", wrong, "--socket", daemon.socket, "true"])
            case("--library refuses '%s', which is no library" % os.path.basename(wrong),
                 done.returncode == 1 and "is no shared library" in done.stderr, done.stderr)
        done = daemon.run("--library", "/nonexistent.so", "true")
        case("--library refuses a missing file", done.returncode == 1 and
             "/nonexistent.so" in done.stderr, done.stderr)


def page():
    path = os.path.join(SOURCE, "docs/programs.md")
    with open(path, encoding="utf-8") as file:
        case("docs/programs.md shows the table", matrix.text() in file.read(),
             "replace the table by the output of programs.py --table")


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        print(matrix.text())
        sys.exit(0)
    sys.exit(run(programs) if sys.argv[1:] else
             run(programs, information, async_events, paths_and_symbols, no_daemon, options, page))
