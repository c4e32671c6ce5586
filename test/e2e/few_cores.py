#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two programs and their daemon on one core: a thread that polls in vain offers the core after few
polls, since others take it. The counters of the programs tell how often. ROCADE_CORES=plenty ends
that. And a daemon whose core a program keeps that offers it to no other."""

# test.sh: alone it counts how often programs of one core take it from each other

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import LIBRARY, RUN, STATUS_PROGRAM, Daemon, wait_for_port  # noqa: E402
from process import Process, run as command, until  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import eal  # noqa: E402

WORDS = ["ib_send_lat", "-F", "-x", "0", "-s", "64"]
ENOUGH = 1000


def one_core():
    return ["taskset", "-c", str(min(os.sched_getaffinity(0)))]


def engines(daemon):
    """The counters of the clients' engines."""
    done = command([STATUS_PROGRAM, "--json"], env=daemon.env)
    return [client["engine"] for client in json.loads(done.stdout)["clients"]
            if "engine" in client]


def counted(cores):
    """Runs a pair of programs until both have counted enough. Returns the counters of their
    engines."""
    with Daemon(through=one_core()) as daemon:
        env = dict(daemon.env)
        if cores:
            env["ROCADE_CORES"] = cores
        words = [*one_core(), RUN, "--library", LIBRARY, *WORDS, "-D", "30"]
        server = Process(words, env=env)
        wait_for_port(18515, server, 10)
        client = Process([*words, "127.0.0.1"], env=env)
        try:
            until(lambda: len(engines(daemon)) == 2 and all(
                min(e["core_offers_taken"], e["rx_roce"]) > ENOUGH for e in engines(daemon)), every_s=0.2)
            return engines(daemon)
        finally:
            for process in (client, server):
                process.kill()


def shared_core():
    for cores, early in ((None, True), ("plenty", False)):
        found = counted(cores)
        case("ROCADE_CORES=%s: the programs run and offer the core" % cores,
             len(found) == 2 and all(e["core_offers_taken"] > ENOUGH for e in found), str(found))
        case("ROCADE_CORES=%s: %s" % (cores, "after few polls" if early else "after many only"),
             all((e["core_offers_early"] > ENOUGH / 2) == early for e in found) and
             (early or all(e["core_offers_early"] == 0 for e in found)), str(found))


def switches(pid):
    """How often the main thread of a process has left its core."""
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)


def kept_core():
    for off in ("", "core-taken"):
        busy = Process([*one_core(), "sh", "-c", "while :; do :; done"])
        before = os.environ.get("ROCADE_OFF")
        os.environ["ROCADE_OFF"] = off
        try:
            with Daemon("--address", "192.0.2.1/24", eal=eal(0, "net_null0,no-rx=1", memory_mb=64)) as daemon:
                def slept():
                    return daemon.status()["device"]["core_slept"]
                if not off:
                    case("a daemon sleeps where a program keeps its core", until(lambda: slept() > ENOUGH), slept())
                    continue
                first = switches(daemon.process.pid)
                case("ROCADE_OFF=core-taken: it yields the core", until(
                    lambda: switches(daemon.process.pid) > first + 50) and slept() == 0, slept())
        finally:
            del os.environ["ROCADE_OFF"]
            if before is not None:
                os.environ["ROCADE_OFF"] = before
            busy.kill()


def invalid_value():
    with Daemon() as daemon:
        server = Process([RUN, "--library", LIBRARY, "ibv_devinfo"],
                         env=dict(daemon.env, ROCADE_CORES="many"))
        status, text = server.finish(30)
        case("an invalid value is reported", status == 0 and
             "ROCADE_CORES: invalid value 'many': expected auto, short or plenty" in text, text)


if __name__ == "__main__":
    sys.exit(run(shared_core, kept_core, invalid_value))
