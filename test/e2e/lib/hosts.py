# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts and programs on them. Each host is a network namespace with its own rocaded, over a
port of its own."""

import contextlib

from daemon import Daemon, both, wait_for_port
from tap import case
from testpmd import add_space, eal, ip

V4 = ["192.0.2.1", "192.0.2.2"]
V6 = ["2001:db8::1", "2001:db8::2"]
SOCKETS = ["198.51.100.1", "198.51.100.2"]  # for the TCP connections that exchange QP numbers


TAP = "net_tap0,iface=port"
# A frame has room for 4 KiB of payload. A block is a whole number of frames and of pages.
AF_PACKET = "net_af_packet0,iface=eth0,qpairs=1,framecnt=1024,blocksz=20480,framesz=5120"


class Host(Daemon):
    def __init__(self, spaces, side, device, *options, addresses=None, **more):
        addresses = addresses or "%s/24,%s/64" % (V4[side], V6[side])
        super().__init__("--address", addresses, "--sleep-us", "200", *options, space=spaces[side],
                         eal=eal(side, device, memory_mb=128), **more)

    def wire(self):
        """Returns the bytes that the port has received and sent."""
        port = self.status()["port"]
        return port["rx_bytes"] + port["tx_bytes"]


def sockets_wire(spaces):
    ip("-n", spaces[0], "link", "add", "sock", "type", "veth", "peer", "name", "sock", "netns",
       spaces[1])
    for space, address in zip(spaces, SOCKETS):
        ip("-n", space, "address", "add", address + "/24", "dev", "sock")
        ip("-n", space, "link", "set", "sock", "up")
        ip("-n", space, "link", "set", "lo", "up")


def across(hosts, *program, timeout_s=60, port=18515, server_gid=None):
    """Runs a server on one host and its client on the other. Returns both exit statuses, None after
    a timeout, and their output. server_gid: the GID index of the server, if it is not the
    client's."""
    server_program = list(program)
    if server_gid is not None:
        server_program[server_program.index("-g") + 1] = server_gid
    server = hosts[1].start("stdbuf", "-oL", *server_program)
    wait_for_port(port, server, 30, hosts[1].space)
    return both(server, hosts[0].start("stdbuf", "-oL", *program, SOCKETS[1]), timeout_s)


def across_case(hosts, least_bytes, *program, server_gid=None, wires=None):
    """wires: the hosts whose bytes are counted."""
    before = [host.wire() for host in wires or hosts]
    server, client, text = across(hosts, *program, server_gid=server_gid)
    moved = [host.wire() - was for host, was in zip(wires or hosts, before)]
    case(" ".join(program), server == 0 and client == 0 and min(moved) >= least_bytes,
         "server %s, client %s, %s of %d bytes\n%s\n%s" % (
             server, client, moved, least_bytes, text, [host.status() for host in hosts]))


@contextlib.contextmanager
def joined():
    """Two hosts whose ports are the ends of a cable, with a path MTU of 4096."""
    spaces = veth()
    with Host(spaces, 0, AF_PACKET, "--mtu", "4184") as left, \
            Host(spaces, 1, AF_PACKET, "--mtu", "4184") as right:
        yield [left, right]


def bridged(*names):
    """Joins hosts by a bridge in a namespace of its own. Returns their namespaces and the bridge's."""
    spaces, bridge = [add_space(name) for name in names], add_space("switch")
    ip("-n", bridge, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    ip("-n", bridge, "link", "set", "br0", "up")
    for number, space in enumerate(spaces):
        ip("-n", space, "link", "add", "eth0", "mtu", "4200", "type", "veth", "peer", "name",
           "port%d" % number, "mtu", "4200", "netns", bridge)
        ip("-n", bridge, "link", "set", "port%d" % number, "master", "br0", "up")
        ip("-n", space, "link", "set", "eth0", "up")
    return spaces, bridge


def veth():
    spaces = [add_space("vleft"), add_space("vright")]
    ip("-n", spaces[0], "link", "add", "eth0", "mtu", "4200", "type", "veth", "peer", "name",
       "eth0", "mtu", "4200", "netns", spaces[1])
    for space in spaces:
        ip("-n", space, "link", "set", "eth0", "up")
    sockets_wire(spaces)
    return spaces
