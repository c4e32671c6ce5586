#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own test suite, as Debian's python3-pyverbs packages it, on the device of
`rocaded --local`. No test may fail. lib/pyverbs_skips.tsv lists the tests that are skipped, with the
reason why this device cannot run them: another test that is skipped, or a listed one that runs, is
a failed case."""

import fnmatch
import gzip
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import Daemon  # noqa: E402
from tap import case, run  # noqa: E402

SUITE = "/usr/share/doc/rdma-core/tests"
PYTHON = "/usr/bin/python3"
HERE = os.path.dirname(os.path.realpath(__file__))
LEAST = 270  # tests of rdma-core 44: 273
LIMIT_S = 300


class Skips:
    """The rows of the list: a pattern of test names, a pattern of the suite's text, the reason."""

    def __init__(self):
        with open(os.path.join(HERE, "lib/pyverbs_skips.tsv"), encoding="utf-8") as file:
            lines = [x.rstrip("\n") for x in file if x.strip() and not x.startswith("#")]
        self.rows = [x.split("\t") for x in lines]
        self.wrong = [x for x in lines if len(x.split("\t")) != 3 or not all(x.split("\t"))]

    def of(self, name):
        return [row for row in self.rows if fnmatch.fnmatchcase(name, row[0])]


def unpack(folder):
    """Debian compresses documentation of more than 4 KiB."""
    for name in os.listdir(SUITE):
        path = os.path.join(SUITE, name)
        opener = gzip.open if name.endswith(".gz") else open
        with opener(path, "rb") as packed:
            with open(os.path.join(folder, name.removesuffix(".gz")), "wb") as file:
                shutil.copyfileobj(packed, file)


def results():
    """Runs the suite. Returns (name, result, text) of each test, the exit status and the errors."""
    with tempfile.TemporaryDirectory(prefix="rocade-pyverbs-") as folder, Daemon() as daemon:
        unpack(folder)
        done = daemon.run(PYTHON, os.path.join(HERE, "lib/pyverbs_suite.py"), folder, "rocade0",
                          timeout_s=LIMIT_S)
        idle = daemon.idle()
    return [json.loads(line) for line in done.stdout.splitlines()], done, idle


def judge(skips, name, result, text):
    """Returns what is wrong with the result of a test, or None."""
    rows = skips.of(name)
    if result == "failed":
        return text
    if result == "passed":
        return "it runs, but the list of skips has it" if rows else None
    if not any(fnmatch.fnmatchcase(text, row[1]) for row in rows):
        return "it is skipped, which the list does not allow: " + text
    return None


def suite():
    if not case("the suite of python3-pyverbs is installed", os.path.isdir(SUITE),
                SUITE + " is missing: run tools/install-deps.sh"):
        return
    skips = Skips()
    case("each row of the list of skips has a name, a text and a reason", not skips.wrong,
         skips.wrong)
    tests, done, idle = results()
    for name, result, text in tests:
        wrong = judge(skips, name, result, text)
        # A case for each test that runs; the skipped ones are one case together.
        if wrong or result == "passed":
            case(name, not wrong, wrong)
    skipped = [name for name, result, _ in tests if result == "skipped"]
    unused = [row[0] for row in skips.rows if not fnmatch.filter(skipped, row[0])]
    case("each row of the list of skips is of a test that is skipped", not unused, unused)
    case("the suite runs to its end", done.returncode == 0 and len(tests) >= LEAST,
         "%d tests, status %s\n%s" % (len(tests), done.returncode, done.stderr))
    case("the daemon keeps nothing of the suite", idle)
    print("# %d tests: %d passed, %d skipped" % (
        len(tests), len([t for t in tests if t[1] == "passed"]), len(skipped)))


if __name__ == "__main__":
    sys.exit(run(suite))
