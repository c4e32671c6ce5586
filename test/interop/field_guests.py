#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/field.sh between two guests in QEMU, each with an e1000e NIC behind an emulated IOMMU: the
kit lends the NICs to vfio-pci, measures, runs a pingpong with rdma_rxe of the right guest, and
gives the NICs back. The guests run the programs of this machine."""

import base64
import glob
import json
import os
import re
import shlex
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "e2e", "lib"))
import guest  # noqa: E402
from kernel import kernel, module_order  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import BUILD, SCRATCH, SOURCE  # noqa: E402

MODULES = ["virtio_pci", "virtio_net", "9pnet_virtio", "9p", "overlay", "crc32_generic", "e1000e",
           "vfio_iommu_type1", "vfio_pci", "rdma_rxe", "ib_umad", "rdma_ucm"]
LIMIT_S = 600
CONTROL, WIRE = 5001, 5002  # TCP ports between the two QEMUs: one for each network
SIDES = ("left", "right")
MAC = {"control": "02:00:00:00:01:0%d", "nic": "02:00:00:00:02:0%d", "rxe": "02:00:00:00:03:0%d"}

SCRIPT = """
export PATH=%(path)s HOME=/root
interface() { grep -l "$1" /sys/class/net/*/address | cut -d / -f 5; }
ip link set lo up
ip address add 198.51.100.%(own)d/24 dev "$(interface %(control)s)"
ip link set "$(interface %(control)s)" up
rxe=$(interface %(rxe)s)
if [ -n "$rxe" ]; then
	ip address add 192.0.2.9/24 dev "$rxe"
	ip link set "$rxe" up
	rdma link add rxe0 type rxe netdev "$rxe"
fi
pci=$(basename "$(readlink -f "/sys/class/net/$(interface %(nic)s)/device")")
mkdir /run/out
%(kit)s %(side)s --build %(build)s --control 198.51.100.1:7590 --dev "$pci" --bind --quick \\
	--addr 192.0.2.%(own)d/24 --peer 192.0.2.%(other)d --out /run/out
echo "status $?"
echo "driver $(basename "$(readlink "/sys/bus/pci/devices/$pci/driver")")"
echo "pages $(cat /proc/sys/vm/nr_hugepages)"
[ ! -e /run/out/field-left.json ] || echo "report $(base64 -w 0 /run/out/field-left.json)"
"""


def script(side):
    own = SIDES.index(side) + 1
    return SCRIPT % {
        "path": shlex.quote(os.environ["PATH"]), "own": own, "other": 3 - own, "side": side,
        "kit": shlex.quote(os.path.join(SOURCE, "tools/field.sh")),
        "build": shlex.quote(os.path.realpath(BUILD)),
        **{name: mac % own for name, mac in MAC.items()}}


def image(side, folder):
    """Writes the initramfs of a guest."""
    path = os.path.join(SCRATCH, "initramfs-" + side)
    with open(path, "wb") as file:
        archive = guest.Archive(file)
        archive.copy(os.path.join(guest.HERE, "field_init"), "/init")
        archive.copy(guest.BUSYBOX, "/bin/busybox")
        order = module_order(folder, MODULES)
        for module in order:
            archive.copy(module, "/modules/" + os.path.basename(module))
        archive.add("/modules/order", "".join(
            os.path.basename(module) + "\n" for module in order).encode())
        archive.add("/script", script(side).encode())
        archive.end()
    return path


class Guest:
    def __init__(self, side, folder):
        number = SIDES.index(side) + 1
        self.console = os.path.join(SCRATCH, "console-" + side)
        how = "listen" if side == "right" else "connect"
        networks = [("control", CONTROL, "virtio-net-pci"), ("wire", WIRE, None)]
        # The wire ends in a hub, with the NIC under test and, at the right end, one for rdma_rxe.
        nics = [("nic", "e1000e")] + [("rxe", "virtio-net-pci")] * (side == "right")
        options = []
        for name, port, device in networks:
            options += ["-netdev", "socket,id=%s,%s=127.0.0.1:%d" % (name, how, port)]
            if device:
                options += ["-device", "%s,netdev=%s,romfile=,mac=%s" % (
                    device, name, MAC[name] % number)]
        options += ["-netdev", "hubport,id=hub,hubid=1,netdev=wire"]
        for name, device in nics:
            options += ["-netdev", "hubport,id=%s,hubid=1" % name, "-device",
                        "%s,netdev=%s,romfile=,mac=%s" % (device, name, MAC[name] % number)]
        self.process = Process([
            guest.QEMU, "-M", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "2048",
            "-nodefaults", "-no-reboot", "-display", "none", "-serial", "file:" + self.console,
            "-kernel", glob.glob(os.path.join(folder, "boot", "vmlinuz-*"))[0],
            "-initrd", image(side, folder), "-append",
            "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check intel_iommu=on",
            "-device", "intel-iommu,intremap=on,caching-mode=on", "-fsdev",
            "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap", "-device",
            "virtio-9p-pci,fsdev=root,mount_tag=root", *options])

    def said(self):
        try:
            with open(self.console, encoding="utf-8", errors="replace") as file:
                return file.read().replace("\r", "")
        except OSError:
            return ""

    def word(self, name):
        """Returns what the script has said about itself, or None."""
        found = re.search(r"^%s (\S+)$" % name, self.said(), re.M)
        return found[1] if found else None


def listening(port):
    with open("/proc/net/tcp", encoding="utf-8") as file:
        return any(line.split()[1].endswith(":%04X" % port) and line.split()[3] == "0A"
                   for line in list(file)[1:])


def guests():
    folder = kernel(os.environ.get("ROCADE_CACHE") or os.path.join(BUILD, "interop-cache"))
    right = Guest("right", folder)
    until(lambda: listening(CONTROL) and listening(WIRE), 60)
    both = [Guest("left", folder), right]
    ended = until(lambda: all(one.process.poll() is not None for one in both), LIMIT_S, 0.5)
    for one in both:
        one.process.kill()
    said = "\n".join(one.said() for one in both)
    case("both guests run to their end", ended, said)
    case("both ends end with status 0", [one.word("status") for one in both] == ["0", "0"], said)
    case("both NICs are with their driver again, and no hugepage is reserved",
         [(one.word("driver"), one.word("pages")) for one in both] == [("e1000e", "0")] * 2, said)
    text = both[0].word("report")
    report = json.loads(base64.b64decode(text)) if text else {"measurements": [], "interop": [],
                                                              "path_mtu": None, "ends": {}}
    case("the NICs were with vfio-pci behind an IOMMU", said.count("back by hand") == 2 and all(
        end["facts"]["driver"] == "e1000e" and end["facts"]["iommu"] != "none"
        for end in report["ends"].values()), report["ends"])
    case("packets of path MTU 4096 arrive", report["path_mtu"] == 4096, said)
    rows = report["measurements"]
    case("all measurements pass, verified", len(rows) == 6 and all(
        row["result"] == "pass" and row["bytes_verified"] == row["bytes"] > 0 for row in rows),
        rows)
    case("the pingpong with rdma_rxe passes", [
        (one["device"], one["driver"], one["result"]) for one in report["interop"]] == [
            (None, None, "not present"), ("rxe0", "rdma_rxe", "pass")], report["interop"])


def main():
    why = guest.missing()
    if why:
        return run(lambda: skip("field kit between guests", why))
    return run(guests)


if __name__ == "__main__":
    sys.exit(main())
