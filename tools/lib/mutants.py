#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutation tests: each mutant of test/mutants/*.mutants is put into a copy of the tree and built,
and one of its killers must fail. Prints TAP.

    mutants.py [--most N] [--in FILE]... [--since REV] [--list] SOURCE WORK [PATTERN]

As many mutants are tried at a time as the machine has cores, each in a copy and a build of its own.
WORK gets these; the first is kept for the next run. With PATTERN only the mutants whose fault it
matches, with --in only those of these files, with --since of these only those whose function differs
from the commit REV. With --most N only N: first those of the files that changed in the last day before
the newest commit, at most two thirds of N, then others. The hash of the commit draws them, so that a
commit has the same mutants each time, and each commit has others. --list prints the mutants and
tries none. A mutant that does not apply or does not build is a failure too.

Exit status: 0 each mutant was found, 1 not, 2 a wrong option, or options that leave no mutant."""

import argparse
import concurrent.futures
import contextlib
import glob
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple

import commit
import hunks

KEYS = ("fault", "in", "line", "is", "killers")
SIM_SEEDS = 800       # per process, of two
# A killer that exceeds a limit fails: the mutant makes it wait or loop for ever.
WAIT_S = 20           # and as long as it takes without a mutant
LOOP_S = 4            # of CPU time, and 3 times that without a mutant
USUAL_S = 300         # without a mutant
STOP_S = 5            # that a killer has to end what it has started
SLOWEST = 20          # mutants whose time is printed
COPIED = ("app", "drivers", "include", "lib", "test", "meson.build", "meson_options.txt", "docs",
          "config", "tools")


def read_all(source):
    """The mutants of the tree: those of every file of test/mutants."""
    faults = []
    for path in sorted(glob.glob(os.path.join(source, "test/mutants/*.mutants"))):
        with open(path, encoding="utf-8") as file:
            faults += parse(file.read())
    return faults


def parse(text):
    """The mutants in order, a dict each. Raises ValueError with a reason."""
    faults = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        rows = [line.split(None, 1) for line in lines]
        if tuple(row[0] for row in rows) != KEYS:
            raise ValueError("the mutant \"%s\" has the keys %s, expected %s" % (
                lines[0], " ".join(row[0] for row in rows), " ".join(KEYS)))
        faults.append(dict(rows))
    return faults


class Place(namedtuple("Place", "path lines number")):
    """The line of a mutant: its file, the lines of that, and its number from 0 on."""

    def text(self, line=None):
        """The text of the file, with another line in this place."""
        lines = list(self.lines)
        if line is not None:
            lines[self.number] = line
        return "\n".join(lines)


def function_span(lines, name):
    """The lines of a function from its name on, which begins a line or stands behind its type."""
    begins = re.compile(r"(\S.*\b)?%s\(" % re.escape(name))
    return next((range(number, function.end) for function in hunks.functions(lines)
                 for number in range(function.start, function.body) if begins.match(lines[number])), range(0))


def find(path, text, function, line):
    """The Place, or None if the line does not occur exactly once."""
    if line.strip() not in text:
        return None
    lines = text.split("\n")
    span = function_span(lines, function) if function else range(len(lines))
    found = [n for n in span if lines[n].strip() == line.strip()]
    return Place(path, lines, found[0]) if len(found) == 1 else None


def locate(root, fault):
    """The Place, or None if the line does not occur in exactly one."""
    place, _, function = fault["in"].partition(" ")
    top = os.path.join(root, place)
    paths = [top] if os.path.isfile(top) else [
        os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names
        if name.endswith((".c", ".h"))]
    hits = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            hits.append(find(path, file.read(), function.strip(), fault["line"]))
    hits = [hit for hit in hits if hit]
    return hits[0] if len(hits) == 1 else None


def draw(faults, most, head, changed):
    """At most `most` of (fault, its file): see above."""
    rows = random.Random(head).sample(faults, len(faults))
    first = [fault for fault, path in rows if path in changed][:most * 2 // 3]
    others = [fault for fault, _ in rows if fault not in first]
    return first + others[:most - len(first)]


def with_files(source, faults):
    """Each mutant with its file, or an empty string if it does not apply."""
    places = [(fault, locate(source, fault)) for fault in faults]
    return [(fault, os.path.relpath(place.path, source) if place else "")
            for fault, place in places]


def in_files(source, faults, files):
    """The mutants of these files, and those that do not apply any more."""
    return [fault for fault, path in with_files(source, faults) if not path or path in files]


def in_changes(source, faults, rev):
    """The mutants of functions that differ from this commit, and those that do not apply any more."""
    changes, chosen = {}, []
    for fault in faults:
        place = locate(source, fault)
        if place and place.path not in changes:
            changes[place.path] = hunks.Change(source, rev, os.path.relpath(place.path, source), place.lines)
        if not place or changes[place.path].concerns(place.number):
            chosen.append(fault)
    return chosen


def drawn(source, faults, most):
    """At most `most` mutants. Prints which."""
    head, changed = commit.recent_change(source)
    chosen = draw(with_files(source, faults), most, head, changed)
    print("# %d of %d mutants, drawn by commit %s" % (len(chosen), len(faults), head or "unknown"))
    return chosen


def same(a, b):
    if not os.path.isfile(b) or os.path.getsize(a) != os.path.getsize(b):
        return False
    with open(a, "rb") as one, open(b, "rb") as other:
        return one.read() == other.read()


def copy_tree(source, to):
    """Copies changed files only: the others keep their time stamp and are not built again."""
    wanted = set()
    for name in COPIED:
        top = os.path.join(source, name)
        walk = os.walk(top) if os.path.isdir(top) else [(source, [], [name])]
        for folder, _, names in walk:
            for file in names:
                path = os.path.relpath(os.path.join(folder, file), source)
                if not os.path.isfile(os.path.join(source, path)):
                    continue
                wanted.add(path)
                target = os.path.join(to, path)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                if not same(os.path.join(source, path), target):
                    shutil.copy(os.path.join(source, path), target)
    for folder, _, names in os.walk(to):
        for file in names:
            if os.path.relpath(os.path.join(folder, file), to) not in wanted:
                os.remove(os.path.join(folder, file))


def cpu_s(pid):
    """The CPU time of a process and its threads. It may have ended: 0 when it has been waited for."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:  # its name may be any bytes
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Workspace:
    """A copy of the tree with its build. One thread at a time uses it. `usual`: the time and the
    CPU time of each killer without a mutant, which all workspaces share."""

    def __init__(self, top, usual=None):
        self.top = top
        self.usual = {} if usual is None else usual
        self.root, self.build = os.path.join(top, "tree"), os.path.join(top, "build")
        self.tests = {}
        self.running = []

    def introspect(self, what):
        path = os.path.join(self.build, "meson-info/intro-%s.json" % what)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def read_tests(self):
        outputs = {target["id"]: target["filename"] for target in self.introspect("targets")}
        for test in self.introspect("tests"):
            # The program itself, what a script runs, and what a program loads.
            test["programs"] = [f for d in test["depends"] for f in outputs[d]]
            self.tests.setdefault(test["name"], test)

    def prepare(self, source):
        """Copies the tree and configures its build, without a mutant."""
        copy_tree(source, self.root)
        if not os.path.isfile(os.path.join(self.build, "build.ninja")):
            shutil.rmtree(self.build, ignore_errors=True)
            subprocess.run(["meson", "setup", self.build, self.root, "-Dbuildtype=debugoptimized",
                            "-Ddebug=false", "-Doptimization=1", "-Dwerror=false",
                            "-Ddefault_library=static"], check=True, stdout=sys.stderr)
        subprocess.run(["ninja", "-C", self.build, "build.ninja"], check=True, stdout=sys.stderr)
        self.read_tests()

    def clone(self, top):
        """A further workspace, which has nothing to compile: the time stamps are the same."""
        shutil.rmtree(top, ignore_errors=True)
        subprocess.run(["cp", "-a", self.top, top], check=True)
        for name in ("build/build.ninja", "build/meson-info/intro-tests.json",
                     "build/meson-info/intro-targets.json"):
            path = os.path.join(top, name)
            stamp = os.stat(path)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(self.top + "/", top + "/"))
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        other = Workspace(top, self.usual)
        other.read_tests()
        return other

    def commands(self, name):
        test = self.tests[name]
        if name != "sim":
            return [test["cmd"]]
        return [[test["cmd"][0], "--first", str(1 + i * SIM_SEEDS), "--seeds", str(SIM_SEEDS)]
                for i in range(2)]

    def compile(self, names):
        programs = {os.path.relpath(p, self.build) for n in names
                    for p in self.tests[n]["programs"]}
        return subprocess.run(["ninja", "-C", self.build, *sorted(programs)],
                              capture_output=True, text=True, check=False)

    def limits(self, name):
        """The limits of a killer's time and CPU time."""
        if name not in self.usual:
            return USUAL_S, USUAL_S
        wait, cpu = self.usual[name]
        return WAIT_S + wait, LOOP_S + 3 * cpu

    def fails(self, name):
        """Whether a process of this test fails or exceeds a limit. The first run of a test is that
        without a mutant."""
        env = dict(os.environ, **self.tests[name].get("env", {}))
        limit, cpu_limit = self.limits(name)
        begin, took, cpu = time.monotonic(), 0.0, 0.0
        with open(os.path.join(self.build, "killer.log"), "w", encoding="utf-8") as log:
            self.running = [subprocess.Popen(c, stdout=log, stderr=log, env=env,
                                             cwd=self.build, start_new_session=True)
                            for c in self.commands(name)]
            try:
                while took < limit and cpu < cpu_limit:
                    cpu = max([cpu] + [cpu_s(p.pid) for p in self.running])
                    states = [p.poll() for p in self.running]
                    took = time.monotonic() - begin
                    if any(states):
                        return True
                    if None not in states:
                        self.usual.setdefault(name, (took, cpu))
                        return False
                    time.sleep(0.02)
                return True
            finally:
                self.stop()

    def stop(self, limit_s=STOP_S):
        """Ends what runs. What a killer has started is in other process groups: only the killer can end it."""
        running = [process for process in self.running if process.poll() is None]
        for process in running:
            os.killpg(process.pid, signal.SIGTERM)
        end = time.monotonic() + limit_s
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0, end - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):  # its children may ignore SIGTERM
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.running = []

    def try_fault(self, fault):
        """(killed, message, seconds)"""
        begin = time.monotonic()
        killed, said = self.try_in_place(fault)
        return killed, said, time.monotonic() - begin

    def try_in_place(self, fault):
        """(killed, message)"""
        place = locate(self.root, fault)
        if place is None:
            return False, "its line does not occur exactly once in %s" % fault["in"]
        try:
            with open(place.path, "w", encoding="utf-8") as file:
                file.write(place.text(fault["is"]))
            for name in fault["killers"].split():
                built = self.compile([name])
                if built.returncode != 0:
                    return False, "does not build:\n" + built.stdout[-2000:]
                if self.fails(name):
                    return True, name
        finally:
            self.stop()
            with open(place.path, "w", encoding="utf-8") as file:
                file.write(place.text())
        return False, "survives: " + fault["killers"]


class Pool:
    """The workspaces, and a thread for each."""

    def __init__(self, first, count):
        self.all = [first] + [first.clone("%s-%d" % (first.top, n)) for n in range(2, count + 1)]
        self.free = queue.SimpleQueue()
        for workspace in self.all:
            self.free.put(workspace)
        self.threads = concurrent.futures.ThreadPoolExecutor(count)

    def each(self, method, items):
        """Yields (item, method(workspace, item)) in the order in which they end."""
        def one(item):
            workspace = self.free.get()
            try:
                return item, method(workspace, item)
            finally:
                self.free.put(workspace)

        tasks = [self.threads.submit(one, item) for item in items]
        for task in concurrent.futures.as_completed(tasks):
            yield task.result()

    def end(self):
        self.threads.shutdown(wait=False, cancel_futures=True)
        for workspace in self.all:
            workspace.stop()
        self.threads.shutdown()
        for workspace in self.all[1:]:
            shutil.rmtree(workspace.top)


def killers(faults):
    return sorted({n for f in faults for n in f["killers"].split()})


def build_killers(workspace, faults):
    """What is wrong, or an empty string."""
    unknown = [n for n in killers(faults) if n not in workspace.tests]
    if unknown:
        return "no such test: " + " ".join(unknown)
    built = workspace.compile(killers(faults))
    return "does not build:\n" + built.stdout[-2000:] + built.stderr if built.returncode != 0 else ""


def failing_killers(pool, faults):
    """What is wrong, or an empty string."""
    failing = [name for name, failed in pool.each(Workspace.fails, killers(faults)) if failed]
    return "fails without a mutant: " + " ".join(failing) if failing else ""


def report(number, name, good, wrong):
    print("%s %d - %s" % ("ok" if good else "not ok", number, name), flush=True)
    if not good:
        print("# %s: %s" % (name, wrong.replace("\n", "\n# ")), file=sys.stderr, flush=True)


def try_all(pool, faults):
    """How many survive."""
    failed, times = 0, []
    tried = pool.each(Workspace.try_fault, faults)
    for number, (fault, (killed, said, seconds)) in enumerate(tried, 2):
        failed += not killed
        times.append((seconds, fault["fault"]))
        report(number, fault["fault"] + (" (%s)" % said if killed else ""), killed, said)
    print("# a mutant takes %.1f s, and the slowest:" % (sum(t for t, _ in times) / len(times)))
    for seconds, name in sorted(times, reverse=True)[:SLOWEST]:
        print("# %.1f s: %s" % (seconds, name))
    return failed


def refuse(why):
    print("mutants.py: %s" % why, file=sys.stderr)
    return 2


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--in", dest="files", action="append", default=[])
    parser.add_argument("--since", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("source", type=os.path.abspath)
    parser.add_argument("work", type=os.path.abspath)
    parser.add_argument("pattern", nargs="?", default="")
    options = parser.parse_args()
    source, work = options.source, options.work
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        faults = [f for f in read_all(source) if re.search(options.pattern, f["fault"])]
    except (re.error, ValueError) as error:
        return refuse(error)
    if options.files:
        faults = in_files(source, faults, options.files)
    if options.since and not commit.git(source, "rev-parse", "--verify", options.since + "^{commit}"):
        return refuse("invalid value '%s' for --since: expected a commit" % options.since)
    if options.since:
        faults = in_changes(source, faults, options.since)
    if 0 < options.most < len(faults):
        faults = drawn(source, faults, options.most)
    if options.list:
        print("".join(fault["fault"] + "\n" for fault in faults), end="")
        return 0
    if not faults:
        return refuse("no mutant of %s/test/mutants%s%s" % (
            source, " is in " + " or ".join(options.files) if options.files else "",
            " matches '%s'" % options.pattern if options.pattern else ""))
    first = Workspace(os.path.join(work, "first"))
    os.makedirs(first.top, exist_ok=True)
    first.prepare(source)
    print("1..%d" % (len(faults) + 1))
    wrong = build_killers(first, faults)
    if wrong:
        report(1, "the killers build", False, wrong)
        return 1
    pool = Pool(first, len(os.sched_getaffinity(0)))
    try:
        wrong = failing_killers(pool, faults)
        report(1, "the killers pass without a mutant", not wrong, wrong)
        return 1 if wrong or try_all(pool, faults) else 0
    finally:
        pool.end()


if __name__ == "__main__":
    sys.exit(main())
