# SPDX-License-Identifier: BSD-3-Clause
"""The report of several hosts: one JSON file, and a page for each pattern with what was measured beside what
the fabric predicts."""

import json
import os
import time

import check
import patterns
from channel import FORMAT
from report import table

COLUMNS = (("device", "port"), ("link_mbps", "link, Mb/s"), ("cpu", "CPU"), ("cores", "cores"),
           ("core", "polling core"), ("kernel", "kernel"), ("dpdk", "DPDK"))
HOW = """The prediction is that of the fabric, which simulates these hosts at one switch with the numbers of the
table below. A ratio of the payload near 1 says that the pattern is as fast as links of the rate below allow. If
that rate was measured, the ratio does not tell the rate of the NIC: compare that rate with the link's. A lower
ratio with few packets sent again points to the hosts, such as cores that hosts share or a core of another NUMA node, and one
with more packets sent again than predicted points to the network: smaller buffers, loss, or a slower link. A
ratio above 1: the rate given to the simulation is too low. --link-rate states it.
"""
CONTENTS = """This page and field-hosts.json contain what stands in the tables above: kind of CPU, NIC and kernel of the
hosts, and rates; the JSON also memory, clock and the like. They contain no host name, IP address, MAC address,
serial number, user name, path or payload. Addresses and paths in messages are replaced.
"""
SHOWN = (("payload_gbps", "payload, all flows, Gb/s", 1, 3), ("jain", "Jain's index of the flows", 1, 3),
         ("resent_share", "packets sent again, %", 100, 4), ("lost_share", "packets lost, %", 100, 4))


def new(version, options):
    return {"kit": "rocade-field-hosts", "format": FORMAT, "rocade": version, "quick": options.quick,
            "date": time.strftime("%Y-%m-%d", time.gmtime()), "result": "fail", "reason": None,
            "hosts": len(options.hosts), "problems": [], "ends": {}, "path": [], "path_mtu": None, "pairs": [],
            "model": None, "patterns": []}


def jain(values):
    """Jain's fairness index, as of rocade-testpmd. 0 for no or only zero values."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def row_of(place, role, result):
    """A row of the report for a host."""
    receives = role in ("sink", "both")
    return {"host": place + 1, "role": role, "reason": result["reason"], "seconds": result["seconds"],
            "received_gbps": result["gbps"] if receives else 0,
            "received_messages": result["messages"] if receives else 0,
            "bytes_verified": result["bytes_verified"], "bytes": result["bytes"] if receives else 0,
            "sent_messages": result["sent_messages"], "sent_again": result["retransmits"],
            "frames_sent": result["frames_sent"], "frames_received": result["frames_received"],
            "drops": result["drops"]}


def share(part, whole):
    return part / whole if whole else 0.0


def numbers(pattern, roles, results, path_mtu, predicted):
    """Returns the row of a pattern. results: of the hosts that have one."""
    members = list(roles)
    ends = [row_of(place, roles[place], results[place]) for place in members if place in results]
    flows = []
    for place in members:
        if place in results and roles[place] in ("sink", "both"):
            for partner, peer in zip(patterns.partners(place, roles[place], members), results[place]["peers"]):
                flows.append({"from": partner + 1, "to": place + 1, "messages": peer["messages"]})
    packets = sum(end["sent_messages"] for end in ends) * -(-patterns.SIZE // path_mtu)
    again = sum(end["sent_again"] for end in ends)
    sent = sum(end["frames_sent"] for end in ends)
    lost = max(sent - sum(end["frames_received"] for end in ends), 0)
    measured = {"payload_gbps": sum(end["received_gbps"] for end in ends),
                "jain": jain([flow["messages"] for flow in flows]),
                "resent_share": share(again, packets + again), "lost_share": share(lost, sent)}
    ratio = {name: measured[name] / predicted[name] if predicted and predicted[name] else None for name in measured}
    return {"pattern": pattern, "members": [place + 1 for place in members], "path_mtu": path_mtu,
            "measured": measured, "predicted": predicted, "ratio": ratio, "ends": ends, "flows": flows}


def verdict(report):
    good = report["patterns"] and not report["reason"] and not report["problems"] and \
        all(one["result"] == "pass" for one in report["patterns"] + report["pairs"])
    return "pass" if good else "fail"


def comparison(row):
    lines = []
    for name, title, times, digits in SHOWN:
        predicted, ratio = row["predicted"], row["ratio"][name]
        lines.append([title, "%.*f" % (digits, row["measured"][name] * times),
                      "%.*f" % (digits, predicted[name] * times) if predicted else None,
                      None if ratio is None else "%.2f" % ratio])
    return table(["", "measured", "predicted", "measured / predicted"], lines)


def given(model):
    return table(["given to the simulation", "value", "from"], [
        ["rate of each link, Mb/s", model["mbit"], model["mbit_from"] and
         {"stated": "--link-rate", "measured": "the fastest pair of hosts, alone"}[model["mbit_from"]]],
        ["buffer of each port of the switch, kB", model["buffer_kb"],
         {"stated": "--switch-buffer", "assumed": "assumed: --switch-buffer states it"}[model["buffer_from"]]],
        ["round trip of an idle network, us", "%.1f" % (model["rtt_ns"] / 1e3),
         {"measured": "half round trips of 64 B of a pair", "assumed": "assumed"}[model["rtt_from"]]],
        ["path MTU", model["mtu"], "measured"],
        ["congestion control by", "loss" if model["delay_unknown"] else "delay and loss",
         "the kind of the first host's port"]])


def host_lines(report, row):
    ends = {end["host"]: end for end in row["ends"]}
    for host in range(1, report["hosts"] + 1):
        end, known = ends.get(host), report["ends"].get(str(host), {}).get("facts", {})
        yield [host, "no" if end is None else end["role"], end and "%.3f" % end["received_gbps"],
               end and end["sent_messages"], end and end["sent_again"],
               None if end is None or end["reason"] is None else check.plain(end["reason"], 300),
               *(known.get(key) for key, _ in COLUMNS)]


def page(report, row):
    reason = row["reason"] or report["reason"]
    out = ["# Rocade field report: %s" % row["pattern"].replace("-", " "), "",
           "Rocade %s, %s%s, %d of %d hosts. Result: **%s**%s." % (
               report["rocade"], report["date"], ", quick run" if report["quick"] else "", len(row["members"]),
               report["hosts"], row["result"], "" if reason is None else " (%s)" % check.plain(reason, 300)),
           "", "## Measured and predicted", ""]
    out += comparison(row)
    if row["no_prediction"]:
        out += ["No prediction: %s." % row["no_prediction"], ""]
    out += [HOW]
    out += given(report["model"])
    out += ["## Hosts", "", "Host 1 is the one of all to one and one to all. Each pair of hosts has a QP, with "
            "messages of %d bytes. Every byte was verified." % patterns.SIZE, ""]
    out += table(["host", "takes part as", "received, Gb/s", "messages sent", "packets sent again", "reason",
                  *(title for _, title in COLUMNS)], host_lines(report, row))
    out += ["- %s" % check.plain(problem, 300) for problem in report["problems"]]
    out += ["- host %s: %s" % (host, warning) for host, end in report["ends"].items() for warning in end["warnings"]]
    return "\n".join(out + ["", "## What this page contains", "", CONTENTS])


def write(report, folder):
    """Returns the paths of the files."""
    path = os.path.join(folder, "field-hosts.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    paths = [path]
    for row in report["patterns"]:
        paths.append(os.path.join(folder, "field-%s.md" % row["pattern"]))
        with open(paths[-1], "w", encoding="utf-8") as file:
            file.write(page(report, row))
    return paths
