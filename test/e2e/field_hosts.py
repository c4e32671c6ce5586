#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/field.sh between several hosts, network namespaces with a net_af_packet port each on one bridge:
4, or 8 with ROCADE_TEST_LONG=1, or as many as the argument says. All to one, one to all and all to all
are measured and predicted; another version, another list and a second host of the same address are
refused; a host that is missing and one that is killed are named, and the others measured."""

import json
import math
import os
import re
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS  # noqa: E402
from limit import work_s  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import LONG, SCRATCH, SOURCE, add_space, ip, is_root  # noqa: E402

KIT = os.path.join(SOURCE, "tools", "field.sh")
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 8 if LONG else 4
PORT = 7590
FRAMES = "qpairs=1,framecnt=1024,blocksz=20480,framesz=5120"
MTU = 4200
PATTERNS = ("all-to-one", "one-to-all", "all-to-all")


def address(i):
    return "192.0.2.%d" % (i + 1)


def control(i):
    return "198.51.100.%d" % (i + 1)


def network():
    """Adds a namespace for each host, and one with the bridges between their ports and between their control
    interfaces. Returns those of the hosts."""
    spaces = [add_space("h%d" % i) for i in range(COUNT)]
    wire = add_space("wire")
    for bridge, mtu in (("br0", MTU), ("br1", 1500)):
        ip("-n", wire, "link", "add", bridge, "type", "bridge", "mcast_snooping", "0")
        ip("-n", wire, "link", "set", bridge, "mtu", str(mtu), "up")
    for i, space in enumerate(spaces):
        for name, bridge, mtu in (("eth0", "br0", MTU), ("mgmt", "br1", 1500)):
            peer = "%s-%d" % (name, i)
            ip("-n", space, "link", "add", name, "mtu", str(mtu), "type", "veth", "peer", "name", peer, "mtu", str(mtu),
               "netns", wire)
            ip("-n", space, "link", "set", name, "up")
            ip("-n", wire, "link", "set", peer, "master", bridge, "up")
        ip("-n", space, "address", "add", control(i) + "/24", "dev", "mgmt")
        ip("-n", space, "link", "set", "lo", "up")
    return spaces


def folder(name):
    path = os.path.join(SCRATCH, name)
    os.makedirs(path, exist_ok=True)
    return path


class Host(Process):
    """The field kit on a host. count: of the list of hosts. number: its place there, if it is not i."""

    def __init__(self, spaces, i, *options, count=COUNT, number=None):
        cpus = sorted(os.sched_getaffinity(0))
        super().__init__(
            ["ip", "netns", "exec", spaces[i], KIT, "right" if i else "left", "--control", "%s:%d" % (control(0), PORT),
             "--vdev", "net_af_packet0,iface=eth0," + FRAMES,
             "--addr", address(i if number is None else number) + "/24",
             "--hosts", ",".join(address(one) for one in range(count)), "--core", str(cpus[i % len(cpus)]), "--quick",
             "--build", CLIENTS, *options], env=dict(os.environ, TMPDIR=folder("tmp%d" % i)))


def state(spaces):
    """Returns what a run must leave as it was: MTU and flags of the interfaces, files and processes."""
    out = []
    for i, space in enumerate(spaces):
        link = json.loads(ip("-json", "-n", space, "link", "show", "eth0"))[0]
        out.append((link["mtu"], sorted(link["flags"]), os.listdir(folder("tmp%d" % i)),
                    process.run(["ip", "netns", "pids", space]).stdout.split()))
    return out


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def report_of(out, left):
    path = os.path.join(out, "field-hosts.json")
    if not os.path.exists(path):
        case("left writes a report", False, left.text)
        return None
    return json.loads(read(path))


# Another version speaks to left, and then a host of another list.
OTHERS = """
import json, socket, sys
for version, hosts in (("9.9.9", sys.argv[3].split(",")), (sys.argv[4], ["192.0.2.1", "192.0.2.2", "192.0.2.99"])):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 20) as s:
        s.settimeout(20)
        s.sendall(json.dumps({"kit": "rocade-field", "format": 1, "version": version, "side": "right",
                              "addr": "192.0.2.2", "hosts": hosts}).encode() + b"\\n")
        print(s.makefile().readline(), end="", flush=True)
"""


def others(spaces):
    version = process.run([os.path.join(CLIENTS, "app/testpmd/rocade-testpmd"), "--", "-V"],
                          check=True).stdout.split()[-1]
    done = process.run(["ip", "netns", "exec", spaces[1], sys.executable, "-c", OTHERS, control(0), str(PORT),
                        ",".join(address(i) for i in range(COUNT)), version], check=True)
    words = [json.loads(line)["refused"] for line in done.stdout.splitlines()]
    case("left refuses another version and another list, and says why", len(words) == 2 and
         words[0].startswith("the versions differ: left is %s" % version) and "right is 9.9.9" in words[0] and
         words[1].startswith("the lists of hosts differ: left has 192.0.2.1,192.0.2.2"), words)


def whole_run(spaces):
    before = state(spaces)
    out = folder("whole")
    left = Host(spaces, 0, "--out", out, "--switch-buffer", "500")
    left.wait_line("waiting")
    others(spaces)
    first = Host(spaces, 1)
    left.wait_line("host 2 (192.0.2.2) has connected")
    twice = Host(spaces, 2, number=1)
    code = twice.wait()
    case("a second host of the same address is refused, with the address", code == 3 and
         "left refuses: host 2 (192.0.2.2) has connected already" in twice.text, (code, twice.text))
    rights = [first] + [Host(spaces, i) for i in range(2, COUNT)]
    codes = [left.wait(300)] + [right.wait(30) for right in rights]
    case("all ends end with status 0 and PASS", not any(codes) and all(
        end.text.rstrip().endswith("PASS") for end in [left, *rights]),
        (codes, left.text, [right.text for right in rights]))
    after = state(spaces)
    case("the hosts are as before", before == after, (before, after))
    report = report_of(out, left)
    if report is None:
        return
    check_report(report, left)
    pages = {name: read(os.path.join(out, "field-" + name + ".md")) for name in PATTERNS}
    check_pages(report, pages)
    text = json.dumps(report) + "".join(pages.values())
    private = [socket.gethostname(), SCRATCH, *map(address, range(COUNT)), *map(control, range(COUNT))]
    found = [word for word in private if re.search(r"\b%s\b" % re.escape(word), text)] + \
        re.findall(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", text)
    case("report and pages have no host name, path, IP or MAC address", not found, found)


def check_report(report, left):
    case("the report says what it is", [report[key] for key in (
        "kit", "format", "quick", "result", "reason", "hosts", "problems", "path_mtu")] ==
        ["rocade-field-hosts", 1, True, "pass", None, COUNT, [], 4096], report)
    case("it has the facts of each host", sorted(report["ends"]) == sorted(str(i + 1) for i in range(COUNT)) and all(
        end["facts"]["device"] == "net_af_packet" for end in report["ends"].values()), report["ends"])
    case("the path MTU is found for all hosts", all(
        "  host %d (%s): path MTU 4096 arrives in both directions" % (i + 1, address(i)) in left.text
        for i in range(1, COUNT)), left.text)
    case("a pair has a rate and a round trip", [row["host"] for row in report["pairs"]] == [2] and
         report["pairs"][0]["gbps"] > 0 and report["pairs"][0]["round_trip_us"] > 0, report["pairs"])
    model = report["model"]
    case("the simulation gets the measured rate and round trip, and the stated buffer", (
        model["mbit_from"], model["rtt_from"], model["buffer_from"], model["buffer_kb"], model["mtu"]) ==
        ("measured", "measured", "stated", 500, 4096) and
        abs(model["mbit"] / 1e3 / report["pairs"][0]["gbps"] - 1.02) < 0.05, model)
    rows = report["patterns"]
    flows = {"all-to-one": COUNT - 1, "one-to-all": COUNT - 1, "all-to-all": COUNT * (COUNT - 1)}
    case("each pattern has all hosts, and a message of each flow arrived", [row["pattern"] for row in rows] ==
         list(PATTERNS) and all(row["result"] == "pass" and len(row["members"]) == len(row["ends"]) == COUNT and
                                len(row["flows"]) == flows[row["pattern"]] and
                                all(flow["messages"] > 0 for flow in row["flows"]) for row in rows), rows)
    case("each byte was verified", all(end["bytes"] == end["bytes_verified"] and (end["bytes"] > 0) == (
        end["role"] != "send") for row in rows for end in row["ends"]), rows)
    case("messages of a flow are those of its ends", all(
        sum(flow["messages"] for flow in row["flows"] if flow["to"] == end["host"]) == end["received_messages"]
        for row in rows for end in row["ends"]), rows)
    case("each pattern is predicted, and has the ratio", all(
        row["no_prediction"] is None and row["predicted"]["payload_gbps"] > 0 and 0 < row["predicted"]["jain"] <= 1 and
        row["measured"]["payload_gbps"] > 0 and 0 < row["measured"]["jain"] <= 1 and abs(
            row["ratio"]["payload_gbps"] * row["predicted"]["payload_gbps"] / row["measured"]["payload_gbps"] - 1) < 1e-6
        for row in rows), (rows, left.text))
    for row in rows:
        print("# %d hosts, %s: %s" % (COUNT, row["pattern"], ", ".join(
            "%s %.4f predicted %.4f" % (name, row["measured"][name], row["predicted"][name])
            for name in row["measured"])), flush=True)


def check_pages(report, pages):
    case("each page has measured, predicted and ratio, and each host", all(
        "Result: **pass**" in pages[row["pattern"]] and "| payload, all flows, Gb/s | %.3f | %.3f | %.2f |" % (
            row["measured"]["payload_gbps"], row["predicted"]["payload_gbps"], row["ratio"]["payload_gbps"])
        in pages[row["pattern"]] and all("| %d | %s |" % (end["host"], end["role"]) in pages[row["pattern"]]
                                         for end in row["ends"]) for row in report["patterns"]), pages)
    case("each is a page", all(len(page.splitlines()) < 60 + 5 * COUNT for page in pages.values()), pages)


def missing_and_killed(spaces):
    """Of four hosts of a list the last does not come, and host 3 is killed while all send to one."""
    out = folder("killed")
    rights = [Host(spaces, i, count=4) for i in (1, 2)]
    for right in rights:
        right.wait_line("connecting")
    wait_s = math.ceil(4 * work_s())  # they connect five times a second
    left = Host(spaces, 0, "--out", out, "--wait", str(wait_s), "--patterns", "all-to-one", count=4)
    left.wait_line("all-to-one")
    os.killpg(rights[1].pid, signal.SIGKILL)
    rights[1].wait()
    codes = [left.wait(200)] + [right.wait(30) for right in rights if right is not rights[1]]
    report = report_of(out, left)
    if report is None:
        return
    case("a host that is missing and one that is killed are named, and the status is 1", set(codes) == {1} and
         report["result"] == "fail" and any(
             "host 4 (192.0.2.4) has not connected within %d s (--wait)" % wait_s in line for line in left.text.splitlines()) and
         "host 3 (192.0.2.3) takes part no more: the other end has ended" in left.text and
         [problem[:problem.index(" (")] for problem in report["problems"]] == ["host 4", "host 3"],
         (codes, report["problems"], left.text))
    row = report["patterns"][0] if report["patterns"] else {}
    case("the others are measured", row.get("result") == "pass" and row["members"] == [1, 2] and all(
            flow["messages"] > 0 for flow in row["flows"]), (row, left.text))


def wrong(spaces):
    two = ",".join([address(0), address(1)])
    for options, words in (
            (["--hosts", two], "invalid --hosts '%s': 2 hosts: expected 3 to 64 addresses, or for two hosts --peer" % two),
            (["--hosts", two + "," + address(1)], "entry 3, '192.0.2.2', comes twice: expected each host once"),
            (["--peer", address(1)], "not allowed with argument")):
        got, text = Host(spaces, 0, *options).finish(30)
        case("%s: status 2 and one line" % " ".join(options), got == 2 and text.count("\n") == 1 and words in text,
             (got, text))


def main():
    if not is_root():
        return run(lambda: skip("field_hosts", "needs root"))
    spaces = network()
    return run(lambda: whole_run(spaces), lambda: missing_and_killed(spaces), lambda: wrong(spaces))


if __name__ == "__main__":
    sys.exit(main())
