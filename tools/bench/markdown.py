#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/perf.md from build/bench.json: markdown.py BENCH.JSON."""

import json
import sys

import table


def line(cells):
    return "| %s |" % " | ".join(cells)


def ratios(report):
    seen = table.states_seen(report)
    heads = ["ratio", "median", "lowest to highest", *seen, "reach", "aim"]
    yield line(heads)
    yield "|" + "---|" * len(heads)
    for row in report["rows"]:
        if row["ratio"] is None:
            continue
        between = "" if row["low"] == row["high"] else "%s to %s" % (
            table.cell(row["low"]), table.cell(row["high"]))
        yield line([row["text"], table.cell(row["ratio"]), between] +
                   [table.cell(row.get(name)) for name in (*seen, "reach", "aim")])


def numbers(report):
    seen = table.states_seen(report)
    yield line(["measured", "", *seen])
    yield "|" + "---|" * (2 + len(seen))
    for text, name, what in table.NUMBERS:
        taken = [n for n in report["results"].get(name, []) if n]
        alike = [[n for n in taken if table.state(n) == met] for met in seen]
        if taken:
            yield line([text] + [table.number_text(some, what) if some else ""
                                 for some in (taken, *alike)])


def cycles(report):
    """An end has only what it does: who receives posts nothing."""
    for name, ends in report.get("cycles", {}).items():
        heads = list(dict.fromkeys(stage for stages in ends.values() for stage in stages))
        yield ""
        yield line([name + ", cycles a packet"] + heads)
        yield "|" + "---|" * (1 + len(heads))
        for end, stages in ends.items():
            yield line([end] + ["%.0f" % stages[head] if head in stages else "" for head in heads])


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    print("%s, %d cores, Linux %s, %s%s." % (
        report["machine"]["cpu"], report["machine"]["cpus"], report["machine"]["kernel"],
        report["date"], ", `--quick`" if report["quick"] else ""))
    if report.get("line_ns"):
        print(table.states_text(report))
    for part in (ratios, numbers, cycles):
        print()
        print("\n".join(part(report)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
