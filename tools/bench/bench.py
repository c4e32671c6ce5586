#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs by tools/bench.sh: all measurements in turn, round by round, then the table."""

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
from runners import Bench, Failed


def note(text):
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


def attempt(measurement, bench, timing):
    """One try, and another: a machine has other things to do too. None: it failed twice."""
    for number in (1, 2):
        try:
            return measurement.run(bench, timing)
        except (Failed, OSError, ValueError) as error:
            if number == 2:
                note("")
                print("%s: %s" % (measurement.name, error), file=sys.stderr)
    return None


class Session:
    """What has been measured, and with what."""

    def __init__(self, bench, deadline):
        self.bench, self.deadline = bench, deadline
        self.witness = bench.witness()
        self.results = {}  # {name: [a dictionary or None for each round]}
        self.done, self.spent = 0, 0.0

    def late(self, to_come=0):
        """Whether what is still to come no longer fits, with one more sample."""
        mean = self.spent / self.done if self.done else 0
        return time.monotonic() + (to_come and (to_come + 1) * mean) > self.deadline

    def sample(self, measurement, timing, number, to_come):
        """Once more, and once more, while the machine changes its state under it or does other
        things."""
        for again in range(3):
            begin, others = time.monotonic(), states.Others()
            got = attempt(measurement, self.bench, timing)
            self.spent += time.monotonic() - begin
            self.done += 1
            if got:
                got["line_ns"] = self.witness.between(*self.bench.window)
                got["round"], got["again"], got["others"] = number, again, others.part()
            if not got or self.late(to_come + 1) or not (
                    got["others"] > states.BUSY or
                    states.is_mixed(got["line_ns"], self.results)):
                break
        self.results.setdefault(measurement.name, []).append(got)


def chosen(only, quick):
    """What is asked for by name is measured, --quick or not."""
    if only:
        return [m for m in plan.MEASUREMENTS if m.name.startswith(tuple(only))]
    return [m for m in plan.MEASUREMENTS if m.quick or not quick]


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
    """Rows of which no two samples are of one state: one round more of those, while there is
    time."""
    for number in range(number, number + 3):
        for name in table.unpaired(session.results):
            note("again: " + name)
            if session.late(1):
                return
            measurement = plan.BY_NAME[name]
            session.sample(measurement, timing if measurement.main else timing.sweep(), number, 1)
        states.label(session.results)


def cycles(bench, results, deadline):
    """Where they go, for what is behind rows that do not reach their aim."""
    found = {}
    for name in table.below_aim(results):
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


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {"cpu": names[0] if names else platform.machine(), "cpus": os.cpu_count(),
            "kernel": platform.release(), "load_before": os.getloadavg()[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--cycles", metavar="BUILD", help="one that counts cycles")
    parser.add_argument("--json", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--svg", metavar="DIR")
    args = parser.parse_args()

    begin = time.monotonic()
    report = {"quick": args.quick, "date": time.strftime("%Y-%m-%d"), "machine": machine()}
    if report["machine"]["load_before"] > 0.5:
        print("The machine is busy (load %.1f): the numbers will be worse than they could be."
              % report["machine"]["load_before"])
    bench = Bench(args.build, args.scratch, args.cycles)
    deadline = begin + 60 * (4 if args.quick else 30) - 15
    session = Session(bench, deadline - (0 if args.quick else 60))
    try:
        measure(session, args.quick, args.only)
    finally:
        session.witness.stop()
    if not session.witness.readings:
        print("rocade-line said nothing: states of the machine are not told apart.")
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
    others = states.disturbed(report["results"])
    if others:
        print("Other tasks or guests had more than %.0f %% of the cores' time in %d samples: %s." % (
            100 * states.BUSY, len(others), ", ".join(dict.fromkeys(others))))
    missing = [m.name for m in chosen(args.only, args.quick)
               if not any(report["results"].get(m.name, []))]
    if missing:
        print("Not measured: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
