#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-run --faults with rules of requests: each COMPLETION and EVENT of docs/faults.def under a program that knows
nothing of it, what is behind a request that fails, batches, the seed, the journal and its replay, programs of rdma-core
and perftest."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, LIBRARY, Daemon  # noqa: E402
from faults import FAULTS, PROGRAM as CALLS, SOURCE, Script, client_run, server_run  # noqa: E402
from tap import case, run  # noqa: E402

PROGRAM = os.path.join(CLIENTS, "test/e2e/fault_requests")
ROW = re.compile(r'^(COMPLETION|EVENT)\((\w+), "([\w-]+)", IBV_(?:WC|EVENT)_(\w+), ([A-Z |]+), ([A-Z |]+),\s+"[^"]+",\s+'
                 r'"[^"]+"\)$', re.M)
FLUSHED, RETRY_EXC = 5, 12
# enum ibv_wc_status, enum ibv_event_type, enum ibv_qp_state
STATUS = {"LOC_LEN_ERR": 1, "LOC_QP_OP_ERR": 2, "LOC_PROT_ERR": 4, "MW_BIND_ERR": 6, "BAD_RESP_ERR": 7,
          "REM_INV_REQ_ERR": 9, "REM_ACCESS_ERR": 10, "REM_OP_ERR": 11, "RETRY_EXC_ERR": 12, "RNR_RETRY_EXC_ERR": 13}
EVENT = {"CQ_ERR": 0, "QP_FATAL": 1, "DEVICE_FATAL": 8, "SRQ_ERR": 14, "QP_LAST_WQE_REACHED": 16}
RTS, SQE, ERR = 3, 5, 6
# Operations of the program by the words of docs/faults.def.
SENDS = {"send", "imm", "inv"}
DATA = SENDS | {"write", "write_imm", "read", "cas", "add", "inline"}
WORDS = {"DATA": DATA, "PACKETS": DATA | {"empty"}, "LOCAL": {"local_inv", "bind"}, "KEYED": DATA - {"send", "imm", "inline"},
         "TAKING": SENDS | {"write_imm", "empty", "inline"}}
OF_TYPE = {"rc": sorted(DATA | {"empty", "local_inv", "bind"}), "uc": ["send", "write", "bind"], "ud": ["imm", "inline", "send"]}


def rows(kind, counted):
    """Returns name, value, operations and types of each row."""
    with open(os.path.join(SOURCE, "docs/faults.def"), encoding="ascii") as file:
        text = file.read()
    found = ROW.findall(text)
    if len(found) != len(re.findall(r"^(?:COMPLETION|EVENT)\(", text, re.M)):
        raise ValueError("docs/faults.def has rows that this program does not understand")
    for row_kind, row_counted, name, value, kinds, types in found:
        if (row_kind, row_counted) == (kind, counted):
            words = kinds.split(" | ")
            operations = set().union(*(WORDS.get(word, set()) for word in words))
            if "BYTES" in words:
                operations.discard("empty")
            if "MEMORY" in words:
                operations.discard("inline")
            types = types.replace("QP", "RC | UC | UD").replace("ANY", "RC | UC | UD | SRQ").lower().split(" | ")
            yield name, value, operations, types


class Seen:
    """What the program has printed."""

    def __init__(self, done):
        self.done = done
        self.requests = {int(n): (int(status), int(vendor)) for n, status, vendor in
                         re.findall(r"^request (\d+): (\d+) (\d+)$", done.stdout, re.M)}
        self.receives = {int(n): int(status) for n, status in re.findall(r"^receive (\d+): (\d+)(?: of request \d+)?$", done.stdout, re.M)}
        self.events = [int(event) for event in re.findall(r"^event (\d+)$", done.stdout, re.M)]
        self.states = [int(state) for state in re.findall(r"^qp \d: (\d+)$", done.stdout, re.M)]
        self.statuses = [self.requests[n][0] for n in sorted(self.requests)]

    def __repr__(self):
        return repr(self.done)


def program(daemon, script, *words, options=()):
    return Seen(script.run(daemon, PROGRAM, *(str(word) for word in words), options=options))


def completions():
    """Each status on each operation: it completes so if a row says that it may, and else with success."""
    with Daemon() as daemon:
        for name, value, operations, types in rows("COMPLETION", "request"):
            for kind, all_operations in OF_TYPE.items():
                for operation in all_operations:
                    last = {"bind": 1, "inv": 1, "local_inv": 2}.get(operation)
                    number, count, mode = (last, last, "single") if last else (3, 5, "list")
                    script = Script("request %d of qp 1: fail %s vendor 77\n" % (number, name))
                    fits = kind in types and operation in operations
                    if not fits and operation == "inv":
                        continue  # it would need a window at the peer
                    seen = program(daemon, script, kind, operation, mode, count, 0, 0)
                    case("%s, %s: %s%s" % (kind, operation, "" if fits else "not ", name), seen.requests == {
                        n: (0, 0) if n < number or not fits else (STATUS[value], 77) if n == number else (
                            FLUSHED, seen.requests[n][1]) for n in range(1, count + 1)} and
                         seen.states[0] == (RTS if not fits else ERR if kind == "rc" else SQE) and
                         script.rules() == (["request %d of qp 1: fail %s vendor 77" % (number, name)] if fits else []) and
                         ("never applied" in seen.done.stderr) != fits, (seen, script.rules()))


def receives():
    """A receive that fails: the peer sees what belongs to it."""
    at_peer = {"LOC_LEN_ERR": "REM_INV_REQ_ERR", "LOC_PROT_ERR": "REM_OP_ERR"}
    with Daemon() as daemon:
        for name, value, _, types in rows("COMPLETION", "receive"):
            for kind in ("rc", "srq", "uc", "ud"):
                queue = "srq 1" if kind == "srq" else "qp 2"
                script = Script("receive 2 of %s: fail %s\n" % (queue, name))
                fits = kind in types
                # An SRQ keeps its receives.
                count = 4 if not fits or kind != "srq" else 2
                seen = program(daemon, script, kind, "send", "list", 4, count, 0)
                fails = [0, STATUS[at_peer[value]], FLUSHED, FLUSHED] if fits and kind in ("rc", "srq") else [0] * 4
                case("%s: %s%s" % (kind, "" if fits else "not ", name), seen.statuses == fails and seen.receives == {
                    n: 0 if n == 1 or not fits else STATUS[value] if n == 2 else FLUSHED
                    for n in range(1, count + 1)} and seen.states[1] == (ERR if fits else RTS) and
                     script.rules() == (["receive 2 of %s: fail %s" % (queue, name)] if fits else []), seen)
        script = Script("receive 2 of qp 2: fail local-length\n")
        seen = program(daemon, script, "rc", "write_imm", "list", 4, 4, 0)
        case("a WRITE does not use the memory of the receive that it takes", seen.statuses == [0] * 4 and
             set(seen.receives.values()) == {0} and len(script.rules()) == 1, seen)
        seen = program(daemon, Script("receive 2 of qp 2: fail local-protection\n"), "rc", "no_room", "list", 4, 4, 0)
        case("a receive without room has no memory to check", seen.statuses == [0] * 4 and "never applied" in seen.done.stderr,
             seen)


def events():
    """Each event, and what is behind it."""
    with Daemon() as daemon:
        script = Script("each 1st request: event qp-fatal\n")
        seen = program(daemon, script, "rc", "write", "single", 5, 0, 1)
        case("a QP in ERR has no more errors", seen.events == [EVENT["QP_FATAL"]] and seen.statuses == [FLUSHED] * 5 and
             script.rules() == ["request 1 of qp 1: event qp-fatal"], seen)
        done = Script("receive 65: event device-fatal").run(daemon, CALLS, "full")
        case("a receive that the device refuses causes no event", done.stdout == "refused 65: ENOMEM\n" * 3 and
             "never applied" in done.stderr, done)
        for name, value, _, _ in rows("EVENT", "request"):
            script = Script("request 3 of qp 1: event %s\n" % name)
            seen = program(daemon, script, "rc", "write", "single", 5, 0, 2 if name == "cq-error" else 1)
            case("request: %s" % name, seen.events[:1] == [EVENT[value]] and seen.states[0] == ERR and
                 (seen.states[1] == ERR) == (name == "device-fatal") and
                 seen.statuses == ([0, 0] if name == "cq-error" else [0, 0] + [FLUSHED] * 3) and
                 script.rules() == ["request 3 of qp 1: event " + name], seen)
        for name, value, _, types in rows("EVENT", "receive"):
            kind = "srq" if types == ["srq"] else "rc"
            queue = "srq 1" if kind == "srq" else "qp 2"
            script = Script("receive 3 of %s: event %s\n" % (queue, name))
            # QP 2 says that it takes no more receives from the SRQ.
            seen = program(daemon, script, kind, "send", "single", 1, 0, 0)
            case("receive: %s is not reached" % name, seen.statuses == [0] and "never applied" in seen.done.stderr, seen)
            seen = program(daemon, script, kind, "send", "single", 4, 0, 2 if kind == "srq" else 1)
            case("receive: %s" % name, EVENT[value] in seen.events and seen.states[1] == ERR and
                 (kind != "srq" or EVENT["QP_LAST_WQE_REACHED"] in seen.events) and
                 script.rules() == ["receive 3 of %s: event %s" % (queue, name)], seen)
        seen = program(daemon, Script("receive 3 of srq 1: fail local-protection\n"), "srq", "send", "list", 4, 3, 1)
        case("LAST_WQE_REACHED of a QP whose receive fails", seen.events == [EVENT["QP_LAST_WQE_REACHED"]], seen)


def counts():
    """Each queue counts for itself; batches; shares; vendor_err; rules that are never applied."""
    with Daemon() as daemon:
        script = Script("request 3 of qp 1: fail retry-exceeded\n")
        seen = program(daemon, script, "rc", "send", "batch", 5, 2, 0)
        case("of a batch a request fails, and those behind it are flushed", seen.statuses == [0, 0, 12, 5, 5] and
             seen.requests[3] == (12, 0) and seen.states == [ERR, RTS], seen)
        seen = program(daemon, Script("request 3: fail local-protection vendor 9\n"), "ud", "send", "batch", 5, 2, 0)
        case("of a batch of datagrams", seen.requests[3] == (4, 9) and seen.statuses == [0, 0, 4, 5, 5], seen)
        seen = program(daemon, Script("request 2: event qp-fatal\n"), "rc", "send", "batch", 3, 0, 1)
        case("an event within a batch", seen.events == [EVENT["QP_FATAL"]] and seen.statuses == [FLUSHED] * 3, seen)
        script = Script("request 3 of qp 1: fail local-length\n")
        seen = program(daemon, script, "ud", "send", "refused", 5, 2, 0)
        case("requests that the device refuses do not count", seen.statuses == [0, 0, 1, 5, 5] and
             len(script.rules()) == 1, seen)
        seen = program(daemon, Script("request 1 of qp 1: event qp-fatal\n"), "ud", "send", "refused", 2, 0, 1)
        case("nor do they cause an event", seen.done.stdout.count("refused: %d\n" % RTS) == 2 and
             seen.statuses == [FLUSHED] * 2, seen)
        for rule, number in [("each 2nd request", 2), ("100% of requests", 1), ("request 4", 4)]:
            script = Script("%s: fail remote-access\n" % rule)
            seen = program(daemon, script, "rc", "write", "single", 5, 0, 0)
            case("%s of each QP" % rule, [n for n in seen.requests if seen.requests[n][0] == 10] == [number] and
                 script.rules()[0] == "request %d of qp 1: fail remote-access" % number, seen)
        for rule, counted in [("request 1 of qp 2: fail retry-exceeded", "5 send requests"),
                              ("request 6 of qp 1: fail retry-exceeded", "5 send requests"),
                              ("receive 1 of srq 1: fail local-length", "5 receive requests")]:
            seen = program(daemon, Script(rule), "rc", "send", "list", 5, 5, 0)
            case("never applied: %s" % rule, seen.statuses == [0] * 5 and "line 1: the rule was never applied; "
                 "fault_requests counted %s, and created 2 QPs and 0 SRQs" % counted in seen.done.stderr, seen)
        seen = program(daemon, Script("100% of requests: fail memory-window-bind"), "rc", "bind_mw", "single", 5, 0, 0)
        case("requests of ibv_bind_mw() count, and no rule concerns them", seen.statuses == [0] * 5 and
             "counted 5 send requests" in seen.done.stderr, seen)
        seen = program(daemon, Script("request 6: fail retry-exceeded"), "rc", "send", "list", 4, 1, 0, "again")
        case("requests behind RESET count on", seen.statuses == [0, RETRY_EXC, 5, 5], seen)
        done = Script("receive 65 of qp 1: fail local-protection").run(daemon, CALLS, "full")
        case("a receive that the device refuses does not count", done.stdout == "refused 65: ENOMEM\n" * 3 and
             "counted 64 receive requests" in done.stderr, done)
        script = Script("receive 1 of qp 1: fail local-length\n")
        done = script.run(daemon, CALLS, "forked")
        with open(script.journal, encoding="ascii") as file:
            lines = re.findall(r"^in .*: receive 1 of qp 1: fail local-length # .* process (\d+)$", file.read(), re.M)
        case("the QPs of a child of fork() have numbers from 1", done.returncode == 0 and len(set(lines)) == 2, (done, lines))
        runs = []
        for seed in (5, 5, 6, 7, 8):
            script = Script("30% of requests: fail bad-response\n")
            seen = program(daemon, script, "rc", "read", "single", 16, 0, 0, options=["--seed", str(seed)])
            runs.append((seen.statuses.index(7), script.rules()))
        case("the same seed fails the same request", runs[0] == runs[1], runs)
        case("other seeds fail others", len({first for first, _ in runs}) > 1, runs)


def replays():
    """A journal of requests is replayed."""
    with Daemon() as daemon:
        for text, words in [("20% of requests: fail retry-exceeded vendor 3\n", ("rc", "send", "single", 16, 0, 0)),
                            ("each 2nd receive: fail local-length\n", ("srq", "send", "single", 4, 2, 0)),
                            ("request 2: event qp-fatal\n", ("rc", "write", "single", 4, 0, 1))]:
            script, again = Script(text), Script("")
            seen = program(daemon, script, *words, options=["--seed", "11"])
            done = process.run([FAULTS, "replay", script.journal, "--", "--library", LIBRARY, "--fault-journal",
                                again.journal, PROGRAM, *(str(word) for word in words)], env=daemon.env)
            case("replayed: %s" % text.strip(), script.rules() and
                 sorted(done.stdout.splitlines()) == sorted(seen.done.stdout.splitlines()) and
                 again.rules() == script.rules(), (seen, done))


def programs():
    """Programs of rdma-core and perftest, and what they print."""
    with Daemon() as daemon:
        for text, words, said in [
                ("request 20 of qp 1: fail retry-exceeded", ["ibv_rc_pingpong", "-g", "0"],
                 r"Failed status transport retry counter exceeded \(12\)"),
                ("request 20: fail rnr-retry-exceeded", ["ibv_srq_pingpong", "-g", "0"],
                 r"Failed status RNR retry counter exceeded \(13\)"),
                ("request 20 of qp 1: fail local-protection", ["ibv_ud_pingpong", "-g", "0"],
                 r"Failed status local protection error \(4\)"),
                ("receive 20 of qp 1: fail local-length", ["ibv_rc_pingpong", "-g", "0"],
                 r"Failed status local length error \(1\)")]:
            script = Script(text)
            status, output = server_run(daemon, script, words)
            case("%s sees %s" % (words[0], text), status != 0 and re.search(said, output), output)
        script = Script("request 100 of qp 1: fail remote-access vendor 136")
        status, output = client_run(daemon, script, ["ib_write_bw", "-F", "-x", "0"])
        case("ib_write_bw sees a request that fails", status != 0 and
             re.search(r"Failed status 10: wr_id \d+ syndrom 0x88", output), output)


def check(text):
    """Runs rocade-faults check."""
    script = Script(text)
    return process.run([FAULTS, "check", script.path])


def errors():
    """Errors of such scripts, and what rocade-faults check says."""
    for text, said in [
            ("request 1 of srq 1: fail retry-exceeded", "column 14: 'srq' is not known; valid: qp"),
            ("receive 1: fail retry-exceeded", "column 17: 'retry-exceeded' is not known; valid: local-length, local-p"),
            ("request 1: event link", "column 18: 'link' is not known; valid: cq-error, device-fatal, qp-fatal"),
            ("each 2nd receive: fail local-length vendor 1", "column 37: 'vendor' is not known; valid: the end")]:
        done = check(text)
        case("refused: %s" % said, done.returncode == 1 and said in done.stderr, done)
    done = check("request 9 of qp 2: fail retry-exceeded vendor 7\n")
    case("a script is explained", done.returncode == 0 and done.stdout == "line 1: in each process, send request 9 of QP 2 "
         "completes with the status retry-exceeded and vendor_err 7, if it can have it; IBA 11.6.2, Transport Retry Counter "
         "Exceeded allows it.\n1 rule in all.\n", done)


if __name__ == "__main__":
    sys.exit(run(completions, receives, events, counts, replays, programs, errors))
