#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the targets of ninja that these tests of meson need, a line each.

    test_targets.py BUILD NAME...

NAME is a test, or a suite with "--suite=" before it. A name of neither is an error."""

import json
import os
import sys


def read(build, what):
    with open(os.path.join(build, "meson-info/intro-%s.json" % what), encoding="utf-8") as file:
        return json.load(file)


def chosen(tests, names):
    """The tests of these names and suites. Raises ValueError for a name without a test."""
    rows = []
    for name in names:
        suite = name[len("--suite="):] if name.startswith("--suite=") else None
        found = [test for test in tests if (test["name"] == name if suite is None else
                 suite in [s.rpartition(":")[2] for s in test["suite"]])]
        if not found:
            raise ValueError("no test or suite of meson is named %s" % name)
        rows += found
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
