# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the machine: hugepages, IOMMU, bindings, limits, CPU features, cores. Each takes the
facts and returns findings."""

import re

import daemons
from finding import good, note, wrong
from hostinfo import SHARED_DRIVERS, USER_DRIVERS, clock_is_reliable

FILES_LEAST = 256
# Without them DPDK and ISA-L do not run, or the ICRC is slow.
NEEDED_X86 = ("sse4_2", "pclmulqdq")
FAST_X86 = ("avx512f", "vpclmulqdq")
NEEDED_ARM = ("crc32",)


def hugepages(f):
    """The port needs hugepages, and the host has them."""
    if f.port is None or not f.port.huge:
        return [good("hugepages", "no port needs hugepages")]
    if f.daemon is not None:
        return [good("hugepages", "the daemon has its hugepages (%s)" % f.hugepages)]
    if f.hugepages_free_mib >= f.port.memory_mb:
        return [good("hugepages", "%d MiB are free (%s)" % (f.hugepages_free_mib, f.hugepages))]
    # The kernel takes the number of all pages, also of those that other processes use.
    found = re.search(r"(\d+) of (\d+) of 2048 KiB free", f.hugepages)
    used = int(found[2]) - int(found[1]) if found else 0
    pages = used + (f.port.memory_mb + 64) // 2
    return [wrong("hugepages", "the port needs %d MiB of hugepages, and %d MiB are free (%s)" % (
        f.port.memory_mb, f.hugepages_free_mib, f.hugepages),
        "echo %d >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages" % pages,
        "mkdir -p /dev/hugepages && mount -t hugetlbfs hugetlbfs /dev/hugepages")]


def iommu(f):
    """A NIC that vfio-pci lends to DPDK is behind an IOMMU."""
    if f.port is None or f.port.kind != "pci" or f.pci is None:
        return [good("iommu", "no port needs an IOMMU")]
    if f.pci["driver"] in SHARED_DRIVERS:
        return [good("iommu", "the driver %s needs none" % f.pci["driver"])]
    if f.pci["iommu"]:
        return [good("iommu", "the NIC %s is in an IOMMU group" % f.port.device)]
    if f.noiommu:
        return [note("iommu", "the NIC %s is in no IOMMU group, and vfio-pci works without one: "
                     "the NIC can write to all memory of this machine" % f.port.device)]
    parameter = "amd_iommu=on" if "AMD" in f.cpu["vendor"] else "intel_iommu=on"
    why = "the NIC %s is in no IOMMU group, and vfio-pci needs one: turn the IOMMU on in the " \
        "firmware and with the kernel parameter %s" % (f.port.device, parameter)
    return [wrong("iommu", why, "echo 1 >/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
                  "  # in a virtual machine, without protection")]


def bindings(f):
    """The NIC has a driver that DPDK can use."""
    if f.port is None or f.port.kind != "pci":
        return [good("bindings", "no port needs a NIC that is bound to DPDK")]
    if f.pci is None:
        return [wrong("bindings", "there is no PCI device %s" % f.port.device,
                      "dpdk-devbind.py --status-dev net")]
    if f.pci["driver"] in USER_DRIVERS + SHARED_DRIVERS:
        return [good("bindings", "the NIC %s is with %s" % (f.port.device, f.pci["driver"]))]
    has = "no driver" if f.pci["driver"] is None else "the kernel's driver %s%s" % (
        f.pci["driver"], "".join(" (interface %s)" % name for name in f.pci["interfaces"]))
    return [wrong("bindings", "the NIC %s is with %s: DPDK cannot use it. Do not take the NIC of "
                  "your ssh session" % (f.port.device, has),
                  "modprobe vfio-pci", "dpdk-devbind.py --bind=vfio-pci " + f.port.device)]


def open_files(limits):
    """Returns the soft limit of open files in the text of /proc/PID/limits, or None."""
    match = re.search(r"^Max open files\s+(\d+)", limits or "", re.M)
    return int(match[1]) if match else None


def limits(f):
    """Limits of this process and of the daemon, and what users hold of what they may hold."""
    out = []
    if f.memfd_error:
        out.append(wrong("limits", "this process cannot create shared memory (memfd_create: %s): "
                         "a client needs that. A container must allow this system call"
                         % f.memfd_error))
    if f.files_limit < FILES_LEAST:
        out.append(note("limits", "a process may open %d files: QPs with completion channels may "
                        "need more" % f.files_limit, "ulimit -n 4096"))
    state = f.status or {}
    files, wanted = open_files(f.daemon_limits), state.get("limits", {}).get("descriptors", {})
    if files is not None and wanted and wanted["used"] + 64 > files:
        out.append(wrong("limits", "the daemon may open %d files, and its clients hold %d: it will "
                         "refuse clients" % (files, wanted["used"]), "prlimit --pid %d --nofile=65536"
                         % f.daemon.pid))
    for user in state.get("users", []):
        out += user_limits(user, state["limits"])
    return out or [good("limits", "no limit is reached")]


def user_limits(user, all_limits):
    full = ["%d of %d %s" % (user[kind], limit["user"], kind) for kind, limit in all_limits.items()
            if user.get(kind, 0) >= limit["user"] > 0]
    if full:
        return [wrong("limits", "user %d holds all that one user may hold: %s. The daemon refuses "
                      "more" % (user["uid"], ", ".join(full)), "rocade-status")]
    if user.get("refused"):
        return [note("limits", "the daemon has refused %d requests of user %d, who held too much"
                     % (user["refused"], user["uid"]), "rocade-status")]
    return []


def cpu(f):
    """The CPU has the instructions and the clock that Rocade needs."""
    architecture, flags = f.cpu["architecture"], f.cpu["flags"]
    needed = {"x86_64": NEEDED_X86, "aarch64": NEEDED_ARM}.get(architecture, ())
    missing = [name for name in needed if name not in flags]
    out = []
    if missing:
        out.append(wrong("cpu", "the CPU does not have %s, or the virtual machine hides it: give "
                         "the machine the CPU model of its host" % ", ".join(missing)))
    if not clock_is_reliable(architecture, f.cpu["clock"]):
        out.append(note("cpu", "the kernel's clock source is %s, so that it does not trust the TSC, "
                        "which Rocade reads: timeouts may be wrong" % f.cpu["clock"],
                        "cat /sys/devices/system/clocksource/clocksource0/available_clocksource"))
    if architecture == "x86_64" and not set(FAST_X86) <= flags:
        out.append(note("cpu", "without %s the CRC of long messages takes more time" % " and ".join(
            name for name in FAST_X86 if name not in flags)))
    return out or [good("cpu", "the CPU has all features that Rocade uses")]


def polls(f):
    """Whether the daemon occupies a core all the time."""
    if f.port is None or f.port.kind in ("local", "none"):
        return False
    return daemons.option(f.port, "sleep-us", "0") == "0"


def cores(f):
    """There are cores for the daemon and its clients."""
    count, quota = f.cpu["cores"], f.cpu["quota"]
    if quota is not None and quota < count:
        have, text = quota, "the cgroup allows %.1f cores" % quota
    else:
        have, text = count, "%d core%s may be used" % (count, "" if count == 1 else "s")
    if polls(f) and have < 2:
        return [wrong("cores", "%s, and a daemon with a port polls one all the time: its clients "
                      "wait for it" % text, "rocaded ... --sleep-us 200")]
    if have < 2:
        return [note("cores", text + ": the daemon and its clients wait for each other")]
    if f.cpu["governor"] not in (None, "performance"):
        return [note("cores", "%s; the frequency governor is %s, so that latency varies" % (
            text, f.cpu["governor"]), "cpupower frequency-set -g performance")]
    return [good("cores", text)]


CHECKS = (cpu, cores, hugepages, iommu, bindings, limits)
