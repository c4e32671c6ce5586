#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Commands of rocade-testpmd in orders and at times that need care: options that change between two
runs or during one, a signal during a wait, input that ends in the middle of a line. Both ends are
in one process."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import limit  # noqa: E402
from process import until  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import SCRATCH, Terminal, Testpmd, loop  # noqa: E402

CONNECT = ["listen 7471", "connect 192.0.2.2 7471"]


def commands(*lines, options=()):
    """Runs a file of commands. Returns the finished process, and its report or None."""
    path = os.path.join(SCRATCH, "commands")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return loop(*options, "--cmdline-file", path)


def outdated_connections():
    first = CONNECT + ["start", "wait 1", "stop", "set size 64"]
    options = ["-q", "8", "-s", "64,1024,4k"]
    done, _ = commands(*first, "start", options=options)
    case("after `set size` RDMA-CM connections must be made again", done.returncode == 1 and
         "options of the connections have changed: enter `connect` again" in done.stderr,
         (done.returncode, done.stdout[-500:], done.stderr))
    done, report = commands(*first, CONNECT[1], "start", "wait 1", "stop", options=options)
    case("new RDMA-CM connections use the new size", done.returncode == 0 and
         report["messages"] > 0 and report["bytes"] == 64 * report["messages"],
         (done.returncode, done.stdout[-500:], done.stderr))
    done, _ = commands(*CONNECT, "set port 1 peer 192.0.2.1", "start",
                       options=["--wait", "1"])
    case("a listener closes connections whose options have changed", done.returncode == 1 and
         "waiting for new connections" in done.stdout and
         "192.0.2.2 has disconnected" in done.stderr, (done.returncode, done.stdout, done.stderr))


def limit_off():
    done, report = loop("-i", "--srq-limit", "512", "--depth", "2048", text="start\nwait 1\n"
                        "set srq-limit 0\nwait 1\nstop\nquit\n")
    case("`set srq-limit 0` during a run: receives are posted as messages arrive",
         done.returncode == 0 and report["limit_events"] > 0, (done.stdout, done.stderr))


def last_line():
    done, report = loop("-i", "-c", "1000", text="start")
    case("the last command of a pipe needs no newline", done.returncode == 0 and report and
         report["messages"] == 1000, (done.stdout, done.stderr))


def refused_peers():
    for options, peer, words in (
            ([], "nonsense", "invalid value 'nonsense': expected an IPv4 or IPv6 address"),
            (["--port", "0", "--addr", "192.0.2.1/24"], "2001:db8::2",
             "invalid value '2001:db8::2' for --peer: the port has no address of its family")):
        done, _ = loop("-i", *options, text="connect %s 7471\nshow port\nquit\n" % peer)
        case("a refused `connect %s` keeps the peer" % peer, "connect: " + words in done.stderr and
             "peer 192.0.2.2, gateways" in done.stdout, (done.stdout, done.stderr))


MOST = 1200  # looks in a second: the port does not announce packets


def wait_for_connections():
    program = Testpmd(["--loop", "-i", "-T", "0", "--sleep"])
    program.say("listen 7471")
    program.say("start")
    program.expect("^port 0: send, 1 QPs")  # port 1 is next, and waits
    case("with --sleep a wait for RDMA-CM connections sleeps between two looks",
         limit.sleeps_between(program.pid, MOST), limit.look(program.pid))
    program.send_signal(signal.SIGINT)
    case("a signal ends a wait for RDMA-CM connections with status 1", program.wait(10) == 1 and
         "port 1: stopped before all QPs were connected (0 of 1)" in program.text, program.tail())


def interrupts():
    """^C while a command waits."""
    for name, lines, said in (
            ("`wait`", "start\nwait\n", "Mmsg/s"), ("`wait 60`", "wait 60\n", ""),
            ("`start` waits for RDMA-CM connections", "listen 7471\nstart\n",
             "stopped before all QPs were connected (0 of 1)"),
            ("`connect`", "connect 192.0.2.77 7471\n",
             "stopped before all QPs were connected (0 of 1)")):
        end = Terminal()
        end.expect("rocade-testpmd> ")
        until(lambda: not end.makes_signals(), 10)
        case("^C at the prompt is no signal", not end.makes_signals())
        end.expect(lines.split()[-1] + "\r", lines.encode())  # the last command begins
        until(end.makes_signals, 10)
        end.type(b"\x03")
        code = end.end()
        case("^C ends the program while %s" % name, code is not None and said in end.text,
             (code, end.text))


def clear():
    options = ["--srq-limit", "512", "--depth", "2048"]
    done, _ = commands("set impair rx loss 1%", "start", "wait 1", "stop", "set impair rx off",
                       "show qp", "show srq", "show port", "# cleared", "clear", "show qp",
                       "show srq", "show port", options=options)
    before, after = done.stdout.split("# cleared")
    for what in (r"^    tx_packets ", "[1-9][0-9]* limit events", "[1-9][0-9]* refills",
                 "impaired on purpose: [1-9]"):
        case("`clear` resets '%s'" % what, re.search(what, before, re.M) and
             not re.search(what, after[after.index("> show qp"):], re.M), done.stdout)


def long_lines():
    too_long = "# " + "x" * 5000 + " start"
    path = os.path.join(SCRATCH, "long")
    with open(path, "w", encoding="utf-8") as file:
        file.write(too_long + "\nstart\n")
    for name, done in (
            ("pipe", loop("-i", text=too_long + "\nshow srq\n")[0]),
            ("pipe, without a newline", loop("-i", text="show srq\n" + too_long)[0]),
            ("file", loop("--cmdline-file", path)[0])):
        case("a line that is too long is an error and not run: " + name,
             done.stderr == "input line too long: expected at most 4095 characters\n" and
             "send, 1 QPs" not in done.stdout and done.returncode == (name == "file"),
             (done.returncode, done.stdout[-300:], done.stderr))
        if name != "file":
            case("the next line is run: " + name, "receives posted" in done.stdout,
                 done.stdout[-300:])
    done, _ = loop("-i", text="#" + "x" * 4094 + "\nshow srq\n")
    case("a line of 4095 characters is run", not done.stderr and "receives posted" in done.stdout,
         (done.stdout, done.stderr))


def long_values():
    sizes = ["%d" % (1000 + i) for i in range(64)]
    done, report = loop("-i", "-s", "64,2000", "-c", "640", text="set size %s   # all\nstart\n" %
                        ",".join(sizes))
    case("`set size` takes 64 sizes", done.returncode == 0 and report and
         report["bytes"] == 10 * sum(int(size) for size in sizes), (done.stdout, done.stderr))
    done, _ = loop("-i", text="set size %s,1\n" % ",".join(sizes))
    case("`set size` names its limit", "for --size: entry 65, '1', is one too many; expected bytes, 0 to 2g, suffix k, m or g "
         "allowed, up to 64 sizes" in done.stderr, done.stderr)


def paste():
    end = Terminal()
    end.expect("rocade-testpmd> ")
    text = ("# " + "x" * 97 + "\n") * 20
    case("2000 pasted characters take less than 10 s",
         end.expect("receives posted", text.encode() + b"show srq\n", 10), end.text)
    end.type(b"\x04")
    end.end()


def dump_of_port():
    program = Testpmd(["--port", "1", "--addr", "192.0.2.1/24", "-i", "--dump",
                       os.path.join(SCRATCH, "port.pcap")],
                      ["--no-pci", "--no-huge", "--no-shconf", "--no-telemetry", "-m", "256",
                       "--vdev", "net_null0", "--vdev", "net_null1"])
    program.say("quit")
    case("the end of a dump names the port by its id", program.wait(60) == 0 and
         re.search(r"^port 1: \d+ frames written", program.text, re.M), program.tail())


def stats_period():
    program = Testpmd(["--loop", "-i", "-T", "3600"])
    program.say("start")
    program.say("set stats-period 1")
    case("`set stats-period` takes effect at once", program.expect(r"^ +\d+ s \| port 0 send"),
         program.tail())
    program.say("quit")
    program.wait(30)


if __name__ == "__main__":
    sys.exit(run(outdated_connections, limit_off, last_line, refused_peers, wait_for_connections,
                 interrupts, clear, long_lines, long_values, paste, dump_of_port, stats_period))
