#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows that each rule of memory_order.py can fail, on a small tree."""

import sys
import tempfile

import memory_order
from selftest import Tap, tree_write
from tidy import Tree

CODE = """static void
put(int *to)
{
	*to = 1;
	/* Pairs with the acquire in
	 * get(). */
	__atomic_store_n(to, 2, __ATOMIC_RELEASE);
}

static int
get(const int *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
"""
PUT = "| `lib/base/a.c` `put()` | release | `get()` | x |\n"
GET = "| `lib/base/a.c` `get()` | acquire | `put()` | x |\n"
CLEAN = {"lib/base/a.c": CODE, memory_order.PAGE: PUT + GET}

CASES = [
    ("a place without a row", memory_order.PAGE, PUT, "get(): no row"),
    ("two rows of a place", memory_order.PAGE, PUT + GET + GET, "get(): two rows"),
    ("a row without a place", "lib/base/a.c", CODE.replace("__ATOMIC_ACQUIRE", "__ATOMIC_RELAXED"),
     "get(): a row, but"),
    ("another order", "lib/base/a.c", CODE.replace("__ATOMIC_RELEASE", "__ATOMIC_RELAXED"),
     "put(): the row has \"release\""),
    ("a fence that is gone", memory_order.PAGE, PUT.replace("release", "release, full fence") + GET,
     "put(): the row has \"release, full fence\""),
    ("a partner that does not exist", memory_order.PAGE, PUT + GET.replace("put()` |", "set()` |"),
     "partner set() does not exist"),
    ("a comment with another partner", "lib/base/a.c",
     CODE.replace("* get()", "* took()"), "put(): the row does not name took()"),
    ("a comment at a function without an order", "lib/base/b.h",
     "/* Pairs with the release in put(). */\nint look(void);\n", "b.h look(): no row"),
]


def found(path=None, content=None):
    with tempfile.TemporaryDirectory() as root:
        tree_write(root, CLEAN, path, content)
        return list(memory_order.problems(Tree(root)))


def main():
    tap = Tap()
    tap.case(not found(), "a clean tree", found())
    for name, path, content, expected in CASES:
        lines = found(path, content)
        tap.case(any(expected in line for line in lines), name, lines)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
