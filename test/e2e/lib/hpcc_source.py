#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hpcc_source.py FOLDER: downloads the source of Debian's package hpcc with apt-get and unpacks it
into FOLDER/hpcc, unless that exists. Debian builds hpcc for Open MPI only. Installs nothing."""

import glob
import os
import shutil
import sys
import tempfile

import process

SUITE = "bookworm"
MAKE = """TOPdir = ../../..
MKDIR = mkdir -p
CD = cd
HPLlib = $(TOPdir)/lib/libhpl.a
CC = %s -O1 -w -I$(TOPdir)/include -I$(TOPdir)/../include
LINKER = %s
HPL_LIBS = $(HPLlib) -lblas -lm
ARCHIVER = ar
ARFLAGS = r
RANLIB = ranlib
"""


def fetch(cache):
    """Returns the folder of the unpacked source, which it keeps in the cache."""
    cache = os.path.abspath(cache)
    os.makedirs(cache, exist_ok=True)
    there = os.path.join(cache, "hpcc")
    if os.path.isdir(there):
        return there
    fresh = tempfile.mkdtemp(dir=cache)
    os.mkdir(os.path.join(fresh, "lists"))
    sources = os.path.join(fresh, "sources.list")
    with open(sources, "w", encoding="ascii") as file:
        file.write("deb-src http://deb.debian.org/debian %s main\n" % SUITE)
    apt = ["apt-get", "-o", "APT::Sandbox::User=root", "-o", "Dir::Etc::sourcelist=" + sources, "-o",
           "Dir::Etc::sourceparts=-", "-o", "Dir::State::lists=%s/lists" % fresh]
    process.run([*apt, "update"], 300, check=True)
    process.run([*apt, "source", "--download-only", "--tar-only", "hpcc"], 300, cwd=fresh, check=True)
    made = os.path.join(fresh, "hpcc")
    os.mkdir(made)
    process.run(["tar", "xf", glob.glob(os.path.join(fresh, "hpcc_*.orig.tar.*"))[0], "-C", made,
                 "--strip-components=1"], 60, check=True)
    os.rename(made, there)
    shutil.rmtree(fresh)
    return there


def build(source, folder, compiler):
    """Builds hpcc in a folder. Returns the program."""
    process.run(["cp", "-r", source, folder], 60, check=True)
    here = os.path.join(folder, os.path.basename(source))
    with open(os.path.join(here, "hpl", "Make.rocade"), "w", encoding="ascii") as file:
        file.write(MAKE % (compiler, compiler))
    process.run(["make", "-j2", "arch=rocade"], 600, cwd=here, check=True)
    return os.path.join(here, "hpcc")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    print("the source of hpcc: " + fetch(sys.argv[1]))
