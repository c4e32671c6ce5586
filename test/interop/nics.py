#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""nics.py [NIC]...: drivers of real NICs, in a virtual machine with an IOMMU. dpdk-devbind.py gives
the NICs that QEMU emulates to vfio-pci, and Rocade's programs drive them, by the commands of "A
physical NIC" in README.md. The other end is rocade-testpmd on this host, or rdma_rxe in the virtual
machine. One more NIC of the machine is a port of rocaded on this host: net_vhost, by vhost-user.

    guest: Rocade on vfio-pci, and eth0 with rxe0  -- taps -- bridge -- veth -- Rocade on this host
    guest: eth of virtio-net with rxe1             -- vhost-user ----------- net_vhost, rocaded

ROCADE_TEST_LONG=1 runs every case with every NIC. With words, runs only the cases of these NICs:
e1000e, vmxnet3, virtio-net-pci, vhost-user."""

import os
import re
import shlex
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import bench  # noqa: E402
import ports  # noqa: E402
from daemon import Daemon, wait_for_port  # noqa: E402
from guest import Guest  # noqa: E402
from process import Process  # noqa: E402
from tap import case  # noqa: E402
from testpmd import LONG, PROGRAM, SCRATCH, SOURCE, eal, ip  # noqa: E402

KERNEL, LEFT, RIGHT = "192.0.2.5", "192.0.2.1", "192.0.2.2"
VHOST, VHOST_GUEST = "198.51.100.1", "198.51.100.2"
VHOST_MAC = "02:00:00:00:00:20"
SOCKET = os.path.join(SCRATCH, "vhost.sock")
VLAN_MESSAGES = 1000
# 1 s for an answer. A vCPU that sends without a pause keeps QEMU from reading the tap meanwhile.
PATIENT = " --timeout 18"
PINGPONG = "ibv_rc_pingpong -c -n 30"
PORT = 18515
INSTALLED = ["app/testpmd/rocade-testpmd", "app/rocaded/rocaded", "app/run/rocade-run"]


class Nic:
    """A NIC of the virtual machine. scattered: it splits frames of 4 KiB. engines: of the case with
    a VLAN. row: of test/ports.def."""

    def __init__(self, row, kind, slot, kernel, driver, options="", queues=1, scattered=False,
                 engines=1):
        self.kind, self.kernel, self.driver = kind, kernel, driver
        self.options, self.queues = options, queues
        self.scattered, self.engines = scattered, engines
        self.row = row
        self.address = "0000:00:%02x.0" % slot
        self.tap = "nic%d" % slot
        self.mac = "02:00:00:00:01:%02x" % slot

    def hardware(self):
        """Returns the options of QEMU."""
        slot = self.address[-4:-2]
        return ["-netdev", "tap,id=%s,ifname=%s,script=no,downscript=no%s" % (
                    self.tap, self.tap, ",queues=%d" % self.queues if self.queues > 1 else ""),
                "-device", "%s,netdev=%s,romfile=,mac=%s,addr=0x%s%s" % (
                    self.kind, self.tap, self.mac, slot, self.options)]


E1000E = Nic(ports.Row("e1000e"), "e1000e", 0x10, "e1000e", "net_e1000_em", scattered=True)
VMXNET3 = Nic(ports.Row("vmxnet3"), "vmxnet3", 0x11, "vmxnet3", "net_vmxnet3", engines=2)
# rss=on: QEMU computes the hash with the key that the driver sets. A full ring then stops the NIC
# for good (QEMU 7.2 keeps the frame with another queue than the one whose buffers it waits for). So
# the rings hold several times the packets that the sender has on the way at once.
VIRTIO = Nic(ports.Row("virtio-net"), "virtio-net-pci", 0x12, "virtio-pci", "net_virtio", queues=4,
             engines=4, options=",mq=on,rss=on,rx_queue_size=1024,vectors=10,iommu_platform=on,"
             "disable-legacy=on")
NICS = [E1000E, VMXNET3, VIRTIO]


# ---- README.md ----

def readme_blocks():
    """Returns the blocks of commands in the section "A physical NIC"."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        section = file.read().split("### A physical NIC\n")[1].split("\n## ")[0]
    return [re.sub(r"^ +", "", block, flags=re.M).strip().replace("\\\n", " ")
            for block in re.findall(r"^ *```\n(.*?)^ *```$", section, re.M | re.S)]


class Commands:
    """The commands of README.md, in its order."""

    def __init__(self):
        self.pages, self.bind, self.give_back, run, self.serve = readme_blocks()
        self.sink, self.send = run.splitlines()

    @staticmethod
    def of(commands, *nics):
        """The commands for these NICs. Nothing else of them is changed."""
        return commands.replace("0000:3b:00.0", " ".join(nic.address for nic in nics)).replace(
            "=ixgbe ", "=%s " % nics[0].kernel)


# ---- The virtual machine ----

class NicBench(bench.Bench):
    """The bridge with a tap for each NIC, and the guest."""

    def boot(self):
        for nic in NICS:
            ip("tuntap", "add", nic.tap, "mode", "tap", *["multi_queue"] * (nic.queues > 1))
            ip("link", "set", nic.tap, "mtu", "9000", "txqueuelen", "10000", "master", "br0", "up")
        hardware = ["-machine", "q35", "-smp", "3", "-m", "2560",
                    "-object", "memory-backend-memfd,id=ram,size=2560M,share=on",
                    "-machine", "memory-backend=ram",
                    "-device", "intel-iommu,intremap=on,aw-bits=48"]
        for nic in NICS:
            hardware += nic.hardware()
        # Without vectors: with MSI-X and without KVM, QEMU 7.2 crashes when a driver starts a vhost
        # device.
        hardware += ["-chardev", "socket,id=vhost,path=%s,reconnect=1" % SOCKET,
                     "-netdev", "vhost-user,id=vhost,chardev=vhost",
                     "-device", "virtio-net-pci,netdev=vhost,romfile=,addr=0x18,vectors=0,mac=" +
                     VHOST_MAC]
        self.vhost = self.rocaded()
        return Guest(SCRATCH, bench.CACHE, "guest0", "02:00:00:00:00:02", KERNEL, [],
                     [KERNEL + "/24"], ["e1000e", "vmxnet3"], hardware, "intel_iommu=on",
                     files=True)

    @staticmethod
    def rocaded():
        """QEMU waits for this port before the machine starts."""
        return Daemon("--address", VHOST + "/24", "--mtu", "4184", "--sleep-us", "100",
                      "--log-level", "info",
                      eal=eal(0, "net_vhost0,iface=%s" % SOCKET, memory_mb=256))

    def index_of(self, address, device):
        """Returns the GID index of an address of the guest."""
        want = "%02x%02x:%02x%02x" % tuple(int(part) for part in address.split("."))
        text = self.guest.until("cd /sys/class/infiniband/%s/ports/1/gids; grep ffff:%s [0-9]" % (
            device, want))
        return int(text.split(":")[0])

    def inside(self, commands, timeout_s=60):
        """Runs commands among the files of this machine. Returns the exit status and the output."""
        return self.guest.run(self.guest.shell(commands), timeout_s)

    def prepare(self):
        """Makes the programs of the build appear as installed ones."""
        self.set_mtu(4200)
        links = "".join("ln -s %s /usr/local/bin/\n" % os.path.join(bench.BUILD, program)
                        for program in INSTALLED)
        folder = "/usr/local/lib/x86_64-linux-gnu"
        return self.inside("set -e\nmkdir -p %s\n%sln -s %s/drivers/librocade-verbs.so %s/" % (
            folder, links, bench.BUILD, folder))

    def set_mtu(self, mtu):
        for name in ("ours0", "cable0"):
            ip("link", "set", name, "mtu", str(mtu))
        self.mtu = mtu
        self.guest.run("ip link set eth0 mtu %d" % mtu)

    def testpmd(self, command):
        """Starts the program here, with the options that the command has for it."""
        options = shlex.split(command.split(" -- ")[1])
        return Process([PROGRAM] + self.eal() + ["--"] + options)


def bind(the_bench, commands):
    """The commands of README.md until DPDK has the NICs."""
    status, text = the_bench.inside(commands.pages + "\ngrep HugePages_Total /proc/meminfo\n" +
                                    "mount -t hugetlbfs")
    case("README: 512 hugepages", status == 0 and re.search("HugePages_Total: +512$", text, re.M) and
         "/dev/hugepages" in text, text)
    status, text = the_bench.inside(
        "set -e\n" + commands.of(commands.bind, *NICS) + "\n" + "".join(
            "readlink /sys/bus/pci/devices/%s/driver\n" % nic.address for nic in NICS), 120)
    for nic in NICS:
        case("README: %s goes from %s to vfio-pci" % (nic.kind, nic.kernel),
             status == 0 and text.count("/vfio-pci\n") == len(NICS) and
             re.search(r"^%s .*\bdrv=%s\b" % (re.escape(nic.address), nic.kernel), text, re.M),
             (status, text))
    status, text = the_bench.guest.run("ls /sys/kernel/iommu_groups; dmesg | grep DMAR")
    case("the guest has an IOMMU", "DMAR: IOMMU enabled" in text or re.search(
        r"DMAR.*Intel\(R\) Virtualization Technology for Directed I/O", text), text)


def give_back(the_bench, commands):
    for nic in NICS if LONG else [E1000E]:
        status, text = the_bench.inside("%s\nls /sys/bus/pci/devices/%s/%s" % (
            commands.of(commands.give_back, nic), nic.address,
            "virtio*/net" if nic is VIRTIO else "net"))
        case("README: the kernel gets %s back" % nic.kind, status == 0 and "eth" in text, text)


# ---- Messages ----

def passed(text, least=1):
    """Whether a receiver's table shows verified bytes, all of them correct."""
    verified = re.search(r"bytes verified +([\d,]+)", text)
    return "\nPASS" in text and verified and \
        int(verified.group(1).replace(",", "")) >= least and re.search(r"bad bytes +0$", text, re.M)


def shorter(command):
    """Returns the sender's command for this test."""
    return command.replace("-t 10", "-t 2") + PATIENT


class Background:
    """Commands that run in the guest. Their output is in a file there."""

    count = 0

    def __init__(self, the_bench, commands, until=None):
        Background.count += 1
        self.guest = the_bench.guest
        self.file = "/tmp/background%d" % Background.count
        self.talk = self.guest.start(self.guest.shell("{ %s\n} >%s 2>&1" % (commands, self.file)))
        if until:
            self.guest.until("grep -q '%s' %s" % (until, self.file), 60)

    def interrupt(self, program):
        """As Ctrl-C."""
        self.guest.run("killall -INT %s" % program)

    def finish(self, timeout_s=60):
        """Returns the exit status and the output."""
        status, _ = self.guest.finish(self.talk, timeout_s)
        return status, self.guest.run("cat %s" % self.file)[1]


def receives(the_bench, commands, nic):
    guest = Background(the_bench, commands.of(commands.sink, nic), "waiting for")
    here = the_bench.testpmd(shorter(commands.send))
    code, said = here.finish(60)
    guest.interrupt("rocade-testpmd")
    status, text = guest.finish()
    case("README: rocade-testpmd receives with %s" % nic.driver, code == 0 and status == 0 and
         passed(text, 1 << 20), "%s, %s\n%s\n%s" % (code, status, text, said))


def sends(the_bench, commands, nic):
    here = the_bench.testpmd(commands.sink)
    status, text = the_bench.inside(shorter(commands.of(commands.send, nic)))
    here.send_signal(signal.SIGINT)
    code, said = here.finish(30)
    case("README: rocade-testpmd sends with %s" % nic.driver, code == 0 and status == 0 and
         "\nPASS" in text and passed(said, 1 << 20),
         "%s, %s\n%s\n%s" % (code, status, text, said))


def counter(text, name):
    """Returns the values of a counter, for the port and for each engine."""
    return [int(value) for value in re.findall(r"^    %s +(\d+)" % name, text, re.M)]


def in_a_vlan(the_bench, nic):
    """Frames with a tag, received by several queues, of path MTU 4096."""
    options = "--if-mtu 4184 --vlan 7 --qps 16 --size 16k -c %d" % VLAN_MESSAGES
    ends = [" -- --mode %s --addr %s/24 --peer %s %s" % (mode, own, peer, options)
            for mode, own, peer in (("sink", RIGHT, LEFT), ("send", LEFT, RIGHT))]
    script = "\\n".join(["start", "wait", "show port all", "show engine all", "quit", ""])
    guest = Background(the_bench, "printf '%s' | ROCADE_LOG=info rocade-testpmd -l 2 -a %s%s "
                       "--engines %d --sleep -i" % (script, nic.address, ends[0], nic.engines),
                       "waiting for")
    here = the_bench.testpmd(ends[1] + PATIENT + " --peer-window 128")
    code, said = here.finish(60)
    status, text = guest.finish()
    nic.row.saw(text)
    nic.row.case()
    case("%s receives frames of its VLAN" % nic.driver, code == 0 and status == 0 and re.search(
        r"bytes verified +%s$" % re.escape("{:,}".format(VLAN_MESSAGES << 14)), text, re.M) and
         nic.address + " receives the frames of VLAN 7 only, by its filter" in text,
         "%s, %s\n%s\n%s" % (code, status, text[-3000:], said))
    frames = counter(text, "rx_roce")
    copied = counter(text, "rx_linearised")
    case("%s %s frames of path MTU 4096" % (
        nic.driver, "splits" if nic.scattered else "does not split"),
         copied and (copied[0] >= 4 * VLAN_MESSAGES) == nic.scattered and
         (copied[0] == 0) != nic.scattered, (copied, frames))
    if nic is VIRTIO:
        queues = counter(text, "rx_packets")[1:]
        print("# %s: frames by queue: %s" % (nic.driver, queues))
        case("the RSS of %s spreads the frames over its queues" % nic.driver,
             len(queues) == nic.engines and sum(n > 0.02 * sum(queues) for n in queues) >= 3, queues)
        handed, steered = counter(text, "rx_handoff")[0], counter(text, "qps_steered")[0]
        case("QPs are connected on the engines that receive their packets from %s" % nic.driver,
             steered == 16 and handed <= 0.05 * frames[0], (steered, handed, frames))


# ---- rdma_rxe ----

def pair(server, client):
    """Returns commands that run both ends in the guest."""
    return """timeout 60 %s >/tmp/server 2>&1 & server=$!
        until ss -Hltn | grep -q :%d || ! kill -0 $server; do sleep 0.1; done
        timeout 60 %s; status=$?
        wait $server && cat /tmp/server && exit $status""" % (server, PORT, client)


def with_rxe(the_bench, commands, nic):
    """Verbs programs over rocaded, to those over the kernel's rdma_rxe on another NIC."""
    daemon = Background(the_bench, commands.of(commands.serve, nic), "listening at")
    index = the_bench.index_of(KERNEL, "rxe0")
    kernel = "%s -d rxe0 -g %d" % (PINGPONG, index)
    rocade = "rocade-run %s -g 0" % PINGPONG
    for name, server, client in (("rdma_rxe", kernel, rocade + " " + KERNEL),
                                 ("Rocade", rocade, kernel + " " + KERNEL)):
        status, text = the_bench.inside(pair(server, client), 130)
        case("%s and rdma_rxe: ibv_rc_pingpong, %s is the server" % (nic.driver, name),
             status == 0 and len(re.findall("^30 iters", text, re.M)) == 2 and
             "::ffff:" + LEFT in text and "::ffff:" + KERNEL in text, (status, text))
    daemon.interrupt("rocaded")
    status, text = daemon.finish()
    case("README: rocaded serves with %s" % nic.driver, status == 0, (status, text))


# ---- vhost-user ----

def vhost_pair(the_bench, daemon, name):
    guest, index = the_bench.guest, the_bench.index_of(VHOST_GUEST, "rxe1")
    kernel, rocade = "%s -d rxe1 -g %d" % (PINGPONG, index), PINGPONG.split() + ["-g", "0"]
    talk = guest.start("timeout 60 " + kernel)
    guest.until("netstat -ltn | grep -q :%d" % PORT)
    code, said = daemon.start(*rocade, KERNEL).finish(60)
    status, text = guest.finish(talk, 60)
    case("vhost-user and rdma_rxe%s: rdma_rxe is the server" % name, code == 0 and status == 0 and
         "30 iters" in said and "30 iters" in text and "::ffff:" + VHOST_GUEST in said,
         "%s, %s\n%s\n%s" % (code, status, said, text))
    server = daemon.start(*rocade)
    wait_for_port(PORT, server, 20)
    status, text = guest.run("timeout 60 %s %s" % (kernel, bench.BRIDGE), 70)
    code, said = server.finish(60)
    case("vhost-user and rdma_rxe%s: Rocade is the server" % name, code == 0 and status == 0 and
         "30 iters" in said and "30 iters" in text and "::ffff:" + VHOST in text,
         "%s, %s\n%s\n%s" % (code, status, said, text))


def vhost_user(the_bench, daemon):
    guest = the_bench.guest
    device = guest.until("grep -l %s /sys/class/net/*/address" % VHOST_MAC).split("/")[4]
    carrier = "grep -q %d /sys/class/net/" + device + "/carrier"
    status, text = guest.run("""ip link set %s mtu 4200 up && ip addr add %s/24 dev %s &&
        rdma link add rxe1 type rxe netdev %s""" % (device, VHOST_GUEST, device, device))
    case("vhost-user: the guest has the NIC", status == 0, text)
    vhost_pair(the_bench, daemon, "")
    daemon.process.send_signal(signal.SIGTERM)
    code = daemon.process.wait(20)
    row = ports.Row("vhost-user to a guest")
    row.saw(daemon.process.text.replace("rocaded: ", "rocade: "))
    row.case()
    guest.until(carrier % 0)
    daemon.serve()
    guest.until(carrier % 1)
    case("rocaded ends, and the guest reconnects to the next one", code == 0, code)
    vhost_pair(the_bench, daemon, ", after a restart of rocaded")


def wanted(name):
    return not sys.argv[1:] or name in sys.argv[1:]


def with_nic(the_bench, commands, nic):
    started = time.monotonic()
    if LONG or nic is E1000E:
        receives(the_bench, commands, nic)
    if LONG or nic is VMXNET3:
        sends(the_bench, commands, nic)
    in_a_vlan(the_bench, nic)
    with_rxe(the_bench, commands, nic)
    print("# %s: %.0f s" % (nic.kind, time.monotonic() - started))


def walk(the_bench):
    commands = Commands()
    with the_bench.vhost as daemon:
        if wanted("vhost-user"):
            vhost_user(the_bench, daemon)
    status, text = the_bench.prepare()
    case("the guest has the files of this machine", status == 0, text)
    bind(the_bench, commands)
    for nic in NICS:
        if wanted(nic.kind):
            with_nic(the_bench, commands, nic)
    give_back(the_bench, commands)


def main():
    for tool, package in (("depmod", "kmod"), ("dpdk-devbind.py", "dpdk"), ("lspci", "pciutils")):
        if not shutil.which(tool):
            print("1..0 # SKIP no %s here (Debian package %s)" % (tool, package))
            return 0
    return bench.main(walk, NicBench)


if __name__ == "__main__":
    sys.exit(main())
