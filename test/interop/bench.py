# SPDX-License-Identifier: BSD-3-Clause
"""Linux's rdma_rxe in a virtual machine and Rocade's programs, on one bridge in this network
namespace.

    guest (eth0, rxe0) -- tap -- bridge -- veth -- net_af_packet, Rocade

wires.py has the other drivers that Rocade's end may use.

The bridge has an address of its own, for the TCP connections between the two ends."""

import os
import re
import shlex
import sys
from collections import namedtuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "e2e", "lib"))
import wires  # noqa: E402
from daemon import wait_for_port  # noqa: E402
from hosts import Host  # noqa: E402
from process import Process  # noqa: E402
from testpmd import BUILD, SCRATCH, SOURCE, ip  # noqa: E402
from tap import case, run  # noqa: E402
from guest import Guest, missing  # noqa: E402
from kernel import Missing, kernel  # noqa: E402

CACHE = os.environ.get("ROCADE_CACHE") or os.path.join(BUILD, "interop-cache")
MATRIX = os.path.join(BUILD, "test/matrix/matrix")
MATRIX_SYSTEM = os.path.join(BUILD, "test/matrix/matrix-system")
BRIDGE, ROCADE, GUEST = "192.0.2.9", "192.0.2.1", "192.0.2.2"
ROCADE6, GUEST6 = "2001:db8::1", "2001:db8::2"
ADDRESSES = {4: (ROCADE, GUEST), 6: (ROCADE6, GUEST6)}
IPV6_LEAST = 1280
MATRIX_PORT = 18600  # TCP
INSIDE = "ROCADE_INTEROP_INSIDE"
# An end of the wire. wire(): the bytes that it has received and sent.
End = namedtuple("End", "wire")


def why_not():
    """Returns why the tests cannot run on this machine, or None."""
    why = missing()
    if why is None:
        try:
            kernel(CACHE)
        except Missing as error:
            why = str(error)
    return why


def _isolate():
    """Starts the program again in mount, network and process namespaces of its own. Their end also
    ends all processes that it started."""
    if os.environ.get(INSIDE):
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child",
                          "--mount-proc", os.path.join(SOURCE, "tools", "lib", "isolated.sh"),
                          sys.executable] + sys.argv)


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def main(walk, make=None):
    """Calls walk(bench) once the guest has booted. make() returns the bench. Returns the exit
    status."""
    why = why_not()
    if why is not None:
        print("1..0 # SKIP %s" % why)
        return 0
    _isolate()

    def with_guest():
        bench = (make or Bench)()
        try:
            if case("Linux boots", bench.guest.wait(120), bench.guest.said()):
                print("# Linux %s, QEMU without KVM" % bench.guest.release)
                walk(bench)
                said = bench.guest.said()
                case("the kernel logs no warning", not re.search(
                    r"WARNING|BUG|Oops|Call Trace|init: no", said), said[-3000:])
        finally:
            bench.guest.stop()

    return run(with_guest)


def ends(daemon, guest):
    """Returns both ends of the wire, for Ran."""
    return [End(lambda: Host.wire(daemon)), End(guest.wire)]


class Bench:
    """The bridge and the guest. modules, programs: more of them for the guest."""

    modules, programs = (), ()

    def __init__(self):
        for name in ("all", "default"):  # the host's kernel must not send ND
            _write("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % name, "1")
        # getaddrinfo() returns IPv6 addresses only if the host has one. No frame is sent to it.
        _write("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "0")
        ip("addr", "add", "2001:db8:1::9/128", "dev", "lo")
        ip("link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        # An address of its own: otherwise it changes with the ports, and the guest knows the old one.
        ip("link", "set", "br0", "address", "02:00:00:00:00:09", "mtu", "9000", "up")
        ip("addr", "add", BRIDGE + "/24", "dev", "br0")
        ip("tuntap", "add", "guest0", "mode", "tap")
        # A long queue: the guest is slower than Rocade's bursts.
        ip("link", "set", "guest0", "mtu", "9000", "txqueuelen", "10000", "master", "br0", "up")
        wires.add_cable()
        self.mtu = 1500
        self.driver = "net_af_packet"
        self.guest = self.boot()

    def boot(self):
        return Guest(SCRATCH, CACHE, "guest0", "02:00:00:00:00:02", GUEST,
                     [MATRIX_SYSTEM, *self.programs], [GUEST + "/24", GUEST6 + "/64"],
                     self.modules)

    def set_mtu(self, mtu):
        """Sets the MTU of the guest's interface, which its path MTU follows, and of Rocade's port."""
        self.mtu = mtu
        self.guest.run("ip link set eth0 mtu %d" % mtu)
        if mtu >= IPV6_LEAST:  # with a smaller MTU the kernel removes the IPv6 address
            self.guest.run("ip addr add %s/64 dev eth0 2>/dev/null" % GUEST6)

    def wire(self):
        return wires.OF[self.driver](self.mtu)

    def gid_index(self, version):
        """Returns the GID index of the guest's address."""
        want = "c000:0202" if version == 4 else "2001:0db8"
        text = self.guest.until("cd /sys/class/infiniband/rxe0/ports/1/gids; grep %s [0-9]" % want)
        return int(text.split(":")[0])

    def eal(self):
        """Returns the EAL options of a program that is run without join(): net_af_packet's."""
        return self.wire().eal()

    def matrix(self, version, options=(), device=(), timeout_s=300):
        """Runs the conformance matrix at both ends. Returns the exit statuses of guest and Rocade,
        and the lines of Rocade and guest."""
        options = list(options)
        remote = [os.path.basename(MATRIX_SYSTEM), "--connect", BRIDGE, "--gid-index",
                  str(self.gid_index(version))] + options
        with self.wire() as wire:
            local = Process([MATRIX, "--listen", BRIDGE, "--gid-index", "0" if version == 4 else "1",
                             *options, "--", *wire.eal(), *wire.device(), *device,
                             "addr=%s/24,%s/64" % (ROCADE, ROCADE6)])
            wait_for_port(MATRIX_PORT, local, 30)
            wire.join(local)
            status, text = self.guest.run(
                "timeout %d %s" % (timeout_s, " ".join(map(shlex.quote, remote))), timeout_s + 20)
            if status is None:
                case("the guest answers within %d s" % (timeout_s + 20), False, self.guest.state())
            local_status, said = local.finish(30)
        return (status, local_status), said.splitlines(), text.splitlines()


class Results:
    """The results that Rocade's end printed, by (name of the case, requester)."""

    def __init__(self, lines):
        self.passed, self.failed, self.skipped = [], {}, {}
        self.arrived = {}  # of streams: (messages received, messages sent)
        self.impaired = {}  # {"received" or "sent": {"lost": frames, ...}}
        for line in lines:
            ran = re.match(r"(PASS|FAIL) (.*?) \((active|passive)\)(?:: (.*))?$", line)
            if ran:
                key = (ran.group(2), "rocade" if ran.group(3) == "active" else "kernel")
                if ran.group(1) == "PASS":
                    self.passed.append(key)
                else:
                    self.failed[key] = ran.group(4)
            elif line.startswith("# impaired, "):
                way, _, counts = line[len("# impaired, "):].partition(": ")
                self.impaired[way] = {name: int(n) for n, name in re.findall(
                    r"(\d+) (\w+)", counts)}
            elif " arrived" in line:
                name, role, n, of = re.match(
                    r"# (.*) \((active|passive)\): (\d+) of (\d+)", line).groups()
                self.arrived[name, "rocade" if role == "active" else "kernel"] = (int(n), int(of))
            elif line.startswith("SKIP "):
                name, _, why = line[5:].partition(": ")
                self.skipped[name] = why
