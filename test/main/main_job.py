#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The main job, as meson runs it: rocade-testpmd sends into one SRQ, verified, over each kind of port that
this user may have. With root the program runs in namespaces of its own."""

import os
import subprocess
import sys

E2E = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "e2e")
sys.path[:0] = [E2E, os.path.join(E2E, "lib")]
import testpmd_af_packet  # noqa: E402
import testpmd_memif  # noqa: E402
import testpmd_peers  # noqa: E402
import testpmd_ring  # noqa: E402
import testpmd_tap  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import SOURCE, is_root, loop, tap_wire, verified  # noqa: E402

UNSHARE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
ISOLATED = "--isolated"
COUNT = 20000
# An end that gets no core for half a second, beside other load, is alive: 8 s until it is given up.
JOB = ["-q", "8", "-c", str(COUNT), "-s", "64,1000,4096", "--depth", "1024", "--srq-limit", "256",
       "--timeout", "18"]


def judge(name, good, why, sent, got):
    case("%s: every message arrives verified" % name, good and verified(got) and
         got["messages"] == sent["messages"] == COUNT, why or (sent, got))


def in_process():
    done, report = loop(*JOB)
    case("loop: every message arrives verified", done.returncode == 0 and verified(report) and
         report["messages"] == COUNT, done.stdout + done.stderr)
    done, report = loop(*JOB, "--impair", "loss=1%")
    case("loop, 1 % loss: every message arrives verified", done.returncode == 0 and
         verified(report) and report["messages"] == COUNT, done.stdout + done.stderr)
    done, report = loop(*JOB, *testpmd_peers.TWO)
    case("loop, two peers: every message arrives verified", done.returncode == 0 and verified(report) and
         all(testpmd_peers.shares(port, COUNT // 2) for port in report["ports"]), done.stdout + done.stderr)
    good, why, sent, got = testpmd_ring.both(*JOB)
    case("net_ring: every message arrives verified", good and testpmd_ring.arrived(got) and
         got["messages"] == COUNT, why or (sent, got))


def between_processes():
    judge("net_memif", *testpmd_memif.pair(*JOB))


def between_hosts():
    if ISOLATED not in sys.argv:
        for name in ("net_tap", "net_af_packet"):
            skip("%s: every message arrives verified" % name,
                 "needs the right to make namespaces" if is_root() else "needs root")
        return
    judge("net_tap", *testpmd_tap.pair(tap_wire(), *JOB))
    judge("net_af_packet", *testpmd_af_packet.pair(testpmd_af_packet.veth("1"), *JOB))


if __name__ == "__main__":
    if is_root() and ISOLATED not in sys.argv and \
            subprocess.run(UNSHARE + ["true"], capture_output=True, check=False).returncode == 0:
        os.execvp(UNSHARE[0], UNSHARE + [os.path.join(SOURCE, "tools/lib/isolated.sh"), sys.executable,
                                         os.path.realpath(__file__), ISOLATED])
    sys.exit(run(in_process, between_processes, between_hosts))
