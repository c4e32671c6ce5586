# SPDX-License-Identifier: BSD-3-Clause
"""RDMA-CM between the Linux kernel and Rocade: ucmatose in a virtual machine, and `listen` and
`connect` of rocade-testpmd. Each connects to the other over IPv4 and IPv6 and sends messages. A
port without a listener rejects. Either end disconnects, also when its program is killed."""

import re

import bench
from guest import LISTENS
from tap import case
from testpmd import Testpmd

QPS = 2


def testpmd(the_bench, *options):
    """Starts rocade-testpmd. Each has other QPNs: the kernel takes used ones for a connection that
    it knows."""
    program = Testpmd(["--addr", "%s/24,%s/64" % (bench.ROCADE, bench.ROCADE6), "--if-mtu", "1500",
                       "-q", str(QPS), "-i", "--no-verify", "-s", "64", "--timeout", "19", "--qpn-base",
                       hex(0x1000 + 0x100 * Testpmd.count)] + list(options),
                      the_bench.eal())
    program.say("show port")
    program.expect("^port 0", 60)
    return program


def ended(program):
    """Sends `quit`. Returns the exit status."""
    program.say("quit")
    code = program.wait(30)
    program.kill()
    return code


def kernel_connects(the_bench, version):
    """The kernel connects. Rocade sends a message on each connection and gets one back."""
    program = testpmd(the_bench, "--mode", "pingpong", "-c", str(QPS))
    program.say("listen 7471")
    program.say("start")
    program.expect("listening on port", 30)
    talk = the_bench.guest.start("timeout 100 ucmatose -s %s -C 1 -S 64 -c %d" % (
        bench.ADDRESSES[version][0], QPS))
    name = "IPv%d: " % version
    case(name + "the kernel connects to Rocade", program.expect(
        "QPs connected with " + bench.ADDRESSES[version][1], 100), program.tail())
    case(name + "the kernel returns a message on each connection",
         program.expect("^(PASS|FAIL)", 60) and "\nPASS" in program.text, program.tail())
    code = ended(program)
    status, text = the_bench.guest.finish(talk, 60)
    case(name + "Rocade disconnects", code == 0 and status == 0 and
         "return status 0" in text, (code, status, text))


def listening(the_bench, options):
    """Starts ucmatose in the guest and waits until it listens."""
    talk = the_bench.guest.start("timeout -s KILL 60 ucmatose " + options)
    the_bench.guest.until(LISTENS)
    return talk


def rocade_connects(the_bench, version):
    """Rocade connects to ucmatose, which disconnects."""
    name = "IPv%d: " % version
    talk = listening(the_bench, "-C 0 -c %d %s" % (
        QPS, "-b %s" % bench.ADDRESSES[6][1] if version == 6 else ""))
    program = testpmd(the_bench, "--mode", "sink", "-c", str(QPS))
    program.say("connect %s 7471" % bench.ADDRESSES[version][1])
    case(name + "Rocade connects to the kernel", program.expect(
        "QPs connected with " + bench.ADDRESSES[version][1], 60), program.tail())
    # ucmatose has no messages to send and disconnects at once.
    status, text = the_bench.guest.finish(talk, 60)
    case(name + "the kernel disconnects", status == 0 and "return status 0" in text and
         program.expect("has disconnected", 30), (status, text, program.tail()))
    ended(program)


def kernel_sends(the_bench):
    """ucmatose sends first and waits for an answer, which Rocade does not send. It is killed."""
    talk = listening(the_bench, "-C 1 -S 64 -c %d" % QPS)
    program = testpmd(the_bench, "--mode", "sink")
    program.say("connect %s 7471" % bench.GUEST)
    program.expect("QPs connected with " + bench.GUEST, 60)
    program.say("wait 3")
    program.say("show qp all")
    case("the kernel's messages arrive on connections that Rocade requested", program.expect(
        r"rx_msgs +1 .*(.*\n)*.*rx_msgs +1 ", 40), program.tail())
    the_bench.guest.run("killall -9 ucmatose")
    the_bench.guest.finish(talk, 60)
    case("the kernel disconnects the connections of a killed program",
         program.expect("has disconnected", 60), program.tail())
    program.say("stop")
    ended(program)


def no_listener(the_bench):
    program = testpmd(the_bench, "--mode", "sink")
    program.say("connect %s 7999" % bench.GUEST)
    case("the kernel rejects a connect to a port without a listener", program.expect(
        "connect: no listener on this port of " + bench.GUEST, 60), program.tail())
    status, text = the_bench.guest.run("timeout 60 ucmatose -s %s -p 7998 -C 0" % bench.ROCADE, 70)
    # The `connect` above has created Rocade's connection manager.
    case("Rocade rejects a connect to a port without a listener", status not in (0, None) and
         re.search("RDMA_CM_EVENT_REJECTED, error: 8", text), (status, text))
    ended(program)


def walk(the_bench):
    the_bench.set_mtu(1500)
    for version in (4, 6):
        kernel_connects(the_bench, version)
        rocade_connects(the_bench, version)
    kernel_sends(the_bench)
    no_listener(the_bench)
