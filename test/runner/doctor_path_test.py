#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""doctor_path_test.py SOURCE: rocade-doctor's view of a path over a recorded wire, its frames, and
its reading of firewall rules, each with a good and a bad one."""

import ipaddress
import json
import os
import struct
import sys
from types import SimpleNamespace

sys.dont_write_bytecode = True
SOURCE = sys.argv[1]
sys.path[:0] = [os.path.join(SOURCE, folder) for folder in ("app/doctor", "tools/lib", "test/tools")]
import cases  # noqa: E402
import check_net  # noqa: E402
import check_path  # noqa: E402
import daemons  # noqa: E402
import firewall  # noqa: E402
import icrc_check  # noqa: E402
import probe  # noqa: E402

MAC, PEER_MAC = b"\x02\0\0\0\0\1", b"\x02\0\0\0\0\2"
V4 = [ipaddress.ip_address("192.0.2.%d" % n) for n in (1, 2)]
V6 = [ipaddress.ip_address("2001:db8::%d" % n) for n in (1, 2)]
AF_PACKET = ["--vdev", "net_af_packet0,iface=eth1", "--", "--address",
             "192.0.2.1/24,2001:db8::1/64", "--mtu", "4184", "--gateway4", "192.0.2.254"]


# ---- The path ----

class Wire:
    """A wire with what answers: neighbours, the longest IP packet, UDP port 4791."""

    def __init__(self, neighbours=("192.0.2.2", "192.0.2.254", "2001:db8::2"), longest=9000,
                 roce=True):
        self.neighbours, self.longest, self.answers = neighbours, longest, roce
        self.closed = False

    def neighbour(self, _, target):
        return PEER_MAC if str(target) in self.neighbours else None

    def echo(self, _mac, _source, _target, length):
        return length <= self.longest

    def roce(self, *_):
        return self.answers

    def close(self):
        self.closed = True


def facts(words=AF_PACKET, space="net:[1]"):
    port = daemons.parse(words, "", 10, 0, "net:[1]")
    return SimpleNamespace(port=port, daemon=None, status=None, space=space, links=[
        {"ifname": "eth1", "mtu": 4184}])


def path(peer="192.0.2.2", known=None, **wire):
    """Returns check and verdict of each finding."""
    one = Wire(**wire)
    found = check_path.check(known or facts(), [peer], lambda: one)
    return [(finding.check, finding.verdict) for finding in found]


def words_of(peer="192.0.2.2", **wire):
    return "; ".join(word for finding in check_path.check(facts(), [peer], lambda: Wire(**wire))
                     for word in (finding.sentence, *finding.type) if finding.verdict == "wrong")


def refused(error):
    def connect():
        raise error
    return [one.verdict for one in check_path.check(facts(), ["192.0.2.2"], connect)]


def paths():
    good = [("neighbours", "ok"), ("path", "ok"), ("mtu", "ok")]
    tap = ["--vdev", "net_tap0,iface=rc0", "--", "--address", "192.0.2.1/24"]
    return [
        ("a path without a fault", path(), good),
        ("the same over IPv6", path("2001:db8::2"), good),
        ("a host behind the router", path("203.0.113.1"), good),
        ("a router that does not answer", "the router 192.0.2.254 does not answer ARP" in words_of(
            "203.0.113.1", neighbours=()), True),
        ("a host without a router", path("2001:db9::1"), [("path", "wrong")]),
        ("a neighbour that does not answer", path(neighbours=()), [("neighbours", "wrong")]),
        ("a firewall on the way", path(roce=False), [("neighbours", "ok"), ("path", "wrong"),
                                                     ("mtu", "ok")]),
        ("a host that answers ARP only", path(roce=False, longest=0),
         [("neighbours", "ok"), ("path", "wrong"), ("mtu", "unknown")]),
        ("a host that answers no ping", path(longest=0),
         [("neighbours", "ok"), ("path", "ok"), ("mtu", "unknown")]),
        ("a small MTU on the way", "packets of path MTU 4096 do not arrive at 192.0.2.2 or back, "
         "those of 1024 arrive" in words_of(longest=1500), True),
        ("an MTU just large enough", path(longest=4184), good),
        ("an MTU just too small", path(longest=4183)[2], ("mtu", "wrong")),
        ("a host that answers short pings only", path(longest=84)[2], ("mtu", "note")),
        ("no host is given", [one.verdict for one in check_path.check(facts(), [], None)], ["ok"]),
        ("a port of another kind", path(known=facts(tap)), [("path", "unknown")]),
        ("a daemon in another namespace", path(known=facts(space="net:[2]")), [("path", "unknown")]),
        ("a user who may not send", refused(PermissionError(1, "no")), ["unknown"]),
        ("an interface that does not send", refused(OSError(100, "down")), ["unknown"])]


# ---- Frames ----

def framed(kind, packet, source=PEER_MAC, target=MAC, tag=b""):
    return target + source + tag + struct.pack("!H", kind) + packet


def sidr_reply(ends, number):
    """The answer of the peer: the request, as if it had come back, of the other attribute."""
    packet = bytearray(probe.sidr_request(ends[1], ends[0], number))
    at = (20 if ends[0].version == 4 else 40) + 8 + 12 + 8
    packet[at + 16:at + 18] = struct.pack("!H", probe.SIDR_REP)
    return framed(probe.Probe.kind(ends[0]), bytes(packet))


def echo_reply(ends, mark, size, kind):
    return framed(probe.Probe.kind(ends[0]), probe.icmp(ends[1], ends[0], kind,
                                                        mark + bytes(size - 8)))


def arp_reply():
    return framed(probe.ETH_ARP, struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 2, PEER_MAC,
                                             V4[1].packed, MAC, V4[0].packed))


def advertisement(option=b"\x02\x01" + PEER_MAC):
    return framed(probe.ETH_IPV6, probe.icmp(V6[1], V6[0], 136, b"\x60\0\0\0" + V6[1].packed +
                                             option))


def frames():
    mark = b"abcd"
    tag = struct.pack("!HH", 0x8100, 5)
    solicit, group = probe.solicitation(MAC, *V6)
    checked = [icrc_check.check(icrc_check.LINK_ETHERNET, framed(
        probe.Probe.kind(ends[0]), probe.sidr_request(*ends, 77))) for ends in (V4, V6)]
    packet = probe.sidr_request(*V6, 78)
    udp = packet[40:]
    return [
        ("the ICRC of a request over IPv4 and IPv6", checked, ["ok", "ok"]),
        ("the UDP checksum over IPv6", probe.checksum(probe.pseudo_header(
            *V6, probe.UDP, len(udp)) + udp), 0),
        ("the IPv4 header checksum", probe.checksum(probe.ip_header(*V4, 17, 8)), 0),
        ("an answer is known", [probe.is_sidr_reply(sidr_reply(ends, 9), *ends, 9)
                                for ends in (V4, V6)], [True, True]),
        ("an answer to another request is not", probe.is_sidr_reply(sidr_reply(V4, 9), *V4, 8),
         False),
        ("an answer of another host is not", probe.is_sidr_reply(sidr_reply(V4, 9), V4[0],
                                                                 V4[0], 9), False),
        ("the request itself is not", probe.is_sidr_reply(framed(
            0x0800, probe.sidr_request(*V4, 9)), *V4, 9), False),
        ("an echo is known", [probe.is_echo(echo_reply(ends, mark, 64, kind), *ends, mark, 64)
                              for ends, kind in ((V4, 0), (V6, 129))], [True, True]),
        ("an echo of another size is not", probe.is_echo(echo_reply(V4, mark, 63, 0), *V4, mark,
                                                         64), False),
        ("an ICMP error is not", probe.is_echo(echo_reply(V4, mark, 64, 3), *V4, mark, 64), False),
        ("an ARP answer", probe.neighbour_mac(arp_reply(), V4[1]), PEER_MAC),
        ("with a VLAN tag", probe.neighbour_mac(arp_reply()[:12] + tag + arp_reply()[12:], V4[1]),
         PEER_MAC),
        ("an ARP answer of another host", probe.neighbour_mac(arp_reply(), V4[0]), None),
        ("an ARP request", probe.neighbour_mac(framed(0x0806, probe.arp_request(MAC, *V4)), V4[0]),
         None),
        ("an advertisement", probe.neighbour_mac(advertisement(), V6[1]), PEER_MAC),
        ("one without the option", probe.neighbour_mac(advertisement(b""), V6[1]), PEER_MAC),
        ("a solicitation goes to the group of the address, with hop limit 255",
         (group.hex(), solicit[7], solicit[38:40].hex()), ("3333ff000002", 255, "0002")),
        ("its checksum", probe.checksum(probe.pseudo_header(
            V6[0], ipaddress.ip_address(solicit[24:40]), 58, len(solicit) - 40) + solicit[40:]), 0)]


# ---- Firewalls ----

def chain(family, name, hook=None, policy="accept"):
    base = {"type": "filter", "hook": hook, "prio": 0, "policy": policy} if hook else {}
    return {"chain": {"family": family, "table": "t", "name": name, "handle": 1, **base}}


def rule(*expr, family="inet", name="c", handle=7):
    return {"rule": {"family": family, "table": "t", "chain": name, "handle": handle,
                     "expr": list(expr)}}


def dport(right, operator="==", protocol="udp"):
    return {"match": {"op": operator, "right": right, "left": {"payload": {
        "protocol": protocol, "field": "dport"}}}}


def nft(*entries, hook="input", policy="accept"):
    """The commands that take away what drops."""
    text = json.dumps({"nftables": [{"metainfo": {}}, chain("inet", "c", hook, policy), *entries]})
    return [one.command for one in firewall.drops(text, {})]


DROP, ACCEPT = {"drop": None}, {"accept": None}
DELETE = ["nft delete rule inet t c handle 7"]
INSERT = ["nft insert rule inet t c udp dport 4791 accept"]
STATE = {"match": {"op": "in", "left": {"ct": {"key": "state"}},
                   "right": ["established", "related"]}}
LOOPBACK = {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "lo"}}
SOURCE_MATCH = {"match": {"op": "==", "right": "198.51.100.1", "left": {"payload": {
    "protocol": "ip", "field": "saddr"}}}}
PROTOCOLS = {"match": {"op": "==", "right": {"set": ["tcp", "udp"]}, "left": {"payload": {
    "protocol": "ip", "field": "protocol"}}}}
NAMED_PROTOCOLS = {"match": {"op": "==", "left": {"meta": {"key": "l4proto"}},
                             "right": "@protocols"}}
UDP_ONLY = {"match": {"op": "==", "left": {"meta": {"key": "l4proto"}}, "right": "udp"}}


def nftables():
    return [
        ("no rule", nft(), []),
        ("a rule that drops the port", nft(rule(dport(4791), DROP)), DELETE),
        ("a rule that rejects UDP", nft(rule(UDP_ONLY, {"reject": None})), DELETE),
        ("a set and a range with the port", nft(rule(dport({"set": [53, {"range": [4000, 5000]}]}),
                                                     DROP)), DELETE),
        ("a range without it", nft(rule(dport({"range": [1, 4790]}), DROP)), []),
        ("another port", nft(rule(dport(53), DROP)), []),
        ("all ports but one", nft(rule(dport(53, "!="), DROP)), DELETE),
        ("a rule of TCP", nft(rule(dport(4791, protocol="tcp"), DROP)), []),
        ("all of TCP but one port", nft(rule(dport(22, "!=", "tcp"), DROP)), []),
        ("a comparison, which may be true of the port", nft(
            rule(dport(1024, ">="), ACCEPT), policy="drop"), []),
        ("a named set, which may have the port", nft(
            rule(dport("@ports"), DROP), rule(dport("@ports", "!="), DROP)), []),
        ("a policy with a named set accepted", nft(rule(dport("@ports"), ACCEPT), policy="drop"),
         []),
        ("a policy with a set of protocols accepted", nft(rule(PROTOCOLS, ACCEPT), policy="drop"),
         []),
        ("a rule of a set of protocols", nft(rule(PROTOCOLS, DROP)), DELETE),
        ("a policy with a named set of protocols accepted", nft(
            rule(NAMED_PROTOCOLS, ACCEPT), policy="drop"), []),
        ("a rule for one source", nft(rule(SOURCE_MATCH, dport(4791), DROP)), []),
        ("accepted before", nft(rule(dport(4791), ACCEPT), rule(UDP_ONLY, DROP)), []),
        ("a policy", nft(policy="drop"), INSERT),
        ("a policy behind other services", nft(rule(STATE, ACCEPT), rule(LOOPBACK, ACCEPT),
                                               rule(dport(22, protocol="tcp"), ACCEPT),
                                               policy="drop"), INSERT),
        ("a policy with the port accepted", nft(rule(dport(4791), ACCEPT), policy="drop"), []),
        ("a policy with a source accepted", nft(rule(SOURCE_MATCH, ACCEPT), policy="drop"), []),
        ("a chain that is jumped to", nft(
            rule({"jump": {"target": "d"}}), chain("inet", "d"), rule(UDP_ONLY, DROP, name="d",
                                                                      handle=9)),
         ["nft delete rule inet t d handle 9"]),
        ("a chain that returns", nft(
            rule({"jump": {"target": "d"}}), chain("inet", "d"), rule({"return": None}, name="d"),
            rule(UDP_ONLY, DROP, name="d")), []),
        ("a chain that jumps to itself ends", nft(rule({"jump": {"target": "c"}})), [])]


SAVED = """# Generated by iptables-save v1.8.9%s
*filter
:INPUT %s [0:0]
:OUTPUT ACCEPT [0:0]
:other - [0:0]
%s
COMMIT
"""


def saved(*rules, policy="ACCEPT", backend="", nft_text=None):
    text = SAVED % (backend, policy, "\n".join(rules))
    return [one.command for one in firewall.drops(nft_text, {"iptables": text, "ip6tables": None})]


def iptables():
    port = "-A INPUT -p udp -m udp --dport 4791 -j DROP"
    known = json.dumps({"nftables": [chain("ip", "INPUT", "input"), rule(
        dport(4791), DROP, family="ip", name="INPUT")]})
    allow = ["iptables -t filter -I INPUT -p udp --dport 4791 -j ACCEPT"]
    return [
        ("iptables without a rule", saved(), []),
        ("a rule that drops the port", saved(port),
         ["iptables -t filter -D INPUT -p udp -m udp --dport 4791 -j DROP"]),
        ("several ports", len(saved("-A INPUT -p udp -m multiport --dports 53,4000:5000 -j REJECT "
                                    "--reject-with icmp-port-unreachable")), 1),
        ("another port", saved("-A INPUT -p udp -m udp --dport 53 -j DROP"), []),
        ("a rule of TCP", saved("-A INPUT -p tcp -m tcp --dport 4791 -j DROP"), []),
        ("a rule for one source", saved("-A INPUT -s 198.51.100.1/32 -p udp -j DROP"), []),
        ("all but one port", saved("-A INPUT -p udp -m udp ! --dport 53 -j DROP"), []),
        ("a rule of a chain that no hook has", saved(port.replace("INPUT", "other")), []),
        ("accepted before", saved("-A INPUT -p udp -j ACCEPT", port), []),
        ("a policy", saved(policy="DROP"), allow),
        ("a policy behind other services", saved(
            "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
            "-A INPUT -i lo -j ACCEPT", "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT",
            policy="DROP"), allow),
        ("a policy with the port accepted", saved(port.replace("DROP", "ACCEPT"), policy="DROP"),
         []),
        ("what nft prints, too", saved(port, backend=" (nf_tables)", nft_text=known),
         ["nft delete rule ip t INPUT handle 7"]),
        ("the other kind is another rule", len(saved(port, nft_text=known)), 2)]


def hooks():
    """The verdicts on a rule, by the kind of port and the rule's hook."""
    def verdicts(vdev, hook, **changes):
        text = json.dumps({"nftables": [chain("inet", "c", hook), rule(dport(4791), DROP)]})
        known = {"port": daemons.parse(["--vdev", vdev, "--"]), "uid": 0, "nft": text,
                 "iptables": {"iptables": None, "ip6tables": None}, **changes}
        return [one.verdict for one in check_net.firewall_rules(SimpleNamespace(**known))]

    packet, tap = "net_af_packet0,iface=eth1", "net_tap0,iface=rc0"
    return [
        ("a rule that the port's packets pass", [verdicts(packet, "egress"),
                                                 verdicts(tap, "forward")], [["wrong"], ["wrong"]]),
        ("one that they do not pass", [verdicts(packet, "input"), verdicts(tap, "input"),
                                       verdicts(packet, "input", port=None)],
         [["note"], ["note"], ["note"]]),
        ("no rules", verdicts(packet, "input", nft='{"nftables": []}'), ["ok"]),
        ("no firewall", verdicts(packet, "input", nft=None), ["ok"]),
        ("rules that this user may not read", verdicts(packet, "input", nft=None, uid=1000),
         ["unknown"]),
        ("rules that cannot be understood", verdicts(packet, "input", nft='{"x": []}'),
         ["unknown"])]


if __name__ == "__main__":
    sys.exit(cases.run(paths() + frames() + nftables() + iptables() + hooks()))
