#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every citation of the tree resolves: pages of docs/ with their sections and rows,
files that comments name, captures, sections of test/rules.tsv, tests of docs/conformance.md; and
that citations of the IBA and of RFCs have a legal form. citations_selftest.py shows that each
check can fail."""

import argparse
import os
import re
import sys

SOURCE_DIRS = ["lib", "drivers", "app", "include", "test", "tools", "docs", "config", ".ci"]
SUFFIXES = (".c", ".h", ".def", ".py", ".sh", ".build", ".md", ".tsv", ".list", ".conf", ".map",
            ".1", ".8", ".txt")
# They hold wrong citations on purpose.
SKIPPED = {"test/tidy/citations_check.py", "test/tidy/citations_selftest.py",
           "test/tidy/words_selftest.py"}

# One number, or "8.2", "4, 5 and 8", "3 to 5".
NUMBER = r"\d{1,2}(?:\.\d{1,2})*"
NUMBERS = NUMBER + r"(?:(?:, | and | to |, and )" + NUMBER + r"(?![\w-]))*"
PAGE = re.compile(r"\bdocs/([\w-]+\.md)(?:,? (" + NUMBERS + r")(?![\w-]))?(?:, \"([^\"]+)\")?")
ROWS = re.compile(r"\b[Rr]ows? (" + NUMBERS + r") of docs/([\w-]+\.md) (" + NUMBER + r")"
                  r"|\bdocs/([\w-]+\.md) (" + NUMBER + r"), rows? (" + NUMBERS + r")")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[\w-]*)?\)")

FILE_NAME = re.compile(r"(?<![\w./<\"$*{-])((?:[\w.-]+/)*\w[\w-]*\.(?:c|h|def|py|sh|tsv|md))\b"
                       r"(?![\w>(*]|\.\w)")
# Files of other projects: DPDK, rdma-core, libc.
FOREIGN = re.compile(r"(^|/)(rte_\w+\.h|verbs\.h|opcode\.h|ib\.h|rdma_\w+\.h|mlx5\w*\.[ch]"
                     r"|dpdk-\w+\.py)$")

CAPTURE = re.compile(r"\b[Cc]aptures? ((?:[0-9]\d[a-z]?|[a-d]\d{1,2}|z0)(?:-[\w-]+)?)(?![\w.])")

UNNAMED = [
    (re.compile(r"\bprotocol reference\b|\broce-protocol\b|\bstacks-and-cm\b|\bverbs-compat\b",
                re.I), "a reference that is not in the tree"),
    (re.compile(r"\b(?:first|original) design\b|\bDESIGN(?:\.md)?\b(?!_)|\bINDEX\.md\b"),
     "a page that is not in the tree"),
    (re.compile(r"\[caps? [^\]]*\]"), 'a capture: write "capture NAME"'),
]
SECTION = re.compile(r"(RFC \d+,? |IBA )?\b[Ss]ections? (" + NUMBERS + r")(?![\w-])"
                     r"(?! of (?:the )?(?:RFC|IBA))")
BARE_ROW = re.compile(r"(?<!\d, )\b[Rr]ows? " + NUMBERS + r"(?![\w-]| of |,? \d|,? (?:and|to) \d)")

# The forms of a citation behind "IBA ".
IBA = re.compile(r"\bIBA(\s?)((?:§|[Ss]ect?(?:ion|\.)?s?\b|[Cc]hapters?\b)?)\s*([\d.]*\d)?")
STATEMENT = re.compile(r"(?<![\w./-])([CcOo])(A?)(\d+)[-.](\d+)((?:\.\d+)*)([a-z]?)(?![\w-])")
ANNEX = re.compile(r"\b[Aa]nnex(?:es)? (\w+)")
RFC = re.compile(r"\bRFC[ -]?(\w+)")


class Block:
    """A comment or paragraph with its blanks made single, and the line of each character."""

    def __init__(self, path, text, line, marker):
        self.path = path
        self.text, self.lines = "", []
        pieces = re.split(r"(\s*\n\s*(?:%s)?\s*|[ \t]+)" % marker, text)
        for number, piece in enumerate(pieces):
            shown = piece if number % 2 == 0 else " "
            self.text += shown
            self.lines += [line] * len(shown)
            line += piece.count("\n")

    def where(self, offset):
        return "%s:%d" % (self.path, self.lines[offset] if self.lines else 0)


def blocks_c(path, text):
    for match in re.finditer(r"/\*.*?\*/|(?:^[ \t]*//[^\n]*\n?)+|//[^\n]*", text,
                             flags=re.S | re.M):
        yield Block(path, match.group(0), text.count("\n", 0, match.start()) + 1, r"\*(?!/)|//")


def blocks_hash(path, text):
    for match in re.finditer(r'(?:^[ \t]*#[^\n]*\n?)+|(?<=[ \t])# [^\n]*|^[ \t]*"""[^"].*?"""',
                             text, flags=re.S | re.M):
        yield Block(path, match.group(0), text.count("\n", 0, match.start()) + 1, "#+")


def blocks_text(path, text):
    """Paragraphs; rows of a table stay apart."""
    for match in re.finditer(r"^\|[^\n]*|(?:^(?!\|)[^\n]+\n?)+", text, flags=re.M):
        yield Block(path, match.group(0), text.count("\n", 0, match.start()) + 1, "#(?!#)")


class Tree:
    def __init__(self, root):
        self.root = root
        self.paths = {name for name in os.listdir(root)
                      if os.path.isfile(os.path.join(root, name))}
        for top in SOURCE_DIRS:
            for folder, folders, names in os.walk(os.path.join(root, top)):
                folders[:] = [f for f in folders if f != "__pycache__"]
                self.paths |= {os.path.relpath(os.path.join(folder, name), root)
                               for name in names}
        self.names = {os.path.basename(path) for path in self.paths}
        self.headings = {os.path.basename(path): self.page_headings(path) for path in self.paths
                         if path.startswith("docs/") and path.endswith(".md")}
        self.blocks = []
        for path in sorted(self.paths - SKIPPED):
            if path.endswith(SUFFIXES):
                self.blocks += self.file_blocks(path)

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
            return file.read()

    def page_headings(self, path):
        return [match.group(1).strip() for match in
                re.finditer(r"^#{1,6} (.*)$", self.read(path), flags=re.M)]

    def file_blocks(self, path):
        text = self.read(path)
        if path.endswith((".c", ".h", ".def")):
            return list(blocks_c(path, text))
        if path.endswith((".md", ".1", ".8")):
            return list(blocks_text(path, text))
        return list(blocks_hash(path, text))

    def sections(self, page):
        return {match.group(1) for match in (re.match(r"(" + NUMBER + r")\.? ", heading)
                                             for heading in self.headings.get(page, []))
                if match}

    def rows(self, page, section):
        """The numbers in the first column of the tables of a section and its subsections."""
        found, inside = set(), False
        for line in self.read("docs/" + page).splitlines():
            match = re.match(r"#+ (" + NUMBER + r")?", line)
            if match:
                number = match.group(1) or ""
                inside = number == section or number.startswith(section + ".")
            match = re.match(r"\| (\d+) \|", line)
            if inside and match:
                found.add(match.group(1))
        return found


def expand(numbers):
    """"3 to 5" and "4, 5 and 8" as a list."""
    found = []
    for part in re.split(r",? and |, ", numbers):
        ends = part.split(" to ")
        if len(ends) == 2 and all(end.isdigit() for end in ends):
            found += [str(n) for n in range(int(ends[0]), int(ends[1]) + 1)]
        else:
            found += ends
    return found


def check_pages(tree):
    """every page of docs/ that is cited exists, with the section"""
    for block in tree.blocks:
        for match in PAGE.finditer(block.text):
            page, numbers, heading = match.groups()
            where = block.where(match.start())
            if page not in tree.headings:
                yield "%s: there is no docs/%s" % (where, page)
                continue
            for number in expand(numbers) if numbers else []:
                if number not in tree.sections(page):
                    yield "%s: docs/%s has no section %s" % (where, page, number)
            if heading and heading not in tree.headings[page]:
                yield '%s: docs/%s has no heading "%s"' % (where, page, heading)


def check_rows(tree):
    """every row of a section that is cited exists"""
    for block in tree.blocks:
        for match in ROWS.finditer(block.text):
            groups = match.groups()
            rows, page, section = groups[:3] if groups[0] else (groups[5], groups[3], groups[4])
            if page not in tree.headings:
                continue  # check_pages() says it
            for row in expand(rows):
                if row not in tree.rows(page, section):
                    yield "%s: docs/%s %s has no row %s" % (block.where(match.start()), page,
                                                            section, row)


def check_links(tree):
    """every link of a page leads to a file"""
    for block in tree.blocks:
        if not block.path.endswith(".md"):
            continue
        for match in LINK.finditer(block.text):
            target = os.path.join(tree.root, os.path.dirname(block.path), match.group(1))
            if not os.path.exists(target):
                yield "%s: there is no %s" % (block.where(match.start()), match.group(1))


def file_exists(tree, path, name):
    if "/" not in name:
        return name in tree.names
    folder = os.path.dirname(path)
    for base in ("", folder, os.path.dirname(folder), "lib", "drivers", "include", "app", "test",
                 "docs"):
        if os.path.exists(os.path.join(tree.root, base, name)):
            return True
    return False


def check_files(tree):
    """every file of the tree that a comment or a page names exists"""
    for block in tree.blocks:
        if block.path.endswith((".1", ".8", ".tsv", ".list", ".txt")):
            continue
        for match in FILE_NAME.finditer(block.text):
            name = match.group(1)
            # A page names much else; whole paths are meant.
            if block.path.endswith(".md") and name.split("/")[0] not in SOURCE_DIRS:
                continue
            if FOREIGN.search(name) or name.split("/")[0] in ("usr", "etc"):
                continue
            if re.search(r"(^|/)[A-Z]+[_./]", name) or name.startswith("docs/"):
                continue
            if not file_exists(tree, block.path, name):
                yield "%s: there is no file %s" % (block.where(match.start()), name)


def check_captures(tree):
    """every capture that is named is in test/captures"""
    stems = {name[:-len(".pcap")] for name in tree.names if name.endswith(".pcap")}
    known = stems | {stem.split("-")[0] for stem in stems}
    for block in tree.blocks:
        for match in CAPTURE.finditer(block.text):
            name = match.group(1)
            if name not in known and not any(stem.startswith(name) for stem in stems):
                yield "%s: there is no capture %s" % (block.where(match.start()), name)


def check_unnamed(tree):
    """no citation leaves out which page, and none names a page that is not in the tree"""
    for block in tree.blocks:
        page = os.path.basename(block.path) if block.path.startswith("docs/") else None
        for pattern, what in UNNAMED:
            for match in pattern.finditer(block.text):
                yield '%s: "%s": %s' % (block.where(match.start()), match.group(0), what)
        for match in SECTION.finditer(block.text):
            if (match.group(1) or "").startswith("RFC"):
                continue
            missing = [number for number in expand(match.group(2))
                       if number not in tree.sections(page)]
            if missing:
                yield '%s: "%s": of which page?' % (block.where(match.start()),
                                                    match.group(0).strip())
        if page is None and not block.path.endswith((".tsv", ".list")):
            for match in BARE_ROW.finditer(block.text):
                yield '%s: "%s": of which section?' % (block.where(match.start()),
                                                       match.group(0))


def check_iba(tree):
    """citations of the IBA and of RFCs have a legal form"""
    for block in tree.blocks:
        for match in IBA.finditer(block.text):
            blank, word, number = match.groups()
            chapter = int(number.split(".")[0]) if number and number[0].isdigit() else 0
            if word or (number and (not blank or not 1 <= chapter <= 19 or
                                    not re.fullmatch(r"\d+(\.\d+){0,6}", number))):
                yield '%s: "%s": write IBA N.N' % (block.where(match.start()), match.group(0))
        for match in STATEMENT.finditer(block.text):
            letter, annex, chapter = match.group(1), match.group(2), int(match.group(3))
            dash = match.group(0)[len(letter + annex + match.group(3))]
            if letter in "cO" or dash != "-" or not 3 <= chapter <= 19:
                yield '%s: "%s": write C9-N or o9-N' % (block.where(match.start()),
                                                        match.group(0))
        for match in ANNEX.finditer(block.text):
            if not re.fullmatch(r"A([1-9]|1\d)", match.group(1)):
                yield '%s: "%s": write annex AN' % (block.where(match.start()), match.group(0))
        for match in RFC.finditer(block.text):
            if re.search(r"\d", match.group(1)) and not re.fullmatch(r"RFC \d{2,4}",
                                                                     match.group(0)):
                yield '%s: "%s": write RFC N' % (block.where(match.start()), match.group(0))


def table_cells(tree, page, section):
    """The first column of the tables of a section."""
    cells, inside = set(), False
    for line in tree.read("docs/" + page).splitlines():
        if line.startswith("#"):
            inside = re.match(r"#+ %s\.? " % re.escape(section), line) is not None
        match = re.match(r"\| ([^|]+?) \|", line)
        if inside and match:
            cells.add(match.group(1))
    return cells


def check_rules(tree):
    """test/rules.tsv and test/rules.list name sections and rows of docs/protocol.md"""
    page = "protocol.md"
    if page not in tree.headings:
        yield "docs/protocol.md:1: there is no such page"
        return
    sections = tree.sections(page)
    topics = table_cells(tree, page, "19")
    if any(heading.startswith("Bugs") for heading in tree.headings[page]):
        sections.add("bugs")
    for path in ("test/rules.tsv", "test/rules.list"):
        if path not in tree.paths:
            continue
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            section, _, rule = line.partition("\t")
            rule = rule.split("\t")[0]
            if not line or line.startswith("#"):
                continue
            if section not in sections:
                yield "%s:%d: docs/protocol.md has no section %s" % (path, number, section)
                continue
            match = re.match(r"(\d+)(?: to (\d+):)? ", rule)
            if section == "8" and match:
                for row in filter(None, match.groups()):
                    if row not in tree.rows(page, "8"):
                        yield "%s:%d: docs/protocol.md 8 has no row %s" % (path, number, row)
            if section == "19" and rule not in topics:
                yield '%s:%d: docs/protocol.md 19 has no topic "%s"' % (path, number, rule)


def check_conformance(tree):
    """every test that docs/conformance.md names exists"""
    page = "docs/conformance.md"
    if page not in tree.paths:
        return
    for number, line in enumerate(tree.read(page).splitlines(), 1):
        if not line.startswith("|") or line.startswith("|---"):
            continue
        cell = line.rstrip().rstrip("|").split("|")[-1].strip()
        named = re.findall(r"`([\w/.-]+)`: ([\w, `]+)", cell)
        if not named and not re.match(r"(test|no test|not tested: .+|none: .+)$", cell):
            yield '%s:%d: "%s" names no test' % (page, number, cell)
        for path, functions in named:
            full = "test/" + path
            if full not in tree.paths:
                yield "%s:%d: there is no file %s" % (page, number, full)
                continue
            text = tree.read(full)
            for function in re.findall(r"\w+", functions):
                if not re.search(r"\b%s\b" % function, text):
                    yield "%s:%d: %s has no %s" % (page, number, full, function)


CHECKS = [check_pages, check_rows, check_links, check_files, check_captures, check_unnamed,
          check_iba, check_rules, check_conformance]


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Exit status: 0 when every "
                                     "citation resolves, or with --count; 1 otherwise; 2 on a "
                                     "wrong option.")
    parser.add_argument("root", help="the top of the source tree")
    parser.add_argument("--count", action="store_true",
                        help="print only how many citations do not resolve")
    args = parser.parse_args()

    tree = Tree(args.root)
    found = [(check, list(check(tree))) for check in CHECKS]
    if args.count:
        print("unresolved citations: %d" % sum(len(lines) for _, lines in found))
        return 0
    print("1..%d" % len(found))
    for number, (check, lines) in enumerate(found, 1):
        print("%s %d - %s" % ("not ok" if lines else "ok", number, check.__doc__))
        for line in lines:
            print("# " + line)
    return 1 if any(lines for _, lines in found) else 0


if __name__ == "__main__":
    sys.exit(main())
