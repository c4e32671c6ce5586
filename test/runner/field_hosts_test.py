#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/field.sh --hosts: lists of hosts, senders and receivers, hosts that are refused, do not come, fail or
end, what is predicted from what, and the page."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import types

sys.dont_write_bytecode = True
TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools")
sys.path[:0] = [os.path.join(TOOLS, "field"), os.path.join(TOOLS, "lib")]
import cases  # noqa: E402
import channel  # noqa: E402
import field  # noqa: E402
import hosts  # noqa: E402
import hosts_report  # noqa: E402
import patterns  # noqa: E402
import predict  # noqa: E402
import traffic  # noqa: E402
from channel import Gone  # noqa: E402
from program import Failed  # noqa: E402

HOSTS = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]


def refused(call, *arguments):
    """Returns the sentence with which the call fails, or None."""
    try:
        call(*arguments)
    except (Failed, field.Wrong) as error:
        return str(error)
    return None


# ---- Options ----

def options(**changes):
    return types.SimpleNamespace(**{
        "side": "left", "addr": "192.0.2.1/24", "hosts": ",".join(HOSTS), "rdma": None, "patterns": None,
        "link_rate": None, "switch_buffer": None, "quick": True, "wait": 0.3, "dev": None, "build": "/nonexistent",
        "path_mtu": 4096, **changes})


def wrong(**changes):
    return refused(field.check_hosts, options(**changes))


def good(**changes):
    one = options(**changes)
    field.check_hosts(one)
    return one


def lists():
    return [
        ("a list of hosts", (good().hosts, good().number, good().patterns), (HOSTS, 0, list(patterns.PATTERNS))),
        ("an end that is right", good(side="right", addr="192.0.2.3/24").number, 2),
        ("one host", wrong(hosts="192.0.2.1"), "invalid --hosts '192.0.2.1': 1 host: expected 3 to 64 addresses, "
         "or for two hosts --peer"),
        ("two hosts", wrong(hosts=",".join(HOSTS[:2])), "invalid --hosts '192.0.2.1,192.0.2.2': 2 hosts: expected 3 to "
         "64 addresses, or for two hosts --peer"),
        ("too many hosts", ": 65 hosts: expected" in wrong(
            addr="10.0.0.1/8", hosts=",".join("10.0.0.%d" % i for i in range(1, 66))), True),
        ("the same host twice", wrong(hosts="192.0.2.1,192.0.2.2,192.0.2.2"), "invalid --hosts: entry 3, '192.0.2.2', "
         "comes twice: expected each host once"),
        ("an entry that is no address", wrong(hosts="192.0.2.1,x,192.0.2.2"), "invalid --hosts: entry 2, 'x': expected "
         "IPv4 or IPv6 addresses, separated by commas"),
        ("an address of another network", wrong(hosts=",".join(HOSTS[:2] + ["203.0.113.1"])), "--addr 192.0.2.1/24 needs "
         "a prefix length, and all addresses of --hosts must be of its network: 203.0.113.1 is not"),
        ("a list without this host", wrong(addr="192.0.2.9/24"), "--addr 192.0.2.9 is not in --hosts %s: expected the "
         "addresses of all hosts, this one too" % ",".join(HOSTS)),
        ("left that is not the first", wrong(addr="192.0.2.2/24"), "this host is entry 2 of --hosts: the first "
         "one, 192.0.2.1, is left, and all others are right"),
        ("right that is the first", wrong(side="right"), "this host is entry 1 of --hosts: the first one, "
         "192.0.2.1, is left, and all others are right"),
        ("an unknown pattern", wrong(patterns="all-to-one,ring"), "invalid --patterns entry 'ring': expected each of "
         "all-to-one, one-to-all, all-to-all once at most"),
        ("a rate", [predict.rate(one) for one in ("100", "25g", "2500m", "400G")], [100, 25000, 2500, 400000]),
        ("a rate without number", wrong(link_rate="fast"), "invalid --link-rate 'fast': expected 10 to 400000 Mb/s, such "
         "as 25g or 2500m"),
        ("a rate that is too high", wrong(link_rate="401g") is None, False),
        ("a buffer that is too small", wrong(switch_buffer=9), "invalid --switch-buffer 9: expected 10 to 1000000 kB")]


# In place of tools/lib/session.sh: says what is done, and does nothing.
SESSION = """wrong() { echo "$*"; exit 2; }
die() { :; }
id() { echo 0; }
run() { echo "$*" >&2; }
session_begin() { scratch=/; }
build_program() { build=/nonexistent; }
logged() { echo "$1"; }
hugepages_set() { echo hugepages; }
"""


def started(*arguments):
    """Runs tools/field.sh with these arguments. It prints what it prepares, and as errors what it would run."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "tools/lib"))
        script = shutil.copy(os.path.join(TOOLS, "field.sh"), os.path.join(folder, "tools"))
        with open(os.path.join(folder, "tools/lib/session.sh"), "w", encoding="utf-8") as file:
            file.write(SESSION)
        return subprocess.run(["bash", script, "left", *arguments], capture_output=True, text=True, check=False,
                              cwd="/")


def prepared(*arguments):
    return started(*arguments).stdout.splitlines()


def out_of(*arguments):
    """Returns the folders that the kit is given to write to."""
    return set(re.findall(r" --out (\S*)", started(*arguments).stderr))


def shell():
    both = ["the build of the simulation", "hugepages"]
    return [
        ("a NIC needs hugepages, and several hosts the simulation", prepared("--dev", "x", "--hosts", "x"), both),
        ("so do they with =", prepared("--dev=x", "--hosts=x"), both),
        ("a virtual port between two hosts needs neither", prepared("--vdev=x", "--peer", "x"), []),
        ("the files go to the folder that the shell is in", out_of("--vdev=x"), {"/"}),
        ("--out names another", out_of("--out", "/usr/lib", "--vdev=x"), {"/usr/lib"}),
        ("so does it with =", out_of("--out=/usr/lib", "--vdev=x"), {"/usr/lib"}),
        ("an empty --out= is refused", prepared("--out=", "--vdev=x"),
         ["invalid value '' for --out: expected a directory"])]


# ---- Senders and receivers ----

def pages_of(nic):
    """Whether a port uses hugepages, of which there are enough."""
    port = patterns.Port(options(vdev="net_x", core=0), nic, [])
    before, traffic.check.hugepages = traffic.check.hugepages, lambda: ("", 10000)
    try:
        return port.has_hugepages()
    finally:
        traffic.check.hugepages = before


def bad_members(own, members):
    return refused(patterns.peers, HOSTS, own, "send", members) is not None


def senders():
    return [
        ("all to one", patterns.roles("all-to-one", [0, 2, 3]), {0: "sink", 2: "send", 3: "send"}),
        ("one to all", patterns.roles("one-to-all", [0, 2]), {0: "send", 2: "sink"}),
        ("all to all", patterns.roles("all-to-all", [0, 1]), {0: "both", 1: "both"}),
        ("the one has the others as peers", patterns.peers(HOSTS, 0, "sink", [0, 1, 3]), "192.0.2.2,192.0.2.4"),
        ("each other one its place there", [patterns.peers(HOSTS, own, "send", [0, 1, 3]) for own in (1, 3)],
         ["192.0.2.1", "192.0.2.1@1"]),
        ("all to all has one list", {patterns.peers(HOSTS, own, "both", [0, 1, 3]) for own in (0, 1, 3)},
         {"192.0.2.1,192.0.2.2,192.0.2.4"}),
        ("the hosts behind the peers", [patterns.partners(own, role, [0, 1, 3]) for own, role in (
            (0, "sink"), (3, "send"), (1, "both"))], [[1, 3], [0], [0, 3]]),
        ("a NIC uses hugepages, a virtual port does not", (pages_of(types.SimpleNamespace(read=lambda _: None)), pages_of(
            None)), (True, False)),
        ("a run by count has as many messages for each peer", [patterns.length(*one) for one in (
            ("path", True, 7), ("load", True, 7), ("load", False, 7))],
         [["--count", "448"], ["--duration", "1"], ["--duration", "10"]]),
        ("other members are refused", [bad_members(*one) for one in (
            (1, [0, 2]), (1, [0, 1, 1]), (1, [1]), (1, [0, 1, 4]), (1, [0, 1, 2.5]))], [True] * 5)]


# ---- Hosts that come, fail and end ----

class Fake:
    """A host that answers every step. dies: the step at which it ends, the given time. fails: the step that it refuses.
    most: the largest path MTU that arrives."""

    def __init__(self, place, dies=None, at=1, fails=None, most=4096, **changes):
        self.place, self.dies, self.at, self.fails, self.most, self.changes = place, dies, at, fails, most, changes
        self.channel = self
        self.asked, self.verdict, self.closed = None, None, False

    def check(self):
        pass

    def close(self):
        self.closed = True

    def end(self, verdict):
        self.verdict = verdict

    def order(self, step, **arguments):
        if step == self.dies:
            self.at -= 1
            if self.at == 0:
                raise Gone("the other end has ended")
        if step == "host_open":
            self.asked = arguments

    def answer(self, step):
        if step == self.fails:
            raise Failed("host %d: no port" % (self.place + 1))
        if step == "check":
            return {"facts": {"device": "net_x", "link_mbps": 10000}, "warnings": ["busy"]}
        if step not in ("host_wait", "host_stop"):
            return {}
        role = self.asked["role"]
        partners = patterns.partners(self.place, role, self.asked["members"])
        result = {**patterns.failure("x"), "reason": None, "seconds": 1.0, "frames_sent": 1000, "frames_received": 1000}
        if role in ("send", "both"):
            result.update(sent_messages=100 * len(partners), retransmits=4 * len(partners))
        if role in ("sink", "both"):
            result.update(messages=100 * len(partners), bytes=1600 * len(partners), gbps=0.5 * len(partners),
                          bytes_verified=1600 * len(partners),
                          peers=[{"messages": 100, "bytes": 1600} for _ in partners])
        if role in ("first", "second"):
            result["lat_p50_ns"] = 10000
        if self.asked["path_mtu"] > self.most:
            result["reason"] = "no answer"
        return {**result, **self.changes}

    def ask(self, step, **arguments):
        self.order(step, **arguments)
        return self.answer(step)


def group_of(*ends):
    """A group with these hosts, and what it says."""
    said = []
    report = hosts_report.new("1.0", good())
    group = hosts.Group(HOSTS, Fake(0), report, said.append)
    for end in ends:
        group.ends[end.place] = end
    group.members = sorted(group.ends)
    return group, report, said


def led(*ends, **changes):
    """The report of a run with these hosts."""
    group, report, _ = group_of(*ends)
    try:
        hosts.lead(group, report, good(**changes))
    except Failed as error:
        report["reason"] = str(error)
    report["result"] = hosts_report.verdict(report)
    group.close(report["result"])
    return report


def whole_run():
    others = [Fake(1), Fake(2), Fake(3)]
    report = led(*others)
    rows = {row["pattern"]: row for row in report["patterns"]}
    return report, [
        ("all hosts take part in all patterns", (report["result"], [row["members"] for row in report["patterns"]]),
         ("pass", [[1, 2, 3, 4]] * 3)),
        ("all hear the verdict", [end.verdict for end in others], ["pass"] * 3),
        ("the largest path MTU is used", (report["path_mtu"], others[0].asked["path_mtu"]), (4096, 4096)),
        ("a quick run has one pair", [(row["host"], row["gbps"], row["round_trip_us"]) for row in report["pairs"]],
         [(2, 0.5, 20.0)]),
        ("a longer one has all", [row["host"] for row in led(Fake(1), Fake(2), quick=False)["pairs"]], [2, 3]),
        ("payload of all flows", [row["measured"]["payload_gbps"] for row in report["patterns"]], [1.5, 1.5, 6.0]),
        ("packets that were sent again, of 4 a message", [row["measured"]["resent_share"] for row in report["patterns"]],
         [4 / 404] * 3),
        ("flows of all to one", [(flow["from"], flow["to"]) for flow in rows["all-to-one"]["flows"]],
         [(2, 1), (3, 1), (4, 1)]),
        ("flows of one to all", [(flow["from"], flow["to"]) for flow in rows["one-to-all"]["flows"]],
         [(1, 2), (1, 3), (1, 4)]),
        ("flows of all to all", len(rows["all-to-all"]["flows"]), 12),
        ("without the program there is no prediction", (rows["all-to-one"]["predicted"], rows["all-to-one"]["ratio"][
            "jain"], "fabric is not in the build directory" in rows["all-to-one"]["no_prediction"]), (None, None, True)),
        ("some of the patterns", [row["pattern"] for row in led(Fake(1), patterns="one-to-all")["patterns"]],
         ["one-to-all"])]


def failures():
    # It ends at the second run that it begins: the first is that of the path.
    died = led(Fake(1), Fake(2, dies="host_go", at=2), Fake(3))
    silent = led(Fake(1), Fake(2, reason="no ARP answer"), Fake(3))
    no_port = led(Fake(1), Fake(2, fails="check"), Fake(3))
    bad = led(Fake(1), Fake(2), Fake(3, bad_bytes=1), patterns="one-to-all", path_mtu=1024)
    untold = led(Fake(1), Fake(2, peers=[]), Fake(3), patterns="one-to-all", path_mtu=1024)
    no_trip, _, said = group_of(Fake(1, lat_p50_ns=None))
    no_trip.ends[0].changes["lat_p50_ns"] = None
    no_trip.report["path_mtu"] = 4096
    hosts.pairs(no_trip, no_trip.report, True)
    alone = led(Fake(1, dies="host_open"))
    first, _, _ = group_of(Fake(1))
    group, report, _ = group_of(Fake(1))
    group.ends[0].changes["reason"] = "the port does not start: no link"
    own = refused(hosts.lead, group, report, good())
    narrow = led(Fake(1), Fake(2, most=2048), Fake(3))
    return [
        ("all hosts use the path MTU that reaches each", (narrow["result"], narrow["path_mtu"], [
            (row["host"], row["path_mtu"]) for row in narrow["path"]], {row["path_mtu"] for row in narrow["patterns"]}),
         ("pass", 2048, [(2, 4096), (3, 2048), (4, 2048)], {2048})),
        ("a host that ends: the pattern is measured with the others", (died["result"], [
            row["members"] for row in died["patterns"]], died["problems"]), ("fail", [[1, 2, 4]] * 3, [
                "host 3 ((address)) takes part no more: the other end has ended"])),
        ("they pass", [row["result"] for row in died["patterns"]], ["pass"] * 3),
        ("a host without traffic", ([row["members"] for row in silent["patterns"]], silent["problems"]),
         ([[1, 2, 4]] * 3, ["host 3 ((address)) takes part no more: no traffic with host 1 ((address)) at path MTU 4096: "
                            "host 3: no ARP answer"])),
        ("a host whose port does not start", ([row["members"] for row in no_port["patterns"]], no_port["problems"]),
         ([[1, 2, 4]] * 3, ["host 3 ((address)) takes part no more: host 3: no port"])),
        ("a host with wrong payload", (bad["result"], [row["members"] for row in bad["patterns"]], "host 4: wrong payload"
                                       in bad["problems"][0]), ("fail", [[1, 2, 3]], True)),
        ("a receiver without a result for each sender", (untold["result"], [row["members"] for row in untold["patterns"]], [
            "host 3: no result for each other host: 0 of 1" in problem for problem in untold["problems"]]),
         ("fail", [[1, 2, 4]], [True])),
        ("a pair without a latency", ([(row["result"], row["reason"], row["round_trip_us"])
                                      for row in no_trip.report["pairs"]], said[-1]), (
            [("fail", "no latency was measured", None)],
            "  host 2 (192.0.2.2) alone with the first: no latency was measured")),
        ("when the first host's port does not start the run ends", (own, report["problems"]),
         ("host 1: the port does not start: no link", [])),
        ("when no other host is left the run ends", (alone["reason"], alone["result"], alone["patterns"]),
         ("no other host is left", "fail", [])),
        ("a host that has ended before the first step may come again", (first.forget_gone(), sorted(first.ends)),
         (None, [0, 1]))]


def hello(**changes):
    return {"kit": "rocade-field", "format": channel.FORMAT, "version": "1.0", "side": "right", "addr": HOSTS[2],
            "hosts": HOSTS, **changes}


def answer(message):
    """What left says to a host."""
    group, _, _ = group_of(Fake(1))
    return hosts.refusal(group, "1.0", message)[1]


def gathered(*messages):
    """Hosts connect and say this. Returns the places that have come, what left says, and the problems."""
    group, report, said = group_of()
    listener = channel.listen("127.0.0.1", 0)
    others = []
    for message in messages:
        others.append(socket.create_connection(listener.getsockname(), 5))
        others[-1].sendall(message)
    try:
        why = refused(hosts.gather, group, good(), "1.0", listener)
    finally:
        listener.close()
        for other in others:
            other.close()
        group.close("fail")
    return sorted(group.ends), said, report["problems"], why


def coming():
    line = channel.json.dumps(hello()).encode() + b"\n"
    came = gathered(line, b"GET / HTTP/1.0\n", line)
    return [
        ("a host of the list is taken", answer(hello()), None),
        ("another version", answer(hello(version="2.0")), "the versions differ: left is 1.0 (format %d), right is 2.0 "
         "(format %d)" % (channel.FORMAT, channel.FORMAT)),
        ("another list", answer(hello(hosts=HOSTS[:3])), "the lists of hosts differ: left has " + ",".join(HOSTS)),
        ("an address that is not in the list", (answer(hello(addr="192.0.2.9")) or "")[:50],
         "the address 192.0.2.9 is none of the other hosts: "),
        ("left's own address", (answer(hello(addr=HOSTS[0])) or "")[:21], "the address 192.0.2.1"),
        ("a host that is there", answer(hello(addr=HOSTS[1])), "host 2 (192.0.2.2) has connected already: each host "
         "connects once, with an --addr of its own"),
        ("another left", (answer(hello(side="left")) or "")[:18], "both ends are left"),
        ("an end with --peer", answer({key: value for key, value in hello().items() if key != "hosts"}),
         "left has --hosts, and right has --peer: give both the same --hosts"),
        ("one host comes, twice, and another program", (came[0], len([one for one in came[1] if one.startswith(
            "refused a connection")]), came[3]), ([0, 2], 2, None)),
        ("those that do not come are named", came[2], [
            "host %d ((address)) has not connected within 0 s (--wait): start tools/field.sh right there with the same "
            "--hosts, and let it reach --control" % place for place in (2, 4)]),
        ("when none comes left says on which hosts to start it", gathered()[3], "no other host has connected within 0 s: "
         "start tools/field.sh right with the same --hosts on 192.0.2.2, 192.0.2.3, 192.0.2.4")]


# ---- The prediction ----

def script(folder, text):
    path = os.path.join(folder, predict.PROGRAM)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return predict.predict(folder, predict.model(good(), 4096, [PAIR]), "all-to-one", 4)


PAIR = {"host": 2, "result": "pass", "gbps": 8.0, "round_trip_us": 30.0}
VALUES = '{"payload_gbps": 7.5, "jain": 0.9, "resent_share": 0.5, "lost_share": 0}'


def prediction():
    stated = predict.model(good(link_rate="25g", switch_buffer=256, dev="0000:3b:00.0"), 1024, [PAIR])
    found = predict.model(good(), 4096, [PAIR, {**PAIR, "gbps": 9.0, "round_trip_us": 20.0}])
    nothing = predict.model(good(), 4096, [{**PAIR, "result": "fail", "round_trip_us": None}])
    with tempfile.TemporaryDirectory() as folder:
        answers = [script(folder, text) for text in (
            "echo '%s'\n" % VALUES, "echo broken\n", "echo 'fabric: host 1' >&2; exit 1\n")]
    return [
        ("what is stated counts", [stated[key] for key in ("mbit", "mbit_from", "buffer_kb", "buffer_from",
                                                           "delay_unknown")], [25000, "stated", 256, "stated", False]),
        ("what is measured: the fastest pair on the wire, the shortest round trip", [found[key] for key in (
            "mbit", "mbit_from", "rtt_ns", "rtt_from", "buffer_kb", "buffer_from", "delay_unknown")],
         [9180, "measured", 20000, "measured", 1000, "assumed", True]),
        ("without a rate there is no prediction", predict.predict("/", nothing, "all-to-one", 4)[1],
         "no pair of hosts has a rate: give --link-rate"),
        ("the program's numbers", answers[0], ({"payload_gbps": 7.5, "jain": 0.9, "resent_share": 0.5, "lost_share": 0.0},
                                               None)),
        ("a program that prints something else", answers[1][0] is None and "gives no numbers" in answers[1][1], True),
        ("a program that fails", answers[2], (None, "fabric: host 1")),
        ("the program's options", predict.command("b", stated, "all-to-all", 8)[1:], [
            "predict", "--pattern", "all-to-all", "--hosts", "8", "--mbit", "25000", "--mtu", "1024", "--rtt-ns", "30000",
            "--buffer-kb", "256", "--message", "16384", "--depth", "32"]),
        ("Jain's index", [hosts_report.jain(one) for one in ([3, 3, 3], [5, 0], [0, 0], [])], [1.0, 0.5, 0.0, 0.0])]


def pages(report):
    predicted = {"payload_gbps": 3.0, "jain": 0.5, "resent_share": 0.0, "lost_share": 0.0}
    members = {0: "sink", 1: "send", 3: "send"}
    ends = [Fake(0), Fake(1), Fake(3)]
    for end in ends:
        end.ask("host_open", role=members[end.place], members=list(members), path_mtu=4096)
    results = {end.place: end.answer("host_stop") for end in ends}
    results[1]["reason"] = traffic.hidden("no answer from 192.0.2.1")
    row = hosts_report.numbers("all-to-one", members, results, 4096, predicted)
    row.update(result="fail", reason="host 2: late", no_prediction=None)
    text = hosts_report.page(report, row)
    return [
        ("measured, predicted and ratio stand side by side", "| payload, all flows, Gb/s | 1.000 | 3.000 | 0.33 |" in text
         and "| Jain's index of the flows | 1.000 | 0.500 | 2.00 |" in text, True),
        ("a ratio to 0 is left out", "| packets sent again, % | 0.9901 | 0.0000 |  |" in text, True),
        ("the page says what the simulation was given", "the fastest pair of hosts, alone" in text and
         "assumed: --switch-buffer states it" in text, True),
        ("it has a row for each host, also for one that took no part", [
            "| %s |" % words in text for words in ("1 | sink", "2 | send", "3 | no", "4 | send")], [True] * 4),
        ("it hides addresses", ("192.0.2" in text, "no answer from (address)" in text), (False, True)),
        ("it says how to read it", "A ratio of the payload near 1" in text and "What this page contains" in text, True)]


def main():
    report, run = whole_run()
    return cases.run(lists() + shell() + senders() + run + failures() + coming() + prediction() + pages(report))


if __name__ == "__main__":
    sys.exit(main())
