#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two rocade-testpmd processes over net_memif: verified traffic, path MTU 4096, impairment, stop
and start, ports that librte_power pauses, and the messages of an end whose peer is missing or late.
testpmd_tap.py has the restarts: when one end of a memif closes, the other end's driver (DPDK 22.11)
unmaps the rings in a thread of its own, and crashes if they are polled at that moment."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import ports  # noqa: E402
from limit import let_run  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import LONG, SCRATCH, Testpmd, eal, preloaded, verified  # noqa: E402

ADDRESS = ["192.0.2.1", "192.0.2.2"]
ROW = ports.Row("net_memif")


class Wire:
    """One memif. Its server must run before the client starts: a client tries only once."""

    count = 0

    def __init__(self, server):
        Wire.count += 1
        self.socket = os.path.join(SCRATCH, "memif%d" % Wire.count)
        self.server = server

    def end(self, side, *options, if_mtu=1500, env=None):
        """Starts an end. Side 0 has the lower address."""
        device = "net_memif0,role=%s,socket=%s,socket-abstract=no,bsize=%d,rsize=11" % (
            "server" if side == self.server else "client", self.socket,
            8192 if if_mtu > 1500 else 2048)
        program = Testpmd(["--addr", ADDRESS[side] + "/24", "--peer", ADDRESS[1 - side],
                           "--if-mtu", if_mtu] + list(options),
                          eal(side, device, memory_mb=256), env=env)
        if side == self.server:
            program.expect(r"^port 0: \w+, \d+ QPs", 20)
        return program


def close(first, other, code=0):
    """Ends `first` while `other` is frozen and does not poll, then `other`, whose run is over."""
    other.freeze()
    first.say("quit")
    got = first.wait(20)
    other.kill()
    return got == code


def pair(*options, mode="send", other="sink", timeout_s=60, **more):
    """Runs both ends. Returns whether both passed, why not, and the reports of sides 0 and 1."""
    wire = Wire(server=1)
    options = list(options) + ["-i", "-a", "--wait", "30"]
    ends = [wire.end(1, "--mode", other, *options, **more),
            wire.end(0, "--mode", mode, *options, **more)]
    for program in ends:
        program.expect("^(PASS|FAIL)", timeout_s)
    good = all("\nPASS" in program.text for program in ends)
    good = close(ends[1], ends[0]) and good
    if "--shared" not in options:
        for program in ends:
            ROW.saw(program.text)
    if not good:
        return False, "%s\n%s" % (ends[0].tail(), ends[1].tail()), None, None
    return True, "", ends[1].json(), ends[0].json()


def traffic():
    count = 10000000 if LONG else 300000
    good, why, sent, got = pair("-q", "8", "-c", count, timeout_s=600 if LONG else 60)
    case("%d messages of 64 bytes arrive verified" % count, good and verified(got) and
         got["messages"] == sent["messages"] == count, why or (sent, got))
    if good:
        print("# %.2f Mmsg/s" % (got["rate"] / 1e6))
    for mtu in (256, 1024, 4096):
        good, why, sent, got = pair("-q", "4", "-c", 20000, "-s", "0,1,4096,16k,100", "--mtu", mtu,
                                    if_mtu=4200 if mtu == 4096 else 1500)
        case("messages arrive verified with path MTU %d" % mtu, good and verified(got) and
             got["messages"] == 20000 and got["ports"][0]["path_mtu"] == mtu, why or (sent, got))
    for how in ("frames", "queues"):
        good, why, sent, got = pair("-q", "4", "-c", 100000, "-s", "64,1000,4096", "--shared", how)
        case("messages arrive verified on ports that the program keeps, %s" % how,
             good and verified(got) and got["messages"] == 100000, why or (sent, got))
    good, why, sent, got = pair("-q", "8", "-c", 200000, "--srq-limit", "512", "--depth", "2048")
    case("limit events refill the SRQ", good and verified(got) and got["limit_events"] > 50,
         why or got)
    good, why, sent, got = pair("-q", "4", "-t", "2")
    case("--duration: the last messages still arrive", good and verified(got) and
         got["messages"] == sent["messages"], why or (sent, got))


def idle_polls(how, pause):
    """Returns how often an end without a peer polls in a microsecond of its thread's time. pause:
    "0": without librte_power."""
    end = Wire(server=1).end(1, "--mode", "sink", "-i", "-a", "--shared", how,
                             env=preloaded("power_pause", POWER_PAUSE=pause))
    let_run(1)
    end.say("quit")
    end.wait(20)
    polls, ns = map(int, re.search(r"power_pause: (\d+) polls in (\d+) ns", end.text).groups())
    return polls / (ns / 1000)


def power():
    """librte_power adds a pause of a microsecond to polls of a queue that stays empty. Thread time
    is counted, so other load does not matter."""
    for how in ("frames", "queues"):
        good, why, sent, got = pair("-q", "4", "-c", 20000, "-s", "64,1000,4096", "--shared", how,
                                    env=preloaded("power_pause"))
        case("messages arrive verified on ports whose queue librte_power manages, %s" % how,
             good and verified(got) and got["messages"] == 20000, why or (sent, got))
        plain, paused = idle_polls(how, "0"), idle_polls(how, "1")
        print("# %s: %.2f polls in a microsecond, %.2f with pauses" % (how, plain, paused))
        case("librte_power pauses an idle engine, %s" % how, 0 < paused < 0.8 * plain,
             (plain, paused))


def impairment():
    count = 10000000 if LONG else 100000
    good, why, sent, got = pair("-q", "8", "-c", count, "--impair", "loss=1%,dup=1%,reorder=1%",
                                timeout_s=1800 if LONG else 60)
    case("%d messages arrive verified: 1 %% lost, duplicated, reordered" % count, good and
         verified(got) and got["messages"] == sent["messages"] == count and
         got["ports"][0]["impaired"]["lost"], why or (sent, got))


def pingpong():
    good, why, a, b = pair("-c", 20000, mode="pingpong", other="pingpong")
    case("pingpong: one end measures the latency", good and
         a["messages"] == b["messages"] == 20000 and a["lat_p50_ns"] and
         b["lat_p50_ns"] is None, why or (a, b))


def stop_and_start():
    """`start` after `stop` is no restart: PSNs and message numbers continue."""
    wire = Wire(server=1)
    sink = wire.end(1, "--mode", "sink", "-q", "4", "-i", "-a")
    sender = wire.end(0, "--mode", "send", "-q", "4", "-i", "-a")
    mark = 0
    for _ in range(3):
        sender.expect(r"send: [\d.]+ Mmsg/s", 20, mark)
        sender.say("stop")
        sender.expect(r"^PASS", 20, mark)
        mark = len(sender.text)
        sender.say("start")
    sender.expect(r"send: [\d.]+ Mmsg/s", 20, mark)
    sender.say("stop")
    sender.expect("^PASS", 20, mark)
    case("the sender passes after each of four stops", sender.text.count("\nPASS") == 4,
         sender.tail())
    sink.say("stop")
    sink.expect("^PASS", 20)
    case("the sender ends with status 0", close(sender, sink), sender.tail())
    case("the sink sees no restart, all verified", verified(sink.json()) and
         sink.json()["peer_restarts"] == 0, sink.tail())


def missing_peer():
    wire = Wire(server=0)
    alone = wire.end(0, "--mode", "send", "--wait", "2")
    case("the peer never answers: status 1 and a message", alone.wait(20) == 1 and
         "192.0.2.2 did not answer within 2 s (--wait): the link is down" in alone.text,
         alone.tail())
    wire = Wire(server=1)
    alone = wire.end(1, "--mode", "sink", "--wait", "2")
    case("no sender ever starts: status 1 and a message", alone.wait(20) == 1 and
         "192.0.2.1 sent nothing within 2 s (--wait)" in alone.text, alone.tail())
    wire = Wire(server=1)
    other = wire.end(1, "--mode", "sink", "--qpn-base", "0x5000", "-i", "-a")
    alone = wire.end(0, "--mode", "send", "--wait", "4", "-i", "-a")
    case("the peer has other QPNs: a message", alone.expect(
        "the host is reachable, but no rocade-testpmd", 20), alone.tail())
    case("the peer has other QPNs: status 1", close(alone, other, code=1), alone.tail())
    wire = Wire(server=0)
    late = wire.end(0, "--mode", "send", "-c", "1000", "--wait", "30", "-i", "-a")
    late.expect("waiting for", 10)
    sink = wire.end(1, "--mode", "sink", "-c", "1000", "-i", "-a")
    case("the sender finds a sink that starts late", late.expect("^PASS", 40) and
         sink.expect("^PASS", 20), late.tail() + sink.tail())
    close(late, sink)
    wire = Wire(server=1)
    sink = wire.end(1, "--mode", "sink", "-c", "1000000", "--wait", "2", "-i", "-a")
    sender = wire.end(0, "--mode", "send", "-c", "1000", "-i", "-a")
    case("the sender sends too few messages: a message", sender.expect("^PASS", 20) and
         sink.expect("1000 of 1000000 messages arrived", 20), sink.tail())
    case("the sender sends too few messages: status 1", close(sink, sender, code=1), sink.tail())


if __name__ == "__main__":
    sys.exit(run(traffic, power, impairment, pingpong, stop_and_start, missing_peer, ROW.case))
