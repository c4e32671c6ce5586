#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""picture.py RESULT.json > docs/demo.svg: draws the result that tools/demo.sh --json wrote."""

import json
import sys
from xml.sax.saxutils import escape

import table

WIDTH = 960
MARGIN = 24
CHART_TOP, CHART_HEIGHT = 210, 120
FONT = "font-family='ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace'"
INK, FAINT, LINE, LOSS, BACK, BOX = "#1f2933", "#67727e", "#2563a8", "#b4432b", "#ffffff", "#eef3f8"


class Svg:
    def __init__(self):
        self.parts = []

    def add(self, text, *args):
        self.parts.append(text % args)

    def text(self, x, y, text, size=13, fill=INK, anchor="start", weight="normal"):
        self.add("<text x='%.1f' y='%.1f' font-size='%g' fill='%s' text-anchor='%s' "
                 "font-weight='%s' xml:space='preserve'>%s</text>",
                 x, y, size, fill, anchor, weight, escape(text))

    def line(self, x1, y1, x2, y2, stroke=FAINT, width=1.0, dash=""):
        self.add("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s' stroke-width='%g'%s/>",
                 x1, y1, x2, y2, stroke, width, " stroke-dasharray='%s'" % dash if dash else "")

    def box(self, x, y, width, height, fill=BOX):
        self.add("<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' rx='6' fill='%s' "
                 "stroke='%s'/>", x, y, width, height, fill, FAINT)

    def finish(self, height, title):
        return ("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' role='img' %s>\n"
                "<title>%s</title>\n<rect width='100%%' height='100%%' fill='%s'/>\n%s\n</svg>\n"
                % (WIDTH, height, FONT, escape(title), BACK, "\n".join(self.parts)))


def draw_hosts(svg):
    """Part a: draws the two hosts and the bridge."""
    top, height, width = 56, 96, 300
    for x, name, does in ((MARGIN, "host left", "8 QPs, SEND, 1 of 64 signaled"),
                          (WIDTH - MARGIN - width, "host right", "one SRQ, limit event, refill")):
        svg.box(x, top, width, height)
        svg.text(x + 12, top + 22, name, weight="bold")
        svg.text(x + 12, top + 44, does, 12)
        svg.text(x + 12, top + 64, "Rocade: verbs, RC, RoCEv2", 12)
        svg.text(x + 12, top + 84, "DPDK port: net_tap", 12)
    middle = top + height / 2
    svg.line(MARGIN + width, middle, WIDTH - MARGIN - width, middle, INK, 2)
    svg.box(WIDTH / 2 - 84, middle - 24, 168, 48, BACK)
    svg.text(WIDTH / 2, middle - 4, "Linux bridge", 12, anchor="middle")
    svg.text(WIDTH / 2, middle + 14, "UDP 4791, IPv4", 12, FAINT, "middle")


def draw_rates(svg, rates):
    """Part a: draws Gb/s by second, and the beginning of the loss."""
    left, right = MARGIN + 44, WIDTH - MARGIN
    bottom = CHART_TOP + CHART_HEIGHT
    top_gbps = max(rate["gbps"] for rate in rates) * 1.15 or 1
    last_s = max(rate["second"] for rate in rates)

    def x_of(second):
        return left + (right - left) * second / last_s

    def y_of(gbps):
        return bottom - CHART_HEIGHT * gbps / top_gbps

    svg.text(MARGIN, CHART_TOP - 14, "Part a, Gb/s of payload that arrived and was verified, "
             "second by second", 12, FAINT)
    for share in (0, 0.5, 1):
        gbps = share * max(rate["gbps"] for rate in rates)
        svg.line(left, y_of(gbps), right, y_of(gbps), "#d5dbe1")
        svg.text(left - 6, y_of(gbps) + 4, "%.2f" % gbps, 11, FAINT, "end")
    lossy = [rate["second"] for rate in rates if rate["loss"]]
    if lossy:
        start = x_of(lossy[0] - 0.5)
        svg.add("<rect x='%.1f' y='%d' width='%.1f' height='%d' fill='%s' opacity='0.10'/>",
                start, CHART_TOP, right - start, CHART_HEIGHT, LOSS)
        svg.text(start + 8, CHART_TOP + 16, "1 % of all frames lost from here", 12, LOSS)
    points = " ".join("%.1f,%.1f" % (x_of(rate["second"]), y_of(rate["gbps"])) for rate in rates)
    svg.add("<polyline points='%s' fill='none' stroke='%s' stroke-width='2.5'/>", points, LINE)
    for rate in rates:
        svg.add("<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>", x_of(rate["second"]),
                y_of(rate["gbps"]), LINE)
        svg.text(x_of(rate["second"]), bottom + 16, "%d" % rate["second"], 11, FAINT, "middle")


def draw(result):
    svg = Svg()
    svg.text(MARGIN, 34, "tools/demo.sh", 17, weight="bold")
    svg.text(WIDTH - MARGIN, 34, result["machine"], 12, FAINT, "end")
    draw_hosts(svg)
    y = 190
    part_a = [part for part in result["parts"] if part["part"] == "a"]
    if part_a and part_a[0]["rates"]:
        draw_rates(svg, part_a[0]["rates"])
        y = CHART_TOP + CHART_HEIGHT + 56
    rows = table.rows(result["parts"])
    size = min(13.0, (WIDTH - 2 * MARGIN) / max(len(row) for row in rows) / 0.605)
    for row in rows:
        svg.text(MARGIN, y, row, size)
        y += 21
    svg.text(MARGIN, y + 10, result["verdict"], 15,
             "#1d7a3e" if result["verdict"] == "PASS" else LOSS, weight="bold")
    return svg.finish(y + 34, "What tools/demo.sh showed: %s" % result["verdict"])


def main(args):
    if len(args) != 1 or args[0] in ("-h", "--help"):
        print(__doc__, file=sys.stderr)
        return 2
    with open(args[0], encoding="utf-8") as file:
        sys.stdout.write(draw(json.load(file)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
