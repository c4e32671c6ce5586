#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts in two network namespaces, each with a rocaded of its own over a net_tap port, joined by
bridges, or over net_af_packet on the ends of a veth; programs that were built for libibverbs on
each of them, over that wire."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import Daemon, wait_for_port  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import add_space, eal, ip, is_root, plug, tap_wire  # noqa: E402

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


def across(hosts, *program, timeout_s=30, port=18515):
    """A server on one host, its client on the other: the status of both, and their text."""
    server = hosts[1].start("stdbuf", "-oL", *program)
    wait_for_port(port, server, 10, hosts[1].space)
    try:
        client = hosts[0].run(*program, SOCKETS[1], timeout_s=timeout_s)
        text, _ = server.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as late:
        server.kill()
        text, _ = server.communicate()
        return None, None, text + str(late.stdout)
    return server.returncode, client.returncode, text + client.stdout + client.stderr


def across_case(hosts, least_bytes, *program, tries=1):
    """tries: of datagrams, that nobody sends again: net_tap learns of frames by signals, and may
    take one in when the next one comes only."""
    for _ in range(tries):
        before = [host.wire() for host in hosts]
        server, client, text = across(hosts, *program, timeout_s=30 if tries == 1 else 6)
        moved = [host.wire() - was for host, was in zip(hosts, before)]
        if server == 0 and client == 0:
            break
    case(" ".join(program), server == 0 and client == 0 and min(moved) >= least_bytes,
         "server %s, client %s, %s of %d bytes\n%s\n%s" % (
             server, client, moved, least_bytes, text, [host.status() for host in hosts]))


def tap():
    if not os.path.exists("/dev/net/tun"):
        skip("net_tap", "no /dev/net/tun")
        return
    n = 50
    spaces = tap_wire()
    sockets_wire(spaces)
    with Host(spaces, 0, TAP) as left, Host(spaces, 1, TAP) as right:
        for space in spaces:
            plug(space, "port", "br0")
        hosts = [left, right]
        for gid in ("0", "1", "2"):  # IPv4, IPv6, link-local
            across_case(hosts, 2 * 4096 * n, "ibv_rc_pingpong", "-g", gid, "-n", str(n), "-c")
        across_case(hosts, 2 * 4096 * n, "ibv_srq_pingpong", "-g", "0", "-n", str(n), "-c")
        across_case(hosts, 2 * 1024 * n, "ibv_ud_pingpong", "-g", "0", "-n", str(n), "-c", "-s",
                    "1024", tries=4)
        across_case(hosts, 65536 * n, "ib_send_bw", "-x", "0", "-F", "-s", "65536", "-n", str(n))


def veth():
    spaces = [add_space("vleft"), add_space("vright")]
    ip("-n", spaces[0], "link", "add", "eth0", "mtu", "4200", "type", "veth", "peer", "name",
       "eth0", "mtu", "4200", "netns", spaces[1])
    for space in spaces:
        ip("-n", space, "link", "set", "eth0", "up")
    sockets_wire(spaces)
    return spaces


def af_packet():
    n = 100
    spaces = veth()
    large = ("--mtu", "4180")
    with Host(spaces, 0, AF_PACKET, *large) as left, Host(spaces, 1, AF_PACKET, *large) as right:
        hosts = [left, right]
        info = left.run("ibv_devinfo", "-v").stdout
        case("the device is that of the port", "active_mtu:\t\t4096" in info and
             "PORT_ACTIVE" in info and "192.0.2.1" in info and "2001:db8::1" in info, info)
        across_case(hosts, 2 * 4096 * n, "ibv_rc_pingpong", "-g", "0", "-n", str(n), "-c", "-e")
        across_case(hosts, 2 * 4096 * n, "ibv_uc_pingpong", "-g", "1", "-n", str(n), "-c")
        for gid in ("0", "1", "2"):
            across_case(hosts, 2 * 1024 * n, "ibv_ud_pingpong", "-g", gid, "-n", str(n), "-c")
        for program in ("ib_write_bw", "ib_read_bw"):
            across_case(hosts, 65536 * n, program, "-x", "0", "-F", "-s", "65536", "-n", str(n))


def main():
    if not is_root():
        return run(lambda: skip("rocaded over a port", "needs root"))
    return run(tap, af_packet)


if __name__ == "__main__":
    sys.exit(main())
