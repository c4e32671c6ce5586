#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PROGRAM SOURCE: the manual page of rocade-faults has the calls, errors, statuses and events of docs/faults.def, its examples are
valid scripts, --help and --version work, and mandoc finds no fault in it."""

import re
import sys
import tempfile

import testpmd_docs as docs  # reads the same arguments

PAGE = "docs/man/rocade-faults.1"


def check(script):
    """Returns how rocade-faults ends with a script of this text."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
        file.write(script)
        file.flush()
        return docs.run("check", file.name)


def main():
    man = docs.read(PAGE).replace("\\-", "-")
    rows = re.findall(r"^FAULT\(calls, (\w+), (\w+),", docs.read("docs/faults.def"), re.M)
    want = {}
    for call, error in rows:
        want.setdefault(call, []).append(error)
    section = man.split(".SH CALLS AND ERRORS\n")[1].split(".SH")[0]
    listed = {call: errors.split(", ") for call, errors in re.findall(r"^\.B (\w+)\n.*: ([A-Z, ]+)$", section, re.M)}
    docs.case("the page has the calls and errors that scripts may name", [] if listed == want else [listed, want])
    text = docs.read("docs/faults.def")
    section = man.split(".SH REQUESTS\n")[1].split(".SH")[0]
    named = {counted: re.findall(r'^COMPLETION\(%s, "([\w-]+)"' % counted, text, re.M) for counted in ("request", "receive")}
    listed = re.search(r"Of requests: ([\w, \n-]+)\. Of receives: ([\w, \n-]+)\.", section)
    docs.case("the page has the statuses", [] if [re.split(r",\s", part) for part in listed.groups()] == [
        named["request"], named["receive"]] else [named, listed.groups()])
    effects = re.findall(r'^PACKET\("(\w+)"', text, re.M)
    docs.case("the page has the effects on packets", [] if all('"%s"' % name in man for name in effects) else [effects])
    events = set(re.findall(r'^EVENT\(\w+, "([\w-]+)"', text, re.M))
    docs.case("the page has the events", [] if set(re.findall(r"^\.B event ([\w-]+)$", section, re.M)) == events else [events])
    section = man.split(".SH CONNECTIONS\n")[1].split(".SH")[0]
    found = re.findall(r'^CM\((\w+), (\w+), "([\w-]+)", (\w+),', text, re.M)
    reasons = [(name, number) for _, action, name, number in found if action == "REJECT"]
    docs.case("the page has the reasons of a REJ", [] if re.findall(r"^([\w-]+) \((\d+)\)", section, re.M) == reasons else [
        reasons])
    missing = [name for _, action, name, _ in found if action == "EVENT" and not re.search(
        r"^\.B (?:.*: )?event %s$" % name, section.replace("\\fI", "").replace("\\fB", ""), re.M)]
    docs.case("the page has the events of connections", missing)
    sent = {}
    for call, action, name, _ in found:
        if action == "LOSE":
            sent.setdefault(call, []).append(name)
    listed = {call: names.split(", ") for call, names in re.findall(r"(rdma_\w+): ((?:\w+, )*\w+)[;.]", section.split(
        ".BI lose")[1])}
    docs.case("the page has the messages that can be lost", [] if listed == sent else [listed, sent])
    section = man.split(".SH LINK\n")[1].split(".SH")[0].replace("\\fI", "").replace("\\fB", "")
    states = set(re.findall(r'^LINK\((\w+), "(\w+)"', text, re.M))
    docs.case("the page has the rules of the link", [] if states == set(
        ({"from": "time"}.get(what, what), state) for what, state in re.findall(
            r"^\.B (request|from) .*: link (down|up)$", section, re.M)) | {("receive", "down"), ("receive", "up")} else [states])
    done = docs.run("--help")
    docs.case("--help", [] if done.returncode == 0 and "check FILE" in done.stdout else [done])
    names = re.findall(r"^PROFILE\((\w+),", docs.read("lib/faults/profiles.def"), re.M)
    section = man.split(".SH LOOKING FOR FAILURES\n")[1].split(".SH")[0]
    found = re.findall(r"^\.TP\n\.B (\w+)$", section, re.M)
    docs.case("the page has the profiles", [] if names and found == names and "\n%s, which is the default, %s or %s.\n" % (
        names[0], ", ".join(names[1:-1]), names[-1]) in man else [names, found])
    usage = docs.run("explore", "--help").stdout.partition("--profile NAME")[2].partition("\n  --")[0]
    found = re.findall(r"(?:^|[;\s])(\w+):\s", usage)
    docs.case("--help has the profiles", [] if found == names else [names, usage])
    for command in "explore", "shrink":
        done = docs.run(command, "--help")
        options = re.findall(r"^  (--\w+)", done.stdout, re.M)
        docs.case("the page has the options of %s" % command, [] if done.returncode == 0 and len(options) > 3 and all(
            ".B " + option in man for option in options) else [done])
    flags = re.findall(r'OPTION_FLAG, 0, "([\w-]+)"', docs.read("app/run/run_main.c"))
    docs.case("explore knows the options of rocade-run without a value", [] if flags and re.findall(
        r'"--([\w-]+)"', docs.read("app/faults/run_program.c").split("flags[] = {")[1].split("}")[0]) == flags else [flags])
    docs.version_check(man)
    example = man.split(".SH EXAMPLES\n.nf\n")[1].split(".fi")[0]
    done = check(example)
    docs.case("the examples are a script", [] if done.returncode == 0 and "9 rules in all" in done.stdout else [done])
    for journal in re.findall(r"^in \".* process \d+$", man.split(".SH JOURNAL")[1], re.M):
        done = check(journal)
        docs.case("a line of a journal is a rule: %s" % journal, [] if done.returncode == 0 else [done])
    docs.lint(PAGE)
    print("1..%d" % len(docs.cases))
    return 0 if all(docs.cases) else 1


if __name__ == "__main__":
    sys.exit(main())
