#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the initial fuzz corpora: frames of the captures, and scripts of steps.
Usage: seeds.py CAPTURES OUT; creates OUT/parse, OUT/net, OUT/qp, OUT/cm, OUT/ext,
OUT/switch, OUT/server and OUT/pair."""

import glob
import os
import random
import struct
import sys

REQUEST_OPS = set(range(0x00, 0x0d)) | {0x13, 0x14, 0x16, 0x17}
A, B = 0, 0x80
(SEND, RECV, PULL, DELIVER, WIRE, PACKET, _, RAW, TIME, POLL, MODIFY, SRQ, DRAIN) = range(13)
RC, UC, UD = 0, 2, 3
XRC = 0x40  # a is the initiator, b the target


def frames(path):
    """The frames of a classic pcap file."""
    with open(path, "rb") as file:
        data = file.read()
    order = "<" if struct.unpack("<I", data[:4])[0] in (0xa1b2c3d4, 0xa1b23c4d) else ">"
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def bth_of(frame):
    """The bytes from the BTH up to the ICRC, or None if the frame is too short."""
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    at += 20 if frame[at - 2:at] == b"\x08\x00" else 40
    if len(frame) < at + 24:
        return None
    end = at + struct.unpack(">H", frame[at + 4:at + 6])[0]
    return frame[at + 8:end - 4]


def step(op, a=0, b=0, c=0, x=0, y=0):
    return struct.pack("<BBBBHH", op, a, b, c, x, y)


def conf(service, mtu=3, more=0, x=0x0404, y=0):
    return step(service | more, mtu - 1, 14 | 7 << 5, 12 | 6 << 5, x, y)


def save(out, kind, name, data):
    folder = os.path.join(out, kind)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def parse_seeds(out, name, found):
    """One frame of each opcode and length class of a capture."""
    seen = set()
    for number, frame in enumerate(found):
        bth = bth_of(frame)
        key = (bth[0] if bth else frame[12:14], len(frame) > 200)
        if key not in seen and len(frame) < 1500:
            seen.add(key)
            save(out, "parse", "%s-%u" % (name, number), b"\x08" + frame)


def raw_seed(out, name, found):
    """The first packets of a capture: requests for our responder, responses for our requester."""
    bths = [b for b in map(bth_of, found) if b and len(b) < 1200][:24]
    if not bths:
        return
    service = {0: RC, 1: UC, 3: UD}.get(bths[0][0] >> 5)
    if service is None:
        return
    data = conf(service, mtu=3, x=0x1010)
    data += step(RECV | B, b=7, x=4096, y=64) * 2
    for bth in bths:
        to_b = (bth[0] & 0x1f) in REQUEST_OPS
        data += step(RAW | (B if to_b else A), b=0 if to_b else 1, x=64, y=len(bth)) + bth
        if len(data) > 12000:
            break
        data += step(PULL | (B if to_b else A), a=8) + step(DELIVER | (B if to_b else A), a=8)
    save(out, "qp", "raw-" + name, data)


def qp_scripts(out):
    """Every operation in both directions, with and without loss, RNR waits and errors."""
    for service, ops in ((RC, 8), (UC, 4), (UD, 2), (XRC, 8)):
        for more in (0, 4, 8, 0x38):
            data = conf(service, more=more) + step(RECV | B, b=7, x=8192)
            data += step(RECV, b=7, x=8192)
            for op in range(ops):
                for size in (0, 1, 1024, 4000):
                    data += step(SEND | (B if size & 1 else A), op, 1, size & 1, size, 64)
                data += step(DRAIN, a=2) + step(POLL) + step(POLL | B)
                data += step(RECV | B, b=7, x=8192) + step(RECV, b=7, x=8192)
            save(out, "qp", "script-%u-%x" % (service, more), data)
    lossy = conf(RC) + step(SEND, 0, 1, 0, 4000) + step(PULL, 32) + step(WIRE, 0, 1)
    lossy += step(DELIVER, 32) + step(PULL | B, 8) + step(DELIVER | B, 8) + step(TIME)
    lossy += step(RECV | B, b=3, x=8192) + step(TIME) + step(DRAIN, 4) + step(TIME)
    lossy += step(DRAIN, 8) + step(POLL) + step(POLL | B)
    save(out, "qp", "loss", lossy + step(SEND, 4, 1, 0, 4000) + step(PULL, 2) +
         step(DELIVER, 2) + step(PULL | B, 8) + step(WIRE | B, 0, 1) + step(DELIVER | B, 8) +
         step(DRAIN, 8) + step(POLL))
    for state in range(8):
        save(out, "qp", "state-%u" % state, conf(RC, more=8) + step(SEND, 0, 1, 0, 3000) +
             step(RECV | B, b=2, x=8192) + step(PULL, 2) + step(MODIFY, state, 3, 1, 7, 9) +
             step(SRQ | B, 3, 4, 0, 64, 2) + step(DRAIN, 3) + step(MODIFY | B, state) +
             step(DRAIN, 3) + step(MODIFY, 1) + step(DRAIN, 3))
    for opcode in range(0x18):
        save(out, "qp", "packet-xrc-%02x" % opcode, conf(XRC) + step(RECV | B, b=3, x=8192) +
             (step(PACKET | B, opcode, 0, 0, 1, 64) + bytes(8) + step(PULL | B, 4)) * 2 +
             step(PACKET | B, opcode, 0, 0, 1, 64) + b"\x80" + bytes(7) + step(PULL | B, 4) +
             step(POLL | B))
    for opcode in range(0x1e):
        save(out, "qp", "packet-%02x" % opcode, conf(RC) + step(RECV | B, b=3, x=8192) +
             (step(PACKET | B, opcode, 0, 0, 1, 64) + bytes(8) + step(PULL | B, 4)) * 2 +
             step(SEND, opcode, 1, 0, 900) + step(PULL, 2) +
             step(PACKET, opcode, 1, 0, 1, 64) + bytes([0, 0x1f]) + bytes(6) + step(POLL))


def icmp6(kind, src, dst, body):
    return struct.pack(">IHBB", 6 << 28, len(body) + 4, 58, 255) + src + dst + \
        bytes([kind, 0, 0, 0]) + body


def net_frame(frame, how=0):
    return b"\x00" + bytes([how | 1]) + struct.pack("<H", len(frame)) + frame


def net_seeds(out):
    own, peer = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2])
    ours, theirs = bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])
    ours6 = bytes.fromhex("20010db8") + bytes(11) + b"\x01"
    theirs6 = ours6[:-1] + b"\x02"
    arp = [b"\xff" * 6 + peer + struct.pack(">HHHBBH", 0x806, 1, 0x800, 6, 4, op) + peer +
           theirs + own + ours for op in (1, 2)]
    echo = own + peer + b"\x08\x00" + struct.pack(
        ">BBHHHBBH", 0x45, 0, 36, 0, 0x4000, 64, 1, 0) + theirs + ours + \
        b"\x08\0\0\0" + b"\0\1\0\1" + b"data" * 2
    ether6 = own + peer + b"\x86\xdd"
    ask = ether6 + icmp6(135, theirs6, ours6, bytes(4) + ours6 + b"\1\1" + peer)
    tell = ether6 + icmp6(136, theirs6, ours6, b"\x60\0\0\0" + theirs6 + b"\2\1" + peer)
    echo6 = ether6 + icmp6(128, theirs6, ours6, b"\0\1\0\1" + b"data" * 2)
    all_frames = arp + [echo, ask, tell, echo6]
    for number, frame in enumerate(all_frames):
        save(out, "net", "frame-%u" % number, b"\x3e" + net_frame(frame) * 2)
    steps = bytes([2, 0, 2, 3, 0x43, 2, 6, 0x43, 5, 5, 0x4c, 255, 5, 7, 2, 0, 2, 1, 2, 10])
    for conf_byte in (0x3e, 0x3f, 0x0e, 0):
        save(out, "net", "time-%02x" % conf_byte, bytes([conf_byte]) + steps +
             b"".join(net_frame(f) for f in all_frames) + steps + bytes([0x36, 5, 5]) + steps)


def cm_seeds(out, name, found):
    """The unchanged messages of a capture, with calls of each user in between."""
    bths = [b for b in map(bth_of, found) if b and b[0] == 0x64 and len(b) == 20 + 256]
    data = b"\x1f"
    for bth in bths[:8]:
        data += b"\x00" + struct.pack("<H", 256) + bth[20:] + b"\x05\x00\x00\x22" + b"\x03\x0f"
    if bths:
        save(out, "cm", "raw-" + name, data)


def cm_scripts(out):
    """Connections of a manager with itself, up to each state, by each user's call; messages built
    for its connections."""
    around = b"\x0b" * 4
    for conf_byte in (0x2f, 0x3f, 0x22):
        for sidr in (0, 0x81):
            data = bytes([conf_byte, 6, sidr, 0x10]) + around
            for what in range(7):
                save(out, "cm", "self-%02x-%02x-%u" % (conf_byte, sidr, what), data +
                     b"\x05\x01\x00\x20" + around + b"\x05\x00\x02\x20" + around +
                     bytes([5, 0, what, 0x21]) + around + bytes([5, 1, what, 0x22]) + around +
                     b"\x0f" * 20)
    for attr in range(11):
        made = bytes([1, attr, 0, 0, 7]) + bytes([1, 0, 9, 20, 15])
        save(out, "cm", "made-%u" % attr, b"\x1f\x06\x00\x10\x03" + made + b"\x05\x00\x00\x30" +
             made * 2 + b"\xf4\xff" + b"\x0f" * 10)


def switch_scripts(out):
    """Requests of the hostile client for a QPN of its own and for those of others, then its frames,
    while the honest clients talk to each other."""
    first, second, own = 0x60, 0x61, 0x62
    run, pair, look = b"\x26\x10", b"\x04\x0c", b"\x05\x0d"
    for kind in range(1, 11):
        for qpn in (first, own):
            for group in (0, 2):
                data = pair + bytes([3, kind, qpn, second, 0, group]) + run + look
                for opcode in (0, 1, 3, 5):
                    for deth in (b"\x01", b"\x00"):
                        frame = b"\x00" + deth + bytes([0, own, opcode, 0x20 if group else second])
                        data += frame + deth[:1 - deth[0]] + bytes([64, 0, group]) + run + look
                save(out, "switch", "ask-%u-%02x-%u" % (kind, qpn, group), data + pair + run + look)
    for place in range(0, 320, 4):
        data = pair + b"\x02" + struct.pack("<HBB", place, 0, 4) + b"\xff\x00\x00\x01" + run + look
        save(out, "switch", "write-%u" % place, data * 2)


def forward(client, how, *values):
    """The next command of a program, for one of its IDs. The last byte: the daemon handles it now."""
    return bytes([client << 4 | 9, how, *values, 0])


def connection():
    """Clients 0 and 1, of two users, attach; 0 listens; 1 connects to it, and is accepted."""
    attach = bytes([0x01, 0, 0x11, 0])
    event = {client: forward(client, 0, 0, 0) for client in (0, 1)}
    listen = forward(0, 0) + forward(0, 0x80, 4) + forward(0, 0x80, 0, 4)
    connect = forward(1, 0) + forward(1, 0, 0x0c) + event[1] * 5
    accept = event[0] + forward(0, 0x41, 0, 0) + event[1] * 2 + event[0]
    return b"\0" + attach + listen + connect + accept


def server_scripts(out):
    """A connection of two clients, then requests of each type, commands and ends; packets."""
    made, honest, turn = connection(), b"\x0f\0", b"\x0e\xff\0"
    save(out, "server", "connection", made + honest + turn)
    both = [forward(client, *values) for values in ((0,), (0x80, 4), (0x80, 0, 4)) for client in (0, 1)]
    save(out, "server", "ports", bytes([0, 0x01, 0, 0x11, 0]) + b"".join(both) + honest)
    attach = b"".join(bytes([client << 4 | 1, 0]) for client in range(4))
    for how in range(4):
        hoard = b"".join(bytes([client << 4, what, 0]) for what in (how, 0) for client in range(4))
        save(out, "server", "hoard-%u" % how, bytes([2]) + attach + hoard + honest +
             bytes([0x0d, 0, 1, 0x1d, 0, 0]) + honest)
    for kind in range(1, 16):
        for qpn in (0, 0x40, 0x80, 0xc0):
            save(out, "server", "ask-%u-%02x" % (kind, qpn), made +
                 bytes([2, kind, 0, qpn, 0x80, 0, 1, 0]) * 2 +
                 bytes([2, kind | 16, 0, 0, 0, 1, 0, 0, 0, 0, 0]) +
                 bytes([2, kind | 128, 2, qpn, 0, 0, 0, 0]) + honest)
    for cmd in range(24):
        save(out, "server", "command-%u" % cmd, made + bytes([6, 0, cmd, 4, 1, 0, 0]) +
             bytes([0x16, 1, cmd, 0x0c, 0, 0, 0]) + honest + turn * 3)
    for number in range(8):  # long ones
        save(out, "server", "mixed-%u" % number, made + random.Random(number).randbytes(3000))
    for how in range(8):
        save(out, "server", "end-%u" % how, made + bytes([0x0d, how, 0]) + turn * 2 + honest +
             bytes([0x1d, how, 0]) + turn + honest)
        save(out, "server", "memory-%u" % how, made + bytes([0x0c, how, 1, 1, 0, 0, 0]) * 3 + honest)
    # Clients 0 and 2, of one user, form a pair, and end it in each state.
    two = b"\0" + bytes([0x01, 0, 0x21, 0, 4, 0, 2, 0])
    events = [bytes([client << 4 | 4, 6, 0, 0]) for client in (0, 0, 2, 2, 0, 0, 2)]
    for length in range(len(events) + 1):
        save(out, "server", "pair-%u" % length, two + b"".join(events[:length]) + honest +
             (bytes([0x0d, 0, 0]) if length & 1 else bytes([4, 2, 0, 0, 0x24, 2, 0, 0])) +
             events[2] * 2 + events[0] * 2 + honest)
    # A client reports impossible peers, and asks for its statistics.
    take = bytes([2, 3, 0, 0, 0, 0, 0, 0])
    lie = bytes([0x0c, 8, 16, 0, 15]) + b"\xff" * 15 + bytes([0xff, 0xff, 0])
    ask = bytes([2, 10 | 16, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    save(out, "server", "peers", made + take + lie + ask + honest)


def ext_seeds(out):
    """Hosts that answer with an extension, with an error, or not at all; their queries."""
    ask, send, tick = bytes([0, 0, 0, 1]), b"\x04", bytes([5 + 6 * 20, 10])
    query = bytes([8, 0, 0, 9]) + bytes(range(40)) + struct.pack(">I", 0x10000001)
    save(out, "ext", "answered", b"\0" + ask + send + b"\x03\0" + ask + tick + query * 3 + send)
    save(out, "ext", "error", b"\0" + ask + send + b"\x09\0\x05\x0c" + ask)
    save(out, "ext", "silent", b"\0" + ask + (send + tick) * 300 + ask)
    save(out, "ext", "off", b"\x07" + ask + send + query + send)
    many = b"".join(bytes([0, 0, n >> 8, n & 255]) for n in range(400))
    save(out, "ext", "many", b"\0" + many + (send + tick) * 250 + many)


def pair_scripts(out):
    """Packets of both partners, whole and changed; indices, sleeps, full rings, registrations."""
    packet = [bytes([0, 0xc0 | slot, qp]) for slot in range(8) for qp in range(6)]
    take, honest, send = b"\x05\x07", b"\x0a\x00", b"\x07\x00"
    for qp in range(6):
        save(out, "pair", "qp-%u" % qp, (bytes([0, 0xc0, qp]) + honest + take) * 20)
        save(out, "pair", "long-%u" % qp, (bytes([0, 0xc8, qp]) + honest + b"\x05\x06" +
                                           bytes([0, 0xe8, 1, 49, 0x86]) + take) * 20)
    for at in (12, 13, 14, 23, 36, 37, 38, 39, 47, 48, 49):
        save(out, "pair", "byte-%u" % at, (bytes([0, 0xe0, 0, at, 0x86]) + honest + take) * 5)
        save(out, "pair", "long-byte-%u" % at,
             (bytes([0, 0xe8, 0, at, 0x86]) + honest + take) * 5)
    for cons in (0, 1, 0xff, 0x80, 0xf8):
        save(out, "pair", "index-%02x" % cons, send * 9 + bytes([3, cons]) + send * 9 + take +
             b"\x48\xff" + send * 3 + b"\x0c\x00" + honest + take + b"\x03\x00" + send * 9)
    for asleep in (0, 1, 3, 5, 7):
        save(out, "pair", "asleep-%u" % asleep, (bytes([4, asleep]) + send + take) * 9)
    for how in range(8):
        save(out, "pair", "register-%u" % how, b"\x0b\x00" + bytes([9, how]) + b"".join(packet) +
             take * 3 + b"\x09\x01" + honest + take * 9 + bytes([0x0b, how & 1]) + send * 3 + take)
    save(out, "pair", "hoard", (b"\x00\xc0\x00\x05\x06") * 140 + honest + take)


def main():
    captures, out = sys.argv[1:3]
    for path in sorted(glob.glob(os.path.join(captures, "*.pcap"))):
        name = os.path.basename(path)[:-5]
        found = list(frames(path))
        parse_seeds(out, name, found)
        raw_seed(out, name, found)
        cm_seeds(out, name, found)
    qp_scripts(out)
    cm_scripts(out)
    ext_seeds(out)
    switch_scripts(out)
    server_scripts(out)
    pair_scripts(out)
    net_seeds(out)


if __name__ == "__main__":
    main()
