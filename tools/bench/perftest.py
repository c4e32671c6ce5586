# SPDX-License-Identifier: BSD-3-Clause
"""The programs of perftest: what they print. And rows with a gate, as a table."""

import dataclasses
import math

import table

PROGRAMS = ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_send_bw", "ib_write_bw",
            "ib_read_bw")

# The heads of the tables, in perftest's words, and the fields of the line behind each. Latencies
# are half of a round trip, for READ a whole one.
HEADS = (
    ("t_min", ("bytes", "iterations", "min_us", "max_us", "typical_us", "mean_us", "stdev_us",
               "p99_us", "p999_us")),
    ("tps", ("bytes", "iterations", "mean_us", "trips_per_s")),
    ("BW peak", ("bytes", "iterations", "peak", "megabytes_per_s", "million_per_s")))


def numbers(text):
    """The numbers that a program printed, by the names of HEADS; None: it printed none. Where
    perftest finds the frequency of the CPU to be 0, as in some virtual machines, it prints times
    that are infinite: these are left out."""
    lines = text.splitlines()
    for head, line in zip(lines, lines[1:]):
        fields = next((names for word, names in HEADS
                       if head.lstrip().startswith("#bytes") and word in head), None)
        values = line.split()
        if fields and len(values) == len(fields):
            try:
                found = dict(zip(fields, map(float, values)))
            except ValueError:
                return None
            return {name: value for name, value in found.items() if math.isfinite(value)}
    return None


@dataclasses.dataclass
class Row:
    """A row of a table: a value, its gate and its reach. samples: one of each round."""
    text: str
    samples: list
    gate: float = None
    reach: float = None
    less: bool = False

    def report(self):
        """The row as a dictionary for the JSON file."""
        samples = [value for value in self.samples if value is not None]
        out = {"text": self.text, "gate": self.gate, "reach": self.reach,
               "less_is_better": self.less, "samples": samples, "verdict": "not measured"}
        if samples:
            out.update(table.spread(samples))
            out["verdict"] = VERDICTS[table.verdict(out["median"], self.gate, self.reach,
                                                    self.less)]
        return out


VERDICTS = {"": "", "target met": "reached", "threshold met": "gate met",
            "below target": "not reached", "BELOW THRESHOLD": "GATE NOT MET"}


def cell(number):
    """At most three significant digits, and no exponent."""
    if number is None:
        return ""
    return "%d" % number if number == int(number) or abs(number) >= 1000 else "%.3g" % number


def show(rows, heads):
    """Prints the rows of reports: median, range, gate, reach and verdict."""
    width = max(map(len, [heads[0]] + [row["text"] for row in rows]))
    form = "%%-%ds  %%-24s %%9s %%9s  %%s" % width
    print((form % (*heads, "gate", "reach", "")).rstrip())
    for row in rows:
        value = ""
        if "median" in row:
            value = cell(row["median"])
            if row["low"] != row["high"]:
                value += " (%s-%s)" % (cell(row["low"]), cell(row["high"]))
        print((form % (row["text"], value, cell(row["gate"]), cell(row["reach"]),
                       row["verdict"])).rstrip())


def over(a, b):
    """The quotient; None unless there are both."""
    return a / b if a is not None and b else None
