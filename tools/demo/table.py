# SPDX-License-Identifier: BSD-3-Clause
"""The table at the end of the demo: a row for each part."""

# Two lines of heading, the alignment, and the text for a part.
COLUMNS = (
    ("", "part", "<", lambda p: "%s  %s" % (p["part"], p["title"])),
    ("", "messages", ">", lambda p: "{:,}".format(p["messages"])),
    ("", "Gb/s", ">", lambda p: "%.2f" % p["gbps"]),
    ("latency", "p50", ">", lambda p: micros(p["latency_us"]["p50"])),
    ("in us:", "p99", ">", lambda p: micros(p["latency_us"]["p99"])),
    ("", "p99.9", ">", lambda p: micros(p["latency_us"]["p99.9"])),
    ("completions", "saved", ">", lambda p: "{:,}".format(p["completions_saved"])),
    ("limit", "events", ">", lambda p: "{:,}".format(p["limit_events"])),
    ("RNR", "NAKs", ">", lambda p: "{:,}".format(p["rnr_naks"])),
    ("retrans-", "missions", ">", lambda p: "{:,}".format(p["retransmissions"])),
    ("bytes", "verified", ">", lambda p: amount(p["bytes_verified"])),
)


def micros(value):
    return "-" if value is None else "%.1f" % value


def amount(value):
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            break
        value /= 1000
    else:
        unit = "TB"
    return "%.4g %s" % (value, unit)


def rows(parts):
    """Returns the lines of the table, headings first."""
    cells = [[column[0] for column in COLUMNS], [column[1] for column in COLUMNS]]
    cells += [[column[3](part) for column in COLUMNS] for part in parts]
    widths = [max(len(row[i]) for row in cells) for i in range(len(COLUMNS))]
    lines = []
    for row in cells:
        lines.append("  ".join("{:{}{}}".format(cell, column[2], width) for cell, column, width
                               in zip(row, COLUMNS, widths)).rstrip())
    lines.insert(2, "-" * max(len(line) for line in lines))
    return lines
