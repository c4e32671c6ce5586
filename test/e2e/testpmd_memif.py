#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two rocade-testpmd processes over net_memif: verified traffic, path MTU 4096, trouble, and
what each end does when the other one is restarted, stopped, or never there."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tap import case, run  # noqa: E402
from testpmd import LONG, SCRATCH, Testpmd, eal, verified  # noqa: E402

ADDRESS = ["192.0.2.1", "192.0.2.2"]


class Wire:
    """One memif: its server has to be up before a client comes, and a client does not come back
    by itself when the server went (the PMD is like that), so whoever is restarted is the client."""

    count = 0

    def __init__(self, server):
        Wire.count += 1
        self.socket = os.path.join(SCRATCH, "memif%d" % Wire.count)
        self.server = server

    def end(self, side, *options, if_mtu=1500):
        """Side 0 has the lower address."""
        device = "net_memif0,role=%s,socket=%s,socket-abstract=no,bsize=%d,rsize=11" % (
            "server" if side == self.server else "client", self.socket,
            8192 if if_mtu > 1500 else 2048)
        program = Testpmd(["--addr", ADDRESS[side] + "/24", "--peer", ADDRESS[1 - side],
                           "--if-mtu", if_mtu] + list(options),
                          eal(side, device, memory_mb=256))
        if side == self.server:
            program.expect(r"^port 0: \w+, \d+ QPs", 20)
        return program


def pair(*options, mode="send", other="sink", if_mtu=1500, timeout_s=60):
    """Both ends to their end: programs, reports (None where it failed)."""
    wire = Wire(server=1)
    ends = [wire.end(1, "--mode", other, *options, if_mtu=if_mtu),
            wire.end(0, "--mode", mode, *options, if_mtu=if_mtu)]
    codes = [program.wait(timeout_s) for program in ends]
    for program in ends:
        program.kill()
    if codes != [0, 0]:
        return False, "%s\n%s\n%s" % (codes, ends[0].tail(), ends[1].tail()), None, None
    return True, "", ends[1].json(), ends[0].json()


def traffic():
    count = 10000000 if LONG else 300000
    good, why, sent, got = pair("-q", "8", "-c", count, timeout_s=600 if LONG else 60)
    case("%d messages of 64 bytes" % count, good and verified(got) and
         got["messages"] == sent["messages"] == count, why or (sent, got))
    if good:
        print("# %.2f Mmsg/s" % (got["rate"] / 1e6))
    for mtu in (256, 1024, 4096):
        good, why, sent, got = pair("-q", "4", "-c", 20000, "-s", "0,1,4096,16k,100", "--mtu", mtu,
                                    if_mtu=4200 if mtu == 4096 else 1500)
        case("path MTU %d" % mtu, good and verified(got) and got["messages"] == 20000 and
             got["ports"][0]["path_mtu"] == mtu, why or (sent, got))
    good, why, sent, got = pair("-q", "8", "-c", 200000, "--srq-limit", "512", "--depth", "2048")
    case("refilled by limit events", good and verified(got) and got["limit_events"] > 50,
         why or got)
    good, why, sent, got = pair("-q", "4", "-t", "2")
    case("--duration: nothing of the tail is cut off", good and verified(got) and
         got["messages"] == sent["messages"], why or (sent, got))


def trouble():
    count = 10000000 if LONG else 100000
    good, why, sent, got = pair("-q", "8", "-c", count, "--timeout", "12", "--impair",
                                "loss=1%,dup=1%,reorder=1%", timeout_s=1800 if LONG else 60)
    case("%d messages, 1 %% lost, doubled, reordered" % count, good and verified(got) and
         got["messages"] == sent["messages"] == count and got["ports"][0]["impaired"]["lost"],
         why or (sent, got))


def pingpong():
    good, why, a, b = pair("-c", 20000, mode="pingpong", other="pingpong")
    case("pingpong", good and a["messages"] == b["messages"] == 20000 and
         a["lat_p50_ns"] and b["lat_p50_ns"] is None, why or (a, b))


def sender_restarts():
    wire = Wire(server=1)
    sink = wire.end(1, "--mode", "sink", "-q", "4", "-t", "3600")
    first = wire.end(0, "--mode", "send", "-q", "4", "-t", "3600")
    case("traffic flows", sink.expect(r"sink: [\d.]+ Mmsg/s .* [\d,]{4,} messages", 30),
         sink.tail() + first.tail())
    first.kill()
    second = wire.end(0, "--mode", "send", "-q", "4", "-c", "50000")
    code = second.wait(60)
    case("a sender restarted after a kill is served", code == 0 and
         second.json()["messages"] == 50000, "%s\n%s\n%s" % (code, second.tail(), sink.tail()))
    case("... the sink said so in one sentence",
         sink.expect("192.0.2.1 was restarted: it sends from its first PSN again", 5) and
         sink.text.count("was restarted") == 1,
         sink.tail())
    third = wire.end(0, "--mode", "send", "-q", "4", "-c", "50000")
    case("... and once more", third.wait(60) == 0, third.tail() + sink.tail())
    sink.process.terminate()
    code = sink.wait(20)
    case("... all of it verified", code == 0 and verified(sink.json()) and
         sink.json()["peer_restarts"] == 2, "%s %s" % (code, sink.tail()))


def sink_restarts():
    wire = Wire(server=0)
    sender = wire.end(0, "--mode", "send", "-q", "4", "-i", "-a")
    sink = wire.end(1, "--mode", "sink", "-q", "4")
    case("traffic flows the other way round", sink.expect(r"sink: [\d.]+ Mmsg/s .* [\d,]{4,} messages",
                                                          30), sink.tail() + sender.tail())
    sink.kill()
    case("the sender of a killed sink says so", sender.expect(
        r"192.0.2.2 (stopped answering|is down).*`start` connects again", 30), sender.tail())
    sink = wire.end(1, "--mode", "sink", "-q", "4")
    mark = len(sender.text)
    sender.say("start")
    case("... and `start` works again", sink.expect(r"sink: [\d.]+ Mmsg/s .* [\d,]{4,} messages", 30),
         sink.tail() + sender.tail())
    sender.say("stop")
    case("... and passes", sender.expect(r"^PASS", 20, mark), sender.tail())
    sender.say("quit")
    case("... but the program remembers the failed run", sender.wait(20) == 1, sender.tail())
    sink.process.terminate()
    case("... the new sink verified all", sink.wait(20) == 0 and verified(sink.json()),
         sink.tail())


def sender_stops_and_goes():
    """No restart: PSNs and message numbers go on."""
    wire = Wire(server=1)
    sink = wire.end(1, "--mode", "sink", "-q", "4")
    sender = wire.end(0, "--mode", "send", "-q", "4", "-i", "-a")
    mark = 0
    for _ in range(3):
        sender.expect(r"send: [\d.]+ Mmsg/s", 20, mark)
        sender.say("stop")
        sender.expect(r"^PASS", 20, mark)
        mark = len(sender.text)
        time.sleep(0.3)
        sender.say("start")
    sender.expect(r"send: [\d.]+ Mmsg/s", 20, mark)
    sender.say("quit")
    case("stop and start, three times", sender.wait(20) == 0 and
         sender.text.count("\nPASS") >= 3, sender.tail())
    sink.process.terminate()
    case("... no restart for the sink, all verified", sink.wait(20) == 0 and
         verified(sink.json()) and sink.json()["peer_restarts"] == 0, sink.tail())


def pingpong_restarts():
    wire = Wire(server=0)
    serving = wire.end(0, "--mode", "pingpong", "-i", "-a")
    answering = wire.end(1, "--mode", "pingpong")
    case("balls fly", serving.expect(r"pingpong: [\d.]+ Mmsg/s", 30), serving.tail())
    answering.kill()
    case("the serving end says that they do not come back", serving.expect(
        r"stopped answering|has not sent it back", 30), serving.tail())
    answering = wire.end(1, "--mode", "pingpong")
    mark = len(serving.text)
    serving.say("start")
    case("... and `start` works again", serving.expect(r"pingpong: [\d.]+ Mmsg/s", 30, mark),
         serving.tail() + answering.tail())
    serving.kill()
    answering.kill()
    wire = Wire(server=1)
    answering = wire.end(1, "--mode", "pingpong")
    serving = wire.end(0, "--mode", "pingpong")
    serving.expect(r"pingpong: [\d.]+ Mmsg/s", 30)
    serving.kill()
    serving = wire.end(0, "--mode", "pingpong", "-c", "10000")
    case("a restarted serving end is answered", serving.wait(30) == 0,
         serving.tail() + answering.tail())
    answering.process.terminate()
    case("... and the other one said so", answering.wait(20) == 0 and
         ("was restarted" in answering.text or "stopped answering" in answering.text),
         answering.tail())


def nobody():
    wire = Wire(server=0)
    alone = wire.end(0, "--mode", "send", "--wait", "2")
    case("a peer that never answers: 1 and a sentence", alone.wait(20) == 1 and
         "192.0.2.2 did not answer within 2 s (--wait): the link is down" in alone.text,
         alone.tail())
    wire = Wire(server=1)
    alone = wire.end(1, "--mode", "sink", "--wait", "2")
    case("a sender that never comes: 1 and a sentence", alone.wait(20) == 1 and
         "192.0.2.1 sent nothing within 2 s (--wait)" in alone.text, alone.tail())
    wire = Wire(server=1)
    other = wire.end(1, "--mode", "sink", "--qpn-base", "0x5000", "--wait", "60")
    alone = wire.end(0, "--mode", "send", "--wait", "4")
    case("a host without our QPs: 1 and a sentence", alone.wait(20) == 1 and
         "the host is there, but no rocade-testpmd receives" in alone.text, alone.tail())
    other.kill()
    wire = Wire(server=0)
    late = wire.end(0, "--mode", "send", "-c", "1000", "--wait", "30")
    late.expect("waiting for", 10)
    sink = wire.end(1, "--mode", "sink", "-c", "1000")
    case("a sink that comes late is found", late.wait(40) == 0 and sink.wait(20) == 0,
         late.tail() + sink.tail())
    wire = Wire(server=1)
    sink = wire.end(1, "--mode", "sink", "-c", "1000000", "--wait", "2")
    sender = wire.end(0, "--mode", "send", "-c", "1000")
    case("a sender that leaves too early: 1 and a sentence", sender.wait(20) == 0 and
         sink.wait(20) == 1 and "1000 of 1000000 messages came" in sink.text, sink.tail())


if __name__ == "__main__":
    sys.exit(run(traffic, trouble, pingpong, sender_restarts, sink_restarts,
                 sender_stops_and_goes, pingpong_restarts, nobody))
