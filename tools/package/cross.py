# SPDX-License-Identifier: BSD-3-Clause
"""Builds the packages for arm64 on a machine of another architecture, with Debian's cross compiler and
multiarch libraries. Checks what is in them, and runs the programs by qemu-user."""

import os
import re
import shutil

from build import buildpackage, complete, debs, lintian, version_of, with_source
from chroots import copy_of, must
from tap import case

ARCH = "arm64"
TRIPLET = "aarch64-linux-gnu"
PROFILES = "cross nocheck"
# rocade-doc is of every architecture.
PACKAGES = ["librocade0", "librocade-dev", "rocade"]
FOREIGN = "dpkg --add-architecture %s\napt-get -q update\n" % ARCH

# Prints "MACHINE PATH" for each ELF file and each member of an archive.
MACHINES = """cd /build/unpacked
find . -type f | while read -r path; do
    case $(head -c 8 "$path" | tr -d '\\0') in *ELF* | '!<arch>') ;; *) continue ;; esac
    readelf -h "$path" | sed -n "s:^ *Machine\\: *\\(.*\\):\\1 $path:p"
done
"""

# qemu-user runs the program itself; it has the CRC and the polynomial instructions of "max".
RUN = "qemu-aarch64 -cpu max "


def neutral(lines):
    """Returns the paths that `dpkg-deb -c` prints, without the architecture in them."""
    return {re.sub(r"/[a-z0-9_]+-linux-gnu/", "/TRIPLET/", line.split()[5]) for line in lines}


def listings(paths):
    """Returns the files of each package."""
    return {os.path.basename(path).split("_")[0]: neutral(must(["dpkg-deb", "-c", path]).splitlines())
            for path in paths}


def exported(text):
    """Returns the symbols of a file of dpkg-gensymbols, without versions of the package."""
    return [line.split()[0] for line in text.splitlines() if line.startswith(" ")]


def cross_build(top, release, work, title):
    system, tree = with_source(top, release, work, "cross")
    system.must(FOREIGN + "apt-get -qy install ccache crossbuild-essential-%s fakeroot lintian qemu-user\n"
                "cd %s\napt-get -qy --host-architecture %s -P %s build-dep ./\nchown -R alice: /build\n"
                % (ARCH, tree, ARCH, PROFILES.replace(" ", ",")))
    text = buildpackage(system, tree, title + ": dpkg-buildpackage builds packages", "-B -a" + ARCH,
                        PROFILES)
    if text is None or not complete(title, debs(system), PACKAGES):
        return None
    lintian(system, title)
    return system


def contents(system, title, top, native):
    """native: the files of the same packages of this machine's architecture, or None."""
    text = system.must("cd /build\nmkdir unpacked\nfor deb in *_%s.deb; do\n"
                       "    case $deb in *dbgsym*) continue ;; esac\n"
                       "    dpkg-deb -R \"$deb\" unpacked/\"${deb%%%%_*}\"\ndone\n" % ARCH + MACHINES)
    rows = [line.split(" ", 1) for line in text.splitlines()]
    packages = {path.split("/")[1] for _, path in rows}
    case("%s: all of %d object files are for AArch64" % (title, len(rows)),
         packages == set(PACKAGES) and {machine for machine, _ in rows} == {"AArch64"}, text)
    with open(system.path("/build/unpacked/librocade0/DEBIAN/symbols"), encoding="utf-8") as file:
        found = exported(file.read())
    with open(os.path.join(top, "debian/librocade0.symbols"), encoding="utf-8") as file:
        wanted = exported(file.read())
    case("%s: the libraries export the %d symbols of debian/librocade0.symbols" % (title, len(wanted)),
         wanted and sorted(found) == sorted(wanted), set(found) ^ set(wanted))
    if native:
        own = listings(debs(system))
        differ = {name: sorted(own[name] ^ native[name]) for name in PACKAGES}
        case("%s: the packages have the same files as this machine's" % title,
             not any(differ.values()), differ)


def consumers(system, title, version):
    """A program is built with each of the pkg-config files, and runs."""
    system.must("cd /build\napt-get -qy install ./librocade0_*_%s.deb ./librocade-dev_*_%s.deb "
                "libsystemd-dev:%s" % (ARCH, ARCH, ARCH))
    status, text = system.run("cd /build/rocade-%s/debian/tests\nCC=%s-gcc PKG_CONFIG=%s-pkg-config RUN='%s' "
                              "AUTOPKGTEST_TMP=/tmp ./build" % (version, TRIPLET, TRIPLET, RUN))
    case("%s: debian/tests/build builds and runs a program with each pkg-config file" % title,
         status == 0 and text.count(version) == 3, text)


def runs(built, title, release, work):
    """Installs the packages in a minimal system, and runs the programs."""
    system = copy_of(release, work, "run-" + ARCH)
    os.makedirs(system.path("/tmp/debs"))
    for path in debs(built):
        if not os.path.basename(path).startswith("librocade-dev"):
            shutil.copy(path, system.path("/tmp/debs"))
    system.must(FOREIGN + "apt-get -qy install qemu-user")
    status, text = system.run("apt-get -qy install /tmp/debs/*.deb")
    case("%s: apt-get installs the packages as a foreign architecture" % title, status == 0, text)
    # The kernel starts scripts.
    status, text = system.run("for p in $(dpkg -L rocade | grep ^/usr/bin/.); do\n"
                              "    case $(head -c 2 $p) in '#!') run= ;; *) run='%s' ;; esac\n"
                              "    $run $p --version\ndone" % RUN, user="alice")
    case("%s: each program starts under qemu-user" % title,
         status == 0 and len(text.splitlines()) == 7, text)
    status, text = system.run(RUN + "/usr/bin/rocade-testpmd -- --loop -q 2 -t 2", user="alice",
                              limit_s=600)
    case("%s: rocade-testpmd --loop under qemu-user" % title, status == 0 and "PASS" in text, text)
    system.remove()


def cross(top, release, work, native, build_only):
    """Returns the chroot, with the packages in its /build, or None."""
    title = "%s, %s" % (release, ARCH)
    system = cross_build(top, release, work, title)
    if system is None:
        return None
    contents(system, title, top, native)
    if not build_only:
        consumers(system, title, version_of(top))
        runs(system, title, release, work)
    return system
