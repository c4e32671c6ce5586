#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rxe.py [WORD]...: the wire is the standard one, says Linux's rdma_rxe: every service and opcode that
it has (test/tour), requested by it and by us, IPv4 and IPv6, path MTU 1024 and 4096, data verified,
and what must fail with its status; then programs that nobody changed, and RDMA-CM.
ROCADE_TEST_LONG=1: every path MTU, and frames lost, doubled, reordered and bent on their way in
either direction. With words, only the columns whose heads have one of them, "programs" or "cm"."""
# test.sh: limit_s 900

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import bench  # noqa: E402
import cm  # noqa: E402
import programs  # noqa: E402
from tap import case  # noqa: E402
from testpmd import LONG  # noqa: E402

MTUS = {256: 576, 512: 700, 1024: 1500, 2048: 2200, 4096: 4200}
# How many cells of each kind there are, in each direction, those of KNOWN too.
LEAST = {
    "RC SEND": 16, "RC SEND_WITH_IMM": 16, "RC WRITE": 16, "RC WRITE_WITH_IMM": 16,
    "RC READ": 15, "RC CMP_AND_SWP": 2, "RC FETCH_AND_ADD": 2, "RC fence": 1,
    "RC solicited event": 1, "RC to itself": 1, "RC by ibv_wr_post": 8,
    "RC with SRQ SEND": 16, "RC with SRQ SEND_WITH_IMM": 16, "RC late receive": 2,
    "RC request that fails": 19,
    "MW type 1": 2, "MW type 2": 2, "MW type 2, SEND_WITH_INV": 7,
    "UC SEND": 16, "UC SEND_WITH_IMM": 16, "UC WRITE": 16, "UC WRITE_WITH_IMM": 16,
    "UC with SRQ SEND": 16, "UC with SRQ SEND_WITH_IMM": 16,
    "UC SEND longer than its receive": 1, "UC stream": 4, "UC with SRQ stream": 2,
    "UD SEND": 10, "UD SEND_WITH_IMM": 10, "UD with SRQ SEND": 10,
    "UD with SRQ SEND_WITH_IMM": 10, "UD multicast": 5, "UD headers": 2,
    "UD SEND longer than its receive": 1, "UD stream": 2, "UD with SRQ stream": 1,
}
FAILS = re.compile("RC.*(where|beyond|wrong|longer than|without a receive|to nobody)")
# Where the kernel differs (docs/interop.md): the cell, who requests in it.
KNOWN = {
    ("UD multicast by a member", "kernel"),
    ("UD header as its handle says", "kernel"),
    ("UD SEND longer than its receive", "we"),
    ("UC SEND longer than its receive", "we"),
    ("RC WRITE of 2 SGEs by ibv_wr_post", "kernel"),
    ("RC SEND longer than its receive", "we"),
    ("RC SEND longer than the path MTU", "we"),
    ("RC SEND into a receive with a wrong key", "we"),
    ("RC SEND_WITH_INV of a wrong key", "we"),
    ("RC READs beyond the depth", "we"),
    ("RC WRITE with a wrong local key", "kernel"),
}
# The same; they wait for something that does not come.
KNOWN_SLOW = {
    ("UD with the QP's own Q_Key", "kernel"),
    ("MW type 2, SEND_WITH_INV with its flag", "we"),
    ("RC ATOMIC_WRITE by ibv_wr_post", "we"),
    ("RC ATOMIC_WRITE by ibv_wr_post", "kernel"),
    ("RC WRITE to nobody, 7 retries", "kernel"),
    ("RC event QP_ACCESS_ERR", "we"),
    ("RC event QP_REQ_ERR", "we"),
    ("RC event COMM_EST", "we"),
    ("RC event QP_LAST_WQE_REACHED", "we"),
}


# It may come too slowly to be too much.
EITHER = {("RC READs beyond the depth", "kernel")}

# What it receives nothing of any more once a message was lost in part.
DEAF = {("UC stream of WRITE", "we"), ("UC stream of WRITE_WITH_IMM", "we"),
        ("UC with SRQ stream of SEND", "we"), ("UC with SRQ stream of SEND_WITH_IMM", "we")}


def kind(cell):
    """The row of the table that a cell belongs to."""
    if cell.endswith("by ibv_wr_post"):
        return "RC by ibv_wr_post"
    if FAILS.match(cell):
        return "RC request that fails"
    if "SEND_WITH_INV" in cell:
        return "MW type 2, SEND_WITH_INV"
    if cell.startswith("MW"):
        return cell.split(",")[0]
    if cell.endswith("a late receive"):
        return "RC late receive"
    if cell.startswith("UD multicast"):
        return "UD multicast"
    if cell.startswith("UD") and "header" in cell:
        return "UD headers"
    return re.sub(r" (\d+|unsignaled|of)( .*)?$", "", cell)


def count(cells):
    """{(kind, who requests): [passed, failed]}, but for what is known."""
    counts = {}
    for cell, who in cells.passed:
        counts.setdefault((kind(cell), who), [0, 0])[0] += 1
    for cell, who in set(cells.failed) - KNOWN - EITHER:
        counts.setdefault((kind(cell), who), [0, 0])[1] += 1
    return counts


class Column:
    """One walk through the tour: of the cells whose name contains a word, over a wire that loses so
    many of a million frames, and perhaps doubles, disorders and bends them."""

    def __init__(self, version, path_mtu, only="", loss=0, more=False):
        self.version, self.path_mtu, self.only, self.loss, self.more = \
            version, path_mtu, only, loss, more
        self.head = "IPv%d %d" % (version, path_mtu)
        if loss:
            self.head = "%s %s %g%%%s" % (self.head, only, loss / 1e4, "" if more else " loss")
        self.rows = [row for row in LEAST if only in row]
        self.counts = {}
        self.cells = bench.Cells([])

    def walk(self, the_bench):
        mtu = MTUS[self.path_mtu]
        the_bench.set_mtu(max(mtu, bench.IPV6_LEAST) if self.version == 6 else mtu)
        options = ["--path-mtu", str(self.path_mtu), "--only", self.only]
        for cell in sorted({cell for cell, _ in KNOWN_SLOW}):
            options += ["--skip", cell]
        device = []
        if self.loss:
            options += ["--wait", "180"]  # of 3 MiB, each packet of which is in danger
            device = ["impair=%d,%d,%d,%d" % (
                (self.loss,) * 3 + (self.loss // 10,) if self.more else (self.loss, 0, 0, 0))]
        if self.more:
            options.append("--copies")
        codes, ours, theirs = the_bench.tour(self.version, options, device,
                                             1800 if self.loss else 300)
        self.cells = bench.Cells(ours)
        self.counts = count(self.cells)
        self.judge(codes, ours, theirs)

    def judge(self, codes, ours, theirs):
        """A case for each kind and direction."""
        cells = self.cells
        why = "%s\n%s\n%s" % (codes, "\n".join(ours[-20:]), "\n".join(theirs[-20:]))
        ends = ["\n".join(lines[-300:]) for lines in (ours, theirs)]
        case("%s: both ends go to their end" % self.head, None not in codes and all(
            re.search(r"\d+ passed, \d+ failed, \d+ skipped, path MTU %d" % self.path_mtu, text)
            for text in ends), why)
        case("%s: only XRC is skipped" % self.head, all(
            cell.startswith("XRC") or self.path_mtu == 256 and "no path MTU below" in reason
            for cell, reason in cells.skipped.items()), cells.skipped)
        known = {k for k in KNOWN if self.only in k[0] and k[0] not in cells.skipped}
        for row in self.rows:
            for who in ("we", "kernel"):
                passed, failed = self.counts.get((row, who), [0, 0])
                wrong = ["%s: %s" % (cell, reason) for (cell, by), reason in
                         cells.failed.items() if by == who and kind(cell) == row]
                least = LEAST[row] - sum(kind(k) == row for k, by in known | EITHER if by == who)
                case("%s: %s, requested by %s" % (
                    self.head, row, "us" if who == "we" else "the kernel"),
                     passed >= least and not failed,
                     "%d of %d\n%s" % (passed, least, "\n".join(wrong)))
        case("%s: every kind is known" % self.head,
             {row for row, _ in self.counts} <= set(self.rows), self.counts)
        if not self.loss:
            case("%s: the kernel differs where docs/interop.md says" % self.head,
                 known <= set(cells.failed), known - set(cells.failed))
            for cell, who in sorted(known if self.head == "IPv4 1024" else ()):
                print("# differs: %s, requested by %s: %s" % (
                    cell, "us" if who == "we" else "the kernel", cells.failed.get((cell, who))))
        few = {cell: n for cell, n in cells.arrived.items() if self.few(cell, n)}
        case("%s: what is not lost arrives" % self.head, not few, few)
        if self.only == "stream" and self.loss >= 50000 and not self.more:
            deaf = [cells.arrived.get(cell, (0, 1)) for cell in DEAF]
            case("%s: the kernel is still deaf after a loss" % self.head,
                 sum(n for n, _ in deaf) < sum(of for _, of in deaf) * 3 / 4, deaf)

    def few(self, cell, arrived):
        """Whether more messages of a stream are missing than a few lost frames make."""
        n, of = arrived
        return n == 0 if self.loss and cell in DEAF else n < of / 2


def slow(the_bench):
    """What differs and takes its time."""
    the_bench.set_mtu(1500)
    for cell in sorted({cell for cell, _ in KNOWN_SLOW}):
        _, ours, _ = the_bench.tour(4, ["--only", cell, "--wait", "5"])
        cells = bench.Cells(ours)
        want = {known for known in KNOWN_SLOW if known[0] == cell}
        case("the kernel still differs: " + cell,
             set(cells.failed) == want and len(cells.passed) == 2 - len(want), cells.failed)


def impaired(columns):
    """The injection did what it should in both directions."""
    total = {}
    for column in columns:
        for way, counts in column.cells.impaired.items():
            for name, n in counts.items():
                total[way, name] = total.get((way, name), 0) + n
        for cell, who in column.cells.arrived if column.loss else ():
            print("# %s: %s, requested by %s: %d of %d arrived" % (
                (column.head, cell, "us" if who == "we" else "the kernel") +
                column.cells.arrived[cell, who]))
    print("# impaired: %s" % ", ".join("%s %s %d" % (way, name, n) for (way, name), n in
                                       sorted(total.items())))
    case("frames were lost, doubled, delayed and bent in both directions",
         len(total) == 8 and all(total.values()), total)


def table(columns):
    print("# cells passed, requested by us / by the kernel (!: one failed)")
    for part in range(0, len(columns), 4):
        print("# %-32s" % "" + "".join("%25s" % c.head for c in columns[part:part + 4]))
        for row in LEAST:
            if not any(row in c.rows for c in columns[part:part + 4]):
                continue
            line = "# %-32s" % row
            for column in columns[part:part + 4]:
                both = [column.counts.get((row, who), [0, 0]) for who in ("we", "kernel")]
                line += "%25s" % (" / ".join(
                    str(passed) + "!" * bool(failed) for passed, failed in both)
                                  if row in column.rows else "")
            print(line)
    print("# %d cells passed, %d failed" % tuple(sum(
        n[i] for column in columns for n in column.counts.values()) for i in (0, 1)))


def all_columns():
    columns = [Column(version, mtu) for version in (4, 6) for mtu in (
        sorted(MTUS) if LONG else (1024, 4096))]
    # UC has no answer to loss, so of it only the streams can bear it.
    kinds = [("RC", True), ("UD", True), ("MW", True), ("stream", True), ("stream", False)]
    if LONG:
        columns += [Column(version, mtu, only, loss, more) for loss in (10000, 50000)
                    for version, mtu in ((4, 1024), (6, 4096)) for only, more in kinds]
    return columns


def matrix(the_bench):
    words = sys.argv[1:]

    def wanted(name):
        return not words or any(word in name for word in words)

    columns = [column for column in all_columns() if wanted(column.head)]
    for column in columns:
        column.walk(the_bench)
    if wanted("programs"):
        programs.walk(the_bench)
    if wanted("cm"):
        cm.walk(the_bench)
    if LONG and wanted("slow"):
        slow(the_bench)
    if any(column.loss for column in columns):
        impaired(columns)
    table(columns)


if __name__ == "__main__":
    sys.exit(bench.main(matrix))
