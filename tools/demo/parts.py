# SPDX-License-Identifier: BSD-3-Clause
"""The three parts. Each runs traffic, then a short pingpong for the latency, and returns its row of
the table with a list of problems."""

import os
import re
import time

import hosts
from capture import Capture
from program import Failed, Program

MEMORY_MB = 256
RUN_S = 90  # timeout of a run
LEFT, RIGHT = "192.0.2.1", "192.0.2.2"
LINE = re.compile(r"^ *(\d+) s .*port \d+ sink: ([\d.]+) Mmsg/s ([\d.]+) Gb/s, ([\d,]+) messages")


class RateReader:
    """Reads the receiver's line of each second, shows it and keeps the rate. Calls half_way() at
    the end of second half_way_s."""

    def __init__(self, progress, seconds, skip=1, half_way_s=None, half_way=None):
        self.progress = progress
        self.seconds = seconds - skip
        self.skip = skip
        self.half_way_s = half_way_s
        self.half_way = half_way
        self.rates = []

    def line(self, text):
        match = LINE.match(text)
        second = len(self.rates) + 1
        # Only whole seconds: the first and the last may be shorter.
        if not match or (second == 1 and float(match[2]) == 0) or second > self.seconds:
            return
        if self.skip:
            self.skip -= 1
            return
        loss = self.half_way_s is not None and second > self.half_way_s
        gbps = float(match[3])
        self.rates.append({"second": second, "messages_per_s": float(match[2]) * 1e6,
                           "gbps": gbps, "loss": loss})
        self.progress.tick("%3d s  %14s messages  %7.2f Gb/s%s" % (
            second, match[4], gbps, "  1 % loss" if loss else ""))
        if second == self.half_way_s:
            self.half_way()


def wait_runs(ends):
    """Waits until both runs are over. If one fails, it does not wait for the other: its peer is
    missing."""
    end = time.monotonic() + RUN_S
    while not all(program.over.is_set() for program in ends):
        failed = [program for program in ends if program.failed()]
        if failed or time.monotonic() > end:
            raise Failed("\n".join("%s %s:\n%s" % (program.name, program.state(), program.tail())
                                   for program in failed or ends))
        time.sleep(0.1)


def hugepages_free_mb():
    with open("/proc/meminfo", encoding="utf-8") as file:
        text = file.read()
    pages, size_kb = (int(re.search(key + r": +(\d+)", text)[1])
                      for key in ("HugePages_Free", "Hugepagesize"))
    return pages * size_kb // 1024


class Pair:
    """Two programs, or one with both ends, started again for each run."""

    def __init__(self, options, started):
        self.options = options
        self.started = started
        self.program = os.path.join(options.build, "app", "testpmd", "rocade-testpmd")
        cpus = sorted(os.sched_getaffinity(0))
        self.cpus = (cpus[0], cpus[1 % len(cpus)])

    def eal(self, side, device):
        """Returns the command line up to EAL's options: a core for each side, and memory, in
        hugepages if enough are free."""
        huge = self.options.hugepages and hugepages_free_mb() >= MEMORY_MB
        memory = ["--in-memory"] if huge else ["--no-huge", "--no-shconf"]
        return [self.program, "--lcores", "0@%d" % self.cpus[side], "-m", str(MEMORY_MB),
                "--no-pci", "--no-telemetry", "--log-level", "pmd.*:error", "--vdev",
                device] + memory

    def start(self, name, command, on_line=None):
        return Program(self.started, name, self.options.scratch, command, on_line)

    def run(self, name, mode, other_mode, arguments, reader=None):
        """Runs both ends. Returns their reports, the receiver's first."""
        arguments = arguments + ["--interactive", "--auto-start", "--wait", "30"]
        right = self.start_side(1, "%s-right" % name, other_mode, arguments,
                                reader.line if reader else None)
        left = self.start_side(0, "%s-left" % name, mode, arguments)
        wait_runs((right, left))
        reports = right.report()["ports"] + left.report()["ports"]
        self.close(right, left)
        return reports

    def close(self, right, left):
        for end in (right, left):
            end.quit()

    def start_side(self, side, name, mode, arguments, on_line=None):
        raise NotImplementedError


class TapPair(Pair):
    def start_side(self, side, name, mode, arguments, on_line=None):
        where = hosts.SIDES[side]
        addresses = (LEFT, RIGHT) if side == 0 else (RIGHT, LEFT)
        program = self.start(name, hosts.inside(where) + self.eal(
            side, "net_tap0,iface=" + hosts.TAP) + [
                "--", "--mode", mode, "--addr", addresses[0] + "/24", "--peer", addresses[1]] +
                             arguments, on_line)
        try:
            hosts.plug(where, program.alive)
        except OSError as error:
            raise Failed("%s: %s\n%s" % (name, error, program.tail())) from error
        return program


class MemifPair(Pair):
    def start_side(self, side, name, mode, arguments, on_line=None):
        addresses = (LEFT, RIGHT) if side == 0 else (RIGHT, LEFT)
        # A socket for each run: the client cannot start before the server listens.
        socket = os.path.join(self.options.scratch, name.rsplit("-", 1)[0] + ".sock")
        device = "net_memif0,role=%s,id=0,socket=%s,socket-abstract=no,bsize=8192,rsize=11" % (
            "client" if side == 0 else "server", socket)
        program = self.start(name, self.eal(side, device) + [
            "--", "--mode", mode, "--addr", addresses[0] + "/24", "--peer", addresses[1],
            "--if-mtu", "4200"] + arguments, on_line)
        while side == 1 and program.alive() and not os.path.exists(socket):
            time.sleep(0.05)
        return program

    def close(self, right, left):
        # When one end closes, the other end's driver (DPDK 22.11) unmaps the rings in a thread of
        # its own, and crashes if they are polled at that moment. So freeze that end first.
        right.freeze()
        left.quit()
        right.kill()


class LoopPair(Pair):
    def run(self, name, mode, other_mode, arguments, reader=None):
        program = self.start("%s-loop" % name, [self.program, "--", "--loop", "--mode", mode] +
                             arguments, reader.line if reader else None)
        program.wait(RUN_S)
        ports = program.report()["ports"]
        return sorted(ports, key=lambda port: port["mode"] != "sink")


def stat(ports, name):
    return sum(port["stats"][name] for port in ports)


def latency(ports):
    """Returns the latency of a pingpong in microseconds."""
    for port in ports:
        if port["lat_p50_ns"] is not None:
            return {"p50": port["lat_p50_ns"] / 1000, "p99": port["lat_p99_ns"] / 1000,
                    "p99.9": port["lat_p999_ns"] / 1000}
    return {"p50": None, "p99": None, "p99.9": None}


def check(result, receiver, sender, lossy):
    """Returns the problems of a part: the conditions that it does not meet."""
    problems = []

    def want(good, text):
        if not good:
            problems.append(text)
    want(receiver["messages"] > 0, "no message arrived")
    want(receiver["messages"] == sender["messages"],
         "%d messages were acknowledged and %d arrived" % (sender["messages"],
                                                          receiver["messages"]))
    want(receiver["bytes_verified"] == receiver["bytes"],
         "%d bytes arrived and %d were verified" % (receiver["bytes"],
                                                   receiver["bytes_verified"]))
    want(receiver["bad_bytes"] == 0 and receiver["bad_messages"] == 0,
         "%d bytes in %d messages were wrong" % (receiver["bad_bytes"],
                                                receiver["bad_messages"]))
    want(result["completions_saved"] > 0, "no completion was saved")
    want(result["limit_events"] > 0, "no SRQ limit event was raised")
    want(result["latency_us"]["p50"] is not None, "no latency was measured")
    if lossy:
        want(receiver["impaired"]["lost"] > 0, "the loss did not begin")
        want(result["retransmissions"] > 0, "frames were lost and nothing was retransmitted")
    return problems


def measure(name, title, pair, arguments, pingpong_arguments, reader, lossy=False):
    ports = pair.run(name, "send", "sink", arguments, reader)
    receiver, sender = ports[0], ports[1]
    reader.progress.step("   latency: one message of 64 bytes and its reply at a time ...")
    pingpong_ports = pair.run(name + "-latency", "pingpong", "pingpong", pingpong_arguments)
    result = {"part": name, "title": title, "messages": receiver["messages"],
              "gbps": receiver["gbps"], "seconds": receiver["seconds"],
              "path_mtu": receiver["path_mtu"], "qps": receiver["qps"],
              "latency_us": latency(pingpong_ports), "completions_saved": stat(ports, "cqe_saved"),
              "limit_events": sum(port["limit_events"] for port in ports),
              "rnr_naks": stat(ports, "rnr_nak_sent"),
              "retransmissions": stat(ports, "retransmitted"),
              "lost": sum(port["impaired"]["lost"] for port in ports),
              "bytes_verified": receiver["bytes_verified"], "rates": reader.rates}
    result["problems"] = check(result, receiver, sender, lossy)
    return result


# On a busy machine a process may not run for a while: a QP gives up after four seconds (17: 0.5 s,
# seven retries). Loss is detected much earlier.
LONG_TIMEOUT = ["--timeout", "17"]


def traffic(seconds, *more):
    return ["--qps", "8", "--srq", "--signal-every", "64", "--duration", str(seconds),
            "--stats-period", "1"] + LONG_TIMEOUT + list(more)


def pingpong(seconds):
    return ["--qps", "1", "--size", "64", "--duration", str(seconds),
            "--stats-period", "0"] + LONG_TIMEOUT


def part_a(options, started, progress):
    seconds = 4 if options.quick else 14
    progress.step("a  two hosts in two network namespaces, a net_tap port each, joined by a "
                  "bridge:\n   8 QPs into one SRQ, 1 of 64 signaled, 1 % loss in the second half")
    hosts.join()
    capture = Capture(options.capture, options.scratch) if options.capture else None

    def half_way():
        if capture:
            capture.begin_half()
        for program in started:
            program.say("set impair rx loss 1%")
    try:
        return measure("a", "two hosts over net_tap", TapPair(options, started),
                       traffic(seconds, "--size", "64,1000,4096,16k", "--depth", "1024",
                               "--srq-limit", "256"),
                       pingpong(1 if options.quick else 3),
                       RateReader(progress, seconds, 1, seconds // 2, half_way), lossy=True)
    finally:
        if capture:
            capture.finish()


def part_b(options, started, progress):
    seconds = 3 if options.quick else 10
    progress.step("b  two processes over net_memif, a core each, %s hugepages"
                  % ("in" if options.hugepages else "without"))
    return measure("b", "two processes over net_memif", MemifPair(options, started),
                   traffic(seconds, "--size", "16k", "--depth", "4096", "--srq-limit", "1024"),
                   pingpong(1 if options.quick else 3), RateReader(progress, seconds))


def part_c(options, started, progress):
    seconds = 3 if options.quick else 10
    progress.step("c  one process with two ports inside it: no root, no hugepages, no NIC")
    return measure("c", "one process, two ports", LoopPair(options, started),
                   traffic(seconds, "--size", "1k", "--depth", "4096", "--srq-limit", "1024"),
                   pingpong(1 if options.quick else 3), RateReader(progress, seconds, skip=0))


PARTS = {"a": part_a, "b": part_b, "c": part_c}
