# SPDX-License-Identifier: BSD-3-Clause
"""Rules of this host's firewall that drop UDP port 4791: in what `nft --json list ruleset` and
iptables-save print. A rule drops them if all its matches are understood and true. A rule with a
match that is not understood may accept them, so that a policy behind it is not judged. The two
directions of RoCEv2 are two flows with the same ports: each begins as a new one."""

import json
import re
import shlex
from collections import namedtuple

PORT = 4791
UDP = 17
DROPS = ("drop", "reject")

# hook: input, output, forward, prerouting, postrouting, ingress, egress. text: the rule.
# command: takes it away.
Drop = namedtuple("Drop", "family hook text command")


# ---- nftables ----

def holds(right, *values):
    """Whether the right side of a match contains one of the values; None: it depends, as on the
    elements of a named set, which are not looked up."""
    if isinstance(right, str) and right.startswith("@"):
        return None
    if isinstance(right, dict) and "set" in right:
        return any(holds(one, *values) for one in right["set"])
    if isinstance(right, dict) and "range" in right:
        return any(isinstance(value, int) and right["range"][0] <= value <= right["range"][1]
                   for value in values)
    return right in values


def nft_match(match):
    """Returns whether a match is true of a packet to UDP port 4791; None: it depends."""
    left, right = match["left"], match["right"]
    truth = None
    if "payload" in left:
        field = (left["payload"].get("protocol"), left["payload"].get("field"))
        if field in (("udp", "dport"), ("th", "dport")):
            truth = holds(right, PORT)
        elif field[0] == "tcp":
            return False  # with "!=", too: a packet of UDP has no such field
        elif field in (("ip", "protocol"), ("ip6", "nexthdr")):
            truth = holds(right, "udp", UDP)
    elif left.get("meta", {}).get("key") == "l4proto":
        truth = holds(right, "udp", UDP)
    elif left.get("meta", {}).get("key") in ("iif", "iifname", "oif", "oifname") and right == "lo":
        truth = False
    elif left.get("ct", {}).get("key") == "state" and match["op"] in ("in", "=="):
        states = right.get("set", []) if isinstance(right, dict) else right
        truth = None if "new" in states else False
    if truth is None or match["op"] not in ("==", "in", "!="):
        return None
    return truth if match["op"] != "!=" else not truth


class Nft:
    def __init__(self, text):
        self.chains, self.rules = {}, {}
        for entry in json.loads(text)["nftables"]:
            if "chain" in entry:
                one = entry["chain"]
                self.chains[one["family"], one["table"], one["name"]] = one
            elif "rule" in entry:
                one = entry["rule"]
                self.rules.setdefault((one["family"], one["table"], one["chain"]), []).append(one)

    def verdict(self, chain, depth=0):
        """Returns the verdict of a chain on the packets, and the rule with it; None: no rule has
        one for all of them."""
        for rule in self.rules.get(chain, []):
            for part in rule.get("expr", []):
                if "match" in part:
                    if nft_match(part["match"]) is not True:
                        break
                elif "accept" in part or any(word in part for word in DROPS):
                    return ("accept" if "accept" in part else "drop"), rule
                elif ("jump" in part or "goto" in part) and depth < 8:
                    target = (part.get("jump") or part.get("goto"))["target"]
                    found = self.verdict((*chain[:2], target), depth + 1)
                    if found[0] not in (None, "return"):
                        return found
                    if "goto" in part:
                        return None, None
                elif "return" in part:
                    return "return", rule
                elif "xt" in part:
                    break  # a match of iptables, which iptables-save explains
        return None, None

    def may_accept(self, chain):
        """Whether a rule of the chain, or a chain below, could accept some of the packets."""
        for rule in self.rules.get(chain, []):
            parts = rule.get("expr", [])
            if any(nft_match(part["match"]) is False for part in parts if "match" in part):
                continue
            if any(word in part for part in parts for word in ("accept", "jump", "goto", "vmap")):
                return True
        return False

    def drops(self):
        for key, chain in self.chains.items():
            if chain.get("type") != "filter":
                continue
            verdict, rule = self.verdict(key)
            where = "%s %s %s" % key
            if verdict == "drop":
                home = "%s %s %s" % (key[0], key[1], rule["chain"])
                yield Drop(key[0], chain["hook"], "rule %d of chain %s" % (rule["handle"], home),
                           "nft delete rule %s handle %d" % (home, rule["handle"]))
            elif verdict in (None, "return") and chain.get("policy") == "drop" and \
                    not self.may_accept(key):
                yield Drop(key[0], chain["hook"], "policy drop of chain " + where,
                           "nft insert rule %s udp dport %d accept" % (where, PORT))


# ---- iptables ----

def iptables_matches(words):
    """Returns whether the words of a rule are true of a packet to UDP port 4791; None: it
    depends."""
    at, truth = 0, True
    while at < len(words):
        word = words[at]
        value = words[at + 1] if at + 1 < len(words) else ""
        if word in ("-p", "--protocol"):
            one = value in ("udp", "17", "all")
        elif word == "-m" and value in ("udp", "comment", "multiport"):
            one = True
        elif word in ("--dport", "--destination-port", "--dports"):
            one = any(low <= PORT <= high for low, high in ports(value))
        elif word in ("--comment", "--reject-with"):
            one = True
        elif word in ("-m", "--match") and value in ("conntrack", "state"):
            one = True
        elif word in ("--ctstate", "--state"):
            one = None if "NEW" in value.split(",") else False
        elif word in ("-i", "--in-interface", "-o", "--out-interface") and value == "lo":
            one = False
        else:
            one = None
        if one is False:
            return False
        truth = truth if one else None
        at += 2
    return truth


def ports(value):
    """Yields the ranges of "4791", "4000:5000" or "80,4791"."""
    for part in value.split(","):
        ends = part.split(":")
        if all(end.isdigit() for end in ends):
            yield int(ends[0]), int(ends[-1])


def parted(line):
    """Returns chain, matches and target of a rule that iptables-save printed."""
    words = shlex.split(line)
    chain, rest = words[1], words[2:]
    for name in ("-j", "-g"):
        if name in rest:
            at = rest.index(name)
            return chain, rest[:at] + rest[at + 2:], rest[at + 1]
    return chain, rest, ""


def iptables_drops(program, text):
    """Yields the rules of the chains of netfilter's hooks; in others it does not look."""
    table, policies, settled = "", {}, set()
    for line in text.splitlines():
        match = re.match(r":(\w+) (ACCEPT|DROP)\b", line)
        if line.startswith("*"):
            table, policies, settled = line[1:], {}, set()
        elif match:
            policies[match[1]] = match[2]
        elif line.startswith("-A "):
            chain, matches, target = parted(line)
            truth = iptables_matches(matches)
            if chain in settled or chain not in policies or truth is False or not target:
                continue
            if target not in ("DROP", "REJECT"):
                settled.add(chain)  # accepted, or for a chain of its own to decide
            elif truth:
                settled.add(chain)
                yield Drop(program, chain.lower(), "rule %s" % line, "%s -t %s -D%s" % (
                    program, table, line[2:]))
        elif line == "COMMIT":
            for chain, policy in policies.items():
                if policy == "DROP" and chain not in settled:
                    yield Drop(program, chain.lower(), "policy DROP of chain %s" % chain,
                               "%s -t %s -I %s -p udp --dport %d -j ACCEPT" % (
                                   program, table, chain, PORT))


def drops(nft, iptables):
    """Returns the rules that drop. nft, iptables: what the programs printed, None where a program
    is missing or not allowed."""
    found = list(Nft(nft).drops()) if nft else []
    known = {(one.family, one.hook) for one in found}
    for program, text in iptables.items():
        text = text or ""
        # nft prints the rules of iptables-nft, too.
        family = {"iptables": "ip", "ip6tables": "ip6"}[program] if "(nf_tables)" in text else None
        found += [one for one in iptables_drops(program, text) if (family, one.hook) not in known]
    return found
