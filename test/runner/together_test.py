#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The programs of test/e2e that tools/lib/e2e.sh runs together: two at a time, each once, with its results and
logs, and with a failed case if it leaves none. Those that run alone come before."""

import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE = os.path.abspath(sys.argv[1])
import cases  # noqa: E402

RUNNER = """set -u -o pipefail
top=$1 out=$1/out long=no isolated=no turns=no jobs=2 loops=0 results=$1/out/results
. tools/lib/session.sh
. tools/lib/e2e.sh
e2e_hugepages() { :; }
%(isolate)s
e2e_at_a_time() { echo %(count)d; }
check() { shift 2; "$@" && echo "checked"; }
session_begin
for ((round = 0; round < %(rounds)d; round++)); do e2e e2e /nonexistent; done
"""
PASSES = "echo 'ok 1 - it runs'; echo 1..1\n"
# Opening a pipe waits until another program opens it, too.
ONE = "echo begin >>order; echo >there; read -r _ <back; %secho end >>order\n" % PASSES
OTHER = "echo begin >>order; read -r _ <there; echo >back; %secho end >>order\n" % PASSES
NEXT = "echo begin >>order; %secho end >>order\n" % PASSES
ALONE = "# test.sh: alone it says so\necho begin >>order; %secho alone >>order; echo end >>order\n" % PASSES
FAILS = "echo 'not ok 1 - it runs'; echo '# the reason'; echo 1..1; exit 1\n"
SILENT = "exit 0\n"
# The parent of its parent, timeout(1), is the worker that would write its results. The program then waits for ever.
ORPHANED = PASSES + ("echo $$ >pid; read -r _ _ _ parent _ </proc/$PPID/stat; kill -KILL \"$parent\"\n"
                     "read -r _ <goes_on\n")
OWN = """[ "$(cat /proc/1/comm)" = isolated.sh ] && echo 'ok 1 - processes'
[ "$(stat -c %%d /run)" != %d ] && echo 'ok 2 - /run'
[ "$(ip -o link | wc -l)" = 1 ] && echo 'ok 3 - interfaces'
echo 1..3
""" % os.stat("/run").st_dev
# Opening `held` waits until the test does, too. It ends with the last process that has it open.
HOLDS = "exec 3>held; sleep 600 & echo >started; wait; %s" % PASSES
STARTS = """top=$PWD; . tools/lib/session.sh; session_begin
starts() { sleep 600 & echo $! >"$1"; wait; }
worker starts "$1"; workers_wait
"""
WAITS = "echo $$ >pid; echo >started; read -r _ <goes_on; %s" % PASSES


class Run:
    """A runner of these programs: a dict of their texts. count: how many at a time. isolated: in namespaces."""

    def __init__(self, folder, texts, count=2, rounds=1, isolated=False):
        self.folder = folder
        for name in ("out/log", "test/e2e"):
            os.makedirs(os.path.join(folder, name))
        for name in ("there", "back", "started", "goes_on", "held"):
            os.mkfifo(os.path.join(folder, name))
        with open(os.path.join(folder, "out/results"), "w", encoding="utf-8"):
            pass
        for name, text in texts.items():
            path = os.path.join(folder, "test/e2e", name)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/bash\ncd '%s' || exit 1\n%s" % (folder, text))
            os.chmod(path, 0o755)
        script = RUNNER % {"count": count, "rounds": rounds,
                           "isolate": "" if isolated else "can_isolate() { return 1; }"}
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", folder], cwd=SOURCE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=dict(os.environ, TMPDIR=folder))

    def read(self, name):
        """What is in a file. A pipe: when a program has written to it."""
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def tell(self, name):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write("\n")

    def end(self):
        """Returns what it has printed, when it and all that it has started have ended."""
        return self.process.communicate()[0]

    def rows(self):
        """Returns result, case and reason of each case, sorted."""
        lines = [line.split("\t") for line in self.read("out/results").splitlines()]
        return sorted((result, case, why) for result, _, case, why in lines)


def most_at_a_time(order):
    """Returns how many ran at the same time at most, and how many in all."""
    now = most = 0
    for line in order.splitlines():
        now += {"begin": 1, "end": -1}.get(line, 0)
        most = max(most, now)
    return most, order.count("begin")


def together():
    texts = {"a.py": ONE, "b.sh": NEXT, "c.py": NEXT, "d.py": NEXT, "e.py": ALONE, "f.py": OTHER}
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, texts)
        said = run.end()
        order = run.read("order")
        yield "each program runs", run.rows(), sorted(("passed", "%s: it runs" % name, "") for name in texts)
        # The shell lists those that end in .sh first.
        yield "the second and the last wait for each other: two at a time, each once", most_at_a_time(order), (2, 6)
        yield "one that runs alone comes first", order.splitlines()[:3], ["begin", "alone", "end"]
        yield "what it says of a program is together", [
            re.search(r"  %s: 1 passed, 0 failed, 0 skipped\n  \(\d+ s\)\n" % re.escape(name), said) is not None
            for name in texts], [True] * 6
        yield "there were programs", said.splitlines()[-1], "checked"
        yield "a log for each", sorted(os.listdir(os.path.join(folder, "out/log"))), sorted(
            "e2e-%s.%s" % (name, kind) for name in texts for kind in ("err", "tap"))


def one_after_another():
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {name + ".py": NEXT for name in "abc"}, count=1)
        run.end()
        yield "one at a time", most_at_a_time(run.read("order")), (1, 3)


def repeated():
    """As with --repeat of tools/test.sh."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"a.py": ONE, "b.py": NEXT, "c.py": ALONE, "d.py": OTHER}, rounds=2)
        run.end()
        order = run.read("order")
        yield "each program runs in each round", run.rows(), sorted(
            ("passed", "%s: it runs" % name, "") for name in ("a.py", "b.py", "c.py", "d.py") * 2)
        yield "two at a time in each round", most_at_a_time(order), (2, 8)
        yield "a round begins when all programs of the one before have ended", [
            number for number, line in enumerate(order.splitlines()) if line == "alone"], [1, 10]


def failures():
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"fails.py": FAILS, "orphaned.py": ORPHANED, "silent.py": SILENT, "y.py": NEXT, "z.py": NEXT})
        said = run.end()
        yield "programs that fail, have no case, and whose worker was killed", run.rows(), [
            ("failed", "fails.py: it runs", "the reason"),
            ("failed", "orphaned.py: runs to its end", ""),
            ("failed", "silent.py: cases", "reported none"),
            ("passed", "y.py: it runs", ""),
            ("passed", "z.py: it runs", "")]
        yield "a program ends with its worker", runs(run.read("pid")), False
        yield "they are shown", [name for name in ("fails.py: it runs", "orphaned.py: runs", "silent.py: cases")
                                 if "FAILED " + name not in said], []


def runs(pid):
    """Whether the process runs; a zombie does not."""
    try:
        with open("/proc/%s/stat" % pid.strip(), encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def interrupted():
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"waits.py": WAITS})
        run.read("started")
        run.process.send_signal(signal.SIGTERM)
        said = run.end()
        yield "an interrupted runner ends its programs", (run.process.returncode, runs(run.read("pid"))), (130, False)
        yield "and says so", "interrupted; restoring" in said, True
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"a.py": WAITS, "b.py": NEXT}, count=1)
        run.read("started")
        run.process.kill()
        run.process.wait()
        run.tell("goes_on")
        run.end()
        yield "one that was killed begins no further program", os.path.exists(os.path.join(folder, "order")), False


def held(pipe):
    """Whether a process has this pipe open, whose reader this is."""
    try:
        return os.read(pipe, 1) != b""
    except BlockingIOError:
        return True


def workers(run):
    with open("/proc/%d/task/%d/children" % (run.process.pid, run.process.pid), encoding="utf-8") as file:
        return [int(pid) for pid in file.read().split()]


def isolated():
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"own.py": OWN, "y.py": NEXT}, isolated=True)
        run.end()
        yield "a program has its own namespaces", run.rows(), sorted(
            ("passed", name, "") for name in (
                "own.py: processes", "own.py: /run", "own.py: interfaces", "y.py: it runs"))
    for what, end, status in (
            ("with its worker", lambda run: [os.kill(pid, signal.SIGKILL) for pid in workers(run)], 0),
            ("when the runner is interrupted", lambda run: run.process.send_signal(signal.SIGTERM), 130)):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(folder, {"holds.py": HOLDS}, count=1, isolated=True)
            pipe = os.open(os.path.join(folder, "held"), os.O_RDONLY | os.O_NONBLOCK)
            run.read("started")
            before = held(pipe)
            end(run)
            run.end()
            yield "an isolated program and its children end " + what, (before, run.process.returncode, held(pipe)), (
                True, status, False)
            os.close(pipe)


def can_isolate():
    done = subprocess.run(["bash", "-c", "top=$PWD; . tools/lib/session.sh; can_isolate"], cwd=SOURCE, check=False)
    return done.returncode == 0


def unnamed():
    """A signal comes when a worker has started a program, and before it has noted which."""
    with tempfile.TemporaryDirectory() as folder:
        started = os.path.join(folder, "started")
        os.mkfifo(started)
        with subprocess.Popen(["bash", "-c", STARTS, "bash", started], cwd=SOURCE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=dict(os.environ, TMPDIR=folder)) as process:
            with open(started, encoding="utf-8") as file:
                pid = file.read()
            process.send_signal(signal.SIGTERM)
        left = runs(pid)
        if left:
            os.kill(int(pid), signal.SIGKILL)
        yield "an interrupted worker ends a program that it has only just started", (process.returncode, left), (
            130, False)


def at_a_time():
    for jobs, own, loops, long, pages, free, want in (
            (2, "yes", 0, "no", 1024, 1024, 2), (2, "yes", 0, "no", 1024, 1023, 1), (2, "yes", 0, "no", 1024, 0, 1),
            (1, "yes", 0, "no", 2048, 2048, 1), (2, "no", 0, "no", 2048, 2048, 1), (2, "yes", 1, "no", 2048, 2048, 1),
            (2, "yes", 0, "yes", 2048, 2048, 1), (2, "yes", 0, "no", None, None, 1)):
        with tempfile.TemporaryDirectory() as folder:
            for name, count in (("nr_hugepages", pages), ("free_hugepages", free)):
                if count is not None:
                    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                        file.write("%d\n" % count)
            done = subprocess.run(
                ["bash", "-c", ". tools/lib/e2e.sh; jobs=%d isolated=%s loops=%d long=%s pages_file=%s/nr_hugepages; "
                 "e2e_at_a_time" % (jobs, own, loops, long, folder)], cwd=SOURCE, stdout=subprocess.PIPE, text=True,
                check=True)
            yield "%d cores, isolated: %s, %d busy loops, long: %s, %s hugepages, %s free" % (
                jobs, own, loops, long, pages, free), int(done.stdout), want


def is_right(path, line):
    """Whether a line of a program has an effect: stage interop runs one program at a time anyway."""
    return re.fullmatch(r"# test\.sh: (alone \S.*|limit_s \d+)\n" if path.startswith("test/e2e/") else
                        r"# test\.sh: limit_s \d+\n", line) is not None


def lines():
    """Those of the programs that tools/lib/e2e.sh reads."""
    yield "which lines are right", [is_right(*one) for one in (
        ("test/e2e/a.sh", "# test.sh: alone it says so\n"), ("test/e2e/a.py", "# test.sh: alone \n"),
        ("test/interop/a.py", "# test.sh: alone it says so\n"), ("test/interop/a.py", "# test.sh: limit_s 1800\n"))], [
            True, False, False, True]
    wrong, alone = [], []
    for path in sorted(path for pattern in ("test/e2e/*.py", "test/e2e/*.sh", "test/interop/*.py")
                       for path in glob.glob(os.path.join(SOURCE, pattern))):
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith("# test.sh:"):
                    alone += [os.path.relpath(path, SOURCE)] if line.startswith("# test.sh: alone ") else []
                    wrong += [] if is_right(os.path.relpath(path, SOURCE), line) else [path]
    yield "a program that runs alone says why", wrong, []
    with open(os.path.join(SOURCE, "docs/testing.md"), encoding="utf-8") as file:
        table = file.read().partition("| program | why it runs alone |")[2].partition("\n\n")[0]
    yield "docs/testing.md has each of them", sorted(re.findall(r"^\| `(test/e2e/\S+)` \|", table, re.M)), sorted(alone)


if __name__ == "__main__":
    sys.exit(cases.run([*together(), *one_after_another(), *repeated(), *failures(), *interrupted(),
                        *(isolated() if can_isolate() else ()), *unnamed(), *at_a_time(), *lines()]))
