#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""loss_check.py TOP: compares lib/recovery/loss_state.def with the table of docs/protocol.md 7.11: each
state of lib/recovery/loss_state.h is a column, each event a line, and each row of the .def an entry."""

import re
import sys

sys.dont_write_bytecode = True
from selftest import Tap, read  # noqa: E402

PAGE = "docs/protocol.md"
HEADING = "### 7.11 "
ROW = re.compile(r"^LOSS\((\w+), (\w+), (\w+)\)$", re.M)
EVENT = re.compile(r"`([A-Z_]+)`: .")


def name_of(words):
    """The name of the state "TLP due" is TLP_DUE."""
    return words.upper().replace(" ", "_")


def enum_of(header, tag):
    """Returns the names of an enum without its prefix, and without its last one, the number of them."""
    body = re.search(r"enum %s \{(.*?)\};" % tag, re.sub(r"/\*.*?\*/", "", header, flags=re.S), re.S)
    names = re.findall(r"\w+", body.group(1)) if body else []
    return [re.sub(r"^LOSS_(?:EV_)?", "", name) for name in names[:-1]]


def entries_of(page):
    """Returns the columns, the events of the lines, and {(state, event): next state}."""
    section = re.split(r"^#{1,3} ", page.partition(HEADING)[2], maxsplit=1, flags=re.M)[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()
             if line.startswith("|") and not line.startswith("|-")]
    states = [name_of(cell) for cell in lines[0][1:]] if lines else []
    events, entries = [], {}
    for cells in lines[1:]:
        event = EVENT.match(cells[0])
        events.append(event.group(1) if event else cells[0])
        for state, cell in zip(states, cells[1:]):
            if cell:
                entries[state, events[-1]] = name_of(cell)
    return states, events, entries


def names_wrong(what, found, expected):
    if sorted(found) == sorted(expected):
        return []
    return ["%s: the %s of 7.11 are %s, those of loss_state.h %s" % (
        PAGE, what, ", ".join(sorted(found)), ", ".join(sorted(expected)))]


def table_wrong(page, header, rows):
    states, events, entries = entries_of(page)
    wrong = names_wrong("states", states, enum_of(header, "loss_state"))
    wrong += names_wrong("events", events, enum_of(header, "loss_event"))
    found = {}
    for state, event, after in ROW.findall(rows):
        if (state, event) in found:
            wrong.append("lib/recovery/loss_state.def: two rows of %s in %s" % (event, state))
        found[state, event] = after
    for place in sorted(set(found) | set(entries)):
        if found.get(place) != entries.get(place):
            wrong.append("%s in %s: %s by loss_state.def, %s by 7.11 of %s" % (
                place[1], place[0], found.get(place, "no row"), entries.get(place, "no entry"), PAGE))
    return wrong


GOOD_HEADER = """enum loss_state {
	LOSS_OPEN, /* neither, or nothing */
	LOSS_X_DUE,
	LOSS_STATES
};
enum loss_event {
	LOSS_EV_LOST,
	LOSS_EV_SENT,
	LOSS_EVENTS
};
"""
GOOD_ROWS = "LOSS(OPEN, LOST, X_DUE)\nLOSS(X_DUE, SENT, OPEN)\n"
GOOD_PAGE = """### 7.10 Before

| event | open |
|---|---|
| `OTHER`: of another table | open |

### 7.11 States

| event | open | X due |
|---|---|---|
| `LOST`: a packet is lost | X due | |
| `SENT`: it was sent | | open |

## 8. Behind

| event | x |
"""
# (what is wrong, what it is in, with what it is replaced, how many are found)
BAD = [
    ("an entry with another state", GOOD_PAGE, "lost | X due", "lost | open", 1),
    ("an entry without a row", GOOD_PAGE, "X due | |", "X due | open |", 1),
    ("a row without an entry", GOOD_PAGE, "| open |\n\n## 8", "| |\n\n## 8", 1),
    ("a line of an unknown event", GOOD_PAGE, "`SENT`: it", "`GONE`: it", 3),
    ("a line without the name of its event", GOOD_PAGE, "`SENT`: it", "it", 3),
    ("a line that is missing", GOOD_PAGE, "| `SENT`: it was sent | | open |\n", "", 2),
    ("a second line of an event", GOOD_PAGE, "| `SENT`", "| `SENT`: it was sent | | open |\n| `SENT`", 1),
    ("a column that is missing", GOOD_PAGE, "open | X due |\n|---", "open |\n|---", 2),
    ("a page without the section", GOOD_PAGE, "7.11", "7.12", 4),
    ("a row with another state", GOOD_ROWS, "SENT, OPEN", "SENT, X_DUE", 1),
    ("a row that is missing", GOOD_ROWS, "LOSS(X_DUE, SENT, OPEN)\n", "", 1),
    ("two rows of an event", GOOD_ROWS, "LOSS(X", "LOSS(OPEN, LOST, X_DUE)\nLOSS(X", 1),
    ("an event without a line", GOOD_HEADER, "LOSS_EV_SENT", "LOSS_EV_SENT, LOSS_EV_TIMER", 1),
    ("a state without a column", GOOD_HEADER, "LOSS_X_DUE", "LOSS_X_DUE, LOSS_X_SENT", 1),
]


def selftest(tap):
    good = [GOOD_PAGE, GOOD_HEADER, GOOD_ROWS]
    tap.case(table_wrong(*good) == [], "what is right passes", table_wrong(*good))
    for what, where, old, new, count in BAD:
        wrong = table_wrong(*(text.replace(old, new) if text is where else text for text in good))
        tap.case(where.count(old) > 0 and len(wrong) == count, "%s is found" % what, wrong)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: loss_check.py TOP")
    top = sys.argv[1]
    rows = read(top, "lib/recovery/loss_state.def")
    wrong = table_wrong(read(top, PAGE), read(top, "lib/recovery/loss_state.h"), rows)
    tap = Tap()
    tap.case(not wrong and ROW.search(rows), "%s 7.11 has the rows of loss_state.def" % PAGE, "; ".join(wrong))
    selftest(tap)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
