#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs every fuzz target of a build for SECONDS, two at a time. Prints TAP.

    fuzz.py SOURCE BUILD OUT SECONDS [SEED]

The first inputs are those of test/fuzz/found and those that test/fuzz/seeds.py makes from the
captures. A log and the corpus of each target, and the inputs that failed, are written to OUT. The
command that runs a failed input again is printed. Runs with the same seed start alike; how many
inputs a run tries depends on the machine."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys

MAX_LEN = {"parse": 2048, "net": 2048, "qp": 4096}
MIN_RUNS = 100  # fewer inputs fail the case
FINDING = re.compile(r"not so: |runtime error: |ERROR: |: Assertion ")  # what a report begins with


class Target:
    def __init__(self, program, source, out, seconds, seed):
        self.name = os.path.basename(program)[:-len("_fuzz")]
        self.program = program
        self.log = os.path.join(out, self.name + ".log")
        self.corpus = os.path.join(out, self.name)
        self.artifacts = os.path.join(out, "failed-" + self.name + "-")
        shutil.rmtree(self.corpus, ignore_errors=True)
        os.makedirs(self.corpus)
        seeds = [os.path.join(out, "seeds", self.name),
                 os.path.join(source, "test", "fuzz", "found", self.name)]
        self.command = [
            program, "-seed=%u" % seed, "-max_total_time=%u" % seconds,
            "-max_len=%u" % MAX_LEN.get(self.name, 4096), "-timeout=20", "-rss_limit_mb=2048",
            # Collecting the statistics would take most of the time.
            "-entropic=0", "-reload=0", "-print_final_stats=1",
            "-artifact_prefix=" + self.artifacts, self.corpus]
        self.command += [folder for folder in seeds if os.path.isdir(folder)]
        self.process = None

    def start(self):
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def report(self, number):
        """Whether the target ended without a finding."""
        status = self.process.wait()
        with open(self.log, encoding="utf-8", errors="replace") as log:
            text = log.read()
        runs = re.search(r"number_of_executed_units: (\d+)", text)
        edges = re.findall(r"cov: (\d+)", text)
        runs = int(runs[1]) if runs else 0
        good = status == 0 and runs >= MIN_RUNS
        print("%s %u - %s: %u inputs, %s edges covered" % (
            "ok" if good else "not ok", number, self.name, runs, edges[-1] if edges else "no"),
            flush=True)
        if not good:
            self.complain(status, text)
        return good

    def complain(self, status, text):
        print("# exit status %d; %s" % (status, self.log), file=sys.stderr)
        lines = text.splitlines()
        found = next((i for i, line in enumerate(lines) if FINDING.search(line)), len(lines) - 20)
        for line in lines[max(found, 0):][:60]:
            print("# " + line[:200], file=sys.stderr)
        replay = self.program[:-len("fuzz")] + "replay"
        for path in glob.glob(self.artifacts + "*"):
            print("# replay: %s %s" % (replay, path), file=sys.stderr)


def main():
    if len(sys.argv) not in (5, 6):
        print(__doc__, file=sys.stderr)
        return 2
    source, build, out = sys.argv[1:4]
    seconds, seed = int(sys.argv[4]), int(sys.argv[5]) if len(sys.argv) == 6 else 1
    programs = sorted(glob.glob(os.path.join(build, "test/fuzz/*_fuzz")))
    if not programs:
        print("fuzz.py: no program %s/test/fuzz/*_fuzz: configure the build with -Dfuzz=true" % build,
              file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.makedirs(out, exist_ok=True)
    shutil.rmtree(os.path.join(out, "seeds"), ignore_errors=True)
    subprocess.run([os.path.join(source, "test/fuzz/seeds.py"),
                    os.path.join(source, "test/captures"), os.path.join(out, "seeds")],
                   check=True)
    targets = [Target(p, source, out, seconds, seed) for p in programs]
    print("# %u s each, -seed=%u" % (seconds, seed))
    print("1..%d" % len(targets), flush=True)
    failed = 0
    try:
        running = []
        for number, target in enumerate(targets, 1):
            target.start()
            running.append((number, target))
            if len(running) == 2 or number == len(targets):
                failed += sum(not t.report(n) for n, t in running)
                running = []
    finally:
        for target in targets:
            target.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
