#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-run --faults: each row of docs/faults.def under a program that knows nothing of it, programs of perftest and
rdma-core, the journal, the seed, rules that are never applied, and scripts with errors."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, LIBRARY, ROCADED, RUN, Daemon, both, wait_for_port  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run  # noqa: E402

SOURCE = os.path.join(os.path.dirname(__file__), "../..")
PROGRAM = os.path.join(CLIENTS, "test/e2e/fault_calls")
FAULTS = os.path.join(CLIENTS, "app/faults/rocade-faults")
ROW = re.compile(r'^FAULT\(\w+, (\w+), (\w+), "[^"]+", "[^"]+"\)$', re.M)
JOURNAL_LINE = re.compile(r'^in "([^"]+)": (.*) # line (\d+) of the script, process \d+$')


def rows():
    """Returns call and error of each row."""
    with open(os.path.join(SOURCE, "docs/faults.def"), encoding="ascii") as file:
        text = file.read()
    found = ROW.findall(text)
    if len(found) != len(re.findall(r"^FAULT\(", text, re.M)):
        raise ValueError("docs/faults.def has rows that this program does not understand")
    return found


class Script:
    """A script of faults, and the journal of the runs with it."""

    def __init__(self, text):
        self.folder = tempfile.TemporaryDirectory(prefix="rocade-faults-")
        self.path = os.path.join(self.folder.name, "script")
        self.journal = os.path.join(self.folder.name, "journal")
        with open(self.path, "w", encoding="ascii") as file:
            file.write(text)

    def words(self, *program, options=()):
        return [RUN, "--library", LIBRARY, "--faults", self.path, "--fault-journal", self.journal, *options,
                *program]

    def run(self, daemon, *program, options=()):
        return process.run(self.words(*program, options=options), 60, env=daemon.env)

    def applied(self):
        """Returns program, rule, and number of the script's line, of each line of the journal."""
        with open(self.journal, encoding="ascii") as file:
            lines = file.read().splitlines()
        return [JOURNAL_LINE.match(line).groups() for line in lines if not line.startswith("#")]

    def rules(self):
        """Returns the rules of the journal."""
        return [rule for _, rule, _ in self.applied()]

    def seed(self):
        """Returns the seed that the journal names."""
        with open(self.journal, encoding="ascii") as file:
            return re.search(r", seed (\d+)$", file.readline().rstrip()).group(1)


def calls():
    """Each row, seen by a program that is no part of Rocade: the call returns the error, and the program ends."""
    with Daemon() as daemon:
        for mode in ("verbs", "loaded", "cm"):
            done = daemon.run(PROGRAM, mode)
            case("%s: all calls succeed without faults" % mode, done.returncode == 0 and not done.stdout, done)
        for call, error in rows():
            script = Script("call 1 of %s: %s\n" % (call, error))
            done = script.run(daemon, PROGRAM, "cm" if call.startswith("rdma_") else "verbs")
            case("%s: %s" % (call, error), done.returncode == 3 and done.stdout == "%s: %s\n" % (call, error) and
                 script.applied() == [("fault_calls", "call 1 of %s: %s" % (call, error), "1")] and "never" not in done.stderr,
                 (done, script.applied()))


def other_ways():
    """Functions that a program looks up itself, those of extended objects, and those that librdmacm calls."""
    with Daemon() as daemon:
        for text, mode, said in [
                ("call 1 of open_device: EMFILE", "loaded", "open_device: EMFILE"),
                ("call 2 of create_cq: ENOMEM", "verbs", "create_cq: ENOMEM"),
                ("call 2 of create_srq: ENOMEM", "verbs", "create_srq: ENOMEM"),
                ("call 4 of create_qp: ENOMEM", "verbs", "create_qp: ENOMEM"),
                ("call 1 of create_qp: ENOMEM", "cm", "rdma_create_qp: ENOMEM"),
                ("call 1 of rdma_create_id: ENODEV", "cm", "rdma_create_id: ENODEV")]:
            script = Script(text)
            done = script.run(daemon, PROGRAM, mode)
            case("%s in %s" % (text, mode), done.returncode == 3 and done.stdout == said + "\n", done)
        for text in ("call 5 of create_qp: ENOMEM", "call 3 of create_cq: ENOMEM", "call 3 of create_srq: ENOMEM"):
            done = Script(text).run(daemon, PROGRAM, "verbs")
            case("no call counts twice: %s" % text, done.returncode == 0 and "never applied" in done.stderr, done)
        for text, mode in [("call 2 of create_ah: ENOMEM", "verbs"), ("call 1 of rdma_listen: EADDRINUSE", "elsewhere")]:
            done = Script(text).run(daemon, PROGRAM, mode)
            case("calls of no rule, and of other devices, do not count: %s" % text, done.returncode == 0 and
                 "counted %d calls" % (mode == "verbs") in done.stderr, done)


def lists():
    """Of a list the requests before the refused one are posted; posted again from there, each arrives once."""
    with Daemon() as daemon:
        script = Script("call 3 of post_send: ENOMEM\neach 7th post_send: EINVAL\n")
        done = script.run(daemon, PROGRAM, "posts", "3", "8")
        # The numbers of the requests that are posted again: 4 is the third of the first list.
        case("bad_wr is the request that is refused", done.returncode == 0 and done.stdout.splitlines() == [
            "refused 3: ENOMEM", "refused 6: EINVAL", "refused 4: EINVAL", "refused 2: EINVAL", "refused 8: EINVAL"], done)
        case("the journal has the numbers of the requests", script.rules() == ["call 3 of post_send: ENOMEM"] + [
            "call %d of post_send: EINVAL" % n for n in (7, 14, 21, 28)], script.rules())
        script = Script("each 3rd wr_complete: ENOMEM")
        done = script.run(daemon, PROGRAM, "batches", "4", "8")
        case("of a refused batch nothing is posted, and the QP goes on", done.returncode == 0 and
             done.stdout == "refused a batch: ENOMEM\n" and script.rules() == ["call 3 of wr_complete: ENOMEM"], done)
        script = Script("call 66 of post_recv: EINVAL")
        done = script.run(daemon, PROGRAM, "full")
        case("behind a request that the device refuses none counts", done.returncode == 0 and done.stdout.splitlines() ==
             ["refused 65: ENOMEM", "refused 65: EINVAL", "refused 65: ENOMEM"], done)
        done = Script("call 2 of post_recv: ENOMEM").run(daemon, PROGRAM, "posts", "1", "4")
        case("post_recv is refused", done.stdout == "post_recv: ENOMEM\n", done)


def seeds():
    """The same seed gives the same sequence, another one another."""
    with Daemon() as daemon:
        seen = []
        for seed in ("7", "7", "8"):
            script = Script("10% of post_send: ENOMEM\n5% of post_send: EINVAL\n")
            done = script.run(daemon, PROGRAM, "posts", "40", "8", options=["--seed", seed])
            seen.append((done.returncode, done.stdout, script.applied()))
        case("the same seed refuses the same calls", seen[0] == seen[1] and len(seen[0][2]) > 5, seen)
        case("another seed refuses others", seen[0][2] != seen[2][2], seen)
        script = Script("10% of post_send: ENOMEM\n")
        hexadecimal, decimal, zero = [(script.run(daemon, PROGRAM, "posts", "40", "8", options=["--seed", seed]).stdout,
                                       script.applied(), script.seed()) for seed in ("0x10", "16", "0")]
        case("a seed in hexadecimal digits", hexadecimal == decimal and decimal[2] == "16" and decimal[0] != zero[0],
             (hexadecimal, decimal, zero))
        done = script.run(daemon, "env", "ROCADE_FAULTS_SEED=0x10", PROGRAM, "verbs")
        case("a seed with text behind the number", done.returncode == 1 and
             "rocade: faults: invalid value '0x10' of ROCADE_FAULTS_SEED: expected a number" in done.stderr, done)
        script = Script("".join('in "fault_calls": %s\n' % rule for _, rule, _ in seen[0][2]))
        done = script.run(daemon, PROGRAM, "posts", "40", "8", options=["--seed", "99"])
        case("the journal of a run is a script for it", (done.returncode, done.stdout) == seen[0][:2], (done, seen[0]))


def replays():
    """A journal is replayed by the version and the program that it is of, and where it can be."""
    with Daemon() as daemon:
        script = Script("20% of post_send: ENOMEM\n")
        first = script.run(daemon, PROGRAM, "posts", "40", "8", options=["--seed", "3"])
        with open(script.journal, encoding="ascii") as file:
            journal = file.read()
        case("a journal names version, program and seed", re.match(
            r'# rocade-faults journal 1: rocade [\d.]+, program "fault_calls", seed 3\n', journal), journal)
        words = [FAULTS, "replay", script.journal, "--", "--library", LIBRARY]
        for _ in range(3):
            again = Script("")
            done = process.run([*words, "--fault-journal", again.journal, PROGRAM, "posts", "40", "8"], env=daemon.env)
            case("a replay refuses the same calls", done.returncode == 0 and done.stdout == first.stdout and
                 [one[:2] for one in again.applied()] == [one[:2] for one in script.applied()], done)
        done = process.run([*words, "true"], env=daemon.env)
        case("of another program it is refused", done.returncode == 2 and re.search(
            'is a journal of rocade .*"fault_calls", seed 3, and this is rocade .*, program "true"', done.stderr), done)
        done = process.run([*words, "--fault-journal", script.journal, PROGRAM, "verbs"], env=daemon.env)
        case("a journal is not written over itself", done.returncode == 2 and
             "expected another file than that of --faults" in done.stderr, done)
        for change, status, said in [(("journal 1: rocade ", "journal 1: rocade 9"), 2, "is a journal of rocade 9"),
                                     (("\n", '\n# rocade-faults process 1: "x", "fault_calls"\n'), 2,
                                      'several processes have one name, "fault_calls"'),
                                     (("\n", '\n# rocade-faults process 1: "x", "y"\n'), 0, ""),
                                     (("\n", '\n# rocade-faults process 1\n# x: "x", "fault_calls"\n'), 0, ""),
                                     (("#", "# a script that was"), 0, "")]:
            with open(script.journal, "w", encoding="ascii") as file:
                file.write(journal.replace(*change, 1))
            done = process.run([*words, PROGRAM, "posts", "40", "8"], env=daemon.env)
            case("a journal with %r" % change[1], done.returncode == status and said in done.stderr, done)
        two = ["bash", "-c", "%s posts 1 2 && exec %s verbs" % (PROGRAM, PROGRAM)]
        script = Script("call 2 of post_send: ENOMEM\n")
        done = script.run(daemon, *two)
        case("of two processes one is refused a call", done.returncode == 0 and len(script.applied()) == 1, done)
        done = process.run([FAULTS, "replay", script.journal, "--", "--library", LIBRARY, *two], env=daemon.env)
        case("then the journal is not replayed", done.returncode == 2 and
             'several processes have one name, "fault_calls"' in done.stderr, done)
        for name in ('a"b\n', ""):
            named = ["bash", "-c", 'exec -a "$0" %s verbs' % PROGRAM, name]
            script = Script("call 1 of alloc_pd: ENOMEM\n")
            script.run(daemon, *named)
            done = process.run([FAULTS, "replay", script.journal, "--", "--library", LIBRARY, *named], env=daemon.env)
            case("the journal of a program that is named %r" % name, done.returncode == 3 and
                 done.stdout == "alloc_pd: ENOMEM\n", (done, script.applied()))


def names():
    """A rule for a program concerns its processes only, and each process counts for itself."""
    with Daemon() as daemon:
        script = Script('in "other": call 1 of alloc_pd: ENOMEM\n')
        done = script.run(daemon, PROGRAM, "verbs")
        case("a rule for another program", done.returncode == 0 and "rocade: faults" not in done.stderr, done)
        script = Script('in "fault_calls": call 1 of alloc_pd: ENOMEM\n')
        done = script.run(daemon, "sh", "-c", "%s verbs; %s verbs; exit 0" % (PROGRAM, PROGRAM))
        case("a rule for each process of a program", done.stdout == "alloc_pd: ENOMEM\n" * 2, done)
        done = Script("call 2 of alloc_pd: ENOMEM").run(daemon, PROGRAM, "forked")
        case("a child of fork() counts for itself", done.returncode == 0 and not done.stdout, done)
        done = Script("call 1 of alloc_pd: ENOMEM").run(daemon, "sh", "-c", "rm \"$ROCADE_FAULTS\"; exec %s verbs" % PROGRAM)
        case("a program whose script is gone does not run", done.returncode == 1 and not done.stdout and
             "rocade: faults: cannot read " in done.stderr, done)
        few = "ulimit -n 200; %sexec " + PROGRAM + " verbs"
        done = Script("call 1 of alloc_pd: ENOMEM").run(daemon, "sh", "-c", few % "rm \"$ROCADE_FAULTS\"; ")
        case("nor one that may open 200 files", done.returncode == 1 and not done.stdout and
             "rocade: faults: cannot read " in done.stderr, done)
        done = Script("call 9 of alloc_pd: ENOMEM").run(daemon, "sh", "-c", few % "")
        case("for one that may open 200 files a rule that was never applied is reported", done.returncode == 0 and
             "line 1: the rule was never applied" in done.stderr, done)
        done = Script("call 9 of alloc_pd: ENOMEM").run(daemon, PROGRAM, "verbs")
        case("a rule that was never applied is reported", done.returncode == 0 and re.search(
            r"^rocade: faults: \S+/script, line 1: the rule was never applied; fault_calls counted 1 calls of alloc_pd$",
            done.stderr, re.M), done)
        done = Script("call 9 of alloc_pd: ENOMEM").run(daemon, PROGRAM, "verbs", options=["--no-advice"])
        case("--no-advice turns the report off", "never applied" not in done.stderr, done)
        done = Script("each 1st alloc_pd: ENOMEM\ncall 1 of alloc_pd: ENOMEM").run(daemon, PROGRAM, "verbs")
        case("so is one behind another that was applied", done.returncode == 3 and
             "line 2: the rule was never applied; fault_calls counted 1 calls" in done.stderr and
             "line 1:" not in done.stderr, done)
        done = Script("call 9 of alloc_pd: ENOMEM\n" * 12).run(daemon, PROGRAM, "verbs")
        case("ten of many rules are reported", done.stderr.count("the rule was never applied") == 10 and
             ": 2 more rules were never applied" in done.stderr, done)
        done = Script("call 9 of alloc_pd: ENOMEM").run(daemon, "true")
        case("a program without a device reports nothing", "never" not in done.stderr, done)


# Puts another file in the place of the journal, and opens a device.
REPLACER = """
import ctypes, os
journal = os.environ["ROCADE_FAULT_JOURNAL"]
os.rename(journal, journal + ".old")
open(journal, "w").close()
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_open_device.argtypes = [ctypes.c_void_p]
verbs.ibv_open_device.restype = ctypes.c_void_p
print(verbs.ibv_open_device(verbs.ibv_get_device_list(None)[0]))
"""


# Its standard error is a pipe that has no reader.
PIPED = """
import os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
reader, writer = os.pipe()
os.close(reader)
os.dup2(writer, 2)
os.execv(sys.argv[1], sys.argv[1:])
"""


def signals():
    """A write of the report or of the journal raises no signal in the program."""
    with Daemon() as daemon:
        done = Script("call 9 of alloc_pd: ENOMEM").run(daemon, sys.executable, "-c", PIPED, PROGRAM, "verbs")
        case("the report to a pipe without a reader", done.returncode == 0, done)
        script = Script("call 1 of alloc_pd: ENOMEM")
        done = script.run(daemon, "sh", "-c", "rm \"$ROCADE_FAULT_JOURNAL\"; exec \"$0\" \"$@\"", sys.executable, "-c",
                          PIPED, PROGRAM, "verbs")
        case("what the journal lacks, to a pipe without a reader", done.returncode == 3 and
             done.stdout == "alloc_pd: ENOMEM\n", done)
        script = Script("call 1 of alloc_pd: ENOMEM")
        limited = "truncate -s 4G \"$ROCADE_FAULT_JOURNAL\"; ulimit -f 4194304; exec %s verbs" % PROGRAM
        done = script.run(daemon, "bash", "-c", limited)
        case("a journal that is as long as a file may be", done.returncode == 3 and
             done.stdout == "alloc_pd: ENOMEM\n" and "File too large" in done.stderr, done)


def files():
    """Report and journal are written to the files that they had at first, and to no others."""
    with Daemon() as daemon:
        script = Script("call 9 of alloc_pd: ENOMEM\n")
        other = os.path.join(script.folder.name, "other")
        done = script.run(daemon, PROGRAM, "closed", other)
        case("the report is not written to a file that is descriptor 2 then", done.returncode == 0 and
             os.path.getsize(other) == 0 and done.stderr.count("the rule was never applied") == 1, done)
        script = Script("call 1 of open_device: EMFILE\n")
        other = os.path.join(script.folder.name, "other")
        with open(other, "w", encoding="ascii"):
            pass
        for change, said in [("rm $J", "No such file or directory"),
                             ("mv $J $J.old; ln -s other $J", "Too many levels of symbolic links"),
                             ("mv $J $J.old; mkfifo $J", "No such device or address")]:
            done = script.run(daemon, "sh", "-c", "J=$ROCADE_FAULT_JOURNAL; %s; exec %s verbs" % (change, PROGRAM))
            case("the journal after %s" % change, done.returncode == 3 and os.path.getsize(other) == 0 and
                 re.search(r"the journal \S+ lacks lines of process \d+: %s\n" % said, done.stderr), done)
            if os.path.lexists(script.journal):
                os.remove(script.journal)
        done = Script("call 9 of alloc_pd: ENOMEM").run(
            daemon, "sh", "-c", "rm \"$ROCADE_FAULT_JOURNAL\"; exec %s forked" % PROGRAM)
        case("a child of fork() says that the journal lacks its lines, too", done.returncode == 0 and
             len(set(re.findall("lacks lines of process ([0-9]+)", done.stderr))) == 2, done)
        done = script.run(daemon, sys.executable, "-c", REPLACER)
        case("the journal after another file has its name", done.stdout == "None\n" and
             os.path.getsize(script.journal) == 0 and "it is another file than at the start of the process" in done.stderr,
             done)
        done = script.run(daemon, "sh", "-c", "%s forked; exit $?" % PROGRAM)
        case("the journal is written again", done.returncode == 3 and len(script.applied()) == 1, done)
        os.symlink(other, script.journal + ".link")
        done = script.run(daemon, PROGRAM, "verbs", options=["--fault-journal", script.journal + ".link"])
        case("a journal that is named by a symbolic link", done.returncode == 3 and os.path.getsize(other) > 0 and
             "lacks" not in done.stderr, done)
        pipe = os.path.join(script.folder.name, "pipe")
        os.mkfifo(pipe)
        for option in ("--faults", "--fault-journal"):
            words = [option, pipe] if option == "--faults" else ["--faults", script.path, option, pipe]
            done = daemon.run(*words, "true")
            case("%s with a pipe" % option, done.returncode == 2 and
                 "invalid value '%s' for %s: expected a regular file" % (pipe, option) in done.stderr, done)


# Programs of perftest and rdma-core that need no peer until the call.
ALONE = [
    ("open_device: ENOMEM", ["ibv_rc_pingpong"], "Couldn't get context"),
    ("alloc_pd: ENOMEM", ["ibv_rc_pingpong"], "Couldn't allocate PD"),
    ("reg_mr: ENOMEM", ["ibv_rc_pingpong"], "Couldn't register MR"),
    ("create_comp_channel: EMFILE", ["ibv_rc_pingpong", "-e"], "Couldn't create completion channel"),
    ("create_cq: ENOMEM", ["ibv_rc_pingpong"], "Couldn't create CQ"),
    ("create_qp: ENOMEM", ["ibv_rc_pingpong"], "Couldn't create QP"),
    ("modify_qp: EINVAL", ["ibv_rc_pingpong"], "Failed to modify QP to INIT"),
    ("post_recv: ENOMEM", ["ibv_rc_pingpong"], r"Couldn't post receive \(0\)"),
    ("req_notify_cq: ENOMEM", ["ibv_rc_pingpong", "-e"], "Couldn't request CQ notification"),
    ("create_srq: ENOMEM", ["ibv_srq_pingpong"], "Couldn't create SRQ"),
    ("post_srq_recv: ENOMEM", ["ibv_srq_pingpong"], r"Couldn't post receive \(0\)"),
    ("rdma_create_event_channel: ENOMEM", ["rping", "-s"], "event.channel: Cannot allocate memory"),
    ("rdma_create_id: ENODEV", ["rping", "-s"], "rdma_create_id: No such device"),
    ("rdma_bind_addr: EADDRINUSE", ["rping", "-s"], "rdma_bind_addr: Address already in use"),
    ("rdma_listen: EADDRINUSE", ["rping", "-s"], "rdma_listen: Address already in use"),
    ("rdma_resolve_addr: ENODEV", ["rping", "-c", "-a", "192.0.2.1"], "rdma_resolve_addr: No such device"),
    ("rdma_resolve_route: ENOMEM", ["rping", "-c", "-a", "192.0.2.1"], "rdma_resolve_route: Cannot allocate memory"),
]


def server_run(daemon, script, words):
    """Runs a program of two ends, whose server has the script: returns its status and output."""
    server = Process(script.words(*words), env=daemon.env)
    wait_for_port(18515, server, 10)
    client = daemon.start(*words, "127.0.0.1")
    status = server.wait()
    client.kill()
    return status, server.output()


def client_run(daemon, script, words):
    """The same, whose client has it."""
    server = daemon.start(*words)
    wait_for_port(18515, server, 10)
    client = Process(script.words(*words, "127.0.0.1"), env=daemon.env)
    status = client.wait()
    server.kill()
    return status, client.output()


def programs():
    with Daemon() as daemon:
        for text, words, said in ALONE:
            script = Script("call 1 of " + text)
            done = script.run(daemon, *words)
            out = done.stdout + done.stderr
            case("%s sees %s" % (" ".join(words), text), re.search(said, out) and len(script.applied()) == 1 and
                 script.applied()[0][0] == words[0], (done, script.applied()))
        for text, words, said in [
                ("call 20 of post_send: ENOMEM", ["ibv_rc_pingpong", "-g", "0"], "Couldn't post send"),
                ("call 1000 of poll_cq: EIO", ["ibv_rc_pingpong", "-g", "0", "-n", "5000"], r"poll CQ failed -\d+"),
                ("call 1 of create_ah: ENOMEM", ["ibv_ud_pingpong", "-g", "0"], "Failed to create AH"),
                ("call 1 of reg_mr: ENOMEM", ["ib_send_bw", "-F", "-x", "0"], "Couldn't allocate MR"),
                ("call 1 of create_qp: ENOMEM", ["ib_send_bw", "-F", "-x", "0"], "Unable to create QP")]:
            script = Script(text)
            status, output = server_run(daemon, script, words)
            case("%s sees %s" % (words[0], text), status != 0 and re.search(said, output) and script.applied(), output)
        script = Script("call 100 of post_send: ENOMEM")
        status, output = client_run(daemon, script, ["ib_write_bw", "-F", "-x", "0"])
        case("ib_write_bw sees a refused ibv_post_send()", status != 0 and script.applied() == [
            ("ib_write_bw", "call 100 of post_send: ENOMEM", "1")], output)
        words = ["ibv_rc_pingpong", "-g", "0", "-n", "100"]
        script = Script("call 1000000 of post_send: ENOMEM")
        server = Process(script.words(*words), env=daemon.env)
        wait_for_port(18515, server, 10)
        served, status, text = both(server, daemon.start(*words, "127.0.0.1"), 30)
        case("a rule that does not match disturbs nothing", (served, status) == (0, 0), text)


def errors():
    """A script with an error: nothing is started, and the line, the column and what is valid are named."""
    with Daemon() as daemon:
        for text, said in [
                ("\n link down\n", "script, line 2, column 2: 'link' is not known; valid: in "),
                ("call 1 of post_sned: ENOMEM", "line 1, column 11: 'post_sned' is not known; valid: alloc_mw, "),
                ("call 1 of poll_cq: ENOMEM", "line 1, column 20: 'ENOMEM' is not known; valid: EIO"),
                ("call 1 of reg_mr: ENOMEM\n" * 10001, "line 10001, column 1: a rule too many; valid: at most ")]:
            script = Script(text)
            done = script.run(daemon, "touch", os.path.join(script.folder.name, "started"))
            case("refused: %s" % said, done.returncode == 2 and said in done.stderr and
                 os.listdir(script.folder.name) == ["script"], done)
            done = process.run([FAULTS, "check", script.path])
            case("rocade-faults check: %s" % said, done.returncode == 1 and said in done.stderr and not done.stdout,
                 done)
        for options, said in [(["--seed", "1"], "--seed requires --faults"),
                              (["--fault-journal", "x"], "--fault-journal requires --faults"),
                              (["--faults", "/nonexistent"], "cannot read /nonexistent: No such file")]:
            done = daemon.run(*options, "true")
            case("refused: %s" % " ".join(options), done.returncode == 2 and said in done.stderr, done)
        script = Script("")
        done = script.run(daemon, "true", options=["--fault-journal", script.folder.name])
        case("a journal that cannot be written", done.returncode == 1 and "cannot write the journal" in done.stderr,
             done)
    script = Script("each 2nd poll_cq: EIO # x\n")
    done = process.run([FAULTS, "check", script.path])
    case("a script is explained", done.returncode == 0 and done.stdout == "line 1: in each process, each 2nd call of "
         "ibv_poll_cq() is refused with EIO; ibv_poll_cq(3), RETURN VALUE allows the failure.\n1 rule in all.\n", done)
    for words in ([], ["chekc"], ["check"], ["check", "a", "b"], ["replay", "a"], ["replay", "a", "--"],
                  ["replay", "a", "true"]):
        done = process.run([FAULTS, *words])
        case("rocade-faults %s" % " ".join(words), done.returncode == 2 and "expected" in done.stderr, done)


def local():
    """With a daemon of its own, and in a program that changes its directory."""
    script = Script("call 2 of alloc_pd: ENOMEM\ncall 1 of query_gid: EIO\n")
    done = process.run([RUN, "--start-local", "--library", LIBRARY, "--daemon", os.path.abspath(ROCADED), "--faults",
                        "script", "--fault-journal", "journal", "sh", "-c", "cd /; %s verbs" % os.path.abspath(PROGRAM)],
                       cwd=script.folder.name)
    case("--start-local", done.returncode == 3 and done.stdout == "query_gid: EIO\n", done)
    case("the journal is where it was named", script.rules() == ["call 1 of query_gid: EIO"], script.rules())


if __name__ == "__main__":
    sys.exit(run(calls, other_ways, lists, seeds, replays, names, files, signals, programs, errors, local))
