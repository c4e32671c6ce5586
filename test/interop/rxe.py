#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The wire is the standard one, says Linux's rdma_rxe: every service and opcode that it has
(test/tour), requested by it and by us, IPv4 and IPv6, path MTU 1024 and 4096, data verified."""
# test.sh: limit_s 600

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import bench  # noqa: E402
from guest import missing  # noqa: E402
from kernel import Missing, kernel  # noqa: E402
from tap import case, run  # noqa: E402

COLUMNS = [(4, 1024), (4, 4096), (6, 1024), (6, 4096)]
MTUS = {1024: 1500, 4096: 4200}
# How many cells of each kind there are at least, in each direction.
LEAST = {
    "RC SEND": 16, "RC SEND_WITH_IMM": 16, "RC WRITE": 16, "RC WRITE_WITH_IMM": 16,
    "RC READ": 15, "RC CMP_AND_SWP": 2, "RC FETCH_AND_ADD": 2, "RC fence": 1,
    "RC solicited event": 1, "RC WRITE with a wrong key": 1, "RC READ with a wrong key": 1,
    "RC to itself": 1, "RC by ibv_wr_post": 7,
    "RC with SRQ SEND": 16, "RC with SRQ SEND_WITH_IMM": 16,
    "MW type 1": 2, "MW type 2": 2, "MW type 2, SEND_WITH_INV": 2,
    "UC SEND": 16, "UC SEND_WITH_IMM": 16, "UC WRITE": 16, "UC WRITE_WITH_IMM": 16,
    "UC with SRQ SEND": 16, "UC with SRQ SEND_WITH_IMM": 16,
    "UD SEND": 10, "UD SEND_WITH_IMM": 10, "UD with SRQ SEND": 10,
    "UD with SRQ SEND_WITH_IMM": 10, "UD multicast": 4, "UD answer to the header": 1,
}
# Where the kernel differs, docs/interop.md: not walked.
DEVIATIONS = ["UD with the QP's own Q_Key", "UD multicast by a member",
              "MW type 2, SEND_WITH_INV with its flag", "RC WRITE of 2 SGEs by ibv_wr_post",
              "RC ATOMIC_WRITE by ibv_wr_post"]


def kind(cell):
    """The row of the table that a cell belongs to."""
    if cell.endswith("by ibv_wr_post"):
        return "RC by ibv_wr_post"
    if "SEND_WITH_INV" in cell:
        return "MW type 2, SEND_WITH_INV"
    if cell.startswith("MW"):
        return cell.split(",")[0]
    return re.sub(r" (\d+|path MTU|unsignaled)( .*)?$", "", cell)


def count(cells):
    """{(kind, who requests): [passed, failed]}"""
    counts = {}
    for passed in cells.passed:
        counts.setdefault((kind(passed[0]), passed[1]), [0, 0])[0] += 1
    for failed in cells.failed:
        counts.setdefault((kind(failed[0]), failed[1]), [0, 0])[1] += 1
    return counts


def column(the_bench, version, path_mtu):
    """A TAP case for each kind and direction; returns the counts."""
    name = "IPv%d, path MTU %d" % (version, path_mtu)
    the_bench.set_mtu(MTUS[path_mtu])
    options = [word for cell in DEVIATIONS for word in ("--skip", cell)]
    codes, ours, theirs = the_bench.tour(version, options)
    cells = bench.Cells(ours)
    counts = count(cells)
    last = ours[-1] if ours else ""
    case("%s: both ends go to their end" % name,
         codes == (0, 0) and "path MTU %d" % path_mtu in last,
         "%s\n%s\n%s" % (codes, "\n".join(ours[-20:]), "\n".join(theirs[-20:])))
    case("%s: only XRC is skipped" % name,
         all(cell.startswith("XRC") for cell in cells.skipped), cells.skipped)
    for row, least in LEAST.items():
        for who in ("we", "kernel"):
            passed, failed = counts.pop((row, who), [0, 0])
            wrong = ["%s: %s" % (cell, why) for (cell, by), why in cells.failed.items()
                     if by == who and kind(cell) == row]
            case("%s: %s, %s" % (name, row, "requested by " + (
                "us" if who == "we" else "the kernel")), passed >= least and not failed,
                 "%d of %d\n%s" % (passed, least, "\n".join(wrong)))
    case("%s: every kind is known" % name, not counts, counts)
    return count(cells)


def table(columns):
    print("# cells passed, requested by us / by the kernel")
    print("# %-27s" % "" + "".join("%12s" % ("IPv%d %d" % c) for c in columns))
    for row in LEAST:
        line = "# %-27s" % row
        for counts in columns.values():
            both = [counts.get((row, who), [0, 0]) for who in ("we", "kernel")]
            line += "%12s" % " / ".join(
                str(passed) + ("!" * bool(failed)) for passed, failed in both)
        print(line)


def matrix():
    the_bench = bench.Bench()
    try:
        if not case("Linux boots", the_bench.guest.wait(120), the_bench.guest.said()):
            return
        print("# Linux %s, QEMU without KVM" % the_bench.guest.release)
        table({c: column(the_bench, *c) for c in COLUMNS})
        said = the_bench.guest.said()
        case("the kernel has nothing to complain of", not re.search(
            r"WARNING|BUG|Oops|Call Trace|init: no", said), said[-3000:])
    finally:
        the_bench.guest.stop()


def main():
    why = missing()
    if why is None:
        try:
            kernel(bench.CACHE)
        except Missing as sentence:
            why = str(sentence)
    if why is not None:
        print("1..0 # SKIP %s" % why)
        return 0
    bench.isolate()
    return run(matrix)


if __name__ == "__main__":
    sys.exit(main())
