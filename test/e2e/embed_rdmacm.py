#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that embed Rocade and use librdmacm, built as docs/embedding.md says, from an installed
tree: linked dynamically, linked statically together with DPDK, and in the wrong order. And other
users of libibverbs in such a program: DPDK's mlx5 driver, which gets a device that sysfs of this
test invents, and libraries that open libibverbs and librdmacm for themselves."""

import glob
import os
import re
import shlex
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import BUILD, SOURCE, add_space, eal, ip, is_root  # noqa: E402

SERVER, CLIENT = "192.0.2.1", "192.0.2.2"
PCI = "0000:99:00.0"
CONNECTX5 = {"vendor": "0x15b3", "device": "0x1017", "subsystem_vendor": "0x15b3",
             "subsystem_device": "0x0020", "class": "0x020000", "numa_node": "-1", "max_vfs": "0",
             "resource": "0x0 0x0 0x0\n" * 7}

scratch = tempfile.TemporaryDirectory()
environment = dict(os.environ)


def path(*names):
    return os.path.join(scratch.name, *names)


def install():
    """Installs the build into the scratch folder, for compilers and for the dynamic linker."""
    process.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                 path("tree")], 120, check=True)
    for pc in glob.glob(path("tree", "**", "*.pc"), recursive=True):
        with open(pc, encoding="utf-8") as file:
            text = file.read()
        with open(pc, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^prefix=", "prefix=" + path("tree"), text, flags=re.M))
    folder = os.path.dirname(pc)
    environment["PKG_CONFIG_PATH"] = os.pathsep.join(
        [folder] + environment.get("PKG_CONFIG_PATH", "").split(os.pathsep)).rstrip(os.pathsep)
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(
        [os.path.dirname(folder)] +
        environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)).rstrip(os.pathsep)


def flags(*packages):
    return shlex.split(process.run(["pkg-config", *packages], env=environment,
                                   check=True).stdout)


def build(name, source, *options):
    """Compiles a program, and returns its path."""
    program = path(name)
    done = process.run(["cc", "-Wall", "-Werror", "-I", os.path.join(SOURCE, "app"), "-o", program,
                        os.path.join(SOURCE, source), *options], 300, env=environment)
    case("%s builds" % name, done.returncode == 0, done.stderr)
    return program


def builds():
    install()
    example, users = "app/examples/embed_rdmacm.c", "test/e2e/verbs_users.c"
    includes = flags("--cflags", "rocade-rdmacm", "libdpdk")
    dpdk = flags("--libs", "libdpdk")
    libdir = flags("--libs-only-L", "rocade")
    build("dynamic", example, *includes, *flags("--libs", "rocade-rdmacm", "libdpdk"))
    build("static", example, *includes,
          *flags("--static", "--libs", "rocade-rdmacm-static", "libdpdk"))
    build("librdmacm-first", example, *includes, *libdir, "-lrdmacm", "-lrocade-rdmacm",
          "-lrocade", "-libverbs", *dpdk)
    build("libibverbs-first", example, *includes, *libdir, "-lrdmacm", "-libverbs",
          "-lrocade-rdmacm", "-lrocade", *dpdk)
    build("users", users, *includes, *flags("--libs", "rocade", "libdpdk"))
    build("users-static", users, *includes,
          *flags("--static", "--libs", "rocade-static", "libdpdk"))
    build("users-rdmacm", users, *includes, *flags("--libs", "rocade-rdmacm", "libdpdk"))
    build("users-wrong", users, *includes, *libdir, "-libverbs", "-lrocade", *dpdk)


def start(name, space, core, *arguments):
    device = "net_af_packet0,iface=eth0,blocksz=4096,framesz=2048"
    return Process(["ip", "netns", "exec", space, path(name)] + eal(core, device, memory_mb=128) +
                   ["--", *arguments], env=environment)


def talks(spaces, server_name, client_name):
    server = start(server_name, spaces[0], 0, SERVER + "/24")
    server.wait_line("listening")
    client = start(client_name, spaces[1], 1, CLIENT + "/24", SERVER, "hello, world")
    status, said = client.finish()
    case("%s talks to %s" % (client_name, server_name),
         status == 0 and "device rocade0, reply: HELLO, WORLD\n" in said, said)
    status, said = server.finish()
    case("%s ends" % server_name, status == 0 and "served\n" in said, said)


def linked_dynamically_and_statically():
    if not is_root():
        skip("net_af_packet", "needs root")
        return
    spaces = [add_space("left"), add_space("right")]
    ip("-n", spaces[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
       spaces[1])
    for space in spaces:
        ip("-n", space, "link", "set", "eth0", "up")
    talks(spaces, "dynamic", "static")
    talks(spaces, "static", "librdmacm-first")


def run_users(name, *eal_options):
    return process.run([path(name), "--no-huge", "-m", "64", "--no-shconf", "--no-telemetry",
                        "--lcores", "0@0", *eal_options, "--", PCI], env=environment)


def wrong_order_is_refused():
    wanted = "link -lrocade before -libverbs"
    done = process.run([path("libibverbs-first"), *eal(0, memory_mb=64), "--", SERVER + "/24"],
                       env=environment)
    case("rocade_rdmacm_check() finds libibverbs before librocade",
         done.returncode == 1 and wanted in done.stderr, done.stderr)
    done = run_users("users-wrong", "--no-pci")
    case("opening a port finds libibverbs before librocade",
         done.returncode == 1 and wanted in done.stderr, done.stderr)


def sysfs():
    """Invents a PCI device of Mellanox. EAL ignores devices without a kernel driver."""
    folder = path("pci", PCI)
    os.makedirs(folder)
    os.makedirs(path("drivers", "mlx5_core"))
    os.symlink(path("drivers", "mlx5_core"), os.path.join(folder, "driver"))
    for name, text in CONNECTX5.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text + "\n")
    environment["SYSFS_PCI_DEVICES"] = path("pci")


def other_users_of_libibverbs():
    sysfs()
    for name in "users", "users-static", "users-rdmacm":
        # The device is not probed at the start, only when the program asks for it.
        done = run_users(name, "-a", "0000:98:00.0", "--log-level", "pmd.common.mlx5:debug")
        said = done.stdout + done.stderr
        case("%s: the program sees Rocade's devices" % name,
             done.returncode == 0 and done.stdout.count("program: 2 of Rocade") == 2, said)
        case("%s: a library with its own libibverbs sees none" % name,
             "library: 0 of Rocade" in done.stdout, said)
        case("%s: the mlx5 driver is given its device" % name,
             'mlx5_common: probe device "%s"' % PCI in said, said)
        case("%s: and takes no device of Rocade for it" % name,
             "ethdev ports: 0\n" in done.stdout and
             "mlx5_common: Verbs device not found: " + PCI in said, said)
        seen = 'Checking device "rocade0"' in said
        if name == "users-static":
            case("%s: the driver looks at Rocade's devices, which have no PCI address" % name,
                 seen, said)
        else:
            case("%s: Rocade's devices are hidden from the driver" % name, not seen, said)
        # librdmacm is opened by the program at run time.
        served = "librdmacm: a channel" in done.stdout
        warned = "link -lrocade-rdmacm" in done.stderr
        case("%s: librdmacm %s" % (name, "works" if name == "users-rdmacm" else
                                   "does not work without librocade-rdmacm, and a warning says so"),
             served and not warned if name == "users-rdmacm" else warned and not served, said)


if __name__ == "__main__":
    sys.exit(run(builds, linked_dynamically_and_statically, wrong_order_is_refused,
                 other_users_of_libibverbs))
