#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faulty and hostile clients of `rocaded --local`, beside two correct processes that verify every
byte of their traffic. The correct processes lose nothing, and the daemon frees all resources of the
faulty ones. flow.c and hostile.c have the modes."""

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import BUILD, CLIENTS, STATUS_PROGRAM, Daemon  # noqa: E402
from tap import case, run  # noqa: E402

FLOW = os.path.join(CLIENTS, "test/e2e/flow")
HOSTILE = os.path.join(os.path.abspath(BUILD), "test/e2e/hostile")
LONG = os.environ.get("ROCADE_TEST_LONG") == "1"
SLOW = "sanitize" in BUILD
KILLS = 1000 if LONG else 100
HOSTILE_S = 10 if LONG else 1
SEED = int(os.environ.get("ROCADE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
TIMEOUT_S = 60


def flow(daemon, *args, **more):
    return daemon.start(FLOW, *args, stdin=subprocess.PIPE, **more)


def line(process, timeout_s=TIMEOUT_S):
    """Returns the next line of its output; empty if it ended or the timeout passed."""
    if not select.select([process.stdout], [], [], timeout_s)[0]:
        return ""
    text = b""
    while not text.endswith(b"\n"):
        byte = os.read(process.stdout.fileno(), 1)
        if not byte:
            break
        text += byte
    return text.decode()


def end(process):
    """Ends its input. Returns its exit status, None after a timeout, and the rest of its output."""
    try:
        text, _ = process.communicate("", timeout=TIMEOUT_S)
        return process.returncode, text
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, "hangs: " + process.communicate()[0]


def until(condition, timeout_s=TIMEOUT_S):
    """Returns the first true value of condition(), or its last one after the timeout."""
    stop = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value or time.monotonic() > stop:
            return value
        time.sleep(0.02)


def resources(daemon):
    """Returns the counts of the daemon's resources for clients, and its own memory in KiB."""
    proc = "/proc/%d/" % daemon.process.pid
    with open(proc + "maps", encoding="utf-8") as file:
        maps = file.read().count("memfd:rocade")
    with open(proc + "status", encoding="utf-8") as file:
        fields = dict(text.split(":", 1) for text in file.read().splitlines())
    kib = int(fields["RssAnon"].split()[0])
    status = daemon.status()
    return {"clients": len(status["clients"]), "descriptors": len(os.listdir(proc + "fd")),
            "memories": maps, "qpns_free": status["device"]["qpns_free"]}, kib


class CorrectPair:
    """Two processes that exchange messages, and the daemon's resources when only they are its
    clients."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.pair = flow(daemon, "pair", start_new_session=True)
        line(self.pair)
        self.clients = {c["id"] for c in daemon.status()["clients"]}
        self.resources, self.kib = resources(daemon)

    def unharmed(self, name):
        """Checks that the other clients have left nothing and that the pair has lost no packet."""
        back = until(lambda: resources(self.daemon)[0] == self.resources)
        now, kib = resources(self.daemon)
        case(name + ": the daemon frees all resources", back,
             "%s, before %s" % (now, self.resources))
        # The table of QPNs has 4 MiB, whose pages are used as the QPNs go round.
        case(name + ": the daemon frees its memory", kib < self.kib + (65536 if SLOW else 6144),
             "%d KiB, before %d" % (kib, self.kib))
        mine = [c for c in self.daemon.status()["clients"] if c["id"] in self.clients]
        lost = {name: value for c in mine for name, value in c.items()
                if (name.startswith("drop_") or name in ("rx_full", "refused")) and value != 0}
        case(name + ": the correct clients lose nothing", len(mine) == 2 and not lost and
             mine[0]["tx_packets"] == mine[1]["rx_packets"] and
             mine[1]["tx_packets"] == mine[0]["rx_packets"], str(mine))

    def finish(self, name):
        status, text = end(self.pair)
        print("# %s: %s" % (name, text.strip()))
        case(name + ": the correct clients' data is correct", status == 0 and "messages" in text,
             text)


@contextlib.contextmanager
def correct_pair(name):
    with Daemon() as daemon:
        group = CorrectPair(daemon)
        yield daemon, group
        group.finish(name)
    case(name + ": the daemon ends with status 0", daemon.process.returncode == 0,
         str(daemon.process.returncode))


def kill_one(daemon, way, chance):
    process = flow(daemon, *way, start_new_session=True)
    time.sleep(chance.random() * 0.12)
    if chance.random() < 0.5:
        os.kill(process.pid, signal.SIGKILL)  # of a pair, only the first process at first
        time.sleep(chance.random() * 0.02)
    os.killpg(process.pid, signal.SIGKILL)
    text, _ = process.communicate()
    return "" if process.returncode == -signal.SIGKILL else "%s: %s" % (way, text)


def kills():
    chance = random.Random(SEED)
    print("# ROCADE_SEED=%d" % SEED)
    with correct_pair("kills") as (daemon, group):
        ways = (("pair",), ("churn",), ("churn",), ("idle",), ("many", "50"), ("fatal", "make"))
        failed = [why for why in (kill_one(daemon, chance.choice(ways), chance)
                                  for _ in range(KILLS)) if why]
        case("%d kills: no client failed before" % KILLS, not failed, str(failed))
        group.unharmed("%d kills" % KILLS)


def hostile():
    with correct_pair("hostile") as (daemon, group):
        def start(way):
            return subprocess.Popen([HOSTILE, way, str(HOSTILE_S), str(SEED)], env=daemon.env,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        def wait(way, process):
            asked = subprocess.run([STATUS_PROGRAM, "--json"], env=daemon.env, check=False,
                                   capture_output=True, text=True, timeout=TIMEOUT_S)
            case(way + ": rocade-status still works", asked.returncode == 0 and
                 len(json.loads(asked.stdout)["clients"]) >= 2, asked.stderr)
            try:
                text, _ = process.communicate(timeout=TIMEOUT_S + HOSTILE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                text = "hangs: " + process.communicate()[0]
            case("hostile: " + way, process.returncode == 0, text)
        ways = ("scribble", "liar", "block", "talk", "places", "qpns")
        for way in ways:
            wait(way, start(way))
            group.unharmed(way)
        boast = start("boast")
        until(lambda: len(daemon.status()["clients"]) == 3)
        wait("boast", boast)
        group.unharmed("boast")
        case("the daemon disconnects a client with corrupt rings",
             daemon.status()["device"]["disconnected"] > 0)
        together = [(way, start(way)) for way in ways]
        for way, process in together:
            wait(way + ", all together", process)
        group.unharmed("all together")


def hoarders():
    with correct_pair("hoarders") as (daemon, group):
        many = flow(daemon, "many", "10000", start_new_session=True)
        case("a client can create 10,000 QPs", line(many) == "made 10000\n")
        case("a client cannot create more QPs than its limit",
             line(flow_end(daemon, "many", "20000")) == "made 16383\n")
        many.kill()
        many.communicate()
        group.unharmed("10,000 QPs")
        deaf = flow(daemon, "deaf", start_new_session=True)
        case("a client that does not receive starts", line(deaf) == "running\n")
        case("a client that does not receive loses packets", until(
            lambda: any(c["rx_full"] > 100 for c in daemon.status()["clients"]
                        if c["id"] not in group.clients)), str(daemon.status()))
        case("the sender to a client that does not receive ends", end(deaf)[0] == 0)
        group.unharmed("a client that does not receive")


def flow_end(daemon, *args):
    """Starts a process whose input has ended. Its output is still to be read."""
    process = flow(daemon, *args, start_new_session=True)
    process.stdin.close()
    process.stdin = None
    return process


def restart():
    """A client notices the end of the daemon whatever it does, and does not hang."""
    for how in (signal.SIGKILL, signal.SIGTERM):
        with Daemon() as daemon:
            clients = [(way, flow(daemon, "fatal", way, start_new_session=True))
                       for way in ("event", "channel", "poll", "post", "make")]
            for _, process in clients:
                line(process)
            daemon.process.send_signal(how)
            heard = [(way, line(process)) for way, process in clients]
            daemon.serve()
            for (way, process), (_, text) in zip(clients, heard):
                status, rest = end(process)
                case("%s to the daemon: a client in mode '%s' notices" % (how.name, way),
                     text == "fatal\n" and status == 0 and "open again" in rest,
                     "%s: %s%s" % (status, text, rest))


def cpu_s(pid):
    """Returns the CPU time of all threads of a process; the kernel counts in nanoseconds."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, thread), encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def idle():
    with Daemon() as daemon:
        client = flow(daemon, "idle", start_new_session=True)
        case("an idle client starts", line(client) == "running\n")
        pids = {"client": client.pid, "daemon": daemon.process.pid}
        time.sleep(0.5)
        before = {name: cpu_s(pid) for name, pid in pids.items()}
        start = time.monotonic()
        time.sleep(3)
        for name, pid in pids.items():
            share = (cpu_s(pid) - before[name]) / (time.monotonic() - start)
            print("# idle %s: %.3f %% of a core" % (name, 100 * share))
            case("an idle %s takes less than 1 %% of a core" % name, share < 0.01, "%.4f" % share)
        case("an idle client ends", end(client)[0] == 0)


def start_up():
    with Daemon() as daemon:
        times = []
        bound_s = 1.0 if SLOW else 0.05
        # The minimum is the time without other load on the core.
        while len(times) < 20 or (min(times) >= bound_s and len(times) < 200):
            start = time.monotonic()
            daemon.run("ibv_devinfo")
            times.append(time.monotonic() - start)
        times.sort()
        print("# rocade-run ibv_devinfo: %.1f ms, median %.1f ms" % (
            1e3 * times[0], 1e3 * times[len(times) // 2]))
        case("rocade-run ibv_devinfo takes less than 50 ms", times[0] < bound_s, str(times))


if __name__ == "__main__":
    sys.exit(run(kills, hostile, hoarders, restart, idle, start_up))
