#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a change may break, for tools/test.sh --change.

    change.py SOURCE BUILD REV

Prints a line for each: "test NAME", a test of meson that depends on a file which differs from the
commit REV; "alone NAME", one that has no other beside it; "sim" or "fabric", if the simulation of
hosts or that of a network does, of which --change runs other numbers of seeds than meson; "file NAME",
each of these files. The graph of the build directory, which is built, says what depends on what. A change of a meson.build concerns
all tests. Scripts are in no graph: a test that is started by a changed script is concerned, and by a
change in tools/ or of a module of tests all tests that are scripts."""

import os
import re
import subprocess
import sys

import commit
import test_targets

OWN_SEEDS = ("sim", "fabric")
EDGE = re.compile(r"^build (.*?)(?<!\$): (\S+) ?(.*)$")


def words(text):
    """The paths of a line of build.ninja, without the separators of implicit and later ones."""
    return [re.sub(r"\$(.)", r"\1", word) for word in re.split(r"(?<!\$) +", text.strip())
            if word not in ("", "|", "||")]


def link_edges(build):
    """Yields (output, its inputs). What is only built before it ("||") is no input."""
    with open(os.path.join(build, "build.ninja"), encoding="utf-8") as file:
        for line in file:
            edge = EDGE.match(line)
            if edge and edge[2] != "phony":
                inputs = words(edge[3].split("||")[0])
                for output in words(edge[1]):
                    yield output, inputs


def header_edges(build):
    """Yields (object, the files that its compiler has read)."""
    done = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True,
                          check=True)
    for block in done.stdout.split("\n\n"):
        lines = block.splitlines()
        if lines and ": #deps" in lines[0]:
            yield lines[0].split(": #deps")[0], [line.strip() for line in lines[1:]]


def users(build):
    """For each file, absolute, the files of the build directory that are made from it."""
    made = {}
    for edges in (link_edges(build), header_edges(build)):
        for output, inputs in edges:
            for name in inputs:
                path = os.path.normpath(os.path.join(build, name))
                made.setdefault(path, set()).add(os.path.normpath(os.path.join(build, output)))
    return made


def reached(made, files):
    """What is made from these files, and they themselves."""
    seen, left = set(), list(files)
    while left:
        path = left.pop()
        if path not in seen:
            seen.add(path)
            left += made.get(path, ())
    return seen


def programs(test, outputs, build):
    """The files that this test runs: its own, its arguments, and those of its targets."""
    named = [os.path.normpath(os.path.join(build, word)) for word in test["cmd"]]
    return named + [path for target in test["depends"] for path in outputs.get(target, ())]


def suites(test):
    """Without the name of the project before each."""
    return [name.rpartition(":")[2] for name in test["suite"]]


def is_script(test):
    return any(word.endswith(".py") for word in test["cmd"])


def of_scripts(names):
    """Whether a change of these files may concern every test that is a script."""
    return any(name.startswith("tools/") or (name.startswith("test/") and name.endswith(".py"))
               for name in names)


class Graph:
    """The tests of a build directory, and what depends on what there."""

    def __init__(self, source, build):
        self.source, self.build = source, build
        self.outputs = {target["id"]: target["filename"] for target in test_targets.read(build, "targets")}
        self.tests = [test for test in test_targets.read(build, "tests") if "tidy" not in suites(test)]
        self.made = users(build)

    def concerned(self, names):
        """The tests that a change of these files concerns."""
        if any(os.path.basename(name) in ("meson.build", "meson_options.txt") for name in names):
            return self.tests
        seen = reached(self.made, {os.path.join(self.source, name) for name in names})
        scripts = of_scripts(names)
        return [test for test in self.tests if (scripts and is_script(test)) or
                any(path in seen for path in programs(test, self.outputs, self.build))]


def line_of(test):
    name = test["name"]
    return name if name in OWN_SEEDS else "%s %s" % ("test" if test["is_parallel"] else "alone", name)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    names = sorted(commit.changed_since(source, sys.argv[3]))
    try:
        tests = Graph(source, build).concerned(names)
    except OSError as error:
        sys.exit("change.py: %s" % error)
    for line in sorted({line_of(test) for test in tests}):
        print(line)
    for name in names:
        print("file " + name)


if __name__ == "__main__":
    main()
