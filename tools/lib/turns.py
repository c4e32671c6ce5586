#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a default run of tools/test.sh leaves to other commits, so that it takes half an hour at most.

    turns.py SOURCE stages       prints the stages of TURNS that other commits have
    turns.py SOURCE e2e          prints the programs of test/e2e that this commit has

The hash of the newest commit decides: a commit has the same turn on each machine, and its children
have others. A quarter of the programs run, those that the newest commit has changed, and, up to E2E_MOST
in all, some of those that have changed in the day before it: the hash selects these. A tree that is no
clone has the first turn."""

import os
import random
import sys

import commit

# Each takes about as long as the others.
TURNS = (("sanitize",), ("tsan",), ("coverage",), ("arm64",), ("interop",), ("clang", "fuzz"))
E2E_TURNS = 4
E2E_MOST = 24  # take 8 minutes on two cores


def turn(head, count, salt=0):
    """Which of `count` turns a commit has. Different salts are independent of each other."""
    return (int(head[salt * 8:salt * 8 + 8], 16) if head else 0) % count


def left_stages(head):
    mine = turn(head, len(TURNS))
    return [stage for number, row in enumerate(TURNS) if number != mine for stage in row]


def e2e_programs(names, head, changed, newest):
    """Those of these sorted names that run. changed: files that have changed in a day. newest: in the newest commit."""
    mine = turn(head, E2E_TURNS, 1)
    runs = {name for number, name in enumerate(names)
            if number % E2E_TURNS == mine or "test/e2e/" + name in newest}
    others = [name for name in names if name not in runs and "test/e2e/" + name in changed]
    random.Random(head).shuffle(others)
    runs.update(others[:max(0, E2E_MOST - len(runs))])
    return [name for name in names if name in runs]


def is_program(path):
    """One that is not executable is a program, too, and fails."""
    return os.path.isfile(path) and path.endswith((".py", ".sh"))


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("stages", "e2e"):
        sys.exit(__doc__)
    head, changed = commit.recent_change(sys.argv[1])
    if sys.argv[2] == "stages":
        print("\n".join(left_stages(head)))
        return
    folder = os.path.join(sys.argv[1], "test/e2e")
    names = [name for name in sorted(os.listdir(folder)) if is_program(os.path.join(folder, name))]
    print("\n".join(e2e_programs(names, head, changed, commit.newest_change(sys.argv[1]))))


if __name__ == "__main__":
    main()
