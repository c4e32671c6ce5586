# SPDX-License-Identifier: BSD-3-Clause
"""Linux in QEMU, without KVM: Debian's kernel with rdma_rxe. The initramfs has busybox, the kernel
modules, the verbs tools of this machine and programs of the build."""

import glob
import os
import platform
import re
import shlex
import shutil
import socket
import stat
import time

from kernel import FILES_MODULES, MODULES, index_modules, kernel, module_order, release
from process import Process, WaitFailed, run, tail, until

HERE = os.path.dirname(os.path.realpath(__file__))
QEMU = "qemu-system-x86_64"
BUSYBOX = "/bin/busybox"
AGENT_PORT = 7000
# QEMU 7.2 translates for a machine that can have one CPU only without memory barriers and without
# atomic operations. Then virtio-net now and then loses a notification between the CPU's thread and
# that of the devices, and the guest is silent for good (QEMU commit c914d46d0a64 tells of it).
ONE_CPU = ("-smp", "1,maxcpus=2", "-m", "512")
TOOLS = ["rdma", "ibv_devinfo", "ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong",
         "ibv_srq_pingpong", "ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat",
         "ib_read_bw", "ib_read_lat", "ib_atomic_bw", "ucmatose", "rping", "udaddy"]
LISTENS = "rdma resource show cm_id | grep -q LISTEN"
PROVIDER = ["/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so",
            "/etc/libibverbs.d/rxe.driver",
            "/lib/x86_64-linux-gnu/libgcc_s.so.1"]  # pthread_exit() opens it


def missing():
    """Returns why a guest cannot run on this machine, or None."""
    if platform.machine() != "x86_64":
        return "the guest is made for x86_64 only"
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        return "needs root and /dev/net/tun"
    for tool, package in ((QEMU, "qemu-system-x86"), (BUSYBOX, "busybox-static"),
                          ("rdma", "iproute2"), ("ibv_devinfo", "ibverbs-utils"),
                          ("ucmatose", "rdmacm-utils"), ("ib_send_bw", "perftest"),
                          ("iscsid", "open-iscsi")):
        if not shutil.which(tool):
            return "no %s here (Debian package %s)" % (tool, package)
    return None


# ---- The initramfs ----

def _needs(program):
    """Returns the shared libraries of a program, with the loader."""
    return set(re.findall(r"(/\S+) \(0x", run(["ldd", program]).stdout))


class Archive:
    """Writes a cpio archive in the kernel's format."""

    def __init__(self, file):
        self.file = file
        self.count = 0
        self.names = set()

    def _entry(self, name, mode, data=b""):
        self.count += 1
        head = "070701" + "".join("%08x" % n for n in (
            self.count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0))
        text = head.encode() + name.encode() + b"\0"
        self.file.write(text + b"\0" * (-len(text) % 4) + data + b"\0" * (-len(data) % 4))

    def folder(self, name):
        name = name.strip("/")
        if name and name not in self.names:
            self.folder(os.path.dirname(name))
            self.names.add(name)
            self._entry(name, stat.S_IFDIR | 0o755)

    def add(self, name, data, mode=0o755):
        self.folder(os.path.dirname(name))
        self._entry(name.strip("/"), stat.S_IFREG | mode, data)

    def copy(self, path, name=None):
        with open(path, "rb") as file:
            self.add(name or path, file.read())

    def link(self, name, target):
        self.folder(os.path.dirname(name))
        self._entry(name.strip("/"), stat.S_IFLNK | 0o777, target.encode())

    def end(self):
        self._entry("TRAILER!!!", 0)


def initramfs(path, folder, programs, addresses, modules=(), files=False):
    """Writes the initramfs. The programs, of this machine, go to /bin with their libraries. files:
    see Guest."""
    tools = [shutil.which(tool) for tool in TOOLS]
    everything = [tool for tool in tools if tool] + list(programs)
    libraries = set()
    for program in everything + [f for f in PROVIDER if ".so" in f]:
        libraries |= _needs(program)
    with open(path, "wb") as file:
        archive = Archive(file)
        archive.copy(os.path.join(HERE, "init"), "/init")
        archive.copy(BUSYBOX, "/bin/busybox")
        order = module_order(folder, MODULES + FILES_MODULES * files + list(modules))
        for module in order:
            archive.copy(module, "/modules/" + os.path.basename(module))
        archive.add("/modules/order", "".join(
            os.path.basename(m) + "\n" for m in order).encode())
        if files:
            archive.add("/tree", os.path.abspath(os.path.join(folder, "lib", "modules")).encode())
        archive.add("/addresses", "".join(a + "\n" for a in addresses).encode())
        for program in everything:
            archive.copy(program, "/bin/" + os.path.basename(program))
        for library in sorted(libraries):
            archive.copy(library)
        for provider in PROVIDER:
            archive.copy(provider)
        archive.end()


# ---- The machine ----

class Guest:
    """One virtual machine on an existing tap device. modules: more modules to load. hardware: more
    options of QEMU. cmdline: more words for the kernel. files: the guest has the files of this
    machine at /host, and writes to a layer of its own above them; shell() returns commands for
    there."""

    def __init__(self, scratch, cache, tap, mac, address, programs, addresses, modules=(),
                 hardware=ONE_CPU, cmdline="", files=False):
        folder = kernel(cache)
        self.release = release(folder)
        self.address = address
        self.console = os.path.join(scratch, "console")
        self.monitor = os.path.join(scratch, "monitor")
        image = os.path.join(scratch, "initramfs")
        if files:
            index_modules(folder)
            hardware = list(hardware) + ["-virtfs", "local,path=/,mount_tag=root,"
                                         "security_model=none,readonly=on,multidevs=remap"]
        initramfs(image, folder, programs, addresses, modules, files)
        self.process = Process(
            [QEMU, "-accel", "tcg", "-cpu", "max", "-nodefaults",
             "-no-reboot", "-display", "none", "-serial", "file:" + self.console,
             "-monitor", "unix:%s,server=on,wait=off" % self.monitor,
             "-kernel", glob.glob(os.path.join(folder, "boot", "vmlinuz-*"))[0],
             "-initrd", image, "-append",
             "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check " + cmdline,
             "-netdev", "tap,id=wire,ifname=%s,script=no,downscript=no" % tap,
             "-device", "virtio-net-pci,netdev=wire,romfile=,mac=" + mac, *hardware])

    def said(self):
        with open(self.console, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait(self, timeout_s):
        """Waits until the guest takes commands. Returns False if it does not in time."""
        return until(lambda: self.process.poll() is not None or os.path.exists(self.console) and
                     "init: the guest is there" in self.said(), timeout_s, 0.1) and \
            self.process.poll() is None

    def start(self, commands):
        """Starts commands in the guest. Returns a connection for their output and exit status."""
        print("#$ guest: " + commands, flush=True)

        def connection():
            try:
                return socket.create_connection((self.address, AGENT_PORT), 10)
            except OSError:
                return None

        s = until(connection, 60, 0.1)
        if s is None:
            raise WaitFailed("waited 60 s for the guest to take commands\n" + tail(self.said()))
        s.sendall(commands.encode() + b"\n")
        s.shutdown(socket.SHUT_WR)
        return s

    def finish(self, s, timeout_s):
        """Returns (exit status, output) of started commands. The status is None after a timeout."""
        end = time.monotonic() + timeout_s
        text = b""
        with s:
            while time.monotonic() < end:
                s.settimeout(max(end - time.monotonic(), 0.01))
                try:
                    data = s.recv(65536)
                except OSError:
                    break
                if not data:
                    break
                text += data
        text = text.decode(errors="replace")
        last = re.search(r"^status (\d+)\n\Z", text, re.M)
        return (int(last.group(1)), text[:last.start()]) if last else (None, text)

    def run(self, commands, timeout_s=30):
        return self.finish(self.start(commands), timeout_s)

    @staticmethod
    def shell(commands):
        """Returns commands for start(), run() and until(): bash runs these among the files of this
        machine. There is no sudo, and no need for it."""
        return "chroot /host /usr/bin/env PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin " \
            "/bin/bash -c %s" % shlex.quote('sudo() { "$@"; }\n' + commands)

    def until(self, command, timeout_s=30):
        """Waits until the command succeeds in the guest. Returns its output."""
        status, text = self.run("until %s; do sleep 0.1; done" % command, timeout_s)
        if status != 0:
            raise WaitFailed("waited %d s in the guest until %s\n%s\n%s" % (
                timeout_s, command, text, tail(self.said())))
        return text

    def wire(self):
        """Returns the bytes that the interface has received and sent."""
        _, text = self.run("cat /sys/class/net/eth0/statistics/[rt]x_bytes")
        return sum(map(int, text.split()))

    def state(self):
        """Returns the end of the console and where the processor is: why a guest is silent."""
        if self.process.poll() is not None:
            return "QEMU has ended\n" + tail(self.said())
        said = b""
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(2)
                s.connect(self.monitor)
                s.sendall(b"info status\ninfo registers\n")
                while True:
                    said += s.recv(65536)
        except OSError:
            pass  # the monitor has said all, or QEMU stands still
        kept = re.findall(r"^(?:VM status|R.P|RSP|CS ).*", said.decode(errors="replace"), re.M)
        return "\n".join([line.strip() for line in kept] + [tail(self.said())])

    def stop(self):
        self.process.kill()
