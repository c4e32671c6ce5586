#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd detects one wrong byte. A sender that shares no code with Rocade puts RC SENDs
with a correct ICRC on a veth: a message as rocade-testpmd fills it, and one with a flipped bit."""

import os
import re
import socket
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from capture import inject  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import Testpmd, add_space, eal, ip, is_root  # noqa: E402

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
QPN, SIZE = 0x100, 100


def payload(qpn, message, size):
    x = (message + (qpn << 40) + STEP) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    seed = x ^ (x >> 31)
    words = (size + 7) // 8
    return b"".join(struct.pack("<Q", (seed + k * STEP) & MASK) for k in range(words))[:size]


def send_only(mac, qpn, psn, data):
    """Ethernet, IPv4, UDP, BTH (RC SEND_ONLY, AckReq), payload, ICRC."""
    bth = struct.pack(">BBHII", 0x04, (-len(data) % 4) << 4, 0xFFFF, qpn, 1 << 31 | psn)
    body = bth + data + bytes(-len(data) % 4)
    udp = struct.pack(">HHHH", 0xC000, 4791, 8 + len(body) + 4, 0)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp) + len(body) + 4, 0, 0x4000, 64, 17,
                       0, socket.inet_aton("192.0.2.1"), socket.inet_aton("192.0.2.2"))
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    masked = bytearray(head + udp + body)
    for at in (1, 8, 10, 11, 26, 27, 32):
        masked[at] = 0xFF
    icrc = struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))
    return mac + b"\x02\0\0\0\0\x01\x08\x00" + head + udp + body + icrc


def receive(flip):
    """Sends a correct message 0, and message 1 with the bits `flip` of byte 37 inverted. Returns
    the sink and its exit status."""
    name = "flip%d" % flip
    spaces = [add_space(name + "a"), add_space(name + "b")]
    ip("-n", spaces[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
       spaces[1])
    for space in spaces:
        ip("-n", space, "link", "set", "eth0", "up")
    sink = Testpmd(["--mode", "sink", "--addr", "192.0.2.2/24", "--peer", "192.0.2.1", "-s", SIZE,
                    "-c", "2", "--wait", "10"],
                   eal(0, "net_af_packet0,iface=eth0,qpairs=1", memory_mb=256), space=spaces[1])
    sink.expect("^port 0: sink", 20)
    link = ip("-n", spaces[1], "link", "show", "eth0")
    mac = bytes.fromhex(re.search(r"link/ether ([0-9a-f:]+)", link).group(1).replace(":", ""))
    second = bytearray(payload(QPN, 1, SIZE))
    second[37] ^= flip
    inject(spaces[0], "eth0", [send_only(mac, QPN, 0, payload(QPN, 0, SIZE)),
                               send_only(mac, QPN, 1, bytes(second))])
    return sink, sink.wait(30)


def flips():
    if not is_root():
        skip("one flipped bit", "needs root")
        return
    sink, code = receive(0)
    case("the documented payload passes", code == 0 and
         sink.json()["bytes_verified"] == 2 * SIZE, "%s %s" % (code, sink.tail()))
    sink, code = receive(0x10)
    report = sink.json()
    case("one flipped bit: exit status 1", code == 1, "%s %s" % (code, sink.tail()))
    case("one flipped bit: the message has QP, message and offset", "message 1 (send) of QP 0x100 is "
         "wrong: 1 of its 100 bytes, the first at offset 37" in sink.text, sink.tail())
    case("one flipped bit: the report counts it", report["result"] == "fail" and
         report["bad_bytes"] == 1 and report["bad_messages"] == 1 and report["messages"] == 2,
         report)


if __name__ == "__main__":
    sys.exit(run(flips))
