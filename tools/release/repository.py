# SPDX-License-Identifier: BSD-3-Clause
"""A repository for apt-get: pool/RELEASE has the packages, dists/RELEASE the lists of them."""

import gzip
import os
import shutil
import time

from commands import NotReady, output_of, write

COMPONENT = "main"


def packages_in(folder):
    """The packages of each release, as tools/package.sh --out leaves them: FOLDER/RELEASE/*.deb."""
    found = {}
    for release in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        where = os.path.join(folder, release)
        debs = [os.path.join(where, name) for name in sorted(os.listdir(where))
                if name.endswith(".deb")] if os.path.isdir(where) else []
        if debs:
            found[release] = debs
    if not found:
        raise NotReady("no package in %s: expected %s/RELEASE/*.deb" % (folder, folder))
    return found


def field_of(deb, name):
    return output_of("dpkg-deb", "--field", deb, name).strip()


def versions_check(packages, version):
    """Each package has the version of the release."""
    for debs in packages.values():
        for deb in debs:
            got = field_of(deb, "Version")
            if got != version:
                raise NotReady("%s has version %s: expected %s" % (deb, got, version))


def release_make(root, release, debs, time_s):
    pool = os.path.join(root, "pool", release)
    os.makedirs(pool)
    for deb in debs:
        shutil.copyfile(deb, os.path.join(pool, os.path.basename(deb)))
    kinds = {field_of(deb, "Architecture") for deb in debs} - {"all"}
    dists = os.path.join("dists", release)
    for kind in sorted(kinds):
        lists = output_of("apt-ftparchive", "--arch", kind, "packages", "pool/" + release, cwd=root)
        where = os.path.join(root, dists, COMPONENT, "binary-" + kind, "Packages")
        write(where, lists)
        write(where + ".gz", gzip.compress(lists.encode(), mtime=0))
    facts = {"Origin": "Rocade", "Label": "Rocade", "Suite": release, "Codename": release,
             "Components": COMPONENT, "Architectures": " ".join(sorted(kinds)),
             "Description": "RDMA in user space"}
    words = [word for name, text in facts.items()
             for word in ("-o", "APT::FTPArchive::Release::%s=%s" % (name, text))]
    text = output_of("apt-ftparchive", *words, "release", dists, cwd=root)
    # The time of the commit, so that the same commit makes the same file.
    date = time.strftime("Date: %a, %d %b %Y %H:%M:%S UTC", time.gmtime(time_s))
    lines = [date if line.startswith("Date: ") else line for line in text.splitlines()]
    write(os.path.join(root, dists, "Release"), "\n".join(lines) + "\n")


def repository_make(root, packages, time_s):
    """packages: the paths of each release's."""
    for release, debs in packages.items():
        release_make(root, release, debs, time_s)
