#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""readme_check.py SOURCE COMPILER...: the C program of README.md compiles as it stands on the page,
against include/, libibverbs and DPDK's headers, without a warning. README.md names files that exist,
docs/troubleshooting.md names counters that exist, and pages state one port MTU for a path MTU."""

import os
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```c\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
PATH = re.compile(r"(?:^|[\s(`])((?:app|config|docs|test|tools)/[\w./-]*\w)")
HEADERS = 88  # of the largest packet, beside the payload: docs/protocol.md 1.5
# "path MTU 4096 needs 4184", "4184 for a path MTU of 4096"
NEEDS = re.compile(r"path\s+MTU\s+(?:of\s+)?(\d+)\s+needs\s+(?:a\s+port\s+MTU\s+of\s+)?(\d+)"
                   r"|\b(\d+)\s+for\s+(?:a\s+)?path\s+MTU\s+(?:of\s+)?(\d+)", re.I)

TABLES = ("lib/base/base_stats.def", "lib/switch/sw_stats.def", "lib/cm/cm_stats.def",
          "lib/base/account.def")
ROW = re.compile(r"^\w*(STAT|ERROR|DROP|ACCOUNT)\((\w+),", re.M)
COUNTER = re.compile(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`")
ROWS_LEAST = 25

_cases = []


def case(name, why):
    """Fails when there is a why."""
    _cases.append(not why)
    print("%s %d - %s" % ("not ok" if why else "ok", len(_cases), name))
    for line in why.splitlines():
        print("# " + line)


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def flags():
    """The compiler's, of what the program includes; DPDK's headers count as the system's."""
    out = subprocess.run(["pkg-config", "--cflags", "libdpdk", "libibverbs"], text=True,
                         capture_output=True, check=True).stdout.split()
    return [word.replace("-I", "-isystem", 1) if word.startswith("-I") else word for word in out]


def compiled(source, compiler, text):
    """What the compiler says, with its status; empty when all is well."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snippet.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(
            compiler + flags() + ["-I" + os.path.join(source, "include"), "-Wall", "-Wextra",
                                  "-Werror", "-c", path, "-o", os.path.join(folder, "snippet.o")],
            text=True, capture_output=True, check=False)
    return "" if done.returncode == 0 else "exit status %d\n%s" % (done.returncode, done.stderr)


def missing(source, page, text):
    names = set(LINK.findall(text)) | set(PATH.findall(text))
    return "".join("%s names %s, which is not there\n" % (page, name) for name in sorted(names)
                   if "://" not in name and not os.path.exists(os.path.join(source, name)))


def mtus(source):
    pages = ["README.md", "include/rocade/rocade.h", "config/rocaded.conf"]
    pages += ["docs/" + name for name in sorted(os.listdir(os.path.join(source, "docs")))
              if name.endswith(".md")]
    pages += ["docs/man/" + name for name in sorted(os.listdir(os.path.join(source, "docs/man")))]
    found = 0
    for page in pages:
        for match in NEEDS.finditer(read(source, page)):
            path, port = match.group(1, 2) if match.group(1) else match.group(4, 3)
            found += 1
            if int(port) != int(path) + HEADERS:
                yield "%s: a port MTU of %s for a path MTU of %s, not %d" % (
                    page, port, path, int(path) + HEADERS)
    if found == 0:
        yield "no page states the port MTU"


def counters(source):
    """The names in the column of counters, and those behind the tables, that no table has."""
    known = {"sq_full_unsignaled"} & set(re.findall(r"\w+", read(source, "include/rocade/rocade.h")))
    for table in TABLES:
        known |= {("drop_" if kind == "DROP" else "") + name
                  for kind, name in ROW.findall(read(source, table))}
    text = read(source, "docs/troubleshooting.md")
    rows = [line.split("|")[2] for line in text.splitlines()
            if line.startswith("|") and line.count("|") == 4 and not line.startswith("|-")]
    if len(rows) < ROWS_LEAST:
        yield "docs/troubleshooting.md has %d rows" % len(rows)
    for name in sorted(set(COUNTER.findall(" ".join(rows) + text.rsplit("|", 1)[1])) - known):
        yield "docs/troubleshooting.md: no counter %s" % name


def main():
    source, compiler = sys.argv[1], sys.argv[2:]
    text = read(source, "README.md")
    programs = [block for block in BLOCK.findall(text) if "main(" in block]
    case("README.md has a C program", "" if len(programs) == 1 else "%d programs" % len(programs))
    for program in programs:
        case("it compiles", compiled(source, compiler, program))
        case("the check sees an error",
             "" if compiled(source, compiler, program + "int unused(int x) { return y; }\n") else
             "a program with an error compiles")
    case("files that README.md names exist", missing(source, "README.md", text))
    case("one port MTU for a path MTU", "\n".join(mtus(source)))
    case("counters of docs/troubleshooting.md exist", "\n".join(counters(source)))
    print("1..%d" % len(_cases))
    return 0 if all(_cases) else 1


if __name__ == "__main__":
    sys.exit(main())
