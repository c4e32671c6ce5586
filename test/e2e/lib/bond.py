# SPDX-License-Identifier: BSD-3-Clause
"""A bond, active-backup, of two net_virtio_user ports. The other end of each is a process of its
own, dpdk-testpmd, which passes frames between net_vhost and an interface of the bridge br0.

    bond --- net_virtio_user --- dpdk-testpmd --- leg0 --+
         `-- net_virtio_user --- dpdk-testpmd --- leg1 --+-- br0"""

import os
import subprocess

from process import Process
from testpmd import SCRATCH, eal, inside, ip

MACS = ["02:00:00:00:0b:00", "02:00:00:00:0b:01"]
PORT = 2  # number of the bond's port: its members are ports 0 and 1


def member_word():
    """DPDK 23.11 has renamed the members of a bond."""
    version = subprocess.run(["pkg-config", "--modversion", "libdpdk"], capture_output=True,
                             text=True, check=True).stdout
    return "slave" if [int(n) for n in version.split(".")[:2]] < [23, 11] else "member"


def plugged(space, name):
    """Adds an interface whose other end is in the bridge."""
    ip(*inside(space), "link", "add", name, "type", "veth", "peer", "name", name + "b")
    ip(*inside(space), "link", "set", name + "b", "master", "br0", "up")
    ip(*inside(space), "link", "set", name, "up")


class Leg(Process):
    """A process between a vhost-user socket and an interface of the bridge. space: a network
    namespace, or None for that of this process."""

    def __init__(self, space, number):
        self.interface = "leg%d" % number
        self.socket = os.path.join(SCRATCH, "%s-%s" % (space, self.interface))
        if os.path.exists(self.socket):  # of an earlier process, which was killed
            os.unlink(self.socket)
        command = eal(1, "net_vhost0,iface=" + self.socket,
                      "net_af_packet0,iface=" + self.interface, memory_mb=128)
        cores = command.index("--lcores") + 1
        command[cores] = "0@{0},1@{0}".format(command[cores].split("@")[1])
        super().__init__((["ip", "netns", "exec", space] if space else []) + [
            "dpdk-testpmd"] + command + [
                "--file-prefix", self.interface, "--single-file-segments", "--",
                "--total-num-mbufs", "8192", "--auto-start", "--forward-mode", "io"], feed=True)
        if not self.expect("Checking link statuses", 30):
            raise self.failure("its ports were not started")


def bond_eal(legs):
    """Returns the EAL options of the program that has the bond. Its first member is the primary
    one."""
    members = ["net_virtio_user%d,path=%s,mac=%s" % (number, leg.socket, MACS[number])
               for number, leg in enumerate(legs)]
    return eal(0, *members, "net_bonding0,mode=1,{0}=net_virtio_user0,{0}=net_virtio_user1,"
               "primary=net_virtio_user0".format(member_word()), memory_mb=256) + [
                   "--single-file-segments"]
