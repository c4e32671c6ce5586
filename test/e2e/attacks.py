#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long correct clients have to wait while clients of another user attack the daemon, or while a
host attacks it over the wire. That is compared with a busy neighbour in the attacker's place: a client
of the attacker's user that only sends as fast as it can (`latency busy`).

  attacks.py [--long] [--seconds N] [--together] [WAY...]
      WAY: only these attacks; --long: ten minutes instead of 60 s; --seconds: how long each attack goes on;
      --together: attacks by clients all at the same time, each by a user of its own, compared with as many
      busy neighbours, which are measured for as long

Two hosts with a daemon each, and a third host, on one network. The correct clients are of two users.
test/e2e/latency.c has them and what they measure: round trips over RC and UD (`local`: between two
clients of the first daemon, `wire`: from the first to the second host), creating all objects of a
connection (`make`), and connecting by RDMA-CM (`cm`). The first daemon believes in an older kernel,
which cannot refuse descriptors that clients send. The attacks are described in test/e2e/hostile.c and
lib/spoof.py."""

# test.sh: alone its clients have real-time priorities, and it measures how long they wait

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import BUILD, CLIENTS, LIBRARY, RUN, as_user  # noqa: E402
from hosts import AF_PACKET, V4, Host, bridged  # noqa: E402
from limit import let_run  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import LONG, SOURCE, cpu_of, is_root  # noqa: E402

LATENCY = os.path.join(CLIENTS, "test/e2e/latency")
HOSTILE = os.path.join(os.path.abspath(BUILD), "test/e2e/hostile")
SPOOF = os.path.join(SOURCE, "test/e2e/lib/spoof.py")
OTHER_USER, CORRECT_USER, ATTACKER = 65532, 65533, 65534
SEED = int(os.environ.get("ROCADE_SEED", "0")) or int(time.time())
OPTIONS = ("--mtu", "4184", "--socket-mode", "666")
# The daemons and the correct clients have real-time priorities, so that other processes do not keep
# them from running: the machine may have no idle core. The clients run on the core of the second daemon: attacks
# keep the first one busy on its core for seconds, and the kernel would let a client's thread wait there.
CORE_FIRST, DAEMON_FIRST, SPOOF_FIRST = (("chrt", "--rr", str(n)) for n in (3, 2, 1))
CPUS = sorted(os.sched_getaffinity(0))
CLIENT_FIRST = ("taskset", "--cpu-list", str(cpu_of(1)), *SPOOF_FIRST)

WAYS = [("local", way) for way in (
    "scribble", "liar", "block", "talk", "linger", "boast", "places", "qpns", "crowd", "flood", "drain",
    "peers", "ports")] + [("wire", way) for way in ("arp", "nd", "roce", "req")]

# They are to stop the daemon.
STOPS = ("linger-pair", "asks", "again", "sockets", "refused", "locked", "nests")
WAYS += [("local", way) for way in STOPS]
OLD_KERNEL = ("env", "LD_PRELOAD=" + os.path.join(os.path.abspath(BUILD), "test/e2e/old_kernel.so"))
# For what others do by a FUSE server of their own.
CAPABILITIES = {"locked": "sys_ptrace", "nests": "sys_ptrace"}

# A correct client may wait this much longer than beside a busy neighbour. The longest time for which
# the machine stopped a core meanwhile is added.
PAUSE_US = 20000
# The 99.9th percentile of the round trips may be this many times that beside a busy neighbour, and
# PAUSE_US in any case: in a second there are a thousand round trips or fewer, so that the percentile
# is the longest of them.
TIMES = 5
FLOOR_US = PAUSE_US // TIMES


class Clients:
    """The correct clients."""

    def __init__(self, hosts):
        pids = [host.process.pid for host in hosts]
        self.clients = {}
        # A name is put before what the client measures: `local rc`. `make` and `cm` of one user need none.
        # The attacks are on the daemon: all packets of the correct clients cross it.
        env = dict(hosts[0].env, ROCADE_OFF="pairs")
        for name, user, words in (("local", CORRECT_USER, ("pair", hosts[0].socket)),
                                  ("wire", CORRECT_USER, ("pair", hosts[1].socket)),
                                  ("", CORRECT_USER, ("make",)), ("other", OTHER_USER, ("make",)),
                                  (" ", CORRECT_USER, ("cm", hosts[1].socket, V4[0]))):
            client = Process([*hosts[0].inside, *CLIENT_FIRST, *as_user(user), RUN, "--library",
                              LIBRARY, LATENCY, *words, *pids], feed=True, env=env)
            client.wait_line("running")
            self.clients[name] = client
        self.cores = [Process([*CORE_FIRST, LATENCY, "core", core], feed=True) for core in CPUS]
        for core in self.cores:
            core.wait_line("running")

    def row(self):
        """Returns what the clients have measured since the last row, and for how long a core was stopped
        at most, in microseconds."""
        for client in [*self.clients.values(), *self.cores]:
            client.say("\n")
        row = {}
        for name, client in self.clients.items():
            for kind, value in json.loads(client.wait_line("{")).items():
                row[(name + " " + kind).strip()] = value
        stopped = max(json.loads(core.wait_line("{"))["core"]["pause"] for core in self.cores)
        return row, stopped


def attack_process(kind, way, user, seconds, hosts, space):
    if kind == "wire":
        spoof = Process(["ip", "netns", "exec", space, *SPOOF_FIRST, sys.executable, SPOOF, way, seconds, SEED],
                        feed=True)
        spoof.wait_line("ready")
        return spoof
    program = [LATENCY, "busy"] if way == "busy" else [HOSTILE, way, seconds, SEED]
    if way == "busy":
        program = [RUN, "--library", LIBRARY] + program
    return Process([*as_user(user, CAPABILITIES.get(way)), *program],
                   env=dict(hosts[0].env, ROCADE_OFF="pairs"), feed=True)


def attacked(kind, ways, seconds, hosts, space, clients):
    """Attacks in these ways at the same time, each by a user of its own. Returns what correct clients
    measured until the daemon had freed what the attackers held, the longest time for which a core was
    stopped, and what the attackers printed."""
    users = [ATTACKER - 10 * i for i in range(len(ways))]
    if kind == "local":
        clients.row()
    attackers = [attack_process(kind, way, user, seconds, hosts, space) for way, user in zip(ways, users)]
    if kind == "wire":
        clients.row()
        attackers[0].say("\n")
    if "busy" in ways or "crowd" in ways:
        let_run(seconds)
    ends = [attacker.finish(seconds + 60) for attacker in attackers]
    gone = kind == "wire" or until(lambda: all(
        user["uid"] not in users or user["clients"] + user["descriptors"] == 0
        for user in hosts[0].status()["users"]), 20)
    row, stopped = clients.row()
    for way, (status, text) in zip(ways, ends):
        case("%s %s: the attack has run, and left nothing" % (kind, way), status == 0 and gone,
             "%s, %s\n%s" % (status, text, hosts[0].status()))
    return row, stopped, "; ".join(" ".join(text.split()).removeprefix("ready ") for _, text in ends)


def nested_sets(pid):
    """Returns the epoll sets of a process that have an epoll set in them, and how many sets it has."""
    def is_set(fd):
        try:
            return os.readlink("/proc/%d/fd/%s" % (pid, fd)) == "anon_inode:[eventpoll]"
        except OSError:
            return False

    sets = [fd for fd in os.listdir("/proc/%d/fd" % pid) if is_set(fd)]
    nested = []
    for fd in sets:
        with open("/proc/%d/fdinfo/%s" % (pid, fd), encoding="ascii") as file:
            nested += [fd for line in file if line.startswith("tfd:") and is_set(line.split()[1])]
    return nested, len(sets)


def show(name, row, stopped, said=""):
    print("# %-14s" % name + "".join(" | %6d %6d %6d" % (v["p50"], v["p999"], v["pause"])
                                     for v in row.values()) + " | %6d  %s" % (stopped, said))


def exceeded(row, stopped, plain, users):
    """Returns what took longer than it may beside a busy neighbour, in words. users: how many attack at the
    same time. They may all make requests, which a busy neighbour does not. Each user has its share of the
    daemon's time for requests, so that the requests of the others take this many times as long."""
    wrong = []
    for kind, value in row.items():
        usual = plain[kind]
        times = 1 if kind.endswith((" rc", " ud")) else users
        for what, most in (("p999", times * TIMES * max(usual["p999"], FLOOR_US)),
                           ("pause", times * (PAUSE_US + usual["pause"]))):
            if value[what] > most + stopped:
                wrong.append("%s: %s of %d us is more than %d us" % (kind, what, value[what],
                                                                     most + stopped))
    return wrong


def neighbour_s(seconds):
    """For how long a busy neighbour is measured, in seconds: longer than a short attack, because the
    longest of few round trips says little."""
    return min(3 * seconds, max(seconds, 60))


def unanswered(row):
    return ["%s: %d round trips, %d lost" % (kind, value["count"], value["lost"])
            for kind, value in row.items() if value["lost"] or value["count"] == 0]


def judge(kind, ways, seconds, plain, attack):
    """Attacks. Times are measured twice, the neighbour's and those of the attack, if they exceed the
    limit: an attack that stops the daemon does so each time, the machine does it now and then."""
    way = " ".join(ways)
    row, stopped, said = attack(kind, ways, seconds)
    show(way, row, stopped, said)
    lost, slow = unanswered(row), exceeded(row, stopped, plain, len(ways))
    if slow:
        print("# once more: " + "; ".join(slow))
        plain, stopped, _ = attack("local", ["busy"] * len(ways), neighbour_s(seconds))
        show("busy neighbour", plain, stopped)
        row, stopped, said = attack(kind, ways, seconds)
        show(way, row, stopped, said)
        lost += unanswered(row)
        slow = exceeded(row, stopped, plain, len(ways))
    case("%s %s: every request is answered" % (kind, way), not lost, "; ".join(lost))
    case("%s %s: correct clients wait no longer than beside a busy neighbour" % (kind, way), not slow,
         "; ".join(slow))


def main():
    if not is_root():
        return run(lambda: skip("clients of other users", "needs root"))
    if process.run([*CLIENT_FIRST, "true"]).returncode != 0:
        return run(lambda: skip("clients of other users", "needs a real-time priority"))
    return run(attacks)


def attacks():
    options = argparse.ArgumentParser()
    options.add_argument("--long", action="store_true", default=LONG)
    options.add_argument("--seconds", type=float)
    options.add_argument("--together", action="store_true")
    options.add_argument("ways", nargs="*", choices=[[], *(way for _, way in WAYS)])
    options = options.parse_args()
    if options.seconds is not None and options.seconds <= 0:
        sys.exit("attacks.py: invalid value '%g' for --seconds: expected more than 0" % options.seconds)
    ways = [both for both in WAYS if not options.ways or both[1] in options.ways]
    if options.together and any(kind != "local" for kind, _ in ways):
        sys.exit("attacks.py: invalid option --together: expected WAYs of clients, not arp, nd, roce or req")
    seconds = 600 / (len(ways) + 4) if options.long else 1.2
    spaces, _ = bridged("left", "right", "third")
    print("# ROCADE_SEED=%d" % SEED)
    with Host(spaces, 0, AF_PACKET, *OPTIONS, through=(*OLD_KERNEL, *DAEMON_FIRST)) as left, \
            Host(spaces, 1, AF_PACKET, *OPTIONS, through=DAEMON_FIRST) as right:
        hosts = [left, right]
        clients = Clients(hosts)
        let_run(0.3)
        clients.row()
        let_run(seconds)
        alone = clients.row()

        def attack(kind, ways, time_s):
            return attacked(kind, ways, time_s, hosts, spaces[2], clients)
        neighbours = ["busy"] * (len(ways) if options.together else 1)
        plain, stopped, _ = attack("local", neighbours, neighbour_s(options.seconds or seconds))
        print("# us: p50, p99.9, longest; the last column: for how long a core was stopped")
        print("# %-14s" % "" + "".join(" | %20s" % name for name in plain) + " |   core")
        show("alone", *alone)
        show("busy neighbour", plain, stopped)
        if options.together:
            judge("local", [way for _, way in ways], options.seconds or max(3, seconds), plain, attack)
        for kind, way in ways if not options.together else ():
            time_s = 3 if way in STOPS and not options.long else seconds
            judge(kind, [way], options.seconds or time_s, plain, attack)
        nested, sets = nested_sets(left.process.pid)
        case("no epoll set of the daemon is in another one", not nested and sets >= 2,
             "%s of %d sets have another one in them" % (nested, sets))
        for core in clients.cores:
            core.finish()
        for name, client in clients.clients.items():
            status, text = client.finish(60)
            case("correct client %s ends without an error" % (name.strip() or "of connections"),
                 status == 0, text)


if __name__ == "__main__":
    sys.exit(main())
