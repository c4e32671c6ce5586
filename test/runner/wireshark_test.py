#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""wireshark_test.py SOURCE: tools/wireshark/rocade.lua in tshark. It decodes the SACK packets and
queries of a capture that this program writes, reports wrong ones, and changes no frame of
test/captures."""

import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE = sys.argv[1]
sys.path.insert(0, os.path.join(SOURCE, "test/tools"))
import cases  # noqa: E402
import icrc_check  # noqa: E402

SCRIPT = os.path.join(SOURCE, "tools/wireshark/rocade.lua")
CAPTURES = os.path.join(SOURCE, "test/captures")
OURS = ["rocade", "rocade.sack.version", "rocade.sack.epsn", "rocade.sack.echo",
        "rocade.sack.held", "rocade.sack.held_count", "rocade.sack.reserved", "rocade.query.oui",
        "rocade.query.options", "rocade.query.options.version", "rocade.query.options.sack",
        "rocade.query.options.unknown"]
# Those of Wireshark's own dissectors.
COMMON = ["frame.protocols", "_ws.col.Protocol", "_ws.col.Info", "_ws.malformed",
          "_ws.expert.message", "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.payload",
          "infiniband.vendor", "infiniband.mad.method", "infiniband.mad.attributeid", "data.data"]
SACK = "Rocade selective acknowledgement (SACK)"
QP = 0x1234
NOBODY = 65534
ICRC = b"\xff" * 4   # neither dissector checks it: ones would stand out as held PSNs


def ethernet(kind, payload):
    return bytes(range(12)) + struct.pack(">H", kind) + payload


def roce(payload, port=4791):
    """A frame with this UDP payload, over IPv4."""
    udp = struct.pack(">HHHH", 49152, port, 8 + len(payload), 0)
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 28 + len(payload), 0, 0x4000, 64, 17, 0, 0xc6120001,
                     0xc6120002)
    return ethernet(0x0800, ip + udp + payload)


def roce6(payload):
    """The same over IPv6, in a VLAN."""
    ip = struct.pack(">IHBB", 0x60000000, 8 + len(payload), 17, 64) + bytes(15) + b"\1" + \
        bytes(15) + b"\2"
    udp = struct.pack(">HHHH", 49152, 4791, 8 + len(payload), 1)
    return ethernet(0x8100, struct.pack(">HH", 5, 0x86dd) + ip + udp + payload)


def roce1(payload):
    """The same as RoCEv1."""
    grh = struct.pack(">IHBB", 0x60000000, len(payload), 27, 64) + bytes(32)
    return ethernet(0x8915, grh + payload)


def vxlan(frame):
    """The frame in a tunnel."""
    return roce(struct.pack(">II", 0x08000000, 0x500) + frame, port=4789)


def bth(opcode, qp, psn):
    return struct.pack(">BBHII", opcode, 0x40, 0xffff, qp, psn)


def sack(epsn, echo, held=(), first=0x10, opcode=0xe0):
    """A SACK packet from BTH to ICRC. held: the numbers i of the PSNs epsn + 1 + i."""
    bits = sum(1 << i for i in held).to_bytes(16, "little")
    seth = struct.pack(">I", first << 24 | echo) + bits
    return bth(opcode, QP, epsn) + seth + ICRC


def query(options, method=1, oui=0x02524f, qp=1, mgmt_class=0x32, attribute=1, status=0,
          opcode=0x64):
    mad = struct.pack(">BBBBHHQHHI", 1, mgmt_class, 1, method, status, 0, 0x1122334455667788,
                      attribute, 0, 0)
    mad += bytes(12) + struct.pack(">II", oui, options) + bytes(212)
    return bth(opcode, qp, 7) + struct.pack(">II", 0x80010000, 1) + mad + ICRC


def cut(packet, count):
    """The packet without the last bytes in front of its ICRC."""
    return packet[:-4 - count] + ICRC


def decoded_sack(epsn, echo, held, count, **more):
    return {"rocade": SACK, "rocade.sack.version": "1", "rocade.sack.epsn": str(epsn),
            "rocade.sack.echo": str(echo), "rocade.sack.held": held,
            "rocade.sack.held_count": str(count), "rocade.sack.reserved": "0x00",
            "_ws.col.Info": "RC SACK QP=0x001234 ePSN=%d held %d" % (epsn, count), **more}


def decoded_query(info, options, has_sack, **more):
    return {"rocade": info.split(":")[0], "rocade.query.oui": "0x02524f",
            "rocade.query.options": "0x%08x" % options, "rocade.query.options.version": "1",
            "rocade.query.options.sack": has_sack, "_ws.col.Info": info, **more}


def wrong_sack(error, info, **more):
    return {"rocade": SACK, "rocade.sack.epsn": "100", "_ws.expert.message": error,
            "_ws.col.Info": "RC SACK QP=0x001234 ePSN=100 " + info, **more}


def wrong_query(error, title="Rocade query", **more):
    return {"rocade": title, "rocade.query.oui": "0x02524f", "_ws.expert.message": error,
            "_ws.col.Info": "VENDOR (Unknown Attribute)", **more}


WRONG_LENGTH = {"_ws.malformed": "_ws.malformed"}
NOT_OURS = "%s: as without the script"
# Name, frame, the fields that the script adds to it or changes.
FRAMES = [
    ("SACK without held PSNs", roce(sack(100, 99)), decoded_sack(100, 99, "none", 0)),
    ("the example of docs/troubleshooting.md", roce(sack(100, 107, [0, 1, 2, 3, 4, 6])),
     decoded_sack(100, 107, "101-105, 107", 6)),
    ("a full map", roce(sack(100, 228, range(128))), decoded_sack(100, 228, "101-228", 128)),
    ("missing PSNs at both ends of the map", roce(sack(100, 120, range(1, 127))),
     decoded_sack(100, 120, "102-227", 126)),
    ("only the ends of the map", roce(sack(100, 228, [0, 127])),
     decoded_sack(100, 228, "101, 228", 2)),
    ("every other PSN", roce(sack(100, 227, range(0, 128, 2))),
     decoded_sack(100, 227, ", ".join(map(str, range(101, 229, 2))), 64)),
    ("ranges across the bytes of the map", roce(sack(0, 20, [6, 7, 8, 15, 16, 20])),
     decoded_sack(0, 20, "7-9, 16-17, 21", 6)),
    ("ePSN 0xffffff", roce(sack(0xffffff, 3, [0, 1, 3])),
     decoded_sack(0xffffff, 3, "0-1, 3", 3)),
    ("a range across 0xffffff", roce(sack(0xfffffd, 1, [0, 1, 2, 3, 10])),
     decoded_sack(0xfffffd, 1, "16777214-1, 8", 5)),
    ("IPv6, VLAN", roce6(sack(100, 102, [1])), decoded_sack(100, 102, "102", 1)),
    ("VXLAN", vxlan(roce(sack(100, 102, [1]))), decoded_sack(100, 102, "102", 1)),
    ("bytes behind the UDP datagram", roce(sack(100, 102, [1])) + b"\xff" * 9,
     decoded_sack(100, 102, "102", 1)),
    ("reserved bits", roce(sack(100, 102, [1], first=0x13)),
     decoded_sack(100, 102, "102", 1, **{"rocade.sack.reserved": "0x03",
                                         "_ws.expert.message": "Reserved bits are set"})),
    ("SACK of version 2", roce(sack(100, 102, [1], first=0x20)),
     wrong_sack("Version 2, expected 1", "[version 2]", **{"rocade.sack.version": "2"})),
    ("SACK that is a byte too short", roce(cut(sack(100, 102, [1]), 1)),
     wrong_sack("19 bytes between BTH and ICRC, expected 20", "[wrong length]", **WRONG_LENGTH)),
    ("SACK that is a byte too long", roce(cut(sack(100, 102, [1]) + ICRC, 3)),
     wrong_sack("21 bytes between BTH and ICRC, expected 20", "[wrong length]", **WRONG_LENGTH)),
    ("SACK that ends with the BTH", roce(cut(sack(100, 102, [1]), 20)),
     wrong_sack("0 bytes between BTH and ICRC, expected 20", "[wrong length]", **WRONG_LENGTH)),
    ("query", roce(query(0x10000001)), decoded_query("Rocade query: SACK", 0x10000001, "1")),
    ("answer", roce6(query(0x10000001, method=0x81)),
     decoded_query("Rocade answer: SACK", 0x10000001, "1")),
    ("query without extensions", roce(query(0x10000000)),
     decoded_query("Rocade query: no extension", 0x10000000, "0")),
    ("query with unknown extensions", roce(query(0x18000002)),
     decoded_query("Rocade query: unknown", 0x18000002, "0",
                   **{"rocade.query.options.unknown": "0x08000002"})),
    ("query with all extensions", roce(query(0x1fffffff)),
     decoded_query("Rocade query: SACK unknown", 0x1fffffff, "1",
                   **{"rocade.query.options.unknown": "0x0ffffffe"})),
    ("answer with an error", roce(query(0x10000001, method=0x81, status=0x1c)),
     decoded_query("Rocade answer: SACK [status 0x001c]", 0x10000001, "1")),
    ("options of version 2", roce(query(0x20000001)),
     wrong_query("Version 2, expected 1",
                 **{"rocade.query.options": "0x20000001", "rocade.query.options.version": "2",
                    "_ws.col.Info": "Rocade query: version 2"})),
    ("another attribute", roce(query(0x10000001, attribute=2)),
     wrong_query("Attribute 0x0002, expected 0x0001")),
    ("another method", roce(query(0x10000001, method=2)),
     wrong_query("Method 0x02, expected 0x01 (Get) or 0x81 (GetResp)",
                 "Rocade query of an unknown method")),
    ("a MAD of 255 bytes", roce(cut(query(0x10000001), 1)),
     wrong_query("The MAD has 255 bytes, expected 256", **WRONG_LENGTH)),
    (NOT_OURS % "opcode 0xe1", roce(sack(100, 102, [1], opcode=0xe1)), None),
    (NOT_OURS % "UDP port 14791", roce(sack(100, 102, [1]), port=14791), None),
    (NOT_OURS % "RoCEv1", roce1(sack(100, 102, [1])), None),
    (NOT_OURS % "RC SEND", roce(query(0x10000001, opcode=4)), None),
    (NOT_OURS % "MAD of another OUI", roce(query(0x10000001, oui=0x02524e)), None),
    (NOT_OURS % "MAD of another class", roce(query(0x10000001, mgmt_class=0x33)), None),
    (NOT_OURS % "datagram to QP 2", roce(query(0x10000001, qp=2)), None),
]


def make_record(frame, captured=None):
    """A record of the capture. captured: how many bytes of the frame it has (all)."""
    part = frame[:captured]
    return struct.pack("<IIII", 0, 0, len(part), len(frame)) + part


def partial_frames():
    """SACKs and queries of each length, and captured up to each length: a record, and whether the
    script recognises and whether it decodes it. It recognises a SACK by its BTH and a query by the
    first 40 bytes of its MAD, and decodes the former if it is whole, the latter with 4 more."""
    found = [(make_record(roce(sack(100, 102, [1])[:length])), False, False)
             for length in range(8, 16)]
    for count in range(21):
        packet = sack(100, 102, [1])
        found.append((make_record(roce(cut(packet, count))), True, count == 0))
        found.append((make_record(roce(packet), 42 + 36 - count), True, count <= 4))
    for count in range(241):
        packet = query(0x10000001)
        found.append((make_record(roce(cut(packet, count))), count <= 216, count == 0))
        found.append((make_record(roce(packet), 42 + 280 - count), count <= 220, count <= 216))
    return found


def capture_records():
    found = []
    for name in sorted(os.listdir(CAPTURES)):
        if name.endswith(".pcap"):
            for link, frame in icrc_check.frames(os.path.join(CAPTURES, name)):
                assert link == icrc_check.LINK_ETHERNET
                found.append(make_record(frame))
    return found


class Tshark:
    """A folder with a capture and the script, and tshark with the settings of no user."""

    def __init__(self, folder, records):
        self.path = os.path.join(folder, "frames.pcap")
        self.script = shutil.copy(SCRIPT, folder)
        self.env = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "LC_ALL": "C.UTF-8"}
        self.errors = []
        with open(self.path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
            file.write(b"".join(records))
        # The tshark of Wireshark 4.6 loads no script for root.
        self.user = {}
        if os.geteuid() == 0:
            self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            os.chown(folder, NOBODY, NOBODY)

    def run(self, script, *options):
        """Returns the lines of the output."""
        command = ["tshark", "-n", "-r", self.path, *options]
        if script:
            command += ["-X", "lua_script:" + self.script]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False,
                              **self.user)
        self.errors += done.stderr.splitlines()
        if done.returncode != 0:
            self.errors.append("exit status %d" % done.returncode)
        return done.stdout.splitlines()

    def fields(self, script, names):
        """Returns for each frame its fields that are not empty."""
        options = [word for name in names for word in ("-e", name)]
        lines = self.run(script, "-T", "fields", "-E", "aggregator=;", *options)
        return [{name: value for name, value in zip(names, line.split("\t")) if value}
                for line in lines]


def frame_cases(before, after):
    """The cases of FRAMES. before, after: the fields of each frame without and with the script."""
    found = []
    for (name, _, expected), old, new in zip(FRAMES, before, after):
        # The fields of Wireshark's dissectors are there as before, apart from the Info column.
        found.append((name, new, {**old, **(expected or {})}))
        found.append((name + ": not malformed without the script",
                      "_ws.malformed" in old or "Malformed" in old["_ws.col.Info"], False))
    return found


def main():
    partial, captured = partial_frames(), capture_records()
    with tempfile.TemporaryDirectory() as folder:
        tshark = Tshark(folder, [make_record(frame) for _, frame, _ in FRAMES] +
                        [record for record, _, _ in partial] + captured)
        before = tshark.fields(False, COMMON)
        after = tshark.fields(True, COMMON + OURS)
        tshark.path, whole = os.path.join(folder, "few.pcap"), tshark.path
        with open(whole, "rb") as file, open(tshark.path, "wb") as few:
            few.write(file.read(24 + sum(16 + len(frame) for _, frame, _ in FRAMES)))
        summary = tshark.run(True, "-Y", "rocade")
    ours = [number for number, (_, _, fields) in enumerate(FRAMES, 1) if fields]
    first = len(FRAMES) + len(partial)
    kernel = list(zip(before[first:], after[first:]))
    messages = [fields.get("_ws.expert.message", "") for fields in after]
    total = first + len(captured)
    tests = [
        ("tshark and the script report no error", tshark.errors, []),
        ("tshark has read every frame", (len(before), len(after)), (total, total)),
        ("no frame causes an error of Lua", [m for m in messages if "Lua" in m], []),
        ("SACKs and queries of each length",
         [("rocade" in fields, "rocade.sack.held" in fields or "rocade.query.options" in fields)
          for fields in after[len(FRAMES):first]],
         [(recognised, decoded) for _, recognised, decoded in partial]),
        ("the script changes no frame of test/captures",
         [number for number, (old, new) in enumerate(kernel, 1) if old != new], []),
        ("test/captures has more than 1,000 frames", len(kernel) > 1000, True),
        ("display filter rocade, frames", [int(line.split()[0]) for line in summary], ours),
        ("summary of a frame", [line.split("RRoCE ")[1] for line in summary[1:2]],
         ["78 RC SACK QP=0x001234 ePSN=100 held 6"]),
    ] + frame_cases(before, after)
    return cases.run(tests)


if __name__ == "__main__":
    sys.exit(main())
