#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd: --help, man page and docs/testpmd.md have the same options and exit codes, and
the commands of `help`, the fields of --json and the version."""

import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../e2e/lib"))
import process  # noqa: E402

PROGRAM, SOURCE = sys.argv[1:3]
EXIT = {"help": 0, "version": 0, "usage": 2}
cases = []


def case(name, missing):
    cases.append(not missing)
    print("%sok %d - %s" % ("not " if missing else "", len(cases), name))
    for what in missing:
        print("# %s" % (what,))


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def run(*args, text=None):
    return process.run((PROGRAM,) + args, feed=text)


def version_check(man):
    """--version and the man page have the version of the project."""
    version = re.search(r"version: '([\d.]+)'", read("meson.build")).group(1)
    case("--version prints the version", [] if version in run("--version").stdout else [version])
    case("the man page has the version", [] if version in man.split("\n.SH", 1)[0] else [man])


def lint(page):
    """mandoc finds no fault in a man page. They have no dates, and lines as long as the other files."""
    done = process.run(("mandoc", "-T", "lint", os.path.join(SOURCE, page)))
    case("mandoc finds no fault", [line for line in done.stdout.splitlines()
                                   if "missing date" not in line and "input text line longer" not in line])


def words(text):
    return " ".join(text.split())


def roff(text):
    """Returns the text of a man page without its markup."""
    text = re.sub(r"\\f[BIRP]", "", text).replace("\\-", "-").replace("\\e", "\\")
    return re.sub(r"^\.(TP|PP|nf|fi|RS|RE|EX|EE|B|BR|I|SS|SH)\b ?", "", text, flags=re.M)


def exit_table(text):
    """Returns {code: text} of lines "N  text", "| N | text |" or ".B N" and the next line."""
    part = text[re.search(r"^(\.SH |#+ )?exit (codes|status)", text, re.I | re.M).start():]
    rows = re.findall(r"^(?:  |\| |\.B )([0-9])(?:  | \| |\n)(.*?)(?: \|)?$", part, re.M)
    return {code: roff(what) for code, what in rows}


def main():
    options = re.findall(r'^(?:NUM|POWER|FLAG|FN|HELP|VERSION)\("([\w-]+)"',
                         read("app/testpmd/testpmd_options.def"), re.M)
    help_text = run("--help")
    man, doc = read("docs/man/rocade-testpmd.1"), read("docs/testpmd.md")
    case("options.def has options", [] if len(options) > 30 else [options])
    case("--help exits with 0", [] if help_text.returncode == 0 and not help_text.stderr else
         [help_text])
    case("--help prints the same after --",
         [] if run("--", "--help").stdout == help_text.stdout else ["not the same"])
    for name, text in (("--help", help_text.stdout), ("the man page", roff(man)),
                       ("docs/testpmd.md", doc)):
        case("%s lists every option" % name, [o for o in options if not re.search(
            r"--%s(?![\w-])" % o, text)])
        case("%s lists no other option" % name, sorted(
            set(re.findall(r"(?<![\w-])--([a-z][\w-]+)", text)) - set(options) - EAL))
    table = exit_table(help_text.stdout)
    case("the exit codes are 0 to 3", [] if sorted(table) == list("0123") else [table])
    case("the man page has the same exit codes",
         [] if exit_table(man) == table else [exit_table(man), table])
    case("docs/testpmd.md has the same exit codes",
         [] if exit_table(doc) == table else [exit_table(doc), table])
    wrong = run("--", "--frobnicate")
    case("an unknown option exits with 2 and one line",
         [] if wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and not wrong.stdout
         else [wrong])

    version = run("--version")
    want = re.search(r"version: '([\d.]+)'", read("meson.build")).group(1)
    case("--version prints the version",
         [] if version.stdout == "rocade-testpmd %s\n" % want else [version])
    case("the man page has the version", [] if want in man.split("\n.SH", 1)[0] else [want])
    commands_and_json(doc, roff(man))
    print("1..%d" % len(cases))
    return 0 if all(cases) else 1


# Options of EAL that the documents may name.
EAL = {"vdev", "no-pci", "no-huge", "in-memory", "no-shconf", "lcores", "file-prefix", "log-level"}


def commands_and_json(doc, man):
    listed = run("--", "--loop", "-i", text="help\nquit\n").stdout
    names = re.search(r"NAME:(.*?)\n# begins", listed, re.S).group(1).split()
    case("`help` lists the settings", [] if len(names) > 10 else [listed])
    unknown = []
    for name in names:
        answer = run("--", "--loop", "-i", text="set port 0 %s ?\nquit\n" % name)
        if "invalid value '?' for --%s: " % name not in answer.stderr:
            unknown.append((name, answer.stderr))
    case("`set` accepts each setting's name", unknown)
    verbs = set(re.findall(r"^(\w+)", listed, re.M)) - {"A"}
    for name, text in (("docs/testpmd.md", doc), ("the man page", man)):
        case("%s has every command" % name, [v for v in verbs if v + "" not in text])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        done = run("--", "--loop", "-c", "1000", "--json", path)
        with open(path, encoding="utf-8") as file:
            out = json.load(file)
    case("a short run succeeds", [] if done.returncode == 0 else [done])
    counters = re.findall(r"^(PORT_STAT|DROP)\((\w+),", read("lib/base/base_stats.def"), re.M)
    names = {"drop_" * (kind == "DROP") + name for kind, name in counters
             if not name.startswith("cycles_")}  # only with -Dcycles=true
    case("the JSON has every counter of a port", sorted(names - set(out["ports"][0]["stats"])) if
         len(names) > 50 else [counters])
    port = out["ports"][0]
    fields = set(out) | set(port) | set(port["impaired"]) | \
        set(port["cores"][0]) | set(port["engines"][0]) | set(port["peers"][0])
    documented = set(re.findall(r"^\| `(\w+)` \|", doc[doc.index("## JSON"):], re.M))
    case("docs/testpmd.md has every field of the JSON", sorted(fields - documented))
    case("docs/testpmd.md has no other field", sorted(documented - fields))


if __name__ == "__main__":
    sys.exit(main())
