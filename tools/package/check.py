# SPDX-License-Identifier: BSD-3-Clause
"""Checks debian/ against a build of the tree, without building the packages. Prints TAP.

    check.py SOURCE BUILD PREFIX

BUILD was configured for PREFIX and --libdir=lib, as tools/test.sh does."""

import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile

from build import copy_source, source_files, version_of
from chroots import must, output_of
from tap import case, end, group

TRIPLET = "lib/x86_64-linux-gnu"
# debhelper's tools place what these files name, from debian/tmp.
LISTS = "debian/*.install"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows(path):
    """Returns the lines of a list of debhelper, without comments."""
    return [line for line in read(path).splitlines() if line and not line.startswith("#")]


def installed(build, prefix, folder):
    """Installs as `dh_auto_install` does. Returns the files by their name in the package."""
    must(["meson", "install", "-C", build, "--no-rebuild", "--destdir", folder])
    root = folder + prefix
    names = {}
    for where, _, files in os.walk(root):
        for name in files:
            path = os.path.join(where, name)
            inside = "usr/" + os.path.relpath(path, root)
            plain = not inside.startswith("usr/lib/systemd/")
            names[re.sub("^usr/lib/", "usr/%s/" % TRIPLET, inside) if plain else inside] = path
    return names


def names_it(pattern, name):
    """Whether a line of a list, which may name a folder, names the file."""
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, pattern + "/*")


def list_faults(patterns, files, tree=()):
    """patterns: (list, line) pairs. Returns files that are not in exactly one list, and lines that
    name neither a file nor one of the tree."""
    taken = {name: [p for p, pattern in patterns if names_it(pattern, name)] for name in files}
    wrong = ["%s is in %d lists" % (name, len(p)) for name, p in sorted(taken.items())
             if len(p) != 1]
    unused = ["%s: %s" % (path, pattern) for path, pattern in patterns
              if not any(names_it(pattern, name) for name in [*files, *tree])]
    return wrong, unused


def lists(top, files):
    """Each installed file is in one package, or named as in none."""
    paths = sorted(glob.glob(os.path.join(top, LISTS))) + [os.path.join(top, "debian/not-installed")]
    wrong, unused = list_faults([(path, row.split()[0]) for path in paths for row in rows(path)],
                                files, source_files(top))
    case("each of %d installed files is in one list of debian/" % len(files), files and not wrong,
         "\n".join(wrong))
    case("each line of the lists names a file", not unused, "\n".join(unused))


def symbols(top, build, files, version):
    """debian/librocade0.symbols has the symbols that the libraries export."""
    with tempfile.TemporaryDirectory() as folder:
        libraries = [path for name, path in files.items()
                     if re.search(r"/librocade(-rdmacm)?\.so\.0$", name)]
        for path in libraries:
            os.makedirs(folder + "/p/usr/lib", exist_ok=True)
            must(["cp", os.path.realpath(path), folder + "/p/usr/lib/" + os.path.basename(path)])
        status, text = output_of(
            ["dpkg-gensymbols", "-c4", "-plibrocade0", "-v" + version, "-P" + folder + "/p",
             "-I" + os.path.join(top, "debian/librocade0.symbols"), "-O" + folder + "/symbols"])
    case("debian/librocade0.symbols has what the two libraries export",
         len(libraries) == 2 and status == 0, text)


def manual(files):
    """Each program has a page of the manual."""
    programs = [name.split("/")[-1] for name in files if name.startswith("usr/bin/")]
    pages = [re.sub(r"\.\d$", "", name.split("/")[-1]) for name in files if "/man/man" in name]
    case("each of %d programs has a page of the manual" % len(programs),
         programs and sorted(programs) == sorted(pages), (programs, pages))


def units(files, prefix, folder):
    """systemd accepts the units, with the program where this build has it."""
    to = os.path.join(folder, "units")
    os.makedirs(to)
    names = [name for name in files if name.startswith("usr/lib/systemd/system/")]
    for name in names:
        text = re.sub(r"(?m)^(Exec\w+=)rocaded ", r"\1%s/bin/rocaded " % (folder + prefix),
                      read(files[name]))
        with open(os.path.join(to, os.path.basename(name)), "w", encoding="utf-8") as file:
            file.write(text)
    status, text = output_of(["systemd-analyze", "verify", "--man=no",
                              *sorted(glob.glob(to + "/*"))])
    # Units of the machine itself may have faults of their own.
    own = [line for line in text.splitlines() if "rocade" in line]
    case("systemd-analyze verify accepts the %d units" % len(names),
         len(names) == 2 and not own and status == 0, text)


# Prints what the completion of a program offers for the words that follow it.
COMPLETE = """. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_rocade "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def libraries_of(files):
    """Returns the environment in which the programs find their library."""
    return dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(files["usr/%s/librocade.so.0" % TRIPLET]))


def complete(files, program, *words):
    text = must(["bash", "-c", COMPLETE, "bash",
                 files["usr/share/bash-completion/completions/" + program],
                 files["usr/bin/" + program], *words], env=libraries_of(files))
    return text.split()


def completion(files, folder):
    """bash completes each option that --help prints, files, and the program that is run."""
    programs = sorted(name.split("/")[-1] for name in files if name.startswith("usr/bin/"))
    for program in programs:
        text = must([files["usr/bin/" + program], "--help"], env=libraries_of(files))
        options = set(re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+)", text, re.M)) | {"--help", "--version"}
        offered = set(complete(files, program, "--"))
        case("%s: bash completes %d options" % (program, len(options)),
             len(options) > (program != "rocade-faults") + 1 and offered == options | set(
                 re.findall(r"^ +--[a-z0-9-]+(?: [A-Z]+)?, (--[a-z0-9-]+)", text, re.M)),
             (sorted(options ^ offered), text))
    must(["touch", folder + "/some-file"])
    case("and files where an option has a file",
         complete(files, "rocade-dump", "--write", folder + "/some-f") == [folder + "/some-file"])
    case("but nothing where it has a number", complete(files, "rocade-dump", "--count", "") == [])
    case("and the command and the file of rocade-faults", complete(files, "rocade-faults", "ch") == ["check"] and
         complete(files, "rocade-faults", "check", folder + "/some-f") == [folder + "/some-file"])
    case("and commands for rocade-run",
         "rocade-run" not in complete(files, "rocade-run", "--socket", "x", "--no-") and
         "unshare" in complete(files, "rocade-run", "--socket", "x", "unsha"))


def source_package(top, version):
    """dpkg-source builds the source package, of which lintian has nothing to say."""
    with tempfile.TemporaryDirectory() as folder:
        copy_source(top, folder + "/rocade")
        status, text = output_of(["dpkg-source", "-Zgzip", "-z1", "-b", "rocade"], cwd=folder)
        dsc = folder + "/rocade_%s.dsc" % version
        case("dpkg-source builds the source package", status == 0 and os.path.exists(dsc), text)
        status, text = output_of(["lintian", "--allow-root", "--display-info", "--fail-on", "none",
                                  dsc])
        case("lintian has nothing to say about it", status == 0 and not text.strip(), text)


def versions(top, build):
    """debian/changelog has the version of meson.build and CHANGELOG.md."""
    meson = re.search(r"version: '([^']+)'", read(os.path.join(top, "meson.build"))).group(1)
    logged = re.search(r"^## (\S+)", read(os.path.join(top, "CHANGELOG.md")), re.M).group(1)
    found = {"debian/changelog": version_of(top), "meson.build": meson, "CHANGELOG.md": logged}
    case("debian/changelog has the version of the tree", len(set(found.values())) == 1, found)
    return version_of(top)


def main(top, build, prefix):
    version = versions(top, build)
    with tempfile.TemporaryDirectory() as folder:
        files = group(installed, build, prefix, folder)
        if files:
            group(lists, top, files)
            group(symbols, top, build, files, version)
            group(manual, files)
            group(units, files, prefix, folder)
            group(completion, files, folder)
    group(source_package, top, version)
    return end()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*(os.path.abspath(path) for path in sys.argv[1:])))
