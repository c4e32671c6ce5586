#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks lib/verbs/symbols.def: every symbol of the installed libibverbs and librdmacm, and of those of
rdma-core 65, has exactly one row. Rocade's libraries export each verb that the rows say is theirs, with
the version by which programs are linked: with another one they would bind to the real function. The
functions of the installed headers are those that lib/verbs/librocade.map lists, and the libraries have
them."""

import argparse
import os
import re
import subprocess
import sys


def symbols(library):
    """Returns {name: {(version or None, is the default)}}."""
    run = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library],
                         text=True, capture_output=True, check=True)
    found = {}
    for line in run.stdout.splitlines():
        parts = line.split()
        if len(parts) != 3 or parts[1] == "A":
            continue
        name, _, version = parts[2].partition("@")
        default = version.startswith("@") or not version
        found.setdefault(name, set()).add((version.lstrip("@") or None, default))
    return found


def exported(library):
    """Returns the library's symbols: (name, node)."""
    return {(name, version or "") for name, versions in symbols(library).items()
            for version, _ in versions}


def listed(path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {(name, node) for node, name in rows[1:]}


def headers(root):
    """Returns the texts of the headers that are installed, without comments: {name: text}."""
    with open(os.path.join(root, "include/meson.build"), encoding="utf-8") as file:
        names = re.findall(r"'(rocade/\w+\.h)'", file.read())
    texts = {}
    for name in names:
        with open(os.path.join(root, "include", name), encoding="utf-8") as file:
            texts[name] = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    return texts


def declared(text):
    """Returns the functions that a header declares."""
    return set(re.findall(r"^[a-z][\w *]*[ *](\w+)\(", text, re.M))


def fixed(text):
    """Returns the functions that fill or read a structure of this header without being told its size: neither
    their names end in _sized, nor does the structure begin with its size and is read only."""
    structs = dict(re.findall(r"^struct (rocade_\w+) \{\n(.*?)^\};", text, re.M | re.S))
    wrong = set()
    for line in re.findall(r"^(?!static)[a-z][\w *]*[ *]\w+\([^{;]*\);", text, re.M):
        name = re.search(r"(\w+)\(", line).group(1)
        for const, struct in re.findall(r"(const )?struct (rocade_\w+) (?:\*\w|\w+\[)", line):
            if struct in structs and not name.endswith("_sized") and not (
                    const and structs[struct].lstrip().startswith("size_t size;")):
                wrong.add(name)
    return wrong


def map_names(text, node):
    """Returns the names of a node of a version script."""
    body = re.search(r"^%s \{(.*?)^\}" % node, re.sub(r"/\*.*?\*/", "", text, flags=re.S), re.M | re.S)
    names = re.search(r"global:(.*?)(?:local:|$)", body.group(1), re.S) if body else None
    return set(re.findall(r"(\S+);", names.group(1))) if names else set()


def api_cases(texts, script, library, other):
    """The functions of the headers, the names of the version script, the symbols of librocade and
    those of librocade-rdmacm."""
    ours = {name: {version for version, _ in found} for name, found in symbols(library).items()
            if name.startswith("rocade_")}
    extra = {name for name in symbols(other) if name.startswith("rocade_")}
    functions = set().union(*map(declared, texts.values()))
    public, private = map_names(script, "ROCADE_0"), map_names(script, "ROCADE_PRIVATE")
    return [
        ("each function of an installed header is in an installed library",
         sorted(functions - set(ours) - extra) if functions else ["no function"]),
        ("each function is told the sizes of the program's structures",
         sorted(fixed("\n".join(texts.values())))),
        ("each name of the node ROCADE_0 is a function of an installed header",
         sorted(public - functions) if public else ["no name"]),
        ("no name of the node ROCADE_PRIVATE is", sorted(private & functions)),
        ("librocade has the names of both nodes, in these, and no others",
         ["%s: %s" % (name, ours.get(name)) for name in sorted(set(ours) | public | private)
          if ours.get(name) != {"ROCADE_0" if name in public else "ROCADE_PRIVATE"} or
          name not in public | private]),
        ("librocade-rdmacm has functions of the headers only", sorted(extra - functions)),
        ("what is no function of a header, or no name of a node, is not found", api_selftest()),
    ]


def api_selftest():
    """Returns what is found in vain, or not found."""
    text = "struct a {\n\tint x;\n};\nint rocade_a(\n\tint (*f)(int), void *arg);\nconst char *rocade_b(void);"
    script = "A_0 {\n\tglobal:\n\t\ta;\n\t\tb;\n\tlocal:\n\t\tc;\n};\n\nB {\n\tglobal:\n\t\td;\n} A_0;\n"
    wrong = []
    if declared(text) != {"rocade_a", "rocade_b"}:
        wrong.append("functions: %s" % declared(text))
    text = "struct rocade_a {\n\tsize_t size;\n};\nstruct rocade_b {\n\tint x;\n};\n" \
        "int rocade_c(const struct rocade_a *a, struct rocade_d **d);\nint rocade_e(\n\tstruct rocade_a *a);\n" \
        "int rocade_f(const struct rocade_b conf[2]);\nint rocade_f_sized(struct rocade_b *b, size_t size);\n" \
        "static inline int\nrocade_g(struct rocade_b *b)\n{\n}\n"
    if fixed(text) != {"rocade_e", "rocade_f"}:
        wrong.append("sizes: %s" % fixed(text))
    if (map_names(script, "A_0"), map_names(script, "B")) != ({"a", "b"}, {"d"}):
        wrong.append("names: %s, %s" % (map_names(script, "A_0"), map_names(script, "B")))
    return wrong


class Table:
    def __init__(self, text):
        self.forwards = dict(re.findall(r'^FORWARD\((\w+), "([^"]*)"\)', text, re.M))
        self.cm = dict(re.findall(r'^FORWARD_CM\((\w+), "([^"]*)"\)', text, re.M))
        self.reals = re.findall(r'^REAL\("(\w+\*?)", "([\w.]+)", (\w+)\)', text, re.M)
        self.reasons = set(re.findall(r"^REASON\((\w+), \"", text, re.M))
        self.rows = len(re.findall(r"^(?:FORWARD|FORWARD_CM|REAL|REASON)\(", text, re.M))

    def rows_of(self, name, node):
        """Returns the rows that a symbol has."""
        if node.startswith("IBVERBS_PRIVATE"):
            node = "IBVERBS_PRIVATE"
        rows = [("FORWARD", name)] if self.forwards.get(name) in (node, "") else []
        rows += [("FORWARD", name)] if self.cm.get(name) == node else []
        return rows + [(row, at) for row, at, _ in self.reals if node == at and
                       (name == row or row[-1] == "*" and name.startswith(row[:-1]))]

    def wrong(self, found):
        """Returns the symbols that do not have exactly one row."""
        return ["%s@%s has %d rows" % (name, node, len(self.rows_of(name, node)))
                for name, node in sorted(found) if len(self.rows_of(name, node)) != 1]


SELFTEST = """
REASON(some, "text")
FORWARD(ibv_a, "IBVERBS_1.1")
FORWARD(ibv_b, "")
FORWARD_CM(rdma_a, "RDMACM_1.0")
REAL("ibv_c_*", "IBVERBS_PRIVATE", some)
REAL("ibv_a", "IBVERBS_1.0", some)
REAL("ibv_d", "IBVERBS_1.0", some)
REAL("ibv_d", "IBVERBS_1.0", some)
"""


def selftest():
    """Returns what the check does not find, or finds in vain."""
    good = {("ibv_a", "IBVERBS_1.1"), ("ibv_a", "IBVERBS_1.0"), ("ibv_b", "IBVERBS_PRIVATE_34"),
            ("ibv_c_x", "IBVERBS_PRIVATE_65"), ("rdma_a", "RDMACM_1.0")}
    bad = {("ibv_a", "IBVERBS_1.2"), ("ibv_c_x", "IBVERBS_1.1"), ("ibv_d", "IBVERBS_1.0"),
           ("ibv_e", "IBVERBS_1.18"), ("rdma_x", "RDMACM_1.0")}
    found = {tuple(line.split()[0].split("@")) for line in Table(SELFTEST).wrong(good | bad)}
    return ["%s@%s" % symbol for symbol in sorted(found ^ bad)]


def library_cases(name, library, forwards):
    """Returns the cases of a library of Rocade's, which has these functions of others: {name: node}."""
    ours = symbols(library)
    verbs = {n for n in ours if re.match(r"_?(ibv|rdma|mult_to_ibv|mbps_to_ibv)_", n)}
    return [
        (name + " has each verb that is forwarded, in its node",
         ["%s: %s" % (n, ours.get(n)) for n, node in sorted(forwards.items())
          if ours.get(n) != {(node or None, True)}]),
        (name + " has no other verb", sorted(verbs - set(forwards))),
        (name + ": rocade_* symbols are in the nodes ROCADE_0 and ROCADE_PRIVATE",
         ["%s: %s" % (n, v) for n, v in sorted(ours.items()) if n.startswith("rocade_")
          and v not in ({("ROCADE_0", True)}, {("ROCADE_PRIVATE", True)})]),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("ibverbs", "rdmacm", "table", "newest", "rocade", "preload", "inside", "root"):
        parser.add_argument(name)
    args = parser.parse_args()

    with open(args.table, encoding="utf-8") as file:
        table = Table(file.read())
    installed = exported(args.ibverbs) | exported(args.rdmacm)
    newest = listed(args.newest)
    known = installed | newest
    used = {row for name, node in known for row in table.rows_of(name, node)}
    cases = [
        ("the table is read", [] if table.rows == len(table.forwards) + len(table.cm) +
         len(table.reals) + len(table.reasons) else ["%d rows" % table.rows]),
        ("each symbol of the installed libibverbs has a row",
         table.wrong(exported(args.ibverbs)) if exported(args.ibverbs) else ["no symbols"]),
        ("each symbol of the installed librdmacm has a row",
         table.wrong(exported(args.rdmacm)) if exported(args.rdmacm) else ["no symbols"]),
        ("each symbol of rdma-core 65 has a row",
         table.wrong(newest) if len(newest) > 200 else ["%d symbols" % len(newest)]),
        ("each row names a symbol",
         ["%s %s" % row for row in [("FORWARD", n) for n in [*table.forwards, *table.cm]] +
          [(n, node) for n, node, _ in table.reals] if row not in used]),
        ("each row has a reason, and each reason a row",
         sorted({reason for _, _, reason in table.reals} ^ table.reasons)),
        ("the check finds errors", selftest()),
    ]
    cases += library_cases("librocade", args.rocade, table.forwards)
    cases += library_cases("librocade-verbs", args.preload, {**table.forwards, **table.cm})
    # Without a version it is found for every one.
    cases += library_cases("librocade-rdmacm", args.inside, dict.fromkeys(table.cm, ""))[:2]
    with open(os.path.join(args.root, "lib/verbs/librocade.map"), encoding="utf-8") as file:
        cases += api_cases(headers(args.root), file.read(), args.rocade, args.inside)
    cases += [
        ("librocade exports no other symbol",
         [n for n in sorted(symbols(args.rocade)) if not re.match(r"_?ibv_|rocade_", n)]),
        ("libibverbs is not linked",
         [lib for library in (args.rocade, args.preload) for lib in re.findall(
             r"NEEDED\s+(libibverbs\S*)", subprocess.run(
                 ["objdump", "-p", library], text=True, capture_output=True,
                 check=True).stdout)]),
    ]
    print("1..%d" % len(cases))
    for number, (name, wrong) in enumerate(cases, 1):
        print("%s %d - %s" % ("not ok" if wrong else "ok", number, name))
        for line in wrong:
            print("# " + line)
    return 1 if any(wrong for _, wrong in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
