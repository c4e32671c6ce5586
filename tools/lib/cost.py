#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The cost gate: instructions of a message must not grow. Prints TAP.

    cost.py [--update] BUILD

callgrind counts the instructions of each workload of BUILD/test/cost/cost, and of ring_cost and hosts_cost
there (a release build): all of them, and those in Rocade's code, that is without the CRC and copies of system libraries. A
count more than 1 % above the number that test/cost/numbers.tsv has for this compiler and CPU (as
valgrind shows it) fails. Without such a number, the nearest one of the same major version of the
compiler and the same architecture is compared with, and 10 % above it fails. Without that, too,
the counts are only printed. --update stores the counts.

To see which functions a message costs, run valgrind as docs/testing.md shows, before and after the
change, and compare the lists of callgrind_annotate."""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

NUMBERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../test/cost/numbers.tsv")
LIMIT, LIMIT_NEAR = 1, 10   # percent
HEAD = """# Instructions of a message, both ends together: all, and those in Rocade's code.
# tools/lib/cost.py --update BUILD writes this file; docs/testing.md says when.
# compiler\tCPU\tworkload\tall\town
"""
PROGRAMS = ("cost", "ring_cost", "hosts_cost")
# Between clients of two daemons: the same work in a process, and how many times its instructions are meant
# to be enough.
HOSTS = {"hosts-send-64": ("send-64", " (gate 2.2, reach 1.6)"),
         "hosts-write-4096": ("write-4096", ""), "hosts-read-4096": ("read-4096", ""),
         "hosts-pingpong-64": ("pingpong-64", "")}
KINDS = ("instructions", "instructions in Rocade's code")
# The counts must not depend on the caller's environment.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


def run(*command):
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)


def tally(lines, program):
    """(all, own) of a callgrind file with --compress-strings=no. Counts each function exclusively."""
    counts = {True: 0, False: 0}
    own = called = False
    for line in lines:
        if line.startswith("ob="):
            own = os.path.basename(line[3:].strip()) == program
        elif line.startswith("calls="):
            called = True       # the next line has the callee's inclusive count
        elif re.match(r"[+\-*\d]", line):
            if not called and len(line.split()) > 1:
                counts[own] += int(line.split()[1])
            called = False
    return counts[True] + counts[False], counts[True]


def measure(program, workload):
    """(all, own) for each message."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        done = run("valgrind", "--tool=callgrind", "--callgrind-out-file=" + out,
                   "--compress-strings=no", "--compress-pos=no", "--toggle-collect=measured",
                   program, workload)
        with open(out, encoding="utf-8", errors="replace") as file:
            counts = tally(file, os.path.basename(program))
    messages = int(done.stdout)
    if not 0 < counts[1] <= counts[0] or messages <= 0:
        raise ValueError("%s: callgrind counted %d and %d in %d messages" % (
            workload, *counts, messages))
    return tuple(round(count / messages, 1) for count in counts)


def read(text):
    """{(compiler, CPU): {workload: (all, own)}}"""
    stored = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            compiler, cpu, workload, *counts = line.split("\t")
            stored.setdefault((compiler, cpu), {})[workload] = tuple(map(float, counts))
    return stored


def write(stored):
    return HEAD + "".join("%s\t%s\t%s\t%.1f\t%.1f\n" % (*key, workload, *counts)
                          for key in sorted(stored) for workload, counts in stored[key].items())


def kin(key):
    """Compiler and its major version, architecture."""
    return key[0].split(".")[0], key[1].split("+")[0]


def choose(stored, key):
    """(key, percent): the numbers to compare with, and the limit above them. (None, None): there
    are none."""
    if key in stored:
        return key, LIMIT
    near = [k for k in stored if kin(k) == kin(key)]
    # The CPU with the most features in common; of several the newest compiler.
    near.sort(key=lambda k: (-len(set(k[1].split("+")) ^ set(key[1].split("+"))), k[0]))
    return (near[-1], LIMIT_NEAR) if near else (None, None)


def judge(workload, counts, before, limit, update):
    """(good, text, a note or None). A workload without a number fails if its key has numbers."""
    text = "%s: %.1f instructions, %.1f of them in Rocade's code" % (workload, *counts)
    if before is None:
        return limit != LIMIT, text, "%s has nothing to be compared with; to store this: %s" % (
            workload, update)
    for now, then, kind in zip(counts, before, KINDS):
        if now > then * (1 + limit / 100):
            return False, "%s takes %.1f %s a message, %+.1f %% over %.1f (limit +%d %%); if it " \
                "has to: %s" % (workload, now, kind, 100 * (now / then - 1), then, limit,
                                update), None
    if counts[0] < before[0] * (1 - LIMIT / 100) or counts[1] < before[1] * (1 - LIMIT / 100):
        return True, text, "%s took %.1f and %.1f before: keep that with %s" % (
            workload, *before, update)
    return True, text, None


def ratios(results):
    return ["# %s: %.2f times the instructions of %s%s" % (
        workload, results[workload][0] / results[inside][0], inside, meant)
            for workload, (inside, meant) in HOSTS.items()
            if workload in results and inside in results]


def report(results, key, stored, update):
    """(the lines to print, whether every workload is within its limit)"""
    base, limit = choose(stored, key)
    lines = ["1..%d" % len(results), "# %s, %s" % key]
    if base is None:
        lines.append("# test/cost/numbers.tsv has nothing of this compiler and CPU, nor of any "
                     "near: nothing is compared")
    elif base != key:
        lines.append("# test/cost/numbers.tsv has nothing of this compiler and CPU: compared with "
                     "%s, %s; to store numbers of its own: %s" % (*base, update))
    failed = False
    for number, (workload, counts) in enumerate(results.items(), 1):
        before = stored[base].get(workload) if base else None
        good, text, note = judge(workload, counts, before, limit, update)
        failed |= not good
        lines.append("%s %d - %s" % ("ok" if good else "not ok", number, text))
        if note:
            lines.append("# " + note)
    return lines + ratios(results), not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog="Exit status: 0 good, 1 not, 2 wrong option.")
    parser.add_argument("--update", action="store_true", help="store what was counted")
    parser.add_argument("build", metavar="BUILD", help="build directory, -Dbuildtype=release")
    args = parser.parse_args()

    results = {}
    try:
        for name in PROGRAMS:
            program = os.path.join(os.path.realpath(args.build), "test/cost", name)
            workloads = run(program, "--list").stdout.split()
            if not workloads:
                raise ValueError("%s lists no workload" % program)
            key = tuple(run("valgrind", "--tool=none", program, "--key").stdout.strip().split("\t"))
            with concurrent.futures.ThreadPoolExecutor(min(4, len(os.sched_getaffinity(0)))) as pool:
                counts = pool.map(measure, [program] * len(workloads), workloads)
                results.update(zip(workloads, counts))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print("1..1\nnot ok 1 - counted\n# %s %s" % (error, getattr(error, "stderr", "")))
        return 1
    with open(NUMBERS, encoding="utf-8") as file:
        stored = read(file.read())
    if args.update:
        stored[key] = results
        with open(NUMBERS, "w", encoding="utf-8") as file:
            file.write(write(stored))
    lines, good = report(results, key, stored,
                         "tools/lib/cost.py --update " + os.path.relpath(args.build))
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
