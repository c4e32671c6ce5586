# SPDX-License-Identifier: BSD-3-Clause
"""The measurements, and the rocade-testpmd that runs one of them at this end."""

import json
import os
import re
import threading
import time
from collections import namedtuple

import check
from channel import counters, number, optional, record, text
from program import Failed, Program

PATH_MTUS = (1024, 2048, 4096)
START_S = 60  # until a port has started; its link may have to come up
WAIT_S = 30  # until the first message arrives
PATH_WAIT_S = 15  # the same for packets of a path MTU that need not arrive
RUN_S = 150  # for a run, with all of the above
LOSS = "1%"

# options: of both ends. to_sink: of the receiving end. quick: how long the run of --quick is. full:
# whether --quick leaves the case out.
Case = namedtuple("Case", "title mode qps size length quick options to_sink full")
SECONDS, ONE_SECOND = ["--duration", "10"], ["--duration", "1"]


def case(title, mode, qps, size, length=SECONDS, quick=ONE_SECOND, options=(), to_sink=(),
         full=False):
    return Case(title, mode, qps, size, length, quick, options, to_sink, full)


# Buffers of few large messages: filling them the first time takes longer than a short run.
LARGE = ["--depth", "256", "--sq-depth", "64"]
CASES = {
    # Not a measurement: whether packets of the path MTU arrive.
    "path": case("packets of the path MTU", "send", 1, "16k", ["--count", "64"],
                 ["--count", "64"], LARGE),
    "rate": case("SEND 64 B, 8 QPs", "send", 8, "64"),
    "rate_1": case("SEND 64 B, 1 QP", "send", 1, "64", full=True),
    "rate_unverified": case("SEND 64 B, 8 QPs, not verified", "send", 8, "64",
                            options=["--no-verify"], full=True),
    "bandwidth": case("SEND 64 KiB, 4 QPs", "send", 4, "64k", options=LARGE),
    "bandwidth_1": case("SEND 64 KiB, 1 QP", "send", 1, "64k", options=LARGE, full=True),
    "bandwidth_unverified": case("SEND 64 KiB, 4 QPs, not verified", "send", 4, "64k",
                                 options=LARGE + ["--no-verify"], full=True),
    "latency": case("half round trip of 64 B", "pingpong", 1, "64"),
    "latency_4096": case("half round trip of 4096 B", "pingpong", 1, "4096", full=True),
    # As many packets on a slow host too: some of them must be lost.
    "loss": case("SEND 64 B to 16 KiB, 8 QPs, %s dropped on purpose" % LOSS, "send", 8,
                 "64,1000,4096,16k", quick=["--count", "2000"], options=["--depth", "1024"], to_sink=["--impair", "loss=" + LOSS]),
}
NUMBERS = ("messages", "bytes", "seconds", "rate", "gbps", "retransmits", "bytes_verified",
           "bad_bytes", "bad_messages")
LATENCIES = ("lat_min_ns", "lat_p50_ns", "lat_p99_ns", "lat_p999_ns", "lat_max_ns")
# One end's result of a run.
FIELDS = {
    "reason": optional(text), **{name: number() for name in NUMBERS},
    **{name: optional(number()) for name in LATENCIES}, "drops": counters,
    "path_mtu": number(0, 4096), "frames_sent": number(), "frames_received": number(),
    "dropped_on_purpose": number()}
RESULT = record(FIELDS)


def hidden(sentence):
    """Takes addresses and paths out of a sentence of a program."""
    sentence = re.sub(r"(?<!\w)(/[\w.+-]+){2,}", "(path)", sentence)
    sentence = re.sub(r"\b\d{1,3}(\.\d{1,3}){3}\b", "(address)", sentence)
    sentence = re.sub(r"\b[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}\b", "(address)", sentence)
    return check.plain(sentence, 300)


def failure(reason):
    return RESULT({"reason": hidden(reason), **{name: 0 for name in NUMBERS},
                   **{name: None for name in LATENCIES}, "drops": {}, "path_mtu": 0,
                   "frames_sent": 0, "frames_received": 0, "dropped_on_purpose": 0})


def result_of(report):
    port = report["ports"][0]
    stats = port["stats"]
    return RESULT({
        "reason": None if report["result"] == "pass" else hidden(report["reason"] or "failed"),
        **{name: report[name] for name in NUMBERS + LATENCIES}, "drops": report["drops"],
        "path_mtu": port["path_mtu"], "frames_sent": stats["tx_packets"],
        "frames_received": stats["rx_packets"], "dropped_on_purpose": port["impaired"]["lost"]})


class Port:
    """The DPDK port under test, and the programs on it. nic: None for a virtual device."""

    MEMORY_MB = 256
    failure = staticmethod(failure)
    result_of = staticmethod(result_of)
    STARTED = re.compile(r"port 0: \w+, \d+ QPs")

    def __init__(self, options, nic, started):
        self.options = options
        self.nic = nic
        self.vdev = options.vdev or ""
        self.started = started  # every program, for the end of this one
        node = check.whole(nic.read("numa_node")) if nic else None
        self.core = check.cpu_of_node(node) if options.core is None else options.core
        self.running = None
        self.ready = threading.Event()
        self.count = 0

    def eal(self):
        device = ["-a", self.options.dev] if self.nic else ["--no-pci", "--vdev", self.vdev]
        pages = ["--in-memory"] if self.has_hugepages() else ["--no-huge", "--no-shconf"]
        return ["--lcores", "0@%d" % self.core, "-m", str(self.MEMORY_MB), "--no-telemetry",
                "--log-level", "pmd.*:error", *pages, *device]

    def has_hugepages(self):
        return check.hugepages()[1] >= self.MEMORY_MB + 16

    def program(self, *path):
        return os.path.join(self.options.build, *path)

    def start(self, name, role, path_mtu):
        """Starts one end of a run. role: "send", or "sink", which returns messages in a pingpong,
        and runs until stop_run(). Returns when the sink is ready."""
        self.stop()
        one = CASES[name]
        mode = role if one.mode == "send" else one.mode
        # Of the receiving end too: the other port may take long to start. stop_run() ends it.
        wait_s = RUN_S
        if role == "send":
            wait_s = PATH_WAIT_S if name == "path" and path_mtu > PATH_MTUS[0] else WAIT_S
        options = ["--addr", self.options.addr, "--peer", self.options.peer, "--mode", mode,
                   "--qps", str(one.qps), "--size", one.size, "--mtu", str(path_mtu),
                   "--wait", str(wait_s), "--stats-period", "0", *one.options]
        if role == "send":
            options += one.quick if self.options.quick else one.length
        else:
            options += [*one.to_sink, "-i", "-a"]
        self.launch(name, options)
        if role == "sink":
            self.wait_ready()

    def launch(self, name, options):
        self.count += 1
        self.ready.clear()
        self.running = Program(self.started, "%d-%s" % (self.count, name), self.options.scratch,
                               [self.program("app", "testpmd", "rocade-testpmd"), *self.eal(),
                                "--", *options], self.line)

    def line(self, line):
        if self.STARTED.search(line):
            self.ready.set()

    def wait_ready(self):
        end = time.monotonic() + START_S
        while not self.ready.wait(0.02):
            if self.running.over.is_set():
                raise Failed("the port does not start: %s" % self.last_words())
            if time.monotonic() > end:
                raise Failed("the port has not started within %d s" % START_S)

    def last_words(self):
        """Returns the last line that the program has printed."""
        lines = [line.strip(" |") for line in self.running.tail(4).splitlines() if line.strip(" |")]
        lines = [line for line in lines if not line.startswith("FAIL") or len(line) > 5]
        return lines[-1] if lines else self.running.state()

    def wait(self, alive):
        """Waits until the run of this end is over, and returns its result. alive(): raises if the
        other end has gone."""
        if self.running is None:
            return self.failure("no run")
        end = time.monotonic() + RUN_S
        while not self.running.over.wait(0.05):
            alive()
            if time.monotonic() > end:
                self.stop()
                return self.failure("the run has not ended in time")
        return self.result()

    def stop_run(self):
        """Ends the run of a receiving end, and returns its result."""
        if self.running is None:
            return self.failure("no run")
        self.running.say("quit")
        self.running.over.wait(20)
        return self.result()

    def result(self):
        program, self.running = self.running, None
        try:
            program.process.wait(20)
        except Exception:  # it hangs
            program.stop()
            return self.failure("the program does not end")
        program.reader.join(5)
        try:
            with open(program.json, encoding="utf-8") as file:
                return self.result_of(json.load(file))
        except (OSError, ValueError, KeyError, IndexError):
            self.running = program
            words, self.running = self.last_words(), None
            return self.failure("no result: %s" % words)

    def stop(self):
        if self.running:
            self.running.stop()
            self.running = None
