# SPDX-License-Identifier: BSD-3-Clause
"""The report: one JSON file and one page of the same content."""

import json
import os
import time

import check
from channel import FORMAT

NAMES = {
    "kernel": "kernel", "dpdk": "DPDK", "system": "system", "architecture": "architecture", "cpu": "CPU",
    "virtual": "virtual machine", "cores": "cores", "core": "polling core",
    "numa_nodes": "NUMA nodes", "numa_node_of_core": "NUMA node of that core",
    "cpu_features": "CPU features", "governor": "frequency governor", "clock": "clock source",
    "memory_mib": "memory, MiB", "hugepages": "hugepages", "iommu": "IOMMU",
    "device": "port", "driver": "kernel driver", "numa_node_of_device": "NUMA node of the port",
    "pcie": "PCIe", "link_mbps": "link, Mb/s", "interface_mtu": "interface MTU",
    "rdma_devices": "RDMA devices of the kernel"}
CONTENTS = """This page and the JSON file of the same name contain what stands in the tables above:
kind of CPU, NIC, kernel and memory of both hosts, and rates. They contain no host name, IP address,
MAC address, serial number, user name, path or payload. Addresses and paths in messages are
replaced.
"""


def new(version, quick):
    return {"kit": "rocade-field", "format": FORMAT, "rocade": version, "quick": quick,
            "date": time.strftime("%Y-%m-%d", time.gmtime()), "result": "fail", "reason": None,
            "ends": {}, "control_ms": None, "path": [], "path_mtu": None, "measurements": [],
            "interop": []}


def table(head, lines):
    out = ["| %s |" % " | ".join(head), "|%s" % ("---|" * len(head))]
    return out + ["| %s |" % " | ".join("" if cell is None else str(cell).replace("|", "/")
                                        for cell in line) for line in lines] + [""]


def measurement_lines(report):
    for one in report["measurements"]:
        latency = one["latency_us"]
        lost = one["lost_share"]
        yield [one["title"], one["from"], one["result"],
               "%.3f" % (one["messages_per_s"] / 1e6), "%.3f" % one["gbps"],
               "%.2f / %.2f / %.2f" % (latency["p50"], latency["p99"], latency["p999"])
               if latency else "", "" if lost is None else "%.4f" % (lost * 100),
               one["dropped_on_purpose"], one["retransmits"],
               "yes" if one["verified"] and one["result"] == "pass" else "no",
               "" if one["reason"] is None else check.plain(one["reason"], 300)]


def page(report):
    out = ["# Rocade field report", "",
           "Rocade %s, %s%s. Result: **%s**%s." % (
               report["rocade"], report["date"], ", quick run" if report["quick"] else "",
               report["result"], "" if report["reason"] is None
               else " (%s)" % check.plain(report["reason"], 300)), "", "## Hosts", ""]
    ends = [report["ends"].get(side) for side in ("left", "right")]
    out += table(["", "left", "right"], [
        [title, *(end and end["facts"][key] for end in ends)] for key, title in NAMES.items()])
    for side, end in zip(("left", "right"), ends):
        out += ["- %s: %s" % (side, warning) for warning in (end or {}).get("warnings", [])]
    out += ["", "## Path", ""]
    out += table(["path MTU", "result", "reason"],
                 [[one["path_mtu"], one["result"], one["reason"]] for one in report["path"]])
    out += ["## Measurements", ""]
    out += table(["case", "from", "result", "M messages/s", "Gb/s", "p50 / p99 / p99.9 us",
                  "lost %", "dropped on purpose", "sent again", "verified", "reason"],
                 measurement_lines(report))
    out += ["## Interoperability", ""]
    out += table(["device of", "device", "driver", "result", "us a round trip of 4096 B",
                  "reason"],
                 [[one["device_end"], one["device"], one["driver"], one["result"],
                   one["usec_per_round"], one["reason"]] for one in report["interop"]])
    return "\n".join(out + ["## What this page contains", "", CONTENTS])


def write(report, folder):
    """Returns the paths of both files."""
    paths = [os.path.join(folder, "field-left." + kind) for kind in ("json", "md")]
    with open(paths[0], "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    with open(paths[1], "w", encoding="utf-8") as file:
        file.write(page(report))
    return paths
