#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""redis-server, redis-cli and redis-benchmark, which know TCP only, over rsockets through `rocaded
--local`. librspreload.so of librdmacm turns their sockets into rsockets, and where it does not know
epoll, epoll_poll.so makes epoll of poll. The daemon's counters prove that Rocade carried the bytes:
librspreload falls back to TCP. The long run also measures the same programs over TCP."""

import csv
import glob
import os
import re
import secrets
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, Daemon, wait_for_port  # noqa: E402
from process import Process, until  # noqa: E402
from rows import row  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import LONG  # noqa: E402

ADDRESS = "192.0.2.1"
RSOCKETS = glob.glob("/usr/lib/*/rsocket/librspreload.so")
EPOLL_POLL = os.path.join(CLIENTS, "test/e2e/epoll_poll.so")
SIZE, COUNT = 4096, 20000 if LONG else 2000
VALUE = 1 << 20
LIMIT_S = 150


def knows_epoll(library):
    """Returns whether the library replaces epoll itself, by repoll_* of rdma-core 61."""
    symbols = process.run(["nm", "-D", "--defined-only", library]).stdout
    return re.search(r" [TW] epoll_ctl(@|$)", symbols, re.M) is not None


def preload():
    return ":".join([EPOLL_POLL] * (not all(map(knows_epoll, RSOCKETS))) + RSOCKETS)


def server(address):
    return ["redis-server", "--bind", address, "--port", "6390", "--save", "", "--appendonly", "no",
            "--protected-mode", "no"]


def client(program, address, *options):
    return [program, "-h", address, "-p", "6390", *options]


def benchmark(address):
    return client("redis-benchmark", address, "-c", "4", "-n", str(COUNT), "-d", str(SIZE), "-t", "set,get",
                  "--csv")


def results(text):
    """Returns what redis-benchmark has measured: requests a second and the median in milliseconds."""
    rows = [line for line in text.splitlines() if line.startswith('"')]
    return {r["test"]: (float(r["rps"]), float(r["p50_latency_ms"])) for r in csv.DictReader(rows)}


def value(daemon):
    """A value is stored by one client and read by another."""
    text = secrets.token_hex(VALUE // 2)
    store = daemon.start(*client("redis-cli", ADDRESS, "-x", "set", "value"), feed=True)
    store.say(text)
    stored, said = store.finish()
    got = daemon.run(*client("redis-cli", ADDRESS, "get", "value"))
    case("redis-cli: a value of 1 MiB comes back unchanged", stored == 0 and got.stdout.strip() == text,
         "%s %s\n%d characters, %s" % (stored, said[:200], len(got.stdout), got.stderr))


def over_rsockets(folder):
    with Daemon() as daemon:
        daemon.env["LD_PRELOAD"] = preload()
        redis = daemon.start(*server(ADDRESS), cwd=folder)
        daemon.wait_listener(redis)
        value(daemon)
        before, start = daemon.moved(), time.monotonic()
        done = daemon.run(*benchmark(ADDRESS), timeout_s=LIMIT_S)
        took = time.monotonic() - start
        moved = daemon.moved() - before
        found = results(done.stdout)
        case("redis-benchmark: Rocade carries the bytes", done.returncode == 0 and
             moved >= 2 * COUNT * SIZE and set(found) == {"SET", "GET"},
             "%d of %d bytes\n%s%s" % (moved, 2 * COUNT * SIZE, done.stdout, done.stderr))
        hits = re.search(r"keyspace_hits:(\d+)\s+keyspace_misses:0\s", daemon.run(
            *client("redis-cli", ADDRESS, "info", "stats")).stdout)
        case("redis-benchmark: every GET has found its value", hits and int(hits[1]) == COUNT + 1, str(hits))
        # Not by SIGTERM: rpoll() of rdma-core 44 does not return any more after a signal.
        last = daemon.start(*client("redis-cli", ADDRESS, "shutdown", "nosave"))
        status, text = redis.finish()
        last.kill()  # rsockets do not tell it of the server's end
        case("redis-server ends, and nothing is left", status == 0 and until(daemon.idle),
             "%s\n%s\n%s" % (status, text, daemon.status()))
        row("`redis-benchmark -t set,get -d 4096 -c 4`", "redis-server", "rsockets, one host", took, moved,
            "value of 1 MiB compared")
        return found


def over_tcp(folder):
    redis = Process(server("127.0.0.1"), cwd=folder)
    wait_for_port(6390, redis, 30)
    found = results(process.run(benchmark("127.0.0.1"), LIMIT_S, check=True).stdout)
    redis.kill()
    return found


def redis_programs():
    with tempfile.TemporaryDirectory() as folder:
        measured = [("rsockets over Rocade", over_rsockets(folder))]
        if LONG:
            measured.append(("TCP, loopback", over_tcp(folder)))
    for name, found in measured:
        for test, (rate, median) in found.items():
            print("# %s, %s: %.0f a second, median %.3f ms" % (name, test, rate, median))


if __name__ == "__main__":
    sys.exit(run(redis_programs))
