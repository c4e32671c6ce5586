#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/package: which lists of debian/ are wrong, how systems are compared, what a run or a failed
test has printed."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/package"))
import cases  # noqa: E402
import check  # noqa: E402
import chroots  # noqa: E402
import cross  # noqa: E402
import lifecycle  # noqa: E402
import package  # noqa: E402

LISTS = [("a", "usr/bin"), ("b", "usr/lib/*/*.so.0*"), ("c", "docs/*.svg")]
FILES = ["usr/bin/one", "usr/lib/x/lib.so.0"]

SYMBOLS = """librocade.so.0 librocade0 #MINVER#
* Build-Depends-Package: librocade-dev
 rocade_version@Base 0.1.0
"""
PATHS = ["-rw-r--r-- root/root 70 2026-11-26 15:26 ./usr/lib/%s-linux-gnu/rocade/a.so" % name
         for name in ("aarch64", "x86_64")]

# What autopkgtest 5.28 prints. The output of `long` does not end with a newline.
AUTOPKGTEST = """autopkgtest [12:00:00]: test good: [-----------------------
passes
autopkgtest [12:00:01]: test good: -----------------------]
autopkgtest [12:00:01]: test good:  - - - - - - - - - - results - - - - - - - - - -
good                 PASS
autopkgtest [12:00:02]: test long: [-----------------------
%sautopkgtest [12:00:03]: test long: -----------------------]
long                 FAIL non-zero exit status 1
autopkgtest [12:00:04]: test short: [-----------------------
autopkgtest [12:00:05]: test short: -----------------------]
short                FAIL non-zero exit status 2
absent               FAIL badpkg
autopkgtest [12:00:06]: @@@@@@@@@@@@@@@@@@@@ summary
good                 PASS
long                 FAIL non-zero exit status 1
short                FAIL non-zero exit status 2
absent               FAIL badpkg
""" % "\n".join("line %d" % n for n in range(100))


def faults(lists, files):
    return check.list_faults(lists, files, ["docs/a.svg"])


def files_after(*paths):
    """Files of a system to which these were added."""
    with tempfile.TemporaryDirectory() as folder:
        system = chroots.Chroot(folder)
        before = system.files()
        for path in paths:
            system.write(path, "")
        return sorted(system.files() - before)


def killed():
    status, text = chroots.output_of(["sh", "-c", "echo begun; exec sleep 60"], 0.5)
    return status, "killed after" in text


CASES = [
    ("lists that fit", faults(LISTS, FILES), ([], [])),
    ("a file in no list", faults(LISTS, FILES + ["usr/sbin/two"])[0], ["usr/sbin/two is in 0 lists"]),
    ("a file in two lists", faults(LISTS + [("d", "usr/bin/one")], FILES)[0],
     ["usr/bin/one is in 2 lists"]),
    ("a line without a file", faults(LISTS + [("d", "usr/share/x")], FILES)[1], ["d: usr/share/x"]),
    ("a file that is left is seen", files_after("/etc/rocaded.conf"),
     ["/etc", "/etc/rocaded.conf"]),
    ("so are scripts that dpkg keeps", files_after("/var/lib/dpkg/info/rocade.postrm")[-1:],
     ["/var/lib/dpkg/info/rocade.postrm"]),
    ("but not logs", files_after("/var/log/apt/history.log"), ["/var"]),
    ("a command is killed at its limit", killed(), (124, True)),
    ("names of the symbols of a list", cross.exported(SYMBOLS), ["rocade_version@Base"]),
    ("the same path for two architectures", cross.neutral(PATHS), {"./usr/lib/TRIPLET/rocade/a.so"}),
    ("another path for another package", cross.neutral([PATHS[0], PATHS[1] + ".0"]),
     {"./usr/lib/TRIPLET/rocade/a.so", "./usr/lib/TRIPLET/rocade/a.so.0"}),
    ("what failed tests have printed", package.failed_tests(AUTOPKGTEST),
     ["test long, the last 60 of 100 lines:", *["line %d" % n for n in range(40, 100)],
      "test short, the last 0 of 0 lines:"]),
    ("lines of what happened", lifecycle.said("x\nsay after: 1\nsaying\n"), ["after: 1"]),
]

if __name__ == "__main__":
    sys.exit(cases.run(CASES))
