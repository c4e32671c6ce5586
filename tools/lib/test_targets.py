#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the targets of ninja that these tests of meson need, a line each.

    test_targets.py BUILD NAME...

NAME is a test, or a suite with "--suite=" before it. A name of neither is an error. With "--no-suite=" before
suites: the tests of no such suite."""

import json
import os
import sys


def read(build, what):
    with open(os.path.join(build, "meson-info/intro-%s.json" % what), encoding="utf-8") as file:
        return json.load(file)


def suites(test):
    return {suite.rpartition(":")[2] for suite in test["suite"]}


def chosen(tests, names):
    """The tests of these names and suites. Raises ValueError for a name without a test."""
    left_out = {name[len("--no-suite="):] for name in names if name.startswith("--no-suite=")}
    rows = [test for test in tests if left_out and not left_out & suites(test)]
    for name in names:
        kind, _, suite = name.rpartition("=")
        found = [test for test in tests if (suite in suites(test) if kind else test["name"] == name)]
        if not found:
            raise ValueError("no test or suite of meson is named %s" % name)
        rows += found if kind != "--no-suite" else []
    return rows


def targets_of(tests, outputs, build):
    """The files that these tests need, relative to the build directory. meson's `depends` has every
    target of the command line too."""
    wanted = {path for test in tests for target in test["depends"]
              for path in outputs.get(target, ())}
    return sorted({os.path.relpath(path, build) for path in wanted})


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    try:
        outputs = {target["id"]: target["filename"] for target in read(build, "targets")}
        tests = chosen(read(build, "tests"), sys.argv[2:])
    except (OSError, ValueError) as error:
        sys.exit("test_targets.py: %s" % error)
    print("\n".join(targets_of(tests, outputs, build)))


if __name__ == "__main__":
    main()
