#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Started by tools/bench.sh: takes all measurements in turn, round by round, then prints the
table."""

import argparse
import json
import os
import platform
import sys
import time

import plan
import plot
import states
import table
from runners import Bench
from wires import Failed


def note(text):
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


def attempt(measurement, bench, timing):
    """Takes one sample. A sample that fails is taken once more and the failure is printed only when
    both fail: a measurement is not a test. None: it failed twice."""
    for number in (1, 2):
        try:
            return measurement.run(bench, timing)
        except (Failed, OSError, ValueError) as error:
            if number == 2:
                note("")
                print("%s: %s" % (measurement.name, error), file=sys.stderr)
    return None


class Session:
    """The samples taken so far, and the bench that takes them."""

    def __init__(self, bench, deadline):
        self.bench, self.deadline = bench, deadline
        self.line_probe = bench.line_probe()
        self.results = {}  # {name: [a dictionary or None for each round]}
        self.done, self.spent = 0, 0.0

    def late(self, to_come=0):
        """Whether to_come more samples and one extra no longer fit before the deadline."""
        mean = self.spent / self.done if self.done else 0
        return time.monotonic() + (to_come and (to_come + 1) * mean) > self.deadline

    def sample(self, measurement, timing, number, to_come):
        """Takes a sample. It is taken again, at most twice, when the machine changed its state
        during the sample or when other tasks took too much of the cores."""
        for again in range(3):
            begin, interference = time.monotonic(), states.Interference()
            got = attempt(measurement, self.bench, timing)
            self.spent += time.monotonic() - begin
            self.done += 1
            if got:
                got["line_ns"] = self.line_probe.between(*self.bench.window)
                got["round"], got["again"] = number, again
                got["interference"] = interference.part()
            if not got or self.late(to_come + 1) or not (
                    got["interference"] > states.BUSY or
                    states.is_mixed(got["line_ns"], self.results)):
                break
        self.results.setdefault(measurement.name, []).append(got)


def chosen(only, quick):
    """The measurements to take. --only overrides --quick, and names those of two hosts."""
    if only:
        return [m for m in plan.MEASUREMENTS if m.name.startswith(tuple(only))]
    return [m for m in plan.MEASUREMENTS if (m.quick or not quick) and not m.named]


def measure(session, quick, only):
    timing = plan.QUICK if quick else plan.FULL
    rounds = [[m for m in chosen(only, quick) if m.main]] * timing.rounds
    rounds.append([m for m in chosen(only, quick) if not m.main])
    total = sum(map(len, rounds))
    begun = 0
    for number, measurements in enumerate(rounds):
        for measurement in measurements:
            begun += 1
            note("%3d of %d: %s" % (begun, total, measurement.name))
            if session.late():
                break
            session.sample(measurement, timing if number < timing.rounds else timing.sweep(),
                           number, total - begun)
    states.label(session.results)
    complete(session, timing, len(rounds))
    note("")


def complete(session, timing, number):
    """Takes up to three more rounds of the rows that have no two samples of one state, while time
    remains."""
    for number in range(number, number + 3):
        for name in table.unpaired(session.results):
            note("again: " + name)
            if session.late(1):
                return
            measurement = plan.BY_NAME[name]
            session.sample(measurement, timing if measurement.main else timing.sweep(), number, 1)
        states.label(session.results)


def cycles(bench, results, deadline):
    """Cycles by stage of the measurements whose rows do not meet their target."""
    found = {}
    for name in table.below_target(results):
        note("cycles of " + name)
        if time.monotonic() > deadline:
            break
        try:
            mode, options = plan.BY_NAME[name].arguments
            found[name] = bench.cycles(mode, options)
        except (Failed, OSError, ValueError) as error:
            print("cycles of %s: %s" % (name, error), file=sys.stderr)
    note("")
    return found


def machine(build):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {"cpu": names[0] if names else platform.machine(), "cpus": os.cpu_count(),
            "kernel": platform.release(), "load_before": os.getloadavg()[0],
            "cores": states.cores(build)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--cycles", metavar="BUILD", help="a build with -Dcycles=true")
    parser.add_argument("--json", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--svg", metavar="DIR")
    args = parser.parse_args()

    begin = time.monotonic()
    report = {"quick": args.quick, "date": time.strftime("%Y-%m-%d"), "machine": machine(args.build)}
    if report["machine"]["load_before"] > 0.5:
        print("The machine is busy (load %.1f): the numbers will be worse than on an idle one."
              % report["machine"]["load_before"])
    bench = Bench(args.build, args.scratch, args.cycles)
    deadline = begin + 60 * (4 if args.quick else 30) - 15
    session = Session(bench, deadline - (0 if args.quick else 60))
    try:
        measure(session, args.quick, args.only)
    finally:
        session.line_probe.stop()
    if not session.line_probe.readings:
        print("rocade-line printed no reading: the states of the machine are not told apart.")
    report["results"] = session.results
    report["line_ns"] = states.label(session.results)
    report["rows"] = table.rows(report["results"])
    if args.cycles:
        report["cycles"] = cycles(bench, report["results"], deadline)
    report["minutes"] = round((time.monotonic() - begin) / 60, 1)
    with open(args.json, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    table.show(report)
    if args.svg:
        plot.draw(report, args.svg)
    disturbed = states.disturbed(report["results"])
    if disturbed:
        print("Other tasks or guests had more than %.0f %% of the cores' time in %d samples: %s." % (
            100 * states.BUSY, len(disturbed), ", ".join(dict.fromkeys(disturbed))))
    missing = [m.name for m in chosen(args.only, args.quick)
               if not any(report["results"].get(m.name, []))]
    if missing:
        print("Not measured: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
