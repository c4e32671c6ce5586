# SPDX-License-Identifier: BSD-3-Clause
"""Builds the packages in a chroot, runs lintian, and makes packages of a newer version of them."""

import glob
import os
import re
import shutil
import subprocess

from chroots import must, copy_of
from tap import case

BUILD_LIMIT_S = 10800  # with the unit tests, on a busy machine
PACKAGES = ["librocade0", "librocade-dev", "rocade", "rocade-doc"]
NEWER = "+newer1"

# Packages of a newer version: the same files, the next version.
REPACK = """cd /build
mkdir newer
for deb in *.deb; do
    case $deb in *dbgsym*) continue ;; esac
    rm -rf tree
    dpkg-deb -R "$deb" tree
    sed -i -E 's/^(Version: .*)$/\\1%(newer)s/; s/\\(= %(version)s\\)/(= %(version)s%(newer)s)/' \\
        tree/DEBIAN/control
    dpkg-deb --root-owner-group -b tree newer >&2
done
"""


def source_files(top):
    """Returns the files of the tree that belong to it."""
    run = subprocess.run(["git", "-C", top, "ls-files", "-co", "--exclude-standard", "-z"],
                         capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return sorted(p for p in run.stdout.split("\0") if p and os.path.lexists(
            os.path.join(top, p)))
    found = []
    for folder, folders, names in os.walk(top):
        folders[:] = [n for n in folders if n not in (".git", "__pycache__")
                      and not (folder == top and n.startswith("build"))]
        found += [os.path.relpath(os.path.join(folder, name), top) for name in names]
    return sorted(found)


def copy_source(top, to):
    for path in source_files(top):
        os.makedirs(os.path.dirname(os.path.join(to, path)), exist_ok=True)
        shutil.copy2(os.path.join(top, path), os.path.join(to, path), follow_symlinks=False)


def version_of(top):
    """Returns the version of debian/changelog."""
    with open(os.path.join(top, "debian/changelog"), encoding="utf-8") as file:
        return re.match(r"rocade \(([^)]+)\) ", file.readline()).group(1)


def with_source(top, release, work, name):
    """Returns a fresh system with the source tree, and the tree's folder there."""
    cache = os.path.join(work, "ccache")
    os.makedirs(cache, exist_ok=True)
    os.chmod(cache, 0o1777)
    system = copy_of(release, work, name, {"/ccache": cache})
    tree = "/build/rocade-" + version_of(top)
    copy_source(top, system.path(tree))
    return system, tree


def buildpackage(system, tree, title, options, profiles):
    """Builds as an ordinary user. Returns what dpkg-buildpackage printed, or None if it failed."""
    status, text = system.run("cd %s\nexport DEB_BUILD_OPTIONS='parallel=%d %s' DEB_BUILD_PROFILES='%s'\n"
                              "dpkg-buildpackage -us -uc %s" % (
                                  tree, os.cpu_count() or 1, "nocheck" if "nocheck" in profiles else "",
                                  profiles, options), user="alice", limit_s=BUILD_LIMIT_S)
    if not case(title, status == 0, text):
        return None
    lines = re.findall(r"^\S+:\d+:\d+: warning: .*", text, re.M)
    case(title + ", without a warning of the compiler", not lines, "\n".join(lines))
    return text


def lintian(system, title):
    """Without --display-info: the two releases differ in which standards version and which means of
    starting a daemon they call good."""
    status, text = system.run("cd /build\nlintian --fail-on none *.changes", user="alice")
    case(title + ": lintian has no error and no warning", status == 0 and not text.strip(), text)


def build(top, release, work, check):
    """Builds in a chroot. Returns the chroot; the packages are in its /build."""
    system, tree = with_source(top, release, work, "build")
    profile = "" if check else "nocheck"
    system.must("apt-get -qy install build-essential ccache fakeroot lintian\n"
                "cd %s\napt-get -qy %s build-dep ./\nchown -R alice: /build\n"
                % (tree, "-P" + profile if profile else ""))
    text = buildpackage(system, tree, release + ": dpkg-buildpackage builds source and packages", "",
                        profile)
    if text is None or not complete(release, debs(system), PACKAGES):
        return None
    tests = re.findall(r"^Ok: +(\d+)|^Fail: +(\d+)", text, re.M)
    if check:
        case("%s: the build has run the unit tests: %s" % (release, tests), tests and tests[0][0], text)
    lintian(system, release)
    system.must(REPACK % {"newer": NEWER, "version": re.escape(version_of(top))})
    # A correct client of the tests, as any program for libibverbs is built
    system.must("cd %s/test/e2e\ncc -O2 -D_GNU_SOURCE -o /build/flow flow.c flow_end.c -libverbs" % tree)
    return system


def complete(title, paths, packages):
    """Whether these are the packages."""
    found = sorted(os.path.basename(path).split("_")[0] for path in paths)
    return case("%s: they are %s" % (title, ", ".join(packages)), found == sorted(packages), found)


def debs(system, folder="/build"):
    return sorted(path for path in glob.glob(system.path(folder) + "/*.deb")
                  if "dbgsym" not in path)


def keep(system, release, out):
    """Copies the packages to a folder of this machine."""
    to = os.path.join(out, release)
    os.makedirs(to, exist_ok=True)
    for path in glob.glob(system.path("/build") + "/rocade_*") + debs(system):
        shutil.copy(path, to)
    return must(["ls", to])
