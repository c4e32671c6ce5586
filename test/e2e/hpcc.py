#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The HPC Challenge: four ranks of it, under Open MPI as Debian packages it. All its residuals must
pass. The long run has larger problems, two hosts, and MPICH, for which it builds Debian's source
(lib/hpcc_source.py)."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import hpcc_source  # noqa: E402
import mpi_run  # noqa: E402
from daemon import BUILD, Daemon  # noqa: E402
from hosts import joined  # noqa: E402
from mpi_run import MPICH, OPEN_MPI  # noqa: E402
from ran import Ran  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import is_root  # noqa: E402

LONG = os.environ.get("ROCADE_TEST_LONG") == "1"
CACHE = os.environ.get("ROCADE_CACHE") or os.path.join(BUILD, "hpcc-cache")
RANKS = 4
ORDER = 1000 if LONG else 200  # of the matrix of HPL, from which hpcc derives all sizes
TIMEOUT_S = 600
# hpccinf.txt: the first number of each line, in hpcc's order. 8: device out, a file. 2 by 2
# processes. PTRANS has no sizes of its own.
INPUT = ["title", "title", "HPL.out", "8", "1", str(ORDER), "1", "32", "0", "1", "2", "2", "16.0",
         "1", "2", "1", "4", "1", "2", "1", "1", "1", "1", "1", "1", "2", "64", "0", "0", "1", "8",
         "separator", "0", "1024", "0", "32"]
# Of the report: what each part says of its result, and how often at least.
PASSES = [("PTRANS and HPL", r"[1-9]\d* tests completed and passed residual checks", 2),
          ("HPL", r"\.\.\. PASSED$", 1),
          ("PTRANS", r"^WALL .* PASSED ", 5),
          ("MPIRandomAccess", r"^Found 0 errors in \d+ locations \(passed\)", 4),
          ("STREAM", r"^Solution Validates", 1),
          ("all nodes", r"^Node\(s\) with error 0$", 8),
          ("the whole", r"^Success=1$", 1)]
FAILS = re.compile(r"^.*([1-9]\d* tests completed and failed|FAILED|\(failed\)|"
                   r"Node\(s\) with error [1-9]|_Errors=[1-9]).*$", re.M)
FFT_ERROR = 1e-12


def complaints(report):
    """Returns what is wrong with a report."""
    wrong = [found[0] for found in FAILS.finditer(report)]
    wrong += ["%s: nothing passed" % name for name, pattern, least in PASSES
              if len(re.findall(pattern, report, re.M)) < least]
    residual = re.search(r"^Scaled residual: (\S+)", report, re.M)
    if not residual or not float(residual[1]) < 16:
        wrong.append("DGEMM: %s" % residual)
    error = re.search(r"^MPIFFT_maxErr=(\S+)", report, re.M)
    if not error or not 0 <= float(error[1]) < FFT_ERROR:
        wrong.append("FFT: %s" % error)
    return wrong


def challenge(mpi, program, hosts, options=(), before=()):
    """Runs hpcc in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="ascii") as file:
            file.write("\n".join(INPUT) + "\n")
        with Ran(hosts) as ran:
            done = mpi_run.start_ranks(mpi, hosts[0], RANKS, [program], options, before, TIMEOUT_S,
                                       folder)
        path = os.path.join(folder, "hpccoutf.txt")
        report = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                report = file.read()
    wrong = complaints(report)
    # The pairs of its bandwidth test send each other at least one message of this size. Of the pairs
    # of ranks of two hosts, two of three are across.
    size = re.search(r"bandwidth measurements were done with +(\d+) bytes", report)
    least = RANKS * (RANKS - 1) * 2 * int(size[1]) if size else 1
    if len(hosts) == 2:
        least = least * 2 // 3
    name = "%d ranks of %s" % (RANKS, mpi.name)
    if ran.case("hpcc, %s: every residual passes" % name,
                done.returncode == 0 and size and not wrong, least, "exit %d, %s\n%s%s" % (
                    done.returncode, wrong, done.stdout[-2000:], done.stderr[-2000:])):
        ran.row("HPC Challenge, " + name, "hpcc", "RC over UCX", "residuals passed")


def programs(folder):
    """Returns each library with its program."""
    found = [(OPEN_MPI, "hpcc")]
    if LONG:
        source = hpcc_source.fetch(CACHE)
        found.append((MPICH, hpcc_source.build(source, folder, MPICH.compiler)))
    return found


def one_host(found):
    with Daemon() as daemon:
        for mpi, program in found:
            challenge(mpi, program, [daemon])


def two_hosts(found, folder):
    if not is_root():
        skip("two hosts", "needs root")
        return
    with joined() as hosts:
        for mpi, program in found:
            challenge(mpi, program, hosts, *mpi_run.two_hosts(mpi, folder, hosts, RANKS // 2))


def wrong_reports():
    """A report with a failure must be seen."""
    for line in ("Found 3 errors in 262144 locations (failed).", "MPIRandomAccess_Errors=3",
                 "Node(s) with error 2", "    1 tests completed and failed residual checks."):
        case("seen as a failure: " + line.strip(), line in complaints(line))
    case("an empty report is a failure", len(complaints("")) == len(PASSES) + 2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = programs(folder)
        one_host(found)
        if LONG:
            two_hosts(found, folder)


if __name__ == "__main__":
    sys.exit(run(wrong_reports, main))
