#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests tools/lib/mutants.py: it reads, locates and applies mutants, and each one of
test/mutants/*.mutants applies to the tree. Usage: mutants_test.py SOURCE"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/lib"))
import cases  # noqa: E402
import mutants  # noqa: E402

TEXT = """static int
one(int a,
	int b);

static int
one(int a,
	int b)
{
	return a + b;
}

int
two(void)
{
	return a + b;
}
"""
TABLE = """# comment
fault  x y
in     lib/a.c
line   a
is     b
killers sim

fault  z
in     lib/a.c f
line   a
is     b
killers key
"""


def refuses(text):
    try:
        mutants.parse(text)
    except ValueError:
        return True
    return False


def put(function, line="return a + b;"):
    place = mutants.find("", TEXT, function, line)
    return None if place is None else place.text("\treturn a - b;").split("\n").index("\treturn a - b;")


def stopped(script, limit_s):
    """Starts a shell script, which prints a line and waits, stops it, and returns its status and what else it printed."""
    workspace = mutants.Workspace(tempfile.gettempdir())
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        process.stdout.readline()
        workspace.running = [process]
        workspace.stop(limit_s)
        return process.returncode, process.stdout.read()


def main():
    source = sys.argv[1]
    faults = mutants.read_all(source)
    rows = [
        ("a table is read", [f["fault"] for f in mutants.parse(TABLE)] == ["x y", "z"]),
        ("refuses a mutant without killers", refuses("fault a\nin b\nline c\nis d\n")),
        ("refuses mutants without an empty line between them",
         refuses(TABLE.replace("\n\n", "\n"))),
        ("a line in a function", put("one") == 8),
        ("the same line in another function", put("two") == 14),
        ("a line that is not unique is refused", put("") is None),
        ("a missing line is refused", put("two", "return a * b;") is None),
        ("a missing function is refused", put("three") is None),
        ("at least twenty mutants, with distinct names", len(faults) >= 20 and len({f["fault"] for f in faults}) == len(faults)),
    ]
    drawable = [({"fault": str(n)}, "changed" if n < 30 else "same") for n in range(90)]
    drawn = [int(f["fault"]) for f in mutants.draw(drawable, 30, "hash", {"changed"})]
    few = [int(f["fault"]) for f in mutants.draw(drawable, 60, "hash", {"changed"})]
    rows += [
        ("a draw has as many as asked, each once", len(drawn) == 30 == len(set(drawn))),
        ("two thirds of a draw are of changed files", sum(n < 30 for n in drawn) == 20),
        ("a draw has all of the changed files if they are few", set(range(30)) <= set(few)),
        ("the same commit draws the same",
         mutants.draw(drawable, 30, "hash", {"changed"}) == [{"fault": str(n)} for n in drawn]),
        ("another commit draws others",
         mutants.draw(drawable, 30, "other", {"changed"}) != [{"fault": str(n)} for n in drawn]),
    ]
    rows += [
        ("a killer that is stopped ends what it has started",
         stopped("trap 'echo ended; exit 3' TERM; echo begins; while :; do sleep 0.01; done", 60) == (3, "ended\n")),
        ("a killer that does not end is killed",
         stopped("trap '' TERM; echo begins; while :; do sleep 0.01; done", 0.1) == (-9, "")),
        ("what is left of a killer's group is killed",
         stopped("(trap '' TERM; echo begins; sleep 30; echo goes on) & wait", 60) == (-15, "")),
    ]
    rows += [("applies: " + f["fault"], mutants.locate(source, f) is not None) for f in faults]
    return cases.run([(name, bool(good), True) for name, good in rows])


if __name__ == "__main__":
    sys.exit(main())
