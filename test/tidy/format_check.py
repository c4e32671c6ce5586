#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every C file is as clang-format writes it. Prints TAP.

    format_check.py SOURCE

The versions of clang-format differ in small things: the tree is formatted by version 14, that of
Debian 12. Without it the test is skipped."""

import os
import re
import shutil
import subprocess
import sys

VERSION = 14
TOPS = ("lib", "drivers", "app", "include", "test")
SKIPPED = 77   # meson's exit status for a skipped test


def find_clang_format():
    for name in ("clang-format-%d" % VERSION, "clang-format"):
        path = shutil.which(name)
        if path:
            text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
            match = re.search(r"version (\d+)\.", text.stdout)
            if match and int(match.group(1)) == VERSION:
                return path
    return None


def sources(root):
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def unformatted(tool, root, files):
    """The files that clang-format would change."""
    done = subprocess.run([tool, "--dry-run", "-Werror", *files], cwd=root, capture_output=True,
                          text=True, check=False)
    named = {line.split(":")[0] for line in done.stderr.splitlines() if ": error: " in line}
    return sorted(named) if done.returncode != 0 else []


def main():
    root = sys.argv[1]
    tool = find_clang_format()
    if tool is None:
        print("1..0 # SKIP no clang-format %d" % VERSION)
        return SKIPPED
    found = unformatted(tool, root, list(sources(root)))
    print("1..1\n%s 1 - every C file is as clang-format %d writes it" % (
        "not ok" if found else "ok", VERSION))
    for path in found:
        print("# %s:1: run clang-format -i %s" % (path, path))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
