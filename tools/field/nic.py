# SPDX-License-Identifier: BSD-3-Clause
"""Gives a NIC to DPDK and back to the kernel, by /sys/bus/pci.

A NIC that the host needs is refused: one whose interface, or a bond, bridge or VLAN on top of it,
carries the default route, the control connection, an ssh session, another route or an address."""

import os
import re
import time

from hostinfo import (SHARED_DRIVERS, USER_DRIVERS, driver_of, interfaces_of, noiommu, read, rows,
                      run)
from program import Failed

ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
WAIT_S = 10


class Refused(Failed):
    """A NIC that must stay with the kernel, or cannot leave it."""


def devices_of(route):
    return [hop["dev"] for hop in [route] + route.get("nexthops", []) if "dev" in hop]


def uses(peers):
    """Returns {interface: what it is needed for}. peers: addresses of the control connection's
    other end, and of this end."""
    found = {}
    for peer, what in peers:
        for route in rows("route", "get", peer):
            for device in devices_of(route):
                found.setdefault(device, what)
    for family in ("-4", "-6"):
        routes = [route for route in rows(family, "route", "show", "table", "all")
                  if route.get("type", "unicast") == "unicast"]
        for route in routes:
            if route.get("dst") == "default":
                for device in devices_of(route):
                    found.setdefault(device, "the default route")
        for route in routes:
            if not route.get("dst", "").startswith(("fe80:", "ff")):
                for device in devices_of(route):
                    found.setdefault(device, "a route")
    for link in rows("address", "show"):
        if any(one.get("scope") == "global" for one in link.get("addr_info", [])):
            found.setdefault(link["ifname"], "an address")
    return found


def control_uses(control):
    """control: addresses of both ends of the control connection."""
    peers = [(address, "the control connection") for address in control]
    session = os.environ.get("SSH_CONNECTION", "").split()
    if session:
        peers.append((session[0].split("%")[0], "an ssh session"))
    return uses(peers)


class Nic:
    """One PCI device. sys: where sysfs is."""

    def __init__(self, address, sys="/sys"):
        self.address = address
        self.sys = sys
        self.path = os.path.join(sys, "bus/pci/devices", address)
        self.restore_to = None  # the driver that the device had
        self.links = []  # (name, up, mtu) of its interfaces before
        if not os.path.isdir(self.path):
            raise Refused("there is no PCI device %s: `dpdk-devbind.py --status-dev net` lists "
                          "those that there are" % address)

    def driver(self):
        return driver_of(self.path)

    def read(self, name):
        return read(os.path.join(self.path, name))

    def write(self, path, value):
        try:
            with open(os.path.join(self.sys, "bus/pci", path), "w", encoding="utf-8") as file:
                file.write(value)
        except OSError as error:
            raise Refused("cannot write %s to /sys/bus/pci/%s: %s" % (
                value.strip() or "nothing", path, error.strerror)) from None

    def interfaces(self):
        return interfaces_of(self.path)

    def above(self, name, seen=()):
        """Returns the interface and all that are on top of it."""
        out = [name]
        try:
            entries = os.listdir(os.path.join(self.sys, "class/net", name))
        except OSError:
            entries = []
        for entry in entries:
            upper = entry[len("upper_"):]
            if entry.startswith("upper_") and upper not in seen:
                out += self.above(upper, (*seen, name))
        return out

    def ready(self):
        """Whether DPDK can use the device as it is."""
        return self.driver() in USER_DRIVERS + SHARED_DRIVERS

    def iommu(self):
        return os.path.exists(os.path.join(self.path, "iommu_group"))

    def check(self, control, driver):
        """Raises Refused if the device must not leave the kernel, or `driver` cannot take it."""
        needed = control_uses(control)
        for name in self.interfaces():
            for user in self.above(name):
                if user in needed:
                    raise Refused("%s stays with the kernel: its interface %s%s carries %s" % (
                        self.address, name, "" if user == name else " (through %s)" % user,
                        needed[user]))
        functions = self.read("sriov_numvfs")
        if functions not in (None, "", "0"):
            raise Refused("%s stays with the kernel: it has %s virtual functions, which would end"
                          % (self.address, functions))
        if driver == "vfio-pci" and not self.iommu() and not noiommu(self.sys):
            raise Refused("vfio-pci needs an IOMMU, and there is none: turn it on in the firmware "
                          "and with intel_iommu=on or amd_iommu=on. Virtual machines: "
                          "docs/cloud.md")

    def bind(self, driver):
        """Gives the device to `driver`. unbind() restores what was before. Call check() first."""
        before = self.driver()
        if not os.path.isdir(os.path.join(self.sys, "bus/pci/drivers", driver)) and \
                run("modprobe", driver) is None:
            raise Refused("the kernel has no driver %s: modprobe fails" % driver)
        self.remember()
        self.restore_to = before or ""
        print("To give %s back by hand: dpdk-devbind.py --bind=%s %s" % (
            self.address, before or "DRIVER", self.address), flush=True)
        self.move(driver)

    def remember(self):
        self.links = []
        for name in self.interfaces():
            for link in rows("link", "show", "dev", name):
                self.links.append((name, "UP" in link.get("flags", []), link.get("mtu")))

    def move(self, driver):
        """Only `driver` matches the device while driver_override has its name."""
        self.write("devices/%s/driver_override" % self.address, driver + "\n")
        old = self.driver()
        if old is not None:
            self.write("drivers/%s/unbind" % old, self.address)
        if driver:
            self.write("drivers_probe", self.address)
            self.wait_driver(driver)

    def wait_driver(self, driver):
        end = time.monotonic() + WAIT_S
        while self.driver() != driver:
            if time.monotonic() > end:
                raise Refused("%s did not take %s within %d s: see dmesg. All devices of its IOMMU "
                              "group must leave the kernel" % (driver, self.address, WAIT_S))
            time.sleep(0.05)

    def unbind(self):
        """Gives the device back to the driver that it had."""
        if self.restore_to is None:
            return
        before, self.restore_to = self.restore_to, None
        self.move(before)
        self.write("devices/%s/driver_override" % self.address, "\n")
        end = time.monotonic() + WAIT_S
        while len(self.interfaces()) < len(self.links) and time.monotonic() < end:
            time.sleep(0.05)
        for name, up, mtu in self.links:
            run("ip", "link", "set", "dev", name, *(["mtu", str(mtu)] if mtu else []),
                *(["up"] if up else []))
        print("%s is with %s again." % (self.address, before or "no driver"), flush=True)
