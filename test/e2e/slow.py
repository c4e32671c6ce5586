#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-status --slow: where the slowest requests of unmodified programs have waited."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import STATUS_PROGRAM, Daemon, wait_for_port  # noqa: E402
from process import LIMIT_S, until  # noqa: E402
from tap import case, run  # noqa: E402

# They run until they are ended.
PROGRAM = ("ib_send_lat", "-x", "0", "-F", "-n", "50000000")


def status(daemon, *options):
    return process.run([STATUS_PROGRAM, *options], env=daemon.env).stdout


def slowest(daemon):
    """The rows of all clients."""
    return [row for client in json.loads(status(daemon, "--json"))["clients"] for row in client["slowest"]]


def requests(daemon):
    """(type, operation, request) of all clients, in their order."""
    return [(row["type"], row["operation"], request) for row in slowest(daemon) for request in row["requests"]]


def lost(daemon):
    """The requests that have waited longest for packets that were lost."""
    return [r for kind, operation, r in requests(daemon)
            if (kind, operation) == ("RC", "send") and r["resent"] > 0 and r["timers"] + r["naks"] > 0 and
            r["spent_ns"]["timer"] + r["spent_ns"]["nak"] > r["took_ns"] / 2]


LINE = re.compile(
    r"^      slowest RC send:\n"
    r"        \d+\.\d (us|ms|s), \d+ s ago, QP 0x[0-9a-f]{6}, 2 bytes(: | )?(\w+ \d+\.\d (us|ms|s)(, )?)*"
    r"(; resent \d+)?", re.M)


def loss():
    with Daemon("--impair", "loss=5%") as daemon:
        server = daemon.start(*PROGRAM)
        wait_for_port(18515, server, LIMIT_S)
        client = daemon.start(*PROGRAM, "127.0.0.1")
        case("a slow request has waited until its loss was found", until(lambda: lost(daemon)),
             str(requests(daemon)))
        rows = [row["requests"] for row in slowest(daemon)]
        case("the slowest stands first", rows and all(
            row == sorted(row, key=lambda r: -r["took_ns"]) and row[0]["took_ns"] > 0 for row in rows), str(rows))
        text = status(daemon, "--slow")
        case("--slow prints them, with what they have waited for", LINE.search(text) and
             re.search(r" bytes: (timer|nak) \d+\.\d (us|ms|s), .*; resent \d+", text), text)
        case("without --slow they are not printed", "slowest" not in status(daemon))
        server.kill()
        client.kill()


if __name__ == "__main__":
    sys.exit(run(loss))
