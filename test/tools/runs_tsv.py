#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the facts of the logs of the captures, as expected values for the tests that replay
captures to lib/qp: runs_tsv.py FILE.log... > runs.tsv. A line per fact, with tabs between columns:

run     capture side commands           options and commands of the traffic generator
key     capture side qpn rkey rkey_ro   that side's QP and target area
mw      capture side rkey               a memory window that was bound
wc      capture side queue wr_id status opcode byte_len imm crc
wire    capture frame impairment        drop, dup or corrupt: the impairment of that frame

Sides: C client, S server, P the side whose peer was a script. The numbers of wc and key are
hexadecimal, - where a completion has no such field."""

import json
import os
import re
import struct
import sys

SIDES = {"server(B)": "S", "client(A)": "C", "responder(B)": "P"}


def frames(path):
    """Returns (opcode, PSN) of each frame of a capture."""
    with open(path, "rb") as file:
        data = file.read()
    at, out = 24, []
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frame = data[at + 16:at + 16 + length]
        at += 16 + length
        ip = 18 if frame[12:14] == b"\x81\x00" else 14
        bth = ip + (20 if frame[ip] >> 4 == 4 else 40) + 8
        out.append((frame[bth], int.from_bytes(frame[bth + 9:bth + 12], "big")))
    return out


def show(*columns):
    print("\t".join(columns))


def skips(text):
    """Returns how many packets of each PSN pass before a rule of the wire takes one."""
    rules = re.search(r"^# wire rules [^:]*: (\[.*\])$", text, re.M)
    return {psn: rule.get("skip", 0) for rule in json.loads(rules[1] if rules else "[]")
            for psn in rule.get("psn") or ()}


def wire(name, path, text):
    left = dict(enumerate(frames(path), 1))
    passed = skips(text)
    for what, op, psn in re.findall(r"^#   (\w+) op=0x(\w+) psn=0x(\w+)", text, re.M):
        same = [n for n, frame in left.items() if frame == (int(op, 16), int(psn, 16))]
        number = same[passed.get(int(psn, 16), 0)]
        show("wire", name, str(number), what)
        del left[number]


def completions(name, text):
    pattern = r"^([SCP])\s+[\d.]+ ([SR])Q-WC wr_id=(\d+) status=(\d+)\([^)]*\)(.*)$"
    for side, queue, wr_id, status, rest in re.findall(pattern, text, re.M):
        fields = dict(re.findall(r"(\w+)=(\S+)", rest))
        number = lambda key, base: ("%x" % int(fields[key], base)) if key in fields else "-"
        show("wc", name, side, queue, "%x" % int(wr_id), "%x" % int(status),
             fields.get("op", "-"), number("len", 10), number("imm", 16), number("crc", 16))


def main():
    print("# Content of the logs of the captures: see test/tools/runs_tsv.py.")
    for path in sys.argv[1:]:
        name = os.path.basename(path).removesuffix(".log")
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        for who, command in re.findall(r"^# (\S+): vgen (.*)$", text, re.M):
            words = command.split()
            if words[0] in ("-c", "-P"):
                del words[:2]
            elif words[0] == "-s":
                del words[0]
            show("run", name, SIDES[who], " ".join(words))
        pattern = r"^([SCP])\s+\S+ local qpn=0x(\w+) psn=\w+ rkey=0x(\w+) rkey_ro=0x(\w+)"
        for side, *key in re.findall(pattern, text, re.M):
            show("key", name, side, *("%x" % int(k, 16) for k in key))
        for side, key in re.findall(r"^([SCP])\s+\S+ bind mw rkey=0x(\w+)", text, re.M):
            show("mw", name, side, key)
        wire(name, path.removesuffix("log") + "pcap", text)
        completions(name, text)


if __name__ == "__main__":
    main()
