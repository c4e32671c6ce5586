#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two rocade-testpmd processes, one over net_vhost and the other over net_virtio_user: verified
traffic in both directions over IPv4 and IPv6, path MTU 4096, two queue pairs, sleeping ends, frames
that arrive in several buffers, and a virtio end that is restarted."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import ports  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import SCRATCH, Testpmd, eal, verified  # noqa: E402

ADDRESS = ["192.0.2.1/24,2001:db8::1/64", "192.0.2.2/24,2001:db8::2/64"]
V4 = ["192.0.2.1", "192.0.2.2"]
V6 = ["2001:db8::1", "2001:db8::2"]
VHOST, VIRTIO = 0, 1
ROWS = [ports.Row("net_vhost"), ports.Row("net_virtio_user")]


class Wire:
    """One vhost-user socket, of which net_vhost is the server."""

    count = 0

    def __init__(self, queues=1):
        Wire.count += 1
        self.socket = os.path.join(SCRATCH, "vhost%d" % Wire.count)
        self.queues = queues

    def end(self, side, *options, peers=V4):
        device = ("net_vhost0,iface=%s,queues=%d" if side == VHOST else
                  "net_virtio_user0,path=%s,queues=%d") % (self.socket, self.queues)
        # The other process maps this one's memory by a few descriptors.
        program = Testpmd(["--addr", ADDRESS[side], "--peer", peers[1 - side], "--engines",
                           self.queues] + list(options),
                          eal(side, device, memory_mb=256) + ["--single-file-segments"])
        program.expect(r"^port 0: \w+, \d+ QPs", 20)
        return program


def pair(*options, sender=VIRTIO, queues=1, vhost=(), virtio=(), **more):
    """Runs both ends, net_vhost's first. Returns whether both passed, why not, and the reports of
    sender and receiver."""
    wire = Wire(queues)
    ends = [None, None]
    for side, own in ((VHOST, vhost), (VIRTIO, virtio)):
        ends[side] = wire.end(side, "--mode", "send" if side == sender else "sink", *options, *own,
                              **more)
    codes = [program.wait(90) for program in ends]
    for row, program in zip(ROWS, ends):
        if "--shared" not in program.command:
            row.saw(program.text)
    if codes != [0, 0]:
        return False, "%s\n%s\n%s" % (codes, ends[0].tail(), ends[1].tail()), None, None
    return True, "", ends[sender].json(), ends[1 - sender].json()


def traffic():
    for sender, name in ((VIRTIO, "virtio to vhost"), (VHOST, "vhost to virtio")):
        good, why, sent, got = pair("-q", "8", "-c", "20000", "-s", "64,1000,4096", sender=sender)
        case("%s: 8 QPs send into one SRQ, verified" % name, good and verified(got) and
             got["messages"] == sent["messages"] == 20000, why or (sent, got))
    good, why, sent, got = pair("-q", "2", "-c", "2000", "-s", "0,1,2,3,4096,10000", peers=V6,
                                virtio=["--sleep"], vhost=["--sleep"])
    case("messages arrive verified over IPv6, at ends that sleep when they can", good and
         verified(got) and got["messages"] == 2000, why or (sent, got))
    good, why, sent, got = pair("-q", "4", "-c", "4000", "-s", "64,4096,16k,100", "--if-mtu",
                                "4184")
    case("messages arrive verified with path MTU 4096", good and verified(got) and
         got["messages"] == 4000 and got["ports"][0]["path_mtu"] == 4096, why or (sent, got))
    good, why, sent, got = pair("-q", "4", "-c", "4000", "-s", "64,1000,4096", queues=2)
    case("messages arrive verified over two queue pairs", good and verified(got) and
         got["messages"] == 4000, why or (sent, got))


def segments():
    """The virtio end is an application that has given its port buffers smaller than a frame."""
    good, why, sent, got = pair("-q", "4", "-c", "4000", "-s", "64,1000,4096,16k", "--if-mtu",
                                "4184", sender=VHOST, virtio=["--shared", "segments"])
    stats = got["ports"][0]["stats"] if good else {}
    case("frames in several buffers arrive verified", good and verified(got) and
         got["messages"] == 4000 and stats["rx_linearised"] > 4000, why or stats)


def restart():
    wire = Wire()
    sink = wire.end(VHOST, "--mode", "sink", "-q", "4", "-i", "-a")
    sender = wire.end(VIRTIO, "--mode", "send", "-q", "4", "-i", "-a")
    flows = r"sink: [\d.]+ Mmsg/s .* [\d,]{4,} messages"
    case("messages arrive before the restart", sink.expect(flows, 30), sink.tail() + sender.tail())
    sender.kill()
    case("the link of net_vhost goes down with its peer", sink.expect("^port 0: port error", 20),
         sink.tail())
    sender = wire.end(VIRTIO, "--mode", "send", "-q", "4", "-c", "5000")
    case("a restarted virtio end can send", sender.wait(60) == 0, sender.tail() + sink.tail())
    case("the sink reports the restarted sender", sink.expect("192.0.2.2 was restarted", 5),
         sink.tail())
    sink.say("stop")
    case("the sink passes, all verified", sink.expect("^PASS", 20), sink.tail())
    sink.say("quit")
    case("the sink ends with status 0", sink.wait(20) == 0, sink.tail())


if __name__ == "__main__":
    sys.exit(run(traffic, segments, restart, *(row.case for row in ROWS)))
