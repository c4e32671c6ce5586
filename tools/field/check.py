# SPDX-License-Identifier: BSD-3-Clause
"""What a host is: facts that explain its rates, and what is wrong with it. No names, addresses or
serial numbers."""

import glob
import os
import platform
import re

from channel import list_of, number, optional, record, text
from hostinfo import (clock_is_reliable, clock_source, cpu_flags, field, governor, hugepages,
                      interface_of_vdev, iommu_groups, node_of_cpu, read, run, whole)

FACTS = {
    "kernel": text, "dpdk": text, "system": text, "architecture": text, "cpu": text,
    "cores": number(1, 1 << 16), "core": number(0, 1 << 16), "virtual": text,
    "cpu_features": text, "governor": optional(text), "clock": text,
    "numa_nodes": number(1, 4096), "numa_node_of_core": number(0, 4096),
    "memory_mib": number(), "hugepages": text, "iommu": text,
    "device": text, "driver": optional(text), "numa_node_of_device": optional(number(-1, 4096)),
    "pcie": optional(text), "link_mbps": optional(number(-1)), "interface_mtu": optional(number()),
    "rdma_devices": text,
}
CHECK = record({"facts": record(FACTS), "warnings": list_of(text)})
FEATURES = ("avx2", "avx512f", "vpclmulqdq", "constant_tsc", "nonstop_tsc", "pmull", "crc32")


def plain(value, limit=120):
    """Returns text that the other end accepts."""
    return re.sub(r"[^A-Za-z0-9 .,:;+()@/%=_'-]", "?", str(value))[:limit]


def cpu_of_node(node):
    """Returns the core to poll on: the last one of this NUMA node that this process may use."""
    cpus = sorted(os.sched_getaffinity(0))
    near = [cpu for cpu in cpus if node is not None and node >= 0 and node_of_cpu(cpu) == node]
    return (near or cpus)[-1]


def interface_of(port):
    """Returns the kernel's interface of a port, or None."""
    if port.nic:
        return (port.nic.interfaces() or [None])[0]
    return interface_of_vdev(port.vdev)


def device_facts(port):
    nic, facts = port.nic, {"driver": None, "numa_node_of_device": None, "pcie": None}
    if nic:
        ids = [(nic.read(name) or "?").replace("0x", "") for name in ("vendor", "device")]
        kind = "virtual function" if os.path.exists(os.path.join(nic.path, "physfn")) else "PCI"
        facts.update(device=plain("%s %s" % (kind, ":".join(ids))), driver=nic.driver(),
                     numa_node_of_device=whole(nic.read("numa_node")))
        if "GT/s" in (nic.read("current_link_speed") or ""):
            facts["pcie"] = plain("%s x%s" % (nic.read("current_link_speed"),
                                              nic.read("current_link_width")))
    else:
        facts["device"] = plain(re.sub(r"\d*(,.*)?\Z", "", port.vdev))
    name = interface_of(port)
    facts["link_mbps"] = whole(read("/sys/class/net/%s/speed" % name)) if name else None
    facts["interface_mtu"] = whole(read("/sys/class/net/%s/mtu" % name)) if name else None
    return facts


def host_facts(core):
    cpuinfo = read("/proc/cpuinfo", "")
    flags = cpu_flags(cpuinfo)
    groups = iommu_groups()
    return {
        "kernel": plain(platform.release()),
        "dpdk": plain((run("pkg-config", "--modversion", "libdpdk") or "unknown").strip()),
        "architecture": plain(platform.machine()),
        "system": plain(field(read("/etc/os-release"), "PRETTY_NAME") or "unknown"),
        "cpu": plain(field(cpuinfo, "model name") or "unknown"),
        "cores": os.cpu_count() or 1, "core": core,
        "virtual": "yes" if "hypervisor" in flags else "no",
        "cpu_features": " ".join(name for name in FEATURES if name in flags) or "none of interest",
        "governor": governor(core),
        "clock": plain(clock_source()),
        "numa_nodes": max(len(glob.glob("/sys/devices/system/node/node[0-9]*")), 1),
        "numa_node_of_core": node_of_cpu(core),
        "memory_mib": (whole((field(read("/proc/meminfo"), "MemTotal") or "0 kB").split()[0])
                       or 0) // 1024,
        "hugepages": hugepages()[0],
        "iommu": "%d groups" % groups if groups else "none",
    }


def warnings(port, facts):
    out = []
    node, core_node = facts["numa_node_of_device"], facts["numa_node_of_core"]
    if node is not None and node >= 0 and node != core_node:
        out.append("core %d is of NUMA node %d, the NIC of node %d: choose another --core" % (
            facts["core"], core_node, node))
    if facts["governor"] not in (None, "performance"):
        out.append("the frequency governor is %s, not performance: latency varies" %
                   plain(facts["governor"]))
    if not clock_is_reliable(facts["architecture"], facts["clock"]):
        out.append("the clock source is %s: the TSC may not be reliable here" % facts["clock"])
    if facts["cores"] < 2:
        out.append("one core only: the poll loop shares it with everything else")
    if os.getloadavg()[0] > facts["cores"] * 0.7:
        out.append("the host is busy (load %.1f on %d cores)" % (os.getloadavg()[0],
                                                                  facts["cores"]))
    if port.nic and hugepages()[1] < port.MEMORY_MB:
        out.append("fewer than %d MiB of hugepages are free: most NICs need them" % port.MEMORY_MB)
    if port.nic and not port.nic.iommu():
        out.append("the NIC is in no IOMMU group")
    if "net_tap" in facts["device"]:
        out.append("net_tap is no measure of a network")
    return out


def check(port, rdma):
    """rdma: text that names the RDMA devices of this host."""
    facts = {**host_facts(port.core), **device_facts(port), "rdma_devices": plain(rdma)}
    if facts["driver"] is not None:
        facts["driver"] = plain(facts["driver"])
    return CHECK({"facts": facts, "warnings": [plain(w, 300) for w in warnings(port, facts)]})
