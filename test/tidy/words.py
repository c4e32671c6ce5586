#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the words of the tree: no retired word comes back (retired.tsv), no sentence or message
has a pronoun for a subject that should be named, no function or file name stands for two things,
and docs/glossary.md explains each of its terms once.

With --count it prints how many of each there are, for any tree of the project."""

import argparse
import collections
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOPS = ("lib", "drivers", "app", "include", "test", "tools", "docs", "config", "README.md",
        "CHANGELOG.md", ".ci", "meson.build", "meson_options.txt")
# These state the words themselves.
EXEMPT = {"test/tidy/words.py", "test/tidy/words_selftest.py", "test/tidy/retired.tsv"}
SKIPPED = re.compile(r"\.(pcap|pcapng|png|svg|pyc)$|^test/fuzz/corpus|^test/captures/.*\.(tsv|log)$")

# Sentences whose subject a stranger has to guess.
ODD = re.compile(
    r"(?:^|(?<=[.:;(] ))(?:Who|Whose|Whoever|Nobody|Somebody|Of so many|So many|So long|So often)\b"
    r"|\b(?:nobody|somebody|whoever|so many of them|of so many|for so long|so long may)\b"
    r"|(?:^|(?<=[.;] ))What (?!is (?:a|an|the) [\w -]+\?)[a-z][^.?]*\.(?=\s|$)"
    r"|\b(?:he|his|him)\b", re.M)

COMMENT = re.compile(r'(?P<comment>/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                     re.S)
DEFINITION = re.compile(r"^(?:[a-z_][\w \t*]*[ \t*])?(\w+)\((?:[^;{}()]|\([^()]*\))*\)\s*\{", re.M)
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "main"}


def is_c(path):
    return path.endswith((".c", ".h", ".def"))


def read_retired(path):
    """Rows of retired.tsv: the kind, the word's pattern, what to write."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                kind, word, instead = line.rstrip("\n").split("\t")
                rows.append((kind, word, instead))
    return rows


class Words:
    """What is retired. code: a part of an identifier between underscores; prose: a word of a
    comment or of a page; both: either; file: a file's name."""

    def __init__(self, rows):
        self.instead = {}
        patterns = collections.defaultdict(list)
        for kind, word, instead in rows:
            for where in ("code", "prose") if kind == "both" else (kind,):
                patterns[where].append(word)
                self.instead[where, word] = instead
        self.rows = dict(patterns)
        self.code = self.compile("code", r"(?<![^\W_])(?:%s)(?![^\W_])", 0)
        self.prose = self.compile("prose", r"(?<![\w-])(?:%s)(?![\w-])", re.I)
        self.file = self.compile("file", r"^(?:%s)$", 0)

    def compile(self, where, frame, flags):
        words = self.rows.get(where)
        return re.compile(frame % "|".join("(?:%s)" % w for w in words), flags) if words else None

    def advice(self, where, found):
        for word in self.rows[where]:
            if re.fullmatch(word, found, re.I):
                return self.instead[where, word]
        return "see retired.tsv"


def split(path, text):
    """The code of a file and its prose; lines stay where they are."""
    if path.endswith(".md") or re.search(r"\.[1-8]$", path):
        # Code spans are quotations of the code; a path that has gone is another check's.
        return "", re.sub(r"```.*?```|`[^`\n]*`", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text,
                          flags=re.S)
    if path.endswith(".lua"):
        return "", "\n".join(line.partition("--")[2] for line in text.split("\n"))
    if path.endswith((".py", ".sh", "meson.build")) or not is_c(path):
        prose = "\n".join(re.sub(r"^[^#]*#?", "", line) if "#" in line else ""
                          for line in text.split("\n"))
        return "", prose
    code, prose, last = [], [], 0
    for match in COMMENT.finditer(text):
        between = text[last:match.start()]
        code.append(between)
        prose.append(re.sub(r"[^\n]", " ", between))
        spaces = re.sub(r"[^\n]", " ", match.group(0))
        code.append(spaces)
        prose.append(re.sub(r"^[ \t]*\*(?!/)|/\*|\*/|//", lambda m: " " * len(m.group(0)),
                            match.group(0), flags=re.M) if match.group("comment") else spaces)
        last = match.end()
    code.append(text[last:])
    prose.append(re.sub(r"[^\n]", " ", text[last:]))
    return "".join(code), "".join(prose)


def sentences(prose):
    """Prose with each paragraph in one line, and the line number where each begins."""
    start, words = 0, []
    for number, line in enumerate(prose.split("\n") + [""], 1):
        text = line.strip(" \t\r-*#>")
        new = not text or re.match(r"\s*(?:[-*#>|]|\d+\.)\s", line)
        if new and words:
            yield start, " ".join(words)
            words = []
        if text:
            start = start if words else number
            words += text.split()
    if words:
        yield start, " ".join(words)


def tree_files(root):
    """Path and text of each file of the tree that git tracks, or, outside of git, of each."""
    run = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], text=True,
                         capture_output=True, check=False)
    paths = run.stdout.splitlines()
    if run.returncode != 0 or not paths:
        paths = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, names in os.walk(root) for name in names]
    for path in sorted(set(paths)):
        full = os.path.join(root, path)
        if path.startswith(TOPS) and path not in EXEMPT and not SKIPPED.search(path) and \
                os.path.isfile(full):
            with open(full, encoding="utf-8", errors="replace") as file:
                yield path, file.read()


def check_retired(files, words):
    """no retired word is in an identifier, in prose, or a file's name"""
    for path, text in files:
        if words.file and words.file.match(os.path.basename(path)):
            yield "%s:1: file name: %s" % (path, words.advice("file", os.path.basename(path)))
        code, prose = split(path, text)
        for where, part, pattern in (("code", code, words.code), ("prose", prose, words.prose)):
            if pattern is None:
                continue
            for match in pattern.finditer(part):
                line = part.count("\n", 0, match.start()) + 1
                yield "%s:%d: '%s' is retired: write %s" % (
                    path, line, match.group(0), words.advice(where, match.group(0)))


def check_phrases(files, _=None):
    """no sentence leaves its subject to a guess"""
    for path, text in files:
        for line, paragraph in sentences(split(path, text)[1]):
            for match in ODD.finditer(paragraph):
                yield "%s:%d: ...%s" % (path, line, paragraph[match.start():][:60])


STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
# Forms of an error that does not say "invalid value 'X' for Y: expected Z".
ODD_MESSAGE = re.compile(r"cannot be: |options only|says? (?:more|nothing)|: give (?:a|an|the|\d)")


def check_messages(files, _=None):
    """no message of a program leaves its subject, or the valid values, to a guess"""
    for path, text in product(files):
        code = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
        for match in STRING.finditer(code):
            if ODD.search(match.group(1)) or ODD_MESSAGE.search(match.group(1)):
                yield "%s:%d: %s" % (path, code.count("\n", 0, match.start()) + 1,
                                     match.group(1)[:60])


def product(files):
    return [(path, text) for path, text in files
            if path.split("/")[0] in ("lib", "drivers", "app") and is_c(path)]


def check_functions(files, _=None):
    """no two functions of lib, drivers and app share a name: one file may have two variants"""
    homes = collections.defaultdict(dict)
    for path, text in product(files):
        code = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', split(path, text)[0])
        for match in DEFINITION.finditer(code):
            if match.group(1) not in KEYWORDS:
                line = code.count("\n", 0, match.start()) + 1
                homes[match.group(1)].setdefault(path, line)
    for name, places in sorted(homes.items()):
        first, *others = ["%s:%d" % place for place in sorted(places.items())]
        if others:
            yield "%s: %s() is also at %s" % (first, name, ", ".join(others))


def check_file_names(files, _=None):
    """no two files of lib, drivers and app share a name"""
    homes = collections.defaultdict(list)
    for path, _text in product(files):
        homes[os.path.basename(path)].append(path)
    for name, paths in sorted(homes.items()):
        if len(paths) > 1:
            yield "%s:1: %s is also %s" % (paths[0], name, ", ".join(paths[1:]))


def check_glossary(files, words):
    """docs/glossary.md explains each term once, in order, and none is retired"""
    page = dict(files).get("docs/glossary.md")
    if page is None:
        return
    seen = []
    for number, line in enumerate(page.split("\n"), 1):
        match = re.match(r"\| \*\*(.+?)\*\* \| (.*) \|$", line)
        if line.startswith("| **") and not match:
            yield "docs/glossary.md:%d: not of the form '| **term** | ... |'" % number
        if match:
            if match.group(1).lower() in seen:
                yield "docs/glossary.md:%d: %s stands twice" % (number, match.group(1))
            elif seen and match.group(1).lower() < seen[-1]:
                yield "docs/glossary.md:%d: %s is out of order" % (number, match.group(1))
            seen.append(match.group(1).lower())
            if words.prose and words.prose.fullmatch(match.group(1)):
                yield "docs/glossary.md:%d: %s is retired" % (number, match.group(1))
    if not seen:
        yield "docs/glossary.md:1: no terms"


CHECKS = [check_retired, check_phrases, check_messages, check_functions, check_file_names, check_glossary]


def count(files, words):
    names = {check_retired: "retired words", check_phrases: "odd phrases",
             check_messages: "odd messages", check_functions: "functions that share a name", check_file_names:
             "file names that stand for several files"}
    for check, name in names.items():
        print("%s: %d" % (name, len(list(check(files, words)))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", help="the top of the source tree")
    parser.add_argument("--retired", default=os.path.join(HERE, "retired.tsv"))
    parser.add_argument("--count", action="store_true", help="print how many, fail never")
    args = parser.parse_args()

    words = Words(read_retired(args.retired))
    files = list(tree_files(args.root))
    if args.count:
        count(files, words)
        return 0
    failed = 0
    print("1..%d" % len(CHECKS))
    for number, check in enumerate(CHECKS, 1):
        found = list(check(files, words))
        failed += bool(found)
        print("%s %d - %s" % ("not ok" if found else "ok", number, check.__doc__))
        for line in found:
            print("# " + line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
