#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One end of the field kit. tools/field.sh starts it; its --help has the options."""

import argparse
import ipaddress
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
import channel  # noqa: E402
import nic  # noqa: E402
import plan  # noqa: E402
import report as reports  # noqa: E402
from channel import Gone, Unexpected, flag, one_of, record, text  # noqa: E402
from end import Local, Remote, serve  # noqa: E402
from program import Failed  # noqa: E402

KIT = "rocade-field"
HELLO = record({"kit": one_of(KIT), "format": one_of(channel.FORMAT), "version": text,
                "side": one_of("left", "right"), "addr": text, "peer": text})
WELCOME = record({"kit": one_of(KIT), "quick": flag})
HELLO_S = 10


class Wrong(Exception):
    """A wrong option."""


def say(line):
    print(line, flush=True)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Wrong(message)


def parse():
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("side", choices=("left", "right"))
    parser.add_argument("--control", required=True, metavar="HOST:PORT")
    port = parser.add_mutually_exclusive_group(required=True)
    port.add_argument("--dev")
    port.add_argument("--vdev")
    parser.add_argument("--addr", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--bind", nargs="?", const="vfio-pci", choices=nic.USER_DRIVERS)
    parser.add_argument("--path-mtu", type=int, choices=(1024, 2048, 4096), default=4096)
    parser.add_argument("--core", type=int)
    parser.add_argument("--rdma")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--wait", type=int, default=600)
    parser.add_argument("--out", default=".")
    parser.add_argument("--build", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--parse-only", action="store_true")
    parser.add_argument("--sys", default="/sys")  # of the tests
    options = parser.parse_args()
    check(options)
    return options


def check(options):
    """Raises Wrong for values that no test can use."""
    try:
        options.control = channel.endpoint(options.control)
    except ValueError as error:
        raise Wrong("invalid --control '%s': %s" % (options.control, error)) from None
    if options.dev and not nic.ADDRESS.match(options.dev):
        raise Wrong("invalid --dev '%s': expected a PCI address such as 0000:3b:00.0" %
                    options.dev)
    if options.bind and not options.dev:
        raise Wrong("--bind needs --dev")
    if options.core is not None and options.core not in os.sched_getaffinity(0):
        raise Wrong("invalid --core %d: this process may use %s" % (
            options.core, sorted(os.sched_getaffinity(0))))
    if not 1 <= options.wait <= 86400:
        raise Wrong("invalid --wait %d: expected 1 to 86400 seconds" % options.wait)
    if not os.path.isdir(options.out) or not os.access(options.out, os.W_OK):
        raise Wrong("invalid --out '%s': expected a directory to write to" % options.out)
    try:
        own, peer = ipaddress.ip_interface(options.addr), ipaddress.ip_address(options.peer)
    except ValueError as error:
        raise Wrong("invalid --addr or --peer: %s" % error) from None
    if "/" not in options.addr or peer not in own.network or peer == own.ip:
        raise Wrong("--addr %s needs a prefix length, and --peer %s must be another address of "
                    "its network" % (options.addr, options.peer))


def own_ip(options):
    return str(ipaddress.ip_interface(options.addr).ip)


def version(options):
    program = os.path.join(options.build, "app", "testpmd", "rocade-testpmd")
    try:
        done = subprocess.run([program, "--", "--version"], capture_output=True, text=True,
                              check=True, timeout=20, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as error:
        raise Failed("cannot run %s: %s" % (program, error)) from None
    return done.stdout.split()[-1]


def refusal(options, own_version, hello):
    """Returns why left does not work with this other end, or None."""
    if hello.get("kit") != KIT:
        return "this is no field kit of Rocade"
    if hello.get("side") != "right":
        return "both ends are left: start one of them as right"
    if hello.get("format") != channel.FORMAT or hello.get("version") != own_version:
        return "the versions differ: left is %s (format %d), right is %s (format %s)" % (
            own_version, channel.FORMAT, text(str(hello.get("version"))[:40]),
            text(str(hello.get("format"))[:10]))
    hello = HELLO(hello)
    if (hello["addr"], hello["peer"]) != (str(ipaddress.ip_address(options.peer)),
                                          own_ip(options)):
        return "the addresses do not match: --addr of one end must be --peer of the other"
    return None


def greeted(options, own_version, listener):
    """Waits for the other end. Refuses what is none. Returns its channel."""
    end = time.monotonic() + options.wait
    while time.monotonic() < end:
        candidate = channel.accept(listener, min(end - time.monotonic(), 1))
        if candidate is None:
            continue
        try:
            why = refusal(options, own_version, candidate.receive(HELLO_S))
            if why is None:
                candidate.send({"kit": KIT, "quick": options.quick})
                return candidate
            candidate.send({"refused": why})
        except Gone as error:
            why = str(error)
        except Unexpected as error:
            why = "unexpected: %s" % error
        say("refused a connection: %s" % why)
        candidate.close()
    raise Failed("right has not connected within %d s" % options.wait)


def addresses(connection):
    """Returns the addresses of both ends of the control connection, the other end's first."""
    return [name()[0].split("%")[0] for name in (connection.socket.getpeername,
                                                 connection.socket.getsockname)]


def left(options, local):
    own_version = version(options)
    listener = channel.listen(*options.control)
    say("waiting at most %d s for right" % options.wait)
    try:
        local.channel = greeted(options, own_version, listener)
    finally:
        listener.close()
    local.control = addresses(local.channel)
    remote = Remote(local.channel)
    ends = {"left": local, "right": remote}
    report = reports.new(own_version, options.quick)
    first = "left" if ipaddress.ip_interface(options.addr).ip < \
        ipaddress.ip_address(options.peer) else "right"
    status = None
    try:
        plan.check(ends, report, say)
        plan.bind(ends, say)
        plan.path(ends, report, options.path_mtu, say)
        plan.measure(ends, report, first, options.quick, say)
        plan.interop(ends, report, say)
    except Failed as error:
        report["reason"] = plan.traffic.hidden(str(error))
        say("FAIL: %s" % error)
        status = 1 if report["path"] or isinstance(error, Gone) else 3
    report["result"] = plan.verdict(report)
    try:
        remote.end(report["result"])
    except Gone:
        pass
    for path in reports.write(report, options.out):
        say("wrote %s" % path)
    say(report["result"].upper())
    return status or (0 if report["result"] == "pass" else 1)


def right(options, local):
    own_version = version(options)
    host, port = options.control
    connection = local.channel = channel.connect(host, port, options.wait)
    local.control = addresses(connection)
    connection.send({"kit": KIT, "format": channel.FORMAT, "version": own_version,
                     "side": "right", "addr": own_ip(options),
                     "peer": str(ipaddress.ip_address(options.peer))})
    message = connection.receive(HELLO_S + 5)
    if set(message) == {"refused"}:
        raise Failed("left refuses: %s" % text(message["refused"]))
    options.quick = WELCOME(message)["quick"]
    say("connected; left orders the steps and writes the report")
    verdict = serve(local, connection)
    say(verdict.upper())
    return 0 if verdict == "pass" else 1


def on_signals(action):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, action)


def main():
    try:
        options = parse()
    except Wrong as error:
        print("field.sh: %s (see --help)" % error, file=sys.stderr)
        return 2

    if options.parse_only:
        return 0

    def interrupted(_number, _frame):
        on_signals(signal.SIG_IGN)
        raise KeyboardInterrupt

    on_signals(interrupted)
    local = None
    try:
        local = Local(options)
        local.may_bind([])  # now, and not only when the other end is there
        return (left if options.side == "left" else right)(options, local)
    except KeyboardInterrupt:
        return 130
    except (Gone, Unexpected) as error:
        print("field.sh: %s" % error, file=sys.stderr)
        return 1
    except Failed as error:
        print("field.sh: %s" % error, file=sys.stderr)
        return 3
    finally:
        on_signals(signal.SIG_IGN)  # until the NIC is where it was
        if local:
            local.close()


if __name__ == "__main__":
    sys.exit(main())
