# SPDX-License-Identifier: BSD-3-Clause
"""RDMA-CM with the Linux kernel's at the other end: ucmatose in a virtual machine and `listen` and
`connect` of rocade-testpmd, each asking the other, over IPv4 and IPv6, with messages over the
connections; rejected where nobody listens; ended by either end, also by one that is killed."""

import re

import bench
from tap import case
from testpmd import Testpmd

QPS = 2


def ours(the_bench, *options):
    """Each with QPNs of its own: of ones used before the kernel would think that it knows them."""
    program = Testpmd(["--addr", "%s/24,%s/64" % (bench.OURS, bench.OURS6), "--if-mtu", "1500",
                       "-q", str(QPS), "-i", "--no-verify", "-s", "64", "--timeout", "19", "--qpn-base",
                       hex(0x1000 + 0x100 * Testpmd.count)] + list(options),
                      the_bench.eal())
    program.say("show port")
    program.expect("^port 0", 60)
    return program


def ended(program):
    """quit, and its exit status."""
    program.say("quit")
    code = program.wait(30)
    program.kill()
    return code


def kernel_asks(the_bench, version):
    """A message from us on each connection, and one back."""
    program = ours(the_bench, "--mode", "pingpong", "-c", str(QPS))
    program.say("listen 7471")
    program.say("start")
    program.expect("listens at port", 30)
    talk = the_bench.guest.start("timeout 100 ucmatose -s %s -C 1 -S 64 -c %d" % (
        bench.PEER[version][0], QPS))
    name = "IPv%d: the kernel asks" % version
    case(name + ": connected", program.expect("QPs connected with " + bench.PEER[version][1], 100),
         program.tail())
    case(name + ": a message on each connection and one back",
         program.expect("^(PASS|FAIL)", 60) and "\nPASS" in program.text, program.tail())
    code = ended(program)
    status, text = the_bench.guest.finish(talk, 60)
    case(name + ": disconnected by us", code == 0 and status == 0 and
         "return status 0" in text, (code, status, text))


def listening(the_bench, options):
    """ucmatose in the guest, once it listens."""
    talk = the_bench.guest.start("timeout -s KILL 60 ucmatose " + options)
    the_bench.guest.run("until rdma resource show cm_id | grep -q LISTEN; do sleep 0.2; done", 30)
    return talk


def we_ask(the_bench, version):
    """What ucmatose sends arrives; then the connections end, by either end."""
    name = "IPv%d: we ask" % version
    talk = listening(the_bench, "-C 0 -c %d %s" % (
        QPS, "-b %s" % bench.PEER[6][1] if version == 6 else ""))
    program = ours(the_bench, "--mode", "sink", "-c", str(QPS))
    program.say("connect %s 7471" % bench.PEER[version][1])
    case(name + ": connected", program.expect("QPs connected with " + bench.PEER[version][1], 60),
         program.tail())
    # Without messages to send, it disconnects at once.
    status, text = the_bench.guest.finish(talk, 60)
    case(name + ": disconnected by the kernel", status == 0 and "return status 0" in text and
         program.expect("has disconnected", 30), (status, text, program.tail()))
    ended(program)


def kernel_sends(the_bench):
    """It sends first, and waits for an answer that does not come: it is killed."""
    talk = listening(the_bench, "-C 1 -S 64 -c %d" % QPS)
    program = ours(the_bench, "--mode", "sink")
    program.say("connect %s 7471" % bench.THEIRS)
    program.expect("QPs connected with " + bench.THEIRS, 60)
    program.say("wait 3")
    program.say("show qp all")
    case("messages over connections that we asked for", program.expect(
        r"rx_msgs +1 .*(.*\n)*.*rx_msgs +1 ", 40), program.tail())
    the_bench.guest.run("killall -9 ucmatose")
    the_bench.guest.finish(talk, 60)
    case("... a killed peer's kernel disconnects them", program.expect("has disconnected", 60),
         program.tail())
    program.say("stop")
    ended(program)


def nobody_listens(the_bench):
    program = ours(the_bench, "--mode", "sink")
    program.say("connect %s 7999" % bench.THEIRS)
    case("nobody listens at the kernel", program.expect(
        "connect: nobody listens at this port of " + bench.THEIRS, 60), program.tail())
    status, text = the_bench.guest.run("timeout 60 ucmatose -s %s -p 7998 -C 0" % bench.OURS, 70)
    # There is no manager before the first `listen` or `connect`; now there is.
    case("nobody listens with us", status not in (0, None) and
         re.search("RDMA_CM_EVENT_REJECTED, error: 8", text), (status, text))
    ended(program)


def walk(the_bench):
    the_bench.set_mtu(1500)
    for version in (4, 6):
        kernel_asks(the_bench, version)
        we_ask(the_bench, version)
    kernel_sends(the_bench)
    nobody_listens(the_bench)
