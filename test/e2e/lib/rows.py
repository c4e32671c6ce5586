# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table "Larger programs" of docs/programs.md, printed by the tests that run the programs.
The page has what one run has printed; time and bytes differ from run to run."""

import itertools
import os
import re

import process
from tap import case
from testpmd import SOURCE

HEAD = "| program | version | transport | time | bytes | result |\n|---|---|---|---|---|---|\n"


def version(package):
    """Returns the version of an installed Debian package: without epoch, and without what Debian has added."""
    said = process.run(["dpkg-query", "-W", "-f", "${Version}", package], check=True).stdout
    return re.match(r"(?:\d+:)?([0-9.]+[0-9](~git\d+)?)", said)[1]


def row(program, package, transport, seconds, moved, result, built=None):
    """Prints the row of a program that has passed, and checks that the page has one for it. built: the
    version of a program that was built from source, and has no package."""
    print("# | %s | %s | %s | %.1f s | %s | %s |" % (
        program, built or version(package), transport, seconds, "{:,}".format(moved), result), flush=True)
    with open(os.path.join(SOURCE, "docs", "programs.md"), encoding="utf-8") as file:
        table = file.read().partition(HEAD)[2].splitlines()
    keys = [[cell.strip() for cell in line.split("|")] for line in itertools.takewhile(
        lambda line: line.startswith("|"), table)]
    case("docs/programs.md has a row of %s, %s" % (program, transport), any(
        key[1] == program and key[3] == transport and key[6] == result for key in keys),
        "add the row that is printed above to the table")
