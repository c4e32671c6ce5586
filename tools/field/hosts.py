# SPDX-License-Identifier: BSD-3-Clause
"""Left with --hosts: waits for the other hosts, and orders the same steps at all of them. A host that does not
come, refuses or ends is reported, and the others go on without it."""

import ipaddress
import time

import channel
import check
import patterns
import predict
import traffic
from channel import Gone, Unexpected, list_of, one_of, record, text
from end import HOST_STEPS, Remote
from hosts_report import numbers
from program import Failed

KIT = "rocade-field"
HELLO = record({"kit": one_of(KIT), "format": one_of(channel.FORMAT), "version": text,
                "side": one_of("left", "right"), "addr": text, "hosts": list_of(text)})
HELLO_S = 10
NO_PORT = "the port does not start"


class Group:
    """The hosts that have come. ends: {place in --hosts: Local or Remote}, 0 is left's own. members: the
    places of those that still take part."""

    def __init__(self, hosts, local, report, say):
        self.hosts = hosts
        self.ends = {0: local}
        self.members = [0]
        self.report = report
        self.say = say

    def add(self, place, connection):
        self.ends[place] = Remote(connection, self.name(place), HOST_STEPS)
        self.members = sorted(self.ends)

    def name(self, place):
        return "host %d (%s)" % (place + 1, self.hosts[place])

    def problem(self, sentence):
        self.say("  " + sentence)
        self.report["problems"].append(traffic.hidden(sentence))

    def exclude(self, place, why):
        """The host takes part no more. It still hears the verdict."""
        if place in self.members:
            self.members.remove(place)
            self.problem("%s takes part no more: %s" % (self.name(place), why))

    def lose(self, place, why):
        """The host's end has gone."""
        self.ends.pop(place).channel.close()
        self.exclude(place, why)

    def forget_gone(self):
        """Lets those that have ended before the first step come again."""
        for place in [one for one in self.ends if one]:
            try:
                self.ends[place].channel.check()
            except (Gone, Unexpected) as error:
                self.ends.pop(place).channel.close()
                self.members.remove(place)
                self.say("%s: %s" % (self.name(place), error))

    def ask(self, step, arguments):
        """Orders a step at hosts: {place: its arguments}. Left's own end does it after the others have been
        told. Returns {place: answer, or Failed}, without those that have gone."""
        answers, told = {}, []
        for place in [one for one in arguments if one in self.ends]:
            try:
                if place:
                    self.ends[place].order(step, **arguments[place])
                told.append(place)
            except Gone as error:
                self.lose(place, str(error))
        for place in sorted(told):
            try:
                answers[place] = self.ends[place].answer(step) if place else \
                    self.ends[place].ask(step, **arguments[place])
            except (Gone, Unexpected) as error:
                if not place:
                    raise
                self.lose(place, str(error))
            except (Failed, OSError) as error:
                answers[place] = error if isinstance(error, Failed) else Failed(str(error))
        return answers

    def close(self, verdict):
        for place in [one for one in self.ends if one]:
            try:
                self.ends[place].end(verdict)
            except Gone:
                pass
            self.ends[place].channel.close()


# ---- The other hosts come ----

def refusal(group, own_version, hello):
    """Returns (place of the other end, None), or (None, why left does not work with it)."""
    if hello.get("kit") != KIT:
        return None, "this is no field kit of Rocade"
    if hello.get("side") != "right":
        return None, "both ends are left: start all hosts but the first of --hosts as right"
    if hello.get("format") != channel.FORMAT or hello.get("version") != own_version:
        return None, "the versions differ: left is %s (format %d), right is %s (format %s)" % (
            own_version, channel.FORMAT, text(str(hello.get("version"))[:40]),
            text(str(hello.get("format"))[:10]))
    if "hosts" not in hello:
        return None, "left has --hosts, and right has --peer: give both the same --hosts"
    hello = HELLO(hello)
    if hello["hosts"] != group.hosts:
        return None, check.plain("the lists of hosts differ: left has %s" % ",".join(group.hosts), 300)
    if hello["addr"] not in group.hosts[1:]:
        return None, "the address %s is none of the other hosts: expected one of %s" % (
            hello["addr"], check.plain(", ".join(group.hosts[1:]), 200))
    place = group.hosts.index(hello["addr"])
    if place in group.ends:
        return None, "%s has connected already: each host connects once, with an --addr of its own" % (
            group.name(place))
    return place, None


def greet(group, candidate, own_version, quick):
    """Takes the other end, or refuses it. Returns why, or None."""
    try:
        place, why = refusal(group, own_version, candidate.receive(HELLO_S))
        candidate.send({"refused": why} if why else {"kit": KIT, "quick": quick})
    except (Gone, Unexpected) as error:
        why = str(error)
    if why is None:
        group.add(place, candidate)
        group.say("%s has connected" % group.name(place))
    else:
        candidate.close()
    return why


def gather(group, options, own_version, listener):
    """Waits until all hosts have come, at most --wait seconds."""
    end = time.monotonic() + options.wait
    while len(group.ends) < len(group.hosts) and time.monotonic() < end:
        group.forget_gone()
        candidate = channel.accept(listener, min(end - time.monotonic(), 1))
        if candidate is None:
            continue
        why = greet(group, candidate, own_version, options.quick)
        if why:
            group.say("refused a connection: %s" % why)
    missing = [place for place in range(len(group.hosts)) if place not in group.ends]
    if len(group.ends) == 1:
        raise Failed("no other host has connected within %d s: start tools/field.sh right with the same "
                     "--hosts on %s" % (options.wait, ", ".join(group.hosts[1:])))
    for place in missing:
        group.problem("%s has not connected within %d s (--wait): start tools/field.sh right there with the same "
                      "--hosts, and let it reach --control" % (group.name(place), options.wait))


# ---- Steps ----

def facts(group, report):
    """Asks for the facts of each host, and lends the NICs."""
    group.say("check")
    for place, answer in group.ask("check", {one: {} for one in group.members}).items():
        if isinstance(answer, Failed):
            group.exclude(place, str(answer))
            continue
        report["ends"][str(place + 1)] = answer
        for warning in answer["warnings"]:
            group.say("  %s: %s" % (group.name(place), warning))
    group.say("bind")
    for place, answer in group.ask("bind", {one: {} for one in group.members}).items():
        if isinstance(answer, Failed):
            group.exclude(place, str(answer))
    if 0 not in group.members:
        raise Failed("the first host cannot take part: %s" % report["problems"][-1])


def run(group, name, roles, path_mtu):
    """Runs testpmd at the hosts of `roles`, {place: role}. Returns {place: result}, without the hosts that have gone."""
    members = list(roles)
    opened = group.ask("host_open", {place: {"run": name, "role": role, "path_mtu": path_mtu, "members": members}
                                     for place, role in roles.items()})
    here = [place for place in members if place in group.ends]
    failed = {place: answer for place, answer in opened.items() if isinstance(answer, Failed)}
    if failed or len(here) < len(members):
        group.ask("host_stop", {place: {} for place in here})
        return {place: patterns.failure(str(failed[place]) if place in failed else "another host did not start")
                for place in here}
    active = [place for place in here if roles[place] in patterns.ACTIVE]
    group.ask("host_go", {place: {} for place in active})
    results = group.ask("host_wait", {place: {} for place in active})
    results.update(group.ask("host_stop", {place: {} for place in here if place not in active}))
    return {place: patterns.failure(str(result)) if isinstance(result, Failed) else result
            for place, result in results.items()}


def problem(results, roles):
    """Returns why a run of these hosts has failed, or None."""
    members = list(roles)
    for place in members:
        if place not in results:
            return "host %d has ended" % (place + 1)
    # Of those that say more than that another one has failed, the first.
    for place in sorted(members, key=lambda one: "another host" in (results[one]["reason"] or "")):
        if results[place]["reason"]:
            return "host %d: %s" % (place + 1, results[place]["reason"])
    for place in members:
        got = results[place]
        if roles[place] not in ("sink", "both"):
            continue
        if got["bad_bytes"] or got["bad_messages"] or got["bytes_verified"] != got["bytes"]:
            return "host %d: wrong payload: %d bytes in %d messages, %d of %d bytes verified" % (
                place + 1, got["bad_bytes"], got["bad_messages"], got["bytes_verified"], got["bytes"])
        partners = patterns.partners(place, roles[place], members)
        if len(got["peers"]) != len(partners):
            return "host %d: no result for each other host: %d of %d" % (place + 1, len(got["peers"]), len(partners))
        for partner, peer in zip(partners, got["peers"]):
            if not peer["messages"]:
                return "no message of host %d arrived at host %d" % (partner + 1, place + 1)
    return None


def together(group, path_mtu):
    """Returns why packets of this path MTU do not arrive between the first host and all others, or None."""
    for pattern in ("all-to-one", "one-to-all"):
        roles = patterns.roles(pattern, list(group.members))
        why = problem(run(group, "path", roles, path_mtu), roles)
        if why:
            return why
    return None


def path_to(group, place, sizes):
    """Returns the largest path MTU that arrives between the first host and this one in both directions and None, or one
    that was tried and why it does not arrive: the first with which the ports start."""
    failed = None
    for path_mtu in sizes:
        for roles in ({0: "sink", place: "send"}, {0: "send", place: "sink"}):
            why = problem(run(group, "path", roles, path_mtu), roles)
            if why:
                break
        if why is None or place not in group.members:
            return path_mtu, why
        if failed is None or NO_PORT in failed[1]:
            failed = path_mtu, why
    return failed


def path(group, report, limit):
    """Finds the largest path MTU that arrives between the first host and all others, in both directions. If the largest
    of all does not, each other host is tried alone, and one to which there is no path is excluded."""
    group.say("path")
    sizes = sorted((one for one in traffic.PATH_MTUS if one <= limit), reverse=True)
    why = together(group, sizes[0])
    if why:
        group.say("  path MTU %d: %s; trying each host alone" % (sizes[0], why))
    for place in group.members[1:]:
        path_mtu, alone = path_to(group, place, sizes) if why else (sizes[0], None)
        report["path"].append({"host": place + 1, "path_mtu": None if alone else path_mtu,
                               "reason": alone and traffic.hidden(alone)})
        if alone and alone.startswith("host 1: " + NO_PORT):
            raise Failed(alone)
        if alone:
            group.exclude(place, "no traffic with %s at path MTU %d: %s" % (group.name(0), path_mtu, alone))
        else:
            sizes = [one for one in sizes if one <= path_mtu]
            group.say("  %s: path MTU %d arrives in both directions" % (group.name(place), path_mtu))
    if len(group.members) < 2:
        raise Failed("no other host is left")
    report["path_mtu"] = sizes[0]


def pair(group, place, path_mtu):
    """Measures a host alone with the first one. Returns a row of the report."""
    roles = {0: "sink", place: "send"}
    results = run(group, "load", roles, path_mtu)
    why = problem(results, roles)
    own, other = (ipaddress.ip_address(group.hosts[one]) for one in (0, place))
    first = 0 if own < other else place  # the lower address sends first in a pingpong
    gbps = 0 if why else results[0]["gbps"]
    trip = None
    if why is None:
        pings = {one: "first" if one == first else "second" for one in (0, place)}
        results = run(group, "latency", pings, path_mtu)
        why = problem(results, pings)
        half = None if why else results[first]["lat_p50_ns"]
        why = why or ("no latency was measured" if half is None else None)
        trip = half and half * 2 / 1e3
    return {"host": place + 1, "result": "fail" if why else "pass", "reason": why and traffic.hidden(why),
            "gbps": gbps, "round_trip_us": trip}


def pairs(group, report, quick):
    group.say("pairs")
    for place in group.members[1:2] if quick else group.members[1:]:
        if place not in group.members:
            continue
        row = pair(group, place, report["path_mtu"])
        report["pairs"].append(row)
        group.say("  %s alone with the first: %s" % (group.name(place), row["reason"] or (
            "%.3f Gb/s, round trip %.1f us" % (row["gbps"], row["round_trip_us"]))))


def measure(group, report, options, pattern):
    """Runs a pattern with all hosts that are there, again without those that end while it runs, and predicts it."""
    group.say(pattern)
    while True:
        members = list(group.members)
        if len(members) < 2:
            raise Failed("no other host is left")
        roles = patterns.roles(pattern, members)
        results = run(group, "load", roles, report["path_mtu"])
        if len(group.members) == len(members):
            break
        group.say("  once more, without it")
    why = problem(results, roles)
    predicted, why_not = predict.predict(options.build, report["model"], pattern, len(members))
    row = numbers(pattern, roles, results, report["path_mtu"], predicted)
    row.update(result="fail" if why else "pass", reason=why and traffic.hidden(why), no_prediction=why_not)
    report["patterns"].append(row)
    group.say("  %s" % (("FAIL: " + why) if why else "%.3f Gb/s of payload, Jain's index %.3f, %.3f %% sent again" % (
        row["measured"]["payload_gbps"], row["measured"]["jain"], row["measured"]["resent_share"] * 100)))
    group.say("  predicted: %s" % (why_not or "%.3f Gb/s, %.3f, %.3f %%" % (
        predicted["payload_gbps"], predicted["jain"], predicted["resent_share"] * 100)))


def lead(group, report, options):
    """All steps after the hosts have come."""
    facts(group, report)
    path(group, report, options.path_mtu)
    pairs(group, report, options.quick)
    report["model"] = predict.model(options, report["path_mtu"], report["pairs"])
    for pattern in options.patterns:
        measure(group, report, options, pattern)
