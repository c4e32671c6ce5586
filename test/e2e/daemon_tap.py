#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs that were built for libibverbs between two hosts. Each host is a network namespace
with its own rocaded: over net_tap ports that bridges join, and over net_af_packet on the ends of a
veth."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from hosts import AF_PACKET, TAP, Host, across_case, sockets_wire, veth  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import ip, is_root, plug, tap_wire  # noqa: E402

OTHER_USER = ("--user", "65534:65534")


def tap():
    if not os.path.exists("/dev/net/tun"):
        skip("net_tap", "no /dev/net/tun")
        return
    n = 50
    spaces = tap_wire()
    sockets_wire(spaces)
    with Host(spaces, 0, TAP, *OTHER_USER) as left, Host(spaces, 1, TAP) as right:
        for space in spaces:
            plug(space, "port", "br0")
        hosts = [left, right]
        for gid in ("0", "1", "2"):  # IPv4, IPv6, link-local
            across_case(hosts, 2 * 4096 * n, "ibv_rc_pingpong", "-g", gid, "-n", str(n), "-c")
        across_case(hosts, 2 * 4096 * n, "ibv_srq_pingpong", "-g", "0", "-n", str(n), "-c")
        for program in ("ibv_ud_pingpong", "ibv_uc_pingpong"):
            across_case(hosts, 2 * 1024 * n, program, "-g", "0", "-n", str(n), "-c", "-s", "1024")
        for program, size in [("ib_send_bw", 65536), ("ib_write_bw", 65536), ("ib_read_bw", 65536),
                              ("ib_atomic_bw", 8), ("ib_send_lat", 2), ("ib_write_lat", 2),
                              ("ib_read_lat", 2)]:
            across_case(hosts, size * n, program, "-x", "0", "-F", "-s", str(size), "-n", str(n))
        link_events(left, spaces[0])


def link_events(host, space):
    """The port's link follows the kernel's end of the tap."""
    watch = host.start("stdbuf", "-oL", "ibv_asyncwatch")
    watch.wait_line()  # names the opened device
    ip("-n", space, "link", "set", "port", "down")
    down = watch.wait_line()
    state = host.run("ibv_devinfo").stdout
    ip("-n", space, "link", "set", "port", "up")
    up = watch.wait_line()
    watch.kill()
    case("link down raises IBV_EVENT_PORT_ERR", "IBV_EVENT_PORT_ERR" in down, down)
    case("a device whose link is down shows PORT_DOWN", "PORT_DOWN" in state, state)
    case("link up raises IBV_EVENT_PORT_ACTIVE", "IBV_EVENT_PORT_ACTIVE" in up, up)


def af_packet():
    n = 100
    spaces = veth()
    large = ("--mtu", "4184")
    with Host(spaces, 0, AF_PACKET, *large, *OTHER_USER) as left, Host(spaces, 1, AF_PACKET,
                                                                       *large) as right:
        hosts = [left, right]
        info = left.run("ibv_devinfo", "-v").stdout
        case("the device has the port's MTU, state and addresses", "active_mtu:\t\t4096" in info and
             "PORT_ACTIVE" in info and "192.0.2.1" in info and "2001:db8::1" in info, info)
        across_case(hosts, 2 * 4096 * n, "ibv_rc_pingpong", "-g", "0", "-n", str(n), "-c", "-e")
        across_case(hosts, 2 * 4096 * n, "ibv_uc_pingpong", "-g", "1", "-n", str(n), "-c")
        for gid in ("0", "1", "2"):
            across_case(hosts, 2 * 1024 * n, "ibv_ud_pingpong", "-g", gid, "-n", str(n), "-c")
        across_case(hosts, 65536 * n, "ib_write_bw", "-x", "0", "-F", "-s", "65536", "-n", str(n))


def main():
    if not is_root():
        return run(lambda: skip("rocaded over a port", "needs root"))
    return run(tap, af_packet)


if __name__ == "__main__":
    sys.exit(main())
