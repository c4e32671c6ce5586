#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-faults explore and shrink: random scripts find the errors of a program that knows nothing of faults, and are
reduced to the rule that it takes. A run that hangs is one whose state does not change."""

import os
import re
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, LIBRARY, RUN, Daemon  # noqa: E402
from faults import FAULTS  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run  # noqa: E402

PROGRAM = os.path.join(CLIENTS, "test/e2e/fault_careless")
CLIENT = [RUN, "--library", LIBRARY, PROGRAM, "regions"]
HANG_S = 120  # two runs that hang take ten observations of a second each
SEED = re.compile(r"^seed (\d+): rules (\d+), faults (\d+), (.*)$", re.M)


class Folder:
    """A new folder, in which rocade-faults runs."""

    def __init__(self, daemon):
        self.kept = tempfile.TemporaryDirectory(prefix="rocade-explore-")
        self.path, self.env = self.kept.name, daemon.env

    def read(self, *path):
        with open(os.path.join(self.path, *path), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def run(self, *words):
        return process.run([FAULTS, *words], HANG_S, env=self.env, cwd=self.path)


def runs(pid):
    return os.path.exists("/proc/%d" % pid)


def rules(text):
    return [line.split(" # ")[0] for line in text.splitlines() if not line.startswith("#")]


def explore():
    """A crash is found, reduced to one refused call, and found again by its seed."""
    with Daemon() as daemon:
        folder = Folder(daemon)
        done = folder.run("explore", "--seeds", "40", "--profile", "nasty", "--accept", "3", "--match", "^none$", "--",
                          *CLIENT)
        seeds = SEED.findall(done.stdout)
        failed = [one[0] for one in seeds if one[3] != "passed"]
        crashed = [one[0] for one in seeds if one[3] == "signal 11 (Segmentation fault)"]
        case("40 random scripts: some crash", done.returncode == 1 and [one[0] for one in seeds] ==
             [str(n) for n in range(1, 41)] and crashed and
             "%d of 40 scripts failed" % len(failed) in done.stdout, done)
        case("each that fails has a folder", sorted(os.listdir(os.path.join(folder.path, "faults-explore"))) ==
             sorted(["without-faults"] + ["nasty-seed-" + seed for seed in failed]), os.listdir(folder.path))
        kept = os.path.join("faults-explore", "nasty-seed-" + crashed[0])
        done = process.run([FAULTS, "replay", os.path.join(kept, "journal.txt"), "--", *CLIENT[1:]], env=daemon.env,
                           cwd=folder.path)
        case("a kept journal is replayed: the same crash", done.returncode == -signal.SIGSEGV, done)
        done = folder.run("shrink", "--runs", "1", "--accept", "3", os.path.join(kept, "journal.txt"), "--", *CLIENT)
        found = rules(done.stdout)
        case("the journal is shrunk to one call", done.returncode == 0 and len(found) == 1 and
             re.search(r'^in "fault_careless": call \d+ of reg_mr: E\w+$', found[0]) and
             done.stdout.startswith("# signal 11 (Segmentation fault), with 1 of "), done)
        done = folder.run("check", folder.write("shrunk", done.stdout))
        case("what shrink prints is a script", done.returncode == 0 and "1 rule in all" in done.stdout, done)
        case("no process is left", daemon.idle(), daemon.status())


def seeds_again():
    """A program that always makes the same calls, and a command that fails whenever it has faults."""
    with Daemon() as daemon:
        folder = Folder(daemon)
        fails = ["sh", "-c", '"$0" "$@"; grep -q 1000000000000000000 "$ROCADE_FAULTS"', RUN, "--library", LIBRARY,
                 "ibv_devinfo"]
        for where in "one", "other":
            done = folder.run("explore", "--seeds", "3", "--profile", "nasty", "--folder", where, "--", *fails)
            case("each script fails", done.returncode == 1 and "3 of 3 scripts failed" in done.stdout, done)
        scripts = [[folder.read(where, "nasty-seed-%d" % seed, "script.txt") for seed in (1, 2, 3)]
                   for where in ("one", "other")]
        case("a seed draws the same script", scripts[0] == scripts[1] and len(set(scripts[0])) > 1, scripts)


def mild():
    """RC hides what happens to packets; the journal shows that it did happen."""
    with Daemon() as daemon:
        folder = Folder(daemon)
        done = folder.run("explore", "--seeds", "8", "--", *CLIENT)
        seeds = SEED.findall(done.stdout)
        case("mild scripts", done.returncode == 0 and [one[3] for one in seeds] == ["passed"] * 8 and
             sum(int(one[2]) for one in seeds) > 0 and "0 of 8 scripts failed\n" in done.stdout, done)
        case("runs that pass leave nothing", os.listdir(os.path.join(folder.path, "faults-explore")) ==
             ["without-faults"], done)
        done = folder.run("explore", "--seeds", "1", "--", RUN, "--library", LIBRARY, "ibv_devinfo")
        case("a program without packets", done.returncode == 2 and "the profile mild has only faults of packets, and no "
             "process has sent one; valid: a profile with other faults (rocade-faults(1))" in done.stderr, done)


def shrink():
    """Scripts are shrunk as journals are: for a hang, by a pattern, with several rocade-run."""
    with Daemon() as daemon:
        folder = Folder(daemon)
        script = folder.write("script", "# by hand\neach 3rd req_notify_cq: ENOMEM\n\n"
                              'in "fault_careless": call 7 of post_send: ENOMEM # 7\n')
        done = folder.run("shrink", "--runs", "1", "--accept", "3", script, "--", *CLIENT[:-1], "sends")
        case("a program that waits for ever", done.returncode == 0 and done.stdout.startswith("# hang, with 1 of 2 ") and
             rules(done.stdout) == ['in "fault_careless": call 7 of post_send: ENOMEM'], done)
        script = folder.write("script", "".join("call %d of query_qp: ENOMEM\n" % n for n in range(1, 8)) +
                              "call 1 of create_cq: ENOMEM\ncall 1 of create_qp: ENOMEM\n")
        done = folder.run("shrink", "--runs", "1", "--accept", "0,3", "--match", "^create_cq: [EM]NO", script, "--", *CLIENT)
        case("a line that matches", done.returncode == 0 and done.stdout.startswith("# the output matches, with 1 of 9 ") and
             rules(done.stdout) == ["call 1 of create_cq: ENOMEM"], done)
        done = folder.run("shrink", "--runs", "1", "--accept", "3", script, "--", *CLIENT)
        case("a command that does not fail", done.returncode == 1 and not done.stdout and
             "with all faults of script the command has not failed in 1 runs" in done.stderr, done)
        script = folder.write("script", "call 2 of reg_mr: ENOMEM\ncall 1 of create_cq: ENOMEM\n")
        done = folder.run("shrink", "--runs", "1", script, "--", *CLIENT)
        case("a failure of another kind is another failure", done.returncode == 0 and done.stdout.startswith("# signal 11 ")
             and rules(done.stdout) == ["call 2 of reg_mr: ENOMEM"], done)
        # Each of two faults hides the other one: with either the command fails.
        two = ["sh", "-c", 'r=0; "$0" "$@" || r=1; "$0" "$@" 2>&1 | grep -q ENOMEM && exit 5; exit $r', *CLIENT]
        script = folder.write("script", "call 1 of alloc_pd: ENOMEM\ncall 1 of create_qp: ENOMEM\n")
        done = folder.run("shrink", "--runs", "1", script, "--", *two)
        case("a command with several rocade-run", done.returncode == 0 and done.stdout.startswith("# status 5, with 1 of 2 ")
             and len(rules(done.stdout)) == 1, done)


def ends():
    """A run that goes on is no hang, and what a command leaves behind is ended, also when rocade-faults is."""
    with Daemon() as daemon:
        folder = Folder(daemon)
        script = folder.write("script", "call 100 of create_cq: ENOMEM\n")
        slow = 'grep -q 1000000000000000000 "$ROCADE_FAULTS" && exec "$@" regions; exec "$@" slow'
        done = folder.run("shrink", "--runs", "1", script, "--", "sh", "-c", slow, "sh", *CLIENT[:-1])
        case("a run of which only completions are seen is no hang", done.returncode == 1 and
             "has not failed in 1 runs" in done.stderr, done)
        done = folder.run("explore", "--seeds", "1", "--", "sh", "-c", 'sleep 1000 & echo $! >>pids; "$0" "$@"', *CLIENT)
        pids = [int(pid) for pid in folder.read("pids").split()]
        case("what is left behind is ended", done.returncode == 0 and len(pids) == 2 and not any(map(runs, pids)),
             (done, pids))
        stop = 'grep -q 1000000000000000000 "$ROCADE_FAULTS" || exec yes; exec "$@" regions'
        script = folder.write("script", "call 100 of create_cq: ENOMEM\n")
        done = folder.run("shrink", "--runs", "1", script, "--", "sh", "-c", stop, "sh", *CLIENT[:-1])
        case("output without end is a hang", done.returncode == 0 and done.stdout.startswith("# hang, with 1 of 1 "), done)
        done = folder.run("explore", "--seeds", "1", "--accept", "143", "--", "sh", "-c", "exit 143")
        case("a status behind 128 may be accepted", done.returncode == 2 and
             "no process of the command has used a device" in done.stderr, done)
        ignoring = Process(["nohup", FAULTS, "explore", "--", "sh", "-c", "echo $$ >>nohup; exec sleep 1000"],
                           cwd=folder.path)
        until(lambda: os.path.exists(os.path.join(folder.path, "nohup")) and folder.read("nohup").endswith("\n"))
        ignoring.send_signal(signal.SIGHUP)
        with open("/proc/%d/status" % ignoring.pid, encoding="ascii") as file:
            ignored = int(re.search(r"^SigIgn:\s*(\w+)$", file.read(), re.M)[1], 16)
        case("SIGHUP stays ignored", ignored & 1 << signal.SIGHUP - 1 and runs(int(folder.read("nohup"))), hex(ignored))
        ignoring.send_signal(signal.SIGTERM)
        ignoring.finish()
        explorer = Process([FAULTS, "explore", "--", "sh", "-c", "echo $$ >>last; sleep 1000"], cwd=folder.path)
        until(lambda: os.path.exists(os.path.join(folder.path, "last")) and folder.read("last").endswith("\n"))
        explorer.send_signal(signal.SIGTERM)
        status, text = explorer.finish()
        case("SIGTERM ends the command, too", status == -signal.SIGTERM and not runs(int(folder.read("last"))),
             (status, text))
        twice = ('grep -q 1000000000000000000 "$ROCADE_FAULTS" && exec true; echo $ROCADE_FAULTS >>scripts; '
                 '[ $(wc -l <scripts) -eq 1 ] && exit 5; exec sleep 1000')
        script = folder.write("script", "call 1 of alloc_pd: ENOMEM\ncall 1 of create_qp: ENOMEM\n")
        shrinker = Process([FAULTS, "shrink", "--runs", "1", script, "--", "sh", "-c", twice], cwd=folder.path)
        until(lambda: os.path.exists(os.path.join(folder.path, "scripts")) and folder.read("scripts").count("\n") == 2)
        shrinker.send_signal(signal.SIGTERM)
        status, text = shrinker.finish()
        case("SIGTERM: shrink prints what it has", status == -signal.SIGTERM and
             "# status 5, with 2 of 2 rules of script, after 2 runs, not to the end\n" + folder.read("script") in text and
             not os.path.exists(os.path.dirname(folder.read("scripts").split()[0])), (status, text))


def journals():
    """The journal of rocade-run is shrunk if it is of the program."""
    with Daemon() as daemon:
        folder = Folder(daemon)
        script = folder.write("script", "call 2 of reg_mr: ENOMEM\ndrop packet 1 of request 3 of qp 1\n")
        process.run([*CLIENT[:-2], "--faults", script, "--fault-journal", "journal", *CLIENT[-2:]], env=daemon.env,
                    cwd=folder.path)
        journal = folder.read("journal")
        case("a process at its end writes what it has counted", "fault_careless" in journal and
             "# rocade-faults counted " not in journal, journal)  # this one has crashed
        done = folder.run("shrink", "--runs", "1", "journal", "--", *CLIENT)
        case("a journal of rocade-run", done.returncode == 0 and
             rules(done.stdout) == ['in "fault_careless": call 2 of reg_mr: ENOMEM'], done)
        for change, said in [(("journal 1: rocade ", "journal 1: rocade 9"), "is a journal of rocade 9"),
                             (('program "fault_careless"', 'program "other"'), 'program "other", seed 1, and this is rocade'),
                             (("\n", '\n# rocade-faults process 1: "x", "fault_careless"\n'),
                              'several processes have one name, "fault_careless"; valid: one process of each name that a rule has; valid '
              "too: its script")]:
            done = folder.run("shrink", folder.write("other", journal.replace(*change, 1)), "--", *CLIENT)
            case("a journal with %r is refused" % change[1], done.returncode == 2 and said in done.stderr and
                 done.stderr.count("\n") == 1, done)


def errors():
    """Bad input is a sentence with what is valid."""
    with Daemon() as daemon:
        folder = Folder(daemon)
        none = folder.write("none", "# nothing\n")
        share = folder.write("share", 'in "a%": call 1 of alloc_pd: ENOMEM\n2% of reg_mr: ENOMEM\n')
        wrong = folder.write("wrong", "call 1 of alloc_pd: EIO\n")
        for words, said in [
                (["explore", "--profile", "wild", "--", "true"], "'wild' for --profile: expected mild, nasty or byzantine"),
                (["explore", "--seeds", "many", "--", "true"], "'many' for --seeds: expected 1 to 1000000"),
                (["explore", "--seeds", "0", "--", "true"], "'0' for --seeds: expected"),
                (["explore"], "missing command: expected -- COMMAND"),
                (["explore", "true"], "missing command: expected -- COMMAND"),
                (["explore", "--match", "(", "--", "true"], "'(' for --match: expected an extended regular expression"),
                (["explore", "--accept", "1,x", "--", "true"], "'1,x' for --accept: expected numbers from 0 to 255"),
                (["explore", "--folder", "/dev/null/x", "--", "true"], "cannot write into the folder /dev/null/x"),
                (["explore", "--folder", none, "--", "true"], "cannot write into the folder none: Not a directory"),
                (["shrink", "/dev/null", "--", "true"], "'/dev/null' for JOURNAL: expected a regular file"),
                (["shrink", none], "missing command: expected JOURNAL -- COMMAND"),
                (["shrink", none, "true"], "missing command: expected JOURNAL -- COMMAND"),
                (["shrink", "--runs", "0", none, "--", "true"], "'0' for --runs: expected 1 to 1000"),
                (["shrink", "absent", "--", "true"], "cannot read absent: No such file"),
                (["shrink", none, "--", "true"], "none has no fault; expected one at least"),
                (["shrink", wrong, "--", "true"], "line 1, column 21: 'EIO' is not known; valid: ENOMEM"),
                (["shrink", share, "--", "true"], "'2% of reg_mr: ENOMEM' of share: the rules before it determine")]:
            done = folder.run(*words)
            case("refused: %s" % " ".join(words), done.returncode == 2 and said in done.stderr and not done.stdout and
                 done.stderr.count("\n") == 1, done)
        done = folder.run("explore", "--", "sh", "-c", "exit 7")
        case("a command that fails without faults", done.returncode == 2 and
             "without faults sh fails: status 7 (see " in done.stderr, done)
        done = folder.run("explore", "--", "true")
        case("a command without rocade-run", done.returncode == 2 and
             "no process of the command has used a device of Rocade; valid: a command with rocade-run" in done.stderr, done)
        done = process.run(CLIENT, env=dict(daemon.env, ROCADE_FAULTS=os.path.join(folder.path, wrong)))
        case("an inherited script with an error", done.returncode == 2 and
             "rocade-run: ROCADE_FAULTS: " in done.stderr and "'EIO' is not known" in done.stderr, done)


if __name__ == "__main__":
    sys.exit(run(explore, seeds_again, mild, shrink, ends, journals, errors))
