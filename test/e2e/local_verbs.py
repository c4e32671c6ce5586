#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that were built for libibverbs run unchanged as clients of `rocaded --local`: how they
and the daemon start, end, die and sleep. The daemon's counters prove that Rocade carried the
bytes."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import limit  # noqa: E402
import process  # noqa: E402
from daemon import CLIENTS, ROCADED, RUN, LIBRARY, Daemon, wait_for_port  # noqa: E402
from process import until  # noqa: E402
from tap import case, run  # noqa: E402

PINGPONG_BYTES = 4096 * 200 * 2


def pair_case(daemon, name, program, least_bytes):
    before = daemon.moved()
    server, client, text = daemon.pair(*program)
    moved = daemon.moved() - before
    case(name, server == 0 and client == 0 and moved >= least_bytes,
         "server %s, client %s, %d of %d bytes\n%s" % (server, client, moved, least_bytes, text))


def devices():
    with Daemon() as daemon:
        info = daemon.run("ibv_devinfo", "-v")
        case("ibv_devinfo -v shows the device", info.returncode == 0 and
             "rocade0" in info.stdout and "PORT_ACTIVE" in info.stdout and
             "RoCE v2" in info.stdout, info.stdout + info.stderr)
        names = daemon.run("ibv_devices")
        case("ibv_devices lists the device", "rocade0" in names.stdout, names.stdout)
    with Daemon("--client-qps", "100", "--client-mrs", "50") as daemon:
        info = daemon.run("ibv_devinfo", "-v")
        case("the device's limits are those of a client", all(
            re.search(r"\b%s:\s+%d\n" % row, info.stdout) for row in (
                ("max_qp", 100), ("max_mr", 50))), info.stdout)
    gone = process.run([RUN, "--library", LIBRARY, "--socket", daemon.socket, "ibv_devices"])
    case("without a daemon there is no device",
         gone.returncode == 1 and "no daemon" in gone.stderr, gone.stdout + gone.stderr)


def amid_traffic(daemon, *options):
    """Starts a ping-pong of two clients. Returns them once messages go to and fro."""
    program = ("ibv_rc_pingpong", "-g", "0") + options
    server = daemon.start(*program)
    wait_for_port(18515, server, 30)
    before = daemon.moved()
    client = daemon.start(*program, "127.0.0.1")
    if not until(lambda: daemon.moved() > before + PINGPONG_BYTES):
        raise client.failure("waited for traffic")
    return client, server


def death():
    """A client is killed amid traffic: its resources are freed, and the daemon continues."""
    with Daemon() as daemon:
        for _ in range(5):
            for one in amid_traffic(daemon, "-n", "100000000"):
                one.kill()
        case("the daemon removes killed clients",
             until(lambda: daemon.status()["clients"] == []), str(daemon.status()))
        pair_case(daemon, "other clients still exchange messages",
                  ("ibv_rc_pingpong", "-g", "0", "-n", "200", "-c"), PINGPONG_BYTES)


def restart():
    """The daemon is killed while a client sleeps: the client's requests are flushed, and it does
    not hang."""
    with Daemon() as daemon:
        clients = amid_traffic(daemon, "-e", "-n", "100000000")
        daemon.process.kill()
        ended = [client.finish(30) for client in clients]
        case("clients of a killed daemon end and their requests are flushed", all(
            status is not None and "flush" in text.lower() for status, text in ended), str(ended))
        with Daemon() as other:
            os.rename(other.socket, daemon.socket)
            names = daemon.run("ibv_devices")
            case("a new daemon can take the place of a killed one", "rocade0" in names.stdout,
                 names.stdout)
            os.rename(daemon.socket, other.socket)


def own_dpdk():
    """A client may start an EAL of its own: the library does not use DPDK."""
    with Daemon() as daemon:
        before = daemon.moved()
        client = daemon.start(os.path.join(CLIENTS, "test/e2e/flow_eal"), "pair", feed=True)
        moved = until(lambda: daemon.moved() >= before + 10 * PINGPONG_BYTES)
        status, text = client.finish()
        case("a program with its own EAL is a client", status == 0 and "messages" in text and
             moved, text)


def fork():
    """A context opened before fork() is unusable in the child. The child opens one of its own."""
    text = """
import ctypes, os, sys
ibv = ctypes.CDLL(None)
for name in ("ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd"):
    getattr(ibv, name).restype = ctypes.c_void_p
ibv.ibv_get_device_list.argtypes = [ctypes.c_void_p]
ibv.ibv_open_device.argtypes = ibv.ibv_alloc_pd.argtypes = [ctypes.c_void_p]
ibv.ibv_dealloc_pd.argtypes = ibv.ibv_close_device.argtypes = [ctypes.c_void_p]
def device():
    return ctypes.cast(ibv.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))[0]
parent = ibv.ibv_open_device(device())
pd = ibv.ibv_alloc_pd(parent)
pid = os.fork()
if pid == 0:
    own = ibv.ibv_open_device(device())
    good = own and ibv.ibv_close_device(own) == 0
    good = good and ibv.ibv_dealloc_pd(pd) == 0 and ibv.ibv_close_device(parent) == 0
    os._exit(0 if good else 1)
_, status = os.waitpid(pid, 0)
good = status == 0 and ibv.ibv_dealloc_pd(pd) == 0 and ibv.ibv_close_device(parent) == 0
sys.exit(0 if good else 1)
"""
    with Daemon() as daemon:
        done = daemon.run(sys.executable, "-c", text)
        case("fork(): the child opens a context of its own", done.returncode == 0,
             done.stdout + done.stderr)


def idle():
    with Daemon() as daemon:
        server = daemon.start("ibv_rc_pingpong", "-g", "0")
        wait_for_port(18515, server, 30)
        case("an idle daemon does not wake up", limit.rests(daemon.process.pid), limit.look(daemon.process.pid))
        server.kill()


def ends():
    with Daemon() as daemon:
        case("rocaded prints the path of its socket", daemon.socket in daemon.first_line,
             daemon.first_line)
        again = process.run([ROCADED, "--local", "--socket", daemon.socket])
        case("a second daemon for the same socket is refused", again.returncode == 1 and
             "another" in again.stderr, again.stderr)
        daemon.process.send_signal(signal.SIGTERM)
        case("SIGTERM ends rocaded with status 0", daemon.process.wait() == 0)
        case("rocaded removes its socket", not os.path.exists(daemon.socket))
    with Daemon() as daemon:
        def signaled():
            for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
                daemon.process.send_signal(number)
            return daemon.process.poll() is not None

        case("many signals at once end rocaded with status 0", until(signaled, every_s=0) and
             daemon.process.returncode == 0 and
             not os.path.exists(daemon.socket), str(daemon.process.returncode))
    for options, word in [((), "--local"), (("--local", "--mtu", "1"), "mtu"),
                          (("--local", "--address", "1.2.3"), "1.2.3"),
                          (("--local", "--client-ring", "100"), "100"), (("--nonsense",), "--help"),
                          (("--local", "--socket-mode", "9"), "mode")]:
        wrong = process.run([ROCADED, "--socket", "/nonexistent/rocade.sock"] + list(options))
        case("refused: " + " ".join(options), wrong.returncode != 0 and word in wrong.stderr,
             wrong.stderr)


def start_local():
    done = process.run([RUN, "--start-local", "--library", LIBRARY, "--daemon", ROCADED,
                        "ibv_devices"])
    case("rocade-run --start-local starts a daemon", done.returncode == 0 and
         "rocade0" in done.stdout, done.stdout + done.stderr)
    done = process.run([RUN, "--start-local", "--library", LIBRARY, "--daemon", ROCADED,
                        "sh", "-c", "exit 7"])
    case("rocade-run ends with the exit status of the program", done.returncode == 7)


if __name__ == "__main__":
    sys.exit(run(devices, death, restart, own_dpdk, fork, idle, ends, start_local))
