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
import hosts  # noqa: E402
import hosts_report  # noqa: E402
import nic  # noqa: E402
import patterns  # noqa: E402
import plan  # noqa: E402
import predict  # noqa: E402
import report as reports  # noqa: E402
from channel import Gone, Unexpected, flag, one_of, record, text  # noqa: E402
from end import HOST_IDLE_S, IDLE_S, Local, Remote, serve  # noqa: E402
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
    others = parser.add_mutually_exclusive_group(required=True)
    others.add_argument("--peer")
    others.add_argument("--hosts")
    parser.add_argument("--patterns")
    parser.add_argument("--link-rate")
    parser.add_argument("--switch-buffer", type=int)
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
    if options.hosts is not None:
        check_hosts(options)
        return
    for name in ("patterns", "link_rate", "switch_buffer"):
        if getattr(options, name) is not None:
            raise Wrong("--%s needs --hosts" % name.replace("_", "-"))
    try:
        own, peer = ipaddress.ip_interface(options.addr), ipaddress.ip_address(options.peer)
    except ValueError as error:
        raise Wrong("invalid --addr or --peer: %s" % error) from None
    if "/" not in options.addr or peer not in own.network or peer == own.ip:
        raise Wrong("--addr %s needs a prefix length, and --peer %s must be another address of "
                    "its network" % (options.addr, options.peer))


def hosts_read(value):
    """Returns the addresses of --hosts."""
    found = []
    for number, word in enumerate(value.split(","), 1):
        try:
            found.append(str(ipaddress.ip_address(word.strip())))
        except ValueError:
            raise Wrong("invalid --hosts: entry %d, '%s': expected IPv4 or IPv6 addresses, separated by commas" % (
                number, word)) from None
        if found.index(found[-1]) != number - 1:
            raise Wrong("invalid --hosts: entry %d, '%s', comes twice: expected each host once" % (number, word))
    if not patterns.HOSTS_MIN <= len(found) <= patterns.HOSTS_MAX:
        raise Wrong("invalid --hosts '%s': %d host%s: expected %d to %d addresses, or for two hosts --peer" % (
            value[:200], len(found), "" if len(found) == 1 else "s", patterns.HOSTS_MIN, patterns.HOSTS_MAX))
    return found


def check_hosts(options):
    """Raises Wrong for values of a run of several hosts."""
    options.hosts = hosts_read(options.hosts)
    try:
        own = ipaddress.ip_interface(options.addr)
    except ValueError as error:
        raise Wrong("invalid --addr: %s" % error) from None
    outside = [one for one in options.hosts if ipaddress.ip_address(one) not in own.network]
    if "/" not in options.addr or outside:
        raise Wrong("--addr %s needs a prefix length, and all addresses of --hosts must be of its network%s" % (
            options.addr, ": %s is not" % outside[0] if outside else ""))
    if str(own.ip) not in options.hosts:
        raise Wrong("--addr %s is not in --hosts %s: expected the addresses of all hosts, this one too" % (
            own.ip, ",".join(options.hosts)))
    options.number = options.hosts.index(str(own.ip))
    if (options.side == "left") != (options.number == 0):
        raise Wrong("this host is entry %d of --hosts: the first one, %s, is left, and all others are right" % (
            options.number + 1, options.hosts[0]))
    if options.rdma:
        raise Wrong("--rdma needs --peer")
    check_model(options)


def check_model(options):
    options.patterns = options.patterns.split(",") if options.patterns else list(patterns.PATTERNS)
    for one in options.patterns:
        if one not in patterns.PATTERNS or options.patterns.count(one) > 1:
            raise Wrong("invalid --patterns entry '%s': expected each of %s once at most" % (
                one, ", ".join(patterns.PATTERNS)))
    try:
        options.link_rate = predict.rate(options.link_rate) if options.link_rate else None
    except ValueError as error:
        raise Wrong("invalid --link-rate '%s': %s" % (options.link_rate, error)) from None
    low, high = predict.BUFFER_KB
    if options.switch_buffer is not None and not low <= options.switch_buffer <= high:
        raise Wrong("invalid --switch-buffer %d: expected %d to %d kB" % (options.switch_buffer, low, high))


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


def left_of_hosts(options, local):
    own_version = version(options)
    report = hosts_report.new(own_version, options)
    group = hosts.Group(options.hosts, local, report, say)
    listener = channel.listen(*options.control)
    say("waiting at most %d s for %d hosts" % (options.wait, len(options.hosts) - 1))
    try:
        hosts.gather(group, options, own_version, listener)
    finally:
        listener.close()
    local.control = [address for place, end in group.ends.items() if place for address in addresses(end.channel)]
    status = None
    try:
        hosts.lead(group, report, options)
    except Failed as error:
        report["reason"] = plan.traffic.hidden(str(error))
        say("FAIL: %s" % error)
        status = 1 if report["path"] else 3
    report["result"] = hosts_report.verdict(report)
    group.close(report["result"])
    for path in hosts_report.write(report, options.out):
        say("wrote %s" % path)
    say(report["result"].upper())
    return status or (0 if report["result"] == "pass" else 1)


def right(options, local):
    own_version = version(options)
    host, port = options.control
    say("connecting to left, for at most %d s" % options.wait)
    connection = local.channel = channel.connect(host, port, options.wait)
    local.control = addresses(connection)
    others = {"hosts": options.hosts} if options.hosts else {
        "peer": str(ipaddress.ip_address(options.peer))}
    connection.send({"kit": KIT, "format": channel.FORMAT, "version": own_version,
                     "side": "right", "addr": own_ip(options), **others})
    message = connection.receive(HELLO_S + 5)
    if set(message) == {"refused"}:
        raise Failed("left refuses: %s" % text(message["refused"]))
    options.quick = WELCOME(message)["quick"]
    say("connected; left orders the steps and writes the report")
    verdict = serve(local, connection, options.wait + HOST_IDLE_S if options.hosts else IDLE_S)
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
        if options.side == "right":
            return right(options, local)
        return (left_of_hosts if options.hosts else left)(options, local)
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
