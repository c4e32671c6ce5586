#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-doctor finds faults that this test makes, and its commands mend them: no daemon, a second
one, a socket of another user, and between two hosts an MTU, a neighbour, a firewall."""

import json
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import BUILD, Daemon, as_user  # noqa: E402
from hosts import AF_PACKET, Host, bridged  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import ip, is_root  # noqa: E402

DOCTOR = os.path.join(os.path.abspath(BUILD), "app/doctor/rocade-doctor")
NOBODY, OTHER = 65534, 65533
LARGE = ("--mtu", "4184")


class Seen:
    """What the doctor says."""

    def __init__(self, daemon, *options, before=()):
        inside = daemon.inside if daemon else []
        env = daemon.env if daemon else None
        done = process.run([*inside, *before, DOCTOR, "--json", *options], env=env)
        self.status, self.text = done.returncode, done.stdout + done.stderr
        self.findings = json.loads(done.stdout)["findings"] if done.stdout else []

    def of(self, check, verdict):
        return [one for one in self.findings if (one["check"], one["verdict"]) == (check, verdict)]

    def is_wrong(self, check, pattern):
        """Whether this check alone says that something is wrong, in these words."""
        bad = [one for one in self.findings if one["verdict"] == "wrong"]
        return self.status == 1 and bad and all(one["check"] == check for one in bad) and \
            any(re.search(pattern, one["sentence"]) for one in bad)

    def commands(self):
        return [word for one in self.findings if one["verdict"] == "wrong" for word in one["type"]]


def is_good(seen):
    return seen.status == 0 and not any(one["verdict"] == "wrong" for one in seen.findings)


def local():
    with Daemon() as daemon:
        seen = Seen(daemon)
        case("with a daemon nothing is wrong", is_good(seen) and seen.of("daemon", "ok"), seen.text)
        done = process.run([DOCTOR], env=daemon.env)
        case("and the text says so", done.returncode == 0 and
             re.search(r"^nothing is wrong", done.stdout, re.M), done.stdout)
    seen = Seen(daemon)
    case("no daemon: wrong, with the command", seen.is_wrong("daemon", "no daemon answers at %s: "
         "there is no such socket" % re.escape(daemon.socket)) and
         seen.commands() == ["rocaded --local &"], seen.text)
    done = process.run([DOCTOR], env=daemon.env)
    case("and the text has both", done.returncode == 1 and re.search(
        r"^wrong   daemon: no daemon answers at", done.stdout, re.M) and
        "          type: rocaded --local &\n" in done.stdout and
        done.stdout.endswith("1 thing is wrong; 2 could not be looked at\n"), done.stdout)
    with Daemon() as daemon:
        elsewhere = dict(daemon.env, ROCADE_SOCKET="/nonexistent/rocade.sock")
        done = process.run([DOCTOR, "--json"], env=elsewhere)
        case("a daemon at another socket is named", done.returncode == 1 and
             "export ROCADE_SOCKET=" + daemon.socket in done.stdout, done.stdout)


def usage():
    for words, text in [(["--peer", "nobody"], "expected an IPv4 or IPv6 address"),
                        (["--dev", "eth0"], "expected a PCI address"),
                        (["--config", "/nonexistent"], "expected a readable file"),
                        (["--nonsense"], "--nonsense")]:
        done = process.run([DOCTOR, *words])
        case("refused: " + " ".join(words), done.returncode == 2 and text in done.stderr and
             not done.stdout, done.stderr)
    done = process.run([DOCTOR, "--help"])
    case("--help has the exit status", done.returncode == 0 and "Exit status: 0" in done.stdout)


def users():
    if not is_root():
        skip("daemons of other users", "needs root")
        return
    with Daemon() as daemon:
        seen = Seen(daemon, before=as_user(NOBODY))
        case("a socket that another user may not use", seen.is_wrong(
            "daemon", "of user 0 with mode 600 does not let user 65534 attach") and
            seen.commands() == ["rocaded ... --socket-mode 666"], seen.text)
    # In /run, since that user may not enter the test's own folder.
    folder = tempfile.mkdtemp(prefix="rocade-e2e-", dir="/run")
    os.chown(folder, NOBODY, NOBODY)
    with Daemon("--socket-mode", "666", folder=folder, through=as_user(NOBODY)) as daemon:
        seen = Seen(daemon, before=as_user(OTHER))
        case("a daemon of another user", seen.is_wrong("daemon", "is of user 65534, and a client "
             "trusts only"), seen.text)
        seen = Seen(daemon, "--daemon-uid", str(NOBODY), before=as_user(OTHER))
        case("which --daemon-uid accepts", is_good(seen), seen.text)


def mend(host, seen):
    """Types the commands that the doctor names, those for this host."""
    for command in seen.commands():
        if "#" not in command:
            process.run([*host.inside, "sh", "-c", command], check=True)


def path(left):
    seen = Seen(left, "--peer", "192.0.2.2", "--peer", "2001:db8::2")
    case("a path without a fault", is_good(seen) and len(seen.of("neighbours", "ok")) == 2 and
         [one["sentence"] for one in seen.of("path", "ok")] == [
             "192.0.2.2 answers at UDP port 4791", "2001:db8::2 answers at UDP port 4791"] and
         sum("packets of path MTU 4096 arrive" in one["sentence"] for one in seen.of("mtu", "ok"))
         == 2, seen.text)
    seen = Seen(left, "--peer", "192.0.2.77", "--peer", "2001:db8::77")
    case("neighbours that do not answer", seen.is_wrong(
        "neighbours", r"192\.0\.2\.77 does not answer ARP on eth0") and
        "2001:db8::77 does not answer neighbour discovery" in seen.text, seen.text)
    seen = Seen(left, "--peer", "203.0.113.1")
    case("a host without a route", seen.is_wrong("path", "203.0.113.1 is in no network of the port"),
         seen.text)


def mtu(left, right, bridge):
    ip("-n", bridge, "link", "set", "port1", "mtu", "1500")
    seen = Seen(left, "--peer", "192.0.2.2")
    case("a bridge on the way with a small MTU", seen.is_wrong(
        "mtu", "packets of path MTU 4096 do not arrive at 192.0.2.2 or back, those of 1024 arrive"),
        seen.text)
    ip("-n", bridge, "link", "set", "port1", "mtu", "4200")
    ip("-n", right.space, "link", "set", "eth0", "mtu", "1500")
    seen = Seen(right)
    case("an interface with a smaller MTU than the port", seen.is_wrong(
        "mtu", "the interface eth0 has an MTU of 1500, the daemon's port one of 4184"), seen.text)
    mend(right, seen)
    seen = Seen(right, "--peer", "192.0.2.1")
    case("its command mends it", is_good(seen), seen.text)


def kernel(left):
    ip("-n", left.space, "address", "add", "192.0.2.1/24", "dev", "eth0")
    seen = Seen(left)
    case("the kernel has the device's address, too", seen.is_wrong(
        "gids", r"the kernel has the address 192\.0\.2\.1"), seen.text)
    mend(left, seen)
    ip("-n", left.space, "link", "set", "eth0", "down")
    seen = Seen(left)
    case("an interface that is down", seen.status == 1 and seen.of("interface", "wrong") and
         "ip link set dev eth0 up" in seen.commands(), seen.text)
    mend(left, seen)
    process.until(lambda: left.status()["port"]["link_up"])
    seen = Seen(left, "--peer", "192.0.2.2")
    case("the commands mend both", is_good(seen), seen.text)


def firewall(left, bridge):
    if shutil.which("nft") is None:
        skip("firewalls", "no nft")
        return

    def nft(space, *lines):
        for line in lines:
            process.run(["ip", "netns", "exec", space, "nft", line], check=True)

    nft(bridge, "add table bridge f", "add chain bridge f c { type filter hook forward priority 0; }",
        "add rule bridge f c udp dport 4791 drop")
    seen = Seen(left, "--peer", "192.0.2.2")
    case("a firewall on the way", seen.is_wrong(
        "path", "192.0.2.2 answers ping, and does not answer at UDP port 4791: a firewall"),
        seen.text)
    nft(bridge, "delete table bridge f")
    nft(left.space, "add table netdev f",
        "add chain netdev f c { type filter hook egress device eth0 priority 0; }",
        "add rule netdev f c udp dport 4791 drop")
    seen = Seen(left)
    case("a firewall of this host", seen.is_wrong(
        "firewall", "drops UDP port 4791 in egress .rule 2 of chain netdev f c"), seen.text)
    mend(left, seen)
    seen = Seen(left, "--peer", "192.0.2.2")
    case("its command takes the rule away", is_good(seen), seen.text)


def second(left, spaces):
    with Host(spaces, 0, AF_PACKET, *LARGE, addresses="192.0.2.3/24") as other:
        seen = Seen(left)
        case("a second daemon at the same interface", seen.is_wrong(
            "daemons", "the daemon %d has the interface eth0, too" % other.process.pid),
            seen.text)
        seen = Seen(other)
        case("it says the same of the first", seen.is_wrong("daemons", "has the interface eth0"),
             seen.text)


def hosts():
    if not is_root():
        skip("between hosts", "needs root")
        return
    spaces, bridge = bridged("dleft", "dright")
    with Host(spaces, 0, AF_PACKET, *LARGE) as left, Host(spaces, 1, AF_PACKET, *LARGE) as right:
        path(left)
        mtu(left, right, bridge)
        kernel(left)
        firewall(left, bridge)
        second(left, spaces)


if __name__ == "__main__":
    sys.exit(run(usage, local, users, hosts))
