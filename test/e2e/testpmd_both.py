#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd --mode both with every operation and type: in one process, with loss, cores and peers, and
between two processes over net_memif: ends with other options, and one that is stopped."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tap import case, run  # noqa: E402
from testpmd import MemifWire, eal_cores, loop  # noqa: E402

OPS = ("send-imm", "send-inv", "write", "write-imm", "read", "fadd", "cas", "atomic-write", "flush")
WORDS = ("fadd", "cas", "atomic-write")
SILENT = ("read", "fadd", "cas", "flush")  # the receiver counts no message
ALL = "send:3,send-imm:2,send-inv:2,write:5,write-imm:5,read:4,fadd:3,cas:3,atomic-write:2,flush:2"
XRC = "send:2,send-imm:1,write:3,write-imm:2,read:1,fadd:1,cas:1"
LOSS = ["--impair", "loss=1%", "--timeout", "8"]
TWO = ["--port", "0", "--addr", "192.0.2.1/24,198.51.100.1/24", "--peer", "192.0.2.2,198.51.100.2@1",
       "--port", "1", "--addr", "192.0.2.2/24,198.51.100.2/24", "--peer", "192.0.2.1", "--peer",
       "198.51.100.1@1"]


def both(reports, count):
    """Each end has sent all, what needs no answer has arrived at the other, and every byte was verified once."""
    a, b = reports
    gives = [sum(number for name, number in end["operations"].items() if name not in SILENT)
             for end in reports]
    return all(end["result"] == "pass" if "result" in end else end["reason"] is None for end in reports) and \
        all(end["sent_messages"] == count == sum(end["operations"].values()) and
            min(end["operations"].values()) > 0 and end["bad_bytes"] == end["bad_messages"] == 0
            for end in reports) and \
        [a["messages"] + a["lost_messages"], b["messages"] + b["lost_messages"]] == [gives[1], gives[0]]


def lossless(reports):
    return sum(end["bytes_verified"] for end in reports) == sum(end["sent_bytes"] for end in reports) and \
        sum(end["lost_messages"] for end in reports) == 0


def operations():
    for mix in OPS + (ALL,):
        for queue in (["--srq"], ["--rq", "--events"]):
            for options in ([], LOSS):
                count = 3000 if options else 10000
                sizes = [] if mix in WORDS else ["-s", "64,8,1500,0,4096"]
                done, report = loop("-m", "both", "-q", "4", "-c", str(count), "--op", mix, *queue, *sizes, *options)
                case("%s, %s%s" % (mix, " ".join(queue), ", 1 % loss" if options else ""), done.returncode == 0 and
                     both(report["ports"], count) and lossless(report["ports"]) and
                     (not options or report["retransmits"] > 0), done.stdout + done.stderr)


def types():
    for kind, mixes in (("uc", ("send", "write", "send:1,write:2,write-imm:2,send-imm:1")),
                        ("ud", ("send", "send:1,send-imm:2")),
                        ("xrc", ("send", XRC))):
        for mix in mixes:
            options = ["-m", "both", "-q", "4", "--type", kind, "--op", mix, "-s", "64,1500,8,4096", "-c", "10000"]
            done, report = loop(*options)
            case("%s, %s" % (kind, mix), done.returncode == 0 and both(report["ports"], 10000) and
                 lossless(report["ports"]), done.stdout + done.stderr)
            done, report = loop(*options, "--impair", "loss=1%,dup=1%,reorder=1%", "--timeout", "8")
            case("%s, %s, 1 %% loss, repeats and late frames" % (kind, mix), done.returncode == 0 and
                 both(report["ports"], 10000) and (lossless(report["ports"]) if kind == "xrc" else all(
                     0 < end["lost_messages"] < 1000 for end in report["ports"])), done.stdout + done.stderr)


def shapes():
    rows = [
        ("two cores", ["--nb-cores", "2", "--op", ALL], 5000),
        ("two cores with an SRQ each, and lcores for the engines", [
            "--nb-cores", "2", "--srq-per-core", "--engine-lcores", "3", "--op", ALL], 5000),
        ("two peers", [*TWO, "--op", ALL], 5000),
        ("two peers, UD", [*TWO, "--type", "ud"], 5000),
        ("two peers, XRC", [*TWO, "--type", "xrc", "--op", XRC], 5000),
        ("two cores, XRC", ["--nb-cores", "2", "--srq-per-core", "--type", "xrc", "--op", XRC], 5000),
        ("a small send queue", ["--op", ALL, "--sq-depth", "3", "--signal-every", "2"], 5000),
        ("two engines, and path MTU 256", ["--op", ALL, "--engines", "2", "--mtu", "256", "-s", "600"], 5000),
    ]
    for name, options, count in rows:
        done, report = loop("-m", "both", "-q", "4", "-c", str(count), *options, eal_options=eal_cores(4))
        case(name, done.returncode == 0 and both(report["ports"], count) and lossless(report["ports"]),
             done.stdout + done.stderr)
    done, report = loop("-m", "both", "-t", "1", "-q", "2", "--op", "write:2,read:1", "--rate", "2k")
    case("--rate: latencies of both directions", done.returncode == 0 and all(
        sum(row["count"] for row in port["latency"].values()) == port["sent_messages"] > 0
        for port in report["ports"]), done.stdout + done.stderr)
    text = "start\nwait 1\nstop\nstart\nwait 1\nstop\nset op cas\nset count 500\nstart\nwait\nquit\n"
    done, report = loop("-m", "both", "-i", "-q", "2", "-s", "8", "--op", ALL, text=text)
    case("runs that are stopped, and another operation", done.returncode == 0 and
         done.stdout.count("\nPASS") == 3 and both(report["ports"], 500), done.stdout + done.stderr)
    text = "start\nwait\nshow qp\nset psn 5\nstart\nwait\nquit\n"
    done, report = loop("-m", "both", "-i", "-q", "2", "-c", "500", "--type", "xrc", "--op", XRC, text=text)
    case("XRC: each QP is two, and both are connected again", done.returncode == 0 and
         done.stdout.count("\nPASS") == 2 and both(report["ports"], 500) and all(
             "  0x00010%d RTS " % i in done.stdout for i in range(4)), done.stdout + done.stderr)


def ended(ends, words=None):
    """Whether both have passed; words: whether both have failed, and each says these."""
    return all(("\nPASS" if words is None else "\nFAIL: ") in end.text and (words or "") in end.text
               for end in ends), "\n".join(end.tail() for end in ends)


def two_processes():
    options = ["-q", "4", "-c", "5000"]
    for kind in (["--op", ALL], ["--type", "uc", "--op", "write:1,send:1"], ["--type", "ud"],
                 ["--type", "xrc", "--op", XRC]):
        ends = MemifWire().run(options + kind, options + kind, modes=("both", "both"))
        good, why = ended(ends)
        case("two processes: %s" % " ".join(kind), good and both([
            end.json()["ports"][0] for end in ends], 5000), why)
    options = ["-q", "2", "-t", "1", "-w", "5", "--op", "write:1,read:1"]
    ends = MemifWire().run(options, options, modes=("both", "both"))
    good, why = ended(ends)
    case("two processes: --duration", good and all(end.json()["sent_messages"] > 0 for end in ends), why)
    ends = MemifWire().run(options, options, modes=("sink", "both"))
    good, why = ended(ends, "both ends need the same")
    case("one end receives only: both say so", good and "--mode both'" in why, why)


def stopped():
    """One end is stopped: the run of the other one fails, and `start` connects, at the latest the second time."""
    wire = MemifWire()
    options = ["-q", "2", "--op", "write:1,send:1", "-w", "5"]
    first = wire.end(1, "both", *options)
    second = wire.end(0, "both", *options)
    first.expect("Mmsg/s", 60)
    second.expect("Mmsg/s", 60)
    second.say("stop")
    second.expect("^(PASS|FAIL)", 60)
    first.expect("^(PASS|FAIL)", 60)
    for _ in range(2):
        mark = [len(end.text) for end in (first, second)]
        for end in (first, second):
            end.say("set count 2000")
            end.say("start")
        for i, end in enumerate((first, second)):
            end.expect("^(PASS|FAIL)", 60, mark[i])
        again = [end.text[mark[i]:] for i, end in enumerate((first, second))]
    case("after one end was stopped, `start` at both connects", all("\nPASS" in text for text in again),
         "\n".join(again))
    first.freeze()
    second.kill()
    first.kill()


if __name__ == "__main__":
    sys.exit(run(operations, types, shapes, two_processes, stopped))
