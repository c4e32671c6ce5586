# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces, "left" and "right", joined by a bridge in a third, "wire".

A tap device has two ends, the DPDK port and the kernel's device of the same name. So each namespace
has a bridge of its own between the tap and the cable. All of it lives in the mount and network
namespaces that tools/demo.sh made, and ends with them."""

import subprocess
import time

SIDES = ("left", "right")
TAP = "port0"

def ip(*args):
    done = subprocess.run(("ip",) + args, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError("ip %s: %s" % (" ".join(args), done.stderr.strip()))
    return done.stdout


def add_namespace(name):
    ip("netns", "add", name)
    # The kernel has no address: the only hosts are the DPDK ports.
    ip("netns", "exec", name, "sh", "-c",
       "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e $f ] || echo 1 >$f; done")
    ip("-n", name, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    ip("-n", name, "link", "set", "br0", "up")


def join():
    """Makes the namespaces, the bridges and the cables, without the taps."""
    for name in SIDES + ("wire",):
        add_namespace(name)
    for side in SIDES:
        ip("-n", side, "link", "add", "cable", "type", "veth", "peer", "name", side,
           "netns", "wire")
        ip("-n", side, "link", "set", "cable", "master", "br0", "up")
        ip("-n", "wire", "link", "set", side, "master", "br0", "up")


def plug(side, alive, timeout_s=20):
    """Connects the tap to its bridge as soon as the port has started. alive(): whether the program
    runs.

    Both ends of a tap begin with the same MAC address, and a bridge passes frames for the addresses
    of its own devices to the kernel. So the kernel's end gets another address. DPDK resets it when
    the port starts, and enables all-multicast after that."""
    end = time.monotonic() + timeout_s
    while not started(side):
        if not alive():
            raise OSError("the program ended before its tap device was up")
        if time.monotonic() > end:
            raise OSError("the tap device was not up after %d s" % timeout_s)
        time.sleep(0.05)
    ip("-n", side, "link", "set", TAP, "address", "02:00:00:00:00:%02x" % SIDES.index(side))
    ip("-n", side, "link", "set", TAP, "master", "br0", "up")


def started(side):
    try:
        return "ALLMULTI" in ip("-n", side, "-o", "link", "show", TAP)
    except OSError:
        return False


def inside(side):
    return ["ip", "netns", "exec", side]
