# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the checks and their self-tests: files of a tree, a small tree in a temporary folder, and TAP."""

import os


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8") as file:
        return file.read()


def tree_write(root, clean, path=None, content=None):
    """Writes the files of clean, {path: text}, and one more or in place of one of them."""
    for name, text in {**clean, **({path: content} if path else {})}.items():
        full = os.path.join(root, name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


class Tap:
    """Prints each case. end() prints the plan and returns the exit status."""

    def __init__(self):
        self.count = self.failed = 0

    def case(self, good, name, detail=None):
        self.count += 1
        self.failed += not good
        print("%s %d - %s" % ("ok" if good else "not ok", self.count, name.replace("#", "\\#")))
        if not good and detail:
            print("# %s" % (detail,))

    def end(self):
        print("1..%d" % self.count)
        return 1 if self.failed else 0
