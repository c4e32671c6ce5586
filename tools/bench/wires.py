# SPDX-License-Identifier: BSD-3-Clause
"""What joins the two ports of a measurement: net_memif; net_tap, whose interfaces are in a bridge; or
net_af_packet at the ends of a veth. The interfaces are made in the network namespace of the bench."""

import socket
import subprocess

MTU = 4184  # path MTU 4096; of the interfaces, whatever the port's is
BRIDGE = "bench"
MACS = {"client": "02:00:00:00:01:01", "server": "02:00:00:00:01:02"}
# Of a veth that ends in the kernel at both ends, for TCP.
KERNEL_SPACE = "bench-tcp"
KERNEL_ADDRESS = "198.51.100.2"
KERNEL_OWN = "198.51.100.1"
PACKET_RING = "qpairs=1,framecnt=1024,blocksz=20480,framesz=5120"


class Failed(Exception):
    """One sentence."""


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed("ip %s: %s" % (" ".join(words), done.stderr.strip()))


def exists(interface):
    """Not by /sys, which is that of another namespace."""
    try:
        return socket.if_nametoindex(interface) != 0
    except OSError:
        return False


def name(wire, role):
    return "%s-%s" % (wire, role)


def quiet():
    """The kernel sends nothing by itself: no IPv6."""
    for which in "all", "default":
        with open("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % which, "w", encoding="ascii") as file:
            file.write("1")


def prepare(wire):
    """Makes what outlives the ports."""
    quiet()
    if wire == "tap" and not exists(BRIDGE):
        ip("link", "add", BRIDGE, "type", "bridge", "mcast_snooping", "0")
        ip("link", "set", BRIDGE, "mtu", str(MTU), "up")
    if wire == "packet" and not exists(name(wire, "client")):
        ip("link", "add", name(wire, "client"), "mtu", str(MTU), "type", "veth", "peer", "name",
           name(wire, "server"), "mtu", str(MTU))
        for role in MACS:
            ip("link", "set", name(wire, role), "up")


def kernel_ends():
    """Makes a veth like that of net_af_packet, one end of it in a network namespace of its own: the kernel
    would take a shorter way between two addresses of one. Returns how a program is started there."""
    client, server = name("tcp", "client"), name("tcp", "server")
    if not exists(client):
        quiet()
        ip("netns", "add", KERNEL_SPACE)
        ip("link", "add", client, "mtu", str(MTU), "type", "veth", "peer", "name", server, "mtu", str(MTU))
        ip("link", "set", server, "netns", KERNEL_SPACE)
        ip("address", "add", KERNEL_OWN + "/24", "dev", client)
        ip("link", "set", client, "up")
        ip("-n", KERNEL_SPACE, "address", "add", KERNEL_ADDRESS + "/24", "dev", server)
        ip("-n", KERNEL_SPACE, "link", "set", server, "up")
    return {"client": [], "server": ["ip", "netns", "exec", KERNEL_SPACE]}


def device(wire, role):
    """Returns EAL's argument for the port of one end. Those of net_memif have sockets: runners.py."""
    if wire == "tap":
        return "net_tap0,iface=" + name(wire, role)
    return "net_af_packet0,iface=%s,%s" % (name(wire, role), PACKET_RING)


def plug(wire, role):
    """Once the port is started: puts the kernel's end of a tap into the bridge. It needs a MAC address
    of its own, because a bridge gives frames for the addresses of its interfaces to the kernel, and
    the PMD sets that of the port when it starts. The queue holds what a sender may have on the way."""
    if wire == "tap":
        ip("link", "set", name(wire, role), "address", MACS[role], "mtu", str(MTU), "txqueuelen",
           "10000", "master", BRIDGE, "up")
