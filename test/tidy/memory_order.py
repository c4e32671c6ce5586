#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""memory_order.py TREE [--list]: checks the table of docs/memory-order.md against the code.

A place is a function of lib, drivers or app that has an atomic access or a fence with an order
stronger than relaxed, or a comment with "pairs with". Each place has one row, and each row is of a
place. The row names the orders that the function has, and the functions that the comments name as
partners. These exist. --list prints the places."""

import os
import re
import sys

from tidy import Tree
import hunks

PAGE = "docs/memory-order.md"
PAIRS = re.compile(r"\bpairs? with the\b[^.]*(?:\.[ch]\b[^.]*)*", re.I)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
# The name of an order in the rows, and how the code writes it.
ORDERS = {
    "acquire": r"(?<!fence\()__ATOMIC_ACQUIRE",
    "release": r"(?<!fence\()__ATOMIC_RELEASE",
    "acquire and release": r"__ATOMIC_ACQ_REL",
    "sequential": r"(?<!fence\()__ATOMIC_SEQ_CST|\batomic_(?:load|store|fetch_\w+)\(",
    "acquire fence": r"__atomic_thread_fence\(__ATOMIC_ACQUIRE\)",
    "release fence": r"__atomic_thread_fence\(__ATOMIC_RELEASE\)",
    "full fence": r"__atomic_thread_fence\(__ATOMIC_SEQ_CST\)",
    "compiler's fence": r"__atomic_signal_fence\(",
    "membarrier": r"\bprocess_barrier\(\)",
}
NAME = re.compile(r"\b(\w+)\(")
ROW = re.compile(r"^\| `([^`]+)` `(\w+)\(\)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.M)


def functions(file):
    """Yields (name, first line, last line) of the bodies, counted from 0."""
    lines = file.code.splitlines()
    for function in hunks.functions(lines):
        head = lines[function.start:function.body]
        names = NAME.findall(" ".join(head))
        plain = [n for n in names if n not in ("__attribute__", "defined")]
        # The last name at the beginning of a line is the function's.
        at = [n for n in plain if any(x.startswith(n + "(") for x in head)]
        if at:
            yield at[-1], function.body, function.end


class Place:
    def __init__(self):
        self.orders = set()
        self.partners = set()  # by its comments


def places(tree):
    """{(file, function): Place}"""
    found = {}
    for file in tree.under("lib", "drivers", "app"):
        if not file.is_c:
            continue
        bodies = list(functions(file))
        lines = file.code.splitlines()
        for name, first, last in bodies:
            text = "\n".join(lines[first:last + 1])
            orders = {order for order, how in ORDERS.items() if re.search(how, text)}
            if orders:
                found.setdefault((file.path, name), Place()).orders |= orders
        for comment in COMMENT.finditer(file.text):
            text = " ".join(comment.group(0).replace("\n *", " ").replace("*/", "").split())
            pairs = PAIRS.findall(text)
            if not pairs:
                continue
            line = file.text.count("\n", 0, comment.end())
            inside = [name for name, first, last in bodies if first <= line <= last]
            after = NAME.findall("\n".join(lines[line:line + 4]))
            name = inside[0] if inside else after[0] if after else ""
            place = found.setdefault((file.path, name), Place())
            place.partners.update(NAME.findall(" ".join(pairs)))
    return found


def problems(tree):
    """Yields what is wrong, a line each."""
    with open(os.path.join(tree.root, PAGE), encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    found = places(tree)
    seen = set()
    words = set()
    for file in tree.under("lib", "drivers", "app"):
        words.update(NAME.findall(file.code))
    for path, name, order, partner, _ in rows:
        place = "%s %s()" % (path, name)
        if (path, name) in seen:
            yield "%s: two rows" % place
        seen.add((path, name))
        if (path, name) not in found:
            yield "%s: a row, but the function has no order and no \"pairs with\"" % place
            continue
        said = set(filter(None, order.split(", "))) - {"declaration"}
        if said != found[path, name].orders:
            yield "%s: the row has \"%s\", the code \"%s\"" % (
                place, order, ", ".join(sorted(found[path, name].orders)) or "declaration")
        partners = set(re.findall(r"`(\w+)\(\)`", partner))
        for other in sorted(partners - words):
            yield "%s: its partner %s() does not exist" % (place, other)
        for other in sorted(found[path, name].partners - partners):
            yield "%s: the row does not name %s(), with which its comment pairs it" % (place, other)
    for path, name in sorted(set(found) - seen):
        yield "%s %s(): no row: add what it pairs with, and what would go wrong" % (path, name)


def main(args):
    tree = Tree(args[1])
    if args[2:] == ["--list"]:
        for (path, name), place in sorted(places(tree).items()):
            print("%s %s(): %s" % (path, name, ", ".join(sorted(place.orders))))
        return 0
    wrong = list(problems(tree))
    for line in wrong:
        print("# " + line)
    print("%sok 1 - each memory order has its row in %s" % ("not " if wrong else "", PAGE))
    print("1..1")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
