#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The wire is the standard one, says Linux's rdma_rxe: every service and opcode that it has
(test/tour), requested by it and by us, IPv4 and IPv6, path MTU 1024 and 4096, data verified, and
what must fail with its status; then programs that nobody changed. ROCADE_TEST_LONG=1: every path
MTU, and frames lost, doubled, reordered and bent on their way to us."""
# test.sh: limit_s 900

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import bench  # noqa: E402
import programs  # noqa: E402
from guest import missing  # noqa: E402
from kernel import Missing, kernel  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import LONG  # noqa: E402

MTUS = {256: 576, 512: 700, 1024: 1500, 2048: 2200, 4096: 4200}
# How many cells of each kind there are at least, in each direction.
LEAST = {
    "RC SEND": 16, "RC SEND_WITH_IMM": 16, "RC WRITE": 16, "RC WRITE_WITH_IMM": 16,
    "RC READ": 15, "RC CMP_AND_SWP": 2, "RC FETCH_AND_ADD": 2, "RC fence": 1,
    "RC solicited event": 1, "RC to itself": 1, "RC by ibv_wr_post": 7,
    "RC with SRQ SEND": 16, "RC with SRQ SEND_WITH_IMM": 16, "RC late receive": 2,
    "RC request that fails": 10,
    "MW type 1": 2, "MW type 2": 2, "MW type 2, SEND_WITH_INV": 2,
    "UC SEND": 16, "UC SEND_WITH_IMM": 16, "UC WRITE": 16, "UC WRITE_WITH_IMM": 16,
    "UC with SRQ SEND": 16, "UC with SRQ SEND_WITH_IMM": 16,
    "UD SEND": 10, "UD SEND_WITH_IMM": 10, "UD with SRQ SEND": 10,
    "UD with SRQ SEND_WITH_IMM": 10, "UD multicast": 4, "UD answer to the header": 1,
}
FAILS = re.compile("where it may not|beyond|wrong|longer than|without a receive|to nobody")
# Where the kernel differs (docs/interop.md): the cell, who requests in it.
KNOWN = {
    ("UD multicast by a member", "kernel"),
    ("RC WRITE of 2 SGEs by ibv_wr_post", "kernel"),
    ("RC SEND longer than its receive", "we"),
    ("RC SEND into a receive with a wrong key", "we"),
    ("RC WRITE with a wrong local key", "kernel"),
}
# The same; they wait for something that does not come.
KNOWN_SLOW = {
    ("UD with the QP's own Q_Key", "kernel"),
    ("MW type 2, SEND_WITH_INV with its flag", "we"),
    ("RC ATOMIC_WRITE by ibv_wr_post", "we"),
    ("RC ATOMIC_WRITE by ibv_wr_post", "kernel"),
}


def kind(cell):
    """The row of the table that a cell belongs to."""
    if cell.endswith("by ibv_wr_post"):
        return "RC by ibv_wr_post"
    if "SEND_WITH_INV" in cell:
        return "MW type 2, SEND_WITH_INV"
    if cell.startswith("MW"):
        return cell.split(",")[0]
    if FAILS.search(cell):
        return "RC request that fails"
    if cell.endswith("a late receive"):
        return "RC late receive"
    if cell.startswith("UD multicast"):
        return "UD multicast"
    return re.sub(r" (\d+|unsignaled)( .*)?$", "", cell)


def count(cells):
    """{(kind, who requests): [passed, failed]}, but for what is known."""
    counts = {}
    for cell, who in cells.passed:
        counts.setdefault((kind(cell), who), [0, 0])[0] += 1
    for cell, who in set(cells.failed) - KNOWN:
        counts.setdefault((kind(cell), who), [0, 0])[1] += 1
    return counts


class Column:
    """One walk through the tour: of the cells whose name contains a word, over a wire that may be
    bad to us."""

    def __init__(self, version, path_mtu, only="", impair=None):
        self.version, self.path_mtu, self.only, self.impair = version, path_mtu, only, impair
        self.head = "IPv%d %d" % (version, path_mtu)
        if impair:
            self.head = "%s %s %g%%" % (self.head, only, impair / 1e4)
        self.rows = [row for row in LEAST if only in row]
        self.counts = {}

    def walk(self, the_bench):
        mtu = MTUS[self.path_mtu]
        the_bench.set_mtu(max(mtu, bench.IPV6_LEAST) if self.version == 6 else mtu)
        options = ["--path-mtu", str(self.path_mtu), "--only", self.only]
        for cell, _ in sorted(KNOWN_SLOW):
            options += ["--skip", cell]
        device = []
        if self.impair:
            options += ["--wait", "60"]
            device = ["impair=%d,%d,%d,%d" % ((self.impair,) * 3 + (self.impair // 10,))]
        codes, ours, theirs = the_bench.tour(self.version, options, device,
                                             1800 if self.impair else 300)
        cells = bench.Cells(ours)
        self.counts = count(cells)
        self.judge(codes, ours, theirs, cells)

    def judge(self, codes, ours, theirs, cells):
        """A case for each kind and direction."""
        why = "%s\n%s\n%s" % (codes, "\n".join(ours[-20:]), "\n".join(theirs[-20:]))
        ends = ["\n".join(lines[-300:]) for lines in (ours, theirs)]
        case("%s: both ends go to their end" % self.head, None not in codes and all(
            re.search(r"\d+ passed, \d+ failed, \d+ skipped, path MTU %d" % self.path_mtu, text)
            for text in ends), why)
        case("%s: only XRC is skipped" % self.head,
             all(cell.startswith("XRC") for cell in cells.skipped), cells.skipped)
        for row in self.rows:
            for who in ("we", "kernel"):
                passed, failed = self.counts.get((row, who), [0, 0])
                wrong = ["%s: %s" % (cell, reason) for (cell, by), reason in
                         cells.failed.items() if by == who and kind(cell) == row]
                case("%s: %s, requested by %s" % (
                    self.head, row, "us" if who == "we" else "the kernel"),
                     passed >= LEAST[row] and not failed,
                     "%d of %d\n%s" % (passed, LEAST[row], "\n".join(wrong)))
        case("%s: every kind is known" % self.head,
             {row for row, _ in self.counts} <= set(self.rows), self.counts)
        if not self.only:
            case("%s: the kernel differs where docs/interop.md says" % self.head,
                 KNOWN <= set(cells.failed), KNOWN - set(cells.failed))


def slow(the_bench):
    """What differs and takes its time."""
    the_bench.set_mtu(1500)
    for cell in sorted({cell for cell, _ in KNOWN_SLOW}):
        _, ours, _ = the_bench.tour(4, ["--only", cell])
        cells = bench.Cells(ours)
        want = {known for known in KNOWN_SLOW if known[0] == cell}
        case("the kernel still differs: " + cell,
             set(cells.failed) == want and len(cells.passed) == 2 - len(want), cells.failed)


def table(columns):
    print("# cells passed, requested by us / by the kernel (!: one failed)")
    for part in range(0, len(columns), 4):
        print("# %-26s" % "" + "".join("%18s" % c.head for c in columns[part:part + 4]))
        for row in LEAST:
            line = "# %-26s" % row
            for column in columns[part:part + 4]:
                both = [column.counts.get((row, who), [0, 0]) for who in ("we", "kernel")]
                line += "%18s" % (" / ".join(
                    str(passed) + "!" * bool(failed) for passed, failed in both)
                                  if row in column.rows else "")
            print(line)


def matrix():
    columns = [Column(version, mtu) for version in (4, 6) for mtu in (
        sorted(MTUS) if LONG else (1024, 4096))]
    if LONG:  # UC has no answer to loss
        columns += [Column(version, mtu, only, impair) for impair in (10000, 50000)
                    for version, mtu in ((4, 1024), (6, 4096)) for only in ("RC", "UD", "MW")]
    the_bench = bench.Bench()
    try:
        if not case("Linux boots", the_bench.guest.wait(120), the_bench.guest.said()):
            return
        print("# Linux %s, QEMU without KVM" % the_bench.guest.release)
        for column in columns:
            column.walk(the_bench)
        programs.walk(the_bench)
        if LONG:
            slow(the_bench)
        table(columns)
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
