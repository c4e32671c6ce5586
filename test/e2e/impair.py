#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocaded --impair: unmodified programs in a network that loses, duplicates, reorders and corrupts
packets on purpose. Between the programs of a machine, on each way that their packets take, and between two
hosts. Data is verified, and the daemon counts what it has done."""

import json
import os
import re
import sys
import time
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, LIBRARY, ROCADED, RUN, STATUS_PROGRAM, Daemon, rping_status, wait_for_port  # noqa: E402
from hosts import AF_PACKET, SOCKETS, V4, Host, across, veth  # noqa: E402
from process import until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import is_root  # noqa: E402

FLOW = os.path.join(CLIENTS, "test/e2e/flow")
ALL = "loss=1%,dup=1%,reorder=1%,corrupt=0.1%"
KINDS = {"loss": "lost", "dup": "duplicated", "reorder": "reordered", "corrupt": "corrupted"}
MOVED = 50 << 20


def flow(daemon, *env):
    """Two processes, one of which verifies all messages of the other, until they have moved some. Returns
    whether they did, and their output."""
    before = daemon.moved()
    pair = daemon.start("env", *env, FLOW, "pair", feed=True)
    moved = until(lambda: daemon.moved() - before > MOVED or pair.poll() is not None, 60)
    there = daemon.status()["clients"]
    status, text = pair.finish()
    return moved and status == 0 and "messages" in text, there, text


def kinds():
    """Each kind of fault alone, between two programs."""
    for kind, counter in KINDS.items():
        with Daemon("--impair", kind + "=1%") as daemon:
            start = time.monotonic()
            good, there, text = flow(daemon)
            state = daemon.status()
            done = state["impair"]
            case("1 %% %s: correct data" % counter, good, text)
            case("1 %% %s: by a pair, and no other fault" % counter,
                 max(c["pair_packets"] for c in there) > 1000 and done[counter] > 10 and
                 not any(done[other] for other in KINDS.values() if other != counter), state)
            print("# 1 %% %-10s %5.1f MB/s" % (counter, daemon.moved() / 1e6 / (time.monotonic() - start)))


def ways():
    """Whichever way packets take: by a pair, by the daemon, back to the same process."""
    with Daemon("--impair", ALL, "--impair-seed", "5") as daemon:
        line = daemon.process.text.splitlines()[0]
        case("the log begins with the impairment",
             "packets between clients are impaired on purpose: %s, seed 5" % ALL in line, line)
        for name, env, by_pair in [("a pair", (), True), ("the daemon", ("ROCADE_OFF=pairs",), False)]:
            before = daemon.status()["impair"]
            good, there, text = flow(daemon, *env)
            after = daemon.status()["impair"]
            case("by %s: correct data" % name, good and
                 any(c["pair_packets"] > 1000 for c in there) == by_pair, (text, there))
            case("by %s: all faults" % name, all(after[c] > before[c] for c in KINDS.values()), after)
        before = daemon.status()["impair"]
        one = daemon.start(FLOW, "churn", feed=True)
        lost = until(lambda: daemon.status()["impair"]["lost"] > before["lost"])
        status, text = one.finish()
        case("back to the same process", lost and status == 0, (daemon.status(), text))
        said = process.run([STATUS_PROGRAM, "--socket", daemon.socket]).stdout
        case("rocade-status says that it is on", re.search(
            r"^packets between clients are impaired on purpose: %s, seed 5: [1-9]\d* lost, [1-9]" % ALL,
            said, re.M), said)
        counts = json.loads(process.run([STATUS_PROGRAM, "--socket", daemon.socket, "--json"]).stdout)["departed"]
        case("the counters of programs that have ended are kept", min(
            counts["impair_" + c] for c in KINDS.values()) > 0, counts)
    with Daemon() as daemon:
        good, _, text = flow(daemon)
        state = daemon.status()
        case("without --impair there is none", good and not any(state["impair"][c] for c in KINDS.values()) and
             "impaired" not in process.run([STATUS_PROGRAM, "--socket", daemon.socket]).stdout, (text, state))


MATRIX = os.path.join(CLIENTS, "test/matrix/matrix-system")
LEAST = 340  # cases


def both_pass(listening, connecting):
    """Returns whether both ends of a matrix pass, and why not."""
    ends = [connecting.finish(300), listening.finish(60)]
    totals = [re.search(r"(\d+) passed, 0 failed, 0 skipped", text) for _, text in ends]
    return (all(status == 0 for status, _ in ends) and all(totals) and int(totals[0][1]) >= LEAST,
            "\n".join(line for _, text in ends for line in text.splitlines() if not line.startswith("PASS")))


def matrix(listener, connector, address, *env, port=18600):
    """Starts every opcode of RC and XRC between two programs, with verified data and the faults that end a
    QP. Returns both ends."""
    words = ["env", *env, MATRIX, "--gid-index", "0", "--lossy", "--copies", "--only", "RC", "--wait", "60",
             "--port", port]
    listening = listener.start(*words, "--listen", address)
    wait_for_port(port, listening, 30, listener.space)
    return listening, connector.start(*words, "--connect", address)


def conformance():
    """Each kind of fault, many of them; all of them by pairs and by the daemon. All at the same time: most of
    it is waits for what was lost."""
    pairs, no_pairs = ("pairs", ()), ("the daemon", ("ROCADE_OFF=pairs",))
    started = []
    with ExitStack() as daemons:
        for rates, *ways_taken in [("loss=5%", pairs), ("dup=20%", pairs), ("reorder=20%", no_pairs), ("corrupt=5%", pairs),
                                   ("loss=3%,dup=5%,reorder=10%,corrupt=1%", pairs, no_pairs)]:
            daemon = daemons.enter_context(Daemon("--impair", rates))
            first = 18600 + 10 * len(started)
            started.append((daemon, rates, [
                (name, matrix(daemon, daemon, "127.0.0.1", *env, port=first + number))
                for number, (name, env) in enumerate(ways_taken)]))
        for daemon, rates, ends in started:
            for name, both in ends:
                good, why = both_pass(*both)
                case("conformance of RC with %s, by %s" % (rates, name), good, why)
            done = daemon.status()["impair"]
            case("that many faults have happened", all(
                done[KINDS[kind]] > 100 for kind in re.findall(r"\w+(?==)", rates)), done)


def start_local():
    """perftest, each with both ends under one rocade-run."""
    for program in ("ib_send_bw -n 2000", "ib_write_bw -n 2000", "ib_read_bw -n 1000", "ib_atomic_bw -n 1000",
                    "ib_send_lat -n 1000", "ib_write_bw -n 1000 -q 8"):
        both = ("%s -x 0 -F & server=$!; sleep 1; %s -x 0 -F 127.0.0.1 && wait $server && %s"
                % (program, program, STATUS_PROGRAM))
        done = process.run([RUN, "--start-local", "--library", LIBRARY, "--daemon", ROCADED, "--impair",
                            "loss=1%,corrupt=0.1%", "sh", "-c", both], 120)
        case("rocade-run --start-local --impair: " + program, done.returncode == 0 and
             re.search(r"on purpose: loss=1%,corrupt=0.1%, seed 1: [1-9]\d* lost", done.stdout) and
             "on purpose: loss=1%,corrupt=0.1%, seed 1" in done.stderr, done.stdout[-1500:] + done.stderr[-1500:])


def last_acknowledgement():
    """One end destroys its QP as soon as it has received all. Its last acknowledgement is held back then, but not
    lost."""
    both = "ibv_rc_pingpong -g 0 -c & server=$!; sleep 1; ibv_rc_pingpong -g 0 -c 127.0.0.1 && wait $server"
    for rates in ("reorder=100%", "reorder=10%,dup=10%"):
        for name, env in (("a pair", ()), ("the daemon", ("ROCADE_OFF=pairs",))):
            done = process.run(["env", *env, RUN, "--start-local", "--library", LIBRARY, "--daemon", ROCADED, "--impair",
                                rates, "sh", "-c", both], 60)
            case("ibv_rc_pingpong with %s, by %s" % (rates, name), done.returncode == 0, done)


def local_rdmacm():
    """RDMA-CM between programs of this machine: its messages are not impaired, what comes after is."""
    with Daemon("--impair", "loss=5%") as daemon:
        server = daemon.start("rping", "-s", "-C", "200", "-V")
        daemon.wait_listener(server)
        client = daemon.run("rping", "-c", "-a", "192.0.2.1", "-C", "200", "-V", timeout_s=120)
        status, text = server.finish(60)
        case("rping with 5 % loss", rping_status(status, text) == 0 and
             rping_status(client.returncode, client.stdout + client.stderr) == 0 and
             daemon.status()["impair"]["lost"] > 0, (status, text, client))


def hosts():
    """Two hosts with a network of 1 % loss in each direction of each port."""
    if not is_root():
        skip("two hosts", "needs root")
        return
    spaces = veth()
    with Host(spaces, 0, AF_PACKET, "--mtu", "4184", "--impair", ALL) as left, \
            Host(spaces, 1, AF_PACKET, "--mtu", "4184", "--impair", ALL, "--impair-seed", "2") as right:
        both = [left, right]
        # Those of perftest agree on the end over TCP: a program that does not would fail if its last
        # acknowledgement was lost.
        for program in (("ib_send_bw", "-x", "0", "-F", "-n", "1000"), ("ib_write_bw", "-x", "0", "-F", "-n", "1000"),
                        ("ib_read_bw", "-x", "0", "-F", "-n", "500")):
            served, sent, text = across(both, *program, timeout_s=120)
            case("between hosts: " + " ".join(program), served == 0 and sent == 0, text)
        good, why = both_pass(*matrix(right, left, SOCKETS[1]))
        case("between hosts: conformance of RC", good, why)
        for host in both:
            done = host.status()["impair"]
            case("all faults have happened", min(done[c] for c in KINDS.values()) > 0, done)
    with Host(spaces, 0, AF_PACKET, "--mtu", "4184") as left, Host(spaces, 1, AF_PACKET, "--mtu", "4184",
                                                                          "--impair", "loss=10%") as right:
        for number in range(3):
            server = right.start("rping", "-s", "-a", V4[1], "-C", "20", "-V")
            right.wait_listener(server)
            client = left.run("rping", "-c", "-a", V4[1], "-C", "20", "-V", timeout_s=200)
            status, text = server.finish(120)
            case("RDMA-CM connects with 10 %% loss, %d" % number, rping_status(status, text) == 0 and
                 rping_status(client.returncode, client.stdout + client.stderr) == 0, (status, text, client))
        case("both directions of one port lose", right.status()["impair"]["lost"] > 5, right.status())


if __name__ == "__main__":
    sys.exit(run(kinds, ways, conformance, start_local, last_acknowledgement, local_rdmacm, hosts))
