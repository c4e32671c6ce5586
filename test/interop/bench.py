# SPDX-License-Identifier: BSD-3-Clause
"""Linux's rdma_rxe in a virtual machine and our programs, on one bridge in this network namespace.

    guest (eth0, rxe0) -- tap -- bridge -- veth -- net_af_packet, ours

The bridge itself has an address, for what the two ends say to each other beside RDMA."""

import os
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "e2e", "lib"))
from testpmd import BUILD, SCRATCH, SOURCE, eal, ip  # noqa: E402
from tap import case, run  # noqa: E402
from guest import Guest, missing  # noqa: E402
from kernel import Missing, kernel  # noqa: E402

CACHE = os.environ.get("ROCADE_CACHE") or os.path.join(BUILD, "interop-cache")
TOUR = os.path.join(BUILD, "test", "tour", "tour")
TOUR_SYSTEM = os.path.join(BUILD, "test", "tour", "tour-system")
BRIDGE, OURS, THEIRS = "192.0.2.9", "192.0.2.1", "192.0.2.2"
OURS6, THEIRS6 = "2001:db8::1", "2001:db8::2"
PEER = {4: (OURS, THEIRS), 6: (OURS6, THEIRS6)}
IPV6_LEAST = 1280
INSIDE = "ROCADE_INTEROP_INSIDE"


def why_not():
    """Why there cannot be a bench here, or None."""
    why = missing()
    if why is None:
        try:
            kernel(CACHE)
        except Missing as sentence:
            why = str(sentence)
    return why


def _isolate():
    """Goes on in mount, network and process namespaces of its own, with which all ends that it
    started."""
    if os.environ.get(INSIDE):
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child",
                          "--mount-proc", os.path.join(SOURCE, "tools", "lib", "isolated.sh"),
                          sys.executable] + sys.argv)


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def main(walk):
    """walk(bench), on a bench whose guest is there. The exit status."""
    why = why_not()
    if why is not None:
        print("1..0 # SKIP %s" % why)
        return 0
    _isolate()

    def cells():
        bench = Bench()
        try:
            if case("Linux boots", bench.guest.wait(120), bench.guest.said()):
                print("# Linux %s, QEMU without KVM" % bench.guest.release)
                walk(bench)
                said = bench.guest.said()
                case("the kernel has nothing to complain of", not re.search(
                    r"WARNING|BUG|Oops|Call Trace|init: no", said), said[-3000:])
        finally:
            bench.guest.stop()

    return run(cells)


class Bench:
    """The wire, and the guest at its end."""

    def __init__(self):
        for name in ("all", "default"):  # the kernel itself is silent
            _write("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % name, "1")
        # An address of IPv6 that is nobody's way: without one getaddrinfo() knows no others.
        _write("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "0")
        ip("addr", "add", "2001:db8:1::9/128", "dev", "lo")
        ip("link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        ip("link", "set", "br0", "mtu", "9000", "up")
        ip("addr", "add", BRIDGE + "/24", "dev", "br0")
        ip("tuntap", "add", "guest0", "mode", "tap")
        # What we send in one go waits here, for the guest is slow.
        ip("link", "set", "guest0", "mtu", "9000", "txqueuelen", "10000", "master", "br0", "up")
        ip("link", "add", "ours0", "type", "veth", "peer", "name", "cable0")
        ip("link", "set", "cable0", "master", "br0", "up")
        ip("link", "set", "ours0", "up")
        self.mtu = 1500
        self.count = 0
        self.guest = Guest(SCRATCH, CACHE, "guest0", "02:00:00:00:00:02", THEIRS,
                           [TOUR_SYSTEM], [THEIRS + "/24", THEIRS6 + "/64"])

    def set_mtu(self, mtu):
        """Of the interfaces; the guest's path MTU follows."""
        for name in ("ours0", "cable0"):  # a driver of ours may have changed it
            ip("link", "set", name, "mtu", str(mtu))
        self.mtu = mtu
        self.guest.run("ip link set eth0 mtu %d" % mtu)
        if mtu >= IPV6_LEAST:  # below it has no IPv6
            self.guest.run("ip addr add %s/64 dev eth0 2>/dev/null" % THEIRS6)

    def gid_index(self, version):
        """Of the guest's address."""
        want = "c000:0202" if version == 4 else "2001:0db8"
        _, text = self.guest.run(
            "cd /sys/class/infiniband/rxe0/ports/1/gids; until grep %s [0-9]; do sleep 0.1; done" %
            want)
        return int(text.split(":")[0])

    def eal(self):
        size = next(size for size in (2048, 2560, 5120) if self.mtu < size - 128)
        return eal(0, "net_af_packet0,iface=ours0,qpairs=1,framecnt=1024,blocksz=%d,framesz=%d" %
                   (4096 if size == 2048 else 20480, size), memory_mb=256)

    def tour(self, version, options=(), device=(), timeout_s=300):
        """Both ends walk through the tour. (their exit status, ours; our lines, theirs)"""
        self.count += 1
        path = os.path.join(SCRATCH, "tour%d" % self.count)
        options = list(options)
        command = [TOUR, "--listen", BRIDGE, "--gid-index", "0" if version == 4 else "1"] + \
            options + ["--"] + self.eal() + list(device) + [
                "addr=%s/24,%s/64" % (OURS, OURS6), "mtu=%d" % self.mtu]
        theirs = ["tour-system", "--connect", BRIDGE, "--gid-index",
                  str(self.gid_index(version))] + options
        with open(path, "wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            status, text = self.guest.run(
                "timeout %d %s" % (timeout_s, " ".join(map(shlex.quote, theirs))), timeout_s + 20)
            try:
                ours = process.wait(30)
            except subprocess.TimeoutExpired:
                ours = None
        finally:
            process.kill()
            process.wait()
        with open(path, encoding="utf-8", errors="replace") as file:
            return (status, ours), file.read().splitlines(), text.splitlines()


class Cells:
    """What our end said of a tour: results by (cell, who requests)."""

    def __init__(self, lines):
        self.passed, self.failed, self.skipped = [], {}, {}
        self.arrived = {}  # of streams: (messages, of how many)
        self.impaired = {}  # {"received" or "sent": {"lost": frames, ...}}
        for line in lines:
            ran = re.match(r"(PASS|FAIL) (.*?) \((active|passive)\)(?:: (.*))?$", line)
            if ran:
                cell = (ran.group(2), "we" if ran.group(3) == "active" else "kernel")
                if ran.group(1) == "PASS":
                    self.passed.append(cell)
                else:
                    self.failed[cell] = ran.group(4)
            elif line.startswith("# impaired, "):
                what, _, counts = line[len("# impaired, "):].partition(": ")
                self.impaired[what] = {name: int(n) for n, name in re.findall(
                    r"(\d+) (\w+)", counts)}
            elif " arrived" in line:
                name, role, n, of = re.match(
                    r"# (.*) \((active|passive)\): (\d+) of (\d+)", line).groups()
                self.arrived[name, "we" if role == "active" else "kernel"] = (int(n), int(of))
            elif line.startswith("SKIP "):
                name, _, why = line[5:].partition(": ")
                self.skipped[name] = why
