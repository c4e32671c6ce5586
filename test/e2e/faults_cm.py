#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-run --faults, rules of connections: each CM row of docs/faults.def under programs of librdmacm that know
nothing of it, what their ends see, what the daemon counts, and journals that are replayed."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, LIBRARY, Daemon, both  # noqa: E402
from faults import FAULTS, SOURCE, Script  # noqa: E402
from faults_requests import check  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run  # noqa: E402

PAIR = os.path.join(CLIENTS, "test/e2e/fault_cm_pair")
ADDRESS = "192.0.2.1"
ROW = re.compile(r'^CM\((\w+), (\w+), "([\w-]+)", (\w+), "[^"]+", "[^"]+"\)$', re.M)
ETIMEDOUT = -110
PINGS = "20000"  # the thread of rping that gets the event runs before the last one
# Both ends see this of a connection without faults.
CLIENT = ["ADDR_RESOLVED 0", "ROUTE_RESOLVED 0", "ESTABLISHED 0", "DISCONNECTED 0"]
SERVER = ["CONNECT_REQUEST 0", "ESTABLISHED 0", "DISCONNECTED 0"]


def rows(action):
    """Returns what is counted, name and value of each row of an action."""
    with open(os.path.join(SOURCE, "docs/faults.def"), encoding="ascii") as file:
        text = file.read()
    found = ROW.findall(text)
    if len(found) != len(re.findall(r"^CM\(", text, re.M)):
        raise ValueError("docs/faults.def has rows of connections that this program does not understand")
    return [(counted, name, value) for counted, of, name, value in found if of == action]


class Seen:
    """The events of both ends, in their order at each."""

    def __init__(self, done):
        self.done = done
        self.client, self.server = (re.findall(r"^%s RDMA_CM_EVENT_(\w+ -?\d+)$" % end, done.stdout, re.M)
                                    for end in ("client", "server"))

    def __repr__(self):
        return repr(self.done)


def pair(daemon, script, *words):
    return Seen(script.run(daemon, PAIR, ADDRESS, *words))


def counted(daemon, before, name="faults"):
    return daemon.status()["rdma_cm"][name] - before["rdma_cm"][name]


def events():
    """An event that names an error, and the program's second attempt."""
    wants = {"addr-error": ["ADDR_ERROR"], "route-error": ["ADDR_RESOLVED 0", "ROUTE_ERROR"],
             "unreachable": ["ADDR_RESOLVED 0", "ROUTE_RESOLVED 0", "UNREACHABLE"]}
    with Daemon() as daemon:
        seen = pair(daemon, Script(""))
        case("without faults", seen.client == CLIENT and seen.server == SERVER and seen.done.returncode == 0, seen)
        for call, name, _ in rows("EVENT"):
            if call == "request":
                continue
            text = "call 1 of %s: event %s" % (call, name)
            want = wants[name][:-1] + ["%s %d" % (wants[name][-1], ETIMEDOUT)]
            before = daemon.status()
            script = Script(text + "\n")
            seen = pair(daemon, script)
            case(text, seen.done.returncode == 0 and seen.client == want and seen.server == [] and
                 script.rules() == [text] and counted(daemon, before) == 1 and "never" not in seen.done.stderr, seen)
            seen = pair(daemon, script, "again")
            on = CLIENT[{"addr-error": 0, "route-error": 1, "unreachable": 0}[name]:]
            case("%s, and once more" % text, seen.done.returncode == 0 and seen.client == want + on and
                 seen.server == SERVER, seen)
        seen = pair(daemon, Script("call 1 of rdma_resolve_addr: event addr-error"), "astray")
        case("a rule of a call that fails does not concern the next one", seen.done.returncode == 0 and
             seen.client == CLIENT, seen)
        script = Script("each 2nd rdma_resolve_route: event route-error\n")
        seen = pair(daemon, script)
        case("call 2 there is none", seen.client == CLIENT and "counted 1 calls of rdma_resolve_route" in seen.done.stderr,
             seen)


def synchronous():
    """An ID without an event channel: the call itself returns the error of the event."""
    with Daemon() as daemon:
        for text, said in [("rdma_resolve_addr: event addr-error", "ETIMEDOUT"),
                           ("rdma_resolve_route: event route-error", "ETIMEDOUT"),
                           ("rdma_connect: event unreachable", "ETIMEDOUT"),
                           ("rdma_connect: reject consumer", "ECONNREFUSED")]:
            script = Script("call 1 of " + text)
            done = script.run(daemon, PAIR, ADDRESS, "sync")
            case("without an event channel: %s" % text, done.returncode == 3 and
                 done.stdout == "%s: %s\n" % (text.split(":")[0], said) and script.rules() == ["call 1 of " + text], done)


def rejects():
    """Each reason of a REJ."""
    with Daemon() as daemon:
        for call, name, value in rows("REJECT"):
            text = "call 1 of %s: reject %s" % (call, name)
            script = Script(text)
            seen = pair(daemon, script)
            case(text, seen.done.returncode == 0 and seen.client == CLIENT[:2] + ["REJECTED " + value] and
                 seen.server == [] and script.rules() == [text], seen)


def losses():
    """A message that is lost: it is sent again, and both ends see nothing of it."""
    with Daemon() as daemon:
        for call, name, _ in rows("LOSE"):
            text = "call 1 of %s: lose %s" % (call, name)
            script = Script(text)
            before = daemon.status()
            seen = pair(daemon, script)
            case(text, seen.done.returncode == 0 and seen.client == CLIENT and seen.server == SERVER and
                 script.rules() == [text] and counted(daemon, before) == 1 and counted(daemon, before, "resent") >= 1,
                 (seen, daemon.status()["rdma_cm"]))


def rping(daemon, script):
    """Returns the status and the output of a client with the script."""
    server = daemon.start("rping", "-s", "-C", PINGS, "-v")
    daemon.wait_listener(server)
    client = Process(script.words("rping", "-c", "-a", ADDRESS, "-C", PINGS, "-v"), env=daemon.env)
    served, status, text = both(server, client, 60)
    return served, status, text


def ends():
    """A connection that ends among its requests."""
    with Daemon() as daemon:
        [(_, name, _)] = [row for row in rows("EVENT") if row[0] == "request"]
        text = "request 5 of qp 1: event %s" % name
        script = Script(text)
        seen = pair(daemon, script)
        case(text, seen.done.returncode == 0 and seen.client == CLIENT and seen.server == SERVER and
             script.rules() == [text], seen)
        script = Script("request 1 of qp 1: event disconnected\nrequest 2 of qp 1: event disconnected\n")
        seen = pair(daemon, script)
        case("it ends once", seen.client == CLIENT and script.rules() == ["request 1 of qp 1: event disconnected"] and
             "line 2: the rule was never applied" in seen.done.stderr, seen)
        # The request that fails is in the journal first: the connection ends when the batch has been posted.
        script = Script("request 1 of qp 1: event disconnected\nrequest 2 of qp 1: fail remote-operation\n"
                        "request 3 of qp 1: event disconnected\n")
        seen = pair(daemon, script, "batch")
        case("a connection ends behind the post of a batch", seen.done.returncode == 0 and seen.client == CLIENT and
             seen.server == SERVER and script.rules() == ["request 2 of qp 1: fail remote-operation",
                                                          "request 1 of qp 1: event disconnected"], seen)
        # The server answers the DREQ of its peer: it sends none.
        script = Script("call 2 of rdma_disconnect: lose dreq")
        seen = pair(daemon, script)
        case("a rule of what the call does not do is not applied", seen.done.returncode == 0 and seen.client == CLIENT and
             script.rules() == [] and "never applied; fault_cm_pair counted 2 calls of rdma_disconnect" in
             seen.done.stderr, seen)
        script = Script("request 7 of qp 1: event disconnected")
        served, status, output = rping(daemon, script)
        case("rping sees it, at both ends", script.rules() == ["request 7 of qp 1: event disconnected"] and
             None not in (served, status) and output.count("DISCONNECT EVENT") == 2 and
             0 < output.count("server ping data: ") < int(PINGS), (served, status, output))
        script = Script("call 1 of rdma_connect: reject consumer")
        server = daemon.start("rping", "-s", "-C", "20", "-v")
        daemon.wait_listener(server)
        done = script.run(daemon, "rping", "-c", "-a", ADDRESS, "-C", "20", "-v")
        case("rping is rejected", done.returncode not in (0, None) and
             "cma event RDMA_CM_EVENT_REJECTED, error 28" in done.stdout + done.stderr, done)
        script = Script("request 3 of qp 1: event disconnected")
        done = script.run(daemon, os.path.join(CLIENTS, "test/e2e/fault_requests"), "rc", "send", "list", "5", "5", "0")
        case("a QP without a connection of RDMA-CM", done.returncode == 0 and script.rules() == [] and
             "never applied" in done.stderr, done)


def replays():
    """A journal is replayed; the same seed draws the same calls."""
    with Daemon() as daemon:
        for text in ("50% of rdma_resolve_addr: event addr-error\n", "call 1 of rdma_connect: reject no-qp\n",
                     "each 3rd request of qp 1: event disconnected\n"):
            script, again = Script(text), Script("")
            seen = pair(daemon, script)
            done = process.run([FAULTS, "replay", script.journal, "--", "--library", LIBRARY, "--fault-journal",
                                again.journal, PAIR, ADDRESS], env=daemon.env)
            case("replayed: %s" % text.strip(), sorted(done.stdout.splitlines()) == sorted(seen.done.stdout.splitlines())
                 and again.rules() == script.rules(), (seen, done))


def errors():
    """Errors of such scripts, and what rocade-faults check says."""
    for text, said in [
            ("call 1 of rdma_connect: reject link", "column 32: 'link' is not known; valid: no-qp, no-resources, "),
            ("call 1 of rdma_connect: lose", "column 29: the line ends too early; valid: req, rtu"),
            ("call 1 of rdma_accept: reject no-qp", "column 24: 'reject' is not known; valid: ENOMEM, lose MESSAGE"),
            ("call 1 of reg_mr: event addr-error", "column 19: 'event' is not known; valid: EINVAL, ENOMEM"),
            ("call 1 of rdma_connect: lose req twice", "column 34: 'twice' is not known; valid: the end")]:
        done = check(text)
        case("refused: %s" % said, done.returncode == 1 and said in done.stderr, done)
    for text, said in [
            ("call 1 of rdma_connect: reject consumer", "call 1 of rdma_connect() is executed, and the ID gets a REJ with the "
             "reason 28, consumer, if it can have it; IBA 12.6.7.2, reason 28 allows it."),
            ("50% of rdma_accept: lose rep", "of rdma_accept() are executed, and the ID has its first rep lost, if it can have it; "
             "RFC 768, Introduction: delivery is not guaranteed allows it."),
            ("call 2 of rdma_resolve_addr: event addr-error", "call 2 of rdma_resolve_addr() is executed, and the ID gets the "
             "event addr-error, if it can have it; rdma_get_cm_event(3), EVENT TYPES allows it.")]:
        done = check(text)
        case("explained: %s" % text, done.returncode == 0 and said in done.stdout, done)


if __name__ == "__main__":
    sys.exit(run(events, synchronous, rejects, losses, ends, replays, errors))
