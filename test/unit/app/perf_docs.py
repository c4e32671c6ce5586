#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-perf: --help and the man page have the same options, exit codes and version, and invalid
options are refused with one line."""

import re
import sys

import testpmd_docs as docs  # reads the same arguments: PROGRAM SOURCE

# Options of EAL that the documents name.
EAL = docs.EAL

WRONG = [("--frobnicate",), ("--size",), ("--size", "1x"), ("--qps", "0"), ("--mtu", "1000"),
         ("--mode", "sink"), ("--mode", "pingpong", "--qps", "2"),
         ("--sq-depth", "8", "--burst", "16"), ("--sq-depth", "8", "--signal-every", "16"),
         ("--sq-depth", "159", "--burst", "100", "--signal-every", "64"),
         ("--sq-depth", "8", "--signal-every", "9", "--mode", "pingpong"),
         ("--mode", "raw-pingpong", "--size", "59"), ("--mode", "write-lat", "--size", "0"),
         ("--qpn-base", "0xfffffe", "--qps", "2"), ("--mode", "write", "--ud"),
         ("--mode", "read-lat", "--events"), ("--events", "--engines", "2"),
         ("--ud", "--size", "4097"), ("--ud", "--size", "2048", "--mtu", "1024"),
         ("--engines", "17"), ("--device", "rocade0", "--loss-ppm", "1"),
         ("--device", "rocade0", "--mode", "raw-pingpong")]


def one_sentence(done):
    return done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout


def main():
    options = re.findall(r'^(?:NUM|POWER|SIZE|WORD|FLAG|TEXT|HELP|VERSION)\("([\w-]+)"',
                         docs.read("app/perf/perf_options.def"), re.M)
    help_text = docs.run("--help")
    man = docs.read("docs/man/rocade-perf.1")
    docs.case("options.def has options", [] if len(options) > 20 else [options])
    docs.case("--help exits with 0", [] if help_text.returncode == 0 and not help_text.stderr else
              [help_text])
    docs.case("--help prints the same after --",
              [] if docs.run("--", "--help").stdout == help_text.stdout else ["not the same"])
    for name, text in (("--help", help_text.stdout), ("the man page", docs.roff(man))):
        docs.case("%s lists every option" % name, [o for o in options if not re.search(
            r"--%s(?![\w-])" % o, text)])
        docs.case("%s lists no other option" % name, sorted(
            set(re.findall(r"(?<![\w-])--([a-z][\w-]+)", text)) - set(options) - EAL))
    rows = dict(re.findall(r"^  --([\w-]+)(?: [A-Z]+)? +(.*?)(?=^  --|^\S|^$)", help_text.stdout,
                           re.M | re.S))
    plain = docs.words(docs.roff(man)).lower()
    docs.case("the man page describes each option as --help", [
        (name, text) for name, text in rows.items() if docs.words(text).lower() not in plain])
    docs.case("all options were compared", sorted(set(options) - set(rows)))
    table = docs.exit_table(help_text.stdout)
    docs.case("the exit codes are 0 to 3", [] if sorted(table) == list("0123") else [table])
    docs.case("the man page has the same exit codes",
              [] if docs.exit_table(man) == table else [docs.exit_table(man), table])
    docs.case("invalid options exit with 2 and one line", [
        args for args in WRONG
        if not one_sentence(docs.run("--", "--socket", "/nonexistent", *args))])
    docs.case("a missing --socket exits with 2 and one line",
              [] if one_sentence(docs.run("--", "--server")) else [docs.run("--", "--server")])
    version = docs.run("--version")
    want = re.search(r"version: '([\d.]+)'", docs.read("meson.build")).group(1)
    docs.case("--version prints the version",
              [] if version.stdout == "rocade-perf %s\n" % want else [version])
    docs.case("the man page has the version",
              [] if want in man.split("\n.SH", 1)[0] else [want])
    fields = set(re.findall(r'(?:put|set_new)\(\s*object, "(\w+)"', docs.read("app/perf/result.c")))
    section = docs.roff(man.split("\n.SH JSON", 1)[1].split("\n.SH", 1)[0])
    own = {o.replace("-", "_") for o in options}
    docs.case("the man page has every field of the JSON", sorted(
        f for f in fields - own if not re.search(r"\b%s\b" % f, section)))
    print("1..%d" % len(docs.cases))
    return 0 if all(docs.cases) else 1


if __name__ == "__main__":
    sys.exit(main())
