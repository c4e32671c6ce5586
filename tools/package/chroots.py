# SPDX-License-Identifier: BSD-3-Clause
"""Minimal Debian systems in folders, and commands in them."""

import os
import shlex
import shutil
import subprocess
from collections import namedtuple

MIRROR = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
# components, suites: of apt's sources, each suite with its mirror. script: of debootstrap, where that of
# Debian 12 knows no such release. keyring: that debootstrap needs, if Debian does not have it.
System = namedtuple("System", "mirror components suites script keyring", defaults=(None, None))
RELEASES = {
    "bookworm": System(MIRROR, "main", [(MIRROR, "bookworm"), (SECURITY, "bookworm-security")]),
    "trixie": System(MIRROR, "main", [(MIRROR, "trixie"), (SECURITY, "trixie-security")]),
    "forky": System(MIRROR, "main", [(MIRROR, "forky")], "sid"),
    "noble": System(UBUNTU, "main universe", [(UBUNTU, "noble"), (UBUNTU, "noble-updates"),
                                              (UBUNTU, "noble-security")], "gutsy",
                    "/usr/share/keyrings/ubuntu-archive-keyring.gpg")}
LIMIT_S = 3600  # for a command: apt-get and lintian take long on a busy machine

# The first process of new namespaces mounts what a program expects, and runs the command in the
# chroot. All of the command's processes end with it, and then the mounts.
ENTER = """set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
%s
root=$1
shift
status=0
chroot "$root" "$@" || status=$?
exit "$status"
"""

ENVIRONMENT = {"PATH": "/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root", "CCACHE_DIR": "/ccache", "CCACHE_UMASK": "000"}


class Failed(Exception):
    """A command that failed, with its output."""


def output_of(command, limit_s=LIMIT_S, env=None, cwd=None):
    """Returns exit status and output of a command. It is killed at the limit."""
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                             timeout=limit_s, env=env, cwd=cwd)
    except subprocess.TimeoutExpired as late:
        text = (late.output or b"").decode(errors="replace")
        return 124, "%s\nkilled after %d s: %s" % (text, limit_s, shlex.join(command))
    return run.returncode, run.stdout


def must(command, **options):
    status, text = output_of(command, **options)
    if status != 0:
        raise Failed("exit status %d: %s\n%s" % (status, shlex.join(command), text))
    return text


class Chroot:
    """A system in a folder. binds: folders of this machine by the path where the system has them."""

    def __init__(self, folder, binds=()):
        self.folder = folder
        self.binds = dict(binds)

    def path(self, inside):
        return os.path.join(self.folder, inside.lstrip("/"))

    def command(self, words):
        mounts = []
        for inside, outside in self.binds.items():
            os.makedirs(self.path(inside), exist_ok=True)
            mounts.append("mount --bind %s %s" % (shlex.quote(outside),
                                                  shlex.quote(self.path(inside))))
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                ENTER % "\n".join(mounts), "sh", self.folder, *words]

    def run(self, script, user=None, limit_s=LIMIT_S):
        """Runs lines of sh, which end at the first that fails. Returns exit status and output."""
        words = ["sh", "-e", "-c", script]
        if user:
            words = ["setpriv", "--reuid=" + user, "--regid=" + user, "--init-groups", "--", "env",
                     "HOME=/home/" + user, *words]
        return output_of(self.command(words), limit_s, env=ENVIRONMENT)

    def must(self, script, **options):
        status, text = self.run(script, **options)
        if status != 0:
            raise Failed("exit status %d in %s: %s\n%s" % (status, self.folder, script, text))
        return text

    def write(self, inside, text):
        os.makedirs(os.path.dirname(self.path(inside)), exist_ok=True)
        with open(self.path(inside), "w", encoding="utf-8") as file:
            file.write(text)

    def files(self):
        """Returns the paths of the system, without those of apt, logs and temporary files, and
        without files that hold lists of all packages."""
        skipped = {"/proc", "/sys", "/dev", "/run", "/tmp", "/build", "/ccache", "/var/lib/apt",
                   "/var/cache", "/var/log", "/var/tmp", "/root", "/home"}
        found = set()
        for folder, folders, names in os.walk(self.folder):
            inside = folder[len(self.folder):]
            folders[:] = [n for n in folders if inside + "/" + n not in skipped]
            found |= {inside + "/" + name for name in folders + names}
        return {p for p in found if not p.startswith("/var/lib/dpkg/") or "/info/" in p}

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def missing_keyring(release):
    """The keyring that debootstrap needs for a release, if it is not there."""
    keyring = RELEASES[release].keyring
    return keyring if keyring and not os.path.exists(keyring) else None


def base(release, work):
    """Makes the minimal system of a release, or finds it. Returns its folder."""
    folder = os.path.join(work, "base-" + release)
    if not os.path.exists(folder + ".done"):
        shutil.rmtree(folder, ignore_errors=True)
        kind = RELEASES[release]
        options = ["--variant=minbase"]
        if kind.keyring:
            options.append("--keyring=" + kind.keyring)
        script = ["/usr/share/debootstrap/scripts/" + kind.script] if kind.script else []
        must(["debootstrap", *options, release, folder, kind.mirror, *script], limit_s=1800)
        system = Chroot(folder)
        system.write("/etc/apt/sources.list", "".join("deb %s %s %s\n" % (
            mirror, suite, kind.components) for mirror, suite in kind.suites))
        for extra in os.listdir(system.path("/etc/apt/sources.list.d")):
            os.unlink(system.path("/etc/apt/sources.list.d/" + extra))
        # The chroots are thrown away: nothing is lost if the machine fails.
        system.write("/etc/dpkg/dpkg.cfg.d/unsafe-io", "force-unsafe-io\n")
        system.write("/etc/apt/apt.conf.d/90test", 'APT::Install-Recommends "false";\n')
        system.must("apt-get -q update && apt-get -qy dist-upgrade && apt-get clean && "
                    "useradd --create-home --uid 1000 alice")
        with open(folder + ".done", "w", encoding="utf-8"):
            pass
    return folder


def copy_of(release, work, name, binds=()):
    """Makes a fresh copy of the minimal system."""
    folder = os.path.join(work, "%s-%s" % (name, release))
    shutil.rmtree(folder, ignore_errors=True)
    must(["cp", "-a", "--reflink=auto", base(release, work) + "/.", folder])
    system = Chroot(folder, binds)
    shutil.copy("/etc/resolv.conf", system.path("/etc/resolv.conf"))
    system.must("apt-get -q update")
    return system
