#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The comment at the head of a header that says by which files its functions are called ("Called by")
names the files of its folder that call them, and no other. Headers whose functions are in several files
are left out. Usage: callers_check.py SOURCE"""

import os
import re
import sys

CALLED_BY = re.compile(r"Called by ((?:[^.;:]|\.[ch]\b)+)")
DECLARED = re.compile(r"^(?:[A-Za-z_][^\n;={}()#]*[ *])?([a-z_]\w+)\(", re.M)


def read(source):
    """Returns {path: text} of lib and drivers."""
    files = {}
    for top in ("lib", "drivers"):
        for folder, _, names in os.walk(os.path.join(source, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        files[os.path.relpath(path, source)] = file.read()
    return files


def code(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def check(files):
    """Yields a line for each list that is wrong."""
    codes = {path: code(text) for path, text in files.items()}
    for path, text in sorted(files.items()):
        head = re.sub(r"\n \* ?", " ", text.split("#ifndef")[0])
        match = CALLED_BY.search(head)
        if not path.endswith(".h") or path[:-1] + "c" not in files or not match:
            continue
        named = set(re.findall(r"\w+\.[ch]\b", match.group(1)))
        calls = re.compile(r"\b(?:%s)\(" % "|".join(set(DECLARED.findall(codes[path]))))
        callers = {os.path.basename(other) for other, text in codes.items()
                   if os.path.dirname(other) == os.path.dirname(path) and
                   other not in (path, path[:-1] + "c") and calls.search(text)}
        for name in sorted(callers - named):
            yield "%s: %s calls it too" % (path, name)
        for name in sorted(named - callers):
            yield "%s: %s does not call it" % (path, name)


def selftest():
    header = "/* X. Called by b.c\n * and c.c. */\n#ifndef X\nint a_run(void);\n"
    files = {"lib/q/a.h": header, "lib/q/a.c": "int\na_run(void)\n", "lib/q/b.c": "\ta_run();\n"}
    wrong = list(check(files))
    files["lib/q/c.c"] = "\treturn a_run();\n"
    right = list(check(files))
    files["lib/q/d.c"] = "\ta_run();\n"
    return (wrong == ["lib/q/a.h: c.c does not call it"] and right == [] and
            list(check(files)) == ["lib/q/a.h: d.c calls it too"])


def main():
    found = list(check(read(sys.argv[1])))
    print("1..2")
    for line in found:
        print("# " + line)
    print("%s 1 - headers name the files that call them" % ("not ok" if found else "ok"))
    print("%s 2 - the check finds a missing file and one too many" % ("ok" if selftest() else "not ok"))
    return 1 if found or not selftest() else 0


if __name__ == "__main__":
    sys.exit(main())
