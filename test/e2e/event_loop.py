#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two programs that arm their CQs, poll a last time and sleep in epoll_wait(2): a wake-up announces each packet
that brings an event. The counters of the programs tell how many events came only because a progress thread looked
(events_late): none. On all cores, on one, and without pairs."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import CLIENTS, STATUS_PROGRAM, Daemon  # noqa: E402
from process import run as command, until  # noqa: E402
from tap import case, run  # noqa: E402

PROGRAM = os.path.join(CLIENTS, "test/e2e/event_loop")
MESSAGES = 10000
LIMIT_S = 120


def engines(daemon):
    """The counters of the clients' engines."""
    done = command([STATUS_PROGRAM, "--json"], env=daemon.env)
    return [client["engine"] for client in json.loads(done.stdout)["clients"]
            if "engine" in client]


def both(found):
    return found if len(found) == 2 else None


def counters(daemon, through, off):
    """Returns the sums of the counters of both programs after their messages. None: not both of them answer."""
    daemon.env["ROCADE_OFF"] = off
    program = daemon.start(*through, PROGRAM, str(MESSAGES), feed=True)
    program.wait_line("done", LIMIT_S)
    found = until(lambda: both(engines(daemon)))
    program.kill()
    return found and {name: sum(engine[name] for engine in found)
            for name in ("events_late", "pair_tx", "rx_roce")}


def events_are_announced():
    one_core = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    for through, off in (((), ""), (one_core, ""), ((), "pairs")):
        with Daemon(through=through) as daemon:
            found = counters(daemon, through, off)
        where = "on one core" if through else "without pairs" if off else "on all cores"
        if not case("%s: both programs are counted" % where, found is not None):
            continue
        case("%s: messages come" % where, found["rx_roce"] >= 2 * MESSAGES and
             (found["pair_tx"] >= MESSAGES) == (off == ""), str(found))
        case("%s: a wake-up announces each event" % where,
             found["rx_roce"] != 0 and found["events_late"] == 0, str(found))


if __name__ == "__main__":
    sys.exit(run(events_are_announced))
