#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rxe.py [WORD]...: interoperability with Linux's rdma_rxe. Runs the conformance matrix
(test/matrix): every service and opcode that rdma_rxe has, requested by either end, over IPv4 and
IPv6, path MTU 1024 and 4096, data verified, and requests that must fail with their status. Then
runs unchanged programs, RDMA-CM, and the kernel's iSER initiator. Rocade's port is net_af_packet. RC also runs over net_af_xdp,
and the requests of ibv_wr_post and SENDs into an SRQ over net_tap and net_bonding.

ROCADE_TEST_LONG=1 adds every path MTU, every case over net_af_xdp and net_tap, RC over net_bonding,
and frames lost, duplicated, reordered and corrupted in both directions. With words, runs only the
columns whose heads contain one of them, "programs", "cm" or "iser"."""
# test.sh: limit_s 1800

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import bench  # noqa: E402
import cm  # noqa: E402
import iser  # noqa: E402
import programs  # noqa: E402
from tap import case  # noqa: E402
from testpmd import LONG  # noqa: E402

MTUS = {256: 576, 512: 700, 1024: 1500, 2048: 2200, 4096: 4200}
# The number of cases of each kind in each direction, including those of KNOWN.
LEAST = {
    "RC SEND": 16, "RC SEND_WITH_IMM": 16, "RC WRITE": 16, "RC WRITE_WITH_IMM": 16,
    "RC READ": 15, "RC CMP_AND_SWP": 2, "RC FETCH_AND_ADD": 2, "RC fence": 1,
    "RC solicited event": 1, "RC connected to itself": 1, "RC by ibv_wr_post": 8,
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
FAILS = re.compile("RC.*(beyond|wrong|longer than|without a receive|to a destroyed QP)")
# Where the kernel differs (docs/interop.md): the case and its requester.
KNOWN = {
    ("UD multicast by a member", "kernel"),
    ("UD header fields of the address handle", "kernel"),
    ("UD SEND longer than its receive", "rocade"),
    ("UC SEND longer than its receive", "rocade"),
    ("RC WRITE of 2 SGEs by ibv_wr_post", "kernel"),
    ("RC SEND longer than its receive", "rocade"),
    ("RC SEND longer than the path MTU", "rocade"),
    ("RC SEND into a receive with a wrong key", "rocade"),
    ("RC SEND_WITH_INV of a wrong key", "rocade"),
    ("RC READs beyond the depth", "rocade"),
    ("RC WRITE with a wrong local key", "kernel"),
}
# As KNOWN, and slow: the case waits for something that does not arrive.
KNOWN_SLOW = {
    ("UD with the QP's own Q_Key", "kernel"),
    ("MW type 2, SEND_WITH_INV flag in the completion", "rocade"),
    ("RC ATOMIC_WRITE by ibv_wr_post", "rocade"),
    ("RC ATOMIC_WRITE by ibv_wr_post", "kernel"),
    ("RC WRITE to a destroyed QP, 7 retries", "kernel"),
    ("RC event QP_ACCESS_ERR", "rocade"),
    ("RC event QP_REQ_ERR", "rocade"),
    ("RC event COMM_EST", "rocade"),
    ("RC event QP_LAST_WQE_REACHED", "rocade"),
}


# Depends on timing: the kernel may send its READs too slowly to exceed the depth.
EITHER = {("RC READs beyond the depth", "kernel")}

# Streams of which the kernel receives nothing after the partial loss of one message.
ENDS_AT_LOSS = {("UC stream of WRITE", "rocade"), ("UC stream of WRITE_WITH_IMM", "rocade"),
                ("UC with SRQ stream of SEND", "rocade"),
                ("UC with SRQ stream of SEND_WITH_IMM", "rocade")}


def kind(name):
    """Returns the row of the table that a case belongs to."""
    if name.endswith("by ibv_wr_post"):
        return "RC by ibv_wr_post"
    if FAILS.match(name):
        return "RC request that fails"
    if "SEND_WITH_INV" in name:
        return "MW type 2, SEND_WITH_INV"
    if name.startswith("MW"):
        return name.split(",")[0]
    if name.endswith("a late receive"):
        return "RC late receive"
    if name.startswith("UD multicast"):
        return "UD multicast"
    if name.startswith("UD") and "header" in name:
        return "UD headers"
    return re.sub(r" (\d+|unsignaled|of)( .*)?$", "", name)


def shown(requester):
    return "Rocade" if requester == "rocade" else "the kernel"


def count(results):
    """Returns {(kind, requester): [passed, failed]}, without the known differences."""
    counts = {}
    for name, requester in results.passed:
        counts.setdefault((kind(name), requester), [0, 0])[0] += 1
    for name, requester in set(results.failed) - KNOWN - EITHER:
        counts.setdefault((kind(name), requester), [0, 0])[1] += 1
    return counts


class Column:
    """One run of the matrix. only: a word that the name of a case must contain. loss: lost frames
    per million. more: frames are also duplicated, reordered and corrupted. lossy: the wire may drop
    frames by itself."""

    def __init__(self, version, path_mtu, only="", loss=0, more=False, driver="net_af_packet",
                 lossy=False):
        self.version, self.path_mtu, self.only, self.loss, self.more = \
            version, path_mtu, only, loss, more
        self.lossy = lossy or loss != 0
        self.head = "IPv%d %d" % (version, path_mtu)
        self.driver = driver
        if driver != "net_af_packet":
            self.head = " ".join([driver, self.head] + [only] * bool(only))
        if loss:
            self.head = "%s %s %g%%%s" % (self.head, only, loss / 1e4, "" if more else " loss")
        self.rows = [row for row in LEAST if only in row]
        self.counts = {}
        self.results = bench.Results([])

    def walk(self, the_bench):
        mtu = MTUS[self.path_mtu]
        the_bench.driver = self.driver
        the_bench.set_mtu(max(mtu, bench.IPV6_LEAST) if self.version == 6 else mtu)
        options = ["--path-mtu", str(self.path_mtu), "--only", self.only]
        for name in sorted({name for name, _ in KNOWN_SLOW}):
            options += ["--skip", name]
        device = []
        if self.lossy:
            options += ["--lossy", "--wait", "180"]  # a case has 3 MiB, and each of its packets may be lost
        if self.loss:
            device = ["impair=%d,%d,%d,%d" % (
                (self.loss,) * 3 + (self.loss // 10,) if self.more else (self.loss, 0, 0, 0))]
        if self.more:
            options.append("--copies")
        codes, local, remote = the_bench.matrix(self.version, options, device,
                                                1800 if self.lossy else 300)
        the_bench.driver = "net_af_packet"
        self.results = bench.Results(local)
        self.counts = count(self.results)
        self.check(codes, local, remote)

    def check(self, codes, local, remote):
        """Prints a case for each kind and direction."""
        results = self.results
        why = "%s\n%s\n%s" % (codes, "\n".join(local[-20:]), "\n".join(remote[-20:]))
        ends = ["\n".join(lines[-300:]) for lines in (local, remote)]
        case("%s: both ends run to completion" % self.head, None not in codes and all(
            re.search(r"\d+ passed, \d+ failed, \d+ skipped, path MTU %d" % self.path_mtu, text)
            for text in ends), why)
        case("%s: only XRC is skipped" % self.head, all(
            name.startswith("XRC") or self.path_mtu == 256 and "no path MTU below" in reason
            for name, reason in results.skipped.items()), results.skipped)
        known = {k for k in KNOWN if self.only in k[0] and k[0] not in results.skipped}
        for row in self.rows:
            for requester in ("rocade", "kernel"):
                passed, failed = self.counts.get((row, requester), [0, 0])
                wrong = ["%s: %s" % (name, reason) for (name, by), reason in
                         results.failed.items() if by == requester and kind(name) == row]
                least = LEAST[row] - sum(kind(k) == row for k, by in known | EITHER
                                         if by == requester)
                case("%s: %s, requested by %s" % (self.head, row, shown(requester)),
                     passed >= least and not failed,
                     "%d of %d\n%s" % (passed, least, "\n".join(wrong)))
        case("%s: every case is of a known kind" % self.head,
             {row for row, _ in self.counts} <= set(self.rows), self.counts)
        if not self.loss:
            case("%s: the kernel differs as docs/interop.md lists" % self.head,
                 known <= set(results.failed), known - set(results.failed))
            for name, requester in sorted(known if self.head == "IPv4 1024" else ()):
                print("# differs: %s, requested by %s: %s" % (
                    name, shown(requester), results.failed.get((name, requester))))
        few = {key: n for key, n in results.arrived.items() if self.too_few(key, n)}
        case("%s: messages without a lost frame arrive" % self.head, not few, few)
        if self.only == "stream" and self.loss >= 50000 and not self.more:
            ended = [results.arrived.get(key, (0, 1)) for key in ENDS_AT_LOSS]
            case("%s: the kernel still receives nothing after a loss" % self.head,
                 sum(n for n, _ in ended) < sum(of for _, of in ended) * 3 / 4, ended)

    def too_few(self, key, arrived):
        """Whether more messages of a stream are missing than the lost frames explain."""
        n, of = arrived
        return n == 0 if self.lossy and key in ENDS_AT_LOSS else n < of / 2


def slow(the_bench):
    """Runs the known differences that take long."""
    the_bench.set_mtu(1500)
    for name in sorted({name for name, _ in KNOWN_SLOW}):
        _, local, _ = the_bench.matrix(4, ["--only", name, "--wait", "5"])
        results = bench.Results(local)
        want = {known for known in KNOWN_SLOW if known[0] == name}
        case("the kernel still differs: " + name,
             set(results.failed) == want and len(results.passed) == 2 - len(want), results.failed)


def impaired(columns):
    """Checks that every impairment happened in both directions."""
    total = {}
    for column in columns:
        for way, counts in column.results.impaired.items():
            for name, n in counts.items():
                total[way, name] = total.get((way, name), 0) + n
        for name, requester in column.results.arrived if column.loss else ():
            print("# %s: %s, requested by %s: %d of %d arrived" % (
                (column.head, name, shown(requester)) + column.results.arrived[name, requester]))
    print("# impaired: %s" % ", ".join("%s %s %d" % (way, name, n) for (way, name), n in
                                       sorted(total.items())))
    case("frames were lost, duplicated, delayed and corrupted in both directions",
         len(total) == 8 and all(total.values()), total)


def table(columns):
    print("# cases passed, requested by Rocade / by the kernel (!: one failed)")
    for part in range(0, len(columns), 3):
        print("# %-32s" % "" + "".join("%37s" % c.head for c in columns[part:part + 3]))
        for row in LEAST:
            if not any(row in c.rows for c in columns[part:part + 3]):
                continue
            line = "# %-32s" % row
            for column in columns[part:part + 3]:
                both = [column.counts.get((row, by), [0, 0]) for by in ("rocade", "kernel")]
                line += "%37s" % (" / ".join(
                    str(passed) + "!" * bool(failed) for passed, failed in both)
                                  if row in column.rows else "")
            print(line)
    print("# %d cases passed, %d failed" % tuple(sum(
        n[i] for column in columns for n in column.counts.values()) for i in (0, 1)))


def all_columns():
    columns = [Column(version, mtu) for version in (4, 6) for mtu in (
        sorted(MTUS) if LONG else (1024, 4096))]
    columns += [Column(4, 1024, driver="net_af_xdp"), Column(6, 2048, driver="net_af_xdp")] \
        if LONG else [Column(6, 2048, "RC", driver="net_af_xdp")]
    # The processes behind the bond drop frames when a ring is full. UC and UD do not send these again
    # (IBA 9.8.2, 9.8.3): a message of theirs may be lost, and the matrix sends another one.
    for driver, words in (("net_tap", ["", ""] if LONG else ["ibv_wr_post", "with SRQ SEND"]),
                          ("net_bonding", ["RC", "RC"] if LONG else [
                              "ibv_wr_post", "RC with SRQ SEND"])):
        columns += [Column(version, 1024, only, driver=driver)
                    for version, only in zip((4, 6), words)]
    if LONG:
        columns += [Column(version, 1024, only, driver="net_bonding", lossy=True)
                    for version in (4, 6) for only in ("UC", "UD")]
    # At these rates a UC message of 1 MiB hardly ever arrives whole: only streams of UC.
    kinds = [("RC", True), ("UD", True), ("MW", True), ("stream", True), ("stream", False)]
    if LONG:
        columns += [Column(version, mtu, only, loss, more) for loss in (10000, 50000)
                    for version, mtu in ((4, 1024), (6, 4096)) for only, more in kinds]
    return columns


class RxeBench(bench.Bench):
    modules, programs = iser.MODULES, iser.PROGRAMS


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
    if wanted("iser"):
        iser.walk(the_bench)
    if LONG and wanted("slow"):
        slow(the_bench)
    if any(column.loss for column in columns):
        impaired(columns)
    table(columns)


if __name__ == "__main__":
    sys.exit(bench.main(matrix, RxeBench))
