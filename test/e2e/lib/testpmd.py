# SPDX-License-Identifier: BSD-3-Clause
"""Runs rocade-testpmd in network namespaces and checks its report."""

import atexit
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

SOURCE = os.environ.get("ROCADE_SOURCE") or os.path.realpath(
    os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILD = os.environ.get("ROCADE_BUILD") or os.path.join(SOURCE, "build")
PROGRAM = os.path.join(BUILD, "app", "testpmd", "rocade-testpmd")
ICRC_CHECK = os.path.join(SOURCE, "test", "tools", "icrc_check.py")
LONG = os.environ.get("ROCADE_TEST_LONG") == "1"

SCRATCH = tempfile.mkdtemp(prefix="rocade-e2e-")
atexit.register(shutil.rmtree, SCRATCH, True)
_started = []
_spaces = []


def is_root():
    return os.geteuid() == 0


def hugepages_free():
    with open("/proc/meminfo", encoding="utf-8") as file:
        return int(re.search(r"HugePages_Free:\s+(\d+)", file.read()).group(1))


def eal(core, *devices, memory_mb=512):
    """Returns the EAL options of a process with a core of its own and without a NIC."""
    cpus = sorted(os.sched_getaffinity(0))
    pages = ["--in-memory"] if hugepages_free() * 2 >= 2 * memory_mb + 64 else [
        "--no-huge", "--no-shconf"]
    out = ["--lcores", "0@%d" % cpus[core % len(cpus)], "-m", str(memory_mb), "--no-pci",
           "--no-telemetry", "--log-level", "pmd.*:error"] + pages
    for device in devices:
        out += ["--vdev", device]
    return out


class Testpmd:
    """One process. json() returns its report; `text` is its output so far."""

    count = 0

    def __init__(self, options, eal_options=(), space=None):
        Testpmd.count += 1
        self.report = os.path.join(SCRATCH, "report%d.json" % Testpmd.count)
        self.text = ""
        command = [PROGRAM] + list(eal_options) + ["--"] + [str(o) for o in options] + [
            "--json", self.report]
        if space:
            command = ["ip", "netns", "exec", space] + command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        os.set_blocking(self.process.stdout.fileno(), False)
        _started.append(self)

    def read(self, timeout_s=0.0):
        """Reads the available output. Returns False at its end."""
        if not select.select([self.process.stdout], [], [], timeout_s)[0]:
            return True
        data = os.read(self.process.stdout.fileno(), 65536)
        self.text += data.decode(errors="replace")
        return bool(data)

    def say(self, line):
        self.process.stdin.write((line + "\n").encode())
        self.process.stdin.flush()

    def expect(self, pattern, timeout_s=20, after=0):
        """Reads until the text behind position `after` matches. Returns the match, or None."""
        end = time.monotonic() + timeout_s
        while True:
            match = re.compile(pattern, re.M).search(self.text, after)
            if match or time.monotonic() > end:
                return match
            if not self.read(0.1):
                return re.compile(pattern, re.M).search(self.text, after)

    def wait(self, timeout_s=60):
        """Returns the exit status; None if the process does not end in time."""
        end = time.monotonic() + timeout_s
        while self.read(0.1):
            if time.monotonic() > end:
                return None
        try:
            return self.process.wait(5)
        except subprocess.TimeoutExpired:
            return None

    def json(self):
        with open(self.report, encoding="utf-8") as file:
            return json.load(file)

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def kill(self):
        """Ends the process as a power failure would."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def tail(self):
        return "\n".join(self.text.splitlines()[-30:])


def ip(*args):
    done = subprocess.run(("ip",) + args, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError("ip %s: %s" % (" ".join(args), done.stderr.strip()))


def add_space(name):
    """Adds a network namespace without IPv6, so that its kernel sends nothing by itself."""
    name = "rcd%d-%s" % (os.getpid(), name)
    ip("netns", "add", name)
    _spaces.append(name)
    ip("netns", "exec", name, "sh", "-c",
       "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e $f ] || echo 1 >$f; done")
    return name


def plug(space, device, bridge, timeout_s=20):
    """Puts the kernel's end of a tap port into a bridge as soon as it exists. Both ends of a tap
    have the same MAC address, and a bridge passes frames for the addresses of its own devices to
    the kernel. So the kernel's end gets another address."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            ip("-n", space, "link", "set", device, "address", "02:00:00:00:00:%02x" %
               (len(device) + 0x40))
            ip("-n", space, "link", "set", device, "master", bridge, "up")
            return
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.05)


def tap_wire():
    """Adds two namespaces with a bridge br0 each, joined by a veth. Returns their names."""
    spaces = [add_space("left"), add_space("right")]
    for space in spaces:
        ip("-n", space, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        ip("-n", space, "link", "set", "br0", "up")
    ip("-n", spaces[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable",
       "netns", spaces[1])
    for space in spaces:
        ip("-n", space, "link", "set", "cable", "master", "br0", "up")
    return spaces


@atexit.register
def _clean():
    for program in _started:
        program.kill()
    for name in _spaces:
        subprocess.run(("ip", "netns", "del", name), capture_output=True, check=False)


def verified(report):
    """Whether a receiver's report shows all its bytes verified and correct."""
    return report["result"] == "pass" and report["bad_bytes"] == 0 and \
        report["bad_messages"] == 0 and report["bytes_verified"] == report["bytes"]
