#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The conformance matrix (test/matrix) between two processes: every service and opcode with
verified data, over two net_tap ports in a bridge, IPv4 and IPv6, and over net_memif with path MTU
4096. A capture on the bridge has each opcode."""

import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from capture import Capture  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import (BUILD, SCRATCH, add_space, eal, ip, is_root,  # noqa: E402
                     plug)

PROGRAM = os.path.join(BUILD, "test/matrix/matrix")
ADDRESS = ["192.0.2.1/24,2001:db8::1/64", "192.0.2.2/24,2001:db8::2/64"]
LEAST = 590  # cases
# All opcodes except FLUSH, which is missing in this version of verbs, and SEND with invalidate over
# XRC.
OPCODES = set(range(0x00, 0x15)) | {0x16, 0x17, 0x1D} | set(range(0x20, 0x2C)) | {0x64, 0x65} | \
    set(range(0xA0, 0xB5))


def start(space, role, gid_index, eal_options, device_options):
    """Starts one end of the matrix, which goes on at a line of input. Returns when its device is
    open: the PMD sets the address of the kernel's end of a tap while it starts."""
    end = Process(["ip", "netns", "exec", space, PROGRAM, "--" + role, "127.0.0.1", "--pause",
                   "--gid-index", gid_index, "--"] + eal_options + device_options, feed=True)
    end.wait_line("# the device is there")
    return end


def check_ends(name, ends, timeout_s=400):
    """Both ends pass and skip no case."""
    for end in ends:
        end.say("go\n")
    codes, texts = zip(*(end.finish(timeout_s) for end in ends))
    lines = [text.splitlines() for text in texts]
    wrong = [line for side in lines for line in side if line.startswith("FAIL")]
    skipped = [line[5:] for line in lines[0] if line.startswith("SKIP ")]
    totals = [re.search(r"(\d+) passed, 0 failed, \d+ skipped", side[-1] if side else "")
              for side in lines]
    why = "%s\n%s\n%s\n%s" % (codes, "\n".join(wrong[:10]), "\n".join(lines[0][-10:]),
                              "\n".join(lines[1][-10:]))
    case("%s: every case passes in both directions, data verified" % name, codes == (0, 0) and
         not wrong and all(totals) and int(totals[0].group(1)) >= LEAST, why)
    case("%s: no case is skipped" % name, not skipped, skipped)
    if all(totals):
        print("# %s: %s" % (name, totals[0].group(0)))


def opcodes(path):
    """Returns the BTH opcodes of the captured frames, the MAC prefixes of frames to DestQP
    0xFFFFFF, and the destination MACs of frames that are not RoCEv2."""
    seen, macs, others = set(), set(), set()
    with open(path, "rb") as file:
        file.read(24)
        while True:
            head = file.read(16)
            if len(head) < 16:
                return seen, macs, others
            frame = file.read(struct.unpack("<IIII", head)[2])
            bth = {0x0800: 14 + 20 + 8, 0x86DD: 14 + 40 + 8}.get(
                struct.unpack(">H", frame[12:14])[0])
            if bth is None or len(frame) < bth + 12 or frame[bth - 6:bth - 4] != b"\x12\xb7":
                others.add(frame[:6].hex())
                continue
            seen.add(frame[bth])
            if frame[bth + 5:bth + 8] == b"\xff\xff\xff":
                macs.add(frame[:3].hex())


def tap_end(space, side, role, gid_index):
    port = "port%d" % side
    end = start(space, role, gid_index, eal(side, "net_tap0,iface=" + port, memory_mb=256),
                ["addr=" + ADDRESS[side]])
    plug(space, port, "br0")
    return end


def taps(space, name, gid_index, mac):
    capture = Capture(space, "br0", SCRATCH, "matrix%d.pcap" % gid_index, "-s", "80")
    ends = [tap_end(space, 1, "listen", gid_index), tap_end(space, 0, "connect", gid_index)]
    check_ends(name, ends)
    capture.stop()
    seen, macs, others = opcodes(capture.path)
    case("%s: the capture has every opcode" % name, OPCODES <= seen,
         "missing: %s" % ["0x%02x" % op for op in sorted(OPCODES - seen)])
    case("%s: multicast goes to the group's MAC" % name, macs == {mac}, macs)
    # IGMPv3 and MLDv2 reports go to 224.0.0.22 and ff02::16.
    reports = "333300000016" if mac[:2] == "33" else "01005e000016"
    case("%s: the hosts report their groups by IGMP or MLD" % name, reports in others, others)


def one_bridge():
    space = add_space("matrix")
    ip("-n", space, "link", "set", "lo", "up")
    ip("-n", space, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    ip("-n", space, "link", "set", "br0", "up")
    # Without a port the bridge drops the frame that ends a capture.
    ip("-n", space, "link", "add", "keep0", "type", "veth", "peer", "name", "keep1")
    ip("-n", space, "link", "set", "keep1", "up")
    ip("-n", space, "link", "set", "keep0", "master", "br0", "up")
    return space


def memif():
    space = add_space("memif")
    ip("-n", space, "link", "set", "lo", "up")
    socket = os.path.join(SCRATCH, "matrix.sock")
    ends = []
    for side, role, memif_role in ((1, "listen", "server"), (0, "connect", "client")):
        device = "net_memif0,role=%s,socket=%s,socket-abstract=no,bsize=8192,rsize=11" % (
            memif_role, socket)
        ends.append(start(space, role, 0, eal(side, device, memory_mb=256),
                          ["addr=" + ADDRESS[side], "mtu=4200"]))
    check_ends("net_memif, path MTU 4096", ends)
    last = ends[0].text.splitlines()[-1]
    case("net_memif: the path MTU is 4096", "path MTU 4096" in last, last)


def main():
    if not is_root() or not os.path.exists("/dev/net/tun"):
        return run(lambda: skip("conformance matrix", "needs root and /dev/net/tun"))
    space = one_bridge()
    return run(lambda: taps(space, "net_tap, IPv4", 0, "01005e"),
               lambda: taps(space, "net_tap, IPv6", 1, "333377"), memif)


if __name__ == "__main__":
    sys.exit(main())
