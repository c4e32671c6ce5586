#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd on two hosts, network namespaces with a net_tap port each, joined by bridges: 8
QPs into one SRQ, limit events, 1 % loss in the second half; restarts of either end; a kernel that
pings the port. tshark and an independent ICRC check accept the captured frames."""

import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import limit  # noqa: E402
import ports  # noqa: E402
import process  # noqa: E402
from capture import Capture  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import (ICRC_CHECK, SCRATCH, Testpmd, add_space, eal, eal_cores, ip,  # noqa: E402
                     is_root, ping, plug, tap_wire, verified)

ADDRESS = ["192.0.2.1/24,2001:db8::1/64", "192.0.2.2/24,2001:db8::2/64"]
V4 = ["192.0.2.1", "192.0.2.2"]
V6 = ["2001:db8::1", "2001:db8::2"]
ROW = ports.Row("net_tap")


def end(spaces, side, *options, peers=V4, cores=0):
    how, how_eal = [], eal(side, "net_tap0,iface=port", memory_mb=256)
    if cores != 0:
        how, how_eal = ["--nb-cores", str(cores)], eal_cores(cores + 1, "net_tap0,iface=port")
    program = Testpmd(["--addr", ADDRESS[side], "--peer", peers[1 - side], *how, *options], how_eal,
                      space=spaces[side])
    # Wait for the start: the PMD sets the address of the kernel's end while it starts.
    program.expect(r"^port 0: \w+, \d+ QPs", 20)
    plug(spaces[side], "port", "br0")
    return program


def pair(spaces, *options, sink_options=(), **more):
    ends = [end(spaces, 1, "--mode", "sink", *options, *sink_options, **more),
            end(spaces, 0, "--mode", "send", *options, **more)]
    codes = [program.wait(120) for program in ends]
    for program in ends:
        ROW.saw(program.kill())
    if codes != [0, 0]:
        return False, "%s\n%s\n%s" % (codes, ends[0].tail(), ends[1].tail()), None, None
    return True, "", ends[1].json(), ends[0].json()


def captured(space, name):
    """Captures frames of both directions on the left bridge, at most 100,000."""
    return Capture(space, "cable", SCRATCH, name, "-c", "100000", "-s", "0")


def check_capture(name, path, least):
    done = process.run([sys.executable, ICRC_CHECK, "--min", least, path])
    case("%s: every frame has a correct ICRC" % name, done.returncode == 0,
         done.stdout + done.stderr)
    print("# " + done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "# nothing")
    if not shutil.which("tshark"):
        skip("%s: tshark" % name, "no tshark")
        return
    done = process.run(["tshark", "-n", "-r", path, "--disable-protocol", "rpcordma", "-T",
                        "fields", "-e", "frame.protocols", "-e", "_ws.malformed", "-Y",
                        "udp.dstport == 4791"])
    lines = done.stdout.splitlines()
    # If bytes 2 and 3 of a payload are 0, tshark takes the first two for an EtherType and may find
    # the rest malformed. The frame is right all the same.
    bad = [line for line in lines if "infiniband" not in line or
           ("alformed" in line and ":infiniband:ethertype" not in line)]
    case("%s: tshark decodes every frame as RoCEv2" % name, len(lines) >= least and not bad,
         "%d frames, wrong: %s" % (len(lines), bad[:3]))


def traffic(spaces):
    capture = captured(spaces[0], "traffic.pcap")
    script = os.path.join(SCRATCH, "half-way")
    with open(script, "w", encoding="utf-8") as file:
        file.write("start\nwait 3\nset impair rx loss 1%\nwait\n")
    good, why, sent, got = pair(spaces, "-q", "8", "-s", "64,1000,4096,16k", "-t", "6",
                                "--signal-every", "64", "--depth", "1024", sink_options=[
                                    "--srq-limit", "256", "--cmdline-file", script])
    capture.stop()
    case("8 QPs send into one SRQ, verified, 1 % loss", good and verified(got) and
         got["messages"] == sent["messages"] > 1000, why or (sent, got))
    if not good:
        return
    print("# %d messages, %.2f Gb/s, %d retransmissions" % (got["messages"], got["gbps"],
                                                            sent["retransmits"]))
    case("lost frames are retransmitted", got["ports"][0]["impaired"]["lost"] > 0 and
         sent["retransmits"] > 0, (sent, got))
    ours, theirs = (report["ports"][0]["stats"] for report in (sent, got))
    case("after the first loss the hosts find out that both understand selective acknowledgements, "
         "and use them", ours["ext_hosts_some"] + theirs["ext_hosts_some"] > 0 and
         theirs["sack_sent"] >= ours["sack_received"] > 0 and ours["resent_few"] > 0, (ours, theirs))
    case("limit events refill the SRQ", got["limit_events"] > 0 and
         got["refills"] == got["limit_events"], got)
    case("unsignaled sends save completions", sent["cqes_saved"] > sent["messages"] * 0.9,
         sent)
    check_capture("traffic", capture.path, 1000)


def paths(spaces):
    capture = captured(spaces[0], "paths.pcap")
    good, why, sent, got = pair(spaces, "-q", "2", "-c", "8000", "-s", "64,1000,4096,16k",
                                "--paths", "4")
    capture.stop()
    case("2 QPs over 4 paths each, verified", good and verified(got) and got["messages"] == 8000,
         why or (sent, got))
    if not good:
        return
    stats = sent["ports"][0]["stats"]
    case("packets are spread", stats["spread"] > 1000, stats)
    if not shutil.which("tshark"):
        return
    done = process.run(["tshark", "-n", "-r", capture.path, "-T", "fields", "-e", "udp.srcport",
                        "-Y", "udp.dstport == 4791 and ip.src == 192.0.2.1"])
    ports = [line for line in done.stdout.split() if line]
    # A path whose probes get no answer in time moves to another port. Beside other load that
    # happens without a loss.
    counts = {port: ports.count(port) for port in set(ports)}
    many = [port for port in counts if counts[port] >= 100]
    case("8 source ports are used, and another one after each move of a path",
         8 <= len(many) <= 8 + stats["paths_moved"], (stats["paths_moved"], counts))
    check_capture("paths", capture.path, 4000)


MIX = "send:3,send-imm:2,write:5,write-imm:5,read:4,fadd:3,cas:3,atomic-write:2,flush:2"
MOST = 60  # looks in a second: ten for the link, and some for packets of the kernel


def queues(spaces):
    """Two queue pairs and engines at each end. The kernel spreads what arrives by its own hash."""
    good, why, sent, got = pair(spaces, "-q", "8", "-c", "20000", "-s", "64,1000,4096", "--engines",
                                "2")
    case("8 QPs of two engines send into one SRQ, verified", good and verified(got) and
         got["messages"] == 20000, why or (sent, got))


def jumbo(spaces):
    """net_tap sends no frame that is longer than its MTU, which is 1504 at most."""
    program = Testpmd(["--addr", ADDRESS[0], "--peer", V4[1], "--mode", "sink", "--if-mtu", "4184"],
                      eal(0, "net_tap0,iface=port", memory_mb=256), space=spaces[0])
    case("an MTU that the port does not carry is refused", program.wait(20) == 3 and re.search(
        r"mtu: 4184 is more than net_tap0 \(net_tap\) carries: expected at most \d+", program.text),
         program.tail())


def sleeping(spaces):
    good, why, sent, got = pair(spaces, "-q", "4", "-c", "4000", "-s", "64,1000,4096", "--sleep")
    case("messages arrive verified at ends that sleep when they can", good and verified(got) and
         got["messages"] == 4000, why or (sent, got))
    idle = end(spaces, 1, "--mode", "sink", "-i", "--sleep")
    case("an idle end sleeps between two looks", limit.sleeps_between(idle.pid, MOST), limit.look(idle.pid))
    idle.say("quit")
    idle.wait(10)


def sizes(spaces):
    capture = captured(spaces[0], "sizes.pcap")
    for mtu in (256, 1024):
        good, why, sent, got = pair(spaces, "-q", "2", "-c", "2000", "-s",
                                    "0,1,2,3,4,255,256,257,1023,5000", "--mtu", str(mtu),
                                    "--dscp", "26", "--hop-limit", "7")
        case("messages arrive verified with path MTU %d, IPv4" % mtu, good and verified(got) and
             got["messages"] == 2000, why or (sent, got))
    good, why, sent, got = pair(spaces, "-q", "2", "-c", "2000", "-s", "0,1,2,3,1024,5000",
                                peers=V6)
    case("messages arrive verified over IPv6", good and verified(got) and
         got["messages"] == 2000, why or (sent, got))
    capture.stop()
    check_capture("sizes", capture.path, 3000)


def restarts(spaces, mix, cores=0):
    options = ["-q", "4", "--op", mix]
    sink = end(spaces, 1, "--mode", "sink", *options, "-i", "-a", cores=cores)
    sender = end(spaces, 0, "--mode", "send", *options, "-i", "-a", cores=cores)
    mix += ", %d cores" % cores if cores != 0 else ""
    flows = r"sink: [\d.]+ Mmsg/s .* [\d,]{4,} messages"
    case(mix + ": messages arrive before the restart", sink.expect(flows, 30), sink.tail() + sender.tail())
    sink.kill()
    case(mix + ": the sender reports that a killed sink does not answer", sender.expect(
        "192.0.2.2 stopped answering .*`start` reconnects", 30), sender.tail())
    sink = end(spaces, 1, "--mode", "sink", *options, "-i", "-a", cores=cores)
    sender.say("start")
    case(mix + ": `start` connects to the restarted sink", sink.expect(flows, 30),
         sink.tail() + sender.tail())
    sender.kill()
    sender = end(spaces, 0, "--mode", "send", *options, "-c", "5000", cores=cores)
    case(mix + ": a restarted sender can send", sender.wait(60) == 0, sender.tail() + sink.tail())
    case(mix + ": the sink reports the restarted sender", sink.expect("192.0.2.1 was restarted", 30),
         sink.tail())
    sink.say("stop")
    case(mix + ": the sink passes, all verified", sink.expect("^PASS", 20), sink.tail())
    sink.kill()


def both_restarts(spaces):
    """In turn each end is restarted."""
    ends = [end(spaces, side, "--mode", "both", "-q", "3", "-i", "-a") for side in (0, 1)]
    flows = r"both: [\d.]+ Mmsg/s .* [\d,]{3,} messages"
    for side in (0, 1):
        other = ends[1 - side]
        case("both directions flow before end %d is killed" % side, all(
            program.expect(flows, 30) for program in ends), ends[0].tail() + ends[1].tail())
        mark = len(other.text)
        ends[side].kill()
        case("the other end reports that end %d does not answer" % side, other.expect(
            r"stopped answering|the link to", 30, mark), other.tail())
        ends[side] = end(spaces, side, "--mode", "both", "-q", "3", "-i", "-a")
        mark = len(other.text)
        other.say("start")
        case("both directions flow with the restarted end %d" % side, ends[side].expect(flows, 30) and
             other.expect(flows, 30, mark), ends[0].tail() + ends[1].tail())
    for program in ends:
        program.say("stop")
    case("stopped ends pass, all verified", all(program.expect("^PASS", 20) for program in ends),
         ends[0].tail() + ends[1].tail())
    for program in ends:
        program.kill()


def pingpong_restarts(spaces):
    client = end(spaces, 0, "--mode", "pingpong", "-i", "-a")
    server = end(spaces, 1, "--mode", "pingpong", "-i", "-a")
    flows = r"pingpong: [\d.]+ Mmsg/s .* [\d,]{3,} messages"
    case("pingpong runs before the restart", client.expect(flows, 30), client.tail())
    server.kill()
    case("the pingpong client reports that a killed server does not reply", client.expect(
        r"stopped answering|has not returned it", 30), client.tail())
    server = end(spaces, 1, "--mode", "pingpong", "-i", "-a")
    mark = len(client.text)
    client.say("start")
    case("`start` connects to the restarted pingpong server", client.expect(flows, 30, mark),
         client.tail() + server.tail())
    client.kill()
    client = end(spaces, 0, "--mode", "pingpong", "-c", "1000")
    case("a restarted pingpong client gets replies", client.wait(60) == 0,
         client.tail() + server.tail())
    case("the pingpong server reports the restarted client",
         server.expect("was restarted|stopped answering", 30), server.tail())
    server.kill()


def kernel_neighbour(spaces):
    """The kernel of a third host pings the port, over IPv4 and IPv6."""
    host = add_space("host")
    ip("-n", spaces[0], "link", "add", "third", "type", "veth", "peer", "name", "eth0", "netns",
       host)
    ip("-n", spaces[0], "link", "set", "third", "master", "br0", "up")
    ip("netns", "exec", host, "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
    ip("-n", host, "address", "add", "192.0.2.9/24", "dev", "eth0")
    ip("-n", host, "address", "add", "2001:db8::9/64", "dev", "eth0", "nodad")
    ip("-n", host, "link", "set", "eth0", "up")
    sink = end(spaces, 0, "--mode", "sink", "-i", "-a")
    for address in (V4[0], V6[0]):
        done = process.run(["ip", "netns", "exec", host] + ping("-s", "1000", address), 120)
        case("the port answers the kernel's pings to %s" % address, done.returncode == 0,
             done.stdout + done.stderr)
    sink.say("show neigh")
    case("`show neigh` lists the kernel", sink.expect(r"192\.0\.2\.9 .* reachable", 5),
         sink.tail())
    sink.say("quit")
    sink.wait(10)


def main():
    if not is_root() or not os.path.exists("/dev/net/tun"):
        return run(lambda: skip("net_tap", "needs root and /dev/net/tun"))
    spaces = tap_wire()
    return run(lambda: traffic(spaces), lambda: paths(spaces), lambda: sizes(spaces),
               lambda: queues(spaces), lambda: jumbo(spaces),
               lambda: sleeping(spaces),
               lambda: restarts(spaces, "send"),
               lambda: restarts(spaces, MIX), lambda: restarts(spaces, MIX, 2),
               lambda: both_restarts(spaces), lambda: pingpong_restarts(spaces),
               lambda: kernel_neighbour(spaces), ROW.case)


if __name__ == "__main__":
    sys.exit(main())
