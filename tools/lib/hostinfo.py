# SPDX-License-Identifier: BSD-3-Clause
"""Reads what a host is: files of /proc and /sys, and what `ip` prints. For the field kit
(tools/field) and for rocade-doctor (app/doctor), which contains this file."""

import glob
import json
import os
import re
import subprocess

# Drivers that give a PCI device to user space.
USER_DRIVERS = ("vfio-pci", "uio_pci_generic", "igb_uio")
# Their PMDs work beside the kernel's driver.
SHARED_DRIVERS = ("mlx5_core", "mlx4_core", "mana")


def read(path, default=None):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return default


def field(content, name):
    """Returns the value of the first line "name: value" or "name = value", or None."""
    match = re.search(r"^%s\s*[:=]\s*\"?([^\"\n]*)" % re.escape(name), content or "", re.M)
    return match[1].strip() if match else None


def whole(value):
    return int(value) if value and re.fullmatch(r"-?\d+", value) else None


def run(*command):
    """Returns the output of a command, or None if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def rows(*arguments):
    """Returns what `ip -json` prints."""
    try:
        return json.loads(run("ip", "-json", *arguments) or "[]")
    except ValueError:
        return []


def cpu_flags(cpuinfo):
    """Returns the features of the CPU, from /proc/cpuinfo of x86 or arm64."""
    return set((field(cpuinfo, "flags") or field(cpuinfo, "Features") or "").split())


def node_of_cpu(cpu):
    nodes = glob.glob("/sys/devices/system/cpu/cpu%d/node*" % cpu)
    return int(re.sub(r".*node", "", nodes[0])) if nodes else 0


def governor(cpu):
    """Returns the frequency governor of a core, or None."""
    return read("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor" % cpu)


def clock_source():
    return read("/sys/devices/system/clocksource/clocksource0/current_clocksource", "unknown")


def clock_is_reliable(architecture, source):
    """Whether the kernel trusts the counter that DPDK reads as a clock."""
    return architecture != "x86_64" or source in ("tsc", "kvm-clock")


def iommu_groups():
    return len(glob.glob("/sys/kernel/iommu_groups/*"))


def noiommu(sys="/sys"):
    """Whether vfio works without an IOMMU."""
    return read(os.path.join(sys, "module/vfio/parameters/enable_unsafe_noiommu_mode")) == "Y"


def hugepages():
    """Returns what there is, and MiB that are free."""
    found, free_mib = [], 0
    for folder in sorted(glob.glob("/sys/kernel/mm/hugepages/hugepages-*kB")):
        size = int(re.search(r"-(\d+)kB", folder)[1])
        total, free = (int(read(os.path.join(folder, name), "0") or 0)
                       for name in ("nr_hugepages", "free_hugepages"))
        free_mib += free * size // 1024
        if total:
            found.append("%d of %d of %d KiB free" % (free, total, size))
    return ", ".join(found) or "none", free_mib


def driver_of(device):
    """Returns the driver of the device with this folder in /sys, or None."""
    try:
        return os.path.basename(os.readlink(os.path.join(device, "driver")))
    except OSError:
        return None


def interfaces_of(device):
    """Returns the kernel's interfaces of the device with this folder in /sys."""
    try:
        return sorted(os.listdir(os.path.join(device, "net")))
    except OSError:
        return []


def interface_of_vdev(vdev):
    """Returns the kernel's interface that the arguments of a virtual device name, or None."""
    match = re.search(r"(?:^|,)iface=([^,]+)", vdev)
    return match[1] if match else None
