#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A Linux kernel is the neighbour of a Rocade port, over net_tap and net_af_packet. It resolves and
pings the port, over IPv4 and IPv6, with and without a VLAN tag, and the port resolves the kernel.
Needs root. Runs in a network namespace of its own, which ends with the program."""

import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
import process  # noqa: E402
import tap  # noqa: E402
from limit import Limit  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case  # noqa: E402
from testpmd import BUILD, ping  # noqa: E402

PORT = os.path.join(BUILD, "test", "e2e", "echo_port")
KERNEL_MAC = "02:00:00:00:00:01"
SOL_PACKET = 263
PACKET_AUXDATA = 8
TP_STATUS_VLAN_VALID = 0x10

def run(*args, check=True):
    return process.run(args, check=check).stdout


def answers(name, *args):
    done = process.run(ping(*args), 120)
    case(name, done.returncode == 0, done.stdout + done.stderr)


class Port:
    """echo_port over one PMD. device: the kernel's end of the link."""

    def __init__(self, vdev, device, mtu=1500, vlan=0):
        self.device = device
        self.mtu = mtu
        self.process = Process(
            [PORT, "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "128", "-l",
             "0", "--log-level=error", "--vdev=" + vdev, "--", mtu, vlan, "198.18.0.254",
             "fd00:18::fe", "198.18.0.2/24", "fd00:18::2/64"], apart=True, feed=True)
        self.mac = self.process.wait_line("open ").split()[1]

    def start(self):
        self.process.say("go\n")

    def resolve(self, address):
        self.process.say("resolve %s\n" % address)
        return self.process.wait_line().strip()

    def close(self):
        self.process.say("quit\n")
        return self.process.wait()

    def kill(self):
        self.process.kill()


def has_vlan_devices():
    """Whether the kernel supports 802.1Q devices."""
    done = process.run(["ip", "link", "add", "link", "lo", "name", "rvlan", "type", "vlan", "id",
                        "2"])
    run("ip", "link", "del", "rvlan", check=False)
    return done.returncode == 0


def tap_kernel_end(device):
    """Gives the kernel's end another MAC and so another link-local address: net_tap gives both
    ends the same MAC and brings the kernel's end up."""
    run("ip", "link", "set", device, "down")
    run("ip", "link", "set", device, "address", KERNEL_MAC)
    run("ip", "link", "set", device, "up")


def address_device(device):
    run("ip", "link", "set", device, "up")
    run("ip", "addr", "add", "198.18.0.1/24", "dev", device)
    run("ip", "addr", "add", "fd00:18::1/64", "dev", device, "nodad")
    # Duplicate address detection must have accepted the link-local address.
    until(lambda: "tentative" not in run("ip", "-6", "addr", "show", "dev", device))


def link_local(mac):
    m = [int(b, 16) for b in mac.split(":")]
    return "fe80::%x:%xff:fe%02x:%x" % (
        (m[0] ^ 2) << 8 | m[1], m[2], m[3], m[4] << 8 | m[5])


def neighbour(device, address):
    """Returns the MAC of the kernel's neighbour entry, or the entry if it has none."""
    words = run("ip", "neigh", "show", address, "dev", device).split()
    return words[words.index("lladdr") + 1] if "lladdr" in words else " ".join(words)


def wire_open(device):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind((device, 0))
    wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    return wire


def frames(wire):
    """Yields the frames up to the limit of a wait, with the VLAN tags that the kernel removed restored."""
    limit = Limit()
    wire.settimeout(1)
    while not limit.reached():
        try:
            frame, aux, _, _ = wire.recvmsg(65536, 256)
        except TimeoutError:
            continue
        for level, kind, data in aux:
            if level != SOL_PACKET or kind != PACKET_AUXDATA:
                continue
            status, _, _, _, _, tci, _ = struct.unpack("IIIHHHH", data[:20])
            if status & TP_STATUS_VLAN_VALID:
                frame = frame[:12] + b"\x81\x00" + struct.pack("!H", tci) + frame[12:]
        yield frame


def mac_bytes(mac):
    return bytes.fromhex(mac.replace(":", ""))


def arp(op, src_mac, src, dst):
    return b"\xff" * 6 + mac_bytes(src_mac) + b"\x08\x06" + struct.pack(
        "!HHBBH6s4s6s4s", 1, 0x800, 6, 4, op, mac_bytes(src_mac), socket.inet_aton(src),
        bytes(6), socket.inet_aton(dst))


def pinged(name, port, device):
    """Cases for any port whose kernel's end is configured."""
    big = port.mtu - 28
    for size in ("0", "56", "57", str(big)):
        answers("%s: the port answers an IPv4 echo of %s bytes" % (name, size), "-M", "do", "-s",
                size, "198.18.0.2")
    for size in ("0", "56", "57", str(port.mtu - 48)):
        answers("%s: the port answers an IPv6 echo of %s bytes" % (name, size), "-6", "-M", "do",
                "-s", size, "fd00:18::2")
    answers("%s: the port answers an echo to its link-local address" % name, "-6", "%s%%%s" % (
        link_local(port.mac), device))
    for address in ("198.18.0.2", "fd00:18::2"):
        got = neighbour(device, address)
        case("%s: the kernel has resolved %s" % (name, address), got == port.mac, got)
    for address in ("198.18.0.1", "fd00:18::1", link_local(KERNEL_MAC)):
        got = port.resolve(address)
        case("%s: the port resolves %s" % (name, address), got == KERNEL_MAC, got)


def announced(wire, port):
    """Cases for the frames that a port sends when it starts."""
    own = mac_bytes(port.mac)
    wanted = {socket.inet_aton("198.18.0.2"): "198.18.0.2 by ARP"}
    for address in ("fd00:18::2", link_local(port.mac)):
        wanted[socket.inet_pton(socket.AF_INET6, address)] = address + " by ND"
    seen = set()
    for f in frames(wire):
        if f[:14] == b"\xff" * 6 + own + b"\x08\x06" and f[28:32] == f[38:42]:
            seen.add(f[28:32])
        if f[6:14] == own + b"\x86\xdd" and f[54:55] == b"\x88":
            seen.add(f[62:78])
        if seen >= set(wanted):
            break
    for address, name in wanted.items():
        case("tap: the port announces " + name, address in seen, seen)


def tap_tests():
    port = Port("net_tap0,iface=rtap0", "rtap0")
    try:
        tap_kernel_end("rtap0")
        address_device("rtap0")
        wire = wire_open("rtap0")
        port.start()
        announced(wire, port)

        run("ip", "neigh", "flush", "dev", "rtap0")
        pinged("tap", port, "rtap0")

        wire.send(arp(1, KERNEL_MAC, "0.0.0.0", "198.18.0.2"))
        case("tap: the port answers an ARP probe", any(
            f[:6] == mac_bytes(KERNEL_MAC) and f[6:12] == mac_bytes(port.mac) and
            f[20:22] == b"\0\2" and f[38:42] == bytes(4) for f in frames(wire)))
        run("ip", "addr", "add", "fd00:18::2/64", "dev", "rtap0")
        case("tap: the port answers the kernel's duplicate address detection", until(
            lambda: "dadfailed" in run("ip", "-6", "addr", "show", "dev", "rtap0", "to",
                                       "fd00:18::2"), 20), port.process.output())
        run("ip", "addr", "del", "fd00:18::2/64", "dev", "rtap0")

        got = port.resolve("198.18.0.77")
        case("tap: an unused address of the subnet is unreachable", got == "EHOSTUNREACH", got)
        got = port.resolve("192.0.2.1")
        case("tap: a remote address is unreachable without the gateway", got == "EHOSTUNREACH", got)
        run("ip", "addr", "add", "198.18.0.254/24", "dev", "rtap0")
        case("tap: a remote address resolves to a gateway that appears",
             until(lambda: port.resolve("192.0.2.1") == KERNEL_MAC))

        # A gratuitous ARP: the kernel's address has moved to another MAC.
        moved = "02:00:00:00:00:09"

        def claimed():
            wire.send(arp(1, moved, "198.18.0.1", "198.18.0.1"))
            return port.resolve("198.18.0.1") == moved
        case("tap: a gratuitous ARP changes no neighbour that answers",
             not any(claimed() for _ in range(100)), port.resolve("198.18.0.1"))
        run("ip", "addr", "del", "198.18.0.1/24", "dev", "rtap0")
        case("tap: a gratuitous ARP changes the MAC of a neighbour that is silent",
             until(claimed), port.resolve("198.18.0.1"))
        case("tap: the port closes", port.close() == 0)
    finally:
        port.kill()


def tagged(name, port, device):
    """Sends ARP requests with VLAN tags by a raw socket: the kernel may have no VLAN devices. The
    answer to the last shows that there is none to the others."""
    wire = wire_open(device)
    tags = ((b"\x81\x00\x00\x65", "198.18.0.11"), (b"", "198.18.0.12"),
            (b"\x81\x00\x60\x00", "198.18.0.14"), (b"\x81\x00\x60\x64", "198.18.0.13"))
    for tag, source in tags:
        frame = arp(1, KERNEL_MAC, source, "198.18.0.2")
        wire.send(frame[:12] + tag + frame[12:])
    answered = set()
    for f in frames(wire):
        if f[:18] == mac_bytes(KERNEL_MAC) + mac_bytes(port.mac) + b"\x81\x00\x00\x64\x08\x06" \
                and f[24:26] == b"\0\2":
            answered.add(socket.inet_ntoa(f[42:46]))
        elif f[:14] == mac_bytes(KERNEL_MAC) + mac_bytes(port.mac) + b"\x08\x06":
            answered.add(socket.inet_ntoa(f[38:42]))
        if tags[-1][1] in answered:
            break
    for tag, source in tags:
        good = source == tags[-1][1]
        case("%s: the port %s an ARP request with tag '%s'" % (
            name, "answers" if good else "ignores", tag.hex()), (source in answered) == good,
             answered)


def vlan_tests():
    port = Port("net_tap1,iface=rtap1", "rtap1", vlan=100)
    try:
        tap_kernel_end("rtap1")
        port.start()
        tagged("tap VLAN", port, "rtap1")
        if has_vlan_devices():
            run("ip", "link", "add", "link", "rtap1", "name", "rtap1.100", "type", "vlan", "id",
                "100")
            address_device("rtap1.100")
            pinged("tap VLAN", port, "rtap1.100")
        case("tap VLAN: the port closes", port.close() == 0)
    finally:
        port.kill()


def packet_tests(name, mtu, vlan):
    run("ip", "link", "add", "rveth0", "type", "veth", "peer", "name", "rveth1")
    run("ip", "link", "set", "rveth0", "mtu", str(mtu + 4), "address", KERNEL_MAC, "up")
    # Keep the kernel from answering ND at the port's end.
    run("sysctl", "-qw", "net.ipv6.conf.rveth1.disable_ipv6=1")
    run("ip", "link", "set", "rveth1", "mtu", str(mtu + 4), "up")
    device = "rveth0"
    if vlan and has_vlan_devices():
        device = "rveth0.%d" % vlan
        run("ip", "link", "add", "link", "rveth0", "name", device, "mtu", str(mtu), "type",
            "vlan", "id", str(vlan))
    elif not vlan:
        run("ip", "link", "set", "rveth0", "mtu", str(mtu))
    # A frame must fit in a slot of the ring, and a slot in a buffer of the port. A block must be a
    # whole number of slots and of pages.
    ring = "framesz=2048,blocksz=4096" if mtu <= 1500 else "framesz=5120,blocksz=20480"
    port = Port("net_af_packet0,iface=rveth1,framecnt=512," + ring, "rveth0", mtu, vlan)
    try:
        port.start()
        if vlan:
            tagged(name, port, "rveth0")
        if not vlan or device != "rveth0":
            address_device(device)
            pinged(name, port, device)
        case("%s: the port closes" % name, port.close() == 0)
    finally:
        port.kill()
        run("ip", "link", "del", "rveth0", check=False)


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        return 0
    if os.environ.get("ROCADE_PING_INSIDE") != "1":
        os.environ["ROCADE_PING_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable,
                              os.path.realpath(__file__)])
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    run("ip", "link", "set", "lo", "up")
    run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0")
    run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=0")
    return tap.run(tap_tests, vlan_tests, lambda: packet_tests("af_packet", 1500, 0),
                   lambda: packet_tests("af_packet 4184", 4184, 0),
                   lambda: packet_tests("af_packet VLAN", 1500, 100))


sys.exit(main())
