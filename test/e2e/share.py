#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""app/examples/share.c, an application whose ports Rocade shares: it forwards frames between two
networks and serves RDMA on one of them. Over net_af_packet, where Rocade's frames leave through a
function of the application, and over net_tap, where they leave on a queue of their own."""

import os
import random
import signal
import string
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS  # noqa: E402
from hosts import TAP, Host  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import BUILD, add_space, eal, ip, is_root, ping, plug  # noqa: E402

SHARE = os.path.join(BUILD, "app/examples/share")
CLIENT = os.path.join(CLIENTS, "app/examples/hello_client")
ADDRESS = "192.0.2.5"             # of Rocade in the application
KERNELS = ["192.0.2.10", "192.0.2.20"]  # of the two networks
CLIENT_ADDRESS = "192.0.2.1/24"   # of the daemon whose program is the client
SIZES = [1, 1000, 4097, 8192]


def bridge(space, name):
    ip("-n", space, "link", "add", name, "type", "bridge", "mcast_snooping", "0")
    ip("-n", space, "link", "set", name, "up")


def networks(tag):
    """Adds the namespaces of the client, of the application, and of the second network. The
    application's namespace has the ends near and far of the cables to the others."""
    spaces = [add_space(tag + name) for name in ("client", "app", "kernel")]
    for side, cable in (0, "near"), (2, "far"):
        ip("-n", spaces[1], "link", "add", cable, "type", "veth", "peer", "name", "cable",
           "netns", spaces[side])
        ip("-n", spaces[1], "link", "set", cable, "up")
        bridge(spaces[side], "br0")
        ip("-n", spaces[side], "link", "set", "cable", "master", "br0", "up")
        ip("-n", spaces[side], "address", "add", KERNELS[side // 2] + "/24", "dev", "br0")
    return spaces


def share_start(space, devices, bridges):
    """bridges: cables to be joined with the taps of the same index."""
    share = Process(["ip", "netns", "exec", space, SHARE] + eal(1, *devices, memory_mb=256) +
                    ["--", ADDRESS + "/24"])
    # Wait for the start: the PMD sets the address of the kernel's end while it starts.
    share.wait_line("forwarding")
    for index, cable in enumerate(bridges):
        bridge(space, "br%d" % index)
        ip("-n", space, "link", "set", cable, "master", "br%d" % index)
        plug(space, "tap%d" % index, "br%d" % index)
    return share


def texts(client, name):
    for size in SIZES:
        text = "".join(random.Random(size).choices(string.ascii_letters, k=size))
        done = client.run(CLIENT, ADDRESS, text)
        case("%s: a text of %d bytes comes back" % (name, size), done.returncode == 0 and
             done.stdout == "reply: %s\n" % text.upper(), done.stdout[-200:] + done.stderr)


def forwards(spaces, share, client, name):
    between = Process(["ip", "netns", "exec", spaces[0], "ping", "-q", "-c", "300", "-i", "0.01",
                       "-s", "1400", KERNELS[1]])
    texts(client, name)
    status, said = between.finish(60)
    case("%s: meanwhile the networks reach each other" % name, status == 0 and
         " 0% packet loss" in said, said)
    done = process.run(["ip", "netns", "exec", spaces[0]] + ping(ADDRESS), 120)
    case("%s: Rocade answers pings of a kernel" % name, done.returncode == 0,
         done.stdout + done.stderr)
    share.send_signal(signal.SIGTERM)
    status, said = share.finish(20)
    words = said.split()
    case("%s: the application ends, with its ports" % name, status == 0 and
         "%d texts returned" % len(SIZES) in said and int(words[words.index("frames") - 3]) >= 300,
         "%s: %s" % (status, said))


def shared(name, devices, bridges):
    spaces = networks(name[:1])
    share = share_start(spaces[1], devices, bridges)
    with Host([spaces[0]], 0, TAP, addresses=CLIENT_ADDRESS) as client:
        plug(spaces[0], "port", "br0")
        forwards(spaces, share, client, name)


def main():
    if not is_root() or not os.path.exists("/dev/net/tun"):
        return run(lambda: skip("share", "needs root and /dev/net/tun"))
    packet = ["net_af_packet%d,iface=%s,qpairs=1,framesz=2048,blocksz=4096,framecnt=1024" % row
              for row in ((0, "near"), (1, "far"))]
    taps = ["net_tap0,iface=tap0", "net_tap1,iface=tap1"]
    return run(lambda: shared("af_packet", packet, []),
               lambda: shared("tap", taps, ["near", "far"]))


if __name__ == "__main__":
    sys.exit(main())
