#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd over net_bonding, active-backup. Its members are two net_virtio_user ports. The
other end of each is a process of its own, dpdk-testpmd, which passes frames between net_vhost and
an interface of a bridge. Under traffic the process of the active member is killed: the other member
takes over, and every message arrives, verified.

    rocade-testpmd, bond --- net_virtio_user --- dpdk-testpmd --- leg0 --+
                         `-- net_virtio_user --- dpdk-testpmd --- leg1 --+-- bridge -- rocade-testpmd
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import ports  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import (SCRATCH, Testpmd, add_space, eal, ip, is_root, verified)  # noqa: E402

V4 = ["192.0.2.1", "192.0.2.2"]
MACS = ["02:00:00:00:0b:00", "02:00:00:00:0b:01"]
ROW = ports.Row("net_bonding")


def member_word():
    """DPDK 23.11 has renamed the members of a bond."""
    version = subprocess.run(["pkg-config", "--modversion", "libdpdk"], capture_output=True,
                             text=True, check=True).stdout
    return "slave" if [int(n) for n in version.split(".")[:2]] < [23, 11] else "member"


def plugged(space, name):
    """Adds an interface whose other end is in the bridge."""
    ip("-n", space, "link", "add", name, "type", "veth", "peer", "name", name + "b")
    ip("-n", space, "link", "set", name + "b", "master", "br0", "up")
    ip("-n", space, "link", "set", name, "up")


class Leg(Process):
    """A process between a vhost-user socket and an interface of the bridge."""

    def __init__(self, space, number):
        self.interface = "leg%d" % number
        self.socket = os.path.join(SCRATCH, "%s-%s" % (space, self.interface))
        command = eal(1, "net_vhost0,iface=" + self.socket,
                      "net_af_packet0,iface=" + self.interface, memory_mb=128)
        cores = command.index("--lcores") + 1
        command[cores] = "0@{0},1@{0}".format(command[cores].split("@")[1])
        super().__init__(["ip", "netns", "exec", space, "dpdk-testpmd"] + command + [
            "--file-prefix", self.interface, "--single-file-segments", "--", "--total-num-mbufs",
            "8192", "--auto-start", "--forward-mode", "io"], feed=True)
        self.expect("Press enter|io packet forwarding", 30)


def bond(space, legs, *options):
    word = member_word()
    members = ["net_virtio_user%d,path=%s,mac=%s" % (number, leg.socket, MACS[number])
               for number, leg in enumerate(legs)]
    program = Testpmd(
        ["--port", "2", "--addr", V4[0] + "/24", "--peer", V4[1]] + list(options),
        eal(0, *members, "net_bonding0,mode=1,{0}=net_virtio_user0,{0}=net_virtio_user1,"
            "primary=net_virtio_user0".format(word), memory_mb=256) + ["--single-file-segments"],
        space=space)
    program.expect(r"^port 2: \w+, \d+ QPs", 20)
    return program


def other(space, *options):
    program = Testpmd(["--addr", V4[1] + "/24", "--peer", V4[0]] + list(options),
                      eal(0, "net_af_packet0,iface=host", memory_mb=256), space=space)
    program.expect(r"^port 0: \w+, \d+ QPs", 20)
    return program


def messages(program):
    found = re.findall(r"([\d,]+) messages", program.text)
    return int(found[-1].replace(",", "")) if found else 0


def carries(space, leg):
    """Returns the frames that have reached the bridge by this leg."""
    shown = ip("-n", space, "-s", "link", "show", leg.interface + "b")
    return int(re.search(r"RX:.*\n\s+\d+\s+(\d+)", shown).group(1))


def failover(mode):
    """The bond sends (mode send) or receives."""
    space = add_space(mode)
    ip("-n", space, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    ip("-n", space, "link", "set", "br0", "up")
    for name in ("leg0", "leg1", "host"):
        plugged(space, name)
    legs = [Leg(space, number) for number in (0, 1)]
    options = ["-q", "4", "-s", "64,1000,4096", "-t", "5", "--timeout", "16"]
    modes = [mode, "send" if mode == "sink" else "sink"]
    ends = [bond(space, legs, "--mode", modes[0], *options),
            other(space, "--mode", modes[1], *options)]
    case("%s: the primary member carries the traffic" % mode,
         until(lambda: messages(ends[0]) > 100, 30) and carries(space, legs[0]) > 5 >
         carries(space, legs[1]), ends[0].tail() + ends[1].tail())
    legs[0].kill()
    at, others = messages(ends[0]), carries(space, legs[1])
    codes = [program.wait(90) for program in ends]
    others = carries(space, legs[1]) - others
    print("# killed after %d messages; then %d frames by the other member" % (at, others))
    case("%s: the member's process is killed under traffic, and the other member takes over" % mode,
         others > 20, ends[0].tail() + ends[1].tail())
    legs[1].kill()
    ROW.saw(ends[0].text)
    good = codes == [0, 0]
    sent, got = [ends[modes.index(one)].json() for one in ("send", "sink")] if good else (None,) * 2
    case("%s: every message arrives verified" % mode, good and verified(got) and
         got["messages"] == sent["messages"] > at,
         "%s\n%s\n%s" % (codes, ends[0].tail(), ends[1].tail()))
    if good:
        print("# %d retransmissions, %.1f s" % (sent["retransmits"], sent["seconds"]))


def main():
    if not is_root():
        return run(lambda: skip("net_bonding", "needs root"))
    return run(lambda: failover("send"), lambda: failover("sink"), ROW.case)


if __name__ == "__main__":
    sys.exit(main())
