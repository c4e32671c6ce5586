# SPDX-License-Identifier: BSD-3-Clause
"""tools/release.sh: makes all files of a release. See its --help."""

import argparse
import os
import shutil
import subprocess
import sys

from commands import NotReady, files_below, sha256_of, write
from prebuilt import RELEASE, prebuilt_make
from repository import packages_in, repository_make, versions_check
from sign import Signer
from source import Source
from spdx import document

PROGRAMS = ("git", "gpg", "dpkg-deb", "apt-ftparchive")


class PackagesFailed(Exception):
    """tools/package.sh has printed why."""


def options(words):
    parser = argparse.ArgumentParser(prog="release.sh", add_help=False)
    parser.add_argument("top")
    parser.add_argument("--out", required=True)
    signing = parser.add_mutually_exclusive_group(required=True)
    signing.add_argument("--key")
    signing.add_argument("--unsigned", action="store_true")
    parser.add_argument("--packages")
    parser.add_argument("--draft", action="store_true")
    return parser.parse_args(words)


def packages_build(top, folder):
    """Builds and tries the packages of each release."""
    if subprocess.run([os.path.join(top, "tools/package.sh"), "--out", folder],
                      check=False).returncode != 0:
        raise PackagesFailed


def ready(source, conf):
    """Raises NotReady if the tree is not ready; with --draft it prints why."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise NotReady("missing programs: %s (Debian: git gpg dpkg apt-utils)" % ", ".join(missing))
    faults = source.faults()
    if faults and not conf.draft:
        raise NotReady("; ".join(faults) + " (--draft makes the files nevertheless)")
    for fault in faults:
        print("release.sh: draft: " + fault)


def fill(out, source, signer, built):
    """Makes the files in a folder. built: the folder of the packages."""
    packages = packages_in(built)
    versions_check(packages, source.versions["debian/changelog"])
    archive = source.archive(out)
    root = os.path.join(out, "apt")
    repository_make(root, packages, source.time_s)
    write(archive.replace(".tar.gz", ".spdx.json"),
          document(source.version, source.time_s, archive, packages))
    write(os.path.join(out, "NOTES.md"), source.notes())
    if RELEASE in packages:
        prebuilt_make(os.path.join(out, "action"), source.file("action.yml"), packages[RELEASE])
    signer.repository(root)
    signer.detached(archive, archive + ".asc")
    sums = "".join("%s  %s\n" % (sha256_of(os.path.join(out, path)), path)
                   for path in files_below(out))
    write(os.path.join(out, "SHA256SUMS"), sums)
    signer.detached(os.path.join(out, "SHA256SUMS"), os.path.join(out, "SHA256SUMS.asc"))


def make(conf):
    """The folder gets its name when all files are in it."""
    source, signer = Source(conf.top), Signer(conf.key)
    ready(source, conf)
    signer.check()
    built = conf.packages or conf.out + ".packages"
    if not conf.packages:
        packages_build(conf.top, built)
    part = conf.out + ".part"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    try:
        fill(part, source, signer, built)
        os.rename(part, conf.out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    print("release.sh: version %s, commit %s: %d files in %s%s" % (
        source.version, source.commit[:12], len(files_below(conf.out)), conf.out,
        "" if conf.key else ", not signed"))


def main(words):
    conf = options(words)
    if os.path.exists(conf.out):
        print("release.sh: %s is there already: --out is a folder to create" % conf.out, file=sys.stderr)
        return 3
    try:
        make(conf)
    except NotReady as why:
        print("release.sh: %s" % why, file=sys.stderr)
        return 3
    except PackagesFailed:
        print("release.sh: tools/package.sh failed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
