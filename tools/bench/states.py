# SPDX-License-Identifier: BSD-3-Clause
"""The states of the machine. A hypervisor moves a virtual machine's cores nearer to or further
from each other, for a fraction of a second or for minutes. A cache line then takes several times
as long from core to core. rocade-line, the cache-line probe, runs during all measurements and
measures that time ten times a second. A sample is 'fast', 'slow' or 'mixed' by the readings taken
during its window. On a machine with one state the state of every sample is None."""

import math
import os
import resource
import statistics
import subprocess
import time

APART = 1.6  # two states differ by more than this factor
EVERY_MS = 100
SIBLINGS = 1.2  # work on one of two hardware threads of a core takes longer than this beside the other's
BUSY = 0.1  # share of the cores' time that other tasks and guests may take


class LineProbe:
    """Runs rocade-line. command: its command line, or None without the program. out: the file
    that it writes its readings to."""

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
        """All readings so far: [(seconds of the monotonic clock, ns)]"""
        if self.process:
            *lines, self.rest = (self.rest + self.file.read()).split("\n")
            self.readings += [tuple(map(float, line.split())) for line in lines]
        return self.readings

    def between(self, begin, end):
        """The 10th, 50th and 90th percentile in ns of the readings of that time; None: there
        are none."""
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


def cores(build, pair=(0, 1)):
    """Asks rocade-line for the state of two cores: {"line_ns", "beside", "cycles_a_tick"}. None: it gives no
    answer."""
    try:
        done = subprocess.run(
            [os.path.join(build, "app", "perf", "rocade-line"), "--state", *map(str, pair)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
        line_ns, beside, cycles = map(float, done.stdout.split())
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return {"line_ns": line_ns, "beside": beside, "cycles_a_tick": cycles}


def cores_text(found):
    if not found:
        return "rocade-line gave no state of the cores."
    return ("Before the first measurement a cache line took %.0f ns from core to core, work took %.2f times "
            "as long on a core while the other one did the same (%s), and a core had %.2f cycles in a tick "
            "of the TSC (arm64: of the generic timer)." % (found["line_ns"], found["beside"],
                             "two threads of one core" if found["beside"] > SIBLINGS else "two cores",
                             found["cycles_a_tick"]))


def centres(values):
    """(fast, slow): the medians of two clusters. None: there is one cluster. A single value is
    not a cluster."""
    values = sorted(values)
    if len(values) < 4:
        return None
    logs = [math.log(value) for value in values]
    total, below, best = sum(logs), 0.0, (0.0, 0)
    # Choose the split with the largest weighted distance between the two means.
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
    """The state of a sample, from its percentiles: 'mixed' unless it is clearly in one."""
    if pair is None or line_ns is None:
        return None
    step = (pair[1] / pair[0]) ** (1 / 3)
    if line_ns[-1] < pair[0] * step:
        return "fast"
    return "slow" if line_ns[0] > pair[1] / step else "mixed"


def samples_of(results):
    return [sample for samples in results.values() for sample in samples if sample]


def label(results):
    """Sets "state" of each sample from the readings of all samples. Returns the two centres, or
    None on a machine with one state."""
    taken = samples_of(results)
    pair = centres([ns for sample in taken for ns in sample.get("line_ns") or []])
    for sample in taken:
        sample["state"] = state_of(sample.get("line_ns"), pair)
    return pair


def is_mixed(line_ns, results):
    """Whether a new sample is mixed, judged by the samples so far."""
    if line_ns is None:
        return False
    if line_ns[-1] / line_ns[0] > APART:
        return True
    seen = [ns for sample in samples_of(results) for ns in sample.get("line_ns") or []]
    return state_of(line_ns, centres(seen + line_ns)) == "mixed"


class Interference:
    """The cores' time that other tasks and other guests of the host take. The bench's own
    processes are those that it has waited for by the end."""

    def __init__(self):
        self.before = self.now()

    @staticmethod
    def now():
        """(seconds of all tasks and of steal, seconds of the bench's processes, the clock)"""
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, _, _, steal = map(int, file.readline().split()[1:9])
        ours = [part for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
                for part in resource.getrusage(who)[:2]]
        return ((user + nice + system + steal) / os.sysconf("SC_CLK_TCK"), sum(ours),
                time.monotonic())

    def part(self):
        """The share of the cores' time."""
        every, ours, clock = (b - a for a, b in zip(self.before, self.now()))
        return max(0, every - ours) / clock / os.cpu_count()


def disturbed(results):
    """The names of samples with too much interference, once for each sample."""
    return [name for name, samples in results.items() for sample in samples
            if sample and sample.get("interference", 0) > BUSY]
