#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd on two hosts, network namespaces, over net_af_xdp on the ends of a veth: verified
traffic, path MTU 1024 and 2048, IPv6, an MTU that does not fit. Then over net_af_xdp at one end and
the kernel at the other: it pings the port. Then on interfaces that the kernels go on using, with the
XDP program of tools/xdp: TCP and pings between the kernels beside RDMA. Then two daemons."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import ports  # noqa: E402
import process  # noqa: E402
from hosts import Host, across, sockets_wire  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import (SCRATCH, SOURCE, Testpmd, add_space, eal, ip, is_root, ping,  # noqa: E402
                     until, verified)

ADDRESS = ["192.0.2.1/24,2001:db8::1/64", "192.0.2.2/24,2001:db8::2/64"]
V4 = ["192.0.2.1", "192.0.2.2"]
V6 = ["2001:db8::1", "2001:db8::2"]
ROW = ports.Row("net_af_xdp")


def veth(name, mtu):
    spaces = [add_space("left" + name), add_space("right" + name)]
    ip("-n", spaces[0], "link", "add", "eth0", "mtu", mtu, "type", "veth", "peer", "name", "eth0",
       "mtu", mtu, "netns", spaces[1])
    for space in spaces:
        ip("-n", space, "link", "set", "eth0", "up")
    return spaces


def end(spaces, side, *options, peers=V4, more=""):
    # The kernel moves the frames of a veth in a thread that competes with both programs: an answer
    # may take long.
    program = Testpmd(["--addr", ADDRESS[side], "--peer", peers[1 - side], "--timeout", "17"] +
                      list(options),
                      eal(side, "net_af_xdp0,iface=eth0" + more, memory_mb=256), space=spaces[side])
    program.expect(r"^port 0: \w+, \d+ QPs", 20)
    return program


def pair(spaces, *options, modes=("send", "sink"), **more):
    """Runs both ends. Returns whether both passed, why not, and the reports."""
    ends = [end(spaces, side, "--mode", modes[side], *options, **more) for side in (1, 0)][::-1]
    codes = [program.wait(90) for program in ends]
    for program in ends:
        ROW.saw(program.text)
    if codes != [0, 0]:
        return False, "%s\n%s\n%s" % (codes, ends[0].tail(), ends[1].tail()), None, None
    return True, "", ends[0].json(), ends[1].json()


def traffic():
    spaces = veth("1", "1500")
    good, why, sent, got = pair(spaces, "-q", "8", "-c", "20000", "-s", "64,1000,4096")
    case("8 QPs send into one SRQ, verified", good and verified(got) and
         got["messages"] == sent["messages"] == 20000, why or (sent, got))
    good, why, sent, got = pair(spaces, "-q", "2", "-c", "2000", "-s", "0,1,2,3,1024,5000",
                                peers=V6)
    case("messages arrive verified over IPv6", good and verified(got) and
         got["messages"] == 2000, why or (sent, got))
    good, why, a, b = pair(spaces, "-c", "1000", "--sleep", modes=("pingpong", "pingpong"))
    case("pingpong between ends that sleep when they can", good and
         a["messages"] == b["messages"] == 1000, why or (a, b))
    spaces = veth("2", "2200")
    good, why, sent, got = pair(spaces, "-q", "4", "-c", "4000", "-s", "64,4096,16k,100",
                                "--if-mtu", "2200")
    case("messages arrive verified with path MTU 2048", good and verified(got) and
         got["messages"] == 4000 and got["ports"][0]["path_mtu"] == 2048, why or (sent, got))


def too_long():
    """The kernel wants a buffer, with all that stands in front of the frame, within a page."""
    program = Testpmd(["--addr", ADDRESS[0], "--peer", V4[1], "--if-mtu", "4184"],
                      eal(0, "net_af_xdp0,iface=eth0", memory_mb=256), space=veth("3", "4184")[0])
    code = program.wait(30)
    case("an MTU that does not fit: status 3 and a message", code == 3 and
         "buffers for mtu: 4184" in program.text, "%s %s" % (code, program.tail()))


def kernel_neighbour():
    spaces = veth("4", "1500")
    ip("netns", "exec", spaces[1], "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
    ip("-n", spaces[1], "address", "add", "192.0.2.9/24", "dev", "eth0")
    ip("-n", spaces[1], "address", "add", "2001:db8::9/64", "dev", "eth0", "nodad")
    sink = end(spaces, 0, "--mode", "sink", "-i", "-a")
    for address in (V4[0], V6[0]):
        done = process.run(["ip", "netns", "exec", spaces[1]] + ping("-s", "1000", address), 120)
        case("the port answers the kernel's pings to %s" % address, done.returncode == 0,
             done.stdout + done.stderr)
    sink.say("quit")
    code, shown = sink.wait(10), ip("-n", spaces[0], "link", "show", "eth0")
    case("the port closes, and leaves the interface without its XDP program, and not promiscuous",
         code == 0 and "xdp" not in shown and "PROMISC" not in shown, sink.tail() + shown)


def kernels():
    """Adds a veth whose ends have addresses of the kernels, beside those of Rocade."""
    spaces = veth("5", "1500")
    for number, space in enumerate(spaces):
        ip("netns", "exec", space, "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
        ip("-n", space, "address", "add", "192.0.2.10%d/24" % number, "dev", "eth0")
        ip("-n", space, "address", "add", "2001:db8::10%d/64" % number, "dev", "eth0", "nodad")
    return spaces


FETCH = ("import urllib.request; "
         "print(len(urllib.request.urlopen('http://192.0.2.100:8022/data').read()))")


def shared_interface():
    """Both ends share their interfaces with their kernels."""
    spaces, more = kernels(), []
    for side in (0, 1):
        program = os.path.join(SCRATCH, "xdp%d.o" % side)
        process.run([os.path.join(SOURCE, "tools", "xdp", "build.sh"), program, V4[side], V6[side]],
                    check=True)
        more.append(",xdp_prog=" + program)
    folder = os.path.join(SCRATCH, "www")
    os.mkdir(folder)
    with open(os.path.join(folder, "data"), "wb") as file:
        file.write(bytes(1000000))
    server = process.Process(["ip", "netns", "exec", spaces[0], sys.executable, "-u", "-m",
                              "http.server", "8022", "--bind", "192.0.2.100"], cwd=folder)
    server.expect("Serving", 20)
    for peers, kernel in ((V4, "192.0.2.100"), (V6, "2001:db8::100")):
        options = ["-q", "4", "-t", "4", "-s", "64,1000,4096"]
        sink = end(spaces, 0, "--mode", "sink", *options, peers=peers, more=more[0])
        sender = end(spaces, 1, "--mode", "send", *options, peers=peers, more=more[1])
        case("%s: messages flow" % peers[1], until(lambda: "Mmsg/s" in sender.text, 30),
             sender.tail() + sink.tail())
        for name, address in (("kernel", kernel), ("port", peers[0])):
            done = process.run(["ip", "netns", "exec", spaces[1]] + ping("-s", "1000", address), 120)
            case("the %s at %s answers pings meanwhile" % (name, address), done.returncode == 0,
                 done.stdout + done.stderr)
        done = process.run(["ip", "netns", "exec", spaces[1], sys.executable, "-c", FETCH])
        case("a TCP connection of the kernels gets its data meanwhile",
             done.stdout.strip() == "1000000", done.stdout + done.stderr)
        codes = [program.wait(60) for program in (sink, sender)]
        got, sent = [program.json() for program in (sink, sender)] if codes == [0, 0] else (None,) * 2
        case("%s: every message arrives verified" % peers[1], codes == [0, 0] and verified(got) and
             got["messages"] == sent["messages"] > 100, "%s\n%s\n%s" % (
                 codes, sink.tail(), sender.tail()))
        ROW.saw(sink.text)
        ROW.saw(sender.text)
    server.kill()


def daemon():
    """Two rocaded, which have given up all rights, and a program at each."""
    spaces = veth("6", "1500")
    sockets_wire(spaces)
    hosts = [Host(spaces, side, "net_af_xdp0,iface=eth0") for side in (0, 1)]
    server, client, said = across(hosts, "ibv_rc_pingpong", "-g", "0", "-n", "200", "-c")
    case("ibv_rc_pingpong over two daemons, data validated", server == 0 and client == 0,
         "%s %s\n%s" % (server, client, said))
    for host in hosts:
        host.process.send_signal(signal.SIGTERM)
    codes = [host.process.wait(20) for host in hosts]
    case("the daemons end with status 0", codes == [0, 0],
         "%s\n%s" % (codes, hosts[0].process.text))


def main():
    if not is_root():
        return run(lambda: skip("net_af_xdp", "needs root"))
    return run(traffic, too_long, kernel_neighbour, shared_interface, daemon, ROW.case)


if __name__ == "__main__":
    sys.exit(main())
