#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two programs and their daemon on one core: a thread that polls in vain offers the core after few
polls, since others take it. The counters of the programs tell how often. ROCADE_CORES=plenty ends
that."""

# test.sh: alone who has the core, and for how long, is judged

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import LIBRARY, RUN, STATUS_PROGRAM, Daemon, wait_for_port  # noqa: E402
from process import Process, run as command, until  # noqa: E402
from tap import case, run  # noqa: E402

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


def invalid_value():
    with Daemon() as daemon:
        server = Process([RUN, "--library", LIBRARY, "ibv_devinfo"],
                         env=dict(daemon.env, ROCADE_CORES="many"))
        status, text = server.finish(30)
        case("an invalid value is reported", status == 0 and
             "ROCADE_CORES: invalid value 'many': expected auto, short or plenty" in text, text)


if __name__ == "__main__":
    sys.exit(run(shared_core, invalid_value))
