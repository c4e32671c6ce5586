#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""kernel.py FOLDER: downloads Debian's Linux kernel with apt-get and unpacks it into FOLDER/linux,
unless that exists. Installs nothing."""

import glob
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "e2e", "lib"))
from process import run  # noqa: E402

MODULES = ["virtio_pci", "virtio_net", "crc32_generic", "rdma_rxe", "ib_umad", "rdma_ucm"]
FILES_MODULES = ["9pnet_virtio", "9p", "overlay"]  # to see the files of this machine


class Missing(Exception):
    """This machine lacks something that the tests need."""


def _apt(cache, *args):
    return run(args, 600, cwd=cache)


def _package(cache):
    """Downloads the kernel's package. Returns its path."""
    found = _apt(cache, "apt-cache", "depends", "linux-image-amd64")
    name = re.search(r"Depends: (linux-image-\S+)", found.stdout)
    if not name:
        _apt(cache, "apt-get", "update")
        found = _apt(cache, "apt-cache", "depends", "linux-image-amd64")
        name = re.search(r"Depends: (linux-image-\S+)", found.stdout)
    if not name:
        raise Missing("apt has no package linux-image-amd64")
    get = ("apt-get", "-o", "APT::Sandbox::User=root", "download", name.group(1))
    got = _apt(cache, *get)
    if got.returncode != 0:  # the package lists may be old
        _apt(cache, "apt-get", "update")
        got = _apt(cache, *get)
    files = glob.glob(os.path.join(cache, "linux-image-*.deb"))
    if got.returncode != 0 or not files:
        raise Missing("cannot download %s: %s" % (name.group(1), got.stderr.strip()))
    return max(files, key=os.path.getmtime)


def kernel(cache):
    """Returns the folder of the unpacked kernel, which it keeps in the cache."""
    os.makedirs(cache, exist_ok=True)
    there = os.path.join(cache, "linux")
    if os.path.isdir(there):
        return there
    package = _package(cache)
    fresh = tempfile.mkdtemp(dir=cache)
    run(["dpkg-deb", "-x", package, fresh], 300, check=True)
    os.rename(fresh, there)
    os.unlink(package)
    return there


def release(folder):
    return os.listdir(os.path.join(folder, "lib", "modules"))[0]


def index_modules(folder):
    """Writes the lists of modules that modprobe reads."""
    run(["depmod", "-b", folder, release(folder)], 120, check=True)


def module_order(folder, names=()):
    """Returns the files of these modules and of all modules they depend on, in load order."""
    files = {os.path.basename(path)[:-3].replace("-", "_"): path for path in glob.glob(
        os.path.join(folder, "lib", "modules", "*", "kernel", "**", "*.ko"), recursive=True)}
    order = []

    def add(name):
        if name not in files or files[name] in order:
            return  # built in, or in the list already
        with open(files[name], "rb") as file:
            depends = re.search(rb"\0depends=([^\0]*)\0", file.read())
        for other in depends.group(1).decode().split(",") if depends else ():
            add(other.replace("-", "_"))
        order.append(files[name])

    for name in names or MODULES:
        add(name)
    return order


def main(args):
    if len(args) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print("Linux " + release(kernel(args[1])))
    except Missing as why:
        print("kernel.py: %s" % why, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
