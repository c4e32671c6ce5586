#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The programs of test/e2e that tools/test.sh runs beside each other (tools/lib/e2e.sh): two at a time, each
with its results and logs, and with a failed case if it leaves none."""

import os
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE = os.path.abspath(sys.argv[1])
import cases  # noqa: E402

RUNNER = """set -u -o pipefail
top=$PWD out=$1 long=no isolated=no results=$1/results
shift
mkdir "$out/log"
. tools/lib/session.sh
. tools/lib/e2e.sh
session_begin
e2e_beside e2e /nonexistent "$@"
echo "ended with $results"
"""
PASSES = "[ \"$ROCADE_BESIDE\" = 2 ] || exit 1; echo 'ok 1 - it runs'; echo 1..1\n"
# Opening a pipe waits until another program opens it, too.
ONE = "echo begin >>order; echo >there; read -r _ <back; %secho end >>order\n" % PASSES
OTHER = "echo begin >>order; read -r _ <there; echo >back; %secho end >>order\n" % PASSES
NEXT = "echo begin >>order; %secho end >>order\n" % PASSES
FAILS = "echo 'not ok 1 - it runs'; echo '# the reason'; echo 1..1; exit 1\n"
SILENT = "exit 0\n"
# The parent of its parent, timeout(1), is the shell that would write its results.
ORPHANED = PASSES + "read -r _ _ _ parent _ </proc/$PPID/stat; kill -KILL \"$parent\"\n"
WAITS = "echo $$ >pid; echo >started; read -r _ <never\n"


class Run:
    """A runner of these programs: a dict of their texts."""

    def __init__(self, folder, texts):
        self.folder, self.out = folder, os.path.join(folder, "out")
        os.mkdir(self.out)
        for name in ("there", "back", "started", "never"):
            os.mkfifo(os.path.join(folder, name))
        for name, text in texts.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("#!/bin/bash\ncd '%s' || exit 1\n%s" % (folder, text))
            os.chmod(os.path.join(folder, name), 0o755)
        self.process = subprocess.Popen(
            ["bash", "-c", RUNNER, "bash", self.out, *(os.path.join(folder, name) for name in texts)],
            cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def end(self):
        """Returns what it has printed."""
        return self.process.communicate()[0]

    def rows(self):
        """Returns result, case and reason of each case, sorted."""
        lines = [line.split("\t") for line in self.read("out/results").splitlines()]
        return sorted((result, case, why) for result, _, case, why in lines)


def most_at_a_time(order):
    """Returns how many ran at the same time at most, and how many in all."""
    now = most = 0
    for line in order.splitlines():
        now += 1 if line == "begin" else -1
        most = max(most, now)
    return most, order.count("begin")


def beside():
    texts = {"one.py": ONE, "other.py": OTHER, "next.py": NEXT, "last.py": NEXT}
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, texts)
        said = run.end()
        yield "two that wait for each other", run.rows(), sorted(
            ("passed", "%s: it runs" % name, "") for name in texts)
        yield "two at a time", most_at_a_time(run.read("order")), (2, 4)
        yield "the runner's own results afterwards", said.splitlines()[-1], "ended with %s/results" % run.out
        yield "a log for each", sorted(os.listdir(os.path.join(run.out, "log"))), sorted(
            "e2e-%s.%s" % (name, kind) for name in texts for kind in ("err", "tap"))


def failures():
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"fails.py": FAILS, "orphaned.py": ORPHANED, "silent.py": SILENT, "next.py": NEXT})
        said = run.end()
        yield "those that fail, have no case, and are without a runner", run.rows(), [
            ("failed", "fails.py: it runs", "the reason"),
            ("failed", "orphaned.py: runs to its end", "exit status 137"),
            ("failed", "silent.py: cases", "reported none"),
            ("passed", "next.py: it runs", "")]
        yield "they are shown", [name for name in ("fails.py: it runs", "orphaned.py: runs", "silent.py: cases")
                                 if "FAILED " + name not in said], []


def interrupted():
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"waits.py": WAITS})
        run.read("started")
        run.process.send_signal(signal.SIGTERM)
        run.end()
        yield "an interrupted runner ends its programs", (
            run.process.returncode, os.path.exists("/proc/" + run.read("pid").strip())), (130, False)


def listed():
    with open(os.path.join(SOURCE, "test/e2e/lib/beside"), encoding="utf-8") as file:
        names = [line.strip() for line in file if not line.startswith("#")]
    folder = os.path.join(SOURCE, "test/e2e")
    yield "each program that may run beside others exists, once", [
        name for name in names if not os.access(os.path.join(folder, name), os.X_OK) or names.count(name) > 1], []


if __name__ == "__main__":
    sys.exit(cases.run([*beside(), *failures(), *interrupted(), *listed()]))
