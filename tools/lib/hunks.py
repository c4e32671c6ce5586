# SPDX-License-Identifier: BSD-3-Clause
"""The functions of a C file, and which of them differ from a commit."""

import re
from collections import namedtuple

import commit

HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.M)


# The numbers of lines, from 0 on: `start` is that of what stands right above the function, `body` of its '{'.
Function = namedtuple("Function", "start body end")


def functions(lines):
    """Yields each function of a C file."""
    body = None
    for number, line in enumerate(lines):
        if line.startswith("{"):
            start = body = number
            while start > 0 and lines[start - 1].strip():
                start -= 1
        elif line.startswith("}") and body is not None:
            yield Function(start, body, number)
            body = None


def of_diff(diff, lines):
    """The numbers of the lines, from 0 on, that a diff without context changes, but for empty ones. Where lines are
    gone it is those around."""
    changed = set()
    for first, count in HUNK.findall(diff):
        begin = int(first) - 1
        if count == "0":
            changed |= {begin, begin + 1}
        else:
            changed |= {n for n in range(begin, begin + int(count or 1)) if lines[n].strip()}
    return changed


class Change:
    """How a file of a tree differs from a commit."""

    def __init__(self, source, rev, path, lines):
        self.spans = [range(f.start, f.end + 1) for f in functions(lines)]
        self.new = not commit.git(source, "ls-tree", rev, "--", path)
        self.changed = of_diff(commit.git(source, "diff", "-U0", rev, "--", path), lines)

    def span(self, number):
        return next((span for span in self.spans if number in span), None)

    def concerns(self, number):
        """Whether this line is in a function of which a line has changed. What is in no function concerns all."""
        own = self.span(number)
        return self.new or own is None or any(n in own or self.span(n) is None for n in self.changed)
