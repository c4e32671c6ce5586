#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`listen` and `connect` of rocade-testpmd: two or three hosts, network namespaces with net_tap ports,
connect by RDMA-CM over IPv4 and IPv6. A port without a listener rejects. A killed sender connects
again with the same QPNs. tshark decodes the messages."""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from capture import Capture  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import SCRATCH, Testpmd, eal, eal_cores, is_root, plug, tap_wire, verified  # noqa: E402

ADDRESS = ["192.0.2.1/24,2001:db8::1/64", "192.0.2.2/24,2001:db8::2/64"]
PEER = {4: "192.0.2.2", 6: "2001:db8::2"}
CONNECTED = r"^port 0: \d+ QPs connected with"


def end(spaces, side, *options, mac="", cores=0, address=None, iface="port"):
    device = "net_tap0,iface=%s%s" % (iface, mac)
    program = Testpmd(["--addr", address or ADDRESS[side], "-i"] + list(options) + (
        ["--nb-cores", str(cores)] if cores else []), eal_cores(cores + 1, device) if cores else eal(
            side, device, memory_mb=256), space=spaces[side])
    # Wait for the start: the PMD sets the address of the kernel's end while it starts.
    program.say("show port")
    program.expect(r"^port 0", 60)
    plug(spaces[side], iface, "br0")
    return program


def quit_both(sender, sink):
    sender.say("quit")
    codes = [sender.wait(30)]
    sink.say("quit")
    codes.append(sink.wait(30))
    for program in (sender, sink):
        program.kill()
    return codes


def connects(spaces, version):
    sink = end(spaces, 1, "--mode", "sink", "-q", "8", "-c", "20000", "--psn", "7")
    sink.say("listen 7471")
    sink.say("start")
    sink.expect("listening on port 7471", 30)
    # The ends have different PSNs and exchange them.
    sender = end(spaces, 0, "--mode", "send", "-q", "8", "-c", "20000", "--psn", "0xfffff0")
    sender.say("connect %s 7471" % PEER[version])
    name = "IPv%d: " % version
    case(name + "8 QPs connect", sender.expect(CONNECTED, 60) and
         sink.expect(CONNECTED, 30), sender.tail() + sink.tail())
    sender.say("start")
    good = sender.expect("^(PASS|FAIL)", 60) and sink.expect("^(PASS|FAIL)", 60)
    codes = quit_both(sender, sink)
    case(name + "20,000 messages arrive verified", good and codes == [0, 0] and
         verified(sink.json()) and sink.json()["messages"] == 20000,
         (codes, sender.tail(), sink.tail()))
    case(name + "the sink reports the disconnect", sink.expect("has disconnected", 1), sink.tail())


def mix(spaces):
    """Two runs of a mix of operations over the same connections, and one after new ones."""
    options = ["-q", "4", "-c", "4000", "--op", "send:1,send-inv:1,write-imm:1,write:2,read:1,cas:1,flush:1",
               "-s", "64,2000"]
    sink = end(spaces, 1, "--mode", "sink", *options)
    sink.say("listen 7471")
    sink.say("start")
    sink.expect("listening on port 7471", 30)
    sender = end(spaces, 0, "--mode", "send", *options)
    for is_new in (True, False, True):
        if is_new:
            connect(sender)
        marks = len(sender.text), len(sink.text)
        sender.say("start")
        good = sender.expect("^(PASS|FAIL)", 60, marks[0]) and sink.expect(
            "^(PASS|FAIL)", 60, marks[1])
        case("a mix of operations over %s" % ("new connections" if is_new else "the same connections"), good and
             "FAIL" not in sender.text[marks[0]:] + sink.text, sender.tail() + sink.tail())
        mark = len(sink.text)
        sink.say("start")
        sink.expect("^port 0: sink", 20, mark)
    quit_both(sender, sink)


def no_listener(spaces):
    sink = end(spaces, 1, "--mode", "sink")
    sink.say("listen 7471")
    sink.expect("listening on port", 30)
    sender = end(spaces, 0, "--mode", "send")
    sender.say("connect 192.0.2.2 7472")
    case("connect reports that the port has no listener", sender.expect(
        "connect: no listener on this port of 192.0.2.2", 60), sender.tail())
    sender.say("set wait 3")
    sender.say("connect 192.0.2.77 7471")
    case("connect reports that a missing host did not answer", sender.expect(
        "0 of 1 QPs are connected after 3 s", 60), sender.tail())
    sender.say("connect 192.0.2.2 7471")
    case("connect succeeds after the failed ones", sender.expect(CONNECTED, 60), sender.tail())
    mark = len(sender.text)
    sender.say("listen 7470")
    sender.say("connect 192.0.2.2 7472")
    case("an end that listens, too, reports it", sender.expect(
        "connect: no listener on this port of 192.0.2.2", 60, mark), sender.tail())
    quit_both(sender, sink)


def connect(sender):
    mark = len(sender.text)
    sender.say("connect 192.0.2.2 7471")
    return sender.expect(CONNECTED, 60, mark)


def killed(spaces, cores=0):
    """A killed sender sends no DREQ. The next sender has the same QPNs. If it has the same MAC too,
    the sink's CM takes it for the same host and finds the old connections stale. cores: those of the sink, which
    are held for its events."""
    name = "%d cores: " % cores if cores else ""
    sink = end(spaces, 1, "--mode", "sink", "-q", "4", cores=cores)
    sink.say("listen 7471")
    sink.say("start")
    sink.expect("listening on port", 30)
    for life, mac in enumerate((",mac=02:00:00:00:01:01", ",mac=02:00:00:00:01:01", "")):
        sender = end(spaces, 0, "--mode", "send", "-q", "4", mac=mac)
        case(name + "sender %d connects" % life, connect(sender), sender.tail())
        case(name + "sender %d %s the sink" % (life, "waits for" if life == 1 else "does not wait for"),
             ("still has old connections of these QPs: waiting" in sender.text) == (life == 1), sender.tail())
        sender.say("start")
        case(name + "sender %d sends" % life, sender.expect(r"send: [\d.]+ Mmsg/s .* [\d,]{4,} messages",
                                                     60), sender.tail() + sink.tail())
        if life < 2:
            sender.kill()
    sender.say("stop")
    case(name + "the last sender passes", sender.expect("^PASS", 30), sender.tail())
    sink.say("stop")
    case(name + "the sink passes, all verified", sink.expect("^PASS", 30) and verified(sink.json()),
         sink.tail())
    quit_both(sender, sink)


def changed_options(spaces):
    """`start` of the sink closes connections whose options have changed. The sender connects again."""
    sink = end(spaces, 1, "--mode", "sink", "-q", "4", "-s", "64,128", "-T", "0")
    sink.say("listen 7471")
    sink.expect("listening on port", 30)
    sender = end(spaces, 0, "--mode", "send", "-q", "4", "-c", "2000", "-s", "64,128", "-T", "0")
    connect(sender)
    for program in (sink, sender):
        program.say("set size 128")
        program.say("show qp")
        program.expect("^port 0: 4 QPs$", 30)
    sink.say("start")
    case("the listening end waits for new connections after `set size`", sink.expect(
        "options of the connections have changed: waiting for new connections", 30) and
         sender.expect("192.0.2.2 has disconnected", 30), sender.tail() + sink.tail())
    sender.say("start")
    case("the other end asks for `connect`", sender.expect("enter `connect` again", 30),
         sender.tail())
    connect(sender)
    sender.say("start")
    sender.expect("^(PASS|FAIL)", 60)
    sink.say("stop")
    case("messages of the new size arrive verified", sink.expect("^PASS", 30) and
         verified(sink.json()) and sink.json()["bytes"] == 2000 * 128, sender.tail() + sink.tail())
    mark = len(sender.text)
    sink.say("quit")
    sink.wait(30)
    sender.expect("192.0.2.2 has disconnected", 30, mark)
    sender.say("start")
    case("`start` over lost connections is an error", sender.expect(
        "connections to 192.0.2.2 are lost", 20, mark), sender.tail())
    quit_both(sender, sink)


def third(spaces):
    """One end with two peers. The second one leaves while the first one is connected again."""
    hub = end(spaces, 0, "--mode", "send", "-q", "2", "--peer", "192.0.2.2,192.0.2.3")
    peers = [end(spaces, 1, "--mode", "sink", "--peer", "192.0.2.1"), end(
        spaces, 1, "--mode", "sink", "--peer", "192.0.2.1@1", address="192.0.2.3/24", iface="third")]
    for number, peer in enumerate(peers):
        peer.say("listen 7471")
        peer.expect("listening on port", 30)
        hub.say("connect 192.0.2.%d 7471" % (2 + number))
        case("peer %d connects" % number, hub.expect("1 QPs connected with 192.0.2.%d" % (2 + number), 60) and
             peer.expect(CONNECTED, 30), hub.tail() + peer.tail())
    mark = len(hub.text)
    hub.say("connect 192.0.2.2 7471")
    peers[0].expect("has disconnected", 30)  # the hub waits until the QP can be connected again
    peers[1].say("quit")
    case("the other peer is answered when it leaves meanwhile", hub.expect("192.0.2.3 has disconnected", 30, mark) and
         peers[1].wait(30) == 0 and hub.expect("1 QPs connected with 192.0.2.2", 60, mark), hub.tail())
    hub.say("start")
    case("`start` knows that it has left", hub.expect("connections to 192.0.2.3 are lost", 30, mark), hub.tail())
    peers[1].kill()
    quit_both(hub, peers[0])


def loop():
    script = os.path.join(SCRATCH, "loop")
    with open(script, "w", encoding="utf-8") as file:
        file.write("listen 18515\nconnect 192.0.2.2 18515\nstart\nwait\n")
    for mode in ([], ["--mode", "pingpong"]):
        program = Testpmd(["--loop", "-q", "3", "-c", "3000", "--cmdline-file", script] + mode)
        case("both ends in one process connect%s" % (": pingpong" if mode else ""),
             program.wait(60) == 0 and "\nPASS" in program.text, program.tail())


def on_the_wire(spaces):
    """tshark, an independent decoder, decodes the messages."""
    if not shutil.which("tshark") or not shutil.which("tcpdump"):
        skip("tshark", "no tshark or no tcpdump")
        return
    capture = Capture(spaces[0], "cable", SCRATCH, "cm.pcap", "-s", "0")
    sink = end(spaces, 1, "--mode", "sink", "-q", "2")
    sink.say("listen 7471")
    sink.expect("listening on port", 30)
    sender = end(spaces, 0, "--mode", "send", "-q", "2")
    sender.say("connect 192.0.2.2 7471")
    sender.expect(CONNECTED, 60)
    quit_both(sender, sink)
    capture.stop()
    done = process.run(["tshark", "-n", "-r", capture.path, "-Y", "infiniband.mad", "-T", "fields",
                        "-e", "infiniband.mad.attributeid", "-e", "_ws.malformed"])
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    seen = {int(row[0], 0) for row in rows}
    case("tshark sees REQ, REP, RTU, DREQ, DREP", {0x10, 0x13, 0x14, 0x15, 0x16} <= seen,
         done.stdout + done.stderr + sender.tail())
    case("tshark finds no malformed CM message", rows and
         not any(row[1] for row in rows if len(row) > 1), done.stdout)


def main():
    if not is_root() or not os.path.exists("/dev/net/tun"):
        return run(loop, lambda: skip("net_tap", "needs root and /dev/net/tun"))
    spaces = tap_wire()
    return run(loop, lambda: connects(spaces, 4), lambda: connects(spaces, 6), lambda: mix(spaces),
               lambda: no_listener(spaces), lambda: killed(spaces),
               lambda: killed(spaces, 2), lambda: changed_options(spaces), lambda: third(spaces),
               lambda: on_the_wire(spaces))


if __name__ == "__main__":
    sys.exit(main())
