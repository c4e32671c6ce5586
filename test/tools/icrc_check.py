#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the invariant CRC of every RoCEv2 packet in captures (pcap or pcapng) with zlib, by code
that shares nothing with the library. Prints a line per file and a total. Exit status: 1 if an ICRC
is wrong, a packet is truncated or there are fewer than --min packets, 2 if a file cannot be
read."""

import argparse
import struct
import sys
import zlib

ROCE_PORT = 4791
LINK_ETHERNET, LINK_SLL, LINK_SLL2 = 1, 113, 276


class BadFile(Exception):
    pass


def pcap_frames(data, order):
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    at = 24
    while at < len(data):
        if len(data) - at < 16:
            raise BadFile("ends inside a record")
        length = struct.unpack_from(order + "I", data, at + 8)[0]
        at += 16
        if len(data) - at < length:
            raise BadFile("ends inside a record")
        yield link, data[at:at + length]
        at += length


def pcapng_frames(data):
    order, links, at = "<", [], 0
    while at < len(data):
        if len(data) - at < 12:
            raise BadFile("ends inside a block")
        if data[at:at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, length = struct.unpack_from(order + "II", data, at)
        if length < 12 or length > len(data) - at:
            raise BadFile("ends inside a block")
        if kind == 1:  # interface description
            links.append(struct.unpack_from(order + "H", data, at + 8)[0])
        elif kind == 6:  # enhanced packet
            interface, _, _, cut = struct.unpack_from(order + "IIII", data, at + 8)
            if interface >= len(links) or 32 + cut > length:
                raise BadFile("an invalid packet block")
            yield links[interface], data[at + 28:at + 28 + cut]
        at += length


def frames(path):
    with open(path, "rb") as file:
        data = file.read()
    magic = data[:4]
    if magic == b"\x0a\x0d\x0d\x0a":
        return pcapng_frames(data)
    if len(data) >= 24 and magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        return pcap_frames(data, "<")
    if len(data) >= 24 and magic in (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"):
        return pcap_frames(data, ">")
    raise BadFile("not a pcap or pcapng file")


def ip_packet(link, frame):
    """Returns (EtherType, bytes from the IP header on)."""
    if link == LINK_SLL:
        return frame[14:16], frame[16:]
    if link == LINK_SLL2:
        return frame[0:2], frame[20:]
    if link != LINK_ETHERNET:
        raise BadFile("link type %d is not supported" % link)
    at = 12
    while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    return frame[at:at + 2], frame[at + 2:]


def check(link, frame):
    """Returns 'ok', 'wrong', 'cut' (truncated), or None if the frame is not RoCEv2."""
    kind, packet = ip_packet(link, frame)
    packet = bytearray(packet)
    if kind == b"\x08\x00" and len(packet) >= 20 and packet[9] == 17:
        if struct.unpack_from(">H", packet, 6)[0] & 0x3FFF:
            return None  # a fragment
        udp = (packet[0] & 0x0F) * 4
        masked = [1, 8, 10, 11]
        nibble = False
    elif kind == b"\x86\xdd" and len(packet) >= 40 and packet[6] == 17:
        udp = 40
        masked = [1, 2, 3, 7]
        nibble = True
    else:
        return None
    if len(packet) < udp + 8:
        return "cut"
    port, length = struct.unpack_from(">HH", packet, udp + 2)
    if port != ROCE_PORT:
        return None
    end = udp + length
    if length < 8 + 12 + 4 or len(packet) < end:
        return "cut"
    for at in masked + [udp + 6, udp + 7, udp + 12]:
        packet[at] = 0xFF
    if nibble:
        packet[0] |= 0x0F
    want = zlib.crc32(bytes([0xFF] * 8) + bytes(packet[:end - 4]))
    have = struct.unpack_from("<I", packet, end - 4)[0]
    return "ok" if want == have else "wrong"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--min", type=int, default=1, metavar="N",
                        help="fail if there are fewer RoCEv2 packets (default 1)")
    args = parser.parse_args()
    total = {"ok": 0, "wrong": 0, "cut": 0, None: 0}
    for path in args.files:
        counts = dict.fromkeys(total, 0)
        try:
            for number, (link, frame) in enumerate(frames(path), 1):
                result = check(link, frame)
                counts[result] += 1
                if result in ("wrong", "cut"):
                    print("%s: frame %d: ICRC %s" % (path, number, result))
        except (OSError, BadFile) as error:
            print("%s: %s" % (path, error), file=sys.stderr)
            return 2
        print("%s: %d ok, %d wrong, %d cut off, %d other" % (
            path, counts["ok"], counts["wrong"], counts["cut"], counts[None]))
        for key in total:
            total[key] += counts[key]
    print("total: %d ok, %d wrong, %d cut off, %d other" % (
        total["ok"], total["wrong"], total["cut"], total[None]))
    seen = total["ok"] + total["wrong"] + total["cut"]
    if total["wrong"] or total["cut"]:
        return 1
    if seen < args.min:
        print("only %d RoCEv2 packets, expected at least %d" % (seen, args.min))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
