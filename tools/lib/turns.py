#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a default run of tools/test.sh leaves to other commits, so that it takes about twenty
minutes.

    turns.py SOURCE stages       prints the stages of TURNS that other commits have
    turns.py SOURCE e2e          prints the programs of test/e2e that this commit has
    turns.py SOURCE sanitize     prints the options of `meson test` for the tests that this commit has in
                                 stage sanitize

The hash of the newest commit decides: a commit has the same turn on each machine, and its children
have others. A program that the newest commit changed always runs. Others that changed in the day before
it run, too, or if these are more than E2E_MOST programs, some that the hash draws. A tree that is no clone has
the first turn."""

import os
import random
import sys

import commit

# Each takes about as long as the others.
TURNS = (("sanitize",), ("tsan",), ("coverage",), ("arm64",), ("interop",), ("clang", "fuzz"))
E2E_TURNS = 4
E2E_MOST = 24  # programs, if the newest commit did not change more
# The options for all tests of compiled code, and for each half of them.
SANITIZED = ("--no-suite=tidy", "--no-suite=scripts")
SANITIZE_TURNS = (("--suite=unit",), SANITIZED + ("--no-suite=unit",))


def turn(head, count, salt=0):
    """Which of `count` turns a commit has. Different salts are independent of each other."""
    return (int(head[salt * 8:salt * 8 + 8], 16) if head else 0) % count


def left_stages(head):
    mine = turn(head, len(TURNS))
    return [stage for number, row in enumerate(TURNS) if number != mine for stage in row]


def e2e_programs(names, head, changed, newest=()):
    """Those of these sorted names that run. changed: files of the day; newest: of the newest commit."""
    mine = turn(head, E2E_TURNS, 1)
    chosen = {name for number, name in enumerate(names)
              if number % E2E_TURNS == mine or "test/e2e/" + name in newest}
    others = [name for name in names if "test/e2e/" + name in changed and name not in chosen]
    drawn = random.Random(head).sample(others, min(len(others), max(0, E2E_MOST - len(chosen))))
    return [name for name in names if name in chosen or name in drawn]


def is_program(path):
    """One that is not executable is a program, too, and fails."""
    return os.path.isfile(path) and path.endswith((".py", ".sh"))


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("stages", "e2e", "sanitize"):
        sys.exit(__doc__)
    head, changed = commit.recent_change(sys.argv[1])
    if sys.argv[2] == "stages":
        print("\n".join(left_stages(head)))
        return
    if sys.argv[2] == "sanitize":
        print("\n".join(SANITIZE_TURNS[turn(head, len(SANITIZE_TURNS), 2)]))
        return
    folder = os.path.join(sys.argv[1], "test/e2e")
    names = [name for name in sorted(os.listdir(folder)) if is_program(os.path.join(folder, name))]
    print("\n".join(e2e_programs(names, head, changed, commit.newest_change(sys.argv[1]))))


if __name__ == "__main__":
    main()
