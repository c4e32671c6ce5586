# SPDX-License-Identifier: BSD-3-Clause
"""A pingpong between Rocade at one end and an RDMA device of the kernel at the other one: rdma_rxe
or an RNIC. ibv_rc_pingpong of rdma-core runs at both ends and checks the payload. It exchanges QP
numbers over a TCP port of its own, one above that of the control connection."""

import glob
import ipaddress
import os
import re
import shutil
import threading
import time

import check
from channel import number, optional, record, text
from program import Failed, Program

SIZE, ROUNDS, PATH_MTU = 4096, 200, 1024
HEADERS = 88  # what the MTU of a port exceeds its path MTU by
START_S, LIMIT_S = 60, 120  # until the daemon has started; until the pingpong has ended
DONE = re.compile(r"(\d+) iters in ([\d.]+) seconds = ([\d.]+) usec/iter")
RESULT = record({"reason": optional(text), "usec_per_round": optional(number()),
                 "rounds": number()})


def failure(reason):
    return RESULT({"reason": check.plain(reason, 300), "usec_per_round": None, "rounds": 0})


class Device:
    """An RDMA device of the kernel that has an address in the test's network."""

    def __init__(self, name, port, gid_index, driver):
        self.name, self.port, self.gid_index, self.driver = name, port, gid_index, driver


def driver_of(folder):
    try:
        return os.path.basename(os.readlink(os.path.join(folder, "device/driver")))
    except OSError:  # a device of software has no bus
        return "rdma_rxe" if os.path.exists(os.path.join(folder, "parent")) else "unknown"


def address_of(gid):
    """Returns the IP address of a GID."""
    address = ipaddress.IPv6Address(gid)
    return address.ipv4_mapped or address


def gids(folder):
    """Yields port, index and IP address of each RoCEv2 GID of an active port."""
    for path in sorted(glob.glob(os.path.join(folder, "ports/*"))):
        if "ACTIVE" not in check.read(os.path.join(path, "state"), ""):
            continue
        for entry in sorted(glob.glob(os.path.join(path, "gids/*")),
                            key=lambda name: int(os.path.basename(name))):
            index = os.path.basename(entry)
            if check.read(os.path.join(path, "gid_attrs/types", index)) != "RoCE v2":
                continue
            try:
                yield int(os.path.basename(path)), int(index), address_of(check.read(entry, ""))
            except ValueError:
                pass


def find(interface, wanted=None, sys="/sys"):
    """Returns (device, None), or (None, why there is none). interface: address and prefix of the
    test at this end. wanted: the device's name."""
    network = ipaddress.ip_interface(interface)
    folders = sorted(glob.glob(os.path.join(sys, "class/infiniband/*")))
    if wanted:
        folders = [folder for folder in folders if os.path.basename(folder) == wanted]
        if not folders:
            return None, "there is no RDMA device %s" % wanted
    if not folders:
        return None, "no RDMA device of the kernel"
    for folder in folders:
        for port, index, address in gids(folder):
            if address.version == network.version and address in network.network and \
                    address != network.ip:
                return Device(os.path.basename(folder), port, index, driver_of(folder)), None
    return None, "no RDMA device of the kernel has an active port with a RoCE v2 GID in the " \
        "network of --addr, with another address"


def names(sys="/sys"):
    folders = sorted(glob.glob(os.path.join(sys, "class/infiniband/*")))
    return ", ".join("%s (%s)" % (os.path.basename(f), driver_of(f)) for f in folders) or "none"


def pingpong(tcp_port, *options):
    return ["ibv_rc_pingpong", "-c", "-p", str(tcp_port), "-s", str(SIZE), "-n", str(ROUNDS),
            "-m", str(PATH_MTU), *options]


class Pingpong:
    """One end. start_device() and start_rocade() start it, wait() returns its result."""

    def __init__(self, port, tcp_port):
        self.port = port
        self.tcp_port = tcp_port
        self.daemon = None
        self.program = None
        self.lines = []

    def start(self, name, command, on_line):
        return Program(self.port.started, name, self.port.options.scratch, command, on_line,
                       reports=False)

    def start_device(self, device):
        """The kernel's end. It waits for the other one."""
        self.need()
        self.program = self.start("pingpong-device", pingpong(
            self.tcp_port, "-d", device.name, "-i", str(device.port), "-g",
            str(device.gid_index)), self.lines.append)
        end = time.monotonic() + 10
        while not listening(self.tcp_port):
            if self.program.over.is_set() or time.monotonic() > end:
                raise Failed("ibv_rc_pingpong does not listen: %s" % " ".join(self.lines[-2:]))
            time.sleep(0.05)

    def need(self):
        if not shutil.which("ibv_rc_pingpong"):
            raise Failed("no ibv_rc_pingpong: install ibverbs-utils (or libibverbs-utils)")

    def start_rocade(self, host, path_mtu):
        """Rocade's end, over a daemon on the port, which is set up as for the measurements. host:
        of the device's end."""
        self.need()
        options = self.port.options
        socket = os.path.join(options.scratch, "rocade.sock")
        ready = threading.Event()
        self.daemon = self.start("rocaded", [
            self.port.program("app", "rocaded", "rocaded"), *self.port.eal(), "--", "--socket",
            socket, "--address", options.addr, "--mtu", str(path_mtu + HEADERS)],
            lambda line: ready.set() if "listening at" in line else None)
        end = time.monotonic() + START_S
        while not ready.wait(0.05):
            if self.daemon.over.is_set() or time.monotonic() > end:
                raise Failed("rocaded does not start: %s" % self.daemon.tail(2))
        self.program = self.start("pingpong-rocade", [
            self.port.program("app", "run", "rocade-run"), "--library",
            self.port.program("drivers", "librocade-verbs.so"), "--socket", socket,
            *pingpong(self.tcp_port, "-g", "0"), host], self.lines.append)

    def wait(self, alive):
        end = time.monotonic() + LIMIT_S
        while not self.program.over.wait(0.05):
            alive()
            if time.monotonic() > end:
                self.stop()
                return failure("the pingpong has not ended within %d s" % LIMIT_S)
        status = self.program.process.wait(10)
        self.program.reader.join(5)
        self.stop()
        done = DONE.search("\n".join(self.lines))
        if status != 0 or not done or int(done[1]) != ROUNDS:
            return failure("ibv_rc_pingpong: %s" % (self.lines or ["status %d" % status])[-1])
        return RESULT({"reason": None, "usec_per_round": float(done[3]), "rounds": ROUNDS})

    def stop(self):
        for program in (self.program, self.daemon):
            if program:
                program.stop()


def listening(tcp_port):
    """Whether a socket of this host listens on the port."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in check.read(path, "").splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and int(words[1].rsplit(":", 1)[1], 16) == tcp_port:
                return True
    return False
