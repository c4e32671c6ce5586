#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-run --faults with rules of packets: each PACKET of docs/faults.def under programs that know nothing of it, by
the daemon and by a pair, packets that are sent again, the seed, the journal and its replay."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import LIBRARY, Daemon, both, wait_for_port  # noqa: E402
from faults import FAULTS, SOURCE, Script  # noqa: E402
from faults_requests import PROGRAM, RETRY_EXC, RTS, check, program  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run  # noqa: E402


def messages(seen):
    """Returns the requests whose messages have come, in the order of the receives."""
    return [int(n) for n in re.findall(r"^receive \d+: 0 of request (\d+)$", seen.done.stdout, re.M)]


def packets():
    """What a datagram, an unreliable and a reliable connection make of each effect."""
    with open(os.path.join(SOURCE, "docs/faults.def"), encoding="ascii") as file:
        names = set(re.findall(r'^PACKET\("(\w+)"', file.read(), re.M))
    tried = set()
    with Daemon() as daemon:
        for rule, kind, requests, want in [
                ("drop packet 1 of request 2", "ud", 4, [1, 3, 4]),
                ("duplicate packet 1 of request 3", "ud", 4, [1, 2, 3, 3]),
                ("delay packet 1 of request 2", "ud", 6, [1, 3, 4, 5, 2, 6]),
                ("drop packet 2 of request 2", "uc", 4, [1, 3, 4]),
                ("drop packet 3 of request 4", "uc", 5, [1, 2, 3, 5]),
                ("duplicate packet 2 of request 2", "uc", 4, [1, 3, 4]),
                # It comes within the next message, which is given up, too.
                ("delay packet 1 of request 2", "uc", 4, [1, 4]),
                ("drop packet 2 of request 2", "rc", 4, [1, 2, 3, 4]),
                ("duplicate packet 1 of request 2", "rc", 4, [1, 2, 3, 4]),
                ("delay packet 3 of request 2", "rc", 4, [1, 2, 3, 4])]:
            tried.add(rule.split()[0])
            script = Script(rule + " of qp 1\n")
            seen = program(daemon, script, kind, "imm", "list", requests, len(want), 0)
            case("%s: %s" % (kind, rule), messages(seen) == want and seen.statuses == [0] * requests and
                 script.rules() == [rule + " of qp 1"] and seen.states == [RTS, RTS], (seen, script.rules()))
    case("each effect was tried", tried == names, (tried, names))


def again():
    """Packets that are sent again have the next number, and shares are drawn anew for them."""
    with Daemon() as daemon:
        script = Script("drop packet 2 of request 2\ndrop copy 2 of packet 2 of request 2\n"
                        "delay copy 3 of packet 2 of request 2\n")
        seen = program(daemon, script, "rc", "write", "list", 4, 0, 0)
        case("a packet is lost twice, and sent three times", seen.statuses == [0] * 4 and
             [line for _, _, line in script.applied()] == ["1", "2", "3"], (seen, script.rules()))
        script = Script("drop 100% of packets of qp 1\n")
        seen = program(daemon, script, "rc", "write", "list", 2, 0, 0)
        case("a peer that gets nothing", seen.statuses == [RETRY_EXC, 5] and len(script.rules()) >= 8, seen)
        script = Script("drop each 4th packet of qp 1\n")
        seen = program(daemon, script, "uc", "imm", "list", 5, 2, 0)
        # Each request has three packets. The message of the last one comes when all have been sent.
        case("each fourth packet", messages(seen) == [1, 5] and script.rules() == [
            "drop packet %d of request %d of qp 1" % (n % 3 + 1, n // 3 + 1) for n in (3, 7, 11)], script.rules())
        for kind in ("ud", "uc"):
            script = Script("drop packet 1 of request 6 of qp 1\n")
            seen = program(daemon, script, kind, "imm", "list", 4, 3, 0, "again")
            case("%s: numbers go on behind RESET" % kind, messages(seen) == [1, 2, 3, 4, 1, 3, 4] and
                 len(script.rules()) == 1, seen)
        seen = program(daemon, Script("drop packet 1 of request 9 of qp 1"), "uc", "imm", "list", 4, 4, 0)
        case("a rule that was never applied", seen.statuses == [0] * 4 and "line 1: the rule was never applied; "
             "fault_requests counted 12 request packets, and created 2 QPs and 0 SRQs" in seen.done.stderr, seen)
        for kind in ("ud", "uc"):
            script = Script("request 4 of qp 1: fail local-length\ndrop packet 1 of request 2 of qp 1\n")
            seen = program(daemon, script, kind, "imm", "list", 5, 2, 0)
            case("%s: packets before a request that fails" % kind, messages(seen) == [1, 3] and
                 seen.statuses == [0, 0, 0, 1, 5] and {line for _, _, line in script.applied()} == {"1", "2"}, seen)


def reads():
    """Of a READ one packet counts, whatever it is divided into."""
    for options in ([], ["--impair", "loss=3%"]):
        with Daemon(*options) as daemon:
            script = Script("drop each 4th packet of qp 1\ndrop packet 2 of request 1 of qp 1\n")
            seen = program(daemon, script, "rc", "long_read", "list", 16, 0, 0)
            case("of 16 READs each fourth%s" % (", with losses" if options else ""), seen.statuses == [0] * 16 and
                 script.rules() == ["drop packet 1 of request %d of qp 1" % n for n in (4, 8, 12, 16)] and
                 "line 2: the rule was never applied" in seen.done.stderr, (seen, script.rules()))


def seeds():
    """The same seed loses the same packets; a journal is replayed."""
    with Daemon() as daemon:
        runs = []
        for seed in (3, 3, 4):
            script = Script("drop 20% of packets of qp 1\n")
            words = ("ud", "imm", "list", 16, 0, 0)
            program(daemon, script, *words, options=["--seed", str(seed)])
            runs.append(script.rules())
        case("the same seed loses the same packets", runs[0] == runs[1] and runs[0], runs)
        case("another one others", runs[0] != runs[2], runs)
        again_script = Script("")
        done = process.run([FAULTS, "replay", script.journal, "--", "--library", LIBRARY, "--fault-journal",
                            again_script.journal, PROGRAM, *(str(word) for word in words)], env=daemon.env)
        case("a replay loses them again", done.returncode == 0 and again_script.rules() == runs[2],
             (done, runs))


# That packet 1 is sent again shows that it was lost.
LOST = ("drop packet 1 of request 20 of qp 1\ndelay copy 2 of packet 1 of request 20 of qp 1\n"
        "duplicate packet 1 of request 30 of qp 1\n")


def two(daemon, words, script):
    """Runs two processes, of which the client has the script. Returns whether both succeed, and what they print."""
    server = daemon.start(*words)
    wait_for_port(18515, server, 10)
    client = Process(script.words(*words, "127.0.0.1"), env=daemon.env)
    status = (client.wait(), server.wait())
    return status == (0, 0), client.output() + server.output()


def pairs():
    """Two processes, by the daemon and by a pair: what is lost is sent again, and the programs succeed."""
    with Daemon() as daemon:
        for off in ("pairs", ""):
            daemon.env["ROCADE_OFF"] = off
            for words in (["ibv_rc_pingpong", "-g", "0", "-n", "200"],
                          ["ib_write_bw", "-F", "-x", "0", "-n", "500", "-s", "16384"]):
                script = Script(LOST)
                good, text = two(daemon, words, script)
                lines = script.rules()
                case("%s by %s" % (words[0], "the daemon" if off else "a pair"), good and
                     sorted(lines) == sorted(LOST.splitlines()), (text, lines))
        words = ["ib_write_bw", "-F", "-x", "0", "-n", "5000", "-s", "16384"]
        script = Script("drop 0.1% of packets of qp 1\n")
        until(lambda: daemon.status()["clients"] == [])
        before = daemon.status()["departed"]["pair_packets"]
        server = daemon.start(*words)
        wait_for_port(18515, server, 10)
        client = Process(script.words(*words, "127.0.0.1"), env=daemon.env)
        served, status, text = both(server, client, 60)
        direct = until(lambda: daemon.status()["departed"]["pair_packets"] - before > 5000)
        case("packets of a pair are lost, and the rest goes by it", direct and (served, status) == (0, 0) and
             len(script.rules()) > 10, (daemon.status(), len(script.rules()), text))


def errors():
    """Errors of such scripts, and what rocade-faults check says."""
    for text, said in [("drop", "column 5: the line ends too early; valid: packet N of, copy N of, each Nth, P% of"),
                       ("drop packet 1 of qp 1", "column 18: 'qp' is not known; valid: request"),
                       ("delay 1% of packets of srq 1", "column 24: 'srq' is not known; valid: qp"),
                       ("lose packet 1 of request 1", "'lose' is not known; valid: in \"PROGRAM\":, call N of, ")]:
        done = check(text)
        case("refused: %s" % said, done.returncode == 1 and said in done.stderr, done)


if __name__ == "__main__":
    sys.exit(run(packets, again, reads, seeds, pairs, errors))
