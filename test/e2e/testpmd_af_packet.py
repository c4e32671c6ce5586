#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd on two hosts, network namespaces, over net_af_packet on the ends of a veth; and
over net_null, which it only has to start."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import ports  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import Testpmd, add_space, eal, ip, is_root, verified  # noqa: E402

ADDRESS = ["192.0.2.1", "192.0.2.2"]
ROW = ports.Row("net_af_packet")


def veth(name):
    spaces = [add_space("left" + name), add_space("right" + name)]
    ip("-n", spaces[0], "link", "add", "eth0", "mtu", "4200", "type", "veth", "peer", "name",
       "eth0", "mtu", "4200", "netns", spaces[1])
    for space in spaces:
        ip("-n", space, "link", "set", "eth0", "up")
    return spaces


def pair(spaces, *options, modes=("send", "sink"), large=False):
    """Runs both ends. Returns whether both passed, why not, and the reports of sender and receiver.
    A frame of the PMD must fit in an mbuf; a block must be whole frames and whole pages."""
    ends = []
    for side in (1, 0):
        device = "net_af_packet0,iface=eth0,qpairs=1,framecnt=1024," + (
            "blocksz=20480,framesz=5120" if large else "blocksz=4096,framesz=2048")
        ends.append(Testpmd(["--mode", modes[side], "--addr", ADDRESS[side] + "/24", "--peer",
                             ADDRESS[1 - side]] + list(options),
                            eal(side, device, memory_mb=256), space=spaces[side]))
    codes = [program.wait(90) for program in ends]
    for program in ends:
        ROW.saw(program.kill())
    if codes != [0, 0]:
        return False, "%s\n%s\n%s" % (codes, ends[0].tail(), ends[1].tail()), None, None
    return True, "", ends[1].json(), ends[0].json()


def traffic():
    if not is_root():
        skip("net_af_packet", "needs root")
        return
    spaces = veth("1")
    good, why, sent, got = pair(spaces, "-q", "8", "-c", "50000", "-s", "64,1000,4096")
    case("8 QPs send into one SRQ, verified", good and verified(got) and
         got["messages"] == sent["messages"] == 50000, why or (sent, got))
    good, why, a, b = pair(spaces, "-c", "2000", modes=("pingpong", "pingpong"))
    case("pingpong ends with the same count at both ends", good and
         a["messages"] == b["messages"] == 2000, why or (a, b))
    if good:
        print("# %.1f us" % (a["lat_p50_ns"] / 1000))
    # Another veth: the last run has changed the MTU of the first.
    good, why, sent, got = pair(veth("2"), "-q", "2", "-c", "10000", "-s", "0,1,4096,10000",
                                "--mtu", "4096", large=True)
    case("messages arrive verified with path MTU 4096", good and verified(got) and
         got["messages"] == 10000 and got["ports"][0]["path_mtu"] == 4096, why or (sent, got))
    ROW.case()


def null():
    program = Testpmd(["--addr", "192.0.2.1/24", "--peer", "192.0.2.2", "--wait", "1"],
                      eal(0, "net_null0", memory_mb=256))
    code = program.wait(30)
    case("net_null: the peer does not answer: status 1 and a message", code == 1 and
         "192.0.2.2 did not answer within 1 s (--wait): no ARP or ND answer for this" in program.text,
         "%s %s" % (code, program.tail()))


if __name__ == "__main__":
    sys.exit(run(traffic, null))
