#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocaded with two queues and threads, over net_af_packet, net_memif and net_tap. Clients of both
threads exchange verified messages with each other and with another host, a thread that sleeps is
woken, a client is killed, and everything is freed."""

# test.sh: alone several ends poll on one core, and give up after half a second

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import CLIENTS, ROCADED, Daemon, both, wait_for_port  # noqa: E402
from hosts import AF_PACKET, SOCKETS, TAP, V4, V6, sockets_wire, veth  # noqa: E402
from process import run as run_program, until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import SCRATCH, eal, is_root, plug, tap_wire  # noqa: E402

FLOW = os.path.join(CLIENTS, "test/e2e/flow")
QUEUES = 2
MESSAGES = 200


class Host(Daemon):
    """A network namespace with a daemon of two queues."""

    def __init__(self, spaces, side, sleep_us, *more_options, mtu="4184",
                 device=AF_PACKET.replace("qpairs=1", "qpairs=%d" % QUEUES)):
        options = eal(side, device, memory_mb=256)
        cpu = options[options.index("--lcores") + 1].split("@")[1]
        options[options.index("--lcores") + 1] = "(0-%d)@%s" % (QUEUES - 1, cpu)
        super().__init__("--address", "%s/24,%s/64" % (V4[side], V6[side]), "--queues", str(QUEUES),
                         "--mtu", mtu, "--sleep-us", str(sleep_us), *more_options,
                         space=spaces[side], eal=options)
        # The test is about packets that cross the threads of the daemon.
        self.env["ROCADE_OFF"] = "pairs"

    def queues(self):
        return self.status()["queues"]

    def clients_of(self):
        """Returns how many clients each queue has."""
        return [queue["clients"] for queue in self.queues()]

    def freed(self):
        state = self.status()
        return (not state["clients"] and state["device"]["qpns_free"] == state["device"]["qpn_count"]
                and self.clients_of() == [0] * QUEUES)


def more(before, after, name):
    return [b[name] - a[name] for a, b in zip(before, after)]


def here(host):
    """Two processes on one host, which belong to different threads."""
    before = host.queues()
    pair = host.start(FLOW, "pair", feed=True)
    pair.wait_line()
    spread = host.clients_of()
    case("two clients belong to different queues", spread == [1, 1], spread)
    case("packets move between the clients", until(
        lambda: min(more(before, host.queues(), "tx_packets")) > 1000), host.queues())
    status, text = pair.finish()
    after = host.queues()
    case("clients of two threads exchange correct data", status == 0 and "messages" in text, text)
    case("each thread has handed packets over", min(more(before, after, "handed_over")) > 1000 and
         min(more(before, after, "taken_over")) > 1000, (before, after))
    case("everything is freed", until(host.freed), host.status())


def woken(host):
    """A message to a client of a thread that sleeps."""
    before = host.queues()
    server = host.start("stdbuf", "-oL", "ibv_rc_pingpong", "-g", "0", "-n", "20", "-c", "-p", "18700")
    wait_for_port(18700, server, 30, host.space)
    client = host.start("stdbuf", "-oL", "ibv_rc_pingpong", "-g", "0", "-n", "20", "-c", "-p", "18700",
                        SOCKETS[0])
    served, sent, text = both(server, client, 60)
    case("two clients play ping-pong over sleeping threads", served == 0 and sent == 0, text)
    wakeups = more(before, host.queues(), "thread_wakeups")
    case("each thread has woken the other", min(wakeups) > 0, wakeups)
    case("everything is freed", until(host.freed), host.status())


def together(hosts, programs):
    """Runs a server on one host and a client on the other for each program, all at a time. Returns
    whether all succeed, and their output."""
    servers = []
    for number, program in enumerate(programs):
        port = 18600 + number
        servers.append(hosts[1].start("stdbuf", "-oL", *program, "-p", str(port)))
        wait_for_port(port, servers[-1], 30, hosts[1].space)
    clients = [hosts[0].start("stdbuf", "-oL", *program, "-p", str(18600 + number), SOCKETS[1])
               for number, program in enumerate(programs)]
    spread = until(lambda: max(hosts[0].clients_of()) > 0 and hosts[0].clients_of())
    ends = [both(server, client, 60) for server, client in zip(servers, clients)]
    return (all(served == 0 and sent == 0 for served, sent, _ in ends), spread,
            "\n".join(text for _, _, text in ends))


def between(hosts):
    """Four programs at a time on each of two hosts, over both queues of both ports."""
    pingpong = [("ibv_rc_pingpong", "-g", gid, "-n", str(MESSAGES), "-c") for gid in ("0", "1")]
    datagrams = [("ibv_ud_pingpong", "-g", "0", "-n", str(MESSAGES), "-c", "-s", "1024"),
                 ("ib_write_bw", "-x", "0", "-F", "-s", "65536", "-n", str(MESSAGES))]
    before = [host.queues() for host in hosts]
    good, _, text = together(hosts, pingpong + datagrams)
    after = [host.queues() for host in hosts]
    case("four programs exchange correct data with another host", good, text)
    for side, host in enumerate(hosts):
        sent = more(before[side], after[side], "tx_packets")
        case("host %d: clients of both queues have sent" % side, min(sent) > MESSAGES, sent)
        lost = [queue["drop_handover_full"] for queue in after[side]]
        case("host %d: no packet was lost between threads" % side, lost == [0] * QUEUES, after[side])
    for host in hosts:
        case("everything is freed", until(host.freed), host.status())


def killed(hosts):
    """A client of one thread is stopped and killed. Those of the other thread go on."""
    pair = hosts[0].start(FLOW, "pair", feed=True)
    pair.wait_line()
    deaf = hosts[0].start(FLOW, "deaf", feed=True)
    deaf.wait_line()
    before = hosts[0].queues()
    case("a receiver that is stopped does not stop the others", until(
        lambda: min(more(before, hosts[0].queues(), "tx_packets")) > 2000), hosts[0].queues())
    deaf.send_signal(signal.SIGKILL)
    deaf.kill()
    before = hosts[0].queues()
    case("the others go on after it was killed", until(
        lambda: min(more(before, hosts[0].queues(), "tx_packets")) > 2000), hosts[0].queues())
    good, _, text = together(hosts, [("ibv_rc_pingpong", "-g", "0", "-n", str(MESSAGES), "-c")])
    case("the other host is still reached", good, text)
    status, text = pair.finish()
    case("the data of the others is correct", status == 0 and "messages" in text, text)
    case("everything is freed", until(hosts[0].freed), hosts[0].status())


def two_queues():
    spaces = veth()
    with Host(spaces, 0, 200, "--user", "65534:65534") as left, Host(spaces, 1, 0) as right:
        here(left)
        woken(left)
        between([left, right])
        killed([left, right])
    for host in (left, right):
        case("the daemon ends with status 0", host.process.returncode == 0,
             host.process.returncode)
    memif(spaces)


def two_programs(name, hosts):
    """Two programs at a time between two hosts: a client for each queue."""
    before = [host.queues() for host in hosts]
    good, _, text = together(hosts, [
        ("ibv_rc_pingpong", "-g", gid, "-n", str(MESSAGES), "-c") for gid in ("0", "1")])
    case("%s: two programs exchange correct data" % name, good, text)
    for side, host in enumerate(hosts):
        sent = more(before[side], host.queues(), "tx_packets")
        case("%s: clients of both queues of host %d have sent" % (name, side), min(sent) > MESSAGES,
             sent)
        lost = [queue["drop_handover_full"] for queue in host.queues()]
        case("%s: no packet was lost between threads" % name, lost == [0] * QUEUES, lost)
        case("%s: everything is freed" % name, until(host.freed), host.status())


def memif(spaces):
    device = "net_memif0,socket=%s,socket-abstract=no,bsize=8192,rsize=10,role=" % os.path.join(
        SCRATCH, "queues.sock")
    with Host(spaces, 0, 200, device=device + "server") as left:
        with Host(spaces, 1, 200, device=device + "client") as right:
            until(lambda: left.status()["port"]["link_up"] and right.status()["port"]["link_up"])
            two_programs("net_memif", [left, right])


def tap():
    if not os.path.exists("/dev/net/tun"):
        skip("net_tap", "no /dev/net/tun")
        return
    spaces = tap_wire()
    sockets_wire(spaces)
    with Host(spaces, 0, 200, device=TAP, mtu="1500") as left:
        with Host(spaces, 1, 200, device=TAP, mtu="1500") as right:
            for space in spaces:
                plug(space, "port", "br0")
            two_programs("net_tap", [left, right])


def refused():
    """Errors of --queues."""
    for arguments, why in [
            (["--local", "--queues", "2"], "2 queues need a DPDK port"),
            (["--local", "--queues", "17"], "1 to 16"),
            (eal(0, "net_null0") + ["--", "--address", "192.0.2.1/24", "--queues", "2"],
             "2 queues need as many lcores, EAL has 1")]:
        done = run_program([ROCADED] + arguments, 30)
        case("refused: %s" % why, done.returncode != 0 and why in done.stderr,
             (done.returncode, done.stderr))


def main():
    if not is_root():
        return run(lambda: skip("rocaded over a port", "needs root"))
    return run(refused, two_queues, tap)


if __name__ == "__main__":
    sys.exit(main())
