#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd with several peers: two in one process, by two networks, with operations, types and queues;
eight in namespaces all to one, one to two and all to all over net_af_packet; and wrong lists."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tap import case, run, skip  # noqa: E402
from testpmd import (SCRATCH, Testpmd, add_space, eal, eal_cores, ip, is_root, loop, verified)  # noqa: E402

ALL = "send:3,send-imm:2,send-inv:2,write:5,write-imm:5,read:4,fadd:3,cas:3,atomic-write:2,flush:2"
TWO = ["--port", "0", "--addr", "192.0.2.1/24,198.51.100.1/24", "--peer", "192.0.2.2,198.51.100.2@1",
       "--port", "1", "--addr", "192.0.2.2/24,198.51.100.2/24", "--peer", "192.0.2.1", "--peer",
       "198.51.100.1@1"]
SENDERS = 8
LOOP_REPORT = os.path.join(SCRATCH, "loop.json")


def shares(port, messages=None):
    """Whether each peer has the same share of the messages (None: of those of the port) and QPs, and all
    counts are theirs."""
    peers = port["peers"]
    messages = port["messages"] // len(peers) if messages is None else messages
    return [peer["messages"] for peer in peers] == [messages] * len(peers) and messages > 0 and \
        all(peer["qps"] * len(peers) == port["qps"] for peer in peers) and \
        all(sum(peer[name] for peer in peers) == port[name] for name in (
            "messages", "bytes", "bytes_verified", "bad_bytes", "lost_messages")) and \
        port["fairness"] == 1


def in_one_process():
    rows = [
        ("SENDs into one SRQ", []),
        ("receive queues", ["--rq"]),
        ("limit events", ["--srq-limit", "64", "--depth", "256"]),
        ("all operations", ["--op", ALL, "--events"]),
        ("all operations with loss", ["--op", ALL, "--impair", "loss=1%", "--timeout", "8"]),
        ("UD", ["--type", "ud"]),
        ("XRC", ["--type", "xrc", "--op", "send:1,read:1,cas:1"]),
        ("two cores", ["--nb-cores", "2"]),
        ("two cores, an SRQ each, all operations", ["--nb-cores", "2", "--srq-per-core", "--op", ALL]),
    ]
    for name, options in rows:
        done, report = loop("-q", "8", "-c", "4000", *TWO, *options,
                            eal_options=eal_cores(3) if "--nb-cores" in options else ())
        case("two peers: %s" % name, done.returncode == 0 and report["bytes_verified"] == report["bytes"] > 0 and
             shares(report["ports"][0], 2000) and shares(report["ports"][1]) and
             (report["limit_events"] > 0) == ("--srq-limit" in options), done.stdout + done.stderr)
        if not options:
            case("the table has a row for each peer", all(
                done.stdout.count("\n    %s " % peer) == 1 for peer in (
                    "192.0.2.1", "192.0.2.2", "198.51.100.1", "198.51.100.2")) and
                done.stdout.count("Jain's index of the peers' messages: 1.000") == 2, done.stdout)
    done, report = loop("-q", "4", "-c", "4000", "-m", "both", *TWO)
    case("two peers: both directions", done.returncode == 0 and all(
        shares(port, 2000) and port["sent_messages"] == 4000 for port in report["ports"]),
        done.stdout + done.stderr)
    done, report = loop("-q", "2", "-t", "1", "--rate", "2k", *TWO)
    case("two peers share --rate", done.returncode == 0 and all(
        0 < peer["messages"] <= 1000 * peer["seconds"] + 2 for peer in report["ports"][0]["peers"]),
        done.stdout + done.stderr)


def by_cm():
    """Connections by RDMA-CM with several peers, and with several cores."""
    cores = ["--nb-cores", "2"]
    for name, options in (("SENDs", []), ("all operations", ["--op", ALL]), ("both directions", ["-m", "both"]),
                          ("two cores", cores), ("two cores, all operations in both directions", [
                              *cores, "-m", "both", "--op", ALL])):
        text = "listen 7471\nconnect 198.51.100.2 7471\nconnect 192.0.2.2 7471\nstart\nwait\nset psn 7\n" \
            "connect 192.0.2.2 7471\nconnect 198.51.100.2 7471\nstart\nwait\nquit\n"
        done, report = loop("-q", "8", "-c", "4000", "-i", *TWO, *options, text=text,
                            eal_options=eal_cores(3) if cores[0] in options else ())
        case("two peers by RDMA-CM: %s" % name, done.returncode == 0 and done.stdout.count("\nPASS") == 2 and
             report["bad_bytes"] == 0 and report["bytes_verified"] > 0 and
             all(shares(port) for port in report["ports"]) and
             "port 0: 4 QPs connected with 198.51.100.2" in done.stdout, done.stdout + done.stderr)
    for queue in ("--srq", "--rq"):
        done, report = loop("-q", "5", "-c", "4000", "-i", queue, *cores, text="listen 7471\n"
                            "connect 192.0.2.2 7471\nstart\nwait\nquit\n", eal_options=eal_cores(3))
        case("two cores by RDMA-CM, %s" % queue, done.returncode == 0 and report["messages"] == 4000 and
             report["bytes_verified"] == report["bytes"] and
             all(core["messages"] > 0 for core in report["ports"][1]["cores"]), done.stdout + done.stderr)
    done, _ = loop("-q", "2", "-w", "2", "-i", *TWO, text="listen 7471\nconnect 192.0.2.2 7471\nstart\nquit\n")
    case("a peer that is not connected is named",
         "connections to 198.51.100.2 are lost (`connect` makes new ones)" in done.stderr, done.stdout + done.stderr)


def wrong():
    peers = ["--addr", "192.0.2.1/24", "--peer"]
    rows = [
        (peers + ["192.0.2.2,192.0.2.2"], 2, "invalid value '192.0.2.2,192.0.2.2' for --peer: entry 2, "
         "'192.0.2.2', comes twice; expected IPv4 or IPv6 addresses that hosts can have, each once"),
        (peers + ["192.0.2.2", "--peer", "192.0.2.2"], 2, "for --peer: entry 2, '192.0.2.2', comes twice"),
        (peers + ["192.0.2.2,,192.0.2.3"], 2, "for --peer: entry 2, '', is empty; expected"),
        (peers + ["192.0.2.1@1,192.0.2.2"], 2, "192.0.2.1 is the port's own address; expected it without @N"),
        (peers + ["192.0.2.2,192.0.2.3"], 2, "invalid value '1' for --qps: expected a multiple of 2"),
        (peers + ["192.0.2.2,192.0.2.3", "-q", "2", "-m", "pingpong"], 2, "expected send, sink or both with 2 "
         "peers"),
        (peers + ["192.0.2.2,203.0.113.1", "-q", "2"], 2, "port 0: cannot reach --peer 203.0.113.1: it is in no "
         "network of --addr, and there is no gateway; expected an address in a network of --addr "
         "192.0.2.1/24, or --gateway4"),
    ]
    for options, code, words in rows:
        done, _ = loop("--port", "0", *options)
        case("%s: status %d and one line" % (" ".join(options[3:]), code), done.returncode == code and
             words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout and
             not os.path.exists(LOOP_REPORT), "%d %s%s" % (done.returncode, done.stdout, done.stderr))
    done, report = loop("-q", "4", "-c", "400", "--wait", "1", *[
        "192.0.2.2,198.51.100.2" if word.endswith(".2@1") else word for word in TWO])
    case("an end at another place than its peer has it at", done.returncode == 1 and
         "198.51.100.2 did not answer within 1 s (--wait)" in done.stderr and "another place than @N" in done.stderr
         and [peer["messages"] for peer in report["ports"][0]["peers"]] == [200, 0] and
         report["ports"][0]["fairness"] == 0.5, done.stdout + done.stderr)
    case("the wait for the missing one is no part of the time of the run", 0 < report["seconds"] < 0.5 and
         report["rate"] * report["seconds"] > 199, done.stdout + done.stderr)
    done, report = loop("-q", "2", "-c", "4", "--wait", "1", "--impair", "loss=100%", *TWO)
    case("no message: no fairness", done.returncode == 1 and report["ports"][0]["fairness"] is None and
         report["seconds"] == 0 and "index of the peers' messages: none, as there were none" in done.stdout,
         done.stdout + done.stderr)
    for how, words in ((["-c", "400"], "of QP 0x101 was sent to peer number 1 of 198.51.100.1: expected --peer "
                        "198.51.100.1@1"),
                       (["-c", "400", "--no-verify"], "198.51.100.1 repeats its first message to QP 0x101, as it gets "
                        "no acknowledgement: expected")):
        done, report = loop("-q", "2", "--wait", "2", *how, *[
            "198.51.100.1" if word == "198.51.100.1@1" else word for word in TWO])
        case("a forgotten @N: %s" % " ".join(how), done.returncode == 1 and words in done.stderr,
             done.stdout + done.stderr)
    done, _ = loop("-q", "2", *TWO, "-i", text="set port 0 peer 192.0.2.2\nset port 0 peer 192.0.2.2,192.0.2.7\n"
                   "connect 192.0.2.9 7471\nquit\n")
    case("a port keeps its peers",
         done.stderr.startswith("invalid value '192.0.2.2' for --peer") and done.stderr.endswith(
             "connect: invalid value '192.0.2.9': expected one of --peer: 192.0.2.2,192.0.2.7\n"),
         done.stdout + done.stderr)


class Network:
    """Namespaces whose eth0 are joined by a bridge."""

    def __init__(self, name, count):
        middle = add_space(name)
        ip("-n", middle, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        ip("-n", middle, "link", "set", "br0", "up")
        self.spaces = [add_space("%s%d" % (name, i)) for i in range(count)]
        for i, space in enumerate(self.spaces):
            ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", "v%d" % i, "netns", middle)
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", middle, "link", "set", "v%d" % i, "master", "br0", "up")

    def start(self, i, mode, peers, *options, cores=0):
        device = "net_af_packet0,iface=eth0,qpairs=1,framecnt=256,blocksz=4096,framesz=2048"
        return Testpmd(["--mode", mode, "--addr", address(i) + "/24", "--peer", peers, *options] +
                       (["--nb-cores", str(cores)] if cores else []),
                       eal_cores(cores + 1, device, memory_mb=256) if cores else eal(i, device, memory_mb=128),
                       space=self.spaces[i])


def address(i):
    return "192.0.2.%d" % (i + 1)


def ended(programs):
    """Waits for the ends. Returns whether all have passed, and what they have said."""
    codes = [program.wait(120) for program in programs]
    for program in programs:
        program.kill()
    return not any(codes), "%s\n%s" % (codes, "\n".join(program.tail() for program in programs))


def restarted(net):
    """One of two senders ends, and comes again."""
    sink = net.start(0, "sink", ",".join([address(1), address(2)]), "-q", "2", "-i", "-a")
    steady = net.start(1, "send", address(0), "-i", "-a")
    codes, sent = [], []
    for _ in range(2):
        sender = net.start(2, "send", address(0) + "@1", "-t", "1")
        codes.append(sender.wait(120))
        sent.append(sender.json()["messages"] if codes[-1] == 0 else 0)
    for program in (steady, sink):
        program.say("stop")
        program.say("quit")
        codes.append(program.wait(60))
    good = not any(codes)
    report = sink.json() if good else None
    case("one of two senders is restarted", good and verified(report) and
         "%s was restarted" % address(2) in sink.text and "%s was restarted" % address(1) not in sink.text and
         [peer["messages"] for peer in report["ports"][0]["peers"]] == [
             steady.json()["messages"], sum(sent)] and
         [peer["peer_restarts"] for peer in report["ports"][0]["peers"]] == [0, 1] == [
             0, report["peer_restarts"]], "%s %s\n%s" % (codes, sent, sink.tail()))


def in_namespaces():
    if not is_root():
        skip("peers in namespaces", "needs root")
        return
    net = Network("p", SENDERS + 1)
    sizes = ["-s", "64,1000,3000"]
    for how in ([], ["--op", "write:2,read:1,send:1"]):
        count = 400 if not how else 80
        sink = net.start(0, "sink", ",".join(address(i + 1) for i in range(SENDERS)), "-q", str(SENDERS), "-c",
                         str(count * SENDERS), *sizes, *how)
        senders = [net.start(i + 1, "send", "%s@%d" % (address(0), i), "-c", str(count), *sizes, *how)
                   for i in range(SENDERS)]
        good, why = ended([sink] + senders)
        port = sink.json()["ports"][0] if good else None
        received = count if not how else count * 3 // 4
        case("%d peers all to one%s" % (SENDERS, ": " + " ".join(how) if how else ""), good and
             verified(sink.json()) and shares(port, received) and
             [peer["peer"] for peer in port["peers"]] == [address(i + 1) for i in range(SENDERS)], why)
    sinks = [net.start(i + 1, "sink", "%s@%d" % (address(0), i), "-q", "2", "-c", "200") for i in range(2)]
    sender = net.start(0, "send", ",".join([address(1), address(2)]), "-q", "4", "-c", "400")
    good, why = ended(sinks + [sender])
    case("one to two", good and shares(sender.json()["ports"][0], 200) and
         all(verified(sink.json()) and sink.json()["messages"] == 200 for sink in sinks), why)
    everyone = ",".join(address(i) for i in range(3))
    ends = [net.start(i, "both", everyone, "-q", "2", "-c", "400") for i in range(3)]
    good, why = ended(ends)
    case("all to all, each with the same list", good and all(
        shares(end.json()["ports"][0], 200) and verified(end.json()) and end.json()["sent_messages"] == 400
        for end in ends), why)
    restarted(net)
    sink = net.start(0, "sink", ",".join([address(1), address(2)]), "-q", "2", "--op", "write", "--wait", "8")
    first = net.start(1, "send", address(0), "-t", "3", "--op", "write")
    first.expect("Mmsg/s", 60)
    other = net.start(2, "send", address(0), "-t", "1", "--op", "write", "--wait", "1")
    codes = [other.wait(60), first.wait(60), sink.wait(60)]
    case("a sender that takes the place of another one is not heard", codes == [1, 0, 1] and
         "%s did not answer within 1 s" % address(0) in other.text and
         "%s sent nothing within 8 s" % address(2) in sink.text and "restarted" not in sink.text,
         "%s\n%s\n%s" % (codes, other.tail(), sink.tail()))
    sink = net.start(0, "sink", address(1), "--type", "ud")
    sender = net.start(1, "send", address(0), "--type", "ud", "-t", "2")
    sender.expect("Mmsg/s", 60)
    sink.kill()
    code = sender.wait(60)
    case("UD: the time of a sender whose sink was killed is that in which it sent", code == 1 and
         "has not told for 10 s whether" in sender.text and 1 < sender.json()["seconds"] < 8, sender.tail())
    ends = [net.start(0, "sink", ",".join([address(1), address(2)]), "-q", "4", "-c", "400", "--op", "write", cores=2),
            net.start(2, "send", address(0) + "@1", "-q", "2", "-c", "200", "--op", "write")]
    good, why = ended(ends)
    case("another number of cores is named for the second peer, too", not good and all(
        "--nb-cores 2" in end.text and "both ends need the same" in end.text for end in ends), why)
    sink = net.start(0, "sink", ",".join([address(1), address(2)]), "-q", "2", "-c", "200", "--wait", "5")
    sender = net.start(1, "send", address(0), "-c", "100")
    codes = [sink.wait(120), sender.wait(120)]
    case("a peer that does not come is named", codes[0] == 1 and
         "FAIL: %s sent nothing within 5 s (--wait)" % address(2) in sink.text, "%s\n%s" % (codes, sink.tail()))
    case("a line has the rate of the others, and the missing one", re.search(
        "Gb/s, 100 messages, waiting for %s$" % re.escape(address(2)), sink.text, re.M) is not None, sink.tail())


if __name__ == "__main__":
    sys.exit(run(in_one_process, by_cm, wrong, in_namespaces))
