#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/test.sh --change finds each mutant of test/mutants: of a tree in which only the mutant's file differs it runs
each killer of the mutant. Usage: selected_test.py SOURCE BUILD

BUILD knows which headers a program includes only when it has been compiled, so this needs the killers. The case is
skipped while one is not built, which tools/test.sh does not allow."""

import os
import sys

sys.dont_write_bytecode = True
SOURCE, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tools/lib"))
sys.path.insert(0, os.path.join(SOURCE, "test/e2e/lib"))
import change  # noqa: E402
import mutants  # noqa: E402
from tap import case, run, skip  # noqa: E402


def not_built(graph, names):
    """The first program of these tests that does not exist."""
    return next((path for test in graph.tests if test["name"] in names
                 for target in test["depends"] for path in graph.outputs.get(target, ())
                 if not os.path.exists(path)), None)


def missed(graph, faults):
    """Returns a line for each killer that is not run."""
    selected, lines = {}, []
    for fault, path in faults:
        if path not in selected:
            selected[path] = {test["name"] for test in graph.concerned([path])}
        lines += ["%s: a change of %s does not run %s" % (fault["fault"], path, name)
                  for name in fault["killers"].split() if name not in selected[path]]
    return lines


def selected():
    faults = mutants.with_files(SOURCE, mutants.read_all(SOURCE))
    graph = change.Graph(SOURCE, BUILD)
    killers = mutants.killers(fault for fault, _ in faults)
    absent = not_built(graph, killers)
    if absent:
        skip("--change runs the killers", "build everything before: %s does not exist" % absent)
    else:
        wrong = missed(graph, faults)
        case("--change runs the killers of %d mutants" % len(faults), not wrong, "\n".join(wrong))
    # A page has no killers, and a file of a layer not those of all others.
    case("and not all killers for each file", all(
        len({test["name"] for test in graph.concerned([path])} & set(killers)) < len(killers) / 2
        for path in ("docs/testing.md", "app/testpmd/testpmd_rx.c")))


if __name__ == "__main__":
    sys.exit(run(selected))
