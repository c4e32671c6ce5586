# SPDX-License-Identifier: BSD-3-Clause
"""rocade-doctor: says what is wrong with RDMA on this host, and what to type."""

import argparse
import ipaddress
import json
import os
import re
import sys
import textwrap

import check_daemon
import check_host
import check_net
import check_path
import daemons
import facts
from finding import OK, UNKNOWN, WRONG, unknown
from probe import Probe
from version import VERSION

PROGRAM = "rocade-doctor"
USAGE = """Usage: rocade-doctor [OPTION]...
Says what is wrong with RDMA on this host, and what to type. It changes nothing.

  --socket PATH      the daemon's socket (default: as for rocaded)
  --daemon-uid UID   accept a daemon of this user (default: of root and of yours)
  --peer ADDRESS     also look at the path to this host: neighbour, UDP port 4791, MTU. Sends
                     a few packets from the daemon's address. May be repeated. Needs root
  --config FILE      look at what a daemon with this file would need
  --interface NAME   the same for a daemon over net_af_packet on this interface
  --dev PCI          the same for a NIC that DPDK drives, such as 0000:3b:00.0
  --all              also print what is good
  --json             print everything as JSON
  --help, --version

Exit status: 0 if nothing is wrong, 1 if something is, 2 for invalid options.
"""
PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
WIDTH = 90


class Parser(argparse.ArgumentParser):
    def error(self, message):
        sys.stderr.write("%s: %s (see --help)\n" % (PROGRAM, message))
        sys.exit(2)


def address(text):
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            "invalid value '%s': expected an IPv4 or IPv6 address" % text) from None


def pci(text):
    if not PCI.match(text):
        raise argparse.ArgumentTypeError(
            "invalid value '%s': expected a PCI address such as 0000:3b:00.0" % text)
    return text


def file(text):
    if not os.access(text, os.R_OK) or os.path.isdir(text):
        raise argparse.ArgumentTypeError("invalid value '%s': expected a readable file" % text)
    return text


def uid(text):
    if not text.isdigit() or int(text) >= (1 << 32) - 1:
        raise argparse.ArgumentTypeError("invalid value '%s': expected 0 to 4294967294" % text)
    return int(text)


def parse(words):
    parser = Parser(prog=PROGRAM, add_help=False, allow_abbrev=False)
    parser.add_argument("--socket")
    parser.add_argument("--daemon-uid", type=uid)
    parser.add_argument("--peer", type=address, action="append", default=[])
    port = parser.add_mutually_exclusive_group()
    port.add_argument("--config", type=file)
    port.add_argument("--interface")
    port.add_argument("--dev", type=pci)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--help", action="store_true")
    parser.add_argument("--version", action="store_true")
    return parser.parse_args(words)


def connect(f):
    """Returns a Probe on the port's interface, with its MAC address."""
    link = check_net.link_of(f)
    if link is None:
        raise OSError(19, "there is no such interface")
    return Probe(f.port.interface, bytes.fromhex(link["address"].replace(":", "")),
                 int(daemons.option(f.port, "vlan", "0")))


def findings(f, peers):
    out = []
    for check in check_daemon.CHECKS + check_net.CHECKS + check_host.CHECKS:
        out += check(f)
    return out + check_path.check(f, peers, lambda: connect(f))


def show(one):
    """Prints a finding: the sentence, and below it the commands."""
    head = "%-8s" % one.verdict
    text = "%s: %s." % (one.check, one.sentence.rstrip("."))
    print(textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=" " * 8,
                        break_long_words=False, break_on_hyphens=False))
    for command in one.type:
        print("          type: " + command)


def report(found, all_of_them):
    shown = [one for one in found if all_of_them or one.verdict != OK]
    for one in sorted(shown, key=lambda one: one.verdict != WRONG):
        show(one)
    count = sum(one.verdict == WRONG for one in found)
    hidden = sum(one.verdict == UNKNOWN for one in found)
    print("%s%s" % ("nothing is wrong" if count == 0 else "%d thing%s wrong" % (
        count, " is" if count == 1 else "s are"),
        "; %d could not be looked at" % hidden if hidden else ""))


def main():
    options = parse(sys.argv[1:])
    if options.help or options.version:
        sys.stdout.write(USAGE if options.help else "%s %s\n" % (PROGRAM, VERSION))
        return 0
    found = findings(facts.gather(options), options.peer)
    bad = any(one.verdict == WRONG for one in found)
    if options.json:
        json.dump({"rocade": VERSION, "result": "wrong" if bad else "ok",
                   "findings": [one._asdict() for one in found]}, sys.stdout, indent=2)
        print()
    else:
        report(found, options.all)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
