# SPDX-License-Identifier: BSD-3-Clause
"""How long the directories are there that stand for /sys and /dev: cases of sysfs.py."""

import glob
import os
import shutil
import signal
import sys
import tempfile

import process
from daemon import LIBRARY, ROCADED, RUN, Daemon
from tap import case

CLASS = "/sys/class/infiniband/rocade0"


def trees(folder):
    return sorted(glob.glob(folder + "/rocade-sysfs-*"))


def lifetime():
    """A tree is there as long as its daemon, and after that as long as a process uses it."""
    runtime = tempfile.mkdtemp(prefix="rocade-run-")
    with Daemon() as daemon, Daemon() as last:
        daemon.env["XDG_RUNTIME_DIR"] = last.env["XDG_RUNTIME_DIR"] = runtime
        with Daemon() as ended:
            ended.env["XDG_RUNTIME_DIR"] = runtime
            waits = ended.start(sys.executable, "-c",
                                "import os; os.listdir('%s'); print('in', flush=True); input()" % CLASS,
                                feed=True)
            waits.wait_line("in")
            first = trees(runtime)
        done = daemon.run("ls", CLASS)
        made = [tree for tree in trees(runtime) if tree not in first]
        inode = [os.stat(tree).st_ino for tree in made]
        case("a tree of a daemon that has ended stays while a process uses it",
             done.returncode == 0 and len(first) == 1 and len(made) == 1 and
             first[0] in trees(runtime), done.stdout + done.stderr + str(trees(runtime)))
        waits.send_signal(signal.SIGKILL)
        waits.wait()
        daemon.run("ls", CLASS)
        case("processes share a tree", [os.stat(tree).st_ino for tree in made] == inode,
             trees(runtime))
        last.run("ls", CLASS)
        now = trees(runtime)
        case("the next process that makes a tree removes it, and those of other daemons stay",
             len(now) == 2 and made[0] in now and first[0] not in now, now)
    shutil.rmtree(runtime)


def leftovers():
    """Nothing stays of a daemon that has ended, however it has, when the last program ends."""
    runtime = tempfile.mkdtemp(prefix="rocade-run-")
    env = {"XDG_RUNTIME_DIR": runtime}
    waiting = [sys.executable, "-c",
               "import os; os.listdir('%s'); print('in', flush=True); input()" % CLASS]
    with Daemon() as daemon, Daemon() as killed:
        daemon.env.update(env)
        killed.env.update(env)
        with Daemon() as ended:
            ended.env.update(env)
            last = ended.start(*waiting, feed=True)
            last.wait_line("in")
        there = trees(runtime)
        last.say("\n")
        last.wait()
        case("the last program after its daemon removes their tree", len(there) == 1 and
             not trees(runtime), trees(runtime))
        last = killed.start(*waiting, feed=True)
        last.wait_line("in")
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait()
        last.send_signal(signal.SIGKILL)
        last.wait()
        there = trees(runtime)
        daemon.run("ls", CLASS)
        case("if both were killed, the next process that makes a tree does", len(there) == 1 and
             os.path.exists(killed.socket) and len(trees(runtime)) == 1 and
             there[0] not in trees(runtime), trees(runtime))
    there = trees(runtime)
    done = process.run([RUN, "--library", LIBRARY, "--daemon", ROCADED, "--start-local", "ls", CLASS],
                       30, env=dict(os.environ, **env))
    case("rocade-run --start-local leaves nothing, and removes what was left", done.returncode == 0 and
         "ports" in done.stdout and len(there) == 1 and not trees(runtime),
         (done.stdout, done.stderr, trees(runtime)))
    shutil.rmtree(runtime)
