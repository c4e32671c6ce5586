#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""LIBRARY SOURCE: the static probes of the library are those of docs/tasks/trace.md, with the same arguments, and
each is a nop. `readelf -n` reads the notes."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../e2e/lib"))
from tap import case, run  # noqa: E402

LIBRARY, SOURCE = sys.argv[1:3]
NOTE = re.compile(r"Provider: (\S+)\n\s+Name: (\S+)\n\s+Location: 0x(\w+), Base: 0x(\w+), "
                  r"Semaphore: 0x(\w+)\n\s+Arguments: (.*)$", re.M)
ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", re.M)
ARGUMENT = re.compile(r"`\w+` (\d)")
# An operand of the assembler: an immediate, a register, or memory.
PLACE = re.compile(r"^(\d)@(\$-?\d+|%\w+|-?\d*\(%\w+(?:,%\w+(?:,\d)?)?\)"
                   r"|[\w.+-]+\(%rip\)|-?\d+|[wx]\d+|wzr|xzr|\[\w+(?:, ?#?-?\w+)?\])$")
NOPS = {"62": b"\x90", "183": b"\x1f\x20\x03\xd5"}  # by the ELF's machine


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, LIBRARY], check=True, text=True,
                          capture_output=True, env=dict(os.environ, LC_ALL="C")).stdout


def wanted():
    """Returns the sizes of the arguments of each probe of the page."""
    with open(os.path.join(SOURCE, "docs/tasks/trace.md"), encoding="utf-8") as file:
        return {name: ARGUMENT.findall(arguments) for name, arguments in ROW.findall(file.read())}


def places(arguments):
    """Returns the places of the arguments. A blank may be part of one."""
    return re.split(r" (?=\d@)", arguments)


def notes():
    found, want = NOTE.findall(readelf("-n")), wanted()
    case("the page has probes", len(want) >= 4 and all(want.values()), str(want))
    case("the library has the probes of the page", {note[1] for note in found} == set(want) and
         {note[0] for note in found} == {"rocade"}, str(found))
    wrong = [note for note in found if [place[0] for place in places(note[5])] != want[note[1]]]
    case("their arguments have the number and sizes of the page", found and not wrong, str(wrong))
    wrong = [note for note in found if not all(PLACE.match(place) for place in places(note[5]))]
    case("tracers know where they are", found and not wrong, str(wrong))
    base = re.search(r" \.stapsdt\.base +PROGBITS +(\w+)", readelf("-S"))
    case("the notes have the base and no semaphore", base and all(
        int(note[3], 16) == int(base[1], 16) and int(note[4], 16) == 0 for note in found), str(base))


def nops():
    """Each location, by the segment that it is in, is a nop of the machine."""
    segments = [[int(number, 16) for number in one] for one in re.findall(
        r"^ +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", readelf("-l"), re.M)]
    with open(LIBRARY, "rb") as file:
        image = file.read()
    nop = NOPS[str(int.from_bytes(image[18:20], "little"))]
    wrong = []
    for note in NOTE.findall(readelf("-n")):
        where = int(note[2], 16)
        inside = [where - at + offset for offset, at, size in segments if at <= where < at + size]
        if len(inside) != 1 or not image[inside[0]:].startswith(nop):
            wrong.append(note)
    case("each is a nop", segments and not wrong, str(wrong))


if __name__ == "__main__":
    sys.exit(run(notes, nops))
