#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/lib/mutants.py: faults are read, found and put in; and each of test/mutants applies to
the tree as it is. Usage: mutants_test.py SOURCE"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/lib"))
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
judges sim

fault  z
in     lib/a.c f
line   a
is     b
judges key
"""


def refuses(text):
    try:
        mutants.parse(text)
    except ValueError:
        return True
    return False


def put(function, line="return a + b;"):
    text = mutants.mutate(TEXT, function, line, "\treturn a - b;")
    return None if text is None else text.split("\n").index("\treturn a - b;")


def main():
    source = sys.argv[1]
    with open(os.path.join(source, "test/mutants/mutants"), encoding="utf-8") as file:
        faults = mutants.parse(file.read())
    cases = [
        ("reads a table", [f["fault"] for f in mutants.parse(TABLE)] == ["x y", "z"]),
        ("refuses a fault without judges", refuses("fault a\nin b\nline c\nis d\n")),
        ("in a function", put("one") == 8),
        ("in another", put("two") == 14),
        ("not unique", put("") is None),
        ("not there", put("two", "return a * b;") is None),
        ("no such function", put("three") is None),
        ("there are twenty", len(faults) >= 20 and len({f["fault"] for f in faults}) == len(faults)),
    ]
    cases += [("applies: " + f["fault"], mutants.locate(source, f) is not None) for f in faults]
    print("1..%d" % len(cases))
    for number, (name, good) in enumerate(cases, 1):
        print("%s %d - %s" % ("ok" if good else "not ok", number, name))
    return 0 if all(good for _, good in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
