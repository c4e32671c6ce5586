# SPDX-License-Identifier: BSD-3-Clause
"""tools/package.sh: builds and tries the packages. See its --help."""

import argparse
import os
import re
import shutil
import subprocess
import sys

import tap
from build import build, debs, keep, version_of
from chroots import ENTER, ENVIRONMENT, RELEASES, copy_of, missing_keyring, must, output_of
from cross import ARCH, cross, listings
from lifecycle import lifecycle
from recipes import action, container

DEFAULT = ("bookworm", "trixie")
TEST_LINES = 60  # of what a failed test of debian/tests has printed


def options(words):
    parser = argparse.ArgumentParser(prog="package.sh", add_help=False)
    parser.add_argument("top")
    parser.add_argument("--release", action="append", choices=tuple(RELEASES))
    parser.add_argument("--arch", action="append")
    parser.add_argument("--work")
    parser.add_argument("--out")
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--build-only", action="store_true")
    return parser.parse_args(words)


def failed_tests(log):
    """Returns the last lines that each failed test has printed, from the log of autopkgtest."""
    lines = []
    # The summary names a test again.
    for name in dict.fromkeys(re.findall(r"^(\S+) +FAIL\b", log, re.M)):
        head = r"autopkgtest \[[\d:]+\]: test %s: " % re.escape(name)
        # A test whose packages cannot be installed prints nothing.
        found = re.search(head + r"\[-+\n(.*?)" + head + r"-+\]$", log, re.M | re.S)
        if found:
            printed = found[1].splitlines()
            last = printed[-TEST_LINES:]
            lines += ["test %s, the last %d of %d lines:" % (name, len(last), len(printed)), *last]
    return lines


def autopkgtest(built, release, work):
    """debian/tests, as Debian runs them: in a system with the packages that each test names."""
    system = copy_of(release, work, "test")
    source = [p for p in os.listdir(built.path("/build")) if p.endswith(".dsc")]
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
               (ENTER % "").replace('chroot "$root" "$@"', '"$@"'), "sh", system.folder,
               "autopkgtest", "--no-built-binaries", *debs(built),
               built.path("/build/" + source[0]), "--", "chroot", system.folder]
    status, text = output_of(command, limit_s=7200, env=dict(ENVIRONMENT, PATH=os.environ["PATH"]))
    results = [line for line in text.splitlines() if line.split()[1:2] in (["PASS"], ["FAIL"])]
    # The tests come last: test.sh prints the end of this.
    why = [*text.splitlines()[-tap.LINES:], *failed_tests(text)]
    tap.case("%s: autopkgtest: %s" % (release, "; ".join(results)), status == 0 and results,
             "\n".join(why), len(why))
    system.remove()


def native(top, release, work, conf):
    """Returns the files of each package."""
    built = tap.group(build, top, release, work, not conf.no_check)
    if built is None:
        return None
    files = listings(debs(built))
    if conf.out:
        print("# " + keep(built, release, conf.out).replace("\n", " "))
    if not conf.build_only:
        tap.group(lifecycle, built, release, work, version_of(top))
        tap.group(autopkgtest, built, release, work)
        tap.group(container, top, release, work)
        tap.group(action, top, release, work)
    built.remove()
    return files


def one(top, release, work, conf):
    files = native(top, release, work, conf) if conf.native in conf.arch else None
    if ARCH in conf.arch and ARCH != conf.native:
        built = tap.group(cross, top, release, work, files, conf.build_only)
        if built is not None:
            if conf.out:
                print("# " + keep(built, release, conf.out).replace("\n", " "))
            built.remove()


def main(words):
    conf = options(words)
    conf.native = must(["dpkg", "--print-architecture"]).strip()
    conf.arch = conf.arch or [conf.native]
    wrong = set(conf.arch) - {conf.native, ARCH}
    if wrong:
        print("package.sh: invalid value '%s' for --arch: expected %s or %s" % (
            wrong.pop(), conf.native, ARCH), file=sys.stderr)
        return 2
    top = os.path.abspath(conf.top)
    work = os.path.abspath(conf.work or os.path.join(top, "build-test/packages"))
    if os.getuid() != 0 or shutil.which("debootstrap") is None or subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "true"], check=False).returncode != 0:
        print("package.sh: needs root, debootstrap and new namespaces", file=sys.stderr)
        return 3
    for release in conf.release or DEFAULT:
        if missing_keyring(release):
            print("package.sh: --release %s: debootstrap needs %s, of the package ubuntu-keyring of "
                  "Ubuntu" % (release, missing_keyring(release)), file=sys.stderr)
            return 3
    os.makedirs(work, exist_ok=True)
    for release in conf.release or DEFAULT:
        tap.group(one, top, release, work, conf)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
