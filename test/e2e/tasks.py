#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of docs/tasks as they stand on the pages. A page's blocks "sh" run in one shell,
which ends at the first command that fails. Blocks "sh left" and "sh right" run on two machines, which
are two network namespaces, each step when the one before it has ended."""

import os
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import BUILD, CLIENTS  # noqa: E402
from process import Process, until  # noqa: E402
from rows import row  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import SOURCE, add_space, ip, is_root  # noqa: E402

PAGES = os.path.join(SOURCE, "docs", "tasks")
BLOCK = re.compile(r"^```sh ?(\w*)\n(.*?)^```$", re.M | re.S)
TRACED = [(BUILD, "app/rocaded/rocaded"), (CLIENTS, "app/run/rocade-run")]
PROGRAMS = TRACED + [(BUILD, "app/status/rocade-status"), (BUILD, "app/doctor/rocade-doctor"),
                     (CLIENTS, "app/faults/rocade-faults")]
LIBRARY = (CLIENTS, "drivers/librocade-verbs.so")
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
BYTES = r"^(\d{4,}) bytes$"  # of the daemon: at least a thousand


def blocks(page):
    """Returns machine and commands of each block of a page."""
    with open(os.path.join(PAGES, page), encoding="utf-8") as file:
        return BLOCK.findall(file.read())


def copied(build, path, folder):
    """Copies a file of a build into a folder, and returns its path there."""
    to = os.path.join(folder, path)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    return shutil.copy2(os.path.join(os.path.abspath(build), path), to)


class Shell:
    """A shell in a new directory, with the programs of the build in its PATH. traced: with copies of the library and
    of those that start it, because a tracer sees what all programs do with the same file."""

    def __init__(self, *before, traced=False):
        self.folder = tempfile.mkdtemp(prefix="rocade-task-")
        programs = os.path.join(self.folder, "bin")
        os.mkdir(programs)
        if traced:
            copied(*LIBRARY, self.folder)
        for build, path in PROGRAMS:
            file = os.path.join(os.path.abspath(build), path)
            if traced and (build, path) in TRACED:
                file = copied(build, path, self.folder)
            os.symlink(file, os.path.join(programs, os.path.basename(path)))
        env = dict(os.environ, **MPI_AS_ROOT, PATH=programs + ":" + os.environ["PATH"],
                   TMPDIR=self.folder)
        env.pop("ROCADE_SOCKET", None)
        self.process = Process([*before, "bash", "-e"], feed=True, cwd=self.folder, env=env)
        self.steps = 0

    def step(self, commands, timeout_s=60):
        """Runs commands to their end. Returns whether none failed."""
        self.steps += 1
        mark = "-- step %d has ended" % self.steps
        # mpirun would read the commands behind it.
        self.process.say("{\n%s\n} </dev/null\necho '%s'\n" % (commands, mark))
        # A program in the background may have printed a part of a line before it.
        return self.process.expect(mark + "$", timeout_s) is not None

    def end(self):
        """Returns the exit status and all output."""
        status, text = self.process.finish()
        shutil.rmtree(self.folder, ignore_errors=True)
        return status, text


def page(name, *expected, shells=None):
    """Runs a page. expected: patterns that its output has. shells: of each machine, one by
    default. Returns the output, or None if anything failed."""
    found = blocks(name)
    shells = shells or {"": Shell()}
    good = all(shells[machine].step(commands) for machine, commands in found)
    ends = [shell.end() for shell in shells.values()]
    status, text = max(one for one, _ in ends), "".join(said for _, said in ends)
    missing = [one for one in expected if not re.search(one, text, re.M)]
    passed = [
        case("%s: all %d blocks run" % (name, len(found)), good and found and status == 0, text),
        case("%s: with the expected output" % name, not missing, "no %s in\n%s" % (missing, text)),
        case("%s: without advice at the end of its programs" % name, "rocade: " not in text, text)]
    return text if all(passed) else None


def ci():
    page("ci.md", r"^nothing is wrong", r"lkey 0x\w{8}\n-- step 4.*\n.*lkey 0x\w{8}",
         r"impaired on purpose: loss=1%,dup=1%,reorder=1%,corrupt=0.1%, seed 1: \d{2,} lost", BYTES)


def faults():
    page("faults.md", r"^line 1: in each process, call 1 of ibv_reg_mr\(\) and ibv_reg_mr_iova\(\) is refused with ENOMEM",
         r'^in "ibv_rc_pingpong": call 1 of reg_mr: ENOMEM # line 1 of the script, process \d+$',
         r"^post_recv: status 1, Couldn't post receive", r"event_type IBV_EVENT_PORT_ERR \(10\), port 1$", r"^seed \d: 0 refused$", r"^seed \d: 1 refused$")


def mpi():
    page("mpi.md", r"^2 ranks, sum 1, token 200, ", r"^4 ranks, sum 6, token 400, ", BYTES)


def disk():
    if not is_root():
        skip("disk.md", "needs root")
        return
    start = time.monotonic()
    text = page("disk.md", r"^wrote 262144/262144 bytes at offset 1048576",
                r"^(1[7-9]|[2-9]\d)\d{6} bytes$")
    if text:
        row("tgt, a disk of QEMU's libiscsi", "tgt", "RC over RDMA-CM, one host",
            time.monotonic() - start, int(re.search(BYTES, text, re.M)[1]), "disk compared")


def live_migration():
    page("live-migration.md", r"^Migration status: completed", r"^\d{3,} passes, all right$",
         r"^([7-9]|\d{2,})\d{7} bytes$")


# bpftrace needs it to detach. Not where all of the machine would see it.
TRACEFS = ["unshare", "--mount", "sh", "-c",
           '{ [ -e /sys/kernel/tracing/uprobe_events ] || mount -t tracefs tracefs /sys/kernel/tracing; }'
           ' && exec "$@"', "sh"]


def trace():
    """Without bpftrace, or where the kernel refuses it, test/unit/client/usdt_test.py has still read the probes."""
    lacks = "needs root" if not is_root() else bpf_lacks()
    if lacks:
        skip("trace.md", lacks)
        return
    page("trace.md", r"^@ns_by_opcode\[0\]: *$", r"^@completions\[0\]: [1-9]\d{3,}$",
         r"^@sent_again: [1-9]", r"^@woken\[0\]: [1-9]", shells={"": Shell(*TRACEFS, traced=True)})


def bpf_lacks():
    if not shutil.which("bpftrace"):
        return "no bpftrace"
    done = process.run(["bpftrace", "-e", "BEGIN { exit(); }"])
    return "" if done.returncode == 0 else "bpftrace: " + done.stderr.strip().splitlines()[-1]


def inside(space):
    """Returns words of a command: a shell of a machine of its own, which has its own /run."""
    return ["ip", "netns", "exec", space, "unshare", "--mount", "sh", "-c",
            'mount -t tmpfs tmpfs /run && exec "$@"', "sh"]


def two_machines():
    if not is_root():
        skip("two-machines.md", "needs root")
        return
    spaces = [add_space("left"), add_space("right")]
    ip("-n", spaces[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
       spaces[1])
    for space, address in zip(spaces, ("10.0.1.4", "10.0.1.5")):
        ip("-n", space, "address", "add", address + "/24", "dev", "eth0")
        for device in "lo", "eth0":
            ip("-n", space, "link", "set", device, "up")
    # The kernel tells of a link some time after both ends are up.
    joined = until(lambda: not any("NO-CARRIER" in ip("-n", space, "link") for space in spaces))
    case("two-machines.md: the machines are joined", joined, ip("-n", spaces[1], "link"))
    page("two-machines.md", r"10\.0\.1\.21 answers at UDP port 4791",
         r"packets of path MTU 1024 arrive at 10\.0\.1\.21", r"^nothing is wrong",
         r"^return status 0", r"^3[2-9]\d{6} bytes$",
         shells={name: Shell(*inside(space)) for name, space in zip(("left", "right"), spaces)})


def failing():
    """A page with a command that fails must fail."""
    shell = Shell()
    good = shell.step("true\n") and not shell.step("false\ntrue\n")
    status, text = shell.end()
    case("a command that fails is seen", good and status == 1, text)
    shell = Shell()
    good = shell.step("printf 'a part of a line'\n")
    status, text = shell.end()
    case("a line without an end does not hide the end of a step", good and status == 0, text)


def every_page():
    names = {name for name in os.listdir(PAGES) if name.endswith(".md")}
    case("each page is run", names == {"ci.md", "disk.md", "faults.md", "live-migration.md", "mpi.md",
                                           "trace.md", "two-machines.md"}, str(names))


if __name__ == "__main__":
    sys.exit(run(every_page, failing, ci, faults, mpi, disk, live_migration, trace, two_machines))
