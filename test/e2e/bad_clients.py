#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faulty and hostile clients of `rocaded --local`, beside two correct processes that verify every
byte of their traffic. The correct processes lose nothing, and the daemon frees all resources of the
faulty ones. flow.c and hostile.c have the modes."""

import contextlib
import json
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import limit  # noqa: E402
import process  # noqa: E402
from daemon import BUILD, CLIENTS, SANITIZED, STATUS_PROGRAM, Daemon, as_user  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run, skip  # noqa: E402

FLOW = os.path.join(CLIENTS, "test/e2e/flow")
HOSTILE = os.path.join(os.path.abspath(BUILD), "test/e2e/hostile")
LONG = os.environ.get("ROCADE_TEST_LONG") == "1"
KILLS = 1000 if LONG else 100
HOSTILE_S = 10 if LONG else 1
SEED = int(os.environ.get("ROCADE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
# Each of 10,000 QPs is a request to the daemon, which takes its turn among all busy processes.
TIMEOUT_S = 240


def flow(daemon, *args):
    """Starts a process that runs until its input ends."""
    return daemon.start(FLOW, *args, feed=True)


def open_descriptors(daemon):
    """Returns how many descriptors the daemon has open when none is being closed: it closes those
    of rocade-status some time after that has ended."""
    folder = "/proc/%d/fd" % daemon.process.pid
    counts = []

    def settled():
        counts.append(len(os.listdir(folder)))
        return len(counts) >= 3 and len(set(counts[-3:])) == 1
    until(settled)
    return counts[-1]


def resources(daemon):
    """Returns the counts of the daemon's resources for clients, and its own memory in KiB."""
    proc = "/proc/%d/" % daemon.process.pid
    with open(proc + "maps", encoding="utf-8") as file:
        maps = file.read().count("memfd:rocade")
    with open(proc + "status", encoding="utf-8") as file:
        fields = dict(text.split(":", 1) for text in file.read().splitlines())
    kib = int(fields["RssAnon"].split()[0])
    descriptors = open_descriptors(daemon)
    status = daemon.status()
    held = {kind: status["limits"][kind]["used"] for kind in ("memory_kib", "descriptors")}
    return {"clients": len(status["clients"]), "descriptors": descriptors,
            "memories": maps, "qpns_free": status["device"]["qpns_free"], "held": held}, kib


class CorrectPair:
    """Two processes that exchange messages, and the daemon's resources when only they are its
    clients. All their packets cross the daemon, which the faulty clients are to disturb:
    partners.py has hostile clients that share memory with correct ones."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.pair = daemon.start("env", "ROCADE_OFF=pairs", FLOW, "pair", feed=True)
        self.pair.wait_line()
        self.clients = {c["id"] for c in daemon.status()["clients"]}
        self.resources, self.kib = resources(daemon)

    def unharmed(self, name):
        """Checks that the other clients have left nothing and that the pair has lost no packet."""
        back = until(lambda: resources(self.daemon)[0] == self.resources)
        now, kib = resources(self.daemon)
        case(name + ": the daemon frees all resources", back,
             "%s, before %s" % (now, self.resources))
        # The table of QPNs has 8 MiB, whose pages are used as the QPNs go round.
        case(name + ": the daemon frees its memory", kib < self.kib + (65536 if SANITIZED else 12288),
             "%d KiB, before %d" % (kib, self.kib))
        mine = [c for c in self.daemon.status()["clients"] if c["id"] in self.clients]
        lost = {name: value for c in mine for name, value in c.items()
                if (name.startswith("drop_") or name in ("rx_full", "refused")) and value != 0}
        case(name + ": the correct clients lose nothing", len(mine) == 2 and not lost and
             mine[0]["rx_packets"] > 0 and
             mine[0]["tx_packets"] == mine[1]["rx_packets"] and
             mine[1]["tx_packets"] == mine[0]["rx_packets"], str(mine))

    def finish(self, name):
        status, text = self.pair.finish()
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
    client = flow(daemon, *way)
    limit.let_run(chance.random() * 0.12)  # the moment of death, at random
    if chance.random() < 0.5:
        client.send_signal(signal.SIGKILL)  # of a pair, only the first process at first
        limit.let_run(chance.random() * 0.02)
    text = client.kill()
    return "" if client.returncode == -signal.SIGKILL else "%s: %s" % (way, text)


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
            return Process([HOSTILE, way, HOSTILE_S, SEED], env=daemon.env)

        def wait(way, client):
            asked = process.run([STATUS_PROGRAM, "--json"], env=daemon.env)
            case(way + ": rocade-status still works", asked.returncode == 0 and
                 len(json.loads(asked.stdout)["clients"]) >= 2, asked.stderr)
            status, text = client.finish(TIMEOUT_S + HOSTILE_S)
            case("hostile: " + way, status == 0, text)
        ways = ("scribble", "liar", "block", "talk", "linger", "places", "qpns")
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
        for way, client in together:
            wait(way + ", all together", client)
        group.unharmed("all together")


def answer_ms(daemon):
    """Returns how long the daemon takes for its state, and the state."""
    start = time.monotonic()
    state = daemon.status()
    return 1e3 * (time.monotonic() - start), state


def another_user():
    """Clients of another user, who may connect, but not keep others from the daemon."""
    if os.getuid() != 0:
        skip("clients of another user: needs root")
        return
    with Daemon("--socket-mode", "666") as daemon:
        pair = flow(daemon, "pair")
        pair.wait_line()

        def start(way, **more):
            return Process([*as_user(65534), HOSTILE, way, 600, SEED], env=daemon.env, **more)
        crowd = start("crowd", feed=True)
        case("a crowd of another user does not get all places",
             crowd.wait_line("places", TIMEOUT_S) == "places 144\n", crowd.text)
        late = flow(daemon, "idle")
        case("a client attaches beside the crowd", late.wait_line() == "running\n", late.text)
        users = {u["uid"]: u for u in daemon.status()["users"]}
        case("the daemon shows what the crowd holds", users[65534]["clients"] == 144 and
             users[65534]["refused"] > 0 and users[0]["clients"] == 3, str(users))
        case("the crowd ends", crowd.finish(TIMEOUT_S)[0] == 0, crowd.text)
        flood = start("flood")
        case("the flood is parked", until(lambda: daemon.status()["device"]["parked"] > 0))
        times = sorted(answer_ms(daemon)[0] for _ in range(20))
        print("# beside a flood of requests: status in %.1f ms, worst %.1f ms, of %d" % (
            times[len(times) // 2], times[-1], len(times)))
        flood.kill()
        late.finish()
        status, text = pair.finish()
        case("the correct clients' data is correct beside another user", status == 0, text)


def hoarders():
    with correct_pair("hoarders") as (daemon, group):
        many = flow(daemon, "many", "10000")
        case("a client can create 10,000 QPs",
             many.wait_line("", TIMEOUT_S) == "made 10000\n", many.text)
        most = daemon.start(FLOW, "many", "20000")
        case("a client cannot create more QPs than its limit",
             most.wait_line("", TIMEOUT_S) == "made 16383\n", most.text)
        most.wait()
        many.kill()
        group.unharmed("10,000 QPs")
        deaf = flow(daemon, "deaf")
        case("a client that does not receive starts", deaf.wait_line() == "running\n", deaf.text)
        case("a client that does not receive loses packets", until(
            lambda: any(c["rx_full"] > 100 for c in daemon.status()["clients"]
                        if c["id"] not in group.clients)), str(daemon.status()))
        case("the sender to a client that does not receive ends", deaf.finish()[0] == 0)
        group.unharmed("a client that does not receive")


def restart():
    """A client notices the end of the daemon whatever it does, and does not hang."""
    for how in (signal.SIGKILL, signal.SIGTERM):
        with Daemon() as daemon:
            clients = [(way, flow(daemon, "fatal", way))
                       for way in ("event", "channel", "poll", "post", "make")]
            for _, client in clients:
                client.wait_line()
            daemon.process.send_signal(how)
            heard = [client.wait_line() for _, client in clients]
            daemon.serve()
            for (way, client), line in zip(clients, heard):
                status, text = client.finish()
                case("%s to the daemon: a client in mode '%s' notices" % (how.name, way),
                     line == "fatal\n" and status == 0 and "open again" in text,
                     "%s: %s" % (status, text))


def stopped():
    """A client that makes no request notices by its packets that the daemon is stopped."""
    with Daemon() as daemon:
        client = flow(daemon, "fatal", "post")
        client.wait_line()
        daemon.process.send_signal(signal.SIGSTOP)
        line = client.wait_line()
        daemon.process.send_signal(signal.SIGKILL)
        daemon.serve()
        status, text = client.finish()
        case("SIGSTOP to the daemon: a client that sends notices",
             line == "fatal\n" and status == 0 and "open again" in text, "%s: %s" % (status, text))


def idle():
    with Daemon() as daemon:
        client = flow(daemon, "idle")
        case("an idle client starts", client.wait_line() == "running\n", client.text)
        for name, pid in (("client", client.pid), ("daemon", daemon.process.pid)):
            case("an idle %s does not wake up" % name, limit.rests(pid), limit.look(pid))
        case("an idle client ends", client.finish()[0] == 0)


if __name__ == "__main__":
    sys.exit(run(kills, hostile, another_user, hoarders, restart, stopped, idle))
