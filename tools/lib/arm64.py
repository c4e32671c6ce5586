#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What building for arm64 on another machine needs.

arm64.py FOLDER         makes FOLDER/arm64:
  sysroot               Debian's arm64 packages of the libraries, downloaded with apt-get and
                        unpacked. Nothing is installed, and dpkg's architectures stay as they are.
                        A sysroot that exists is used again unless the list of packages has changed
  run                   runs a program for arm64, by qemu-aarch64
  cross.ini             meson's cross file: Debian's cross compiler, sysroot, run
arm64.py --tests BUILD  prints the tests of a build directory that qemu-user can run: programs, not
                        scripts, because these start programs themselves"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

# The build needs these. apt-get adds their dependencies.
PACKAGES = ["libc6-dev", "libcmocka-dev", "libdpdk-dev", "libibverbs-dev", "libisal-dev",
            "libjansson-dev", "librdmacm-dev", "libseccomp-dev", "zlib1g-dev"]
TOOLS = {"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu", "qemu-aarch64": "qemu-user",
         "apt-get": "apt", "dpkg-deb": "dpkg"}

NOT_RUN = {"sim": "the stage runs it, with its own number of seeds",
           "fabric": "takes most of an hour; a simulation as well",
           "fabric_sweep": "the same",
           "matrix": "waits for ever for an event that was purged: qemu-user has no preadv2()"}

# apt-get as on an arm64 machine without packages: its lists, its cache and its empty status are
# below the folder %s. The sources and keys are those of this machine.
APT_CONF = """APT::Architecture "arm64";
#clear APT::Architectures;
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::State "%s";
Dir::State::status "%s/status";
Dir::Cache "%s";
"""

# LSE, the CRC and the polynomial instructions are among the features of "max".
RUN = """#!/bin/sh
exec qemu-aarch64 -L '%s' -cpu max "$@"
"""

CROSS = """[constants]
root = '%s'
[binaries]
c = [%s'aarch64-linux-gnu-gcc']
ar = 'aarch64-linux-gnu-gcc-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = '%s'
[built-in options]
c_args = ['--sysroot=' + root]
c_link_args = ['--sysroot=' + root]
[properties]
sys_root = root
pkg_config_libdir = root + '/usr/lib/aarch64-linux-gnu/pkgconfig:' + root + '/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'armv8-a'
endian = 'little'
"""


class Missing(Exception):
    """This machine lacks something that the build needs."""


def _run(args, **options):
    try:
        done = subprocess.run(args, timeout=900, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, **options)
    except subprocess.TimeoutExpired:
        raise Missing("%s: not done after 900 s" % " ".join(args[:2]))
    if done.returncode != 0:
        raise Missing("%s failed:\n%s" % (" ".join(args[:2]), done.stdout[-2000:]))


def _download(folder):
    """Returns the packages, downloaded into this folder."""
    for name in ("lists/partial", "archives/partial"):
        os.makedirs(os.path.join(folder, name))
    with open(os.path.join(folder, "status"), "w"):
        pass
    conf = os.path.join(folder, "apt.conf")
    with open(conf, "w") as file:
        file.write(APT_CONF % (folder, folder, folder))
    env = dict(os.environ, APT_CONFIG=conf, DEBIAN_FRONTEND="noninteractive")
    _run(["apt-get", "update"], env=env)
    _run(["apt-get", "install", "-y", "--download-only"] + PACKAGES, env=env)
    return sorted(glob.glob(os.path.join(folder, "archives", "*.deb")))


def _links_within(root):
    """Makes the absolute links relative: they are of the sysroot, not of this machine."""
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            if os.path.islink(path) and os.path.isabs(os.readlink(path)):
                to = os.path.relpath(root + os.readlink(path), folder)
                os.unlink(path)
                os.symlink(to, path)


def sysroot(folder):
    """Returns the sysroot in this folder. It is complete if its file "packages" is there."""
    root = os.path.join(folder, "sysroot")
    try:
        with open(os.path.join(root, "packages")) as file:
            if file.read().split() == PACKAGES:
                return root
    except FileNotFoundError:
        pass
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            raise Missing("no %s: install the package %s" % (tool, package))
    shutil.rmtree(root, ignore_errors=True)
    fresh = tempfile.mkdtemp(dir=folder)
    try:
        for package in _download(os.path.join(fresh, "apt")):
            _run(["dpkg-deb", "-x", package, os.path.join(fresh, "root")])
        _links_within(os.path.join(fresh, "root"))
        with open(os.path.join(fresh, "root", "packages"), "w") as file:
            file.write(" ".join(PACKAGES) + "\n")
        os.rename(os.path.join(fresh, "root"), root)
    finally:
        shutil.rmtree(fresh)
    return root


def tests(build):
    """The names of the tests whose program was built, without those of NOT_RUN."""
    build = os.path.realpath(build)
    done = subprocess.run(["meson", "introspect", "--tests", build], timeout=60, check=True,
                          stdout=subprocess.PIPE, universal_newlines=True)
    return sorted({test["name"] for test in json.loads(done.stdout) if
                   os.path.realpath(test["cmd"][0]).startswith(build + os.sep)} - set(NOT_RUN))


def main(args):
    if len(args) == 3 and args[1] == "--tests":
        print("\n".join(tests(args[2])))
        return 0
    if len(args) != 2 or args[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = os.path.join(os.path.abspath(args[1]), "arm64")
    runner = os.path.join(folder, "run")
    os.makedirs(folder, exist_ok=True)
    try:
        root = sysroot(folder)
    except Missing as why:
        print("arm64.py: %s" % why, file=sys.stderr)
        return 1
    with open(runner, "w") as file:
        file.write(RUN % root)
    os.chmod(runner, 0o755)
    with open(os.path.join(folder, "cross.ini"), "w") as file:
        file.write(CROSS % (root, "'ccache', " if shutil.which("ccache") else "", runner))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
