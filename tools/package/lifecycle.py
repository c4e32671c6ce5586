# SPDX-License-Identifier: BSD-3-Clause
"""Installs the packages in a fresh minimal system, runs, upgrades and removes them."""

import os
import shutil

from build import NEWER, debs
from chroots import copy_of
from pingpong import PINGPONG, passed
from tap import case

# librocade-dev needs libdpdk-dev, and with that systemd and a hundred other packages.
# debian/tests/build installs it.
TRIED = ("librocade0", "rocade", "rocade-doc")
HERE = os.path.dirname(os.path.abspath(__file__))

# Packages of the programs under test and of the test: not of Rocade
USED = "ibverbs-utils procps python3 rdmacm-utils"

# The lines of upgrade.sh
UPGRADED = ["before: %(version)s", "after: %(version)s" + NEWER,
            "the daemon runs the program of before", "the clients, too", "the clients go on",
            "new clients attach to it", "the first pair has verified all",
            "the second pair has verified all", "a restarted daemon is the new program"]


def said(text):
    return [line[4:] for line in text.splitlines() if line.startswith("say ")]


# In the place of a systemd that runs: records what the scripts of the packages ask of it.
SYSTEMCTL = """#!/bin/sh
case " $* " in *" is-active "* | *" show "*) exit 0 ;; esac
echo "$*" >>/tmp/systemctl
"""
WITH_SYSTEMD = "mkdir -p /run/systemd/system\n"


def asked(system):
    """Returns what systemd was asked about the units since the last call."""
    path = system.path("/tmp/systemctl")
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if "rocaded" in line]
        os.unlink(path)
    return lines


def installed(system, release, names):
    """The packages, on a system without anything of Rocade."""
    status, text = system.run(WITH_SYSTEMD + "apt-get -qy install " + names)
    case("%s: apt-get installs the packages" % release, status == 0, text)
    status, text = system.run("dpkg --audit; dpkg -V " + " ".join(TRIED))
    case("%s: and dpkg verifies their files" % release, status == 0 and not text, text)
    status, text = system.run("ls -l /etc/systemd/system/*.wants 2>&1 | grep rocade")
    lines = asked(system)
    case("%s: the units are neither enabled nor started" % release, status != 0 and not lines,
         "%s\n%s" % (text, lines))


def runs(system, release):
    """An ordinary user runs a program of another package."""
    status, text = system.run("rocade-run --start-local sh -e -c '%s'" % PINGPONG, user="alice")
    case("%s: rocade-run --start-local ibv_rc_pingpong, both ends, as an ordinary user" % release,
         passed(status, text), text)
    status, text = system.run("rocade-testpmd -- --loop -q 2 -t 2", user="alice")
    case("%s: rocade-testpmd --loop, without drivers of DPDK" % release,
         status == 0 and text.rstrip().splitlines()[-1:] and "PASS" in text, text)
    status, text = system.run("for p in $(dpkg -L rocade | grep ^/usr/bin/.); do $p --version; done",
                              user="alice")
    case("%s: each program starts" % release, status == 0 and len(text.splitlines()) == 7, text)


def upgraded(system, release, version):
    shutil.copy(os.path.join(HERE, "upgrade.sh"), system.path("/tmp/upgrade.sh"))
    status, text = system.run(WITH_SYSTEMD + "sh /tmp/upgrade.sh")
    expected = [line % {"version": version} for line in UPGRADED]
    found = said(text)
    for line in expected:
        case("%s: upgrade: %s" % (release, line), line in found, text)
    case("%s: upgrade: nothing else to report" % release,
         status == 0 and found == expected, text)
    lines = asked(system)
    case("%s: upgrade: systemd is neither asked to stop nor to restart a daemon" % release,
         not lines, lines)


def removed(system, release, before):
    """Removal leaves the configuration, purge nothing."""
    status, text = system.run(WITH_SYSTEMD + "apt-get -qy remove %s && "
                              "apt-get -qy --purge autoremove" % " ".join(TRIED))
    left = system.files() - before
    # For a package with configuration files dpkg keeps their list and the script for purge, and
    # deb-systemd-helper which units were there.
    kept = ("/var/lib/dpkg/info/rocade.", "/var/lib/systemd")
    case("%s: remove leaves the configuration only" % release,
         status == 0 and {p for p in left if not p.startswith(kept)} == {"/etc/rocaded.conf"},
         "%s\n%s" % (text, "\n".join(sorted(left))))
    lines = asked(system)
    case("%s: remove asks systemd to stop the daemon and its socket" % release,
         len(lines) == 1 and {"stop", "rocaded.service", "rocaded.socket"} <= set(lines[0].split()),
         (lines, text))
    # apt-get does not know the others any more.
    status, text = system.run("apt-get -qy purge rocade && apt-get -qy --purge autoremove")
    now = system.files()
    changed = sorted("+" + p for p in now - before) + sorted("-" + p for p in before - now)
    case("%s: purge leaves nothing" % release, status == 0 and not changed,
         "%s\n%s" % (text, "\n".join(changed)))


def lifecycle(built, release, work, version):
    system = copy_of(release, work, "run")
    for name, folder in (("debs", "/build"), ("newer", "/build/newer")):
        os.makedirs(system.path("/tmp/" + name))
        for path in debs(built, folder):
            if os.path.basename(path).split("_")[0] in TRIED:
                shutil.copy(path, system.path("/tmp/" + name))
    shutil.copy(built.path("/build/flow"), system.path("/tmp/flow"))
    system.must("apt-get -qy install " + USED)
    system.write("/usr/bin/systemctl", SYSTEMCTL)
    os.chmod(system.path("/usr/bin/systemctl"), 0o755)
    before = system.files()
    installed(system, release, "/tmp/debs/*.deb")
    runs(system, release)
    upgraded(system, release, version)
    removed(system, release, before)
    system.remove()
