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
import table
from runners import Bench, Failed


def note(text):
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


def sample(measurement, bench, timing):
    """One try, and another: a machine has other things to do too. None: it failed twice."""
    for attempt in (1, 2):
        try:
            return measurement.run(bench, timing)
        except (Failed, OSError, ValueError) as error:
            if attempt == 2:
                note("")
                print("%s: %s" % (measurement.name, error), file=sys.stderr)
    return None


def chosen(only, quick):
    """What is asked for by name is measured, --quick or not."""
    if only:
        return [m for m in plan.MEASUREMENTS if m.name.startswith(tuple(only))]
    return [m for m in plan.MEASUREMENTS if m.quick or not quick]


def measure(bench, quick, only, deadline):
    """{name: [a dictionary or None for each round]}"""
    results = {}
    timing = plan.QUICK if quick else plan.FULL
    rounds = [[m for m in chosen(only, quick) if m.main]] * timing.rounds
    rounds.append([m for m in chosen(only, quick) if not m.main])
    total = sum(map(len, rounds))
    done = 0
    for number, measurements in enumerate(rounds):
        for measurement in measurements:
            done += 1
            note("%3d of %d: %s" % (done, total, measurement.name))
            if time.monotonic() > deadline:
                break
            results.setdefault(measurement.name, []).append(
                sample(measurement, bench, timing if number < timing.rounds else timing.sweep()))
    note("")
    return results


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
    report["results"] = measure(bench, args.quick, args.only, deadline - (0 if args.quick else 60))
    report["rows"] = table.rows(report["results"])
    if args.cycles:
        report["cycles"] = cycles(bench, report["results"], deadline)
    report["minutes"] = round((time.monotonic() - begin) / 60, 1)
    with open(args.json, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    table.show(report)
    if args.svg:
        plot.draw(report, args.svg)
    missing = [m.name for m in chosen(args.only, args.quick)
               if not any(report["results"].get(m.name, []))]
    if missing:
        print("Not measured: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
