# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of ports that the tests run, one paragraph each in test/ports.def. docs/ports.md has
the page that text() makes of it. A test that runs a kind of port compares its row with what the
library reports when it opens the port:

    row = ports.Row("net_tap")
    ...
    row.saw(program.text)   # of a program that ran with ROCADE_LOG=info, once or several times
    row.case()              # at the end"""

import os
import re
from collections import namedtuple

from tap import case

DEFINITIONS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "ports.def")
FIELDS = ["port", "driver", "device", "offloads", "queues", "mtu", "interrupts", "tests", "rxe",
          "run", "limits"]
NO_KERNEL = "no kernel"
BEGIN, END = "<!-- made by test/tidy/ports_check.py -->", "<!-- end -->"
FACTS = re.compile(r"^rocade: \S+ \((\S+)\): MTU (\d+), queue pairs (\d+) of \d+, descriptors \d+ "
                   r"and \d+, offloads: (.*), receive interrupts: (.*)$", re.M)

Port = namedtuple("Port", FIELDS)


class Malformed(Exception):
    """The file of definitions is wrong."""


def read(text):
    """Returns the rows. A line that starts with a blank continues the line above."""
    rows = []
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = re.sub(r"\n[ \t]+", " ", paragraph).splitlines()
        pairs = [line.partition(":") for line in lines]
        names = [name for name, _, _ in pairs]
        values = [value.strip() for _, _, value in pairs]
        if names != FIELDS or not all(values):
            raise Malformed("%s: expected the fields %s, each with a value" % (
                lines[0] if lines else "empty", ", ".join(FIELDS)))
        rows.append(Port(*values))
    names = [row.port for row in rows]
    if len(set(names)) != len(names):
        raise Malformed("a port has two paragraphs: %s" % ", ".join(names))
    return rows


def rows():
    with open(DEFINITIONS, encoding="utf-8") as file:
        return read(file.read())


def tests_of(row):
    return row.tests.split(", ")


def rxe_tests_of(row):
    return [] if row.rxe == NO_KERNEL else row.rxe.split(", ")


def linked(tests):
    return ", ".join("`%s`" % test for test in tests)


def text(all_rows):
    """Returns the part of docs/ports.md between BEGIN and END."""
    lines = ["| port | driver | offloads used | queue pairs | MTU | receive interrupts | rdma_rxe |",
             "|---|---|---|---|---|---|---|"]
    for row in all_rows:
        lines.append("| [%s](#%s) | `%s` | %s | %s | %s | %s | %s |" % (
            row.port, anchor(row.port), row.driver, row.offloads.replace(" ", ", "), row.queues,
            row.mtu, row.interrupts, "yes" if rxe_tests_of(row) else row.rxe))
    for row in all_rows:
        lines += ["", "### " + row.port, "", "```", row.device, "```", "",
                  "- *Run:* %s" % row.run, "- *Limits:* %s" % row.limits,
                  "- *Tests:* %s" % linked(tests_of(row))]
        if rxe_tests_of(row):
            lines.append("- *rdma_rxe at the other end:* %s" % linked(rxe_tests_of(row)))
    return "\n".join(lines) + "\n"


def anchor(title):
    """Returns the anchor that a heading has on the page."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


class Row:
    """What the tests have seen of one kind of port."""

    def __init__(self, name):
        self.row = next(row for row in rows() if row.port == name)
        self.seen = []

    def saw(self, output):
        """Adds the ports of this driver that a program has opened."""
        facts = [found for found in FACTS.findall(output) if found[0] == self.row.driver]
        self.seen += facts or [(self.row.driver, "none", "none", "no line of this driver", "none")]

    def case(self):
        """Prints a case: the row says what was seen, no more and no less."""
        _, mtus, queues, offloads, interrupts = [set(values) for values in zip(
            *self.seen or [("no port",) * 5])]
        interrupts -= {"not requested"}
        # Some need several queues.
        offloads = {word for words in offloads for word in words.split()}
        offloads = offloads - {"none"} or offloads
        want = [set(self.row.mtu.split(", ")), set(self.row.queues.split(", ")),
                set(self.row.offloads.split()), {self.row.interrupts} - {"not run"}]
        got = [mtus, queues, offloads, interrupts]
        return case("the port is as docs/ports.md says: %s" % self.row.port, got == want,
                    "MTU, queue pairs, offloads, interrupts: %s, expected %s" % (got, want))
