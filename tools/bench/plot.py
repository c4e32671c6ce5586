#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the pictures of docs/perf.md from build/bench.json: plot.py BENCH.JSON DIR.

A point is one sample. A line joins neighbouring points that were taken in the same state of the
machine (states.py). A point of the slow state is hollow. A sample that saw both states is left
out."""

import json
import math
import os
import sys

import plan

WIDTH, HEIGHT = 660, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 170, 40, 48
COLOURS = ("#1b6ca8", "#d1495b", "#3c8d2f", "#8a5a00")  # then once more, with dashes


def first(report, name):
    """The first sample that was taken in one state; None: there is none."""
    for numbers in report["results"].get(name, []):
        if numbers and numbers.get("state") != "mixed":
            return numbers
    return None


def point(index, y, numbers):
    return (index, y, numbers.get("state"))


def runs(points):
    """The points in runs: neighbours on the axis of x that are of one state."""
    out = []
    for at in points:
        if out and at[0] == out[-1][-1][0] + 1 and at[2] == out[-1][-1][2]:
            out[-1].append(at)
        else:
            out.append([at])
    return out


def bytes_text(number):
    for unit, size in (("Mi", 1 << 20), ("Ki", 1 << 10)):
        if number >= size:
            return "%d %s" % (number // size, unit)
    return "%d" % number


def ceiling(number):
    """The next round number."""
    if number <= 0:
        return 1
    power = 10 ** math.floor(math.log10(number))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= number)


class Linear:
    """The axis of y: from 0 to a round number, five steps."""

    def __init__(self, _, high):
        self.top = ceiling(high)
        self.marks = [self.top * step / 5 for step in range(6)]

    def part(self, y):
        return y / self.top


class Logarithmic:
    """From a power of ten to a power of ten."""

    def __init__(self, low, high):
        self.low = math.floor(math.log10(low))
        self.high = max(math.ceil(math.log10(high)), self.low + 1)
        self.marks = [10.0 ** power for power in range(self.low, self.high + 1)]

    def part(self, y):
        return (math.log10(y) - self.low) / (self.high - self.low)


class Chart:
    """series: {name: [(index of x, y, state)]}; x is by category."""

    def __init__(self, title, x_title, y_title, labels, axis=Linear):
        self.out = []
        self.axis = axis
        self.labels, self.title, self.x_title, self.y_title = labels, title, x_title, y_title
        self.series = {}

    def add(self, name, points):
        points = [point for point in points if point]
        if points:
            self.series[name] = points

    def text(self, x, y, text, anchor="middle", more=""):
        self.out.append('<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' % (
            x, y, anchor, more, text.replace("&", "&amp;").replace("<", "&lt;")))

    def place(self, x, part):
        wide = (WIDTH - LEFT - RIGHT) / max(1, len(self.labels) - 1)
        return LEFT + x * wide, HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    def axes(self, axis):
        for y in axis.marks:
            _, at = self.place(0, axis.part(y))
            self.out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>' % (
                LEFT, at, WIDTH - RIGHT, at))
            self.text(LEFT - 6, at + 4, "%g" % round(y, 4), "end")
        for index, label in enumerate(self.labels):
            at, _ = self.place(index, 0)
            self.text(at, HEIGHT - BOTTOM + 16, label)
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, self.x_title)
        self.text(LEFT - 50, TOP - 10, self.y_title, "start")
        self.text((LEFT + WIDTH - RIGHT) / 2, 18, self.title, more=' font-weight="bold"')

    def line(self, number, name, points, axis):
        colour = COLOURS[number % len(COLOURS)]
        dash = ' stroke-dasharray="5 3"' if number >= len(COLOURS) else ""
        for run in runs(points):
            places = [self.place(x, axis.part(y)) for x, y, _ in run]
            if len(run) > 1:
                self.out.append(
                    '<polyline fill="none" stroke="%s" stroke-width="2"%s points="%s"/>' % (
                        colour, dash, " ".join("%.1f,%.1f" % place for place in places)))
            fill = "#fff" if run[0][2] == "slow" else colour
            for x, y in places:
                self.out.append('<circle cx="%.1f" cy="%.1f" r="3" stroke="%s" fill="%s"/>' % (
                    x, y, colour, fill))
        at = TOP + 8 + 18 * number
        self.out.append('<line x1="{0}" y1="{1}" x2="{2}" y2="{1}" stroke="{3}" stroke-width="2"'
                        '{4}/>'.format(WIDTH - RIGHT + 10, at, WIDTH - RIGHT + 32, colour, dash))
        self.text(WIDTH - RIGHT + 38, at + 4, name, "start")

    def write(self, path):
        if not self.series:
            return False
        values = [y for points in self.series.values() for _, y, _ in points]
        axis = self.axis(min(values), max(values))
        self.axes(axis)
        for number, (name, points) in enumerate(self.series.items()):
            self.line(number, name, points, axis)
        with open(path, "w", encoding="utf-8") as file:
            file.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
                       'font-family="sans-serif" font-size="12">\n'
                       '<rect width="100%%" height="100%%" fill="#fff"/>\n%s\n</svg>\n'
                       % (WIDTH, HEIGHT, "\n".join(self.out)))
        return True


def series(report, chart, title, names, field, scale):
    """names: the measurement at each place of the axis."""
    taken = [(index, first(report, name)) for index, name in enumerate(names)]
    chart.add(title, [numbers and point(index, numbers[field] / scale, numbers)
                      for index, numbers in taken])


def by_size(report, title, unit, field, scale, path):
    chart = Chart(title, "bytes of a message", unit, [bytes_text(size) for size in plan.SIZES],
                  Logarithmic)
    for mtu in (4096, 1024):
        for mode, text in (("send", "SEND"), ("write", "WRITE"), ("read", "READ"),
                           ("ud", "UD SEND")):
            series(report, chart, "%s, MTU %d" % (text, mtu),
                   ["size %s %d %d" % (mode, mtu, size) for size in plan.SIZES], field, scale)
    return chart.write(path)


def by_qps(report, title, unit, size, field, scale, path):
    chart = Chart(title, "QPs", unit, ["{:,}".format(qps) for qps in plan.QPS])
    for mode in ("send", "write", "read"):
        series(report, chart, mode.upper(),
               ["qps %s %d %d" % (mode, size, qps) for qps in plan.QPS], field, scale)
    return chart.write(path)


def by_loss(report, path):
    chart = Chart("Goodput over loss, 64 KiB WRITE", "frames lost, both ways", "GB/s",
                  ["%g %%" % (ppm / 1e4) for ppm in plan.LOSSES_PPM])
    series(report, chart, "Rocade", ["loss %d" % ppm for ppm in plan.LOSSES_PPM], "bytes_per_s",
           1e9)
    return chart.write(path)


def latency(report, path):
    """The distribution: latency at each percentile."""
    names = (("p10", "10 %"), ("p25", "25 %"), ("p50", "50 %"), ("p75", "75 %"), ("p90", "90 %"),
             ("p99", "99 %"), ("p999", "99.9 %"))
    chart = Chart("Latency of 64 bytes by percentile", "percentile", "us",
                  [n[1] for n in names], Logarithmic)
    for title, name in (("raw frames", "raw pingpong"), ("SEND", "send pingpong"),
                        ("WRITE", "write pingpong"), ("UD SEND", "pingpong ud"),
                        ("READ, both ways", "read latency"), ("SEND, daemon", "daemon pingpong"),
                        ("TCP", "tcp latency")):
        numbers = first(report, name)
        if numbers:
            taken = [(i, numbers["latency_ns"].get(key)) for i, (key, _) in enumerate(names)]
            chart.add(title, [point(i, ns / 1e3, numbers) for i, ns in taken if ns])
    return chart.write(path)


def draw(report, folder):
    os.makedirs(folder, exist_ok=True)

    def path(name):
        return os.path.join(folder, name + ".svg")
    return [
        by_size(report, "Messages a second over message size, 1 QP", "million/s",
                "messages_per_s", 1e6, path("rate")),
        by_size(report, "Bandwidth over message size, 1 QP", "GB/s", "bytes_per_s", 1e9,
                path("bandwidth")),
        latency(report, path("latency")),
        by_loss(report, path("loss")),
        by_qps(report, "64 B messages over QPs, one request a pass", "million/s", 64,
               "messages_per_s", 1e6, path("qps")),
        by_qps(report, "Bandwidth of 4 KiB messages over QPs, one request a pass", "GB/s", 4096,
               "bytes_per_s", 1e9, path("qps-bandwidth"))]


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        draw(json.load(file), sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
