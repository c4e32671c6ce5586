#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A Linux kernel is the neighbour of a Rocade port, over net_tap and net_af_packet. It resolves and
pings the port, over IPv4 and IPv6, with and without a VLAN tag, and the port resolves the kernel.
Needs root. Runs in a network namespace of its own, which ends with the program."""

import os
import socket
import struct
import subprocess
import sys
import time

SOURCE = os.environ.get("ROCADE_SOURCE") or os.path.realpath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("ROCADE_BUILD") or os.path.join(SOURCE, "build")
PORT = os.path.join(BUILD, "test", "e2e", "echo_port")
KERNEL_MAC = "02:00:00:00:00:01"
SOL_PACKET = 263
PACKET_AUXDATA = 8
TP_STATUS_VLAN_VALID = 0x10

cases = []


def case(name, good, why=""):
    cases.append(bool(good))
    print("%sok %d - %s" % ("" if good else "not ", len(cases), name), flush=True)
    if not good:
        print("%s: %s" % (name, why), file=sys.stderr)


def run(*args, check=True):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False)
    if check and done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(args), done.stdout))
    return done.stdout


def ping(name, *args):
    """All 20 echoes must arrive in one of up to six tries: a frame may be late on a busy machine,
    and a signal tells net_tap of a frame, of which two at once count as one."""
    for _ in range(6):
        out = run("ping", "-q", "-i", "0.01", "-c", "20", "-W", "2", *args, check=False)
        if " 0% packet loss" in out:
            break
    case(name, " 0% packet loss" in out, out)


class Port:
    """echo_port over one PMD. device: the kernel's end of the link."""

    def __init__(self, vdev, device, mtu=1500, vlan=0):
        self.device = device
        self.mtu = mtu
        self.process = subprocess.Popen(
            [PORT, "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "128", "-l",
             "0", "--log-level=error", "--vdev=" + vdev, "--", str(mtu), str(vlan),
             "198.18.0.254", "fd00:18::fe", "198.18.0.2/24", "fd00:18::2/64"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().split()
        if len(line) != 2 or line[0] != "open":
            raise RuntimeError("cannot open the port: %s" % line)
        self.mac = line[1]

    def start(self):
        self.say("go")

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def resolve(self, address):
        self.say("resolve " + address)
        return self.process.stdout.readline().strip()

    def close(self):
        self.say("quit")
        return self.process.wait(timeout=20)

    def kill(self):
        self.process.kill()
        self.process.wait()


def has_vlan_devices():
    """Whether the kernel supports 802.1Q devices."""
    done = subprocess.run(["ip", "link", "add", "link", "lo", "name", "rvlan", "type", "vlan",
                           "id", "2"], stderr=subprocess.DEVNULL, check=False)
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
    # Wait until duplicate address detection has accepted the link-local address.
    for _ in range(100):
        if "tentative" not in run("ip", "-6", "addr", "show", "dev", device):
            break
        time.sleep(0.1)


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


def sniff(wire, seconds):
    """Returns the frames of this time, with the VLAN tags that the kernel removed restored."""
    frames = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wire.settimeout(max(end - time.monotonic(), 0.001))
        try:
            frame, aux, _, _ = wire.recvmsg(65536, 256)
        except TimeoutError:
            break
        for level, kind, data in aux:
            if level != SOL_PACKET or kind != PACKET_AUXDATA:
                continue
            status, _, _, _, _, tci, _ = struct.unpack("IIIHHHH", data[:20])
            if status & TP_STATUS_VLAN_VALID:
                frame = frame[:12] + b"\x81\x00" + struct.pack("!H", tci) + frame[12:]
        frames.append(frame)
    return frames


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
        ping("%s: the port answers an IPv4 echo of %s bytes" % (name, size), "-M", "do", "-s", size,
             "198.18.0.2")
    for size in ("0", "56", "57", str(port.mtu - 48)):
        ping("%s: the port answers an IPv6 echo of %s bytes" % (name, size), "-6", "-M", "do", "-s",
             size, "fd00:18::2")
    ping("%s: the port answers an echo to its link-local address" % name, "-6", "%s%%%s" % (
        link_local(port.mac), device))
    for address in ("198.18.0.2", "fd00:18::2"):
        got = neighbour(device, address)
        case("%s: the kernel has resolved %s" % (name, address), got == port.mac, got)
    for address in ("198.18.0.1", "fd00:18::1", link_local(KERNEL_MAC)):
        got = port.resolve(address)
        case("%s: the port resolves %s" % (name, address), got == KERNEL_MAC, got)


def tap_tests():
    port = Port("net_tap0,iface=rtap0", "rtap0")
    try:
        tap_kernel_end("rtap0")
        address_device("rtap0")
        wire = wire_open("rtap0")
        port.start()
        frames = sniff(wire, 0.5)
        own = mac_bytes(port.mac)
        case("tap: the port announces its IPv4 address by ARP", any(
            f[:6] == b"\xff" * 6 and f[6:12] == own and f[12:14] == b"\x08\x06" and
            f[28:32] == f[38:42] == socket.inet_aton("198.18.0.2") for f in frames),
             str(frames))
        for address in ("fd00:18::2", link_local(port.mac)):
            target = socket.inet_pton(socket.AF_INET6, address)
            case("tap: the port announces %s by ND" % address, any(
                f[6:12] == own and f[12:14] == b"\x86\xdd" and f[54:55] == b"\x88" and
                f[62:78] == target for f in frames), str(frames))

        run("ip", "neigh", "flush", "dev", "rtap0")
        pinged("tap", port, "rtap0")

        sniff(wire, 0.05)
        wire.send(arp(1, KERNEL_MAC, "0.0.0.0", "198.18.0.2"))
        case("tap: the port answers an ARP probe", any(
            f[:6] == mac_bytes(KERNEL_MAC) and f[6:12] == own and f[20:22] == b"\0\2"
            for f in sniff(wire, 0.5)))
        run("ip", "addr", "add", "fd00:18::2/64", "dev", "rtap0")
        for _ in range(50):
            state = run("ip", "-6", "addr", "show", "dev", "rtap0", "to", "fd00:18::2")
            if "dadfailed" in state:
                break
            time.sleep(0.1)
        case("tap: the port answers the kernel's duplicate address detection",
             "dadfailed" in state, state)
        run("ip", "addr", "del", "fd00:18::2/64", "dev", "rtap0")

        got = port.resolve("198.18.0.77")
        case("tap: an unused address of the subnet is unreachable", got == "EHOSTUNREACH", got)
        got = port.resolve("192.0.2.1")
        case("tap: a remote address is unreachable without the gateway", got == "EHOSTUNREACH", got)
        run("ip", "addr", "add", "198.18.0.254/24", "dev", "rtap0")
        for _ in range(50):
            got = port.resolve("192.0.2.1")
            if got == KERNEL_MAC:
                break
            time.sleep(0.1)
        case("tap: a remote address resolves to a gateway that appears", got == KERNEL_MAC, got)

        # A gratuitous ARP of the kernel: its address has moved to another MAC.
        moved = "02:00:00:00:00:09"
        wire.send(arp(1, moved, "198.18.0.1", "198.18.0.1"))
        time.sleep(0.2)
        got = port.resolve("198.18.0.1")
        case("tap: a gratuitous ARP changes the MAC of a known neighbour", got == moved, got)
        case("tap: the port closes", port.close() == 0)
    finally:
        port.kill()


def tagged(name, port, device):
    """Sends ARP requests with VLAN tags by a raw socket: the kernel may have no VLAN devices."""
    wire = wire_open(device)
    for tag, answers in ((b"\x81\x00\x60\x64", True), (b"\x81\x00\x00\x65", False),
                         (b"", False)):
        frame = arp(1, KERNEL_MAC, "198.18.0.1", "198.18.0.2")
        sniff(wire, 0.05)
        wire.send(frame[:12] + tag + frame[12:])
        found = any(
            f[:6] == mac_bytes(KERNEL_MAC) and f[6:12] == mac_bytes(port.mac) and
            f[12:18] == b"\x81\x00\x00\x64\x08\x06" and f[24:26] == b"\0\2"
            for f in sniff(wire, 0.3))
        case("%s: the port %s an ARP request with tag '%s'" % (
            name, "answers" if answers else "ignores", tag.hex()), found == answers)


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
    tap_tests()
    vlan_tests()
    packet_tests("af_packet", 1500, 0)
    packet_tests("af_packet 4180", 4180, 0)
    packet_tests("af_packet VLAN", 1500, 100)
    print("1..%d" % len(cases))
    return 0 if all(cases) else 1


sys.exit(main())
