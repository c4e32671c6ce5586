#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-run --faults with rules of the link: each LINK of docs/faults.def under programs that know nothing of it, by the
daemon and by a pair: events, states, packets that are lost meanwhile, recovery and its end, the journal and its replay."""

import os
import re
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, LIBRARY, Daemon, wait_for_port  # noqa: E402
from event_loop import engines  # noqa: E402
from faults import FAULTS, Script, client_run  # noqa: E402
from faults_requests import ERR, FLUSHED, PROGRAM, RETRY_EXC, RTS, check, program  # noqa: E402
from faults_wire import messages, two  # noqa: E402
from process import Process, until  # noqa: E402
from sysfs_trees import CLASS, trees  # noqa: E402
from tap import case, run  # noqa: E402

PORT = os.path.join(CLIENTS, "test/e2e/fault_port")
JOURNAL = re.compile(r'^in "fault_port": (from .*) # line 1 of the script, process \d+, by the clock$', re.M)
UP, DOWN = "state 4 5, 4: ACTIVE, 5: LinkUp", "state 1 2, 1: DOWN, 2: Polling"
OFF = {"pairs": "the daemon", "": "a pair"}  # values of ROCADE_OFF
WRITE = ["ib_write_bw", "-F", "-x", "0", "-n", "5000", "-s", "16384"]
LATE = "request 4000 of qp 1: link down"  # a pair is there
ACTIVE, ERROR = 9, 10  # enum ibv_event_type


def outages(script):
    """Returns the rules of times in the journal."""
    with open(script.journal, encoding="ascii") as file:
        return JOURNAL.findall(file.read())


def events(done):
    """Returns the events that the program has seen."""
    return [int(event) for event in re.findall(r"^event (\d+)$", done.stdout, re.M)]


def requests():
    """Requests and receives take the link down and up. What is not answered in time ends as the IBA says."""
    with Daemon() as daemon:
        for kind, text, requests_, mode, statuses, seen_events, state in [
                ("rc", "request 3 of qp 1: link down for 100ms", 5, "single", [0] * 5, [ERROR, ACTIVE], RTS),
                ("rc", "request 3 of qp 1: link down for 100ms", 5, "batch", [0] * 5, [ERROR, ACTIVE], RTS),
                ("rc", "request 3 of qp 1: link down", 5, "single", [0, 0, RETRY_EXC, FLUSHED, FLUSHED], [ERROR], ERR),
                ("rc", "request 1 of qp 1: link down\nrequest 4 of qp 1: link up", 5, "list", [0] * 5, [ERROR, ACTIVE], RTS),
                ("rc", "request 2 of qp 1: link down for 100ms\nrequest 4 of qp 1: link down for 100ms", 5, "single",
                 [0] * 5, [ERROR, ACTIVE] * 2, RTS),
                ("rc", "receive 2 of qp 2: link down\nreceive 4 of qp 2: link up", 5, "list", [0] * 5, [ERROR, ACTIVE], RTS),
                ("srq", "receive 2 of srq 1: link down for 100ms", 5, "list", [0] * 5, [ERROR, ACTIVE], RTS)]:
            script = Script(text + "\n")
            seen = program(daemon, script, kind, "send", mode, requests_, statuses.count(0), len(seen_events))
            case("%s, %s: %s" % (kind, mode, text.replace("\n", ", ")), seen.statuses == statuses and
                 seen.events == seen_events and seen.states == [state, RTS] and script.rules() == text.split("\n"),
                 (seen, script.rules()))
        for kind in "ud", "uc":
            script = Script("request 1 of qp 1: link down\nrequest 4 of qp 1: link up\ndrop packet 1 of request 2 of qp 1\n")
            seen = program(daemon, script, kind, "imm", "list", 6, 3, 2)
            case("%s: messages meanwhile are lost" % kind, messages(seen) == [4, 5, 6] and seen.statuses == [0] * 6 and
                 seen.events == [ERROR, ACTIVE] and seen.states == [RTS, RTS], seen)
            case("%s: rules of packets count what is lost" % kind, "drop packet 1 of request 2 of qp 1" in script.rules() and
                 len(script.rules()) == 3, script.rules())
        seen = program(daemon, Script("from 0s: link down\nfrom 1ms to 2ms: link down\n"), "rc", "send", "single", 2, 0, 1)
        case("a shorter outage ends no longer one", seen.statuses == [RETRY_EXC, FLUSHED] and seen.events == [ERROR], seen)
        script = Script("request 2 of qp 1: link up\nrequest 3 of qp 1: link down for 1ms\n")
        seen = program(daemon, script, "rc", "send", "single", 4, 4, 2)
        case("a link that is up goes up no more", script.rules() == ["request 3 of qp 1: link down for 1ms"] and
             "line 1: the rule was never applied" in seen.done.stderr and seen.events == [ERROR, ACTIVE], seen)


def times():
    """The link goes down by the clock. The program sees events and states, in verbs and in files."""
    with Daemon() as daemon:
        script = Script("from 0s: link down\n")
        done = script.run(daemon, PORT, "1")
        case("a link that is down from the start on", done.stdout.splitlines() == [DOWN, "event 10", DOWN] and
             done.returncode == 0 and outages(script) == ["from 0s: link down"], done)
        script = Script("from 200ms to 400ms: link down\n")
        done = script.run(daemon, PORT, "2")
        case("down and up", done.returncode == 0 and events(done) == [ERROR, ACTIVE] and
             done.stdout.splitlines()[-1] == UP and outages(script) == ["from 200ms to 400ms: link down"], done)
        script = Script("from 100ms to 1s: link down for 50ms each 300ms\n")
        done = script.run(daemon, PORT, "6")
        want = ["from 100ms to 150ms: link down", "from 400ms to 450ms: link down", "from 700ms to 750ms: link down"]
        case("a link that flaps", done.returncode == 0 and events(done) == [ERROR, ACTIVE] * 3 and
             done.stdout.splitlines()[-1] == UP and outages(script) == want, (done, outages(script)))
        replayed = Script("")
        done = process.run([FAULTS, "replay", script.journal, "--", "--library", LIBRARY, "--fault-journal",
                            replayed.journal, PORT, "6"], env=daemon.env)
        with open(replayed.journal, encoding="ascii") as file:
            again = [line.split(" # ")[0].split(": ", 1)[1] for line in file if line.startswith("in ")]
        case("a replay", done.returncode == 0 and events(done) == [ERROR, ACTIVE] * 3 and again == want, (done, again))
        done = Script("from 80000s to 80001s: link down\n").run(daemon, PORT, "0")
        case("a time that does not come", done.stdout == UP + "\n" and re.search(
            "line 1: the rule was never applied; fault_port has ended before its time", done.stderr), done)
        done = Script('in "another": from 0s: link down\n').run(daemon, PORT, "0")
        case("a rule for another program", done.stdout == UP + "\n", done)


def status():
    """rocade-status shows how often the link was taken down."""
    with Daemon() as daemon:
        script = Script("from 0s to 86400s: link down for 1ms each 100ms\n")
        watcher = Process(script.words(PORT, "1000000"), env=daemon.env)
        seen = until(lambda: [engine for engine in engines(daemon) if engine["link_cuts"] >= 2])
        watcher.kill()
        case("the counter of a client", seen and len(outages(script)) >= 2, (daemon.status(), outages(script)))


def replays():
    """A journal of requests that take the link down is replayed."""
    with Daemon() as daemon:
        script, again = Script("each 2nd request of qp 1: link down for 20ms\n"), Script("")
        words = [PROGRAM, "rc", "write", "single", "6", "0", "6"]
        done = script.run(daemon, *words)
        replayed = process.run([FAULTS, "replay", script.journal, "--", "--library", LIBRARY, "--fault-journal",
                                again.journal, *words], env=daemon.env)
        case("replayed", done.returncode == 0 and replayed.stdout == done.stdout and script.rules() == again.rules() == [
            "request %d of qp 1: link down for 20ms" % n for n in (2, 4, 6)], (done, replayed, again.rules()))


def by_pairs(daemon):
    """Returns how many packets of clients that have ended went by pairs."""
    until(lambda: daemon.status()["clients"] == [])
    return daemon.status()["departed"]["pair_packets"]


def pairs():
    """Two processes, by the daemon and by a pair: packets of one are lost, both ways, and the programs succeed."""
    with Daemon() as daemon:
        for off, way in OFF.items():
            daemon.env["ROCADE_OFF"] = off
            before = by_pairs(daemon)
            for words in (["ibv_rc_pingpong", "-g", "0", "-n", "5000"], WRITE, ["ib_read_bw", *WRITE[1:]]):
                script = Script(LATE + " for 100ms\n")
                good, text = two(daemon, words, script)
                after = by_pairs(daemon)
                case("%s by %s" % (words[0], way), good and script.rules() == [LATE + " for 100ms"] and
                     (after > before) == (off == ""), (text, script.rules(), before, after))
                before = after
            # The server never ends: what it has sent last was not acknowledged.
            script = Script(LATE + "\n")
            status, text = client_run(daemon, script, WRITE)
            case("a link that stays down ends the connection by %s" % way, status != 0 and
                 re.search("Failed status 12", text), text)


def others():
    """The packets of the process are lost, and the other ones keep their link."""
    words = [*WRITE, "-u", "20"]  # it goes on for half a minute
    with Daemon() as daemon:
        for off, way in OFF.items():
            daemon.env["ROCADE_OFF"] = off
            third = daemon.start(PORT, "1")
            third.wait_line(UP)
            server = daemon.start(*words)
            wait_for_port(18515, server, 10)
            script = Script(LATE + "\n")
            client = Process(script.words(*words, "127.0.0.1"), env=daemon.env)
            seen = until(lambda: [engine for engine in engines(daemon) if engine["link_cut_lost"] > 0])
            every = engines(daemon)
            case("one of three processes has no link, by %s" % way,
                 seen and sorted(engine["link_cuts"] for engine in every) == [0, 0, 1] and
                 sorted(engine["link_cut_lost"] > 0 for engine in every) == [False, False, True] and
                 sum(engine["pair_tx"] > 0 for engine in every) == (2 if off == "" else 0) and
                 third.output() == UP + "\n" and daemon.run(PORT, "0").stdout == UP + "\n", (every, third.output()))
            for one in client, server, third:
                one.kill()
            until(lambda: daemon.status()["clients"] == [])


FORKS = """
import glob, os
os.listdir("%s")
if os.fork() == 0:
    os.listdir("%s")
    os.kill(os.getpid(), 9)
os.wait()
print(len(glob.glob("%s/rocade-sysfs-*")))
"""


def files():
    """The files of a process with rules of the link are in no tree that others share."""
    runtime = tempfile.mkdtemp(prefix="rocade-run-")
    with Daemon() as daemon:
        daemon.env["XDG_RUNTIME_DIR"] = runtime
        first = daemon.run(PORT, "0")
        shared = trees(runtime)
        script = Script("from 0s: link down\n")
        down = Process(script.words(PORT, "2"), env=daemon.env)
        down.wait_line("event %d" % ERROR)
        states = []
        for tree in trees(runtime):
            with open(tree + CLASS + "/ports/1/state", encoding="ascii") as file:
                states.append(file.read())
        again = daemon.run(PORT, "0")
        case("two states of a link at a time", len(shared) == 1 and sorted(states) == ["1: DOWN\n", "4: ACTIVE\n"] and
             first.stdout == again.stdout == UP + "\n", (shared, states, first, again))
        down.send_signal(signal.SIGKILL)
        down.wait()
        done = Script("from 0s: link down\n").run(daemon, PORT, "1")
        case("its tree goes with the process, and that of one that was killed", done.returncode == 0 and
             trees(runtime) == shared, (done, trees(runtime), shared))
        done = Script("request 1: link down\n").run(daemon, sys.executable, "-c", FORKS % (CLASS, CLASS, runtime))
        case("a forked child has its own", done.stdout == "3\n", done)
        done = Script('in "another": request 1: link down\n').run(
            daemon, sys.executable, "-c", FORKS % (CLASS, CLASS, runtime))
        case("not for rules of another program", int(done.stdout) <= 2 and shared[0] in trees(runtime), done)
    shutil.rmtree(runtime)


def errors():
    """Errors of such scripts, and what rocade-faults check says."""
    for text, said in [("from 2s to 1s: link down", "column 12: '1s' is not known; valid: a time after that of from"),
                       ("request 1: link", "column 16: the line ends too early; valid: down, up"),
                       ("request 1: link down for 1h", "column 26: '1h' is not known; valid: a time from 1ms to 86400s")]:
        done = check(text)
        case("refused: %s" % said, done.returncode == 1 and said in done.stderr, done)
    done = check("request 1000 of qp 2: link down for 500ms\n")
    case("a script is explained", done.returncode == 0 and done.stdout == "line 1: in each process, send request 1000 of QP 2 "
         "takes the link down for 500ms, when it is posted; IBA 11.6.3, Port Error allows it.\n1 rule in all.\n", done)


if __name__ == "__main__":
    sys.exit(run(requests, times, status, replays, pairs, others, files, errors))
