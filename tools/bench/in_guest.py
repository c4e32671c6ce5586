#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Started by `tools/bench.sh --stage guest`: perftest's six programs between two processes of one
virtual machine (QEMU without KVM, two virtual CPUs), over rdma_rxe and over `rocaded --local`, in
turn. In each boot five rounds with a core for each virtual CPU, then five with both on one core.
Prints Rocade's numbers over rdma_rxe's, and counts the programs that failed."""

import argparse
import contextlib
import json
import os
import re
import shlex
import sys
import time

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
sys.path += [os.path.join(TOP, "test", "interop"), os.path.join(TOP, "test", "e2e", "lib")]
import bench  # noqa: E402
import perftest  # noqa: E402
import states  # noqa: E402
from guest import Guest, missing  # noqa: E402
from perftest import Row, over  # noqa: E402
from process import WaitFailed, run  # noqa: E402

HOST, GUEST = "192.0.2.9", "192.0.2.2"
PORT = 18515
BOOTS = 2
LIMIT_S, QUICK_LIMIT_S = 2400, 600
PROGRAM_S = 60  # a program that takes longer has failed
BOOT_S = 180
MTU = 4200  # of the guest's interface: path MTU 4096 for both
WRONG = re.compile("fail|error|status|unable|couldn't|timed", re.I)
PLACES = ("two cores", "one core")
WAYS = ("rxe", "rocade")
# name: (program, options, field, how often, how often with --quick)
RUNS = {
    "send_lat 64 B": ("ib_send_lat", "-s 64", "typical_us", 2000, 500),
    "write_lat 64 B": ("ib_write_lat", "-s 64", "typical_us", 2000, 500),
    "read_lat 64 B": ("ib_read_lat", "-s 64", "typical_us", 2000, 500),
    "send_bw 64 B": ("ib_send_bw", "-s 64", "million_per_s", 20000, 5000),
    "write_bw 64 KiB": ("ib_write_bw", "-s 65536", "megabytes_per_s", 500, 200),
    "read_bw 64 KiB": ("ib_read_bw", "-s 65536", "megabytes_per_s", 500, 200),
}
# Gate and reach of Rocade's number over rdma_rxe's, on two cores; of a latency less is better.
LIMITS = {"send_lat 64 B": (3, 1), "write_lat 64 B": (3, 1), "read_lat 64 B": (3, 1),
          "send_bw 64 B": (2, 5), "write_bw 64 KiB": (1.5, 3),
          "read_bw 64 KiB": (1.5, 3)}


def pair(words, prefix):
    """Commands for the guest: the program as server and as client. Prints what the client prints,
    then both statuses."""
    program = "%s timeout %d %s -p %d" % (prefix, PROGRAM_S, " ".join(words), PORT)
    return """%(program)s >/tmp/server 2>&1 &
server=$!
until netstat -ltn | grep -q :%(port)d || ! kill -0 $server; do sleep 0.1; done
%(program)s 127.0.0.1 >/tmp/client 2>&1
client=$?
wait $server
echo "ends $? $client"
[ $client = 0 ] || cat /tmp/server
cat /tmp/client
""" % {"program": program.strip(), "port": PORT}


class Booted:
    """A guest with rxe0, and with rocaded."""

    def __init__(self, scratch, cache, build):
        library = os.path.join(build, "drivers", "librocade-verbs.so")
        self.prefix = "rocade-run --library /bin/" + os.path.basename(library)
        self.guest = Guest(scratch, cache, "guest0", "02:00:00:00:00:02", GUEST, [
            os.path.join(build, "app", "rocaded", "rocaded"),
            os.path.join(build, "app", "run", "rocade-run"), library],
            [GUEST + "/24"], hardware=("-smp", "2", "-m", "2048"))

    def begin(self):
        """Returns once both devices are there."""
        guest = self.guest
        if not guest.wait(BOOT_S):
            raise WaitFailed("the guest does not boot: " + guest.state())
        guest.run("ip link set eth0 mtu %d" % MTU)
        gids = guest.until("cd /sys/class/infiniband/rxe0/ports/1/gids; grep c000:0202 [0-9]")
        self.gid = gids.split(":")[0]
        guest.run("rocaded --local >/tmp/rocaded 2>&1 &")
        guest.until("[ -e /run/rocade.sock ] || { cat /tmp/rocaded; false; }", 60)

    def place(self, place):
        """Puts all threads of QEMU on one core, or on all."""
        cores = sorted(os.sched_getaffinity(0))
        for thread in os.listdir("/proc/%d/task" % self.guest.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), cores[:1] if place == "one core" else cores)

    def run(self, way, name, quick):
        """The numbers of a pair, and why it failed, or None."""
        program, options, _, count, few = RUNS[name]
        words = [program, "-F", *options.split(), "-n", str(few if quick else count)]
        words += ["-d", "rxe0", "-x", self.gid] if way == "rxe" else ["-x", "0"]
        status, text = self.guest.run(pair(words, self.prefix if way == "rocade" else ""),
                                      2 * PROGRAM_S + 30)
        ends = re.search(r"^ends (\d+) (\d+)$", text, re.M)
        got = perftest.numbers(text)
        if status is None or ends is None:
            return None, "the guest is silent\n%s\n%s" % (text[-500:], self.guest.state())
        if ends.groups() != ("0", "0") or got is None:
            return None, "server %s, client %s\n%s" % (*ends.groups(), "\n".join(
                line for line in text.splitlines() if WRONG.search(line)) or text[-500:])
        return got, None


class Session:
    """results: {(place, way, name): [numbers, or None for a failure]}."""

    def __init__(self, args, end):
        self.args, self.end = args, end
        self.results, self.boots = {}, 0
        self.errors = sys.stderr

    def boot(self, number):
        rounds = 1 if self.args.quick else 5
        booted = Booted(self.args.scratch, self.args.cache, self.args.build)
        try:
            booted.begin()
            self.boots += 1
            for place in PLACES:
                booted.place(place)
                for turn in range(rounds):
                    for name in RUNS:
                        bench.note("boot %d, %s, round %d: %s" % (number, place, turn + 1, name))
                        if not self.both(booted, place, name):
                            return
        finally:
            booted.guest.stop()

    def both(self, booted, place, name):
        """rdma_rxe and Rocade in turn. Returns False if there is no time for that."""
        if time.monotonic() + 10 > self.end:
            return False
        if self.args.only and not name.startswith(tuple(self.args.only)):
            return True
        for way in WAYS:
            got, why = booted.run(way, name, self.args.quick)
            self.results.setdefault("%s, %s, %s" % (place, way, name), []).append(got)
            if why:
                print("%s, %s, %s: %s" % (place, way, name, why), file=self.errors)
        return True


def values(results, place, way, name):
    field = RUNS[name][2]
    return [got and got.get(field) for got in results.get("%s, %s, %s" % (place, way, name), [])]


def rows(results):
    out = []
    for place in PLACES:
        for name in RUNS:
            gate, reach = LIMITS.get(name, (None, None)) if place == PLACES[0] else (None, None)
            pairs = zip(*(values(results, place, way, name) for way in reversed(WAYS)))
            out.append(Row("%s: %s, Rocade's over rdma_rxe's" % (place, name),
                           [over(*two) for two in pairs], gate, reach, "_lat" in name).report())
    for way in WAYS:
        for name, (_, _, field, _, _) in RUNS.items():
            unit = {"typical_us": "typical, us", "million_per_s": "M/s"}.get(field, "MiB/s")
            out.append(Row("%s: %s, %s, %s" % (PLACES[0], way, name, unit),
                           values(results, PLACES[0], way, name)).report())
    for way in reversed(WAYS):
        taken = [got for name, samples in results.items() if ", %s, " % way in name
                 for got in samples]
        out.append(Row("%s: failed of %d pairs of programs, half of them on one core" % (
            way, len(taken)), [taken.count(None)] if taken else [],
            0 if way == "rocade" else None, less=True).report())
    return out


def host_side():
    run(["ip", "tuntap", "add", "guest0", "mode", "tap"], check=True)
    run(["ip", "link", "set", "guest0", "up"], check=True)
    run(["ip", "addr", "add", HOST + "/24", "dev", "guest0"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--cache", required=True, help="where kernel.py keeps the kernel")
    parser.add_argument("--json", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME")
    args = parser.parse_args()
    why = missing()
    if why:
        print("The guest cannot run: " + why)
        return 1
    begin = time.monotonic()
    limit = QUICK_LIMIT_S if args.quick else LIMIT_S
    report = {"quick": args.quick, "date": time.strftime("%Y-%m-%d"),
              "machine": bench.machine(args.build)}
    session = Session(args, 0)
    # Process prints the command of each program, which is for tests.
    with open(os.path.join(args.scratch, "guest.log"), "w", encoding="utf-8") as log, \
            contextlib.redirect_stdout(log):
        host_side()
        for number in range(1, BOOTS + 1):
            session.end = begin + limit * number / BOOTS - 15
            try:
                session.boot(number)
            except (WaitFailed, OSError) as error:
                print("boot %d: %s" % (number, error), file=sys.stderr)
    bench.note("")
    report["results"], report["boots"] = session.results, session.boots
    report["rows"] = [row for row in rows(session.results)
                      if not args.only or row["verdict"] != "not measured"]
    report["minutes"] = round((time.monotonic() - begin) / 60, 1)
    with open(args.json, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    print("%s, %d cores, %s; %d boots; %.1f minutes; load before %.1f" % (
        report["machine"]["cpu"], report["machine"]["cpus"], report["machine"]["kernel"],
        session.boots, report["minutes"], report["machine"]["load_before"]))
    print(states.cores_text(report["machine"]["cores"]))
    perftest.show(report["rows"], ("in one guest", "median (lowest-highest)"))
    return 1 if session.boots < BOOTS or any(
        row["verdict"] == "not measured" for row in report["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
