# SPDX-License-Identifier: BSD-3-Clause
"""Runs of several hosts: which host sends to which, and the rocade-testpmd that does it at this end. Each pair
of hosts that exchange messages has a QP. A run begins when left says so to all, since programs take
long to start."""

import re
import threading
import time
from collections import namedtuple

import traffic
from channel import Unexpected, list_of, number, record
from program import Failed

HOSTS_MIN, HOSTS_MAX = 3, 64
PATTERNS = ("all-to-one", "one-to-all", "all-to-all")
SIZE, DEPTH = 16384, 32  # bytes of a message, and how many a QP has under way
# role: mode of rocade-testpmd. An active end starts its run when it is told to, and ends it by itself.
MODES = {"send": "send", "sink": "sink", "both": "both", "first": "pingpong", "second": "pingpong"}
ACTIVE = ("send", "both", "first")
Run = namedtuple("Run", "title options length quick")
PATH_COUNT = 64  # messages to each peer
# A host whose core is taken by others for most of a second has not stopped answering: on few cores, as in namespaces of
# one machine, that happens, and seven retries after 67 ms each are over by then. These go on for 8.6 s.
PATIENCE = ["--timeout", "18"]
LOAD = ["--size", str(SIZE), "--depth", "1024", "--sq-depth", str(DEPTH), *PATIENCE]
RUNS = {
    "path": Run("packets of the path MTU", LOAD, None, None),
    "load": Run("SEND 16 KiB, a QP for each pair of hosts", LOAD, traffic.SECONDS, traffic.ONE_SECOND),
    "latency": Run("half round trip of 64 B", ["--size", "64", *PATIENCE], traffic.SECONDS, traffic.ONE_SECOND),
}
SENT = ("sent_messages", "sent_bytes")
PEER = ("messages", "bytes")
RESULT = record({**traffic.FIELDS, **{name: number() for name in SENT},
                 "peers": list_of(record({name: number() for name in PEER}))})


def roles(pattern, members):
    """Returns {host: role} of a pattern. members: the one of all-to-one and one-to-all comes first."""
    one, others = {"all-to-one": ("sink", "send"), "one-to-all": ("send", "sink"),
                   "all-to-all": ("both", "both")}[pattern]
    return {host: one if host == members[0] else others for host in members}


def peers(hosts, own, role, members):
    """Returns the value of --peer at a host. hosts: addresses. own and members: places among them."""
    if own not in members or len(set(members)) != len(members) or len(members) < 2 or \
            not all(isinstance(one, int) and one < len(hosts) for one in members):
        raise Unexpected("different places in --hosts with this host's own were expected")
    if role == "both":
        return ",".join(hosts[one] for one in members)
    if own == members[0]:
        return ",".join(hosts[one] for one in members[1:])
    place = members.index(own) - 1
    return hosts[members[0]] + ("@%d" % place if place else "")


def partners(host, role, members):
    """Returns the hosts behind the peers of a host, in their order."""
    if role == "both":
        return [one for one in members if one != host]
    return members[1:] if host == members[0] else members[:1]


def failure(reason):
    return RESULT({**traffic.failure(reason), **{name: 0 for name in SENT}, "peers": []})


def result_of(report):
    return RESULT({**traffic.result_of(report), **{name: report[name] for name in SENT},
                   "peers": [{name: peer[name] for name in PEER} for peer in report["ports"][0]["peers"]]})


def length(name, quick, count):
    """Returns the options for how long a run is. count: of the peers."""
    run = RUNS[name]
    return (run.quick if quick else run.length) or ["--count", str(PATH_COUNT * count)]


class Port(traffic.Port):
    failure = staticmethod(failure)
    result_of = staticmethod(result_of)
    OPENED = re.compile(r"port 0: .*, link ")  # the answer to the command `show port info`
    REFUSED = "the run did not start"

    def __init__(self, options, nic, started):
        super().__init__(options, nic, started)
        self.refused = threading.Event()

    def has_hugepages(self):
        """A virtual port needs none, and hosts that are namespaces of one machine would compete for them."""
        return self.nic is not None and super().has_hugepages()

    def open(self, name, role, path_mtu, members):
        """Starts the program. A run of an active end begins with go()."""
        self.stop()
        self.refused.clear()
        peer = peers(self.options.hosts, self.options.number, role, members)
        wait_s = traffic.RUN_S
        if role in ACTIVE:
            wait_s = traffic.PATH_WAIT_S if name == "path" and path_mtu > traffic.PATH_MTUS[0] else traffic.WAIT_S
        count = len(partners(self.options.number, role, members))
        options = ["--addr", self.options.addr, "--peer", peer, "--mode", MODES[role],
                   "--qps", str(count), "--mtu", str(path_mtu),
                   "--wait", str(wait_s), "--stats-period", "0", "-i", *RUNS[name].options]
        if role in ACTIVE:
            options += length(name, self.options.quick, count)
        else:
            options.append("-a")
        self.launch(name, options)
        self.running.say("show port info")
        self.wait_ready()

    def line(self, line):
        if self.OPENED.search(line):
            self.ready.set()
        if self.REFUSED in line:
            self.refused.set()

    def go(self):
        if self.running is None:
            raise Failed("no run")
        self.running.say("start")

    def wait(self, alive):
        """Waits until the run of an active end is over, and returns its result."""
        if self.running is None:
            return failure("no run")
        end = time.monotonic() + traffic.RUN_S
        while not self.running.over.wait(0.05):
            alive()
            if self.refused.is_set():
                words = self.last_words()
                self.stop()
                return failure(words)
            if time.monotonic() > end:
                self.stop()
                return failure("the run has not ended in time")
        return self.stop_run()
