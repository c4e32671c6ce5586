#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients that exchange packets directly, by memory that they share. A hostile one does whatever it can
with its part of that memory, beside a correct pair of processes that verifies every byte and goes on.
One of two correct processes is stopped for a while, which costs no connection, or killed, which ends
the other's connection soon. A hundred that are killed leave nothing. partner.c has the correct
processes, hostile_pair_ways.c the ways of the hostile one."""

import json
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import BUILD, CLIENTS, STATUS_PROGRAM, Daemon, as_user  # noqa: E402
from limit import let_run, within  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run, skip  # noqa: E402

PARTNER = os.path.join(CLIENTS, "test/e2e/partner")
HOSTILE = os.path.join(os.path.abspath(BUILD), "test/e2e/hostile")
LONG = os.environ.get("ROCADE_TEST_LONG") == "1"
SEED = int(os.environ.get("ROCADE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
HOSTILE_S = 5 if LONG else 0.3
STOP_S = 30 if LONG else 3
PAIRS = 50
VALID = 16    # messages of the way `valid`
PROGRESS = 1000 # messages that the correct processes exchange meanwhile, at least
MANY = 100

# Each way, and whether the victim has counted what it should have. A function gets the
# increase of the counters of its engine, how many messages came from the hostile client, and the
# number of its pairs at the end: 1 with its friend, and 1 with the hostile client.
WAYS = {
    "valid": lambda c, met, pairs: met == VALID and pairs == 2,
    "stamps": lambda c, met, pairs: met == 0 and pairs == 2 and c["pair_malformed"] == 0 and
              c["pair_not_connected"] == 0,
    "long": lambda c, met, pairs: met == 0 and c["pair_malformed"] > MANY,
    "short": lambda c, met, pairs: met == 0 and c["pair_not_connected"] > MANY and dropped(c) > MANY,
    "kinds": lambda c, met, pairs: met == 0 and c["pair_malformed"] > MANY,
    "connected": lambda c, met, pairs: c["pair_not_connected"] > MANY,
    "others": lambda c, met, pairs: met == 0 and c["pair_not_connected"] > MANY,
    "datagrams": lambda c, met, pairs: met == 0 and c["pair_not_connected"] > MANY and
                 c["drop_qp_type"] > MANY,
    "cons-ahead": lambda c, met, pairs: pairs == 1,
    "cons-back": lambda c, met, pairs: pairs == 1,
    "scribble": lambda c, met, pairs: met == 0 and pairs == 1,
    "changing": lambda c, met, pairs: dropped(c) + c["pair_malformed"] > 0,
    "changing-long": lambda c, met, pairs: c["pair_rx_placed"] > MANY and dropped(c) > MANY,
    "asleep": lambda c, met, pairs: c["pair_wakeups"] > MANY,
    "wakes": lambda c, met, pairs: c["pair_wakeups"] > MANY and pairs == 2,
    "closed": lambda c, met, pairs: c["pair_wakeups"] > MANY and pairs == 2,
    "deaf": lambda c, met, pairs: lost(c) > 0,
    # The victim waits for its answers for a second only. Its QPs may fail first.
    "trickle": lambda c, met, pairs: lost(c) + c["retries_exceeded"] > 0,
    "halves": lambda c, met, pairs: pairs == 2,
    "flood": lambda c, met, pairs: c["drop_qkey"] > MANY,
    "fork": lambda c, met, pairs: pairs == 1,
    "holes": lambda c, met, pairs: pairs == 2,
    "writable": lambda c, met, pairs: pairs == 2,
    "other-user": lambda c, met, pairs: pairs == 1,
    "half": lambda c, met, pairs: pairs == 1,
    "emptied": lambda c, met, pairs: pairs == 1,
    "unsealed": lambda c, met, pairs: pairs == 1,
    "lies": lambda c, met, pairs: True,
    "failing": lambda c, met, pairs: True,
}


def dropped(counters):
    """Returns how many packets the engine has dropped."""
    return sum(value for name, value in counters.items() if name.startswith("drop_"))


def lost(counters):
    """Returns how many packets were lost because the hostile client did not take its own. An engine that
    does not run for a moment may itself give them up before the pair does."""
    return counters["pair_full"] + counters["tx_given_up"]


class Victim:
    """The two correct processes of partner.c."""

    def __init__(self, daemon, **env):
        self.daemon = daemon
        words = ["env"] + ["%s=%s" % row for row in env.items()] if env else []
        self.process = daemon.start(*words, PARTNER, feed=True)
        self.friend, *self.qpns = self.process.wait_line("running").split()[1:]

    def ask(self, command):
        """Returns the words of the answer, without the first one."""
        self.process.say(command + "\n")
        first = {"meet": "met", "send": "sending", "count": "count", "part": "parted"}[
            command.split()[0]]
        return self.process.wait_line(first).split()[1:]

    def counts(self):
        """Returns how many messages came back from the friend, came from the hostile client, and
        came to QPs that have no peer."""
        return [int(word) for word in self.ask("count")]

    def moves(self, messages=PROGRESS, limit_s=60):
        """Waits until this number of messages has come back. Returns whether it has."""
        before = self.counts()[0]
        return until(lambda: self.counts()[0] >= before + messages, limit_s, 0.005)

    def row(self):
        """Returns what the daemon knows of the first process, and its own counters, when it has
        answered."""
        def answered():
            done = process.run([STATUS_PROGRAM, "--json"], env=self.daemon.env)
            rows = json.loads(done.stdout)["clients"] if done.returncode == 0 else []
            mine = [c for c in rows if c["pid"] == self.process.pid and c["answered"]]
            return mine[0] if mine else None
        return until(answered)

    def failure(self):
        """Waits for the end of the connection. Returns the time since the last completion in ms, and
        the status of the completion."""
        ms, status = self.process.wait_line("failed").strip().split(" ", 2)[1:]
        return int(ms), status


def held(daemon):
    """Returns what all users hold, and how many clients there are."""
    state = daemon.status()
    return {"clients": len(state["clients"]), **{
        kind: state["limits"][kind]["used"] for kind in ("qps", "memory_kib", "descriptors")}}


def descriptors(daemon):
    return len(os.listdir("/proc/%d/fd" % daemon.process.pid))


def hostile_start(victim, way):
    """Starts a hostile client, and connects it with the victim."""
    before = as_user(65534) if way == "other-user" else []
    # A child of the hostile client goes on when that has ended.
    seconds = HOSTILE_S if way == "fork" else 60
    client = Process([*before, HOSTILE, "pair-" + way, seconds, SEED], env=victim.daemon.env,
                     feed=True)
    qpns = client.wait_line("qpns").split()[1:]
    met = victim.ask("meet " + " ".join(qpns))
    client.say(" ".join(met + victim.qpns) + "\n")
    client.wait_line("paired")
    victim.ask("send")
    return client


def hostile_way(victim, way, counted):
    engine = victim.row()["engine"]
    client = hostile_start(victim, way)
    let_run(HOSTILE_S)
    # A full ring may stop the victim for a moment, but not again and again.
    start = time.monotonic()
    goes_on = victim.moves(limit_s=10)
    print("# %s: %d messages in %.3f s" % (way, PROGRESS, time.monotonic() - start))
    row, met, strays, more = None, 0, 0, {}

    def as_expected():
        nonlocal row, met, strays, more
        row = victim.row()
        _, met, strays = victim.counts()
        more = {name: value - engine[name] for name, value in row["engine"].items()}
        return counted(more, met, row["pairs"]) and strays == 0
    good = until(as_expected, 20)
    status, text = client.finish()
    case("%s: the hostile client has run" % way, "done\n" in text and status == 0, text)
    case("%s: the victim has counted what is wrong, and no more" % way, good,
         "%d from the hostile client, %d strays, %d pairs, counted meanwhile: %s" % (
             met, strays, row["pairs"], {name: n for name, n in more.items() if n != 0}))
    case("%s: meanwhile correct clients exchange messages" % way, goes_on, victim.process.text)
    victim.ask("part")
    return until(lambda: len(victim.daemon.status()["clients"]) == 2)


def hostile(ways, **env):
    ways = [way for way in ways if len(sys.argv) == 1 or way in sys.argv[1:]]
    if not ways:
        return
    print("# ROCADE_SEED=%d" % SEED)
    with Daemon("--socket-mode", "666") as daemon:
        victim = Victim(daemon, **env)
        case("two correct processes exchange messages directly", until(
            lambda: victim.row()["pairs"] == 1 and victim.row()["pair_packets"] > MANY), victim.row())
        before, files = held(daemon), descriptors(daemon)
        for way in ways:
            if way == "other-user" and os.getuid() != 0:
                skip(way, "needs root")
                continue
            case("%s: the hostile client leaves nothing" % way,
                 hostile_way(victim, way, WAYS[way]) and
                 until(lambda: held(daemon) == before and descriptors(daemon) <= files),
                 "%s, %d, before %s, %d" % (held(daemon), descriptors(daemon), before, files))
        case("the correct processes go on at last", victim.moves() and victim.counts()[2] == 0,
             victim.counts())
        status, text = victim.process.finish()
        case("the correct processes' data is correct, and they end", status == 0 and
             "messages" in text, text)
    case("the daemon ends with status 0", daemon.process.returncode == 0,
         daemon.process.returncode)


def stopped():
    """A process that is stopped keeps its connections, although all tries take 1 ms: by a pair, and by
    the daemon. It loses them when it is stopped for longer than others wait for it."""
    with Daemon() as daemon:
        for way, env in (("by a pair", {}), ("by the daemon", {"ROCADE_OFF": "pairs"})):
            victim = Victim(daemon, ROCADE_TEST_TIMEOUT="5", **env)
            case("%s: two processes exchange messages" % way, victim.moves(MANY))
            for name, pid in (("the one that answers", int(victim.friend)),
                              ("the one that begins", victim.process.pid)):
                os.kill(pid, signal.SIGSTOP)
                let_run(STOP_S)  # for which it is stopped
                os.kill(pid, signal.SIGCONT)
                case("%s: %s is stopped for %d s: the connection goes on" % (way, name, STOP_S),
                     victim.moves(MANY), victim.process.text)
            status, text = victim.process.finish()
            case("%s: no message was lost" % way, status == 0 and "messages" in text, text)
            victim = Victim(daemon, ROCADE_PAIR_WAIT="1", **env)
            victim.moves(MANY)
            os.kill(int(victim.friend), signal.SIGSTOP)
            ms, status = victim.failure()
            case("%s: a process that is stopped for long loses its connection" % way,
                 ms >= 1000 and status == "transport retry counter exceeded",
                 "%d ms, %s" % (ms, status))
            victim.process.kill()


def killed():
    with Daemon() as daemon:
        victim = Victim(daemon, ROCADE_TEST_TIMEOUT="14")  # all tries take half a second
        victim.moves(MANY)
        os.kill(int(victim.friend), signal.SIGKILL)
        ms, status = victim.failure()
        print("# the connection with a killed process ends after %d ms" % ms)
        case("the connection with a process that was killed ends soon", within(ms / 1e3, 3) and
             status == "transport retry counter exceeded", "%d ms, %s" % (ms, status))
        victim.process.wait()
        case("nothing is left of both", until(lambda: held(daemon)["clients"] == 0 and
                                              held(daemon)["memory_kib"] == 0), held(daemon))


def hundred():
    chance = random.Random(SEED)
    with Daemon() as daemon:
        before, files = held(daemon), descriptors(daemon)
        for _ in range(PAIRS):
            victim = Victim(daemon)
            victim.moves(chance.randrange(1, 200))
            victim.process.kill()
        case("%d processes that exchanged messages and were killed leave nothing" % (2 * PAIRS),
             until(lambda: held(daemon) == before and descriptors(daemon) == files),
             "%s, %d, before %s, %d" % (held(daemon), descriptors(daemon), before, files))
        state = daemon.status()
        case("the daemon keeps what they have received", state["departed"]["pair_packets"] > PAIRS and
             state["departed"]["pair_bytes"] > 9000 * PAIRS, state["departed"])
        victim = Victim(daemon)
        case("others still form pairs", until(lambda: victim.row()["pairs"] == 1) and
             victim.moves(MANY), victim.row())
        case("and end", victim.process.finish()[0] == 0)


if __name__ == "__main__":
    sys.exit(run(lambda: hostile([way for way in WAYS if way != "trickle"]),
                 lambda: hostile(["trickle"], ROCADE_PAIR_WAIT="1"), stopped, killed, hundred))
