#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PROGRAM SOURCE PAGE: --help and the man page name the same options, the page has the version, and
mandoc finds no fault in it."""

import os
import re
import sys

import testpmd_docs as docs  # reads the same arguments

PAGE = os.path.join("docs/man", sys.argv[3])


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
    docs.version_check(man)
    docs.lint(PAGE)
    print("1..%d" % len(docs.cases))
    return 0 if all(docs.cases) else 1


if __name__ == "__main__":
    sys.exit(main())
