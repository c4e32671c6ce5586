#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd on two hosts, network namespaces, over net_af_xdp on the ends of a veth: verified
traffic, path MTU 1024 and 2048, IPv6, an MTU that does not fit. Then over net_af_xdp at one end and
the kernel at the other: it pings the port."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import ports  # noqa: E402
import process  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import Testpmd, add_space, eal, ip, is_root, ping, verified  # noqa: E402

ADDRESS = ["192.0.2.1/24,2001:db8::1/64", "192.0.2.2/24,2001:db8::2/64"]
V4 = ["192.0.2.1", "192.0.2.2"]
V6 = ["2001:db8::1", "2001:db8::2"]
ROW = ports.Row("net_af_xdp")


def veth(name, mtu):
    spaces = [add_space("left" + name), add_space("right" + name)]
    ip("-n", spaces[0], "link", "add", "eth0", "mtu", mtu, "type", "veth", "peer", "name", "eth0",
       "mtu", mtu, "netns", spaces[1])
    for space in spaces:
        ip("-n", space, "link", "set", "eth0", "up")
    return spaces


def end(spaces, side, *options, peers=V4):
    program = Testpmd(["--addr", ADDRESS[side], "--peer", peers[1 - side]] + list(options),
                      eal(side, "net_af_xdp0,iface=eth0", memory_mb=256), space=spaces[side])
    program.expect(r"^port 0: \w+, \d+ QPs", 20)
    return program


def pair(spaces, *options, modes=("send", "sink"), **more):
    """Runs both ends. Returns whether both passed, why not, and the reports."""
    ends = [end(spaces, side, "--mode", modes[side], *options, **more) for side in (1, 0)][::-1]
    codes = [program.wait(90) for program in ends]
    for program in ends:
        ROW.saw(program.text)
    if codes != [0, 0]:
        return False, "%s\n%s\n%s" % (codes, ends[0].tail(), ends[1].tail()), None, None
    return True, "", ends[0].json(), ends[1].json()


def traffic():
    spaces = veth("1", "1500")
    good, why, sent, got = pair(spaces, "-q", "8", "-c", "20000", "-s", "64,1000,4096")
    case("8 QPs send into one SRQ, verified", good and verified(got) and
         got["messages"] == sent["messages"] == 20000, why or (sent, got))
    good, why, sent, got = pair(spaces, "-q", "2", "-c", "2000", "-s", "0,1,2,3,1024,5000",
                                peers=V6)
    case("messages arrive verified over IPv6", good and verified(got) and
         got["messages"] == 2000, why or (sent, got))
    good, why, a, b = pair(spaces, "-c", "1000", "--sleep", modes=("pingpong", "pingpong"))
    case("pingpong between ends that sleep when they can", good and
         a["messages"] == b["messages"] == 1000, why or (a, b))
    spaces = veth("2", "2200")
    good, why, sent, got = pair(spaces, "-q", "4", "-c", "4000", "-s", "64,4096,16k,100",
                                "--if-mtu", "2200")
    case("messages arrive verified with path MTU 2048", good and verified(got) and
         got["messages"] == 4000 and got["ports"][0]["path_mtu"] == 2048, why or (sent, got))


def too_long():
    """The kernel wants a buffer, with all that stands in front of the frame, within a page."""
    program = Testpmd(["--addr", ADDRESS[0], "--peer", V4[1], "--if-mtu", "4184"],
                      eal(0, "net_af_xdp0,iface=eth0", memory_mb=256), space=veth("3", "4184")[0])
    code = program.wait(30)
    case("an MTU that does not fit: status 3 and a message", code == 3 and
         "buffers for mtu: 4184" in program.text, "%s %s" % (code, program.tail()))


def kernel_neighbour():
    spaces = veth("4", "1500")
    ip("netns", "exec", spaces[1], "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
    ip("-n", spaces[1], "address", "add", "192.0.2.9/24", "dev", "eth0")
    ip("-n", spaces[1], "address", "add", "2001:db8::9/64", "dev", "eth0", "nodad")
    sink = end(spaces, 0, "--mode", "sink", "-i", "-a")
    for address in (V4[0], V6[0]):
        done = process.run(["ip", "netns", "exec", spaces[1]] + ping("-s", "1000", address), 120)
        case("the port answers the kernel's pings to %s" % address, done.returncode == 0,
             done.stdout + done.stderr)
    sink.say("quit")
    case("the port closes, and its XDP program is gone", sink.wait(10) == 0 and
         "xdp" not in ip("-n", spaces[0], "link", "show", "eth0"), sink.tail())


def main():
    if not is_root():
        return run(lambda: skip("net_af_xdp", "needs root"))
    return run(traffic, too_long, kernel_neighbour, ROW.case)


if __name__ == "__main__":
    sys.exit(main())
