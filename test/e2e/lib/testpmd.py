# SPDX-License-Identifier: BSD-3-Clause
"""Runs rocade-testpmd in network namespaces and checks its report."""

import atexit
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import zlib

from limit import Limit
from process import Process, WaitFailed, run, shown, until

SOURCE = os.environ.get("ROCADE_SOURCE") or os.path.realpath(
    os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILD = os.environ.get("ROCADE_BUILD") or os.path.join(SOURCE, "build")
PROGRAM = os.path.join(BUILD, "app", "testpmd", "rocade-testpmd")
ICRC_CHECK = os.path.join(SOURCE, "test", "tools", "icrc_check.py")
LONG = os.environ.get("ROCADE_TEST_LONG") == "1"

SCRATCH = tempfile.mkdtemp(prefix="rocade-e2e-")
atexit.register(shutil.rmtree, SCRATCH, True)
_spaces = []
ADDRESS = ["192.0.2.1", "192.0.2.2"]


def is_root():
    return os.geteuid() == 0


def hugepages_free():
    with open("/proc/meminfo", encoding="utf-8") as file:
        return int(re.search(r"HugePages_Free:\s+(\d+)", file.read()).group(1))


def hugepages_wait(count):
    """Waits until this number is free, if there are as many. Returns whether there are."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        total = int(re.search(r"HugePages_Total:\s+(\d+)", file.read()).group(1))
    return total >= count and until(lambda: hugepages_free() >= count, 120)


def cpu_of(core):
    """Returns the CPU of the process with this core of its own, as eal() numbers cores."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[core % len(cpus)]


def eal(core, *devices, memory_mb=512):
    """Returns the EAL options of a process with a core of its own and without a NIC."""
    # Others may look at the same time: its other end, and both of the program beside it.
    pages = ["--in-memory"] if is_root() and hugepages_free() * 2 >= 4 * memory_mb + 64 else [
        "--no-huge", "--no-shconf"]
    out = ["--lcores", "0@%d" % cpu_of(core), "-m", str(memory_mb), "--no-pci",
           "--no-telemetry", "--log-level", "pmd.*:error"] + pages
    for device in devices:
        out += ["--vdev", device]
    return out


def eal_cores(cores, *devices, memory_mb=256):
    """Returns the EAL options of a process with so many lcores, from 0 on, on all CPUs together."""
    cpus = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)))
    options = eal(0, *devices, memory_mb=memory_mb)
    options[1] = "(0-%d)@(%s)" % (cores - 1, cpus)
    return options


def preloaded(name, **env):
    """Returns the environment of a program into which a library of test/e2e is preloaded."""
    return dict(env, LD_PRELOAD=os.path.join(BUILD, "test", "e2e", name + ".so"),
                # In a sanitized build the preloaded library precedes its runtime.
                ASAN_OPTIONS="%s:verify_asan_link_order=0" % os.environ.get("ASAN_OPTIONS", ""))


# RC gives up after eight ACK timeouts, by default after half a second. An end that polls may be without a core for
# longer, beside other load: these are four seconds.
PATIENT = ["--timeout", "17"]


class Testpmd(Process):
    """One rocade-testpmd, which reads commands. json() returns its report. Without --timeout it is PATIENT."""

    count = 0

    def __init__(self, options, eal_options=(), space=None, env=None):
        Testpmd.count += 1
        self.report = os.path.join(SCRATCH, "report%d.json" % Testpmd.count)
        patient = [] if "--timeout" in options or "--loop" in options else PATIENT
        command = [PROGRAM, *eal_options, "--", *patient, *options, "--json", self.report]
        if space:
            command = ["ip", "netns", "exec", space] + command
        super().__init__(command, feed=True, env=dict(os.environ, ROCADE_LOG="info", **env or {}))

    def say(self, text):
        super().say(text + "\n")

    def json(self):
        with open(self.report, encoding="utf-8") as file:
            return json.load(file)

    def freeze(self):
        self.send_signal(signal.SIGSTOP)

    def tail(self):
        return "\n".join(self.text.splitlines()[-30:])


class MemifWire:
    """Two ends over a memif, whose server is the receiver, end 1."""

    count = 0

    def __init__(self):
        MemifWire.count += 1
        self.socket = os.path.join(SCRATCH, "memif%d" % MemifWire.count)

    def end(self, side, mode, *options, cores=0):
        """Starts an end; cores: with that number of traffic loops, 0: without --nb-cores."""
        device = "net_memif0,role=%s,socket=%s,socket-abstract=no,bsize=2048,rsize=11" % (
            "client" if side == 0 else "server", self.socket)
        lcores = eal_cores(cores + 1, device) if cores else eal(side, device, memory_mb=256)
        how = ["--nb-cores", str(cores)] if cores else []
        program = Testpmd(["-i", "-a", "--mode", mode, "--addr", ADDRESS[side] + "/24", "--peer",
                           ADDRESS[1 - side], "--if-mtu", "1500", *how, *options], lcores)
        program.expect(r"^port 0: \w+, \d+ QPs", 20)
        return program

    def run(self, receiver, sender, cores=(0, 0), modes=("sink", "send")):
        """Runs two ends with these options until each has a result. Returns them: receiver, sender."""
        ends = [self.end(1, modes[0], *receiver, cores=cores[0]),
                self.end(0, modes[1], *sender, cores=cores[1])]
        for end in ends:
            end.expect("^(PASS|FAIL)", 60)
        ends[0].freeze()  # DPDK's driver crashes if rings are polled while the other end unmaps them
        ends[1].say("quit")
        ends[1].wait(20)
        ends[0].kill()
        return ends


def loop(*options, text=None, eal_options=()):
    """Runs both ends in one process. Returns the finished process, and its report or None."""
    path = os.path.join(SCRATCH, "loop.json")
    if os.path.exists(path):
        os.unlink(path)
    done = run([PROGRAM, *eal_options, "--", "--loop", "-T", "0", "--json", path, *options],
               feed=text)
    report = None
    if os.path.exists(path) and os.path.getsize(path):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    return done, report


class Terminal:
    """rocade-testpmd with both ends in one process, on a terminal. text: what it has printed."""

    def __init__(self, *options):
        self.master, slave = pty.openpty()
        command = [PROGRAM, "--", "--loop", "-i", "-T", "0", *options]
        print("#$ " + shown(command), flush=True)
        self.program = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True,
                                        # the terminal of the session, which gets its signals
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.text = ""

    def type(self, keys):
        os.write(self.master, keys)

    def expect(self, words, typed=b"", timeout_s=15):
        """Types, then reads until the words arrive."""
        mark = len(self.text)
        self.type(typed)
        limit = Limit(timeout_s)
        while words not in self.text[mark:] and not limit.reached():
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode(errors="replace")
                except OSError:
                    break
        return words in self.text[mark:]

    def makes_signals(self):
        """Whether ^C is a signal now."""
        return termios.tcgetattr(self.master)[3] & termios.ISIG

    def end(self, timeout_s=10):
        """Returns the exit status. None: the program did not end in time and was killed."""
        self.expect("\0", timeout_s=timeout_s)  # to the end of the output
        until(lambda: self.program.poll() is not None, timeout_s)
        code = self.program.poll()
        if code is None:
            self.program.kill()
        os.close(self.master)
        return code


def ip(*args):
    done = run(("ip",) + args, 20)
    if done.returncode != 0:
        raise OSError("ip %s: %s" % (" ".join(args), done.stderr.strip()))
    return done.stdout


def ping(*args):
    """Returns a command that succeeds if each of five echoes is answered. One ping sends one echo:
    for the last of several it waits only for two round trips."""
    return ["sh", "-c", 'for i in 1 2 3 4 5; do ping -q -c 1 -W 20 "$@" || exit 1; done', "sh",
            *args]


def add_space(name):
    """Adds a network namespace without IPv6, so that its kernel sends nothing by itself."""
    name = "rcd%d-%s" % (os.getpid(), name)
    ip("netns", "add", name)
    _spaces.append(name)
    ip("netns", "exec", name, "sh", "-c",
       "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e $f ] || echo 1 >$f; done")
    return name


def inside(space):
    """Returns the options of ip(8) for a network namespace. None: that of this process."""
    return ["-n", space] if space else []


def set_address(space, device):
    """Gives the kernel's end of a tap port a MAC address of its own. Both ends of a tap have the
    same one, and a bridge passes frames for the addresses of its own devices to the kernel. Returns
    whether the device exists."""
    number = zlib.crc32(("%s %s" % (space, device)).encode())
    address = "02:00:%02x:%02x:%02x:%02x" % tuple(number.to_bytes(4, "big"))
    return run(["ip", *inside(space), "link", "set", device, "address", address],
               20).returncode == 0


def plug(space, device, bridge, timeout_s=20):
    """Puts the kernel's end of a tap port into a bridge as soon as it exists. Its queue, in which
    frames wait for the port, holds several messages of 1 MiB: nothing is lost while the port's
    process does not run."""
    def joined():
        return set_address(space, device) and ip(*inside(space), "link", "set", device, "txqueuelen",
                                                 "10000", "master", bridge, "up") == ""

    if not until(joined, timeout_s, 0.05):
        raise WaitFailed("no %s in %s after %d s" % (device, space, timeout_s))


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
    for name in _spaces:
        subprocess.run(("ip", "netns", "del", name), capture_output=True, check=False)


def verified(report):
    """Whether a receiver's report shows all its bytes verified and correct."""
    return report["result"] == "pass" and report["bad_bytes"] == 0 and \
        report["bad_messages"] == 0 and report["bytes_verified"] == report["bytes"]
