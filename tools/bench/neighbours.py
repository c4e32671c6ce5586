#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Started by `tools/bench.sh --stage neighbours`: unchanged programs of other projects as clients
of `rocaded --local`. perftest's six programs between two processes: idle, beside two busy loops,
everything on one core, four pairs at once, and with `-e` (events), beside a bare ping-pong over a
futex. All-reduce of Open MPI over UCX and Rocade, beside Open MPI's own `vader` (shared memory) and
`tcp`. Prints each number with its gate."""

import argparse
import contextlib
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import bench
import perftest
import states
from neighbours_table import RANKS, SIZES, Table
from runners import Bench, Failed, stop

HERE = os.path.dirname(os.path.realpath(__file__))
PORT = 18515
SMALL, LARGE = 64, 65536
SAMPLE_S = 0.5  # how often the clients' counters are read
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
TRANSPORTS = {
    "rocade": ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib", "-x",
               "UCX_TLS=rc_verbs,ud_verbs:aux,self"],
    "tcp": ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca",
            "btl_tcp_if_include", "lo"],
    "vader": ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"]}


@dataclasses.dataclass
class Timing:
    """trips: round trips of a latency in the scenes where nothing else runs; a tenth elsewhere."""
    limit_s: int
    rounds: int
    seconds: int
    trips: int
    mpi_rounds: int
    mpi_seconds: float
    resend_runs: int


FULL = Timing(480, 3, 2, 100000, 2, 1.5, 10)
QUICK = Timing(120, 1, 1, 20000, 1, 0.3, 2)


@dataclasses.dataclass
class Scene:
    """How the programs run. cpus: the only ones of the daemon and the programs, by taskset."""
    name: str
    options: tuple = ()
    loops: int = 0
    cpus: str = None
    pairs: int = 1
    large: bool = False
    programs: tuple = perftest.PROGRAMS
    percentiles: bool = True  # else the latencies have mean and rate only, in a fixed time


SCENES = [
    Scene("idle", large=True),
    Scene("busy", loops=2, percentiles=False),
    Scene("one core", cpus="0"),
    Scene("four pairs", pairs=4),
    Scene("events", options=("-e",), large=True,
          programs=tuple(p for p in perftest.PROGRAMS if "write" not in p)),  # perftest has none
]


class Counters(threading.Thread):
    """Reads the clients' counters through rocade-status now and then while programs run. What a
    client counts after the last reading is missed."""

    def __init__(self, read):
        super().__init__(daemon=True)
        self.read, self.done = read, threading.Event()
        self.resent = {}  # {client: packets}

    def take(self):
        for client in self.read().get("clients", []):
            if "engine" in client:
                self.resent[client["id"]] = client["engine"]["retransmitted"]

    def run(self):
        while not self.done.wait(SAMPLE_S):
            self.take()

    def end(self):
        self.done.set()
        self.join()
        return sum(self.resent.values())


class Neighbours(Bench):
    """Samples of the programs. Each ends within limit_s, or counts as failed."""

    def __init__(self, build, scratch):
        super().__init__(build, scratch)
        self.status_program = os.path.join(build, "app", "status", "rocade-status")
        self.socket = None
        self.daemon = None
        self.futex_program = os.path.join(scratch, "futex_pingpong")
        self.allreduce_program = os.path.join(scratch, "allreduce")
        for compiler, program in (("cc", self.futex_program), ("mpicc", self.allreduce_program)):
            source = os.path.join(HERE, os.path.basename(program) + ".c")
            made = subprocess.run([compiler, "-O2", "-o", program, source], check=False,
                                  stderr=subprocess.PIPE, text=True)
            if made.returncode != 0:
                raise Failed("%s cannot build %s: %s" % (compiler, source, made.stderr.strip()))

    @contextlib.contextmanager
    def served(self, cpus=None):
        """A daemon for what is measured inside."""
        self.number += 1
        self.socket = self.path("daemon.sock")
        self.daemon = self.start("daemon", on(cpus) + [self.daemon_program, "--local", "--socket",
                                                       self.socket])
        try:
            self.await_path(self.socket, self.daemon, "daemon")
            yield
        finally:
            stop(self.daemon)

    def client(self, command, cpus=None):
        return on(cpus) + [self.run_program, "--socket", self.socket] + list(command)

    def status(self):
        done = subprocess.run([self.status_program, "--socket", self.socket, "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                              timeout=30)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return {}

    def perftest(self, program, options, scene, limit_s):
        """Pairs of a program. Returns the numbers of each client, without those that failed, the
        packets sent again, and the failures."""
        self.number += 1
        words = [program, "-F", "-x", "0"] + list(options) + list(scene.options)
        pairs = range(scene.pairs)
        counters = Counters(self.status)
        end = time.monotonic() + limit_s
        running = {}
        try:
            for role, more in (("server", []), ("client", ["127.0.0.1"])):
                for i in pairs:
                    name = "%s%d" % (role, i)
                    running[name] = self.start(name, self.client(
                        words + ["-p", str(PORT + i)] + more, scene.cpus))
                if role == "server":
                    await_listeners([PORT + i for i in pairs], running.values(), end)
            if scene.name != "idle":
                counters.start()
            for process in running.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.01, end - time.monotonic()))
        finally:
            for process in running.values():
                stop(process)
        resent = counters.end() if counters.is_alive() else None
        found = []
        for i in pairs:
            got = perftest.numbers(self.log("client%d" % i))
            if got and not any(running["%s%d" % (role, i)].returncode
                               for role in ("server", "client")):
                found.append(got)
            else:
                bench.note("")
                print("%s, %s: failed\n%s" % (scene.name, " ".join(words), "".join(
                    self.log("%s%d" % (role, i))[-500:] for role in ("server", "client"))),
                      file=sys.stderr)
        return found, resent, scene.pairs - len(found)

    def futex(self, seconds, cpus=None):
        done = subprocess.run(on(cpus) + [self.futex_program, str(seconds)], check=True,
                              stdout=subprocess.PIPE, text=True, timeout=seconds + 30)
        words = done.stdout.split()
        return dict(zip(words[::2], map(float, words[1::2])))

    def all_reduce(self, transport, ranks, seconds, sizes, limit_s):
        """{size: microseconds}, the packets sent again and those dropped of a run. Over Rocade each
        run has a new daemon."""
        command = MPIRUN + TRANSPORTS[transport] + ["-np", str(ranks)]
        program = [self.allreduce_program, str(seconds)] + list(map(str, sizes))
        if transport != "rocade":
            return self.mpi(command + program, limit_s), None, None
        with self.served():
            # mpirun itself is no client.
            name = [self.run_program, "--socket", self.socket]
            return self.mpi(command + name + program, limit_s, True)

    def mpi(self, command, limit_s, counted=False):
        self.number += 1
        process = self.start("mpirun", command, stdin=subprocess.PIPE, text=True)
        end = time.monotonic() + limit_s
        try:
            while "measured" not in self.log("mpirun"):
                if process.poll() is not None or time.monotonic() > end:
                    raise Failed("%s: %s" % (" ".join(command), self.why("mpirun")))
                time.sleep(0.05)
            state = self.status() if counted else {}
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(1, end - time.monotonic()))
        finally:
            stop(process)
        if process.returncode != 0:
            raise Failed("%s: status %s" % (" ".join(command), process.returncode))
        times = {int(size): float(us) for size, us in re.findall(
            r"^(\d+) bytes: ([\d.]+) us$", self.log("mpirun"), re.M)}
        if not counted:
            return times
        clients = state.get("clients", [])
        if not clients or not all("engine" in client for client in clients):
            raise Failed("the clients do not report their counters")
        resent = sum(client["engine"]["retransmitted"] for client in clients)
        return times, resent, dropped(clients)

    def idle_part(self, seconds):
        """The part of a core that the daemon takes while a client has its device open and does
        nothing."""
        self.number += 1
        client = self.start("idle", self.client(["ibv_asyncwatch"]))
        try:
            time.sleep(1)
            if client.poll() is not None:
                raise Failed("ibv_asyncwatch: " + self.why("idle"))
            before = run_ns(self.daemon.pid)
            time.sleep(seconds)
            return (run_ns(self.daemon.pid) - before) / 1e9 / seconds
        finally:
            stop(client)


def on(cpus):
    return ["taskset", "-c", cpus] if cpus else []


def run_ns(pid):
    """Nanoseconds that the threads of a process have run."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, thread), encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def dropped(clients):
    """{reason: packets} of all clients, of the daemon and of their engines."""
    counts = {}
    for client in clients:
        for where in (client, client["engine"]):
            for name, count in where.items():
                if name.startswith("drop_") and count:
                    counts[name] = counts.get(name, 0) + count
    return counts


def listening():
    """The TCP ports with a listener in this network namespace."""
    found = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(name, encoding="ascii") as file:
            for fields in map(str.split, file.readlines()[1:]):
                if fields[3] == "0A":
                    found.add(int(fields[1].rsplit(":", 1)[1], 16))
    return found


def await_listeners(ports, processes, end):
    """A connection would not do: the server would take it for its client's."""
    while not listening() >= set(ports) and time.monotonic() < end and \
            all(process.poll() is None for process in processes):
        time.sleep(0.02)


@contextlib.contextmanager
def busy_loops(count):
    """Each in a session of its own, so that a kernel that shares the cores among sessions counts
    each as one."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
             for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


# ---- What is measured, in turn ----

class Session:
    """results: {name: [a sample for each round]}. failures: {scene: programs that failed}."""

    def __init__(self, neighbours, timing, end, only=()):
        self.neighbours, self.timing, self.end, self.only = neighbours, timing, end, only
        self.results, self.failures, self.runs = {}, {}, 0

    def wanted(self, name):
        return not self.only or name.startswith(tuple(self.only))

    def late(self, seconds=0):
        return time.monotonic() + seconds > self.end

    def keep(self, name, got):
        self.results.setdefault(name, []).append(got)

    def limit(self, most=30):
        return max(1, min(most, self.end - time.monotonic()))

    def program(self, scene, program, size):
        """One sample of a program: the mean of its pairs, and what all sent again."""
        timing, latency = self.timing, program.endswith("_lat")
        # perftest measures percentiles, and bandwidth with events, in a number of messages only.
        by_number = scene.percentiles if latency else "-e" in scene.options
        number = timing.trips // (1 if scene.name == "idle" or size < LARGE and not latency else 10)
        options = ["-s", str(size)] + (["-n", str(number)] if by_number else
                                       ["-D", str(timing.seconds), "-f", "0"])
        found, resent, failed = self.neighbours.perftest(program, options, scene, self.limit())
        self.runs += scene.pairs
        self.failures[scene.name] = self.failures.get(scene.name, 0) + failed
        got = {"resent": resent}
        for field in set().union(*found):
            taken = [one[field] for one in found if field in one]
            got[field] = sum(taken) / len(taken)
        self.keep("%s %s %d" % (scene.name, program, size), got)

    def scene(self, scene):
        neighbours = self.neighbours
        with neighbours.served(scene.cpus), busy_loops(scene.loops):
            if scene.pairs == 1:
                self.keep(scene.name + " futex", neighbours.futex(self.timing.seconds, scene.cpus))
            for program in scene.programs:
                sizes = (SMALL, LARGE) if scene.large and program.endswith("_bw") else (SMALL,)
                for size in sizes:
                    if self.late():
                        return
                    bench.note("%s: %s %d" % (scene.name, program, size))
                    self.program(scene, program, size)

    def idle_client(self):
        with self.neighbours.served():
            self.keep("idle client", {"part": self.neighbours.idle_part(2 * self.timing.seconds)})

    def all_reduce(self, name, transport, ranks, sizes):
        bench.note("%s: %s, %d ranks" % (name, transport, ranks))
        self.failures.setdefault("all-reduce", 0)
        try:
            times, resent, drops = self.neighbours.all_reduce(
                transport, ranks, self.timing.mpi_seconds, sizes, self.limit(60))
            self.keep(name, {"us": times, "resent": resent, "dropped": drops})
        except (Failed, OSError, subprocess.TimeoutExpired) as error:
            print("all-reduce: %s" % error, file=sys.stderr)
            self.keep(name, None)
            self.failures["all-reduce"] += 1

    def walk(self):
        timing = self.timing
        if self.wanted("idle client"):
            self.idle_client()
        for number in range(max(timing.rounds, timing.mpi_rounds)):
            if number < timing.mpi_rounds and self.wanted("all-reduce"):
                for ranks in RANKS:
                    for transport in TRANSPORTS:
                        if not self.late(5):
                            self.all_reduce("all-reduce %s %d" % (transport, ranks), transport,
                                            ranks, SIZES)
            if number == 0 and self.wanted("resends"):
                for _ in range(timing.resend_runs):
                    if not self.late(5):
                        self.all_reduce("resends", "rocade", 3, SIZES)
            if number < timing.rounds:
                for scene in SCENES:
                    if self.wanted(scene.name) and not self.late(3):
                        self.scene(scene)
        bench.note("")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME")
    args = parser.parse_args()
    missing = [p for p in (*perftest.PROGRAMS, "ibv_asyncwatch", "mpirun", "mpicc", "cc")
               if not shutil.which(p)]
    if missing:
        print("Not installed: %s (tools/install-deps.sh --bench)" % ", ".join(missing))
        return 1
    timing = QUICK if args.quick else FULL
    begin = time.monotonic()
    report = {"quick": args.quick, "date": time.strftime("%Y-%m-%d"),
              "machine": bench.machine(args.build)}
    interference = states.Interference()
    session = Session(Neighbours(args.build, args.scratch), timing, begin + timing.limit_s - 5,
                      args.only or ())
    session.walk()
    report["results"], report["failures"] = session.results, session.failures
    report["interference"] = interference.part()
    report["rows"] = [row for row in Table(session.results, session.failures).make()
                      if not args.only or row["verdict"] != "not measured"]
    report["minutes"] = round((time.monotonic() - begin) / 60, 1)
    with open(args.json, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    print("%s, %d cores, %s; %.1f minutes; load before %.1f" % (
        report["machine"]["cpu"], report["machine"]["cpus"], report["machine"]["kernel"],
        report["minutes"], report["machine"]["load_before"]))
    print(states.cores_text(report["machine"]["cores"]))
    perftest.show(report["rows"], ("over rocaded --local", "median (lowest-highest)"))
    return 1 if any(row["verdict"] == "not measured" for row in report["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
