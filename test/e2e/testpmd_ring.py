#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd over two ports of net_ring in one process, joined by rings: verified traffic, IPv6,
path MTU 4096, a ping-pong, and a link that fails under traffic and comes back."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import ports  # noqa: E402
from limit import let_run  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import SCRATCH, Testpmd, eal, preloaded  # noqa: E402

ADDRESS = ["192.0.2.1/24,2001:db8::1/64", "192.0.2.2/24,2001:db8::2/64"]
V4 = ["192.0.2.1", "192.0.2.2"]
V6 = ["2001:db8::1", "2001:db8::2"]
ROW = ports.Row("net_ring")


def start(*options, modes=("send", "sink"), peers=V4, fifo=""):
    per_port = []
    for side, mode in enumerate(modes):
        per_port += ["--port", side, "--mode", mode, "--addr", ADDRESS[side], "--peer",
                     peers[1 - side]]
    return Testpmd(list(options) + per_port, eal(0, memory_mb=512),
                   env=preloaded("ring_ports", RING_COMMANDS=fifo or "/dev/null"))


def both(*options, **more):
    """Runs both ports. Returns whether they passed, why not, and their reports."""
    program = start(*options, **more)
    code = program.wait(60)
    ROW.saw(program.text)
    if code != 0:
        return False, "%s\n%s" % (code, program.tail()), None, None
    report = program.json()
    return True, "", report["ports"][0], report["ports"][1]


def arrived(report):
    return report["bad_bytes"] == report["bad_messages"] == 0 and \
        report["bytes_verified"] == report["bytes"] > 0


def traffic():
    good, why, sent, got = both("-q", "8", "-c", "50000", "-s", "64,1000,4096")
    case("8 QPs send into one SRQ, verified", good and arrived(got) and
         got["messages"] == sent["messages"] == 50000, why or (sent, got))
    good, why, sent, got = both("-q", "2", "-c", "5000", "-s", "0,1,2,3,1024,5000", peers=V6)
    case("messages arrive verified over IPv6", good and arrived(got) and
         got["messages"] == 5000, why or (sent, got))
    good, why, sent, got = both("-q", "4", "-c", "10000", "-s", "64,4096,16k,100", "--if-mtu",
                                "4184")
    case("messages arrive verified with path MTU 4096", good and arrived(got) and
         got["messages"] == 10000 and got["path_mtu"] == 4096, why or (sent, got))
    good, why, a, b = both("-c", "5000", "--sleep", modes=("pingpong", "pingpong"))
    case("pingpong between ports that sleep when they can", good and
         a["messages"] == b["messages"] == 5000, why or (a, b))


def failure():
    """While the link is down the engines keep the frames, or the rings do."""
    fifo = os.path.join(SCRATCH, "fifo")
    os.mkfifo(fifo)
    program = start("-q", "4", "-t", "5", "-s", "64,1000,4096", fifo=fifo)
    with open(fifo, "w", encoding="ascii") as commands:
        flows = r"send: [\d.]+ Mmsg/s .* [\d,]{4,} messages"
        case("messages arrive before the link fails", program.expect(flows, 30), program.tail())
        print("down 0", file=commands, flush=True)
        case("the link goes down", program.expect("^port [01]: port error", 20), program.tail())
        let_run(0.1)
        print("up 0", file=commands, flush=True)
        case("the link comes back", program.expect("^port [01]: port active", 20), program.tail())
        code = program.wait(60)
    ROW.saw(program.text)
    sent, got = program.json()["ports"] if code == 0 else (None, None)
    case("every message arrives verified", code == 0 and arrived(got) and
         got["messages"] == sent["messages"], "%s\n%s" % (code, program.tail()))


if __name__ == "__main__":
    sys.exit(run(traffic, failure, ROW.case))
