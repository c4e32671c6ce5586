#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Calls every verb on Rocade's objects with libraries in the place of libibverbs and librdmacm that abort
where a real function would be called with one. There are two pairs of them: with the symbols of the
installed libraries, and with those of rdma-core 65, too. What the functions of both pass on goes to the
installed libraries.

    stand_in_test.py RUN ROCADED PROGRAM LIBIBVERBS LIBRDMACM TABLE NEWEST -- COMPILER..."""

import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../e2e/lib"), os.path.join(HERE, "..")]
import process  # noqa: E402
import symbols_test  # noqa: E402
from tap import case, run  # noqa: E402

RUN, ROCADED, PROGRAM, *LIBRARIES, TABLE, NEWEST = [os.path.abspath(a) for a in sys.argv[1:8]]
COMPILER = sys.argv[9:]
SONAMES = ("libibverbs.so.1", "librdmacm.so.1")
# Rocade asks for the devices of the host.
LISTS = {("ibv_get_device_list", "IBVERBS_1.1"), ("ibv_free_device_list", "IBVERBS_1.1")}
# Takes an object that no device of Rocade makes.
NONE = {"ibv_dealloc_dmah"}
DATA = {"verbs_allow_disassociate_destroy"}


def node_key(node):
    """Orders version nodes by their release, the private ones behind."""
    numbers = [int(n) for n in re.findall(r"\d+", node)]
    return ["PRIVATE" in node, numbers]


def rule(table, name, node):
    rows = table.rows_of(name, node)
    if (name, node) in LISTS:
        return "ANY_OBJECT"
    if name in NONE:
        return "NOWHERE"
    if name in table.cm:
        # Rocade's function gives the real one the same ID. That each reference leads to Rocade's is
        # seen without a call: every_verb librdmacm.
        return "ANY_OBJECT"
    if rows and rows[0][0] == "FORWARD":
        return "NEVER"
    reasons = {why for row, at, why in table.reals if (row, at) in rows}
    return "ANY_OBJECT" if reasons == {"over_verbs"} else "NO_OBJECT"


def source(symbols, table, real):
    """Returns the text of a library with these symbols: {(name, node)}."""
    lines = ['#define REAL_LIBRARY "%s"' % real, '#include "stand_in.h"']
    for number, (name, node) in enumerate(sorted(symbols)):
        if name in DATA:
            continue
        newest = max((n for other, n in symbols if other == name), key=node_key)
        symbol = "%s%s%s" % (name, "@@" if node == newest else "@", node)
        lines.append('STUB(%d, %s, "%s", "%s", "%s")' % (number, rule(table, name, node), name, symbol,
                                                         node))
    return "\n".join(lines) + "\n"


def script(symbols):
    """Returns the version script: each node follows the one before it."""
    text, before = "", ""
    for node in sorted({node for _, node in symbols}, key=node_key):
        text += "%s { %s } %s;\n" % (node, "" if before else "local: stub_*;", before)
        before = node
    return text + "STAND_IN { global: stand_in_object; } %s;\n" % before


def build(folder, symbols, table):
    """Builds both libraries in the folder."""
    for soname, real in zip(SONAMES, LIBRARIES):
        own = {(name, node) for name, node in symbols if node.startswith(soname[3:-5].upper())}
        stem = os.path.join(folder, soname)
        for suffix, text in ((".c", source(own, table, real)), (".map", script(own))):
            with open(stem + suffix, "w", encoding="utf-8") as file:
                file.write(text)
        done = process.run([*COMPILER, "-shared", "-fPIC", "-Wall", "-Werror", "-D_GNU_SOURCE",
                            "-I", HERE, "-o", stem, stem + ".c", "-Wl,-soname," + soname,
                            "-Wl,--version-script=" + stem + ".map"])
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)


def called(folder, *words):
    return process.run([RUN, "--daemon", ROCADED, "--start-local", PROGRAM, *words],
                       env=dict(os.environ, LD_LIBRARY_PATH=folder, ROCADE_OFF=""))


def judge(what, folder, verbs, functions):
    done = called(folder)
    case("%s: no verb of the table comes to a real function" % what,
         done.stdout == "%d calls of %d verbs\n" % (2 * verbs, verbs) and done.returncode == 0,
         done.stdout + done.stderr)
    done = called(folder, "librdmacm")
    case("%s: no reference leads past Rocade's functions of librdmacm" % what,
         done.stdout == "%d functions of librdmacm\n" % functions and done.returncode == 0,
         done.stdout + done.stderr)
    done = called(folder, "connect")
    case("%s: nor do those that librdmacm calls" % what, done.stdout == "connected\n",
         done.stdout + done.stderr)
    done = called(folder, "bypass", "ibv_dealloc_pd", "IBVERBS_1.0")
    case("%s: a real function that gets an object aborts" % what,
         "the real ibv_dealloc_pd is called" in done.stderr and done.returncode != 0,
         done.stdout + done.stderr)


def libraries():
    with open(TABLE, encoding="utf-8") as file:
        table = symbols_test.Table(file.read())
    installed = set.union(*map(symbols_test.exported, LIBRARIES))
    for what, symbols in (("installed", installed),
                          ("rdma-core 65", installed | symbols_test.listed(NEWEST))):
        with tempfile.TemporaryDirectory() as folder:
            build(folder, symbols, table)
            judge(what, folder, len(table.forwards), len(table.cm))


if __name__ == "__main__":
    sys.exit(run(libraries))
