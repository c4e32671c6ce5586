#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the tables of docs/perf.md and docs/perf-notes.md from build/bench.json:
markdown.py BENCH.JSON."""

import json
import sys

import states
import table


def line(cells):
    return "| %s |" % " | ".join(cells)


def ratios(report):
    seen = table.states_seen(report)
    heads = ["ratio: median (lowest-highest)", *seen, "threshold", "target"]
    yield line(heads)
    yield "|" + "---|" * len(heads)
    for row in report["rows"]:
        if row["states"]:
            yield line([row["text"], *table.columns(row, seen), table.cell(row["threshold"]),
                        table.cell(row["target"])])


def numbers(report):
    seen = table.states_seen(report)
    yield line(["measured", *seen])
    yield "|" + "---|" * (1 + len(seen))
    for text, texts in table.number_rows(report):
        yield line([text, *texts])


def cycles(report):
    """The stages of both ends. A stage that an end does not have is empty: a receiver posts no
    sends."""
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
    if report["machine"].get("cores"):
        print(states.cores_text(report["machine"]["cores"]))
    if report.get("line_ns"):
        print(table.states_text(report))
    for part in (ratios, numbers, cycles):
        print()
        print("\n".join(part(report)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
