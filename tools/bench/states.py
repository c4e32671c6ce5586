# SPDX-License-Identifier: BSD-3-Clause
"""The states of the machine. A hypervisor moves a virtual machine's cores nearer to or further
from each other, for a fraction of a second or for minutes; a cache line then takes several times
as long from core to core. rocade-line is the witness: it runs all the time and asks ten times a
second. A sample is 'fast', 'slow' or 'mixed' by what it said meanwhile; on a machine that has but
one state all are alike, and their state is None."""

import math
import os
import resource
import statistics
import subprocess
import time

APART = 1.6  # two states differ by more than that
EVERY_MS = 100
BUSY = 0.1  # of the cores' time, which others may have


class Witness:
    """command: of rocade-line, or None where there is none. out: the file that it writes."""

    def __init__(self, command, out):
        self.process, self.readings, self.rest = None, [], ""
        if not command or not os.access(command[0], os.X_OK):
            return
        with open(out, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL,
                close_fds=False)
        self.file = open(out, encoding="utf-8")

    def read(self):
        """What it has said by now: [(seconds of the monotonic clock, ns)]"""
        if self.process:
            *lines, self.rest = (self.rest + self.file.read()).split("\n")
            self.readings += [tuple(map(float, line.split())) for line in lines]
        return self.readings

    def between(self, begin, end):
        """[its 10 %, 50 %, 90 % in ns] of that time; None: it said nothing."""
        got = sorted(ns for at, ns in self.read() if begin <= at <= end)
        if not got:
            return None
        return [got[round(part * (len(got) - 1))] for part in (0.1, 0.5, 0.9)]

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.file.close()


def centres(values):
    """(fast, slow), the medians of two clusters; None: there is but one. A single value is no
    cluster."""
    values = sorted(values)
    if len(values) < 4:
        return None
    logs = [math.log(value) for value in values]
    total, below, best = sum(logs), 0.0, (0.0, 0)
    # As far apart as they come, each weighed by how many it has.
    for count in range(1, len(logs)):
        below += logs[count - 1]
        rest = len(logs) - count
        apart = count * rest * (below / count - (total - below) / rest) ** 2
        best = max(best, (apart, count))
    count = best[1]
    if count == 1:
        return centres(values[1:])
    if count == len(values) - 1:
        return centres(values[:-1])
    fast, slow = statistics.median(values[:count]), statistics.median(values[count:])
    return (fast, slow) if slow / fast > APART else None


def state_of(line_ns, pair):
    """Of what the witness said during a sample. Who is not clearly in one state is in none."""
    if pair is None or line_ns is None:
        return None
    step = (pair[1] / pair[0]) ** (1 / 3)
    if line_ns[-1] < pair[0] * step:
        return "fast"
    return "slow" if line_ns[0] > pair[1] / step else "mixed"


def samples_of(results):
    return [sample for samples in results.values() for sample in samples if sample]


def label(results):
    """Each sample's "state", by all that there are. The two centres, or None."""
    taken = samples_of(results)
    pair = centres([ns for sample in taken for ns in sample.get("line_ns") or []])
    for sample in taken:
        sample["state"] = state_of(sample.get("line_ns"), pair)
    return pair


def is_mixed(line_ns, results):
    """While it is measured: by what has been seen so far."""
    if line_ns is None:
        return False
    if line_ns[-1] / line_ns[0] > APART:
        return True
    seen = [ns for sample in samples_of(results) for ns in sample.get("line_ns") or []]
    return state_of(line_ns, centres(seen + line_ns)) == "mixed"


class Others:
    """What the cores do meanwhile that is not ours: other tasks, other guests of the host. Ours
    are those that have been waited for by the end."""

    def __init__(self):
        self.before = self.now()

    @staticmethod
    def now():
        """(seconds of all tasks and stolen ones, seconds of ours, the clock)"""
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, _, _, steal = map(int, file.readline().split()[1:9])
        ours = [part for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
                for part in resource.getrusage(who)[:2]]
        return ((user + nice + system + steal) / os.sysconf("SC_CLK_TCK"), sum(ours),
                time.monotonic())

    def part(self):
        """Of the cores' time."""
        every, ours, clock = (b - a for a, b in zip(self.before, self.now()))
        return max(0, every - ours) / clock / os.cpu_count()


def disturbed(results):
    """The names of samples that others had more than their part of, each as often."""
    return [name for name, samples in results.items() for sample in samples
            if sample and sample.get("others", 0) > BUSY]
