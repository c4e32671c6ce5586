# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts, each a network namespace with a rocaded over a port of its own, and programs on them."""

import subprocess

from daemon import Daemon, wait_for_port
from tap import case
from testpmd import add_space, eal, ip

V4 = ["192.0.2.1", "192.0.2.2"]
V6 = ["2001:db8::1", "2001:db8::2"]
SOCKETS = ["198.51.100.1", "198.51.100.2"]  # by which the programs tell each other their QPs


TAP = "net_tap0,iface=port"
# Whole frames in whole pages, and of 4 KiB and more.
AF_PACKET = "net_af_packet0,iface=eth0,qpairs=1,framecnt=1024,blocksz=20480,framesz=5120"


class Host(Daemon):
    def __init__(self, spaces, side, device, *options, addresses=None):
        addresses = addresses or "%s/24,%s/64" % (V4[side], V6[side])
        super().__init__("--address", addresses, "--sleep-us", "200", *options, space=spaces[side],
                         eal=eal(side, device, memory_mb=128))

    def wire(self):
        """Bytes of the port, to and fro."""
        port = self.status()["port"]
        return port["rx_bytes"] + port["tx_bytes"]


def sockets_wire(spaces):
    ip("-n", spaces[0], "link", "add", "sock", "type", "veth", "peer", "name", "sock", "netns",
       spaces[1])
    for space, address in zip(spaces, SOCKETS):
        ip("-n", space, "address", "add", address + "/24", "dev", "sock")
        ip("-n", space, "link", "set", "sock", "up")
        ip("-n", space, "link", "set", "lo", "up")


def across(hosts, *program, timeout_s=30, port=18515, server_gid=None):
    """A server on one host, its client on the other: the status of both, and their text.
    server_gid: instead of the client's, behind -g."""
    there = list(program)
    if server_gid is not None:
        there[there.index("-g") + 1] = server_gid
    server = hosts[1].start("stdbuf", "-oL", *there)
    wait_for_port(port, server, 10, hosts[1].space)
    try:
        client = hosts[0].run(*program, SOCKETS[1], timeout_s=timeout_s)
        text, _ = server.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as late:
        server.kill()
        text, _ = server.communicate()
        return None, None, text + str(late.stdout)
    return server.returncode, client.returncode, text + client.stdout + client.stderr


def across_case(hosts, least_bytes, *program, tries=2, timeout_s=30, server_gid=None, wires=None):
    """wires: hosts whose bytes are counted. Once more when it fails: the programs give up when their
    peer does not run for half a second, which happens on a machine that does other things."""
    for _ in range(tries):
        before = [host.wire() for host in wires or hosts]
        server, client, text = across(hosts, *program, timeout_s=timeout_s,
                                      server_gid=server_gid)
        moved = [host.wire() - was for host, was in zip(wires or hosts, before)]
        if server == 0 and client == 0:
            break
    case(" ".join(program), server == 0 and client == 0 and min(moved) >= least_bytes,
         "server %s, client %s, %s of %d bytes\n%s\n%s" % (
             server, client, moved, least_bytes, text, [host.status() for host in hosts]))


def veth():
    spaces = [add_space("vleft"), add_space("vright")]
    ip("-n", spaces[0], "link", "add", "eth0", "mtu", "4200", "type", "veth", "peer", "name",
       "eth0", "mtu", "4200", "netns", spaces[1])
    for space in spaces:
        ip("-n", space, "link", "set", "eth0", "up")
    sockets_wire(spaces)
    return spaces
