#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the parts of the demo and prints their results. tools/demo.sh starts it."""

import argparse
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
import parts  # noqa: E402
import table  # noqa: E402
from program import Failed, stop_all  # noqa: E402


def machine():
    """Returns one line that describes the machine."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return "%s, %d cores" % (model, len(os.sched_getaffinity(0)))


class Progress:
    """Shows progress: on a terminal a line that changes, elsewhere a line for each step."""

    def __init__(self):
        self.terminal = sys.stdout.isatty()

    def step(self, text):
        self.clear()
        print(text, flush=True)

    def tick(self, text):
        if self.terminal:
            print("\r\033[K    " + text, end="", flush=True)
        else:
            print("    " + text, flush=True)

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="")


def run(options):
    progress = Progress()
    started = []
    results = []
    problems = []
    for name in options.parts:
        try:
            result = parts.PARTS[name](options, started, progress)
            results.append(result)
            problems += ["part %s: %s" % (name, text) for text in result["problems"]]
        except (Failed, OSError) as error:
            problems.append("part %s: %s" % (name, error))
        finally:
            stop_all(started)
            started.clear()
    progress.clear()
    return results, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--parts", default="abc")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--hugepages", action="store_true")
    parser.add_argument("--capture")
    parser.add_argument("--json")
    options = parser.parse_args()

    def interrupted(_number, _frame):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)

    began = time.monotonic()
    try:
        results, problems = run(options)
    except KeyboardInterrupt:
        return 130
    verdict = "FAIL" if problems else "PASS"
    print()
    if results:
        print("\n".join(table.rows(results)))
        print()
    for problem in problems:
        print(problem)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "verdict": verdict, "problems": problems,
                       "parts": results}, file, indent=1)
    print("%d s on %s" % (time.monotonic() - began, machine()))
    print(verdict)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
