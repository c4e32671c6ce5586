#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PROGRAM SOURCE PAGE: --help and the man page name the same options, the page has the version, and
mandoc finds no fault in it."""

import os
import re
import subprocess
import sys

import testpmd_docs as docs  # reads the same arguments

PAGE = os.path.join("docs/man", sys.argv[3])
# The man pages have no dates, and lines as long as the other files.
ALLOWED = ("missing date", "input text line longer")


def main():
    done = docs.run("--help")
    docs.case("--help exits with 0", [] if done.returncode == 0 and not done.stderr else [done])
    man = docs.read(PAGE)
    options = set(re.findall(r"(?:^  |^  --[a-z-]+, )--([a-z][a-z-]+)", done.stdout, re.M))
    options |= {"version"} if "--help, --version" in done.stdout else set()
    listed = set(re.findall(r"^\.[BI]R? --([a-z][a-z-]+)", man.replace("\\-", "-").replace(
        "\\fR", " "), re.M))
    docs.case("--help lists options", [] if len(options) > 3 else [options])
    docs.case("the man page has the options of --help", sorted(options ^ listed))
    version = re.search(r"version: '([\d.]+)'", docs.read("meson.build")).group(1)
    docs.case("--version prints the version",
              [] if version in docs.run("--version").stdout else [version])
    docs.case("the man page has the version", [] if version in man.split("\n.SH", 1)[0] else [man])
    lint = subprocess.run(["mandoc", "-T", "lint", os.path.join(docs.SOURCE, PAGE)], check=False,
                          capture_output=True, text=True)
    docs.case("mandoc finds no fault", [line for line in lint.stdout.splitlines()
                                        if not any(word in line for word in ALLOWED)])
    print("1..%d" % len(docs.cases))
    return 0 if all(docs.cases) else 1


if __name__ == "__main__":
    sys.exit(main())
