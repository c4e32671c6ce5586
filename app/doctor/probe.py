# SPDX-License-Identifier: BSD-3-Clause
"""Asks another host over the daemon's interface, with the daemon's address: ARP or neighbour
discovery, ICMP echo, and a message of the connection manager to UDP port 4791. Frames go through a
packet socket, which needs root. The daemon gets the answers, too, and drops what it has not asked
for."""

import ipaddress
import os
import socket
import struct
import time
import zlib

ETH_IPV4, ETH_IPV6, ETH_ARP, ETH_VLAN, ETH_ALL = 0x0800, 0x86DD, 0x0806, 0x8100, 3
UDP, ICMP, ICMP6 = 17, 1, 58
ROCE_PORT = 4791
TRIES = 3
TRY_S = 0.4
GSI_QKEY = 0x80010000
SIDR_REQ, SIDR_REP = 0x17, 0x18
# Of the port space of UDP, port 1: a service that no program offers.
SERVICE_ID = 0x0000000001110001


def checksum(data):
    """Returns the Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip_header(source, target, protocol, length):
    """Returns an IP header without fragmentation. length: of what follows."""
    if source.version == 4:
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + length, 0, 0x4000, 64, protocol, 0,
                             source.packed, target.packed)
        return header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return struct.pack("!IHBB16s16s", 6 << 28, length, protocol, 64, source.packed, target.packed)


def pseudo_header(source, target, protocol, length):
    if source.version == 4:
        return struct.pack("!4s4sxBH", source.packed, target.packed, protocol, length)
    return struct.pack("!16s16sI3xB", source.packed, target.packed, length, protocol)


def icmp(source, target, kind, body):
    """Returns an IP packet with an ICMP message. body: from the fifth byte on."""
    message = struct.pack("!BBH", kind, 0, 0) + body
    protocol = ICMP
    data = message
    if source.version == 6:
        protocol = ICMP6
        data = pseudo_header(source, target, protocol, len(message)) + message
    message = message[:2] + struct.pack("!H", checksum(data)) + message[4:]
    return ip_header(source, target, protocol, len(message)) + message


def invariant(header, udp, bth):
    """Returns the bytes over which the ICRC is computed, before the payload: the fields that a
    router may change are ones (annex A17.3.3)."""
    if header[0] >> 4 == 4:
        header = header[:1] + b"\xff" + header[2:8] + b"\xff" + header[9:10] + b"\xff\xff" + \
            header[12:]
    else:
        header = bytes([header[0] | 0x0F]) + b"\xff\xff\xff" + header[4:7] + b"\xff" + header[8:]
    return b"\xff" * 8 + header + udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:]


def sidr_request(source, target, number):
    """Returns an IP packet with a SIDR_REQ to QP 1 of the target (IBA 12.11.1). number: of the
    request, which the answer repeats."""
    mad = struct.pack("!BBBBHHQHHI", 1, 7, 2, 3, 0, 0, number, SIDR_REQ, 0, 0)
    mad += struct.pack("!IHHQ", number & 0xFFFFFFFF, 0xFFFF, 0, SERVICE_ID)
    mad = mad.ljust(256, b"\0")
    # UD SEND only, P_Key 0xffff, QP 1; Q_Key and source QP 1.
    bth = struct.pack("!BBHII", 0x64, 0x40, 0xFFFF, 1, number & 0xFFFFFF)
    deth = struct.pack("!II", GSI_QKEY, 1)
    length = 8 + len(bth) + len(deth) + len(mad) + 4
    header = ip_header(source, target, UDP, length)
    udp = struct.pack("!HHHH", 49152, ROCE_PORT, length, 0)
    crc = zlib.crc32(invariant(header, udp, bth) + deth + mad)
    payload = bth + deth + mad + struct.pack("<I", crc)
    if source.version == 6:
        data = pseudo_header(source, target, UDP, length) + udp + payload
        udp = udp[:6] + struct.pack("!H", checksum(data) or 0xFFFF)
    return header + udp + payload


def arp_request(mac, source, target):
    return struct.pack("!HHBBH6s4s6s4s", 1, ETH_IPV4, 6, 4, 1, mac, source.packed, bytes(6),
                       target.packed)


def solicitation(mac, source, target):
    """Returns a neighbour solicitation, and its Ethernet destination (RFC 4861)."""
    group = ipaddress.IPv6Address(b"\xff\x02" + bytes(9) + b"\x01\xff" + target.packed[13:])
    packet = icmp(source, group, 135, bytes(4) + target.packed + b"\x01\x01" + mac)
    return packet[:7] + b"\xff" + packet[8:], b"\x33\x33" + group.packed[12:]


def split(frame):
    """Returns EtherType and what follows, of a frame with or without a VLAN tag."""
    kind = struct.unpack_from("!H", frame, 12)[0]
    at = 14
    if kind == ETH_VLAN and len(frame) >= 18:
        kind, at = struct.unpack_from("!H", frame, 16)[0], 18
    return kind, frame[at:]


def ip_payload(frame, source, target):
    """Returns protocol and payload of an IP packet between these two, or (None, b"")."""
    kind, data = split(frame)
    if kind == ETH_IPV4 and len(data) >= 20 and (data[12:16], data[16:20]) == (
            source.packed, target.packed):
        return data[9], data[(data[0] & 15) * 4:struct.unpack_from("!H", data, 2)[0]]
    if kind == ETH_IPV6 and len(data) >= 40 and (data[8:24], data[24:40]) == (
            source.packed, target.packed):
        return data[6], data[40:40 + struct.unpack_from("!H", data, 4)[0]]
    return None, b""


def neighbour_mac(frame, target):
    """Returns the MAC address in an answer of the target, or None."""
    kind, data = split(frame)
    if kind == ETH_ARP and len(data) >= 28 and data[6:8] == b"\0\2" and data[14:18] == \
            target.packed:
        return data[8:14]
    if kind == ETH_IPV6 and len(data) >= 64 and data[6] == ICMP6 and data[40] == 136 and \
            data[48:64] == target.packed:
        option = data[64:72]
        return option[2:8] if option[:2] == b"\x02\x01" else frame[6:12]
    return None


def is_echo(frame, source, target, mark, size):
    """Whether a frame is the answer of the target to an echo of this size."""
    protocol, data = ip_payload(frame, target, source)
    return protocol in (ICMP, ICMP6) and data[:1] == (b"\0" if protocol == ICMP else b"\x81") and \
        data[4:8] == mark and len(data) == size


def is_sidr_reply(frame, source, target, number):
    protocol, data = ip_payload(frame, target, source)
    return protocol == UDP and data[2:4] == struct.pack("!H", ROCE_PORT) and len(data) >= 28 + 28 \
        and data[8] == 0x64 and data[36:44] == struct.pack("!Q", number) and \
        data[44:46] == struct.pack("!H", SIDR_REP)


class Probe:
    """The wire. A test has another one with the same four calls."""

    def __init__(self, interface, mac, vlan=0):
        self.mac, self.vlan = mac, vlan
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_ALL))
        self.socket.bind((interface, ETH_ALL))
        self.number = int.from_bytes(os.urandom(7), "big")

    def exchange(self, target_mac, kind, packet, answer):
        """Sends a packet until answer() of a received frame is true. Returns that, or None."""
        tag = struct.pack("!HH", ETH_VLAN, self.vlan) if self.vlan else b""
        frame = target_mac + self.mac + tag + struct.pack("!H", kind) + packet
        for _ in range(TRIES):
            try:
                self.socket.send(frame.ljust(60, b"\0"))
            except OSError:  # longer than the interface's MTU
                return None
            end = time.monotonic() + TRY_S
            while time.monotonic() < end:
                self.socket.settimeout(max(end - time.monotonic(), 0.001))
                try:
                    found = answer(self.socket.recv(65536))
                except (OSError, IndexError, struct.error):
                    continue  # nothing came, or a frame that is too short
                if found:
                    return found
        return None

    @staticmethod
    def kind(address):
        return ETH_IPV4 if address.version == 4 else ETH_IPV6

    def neighbour(self, source, target):
        """Returns the MAC address of a host on the link, or None."""
        if target.version == 4:
            packet, where, kind = arp_request(self.mac, source, target), b"\xff" * 6, ETH_ARP
        else:
            (packet, where), kind = solicitation(self.mac, source, target), ETH_IPV6
        return self.exchange(where, kind, packet, lambda frame: neighbour_mac(frame, target))

    def echo(self, mac, source, target, ip_length):
        """Whether the target answers an echo in an IP packet of this length."""
        self.number += 1
        mark = struct.pack("!I", self.number & 0xFFFFFFFF)
        size = ip_length - (20 if target.version == 4 else 40)
        packet = icmp(source, target, 8 if target.version == 4 else 128,
                      mark + bytes(size - 8))
        return bool(self.exchange(mac, self.kind(target), packet, lambda frame: is_echo(
            frame, source, target, mark, size)))

    def roce(self, mac, source, target):
        """Whether QP 1 of the target answers at UDP port 4791."""
        self.number += 1
        number = self.number
        return bool(self.exchange(mac, self.kind(target), sidr_request(source, target, number),
                                  lambda frame: is_sidr_reply(frame, source, target, number)))

    def close(self):
        self.socket.close()
