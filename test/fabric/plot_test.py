#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""plot_test.py FABRIC: `fabric --plot` draws what its tables say, the same from the same seed."""

import csv
import math
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../runner"))
import cases  # noqa: E402

FABRIC = sys.argv[1]
SVG = "{http://www.w3.org/2000/svg}"
MIXED, CURVES = "M-0.8", "I-8-shared"
BINS = 20


def plot(folder, *options):
    os.mkdir(folder)
    subprocess.run([FABRIC, "--time", "0.2", "--plot", folder, *options], stdout=subprocess.DEVNULL,
                   check=True)


def contents(folder):
    """Returns the bytes of each file, by name."""
    files = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            files[name] = file.read()
    return files


def table(folder, name):
    """Returns the lines of a table, each as {column: number}."""
    with open(os.path.join(folder, name + ".tsv"), encoding="ascii") as file:
        return [{column: float(value) for column, value in line.items()}
                for line in csv.DictReader(file, delimiter="\t")]


def polylines(folder, name):
    """Returns the points of each curve in a picture."""
    root = ElementTree.parse(os.path.join(folder, name + ".svg")).getroot()
    return [[tuple(map(float, point.split(","))) for point in line.get("points").split()]
            for line in root.iter(SVG + "polyline")]


def messages(folder, cc):
    return sum(line["messages"] for line in table(folder, "%s-%s" % (MIXED, cc)))


def bins_are_sane(bins):
    """Whether equally many messages of rising length are in each, slower than in an idle
    network, and some slower than others."""
    counts = [b["messages"] for b in bins]
    lengths = [length for b in bins for length in (b["bytes_from"], b["bytes_to"])]
    return (len(bins) == BINS and max(counts) - min(counts) <= 1 and lengths == sorted(lengths)
            and all(1 <= b["slowdown_p50"] < b["slowdown_p99"] for b in bins))


def is_drawn(bins, column, points):
    """Whether the curve has these values: the axes are logarithmic, from 100 bytes to 10 MB over
    810 units from 70 on, and from 1 to 1000 over 300 units up from 350."""
    def y(slowdown):
        return 350 - 100 * math.log10(slowdown)

    def x(length):
        return 70 + 162 * math.log10(length / 100)

    return len(points) == len(bins) and all(
        abs(point[1] - y(b[column])) <= 1
        and x(b["bytes_from"]) - 1 <= point[0] <= x(b["bytes_to"]) + 1
        for b, point in zip(bins, points))


def mixed_cases(folder):
    two, first, second = (os.path.join(folder, name) for name in ("two", "first", "second"))
    plot(two, "--only", MIXED, "--seeds", "2")
    plot(first, "--only", MIXED)
    plot(second, "--only", MIXED, "--seed", "2")
    for cc in ("off", "swift"):
        bins = table(two, "%s-%s" % (MIXED, cc))
        curves = polylines(two, "%s-%s" % (MIXED, cc))
        yield "cc %s: bins" % cc, bins_are_sane(bins), True
        yield "cc %s: a curve for each percentile" % cc, len(curves), 2
        yield "cc %s: median" % cc, is_drawn(bins, "slowdown_p50", curves[0]), True
        yield "cc %s: 99th percentile" % cc, is_drawn(bins, "slowdown_p99", curves[1]), True
        yield ("cc %s: messages of all seeds" % cc, messages(two, cc),
               messages(first, cc) + messages(second, cc))
    yield "seeds differ", contents(first) != contents(second), True


def curve_cases(folder):
    two, second = os.path.join(folder, "curves-two"), os.path.join(folder, "curves-second")
    plot(two, "--only", CURVES, "--seeds", "2")
    plot(second, "--only", CURVES, "--seed", "2")
    yield "curves are those of the last seed, and the same again", contents(two), contents(second)
    yield ("curves: queue, eight rates, fairness",
           [len(polylines(two, "%s-%s" % (CURVES, cc))) for cc in ("off", "swift")], [10, 10])


def repeat_cases(folder):
    again = os.path.join(folder, "again")
    plot(again, "--only", MIXED, "--seeds", "2")
    yield "slowdowns are the same again", contents(again), contents(os.path.join(folder, "two"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        return cases.run([*mixed_cases(folder), *curve_cases(folder), *repeat_cases(folder)])


if __name__ == "__main__":
    sys.exit(main())
