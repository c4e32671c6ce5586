#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether a daemon needs more memory, descriptors or entries of its tables the longer it runs.

  soak.py [SECONDS]   default 9; with ROCADE_TEST_LONG=1 3600, of sanitized programs 600

Two hosts with a daemon each, joined by a bridge that loses everything for some milliseconds now and
then. In each of several rounds programs load the daemons as fast as they can: perftest across the wire,
pairs of processes within a host, RDMA-CM connections, objects that are made and destroyed, and processes
that are killed. Then all end, and what the daemons still hold is compared with the rounds before."""

# test.sh: alone it loads all cores as fast as it can

import os
import random
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import BUILD, CLIENTS  # noqa: E402
from hosts import AF_PACKET, V4, Host, across, bridged, sockets_wire  # noqa: E402
from limit import let_run  # noqa: E402
from process import run as run_command, until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import LONG, is_root  # noqa: E402

FLOW = os.path.join(CLIENTS, "test/e2e/flow")
LATENCY = os.path.join(CLIENTS, "test/e2e/latency")
SEED = int(os.environ.get("ROCADE_SEED", "0")) or int(time.time())
OPTIONS = ("--mtu", "4184", "--socket-mode", "666")
# The tables and packet pools of a daemon have a fixed size, but the kernel allocates a page of them
# when it is first used. With random QPNs it takes minutes until all are: by then the heap is to be no
# larger than this, and shared memory to have grown by no more.
HEAP_KIB = 20 << 10
SHARED_GROWTH_KIB = 1 << 10
LONG_S = 300  # from this many seconds on
ROUNDS, LONG_ROUNDS = 3, 12
WARM_ROUNDS = 4
HEAP_GROWTH_KIB = 64  # from one round to the next, after WARM_ROUNDS
PERFTEST = ("ib_write_bw", "ib_send_bw", "ib_read_bw")


class Load:
    """What runs in one round. Each activity is a thread that repeats itself until the end."""

    def __init__(self, hosts, bridge, chance):
        self.hosts, self.bridge = hosts, bridge
        self.failures = []
        self.counts = {}
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(activity, random.Random(
            chance.random()))) for activity in (
                self.across_wire, self.within_host, self.connections, self.objects, self.killed, self.loss)]

    def run(self, seconds, sample):
        for thread in self._threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.failures:
            let_run(min(1, seconds / 4))
            sample()
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, activity, chance):
        while not self._end.is_set():
            try:
                wrong = activity(chance)
            except Exception as why:  # of any kind: the round fails, and ends
                wrong = repr(why)
            if wrong:
                self.failures.append("%s: %s" % (activity.__name__, wrong))
                return
            self.counts[activity.__name__] = self.counts.get(activity.__name__, 0) + 1

    def _ended(self, process):
        """Ends the input of a process. Returns what is wrong with its end."""
        status, text = process.finish()
        return "" if status == 0 else "status %s: %s" % (status, text)

    def across_wire(self, chance):
        """perftest's QPs get an ACK timeout of half a second (-u 17), not its default of 67 ms. A READ
        passes five processes, and on this busy machine each of them waits for its core."""
        program = [chance.choice(PERFTEST), "-F", "-m", "4096", "-s", chance.choice((64, 4096, 65536)),
                   "-q", chance.choice((1, 4)), "-D", chance.choice((1, 2)), "-f", 0, "-u", 17]
        server, client, text = across(self.hosts, *program, port=18515)
        return "" if server == client == 0 else "%s: %s, %s\n%s" % (program, server, client, text)

    def within_host(self, chance):
        pair = chance.choice(self.hosts).start(FLOW, "pair", feed=True)
        self._end.wait(chance.uniform(0.2, 2))
        return self._ended(pair)

    def connections(self, chance):
        client = self.hosts[0].start(LATENCY, "cm", self.hosts[1].socket, V4[0], feed=True)
        client.wait_line("running")
        self._end.wait(chance.uniform(0.5, 3))
        return self._ended(client)

    def objects(self, chance):
        churn = chance.choice(self.hosts).start(FLOW, "churn", feed=True)
        self._end.wait(chance.uniform(0.2, 1))
        return self._ended(churn)

    def killed(self, chance):
        words = chance.choice((("many", 64), ("pair",), ("churn",)))
        process = chance.choice(self.hosts).start(FLOW, *words, feed=True)
        self._end.wait(chance.uniform(0, 0.5))
        process.kill()
        return ""

    def loss(self, chance):
        """The bridge forwards nothing for some milliseconds. The commands have real-time priority: beside
        so many programs the second one would otherwise wait for its core, and the QPs' retries would be
        used up meanwhile."""
        command = "bridge -n %s link set dev port%d state" % (self.bridge, chance.randrange(2))
        done = run_command(["chrt", "--rr", "1", "sh", "-ec", "%s 0; sleep %.3f; %s 3" % (
            command, chance.uniform(0.005, 0.03), command)])
        self._end.wait(chance.uniform(1, 3))
        return done.stderr if done.returncode != 0 else ""


def descriptors(host):
    return len(os.listdir("/proc/%d/fd" % host.process.pid))


def held(host):
    """Returns what a daemon holds."""
    folder = "/proc/%d/" % host.process.pid
    with open(folder + "status", encoding="utf-8") as file:
        fields = dict(re.findall(r"^(\w+):\s+(\d+)", file.read(), re.M))
    open_now = descriptors(host)
    state = host.status()
    limits = state["limits"]
    return {"heap KiB": int(fields["RssAnon"]), "shared KiB": int(fields["RssShmem"]),
            "threads": int(fields["Threads"]), "descriptors": open_now,
            "clients": limits["clients"]["used"], "QPs": limits["qps"]["used"],
            "ids": state["rdma_cm"]["ids"], "CM ports": limits["cm_ports"]["used"],
            "connections": limits["cm_connections"]["used"],
            "neighbours": limits["neighbours"]["used"]}


def show(name, values, moved=""):
    print("# %-10s" % name + "".join(" | %*d" % (len(key), value) for key, value in values.items()) +
          " | " + moved, flush=True)


def grown(now, rests, start):
    """Returns what is more than it was before: the memory than in all rounds before, all else than at
    the start."""
    before = dict(start, **{"heap KiB": HEAP_KIB, "shared KiB": start["shared KiB"] + SHARED_GROWTH_KIB})
    if len(rests) >= WARM_ROUNDS:
        for key, growth in (("heap KiB", HEAP_GROWTH_KIB), ("shared KiB", 0)):
            before[key] = max(rest[key] for rest in rests) + growth
    return ["%s: %d, at most %d before" % (key, now[key], before[key]) for key in now
            if now[key] > before[key]]


def soak_round(hosts, bridge, chance, seconds, name, start):
    """Loads the daemons. Returns what each holds after all programs have ended."""
    peak = [held(host) for host in hosts]
    began, moved = time.monotonic(), [host.wire() for host in hosts]

    def sample():
        for most, host in zip(peak, hosts):
            for key, value in held(host).items():
                most[key] = max(most[key], value)

    load = Load(hosts, bridge, chance)
    load.run(seconds, sample)
    bits = 8 * (hosts[0].wire() - moved[0]) / (time.monotonic() - began)
    idle = until(lambda: all(host.idle() and host.status()["limits"]["memory_kib"]["used"] == 0
                             for host in hosts), 30)
    # The daemon closes connections that have ended one after the other: also those over which it was
    # asked for its state.
    until(lambda: all(descriptors(host) <= least["descriptors"] for host, least in zip(hosts, start)), 5)
    rest = [held(host) for host in hosts]
    for side, most, least in zip(("left", "right"), peak, rest):
        show("%s peak" % side, most, "%.2f Gbit/s; %s" % (bits / 1e9, " ".join(
            "%s %d" % pair for pair in sorted(load.counts.items()))))
        show("%s rest" % side, least)
    case("%s: all programs have run, and the daemons keep nothing of them" % name,
         idle and not load.failures and len(load.counts) == 6,
         "%s\n%s" % ("\n".join(load.failures), [host.status() for host in hosts]))
    return rest


def soak():
    words = sys.argv[1:]
    long_s = 600 if os.path.basename(BUILD) == "sanitize" else 3600
    seconds = float(words[0]) if words else long_s if LONG else 9
    rounds = LONG_ROUNDS if seconds >= LONG_S else ROUNDS
    print("# ROCADE_SEED=%d" % SEED)
    chance = random.Random(SEED)
    spaces, bridge = bridged("left", "right")
    sockets_wire(spaces)
    with Host(spaces, 0, AF_PACKET, *OPTIONS) as left, Host(spaces, 1, AF_PACKET, *OPTIONS) as right:
        hosts = [left, right]
        start = [held(host) for host in hosts]
        print("# %-10s" % "" + "".join(" | " + key for key in start[0]))
        show("start", start[0])
        rests = []
        for number in range(1, rounds + 1):
            now = soak_round(hosts, bridge, chance, seconds / rounds, "round %d" % number, start)
            for side, name in enumerate(("left", "right")):
                wrong = grown(now[side], [rest[side] for rest in rests], start[side])
                case("round %d: the %s daemon holds no more than before" % (number, name), not wrong,
                     "; ".join(wrong))
            rests.append(now)


def main():
    if not is_root():
        return run(lambda: skip("two hosts", "needs root"))
    return run(soak)


if __name__ == "__main__":
    sys.exit(main())
