# SPDX-License-Identifier: BSD-3-Clause
"""A disk over iSER: tgt serves it on this host over rocaded, and the kernel in the guest logs in over
rdma_rxe, makes a file system, writes files and reads them back. The disk's file, on this host, has
the same bytes."""

import os
import tempfile

from bench import ROCADE, ROCADE6, ends
from daemon import Daemon
from process import run, until
from ran import Ran
from tap import case
from testpmd import LONG

# Of the initiator, for the guest.
MODULES = ["ib_iser", "sd_mod", "ext4", "crc32c_generic"]
PROGRAMS = ["/usr/sbin/iscsid", "/usr/sbin/iscsiadm"]
NAME = "iqn.2026-01.example:disk"
INITIATOR = "iqn.2026-01.example:guest"
CONTROL = "7"  # keeps this tgtd apart from others
FILES = 8 if LONG else 3
FILE_MB = 8 if LONG else 1
DISK_MB = 2 * FILES * FILE_MB
TIMEOUT_S = 300

PREPARE = """mkdir -p /etc/iscsi /var/lib/iscsi /run/lock/iscsi /mnt
echo InitiatorName={initiator} >/etc/iscsi/initiatorname.iscsi
touch /etc/iscsi/iscsid.conf
echo 'root:x:0:0::/:/bin/sh' >/etc/passwd
iscsid -f >/tmp/iscsid.log 2>&1 &
"""
LOGIN = """set -e
iscsiadm -m node -o new -T {name} -p {address}:3260,1 -I iser
iscsiadm -m node -T {name} -p {address}:3260 --login
until [ -e /sys/block/sda/size ]; do sleep 0.1; done
cat /sys/class/iscsi_host/host*/device/session*/iscsi_session/session*/state
"""
FILL = """set -e
mke2fs -q {disk}
mount -t ext4 {disk} /mnt
for i in $(seq {files}); do
	dd if=/dev/urandom of=/tmp/one bs=1M count={mb} 2>/dev/null
	sha256sum </tmp/one >>/tmp/wrote
	cp /tmp/one /mnt/file$i
done
umount /mnt
"""
CHECK = """set -e
echo 3 >/proc/sys/vm/drop_caches
mount -t ext4 -o ro {disk} /mnt
for i in $(seq {files}); do sha256sum </mnt/file$i >>/tmp/read; done
umount /mnt
cmp /tmp/wrote /tmp/read
wc -l </tmp/read
sha256sum <{disk}
"""
LOGOUT = """set -e
iscsiadm -m node -T {name} -p {address}:3260 --logout
[ ! -e /sys/block/sda ]
"""


class Target:
    """tgtd, a client of the daemon, which serves a file by iSER."""

    def __init__(self, daemon, path):
        self.path = path
        self.process = daemon.start("tgtd", "-f", "-C", CONTROL, "--iscsi",
                                    "portal=127.0.0.1:3261", "--iser", "pool_sz_mb=64")
        until(lambda: self.admin("system", "show").returncode == 0 or
              self.process.poll() is not None)
        with open(path, "wb") as file:
            file.truncate(DISK_MB << 20)
        for words in (["target", "new", "--targetname", NAME],
                      ["logicalunit", "new", "--lun", "1", "--backing-store", path],
                      ["target", "bind", "--initiator-address", "ALL"],
                      # tgt also wants the name over iSER.
                      ["target", "bind", "--initiator-name", INITIATOR]):
            done = self.admin(*words[:2], "--lld", "iser", "--tid", "1", *words[2:])
            if done.returncode != 0:
                raise self.process.failure(done.stderr)

    @staticmethod
    def admin(mode, operation, *more):
        return run(["tgtadm", "-C", CONTROL, "--mode", mode, "--op", operation, *more], 20)

    def sum(self):
        return run(["sha256sum", self.path], 60).stdout.split()[0]


def steps(guest, parts, words):
    """Runs commands in the guest, by name, until some fail. Yields for each part its name, whether it
    succeeded, and its output."""
    for name, commands in parts:
        status, text = guest.run(commands.format(**words), TIMEOUT_S)
        yield name, status, text
        if status != 0:
            return


def same(said, files, digest):
    """Whether the output of CHECK has this number of equal files, and this SHA-256 of the disk."""
    read = said.split()
    return len(read) > 2 and read[0] == str(files) and read[1] == digest


def walk(the_bench):
    the_bench.set_mtu(1500)
    guest = the_bench.guest
    guest.run(PREPARE.format(initiator=INITIATOR))
    with tempfile.TemporaryDirectory() as folder, \
            Daemon("--address", "%s/24,%s/64" % (ROCADE, ROCADE6), "--sleep-us", "100",
                   eal=the_bench.eal()) as daemon:
        target = Target(daemon, os.path.join(folder, "disk.img"))
        said = {}
        words = {"name": NAME, "address": ROCADE, "files": FILES, "mb": FILE_MB,
                 "disk": "/dev/sda"}
        parts = [("logs in", LOGIN), ("writes files", FILL), ("reads them back", CHECK),
                 ("logs out", LOGOUT)]
        with Ran(ends(daemon, guest)) as ran:
            for name, status, text in steps(guest, parts, words):
                said[name] = text
                case("iSER: the kernel " + name, status == 0, status == 0 or "%s\n%s\n%s\n%s" % (
                    text, guest.run("cat /tmp/iscsid.log; dmesg | tail -30")[1],
                    target.process.text[-2000:], guest.state()))
        if ran.case("iSER: every byte is the same in the guest and on the disk of tgt",
                    same(said.get("reads them back", ""), FILES, target.sum()),
                    2 * FILES * FILE_MB << 20, str(said)):
            ran.row("tgt, a disk of Linux's `ib_iser`", "tgt", "RC over RDMA-CM", "files compared")
        target.process.kill()
        case("iSER: the daemon keeps nothing of tgt", until(daemon.idle), daemon.status())
