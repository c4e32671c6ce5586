#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutation tests: each mutant of test/mutants/*.mutants is put into a copy of the tree and built,
and one of its killers must fail. Prints TAP.

    mutants.py SOURCE WORK [PATTERN]

WORK gets the copy and its build, which are kept for the next run. With PATTERN only the mutants
whose fault it matches. A mutant that does not apply or does not build is a failure too."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

KEYS = ("fault", "in", "line", "is", "killers")
SIM_SEEDS = 800       # per process, of two
LIMIT_S = 60          # for a killer, which a mutant may hang
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
        fault = dict(line.split(None, 1) for line in lines)
        if tuple(fault) != KEYS:
            raise ValueError("a mutant has the keys %s, expected %s" % (
                " ".join(fault), " ".join(KEYS)))
        faults.append(fault)
    return faults


def function_span(lines, name):
    """The lines of a function: from its name at the start of a line to a '}' in the first column."""
    for start, line in enumerate(lines):
        if re.match(r"(\S.*\b)?%s\(" % re.escape(name), line) and not line.rstrip().endswith(";"):
            for end in range(start, len(lines)):
                if lines[end].startswith("}"):
                    return range(start, end)
                if lines[end].rstrip().endswith(";") and not lines[end].startswith("\t"):
                    break
    return range(0)


def mutate(text, function, line, becomes):
    """The mutated text, or None if the line does not occur exactly once."""
    lines = text.split("\n")
    span = function_span(lines, function) if function else range(len(lines))
    found = [n for n in span if lines[n].strip() == line.strip()]
    if len(found) != 1:
        return None
    lines[found[0]] = becomes
    return "\n".join(lines)


def locate(root, fault):
    """(path, mutated text), or None if the line does not occur in exactly one place."""
    place, _, function = fault["in"].partition(" ")
    top = os.path.join(root, place)
    paths = [top] if os.path.isfile(top) else [
        os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names
        if name.endswith((".c", ".h"))]
    hits = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = mutate(file.read(), function.strip(), fault["line"], fault["is"])
        if text is not None:
            hits.append((path, text))
    return hits[0] if len(hits) == 1 else None


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


class Tests:
    """The tests of a build, by name."""

    def __init__(self, build):
        self.build = build
        with open(os.path.join(build, "meson-info/intro-tests.json"), encoding="utf-8") as file:
            self.tests = {}
            for test in json.load(file):
                self.tests.setdefault(test["name"], test)
        self.running = []

    def commands(self, name):
        test = self.tests[name]
        if name != "sim":
            return [test["cmd"]]
        return [[test["cmd"][0], "--first", str(1 + i * SIM_SEEDS), "--seeds", str(SIM_SEEDS)]
                for i in range(2)]

    def programs(self, names):
        return sorted({os.path.relpath(self.tests[n]["cmd"][0], self.build) for n in names})

    def compile(self, names):
        return subprocess.run(["ninja", "-C", self.build, *self.programs(names)],
                              capture_output=True, text=True, check=False)

    def fails(self, name):
        """Whether a process of this test fails or exceeds the time limit."""
        env = dict(os.environ, **self.tests[name].get("env", {}))
        with open(os.path.join(self.build, "killer.log"), "w", encoding="utf-8") as log:
            self.running = [subprocess.Popen(c, stdout=log, stderr=log, env=env,
                                             start_new_session=True)
                            for c in self.commands(name)]
            end = time.monotonic() + LIMIT_S
            try:
                while time.monotonic() < end:
                    states = [p.poll() for p in self.running]
                    if any(states):
                        return True
                    if None not in states:
                        return False
                    time.sleep(0.02)
                return True
            finally:
                self.stop()

    def stop(self):
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.running = []


def try_fault(root, tests, fault):
    """(killed, message)"""
    place = locate(root, fault)
    if place is None:
        return False, "its line does not occur exactly once in %s" % fault["in"]
    path, text = place
    with open(path, encoding="utf-8") as file:
        original = file.read()
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        for name in fault["killers"].split():
            built = tests.compile([name])
            if built.returncode != 0:
                return False, "does not build:\n" + built.stdout[-2000:]
            if tests.fails(name):
                return True, name
    finally:
        tests.stop()
        with open(path, "w", encoding="utf-8") as file:
            file.write(original)
    return False, "survives: " + fault["killers"]


def prepare(source, work):
    """Makes the copy and configures its build, without a mutant."""
    root, build = os.path.join(work, "tree"), os.path.join(work, "build")
    copy_tree(source, root)
    if not os.path.isfile(os.path.join(build, "build.ninja")):
        shutil.rmtree(build, ignore_errors=True)
        subprocess.run(["meson", "setup", build, root, "-Dbuildtype=debugoptimized", "-Ddebug=false",
                        "-Doptimization=1", "-Dwerror=false", "-Ddefault_library=static"],
                       check=True, stdout=sys.stderr)
    subprocess.run(["ninja", "-C", build, "build.ninja"], check=True, stdout=sys.stderr)
    return root, Tests(build)


def baseline(tests, faults):
    names = sorted({n for f in faults for n in f["killers"].split()})
    unknown = [n for n in names if n not in tests.tests]
    if unknown:
        return "no such test: " + " ".join(unknown)
    built = tests.compile(names)
    if built.returncode != 0:
        return "does not build:\n" + built.stdout[-2000:]
    failing = [n for n in names if tests.fails(n)]
    return "fails without a mutant: " + " ".join(failing) if failing else ""


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    source, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    faults = [f for f in read_all(source)
              if len(sys.argv) == 3 or re.search(sys.argv[3], f["fault"])]
    os.makedirs(work, exist_ok=True)
    root, tests = prepare(source, work)
    print("1..%d" % (len(faults) + 1))
    wrong = baseline(tests, faults)
    print("%s 1 - the killers pass without a mutant" % ("not ok" if wrong else "ok"), flush=True)
    if wrong:
        print("# " + wrong.replace("\n", "\n# "), file=sys.stderr)
        return 1
    failed = 0
    for number, fault in enumerate(faults, 2):
        killed, said = try_fault(root, tests, fault)
        failed += not killed
        print("%s %d - %s%s" % ("ok" if killed else "not ok", number, fault["fault"],
                                " (%s)" % said if killed else ""), flush=True)
        if not killed:
            print("# %s: %s" % (fault["fault"], said.replace("\n", "\n# ")), file=sys.stderr,
                  flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
