#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""nvme.py SOURCE: NVMe over RDMA between SPDK on this host, over rocaded, and the kernel in the guest,
over rdma_rxe. SPDK's target serves a file to nvme-rdma, which makes a file system on it, writes files
and reads them back. nvmet-rdma serves a file to SPDK, which writes all of it, reads it back, and
lets bdevperf write, read and compare. Both ends have the same bytes each time. Each target is also
stopped and started while it is used.

SOURCE is a source tree in which SPDK is built: tools/extra/spdk.sh --linux calls this. Exit status:
77 if there is no such tree, or no guest can run."""

import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import bench  # noqa: E402
from bench import ADDRESSES, ROCADE, ROCADE6, ends  # noqa: E402
from daemon import Daemon  # noqa: E402
from hosts import Host  # noqa: E402
from iser import CHECK, FILL, same, steps  # noqa: E402
from process import run, until  # noqa: E402
from ran import Ran  # noqa: E402
from tap import case  # noqa: E402
from testpmd import LONG  # noqa: E402

MODULES = ["nvme_rdma", "nvmet_rdma", "ext4", "crc32c_generic"]
NQN = "nqn.2026-11.example.rocade:disk"
UUID = "6f1c2d0a-3b5e-4f6a-8c7d-9e0f1a2b3c4d"  # by which the kernel knows the disk again
SERVICE = "4420"
TARGET, COPY, PERF = "build/bin/nvmf_tgt", "build/bin/spdk_dd", "build/examples/bdevperf"
FILES = 8 if LONG else 3
FILE_MB = 4 if LONG else 1
DISK_MB = 2 * FILES * FILE_MB
PERF_S = 30 if LONG else 5
RESTART_S = 8
TIMEOUT_S = 300
UNTESTED = 77
# The guest is slow, and may not answer within the few seconds that are usual.
KEEP_ALIVE_S = 120

CONNECT = """set -e
rm -f /tmp/wrote /tmp/read
echo nqn={nqn},transport=rdma,traddr={address},trsvcid={service},keep_alive_tmo={keep_alive},\
reconnect_delay=1,ctrl_loss_tmo=600 >/dev/nvme-fabrics
until [ -b {disk} ]; do sleep 0.1; done
mkdir -p /mnt
cat /sys/class/nvme/nvme0/state
"""
DISCONNECT = """set -e
echo 1 >/sys/class/nvme/nvme0/delete_controller
[ ! -e {disk} ]
"""
FILL_SLOWLY = FILL.replace("cp ", "sync; sleep 0.5; cp ")
SERVE = """set -e
mount -t configfs none /sys/kernel/config
truncate -s {mb}M /tmp/disk
cd /sys/kernel/config/nvmet
mkdir subsystems/{nqn}
echo 1 >subsystems/{nqn}/attr_allow_any_host
mkdir subsystems/{nqn}/namespaces/1
cd subsystems/{nqn}/namespaces/1
echo 1 >buffered_io
echo -n /tmp/disk >device_path
echo 1 >enable
"""
LISTEN = """set -e
mkdir /sys/kernel/config/nvmet/ports/{version}
cd /sys/kernel/config/nvmet/ports/{version}
echo rdma >addr_trtype
echo ipv{version} >addr_adrfam
echo {address} >addr_traddr
echo {service} >addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/{nqn} subsystems/{nqn}
"""
RELISTEN = """set -e
sleep {after_s}
cd /sys/kernel/config/nvmet/ports/{version}/subsystems
rm {nqn}
ln -s /sys/kernel/config/nvmet/subsystems/{nqn} {nqn}
"""
WORDS = {"nqn": NQN, "service": SERVICE, "keep_alive": KEEP_ALIVE_S, "disk": "/dev/nvme0n1",
         "files": FILES, "mb": FILE_MB}


def call(method, **params):
    return {"method": method, "params": params}


def listener(version, address):
    return {"trtype": "RDMA", "adrfam": "IPv%d" % version, "traddr": address, "trsvcid": SERVICE}


def target_calls(path):
    """Returns the configuration of a target that serves a file."""
    return {"bdev": [call("bdev_aio_create", name="Disk", filename=path, block_size=512,
                          uuid=UUID)],
            "nvmf": [call("nvmf_create_transport", trtype="RDMA"),
                     call("nvmf_create_subsystem", nqn=NQN, allow_any_host=True,
                          serial_number="ROCADE1"),
                     call("nvmf_subsystem_add_ns", nqn=NQN, namespace={"bdev_name": "Disk"})] +
                    [call("nvmf_subsystem_add_listener", nqn=NQN,
                          listen_address=listener(version, address))
                     for version, (address, _) in ADDRESSES.items()]}


def initiator_calls(version):
    """Returns the configuration of an initiator, whose block device is Nvme0n1."""
    return {"bdev": [call("bdev_nvme_set_options", keep_alive_timeout_ms=KEEP_ALIVE_S * 1000,
                          bdev_retry_count=-1, ctrlr_loss_timeout_sec=-1, reconnect_delay_sec=1),
                     call("bdev_nvme_attach_controller", name="Nvme0", subnqn=NQN,
                          **listener(version, ADDRESSES[version][1]))]}


class Spdk:
    """Starts programs of SPDK as clients of the daemon. version: of its source."""

    def __init__(self, source, daemon, folder):
        self.source, self.daemon, self.folder = source, daemon, folder
        with open(os.path.join(source, "VERSION"), encoding="utf-8") as file:
            self.version = file.read().strip()

    def command(self, program, calls, *options):
        path = self.path("config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"subsystems": [{"subsystem": name, "config": config}
                                      for name, config in calls.items()]}, file)
        return [os.path.join(self.source, program), "-m", "0x1", "--no-huge", "-s", "512",
                "--disable-cpumask-locks", "--json", path, *options]

    def start(self, program, calls, *options):
        return self.daemon.start(*self.command(program, calls, "-r", self.path("rpc"), *options))

    def run(self, program, calls, *options):
        """Runs a program to its end. Returns whether it succeeded, and its output."""
        done = self.daemon.run(*self.command(program, calls, *options), timeout_s=TIMEOUT_S)
        return done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def path(self, name):
        return os.path.join(self.folder, name)


def digest(path):
    return run(["sha256sum", path], 60, check=True).stdout.split()[0]


def random_file(path):
    with open(path, "wb") as file:
        file.write(os.urandom(DISK_MB << 20))
    return path


class Target:
    """SPDK's target, which serves a file."""

    def __init__(self, spdk):
        self.spdk, self.disk = spdk, spdk.path("disk.img")
        with open(self.disk, "wb") as file:
            file.truncate(DISK_MB << 20)
        self.start()

    def start(self):
        self.process = self.spdk.start(TARGET, target_calls(self.disk))
        for _ in ADDRESSES:
            self.process.wait_line("NVMe/RDMA Target Listening")

    def kill(self):
        self.process.kill()


def details(guest, target, text):
    return "%s\n%s\n%s\n%s" % (text, guest.run("dmesg | tail -30")[1],
                               target.process.text[-2000:], guest.state())


def used_by_kernel(guest, target, version):
    """The kernel uses the disk. Returns whether each step has succeeded and the disk is the same at
    both ends."""
    said = ""
    parts = [("connects", CONNECT), ("writes files", FILL), ("reads them back", CHECK),
             ("disconnects", DISCONNECT)]
    for name, status, text in steps(guest, parts, dict(WORDS, address=ADDRESSES[version][0])):
        case("IPv%d, SPDK's target: the kernel %s" % (version, name), status == 0,
             status == 0 or details(guest, target, text))
        said = text if name == "reads them back" else said
    return same(said, FILES, digest(target.disk))


def walk_target(guest, daemon, spdk):
    """SPDK's target and Linux's initiator."""
    target = Target(spdk)
    for version in ADDRESSES:
        with Ran(ends(daemon, guest)) as ran:
            good = used_by_kernel(guest, target, version)
        if ran.case("IPv%d, SPDK's target: every byte is the same in the guest and on the disk" %
                    version, good, 2 * FILES * FILE_MB << 20):
            ran.row("SPDK's `nvmf_tgt`, a disk of Linux's `nvme-rdma`", None, "RC over RDMA-CM",
                    "files compared", built=spdk.version)
    restart_target(guest, daemon, target)
    target.kill()
    case("the daemon keeps nothing of SPDK's target", until(daemon.idle), daemon.status())


def reconnects(guest):
    """Returns how often the kernel has connected again."""
    return int(guest.run("dmesg | grep -c 'Successfully reconnected'")[1])


def restart_target(guest, daemon, target):
    """The target is killed while the kernel writes, and starts again."""
    words = dict(WORDS, address=ROCADE)
    guest.run(CONNECT.format(**words), TIMEOUT_S)
    before, connected = Host.wire(daemon), reconnects(guest)
    writer = guest.start(FILL_SLOWLY.format(**words))
    under_way = until(lambda: Host.wire(daemon) > before + (FILE_MB << 20))
    target.kill()
    case("SPDK's target is killed while the kernel writes", under_way)
    target.start()
    status, text = guest.finish(writer, TIMEOUT_S)
    case("SPDK's target starts again, and the kernel ends its writes", status == 0,
         status == 0 or details(guest, target, text))
    case("the kernel has connected again", reconnects(guest) > connected,
         details(guest, target, text))
    status, text = guest.run((CHECK + DISCONNECT).format(**words), TIMEOUT_S)
    case("every byte is the same after that", same(text, FILES, digest(target.disk)),
         details(guest, target, text))


def walk_initiator(guest, daemon, spdk):
    """Linux's target and SPDK's initiator."""
    status, text = guest.run(SERVE.format(nqn=NQN, mb=DISK_MB))
    if not case("the kernel serves a disk", status == 0, text):
        return
    for version in ADDRESSES:
        status, text = guest.run(LISTEN.format(version=version, nqn=NQN, service=SERVICE,
                                               address=ADDRESSES[version][1]))
        if case("IPv%d, the kernel's target listens" % version, status == 0, text):
            copied_by_spdk(guest, daemon, spdk, version)
            compared_by_spdk(guest, daemon, spdk, version)
    restart_listener(guest, spdk)
    case("the daemon keeps nothing of SPDK's initiator", until(daemon.idle), daemon.status())


def copied_by_spdk(guest, daemon, spdk, version):
    """SPDK writes a whole disk and reads it back."""
    source, copy = random_file(spdk.path("source.img")), spdk.path("copy.img")
    block, calls = "--bs=131072", initiator_calls(version)
    with Ran(ends(daemon, guest)) as ran:
        wrote = spdk.run(COPY, calls, "--if=" + source, "--ob=Nvme0n1", block)
        _, on_target = guest.run("sha256sum /tmp/disk", 60)
        read = spdk.run(COPY, calls, "--ib=Nvme0n1", "--of=" + copy, block)
    name = "IPv%d, the kernel's target: " % version
    case(name + "SPDK writes", wrote[0], wrote[1] + guest.state())
    case(name + "SPDK reads", read[0], read[1] + guest.state())
    want = digest(source)
    if ran.case(name + "every byte is the same at SPDK and on the disk",
                on_target.split()[0] == want and digest(copy) == want, 2 * DISK_MB << 20, on_target):
        ran.row("SPDK's `spdk_dd`, a disk of Linux's `nvmet-rdma`", None, "RC over RDMA-CM",
                "disk compared", built=spdk.version)


def compared_bytes(text, size):
    """Returns how many bytes bdevperf, which printed the text, has moved at least. Each block that it
    counts was written and read."""
    took = re.search(r"Nvme0n1 +: +([0-9.]+) +([0-9.]+) ", text)  # seconds, blocks a second
    return int(0.99 * 2 * size * float(took[1]) * float(took[2])) if took else 0


def compared_by_spdk(guest, daemon, spdk, version):
    """bdevperf writes blocks, reads each of them back, and compares."""
    for size in (4096, 65536):
        with Ran(ends(daemon, guest)) as ran:
            good, text = spdk.run(PERF, initiator_calls(version), "-q", "8", "-o", size, "-w",
                                  "verify", "-t", PERF_S)
        least = compared_bytes(text, size)
        if ran.case("IPv%d, the kernel's target: bdevperf compares blocks of %d bytes" % (
                version, size), good and least, least, text + guest.state()):
            ran.row("SPDK's `bdevperf -q 8 -o %d -w verify`, a disk of Linux's `nvmet-rdma`" % size,
                    None, "RC over RDMA-CM", "all data compared", built=spdk.version)


def restart_listener(guest, spdk):
    """The kernel's target ends its connections and listens again, while bdevperf runs."""
    perf = spdk.start(PERF, initiator_calls(4), "-q", "8", "-o", "4096", "-w", "verify", "-t",
                      2 * RESTART_S)
    perf.wait_line("Running I/O")
    status, text = guest.run(RELISTEN.format(version=4, nqn=NQN, after_s=RESTART_S // 2))
    case("the kernel's target stops and starts while SPDK writes and reads", status == 0, text)
    status, text = perf.finish(TIMEOUT_S)
    case("SPDK has connected again, and all data was right", status == 0 and
         "Resetting controller successful" in text and compared_bytes(text, 4096),
         "%s\n%s" % (text[-3000:], guest.state()))


class NvmeBench(bench.Bench):
    modules = MODULES


def walk(the_bench):
    the_bench.set_mtu(4200)
    with tempfile.TemporaryDirectory() as folder, \
            Daemon("--address", "%s/24,%s/64" % (ROCADE, ROCADE6), "--sleep-us", "100",
                   "--mtu", "4184", eal=the_bench.eal()) as daemon:
        spdk = Spdk(sys.argv[1], daemon, folder)
        walk_target(the_bench.guest, daemon, spdk)
        walk_initiator(the_bench.guest, daemon, spdk)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    absent = [path for path in (TARGET, COPY, PERF)
              if not os.path.exists(os.path.join(sys.argv[1], path))]
    why = "%s has no %s" % (sys.argv[1], ", ".join(absent)) if absent else bench.why_not()
    if why:
        print("nvme.py: %s: NVMe over RDMA with Linux is untested" % why)
        return UNTESTED
    return bench.main(walk, NvmeBench)


if __name__ == "__main__":
    sys.exit(main())
