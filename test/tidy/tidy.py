#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the rules of the tree that no compiler checks: which layer may include which, where
clocks, verbs structures and allocations may be used, sizes, licence lines, exported symbols.
docs/map.md gives the reason for each rule. tidy_selftest.py proves that each rule can fail."""

import argparse
import os
import re
import shlex
import subprocess
import sys

import cycles

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/lib"))
import hunks  # noqa: E402

SPDX = "SPDX-License-Identifier: BSD-3-Clause"
LAYERS = ["base", "faults", "wire", "mem", "queue", "recovery", "qp", "port", "engine", "cm", "ucm", "switch",
          "verbs"]
# In addition to the order of the layers: a port does not depend on QPs.
LAYER_DENY = {"port": {"queue", "recovery", "qp"}}
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70

SOURCE_DIRS = ["lib", "drivers", "app", "include", "test", "tools", "docs", ".ci"]
SPDX_NAMES = re.compile(r"\.(c|h|def|map|py|sh|lua|in)$|^meson(\.build|_options\.txt)$")

# DPDK headers whose functions need librte_* objects. The core uses those functions only through the
# port and allocator interfaces.
EAL_HEADERS = re.compile(
    r"rte_(eal|ethdev|flow|lcore|launch|malloc|memzone|mempool|mbuf|log|timer|alarm|telemetry"
    r"|cfgfile|pdump|pcapng|net_crc|hash|debug|errno)\.h$")

CLOCKS = re.compile(
    r"\b(clock_gettime|gettimeofday|rte_rdtsc\w*|__rdtscp?|_rdtsc|rte_get_tsc_cycles"
    r"|rte_get_timer_cycles|rte_get_hpet_cycles|timespec_get)\b")
CLOCK_HOMES = re.compile(r"^lib/engine/clock[^/]*\.[ch]$")

# A thread of a library keeps the process alive, unless it is started as own_thread.h says.
THREADS = re.compile(r"\bpthread_create ?\(")
THREAD_HOME = "lib/base/own_thread.c"

# How a test would wait for a duration, or until a time of day: test/lib/await.h is for waits.
SLEEPS = re.compile(
    r"\b(?:u?sleep|(?:clock_)?nanosleep|thrd_sleep|u?alarm|setitimer|\w+_timed(?:wait|lock|rdlock"
    r"|wrlock)|\w+_clock(?:wait|lock)|\w+_(?:timed|clock)join_np|time(?= ?\(NULL\))) ?\("
    r"|\b(?:poll|epoll_wait) ?\((?:[^()]|\([^()]*\))*,\s*(?:[1-9]\d*|[A-Z]\w*) ?\)"
    r"|\b\w*(?:LIMIT|TIMEOUT|MOST|WAIT)_(?:S|MS|US)\b")
PY_SLEEPS = re.compile(r"\b(?:time\.sleep ?\(|signal\.alarm ?\(|timeout=[1-9A-Z])")
SLEEP_DIRS = ("test/unit/", "test/lib/", "test/verbs/", "test/matrix/", "test/sim/", "test/fabric/",
              "test/fuzz/", "test/e2e/")
PY_SLEEP_DIRS = ("test/unit/", "test/verbs/", "test/sim/", "test/fabric/", "test/fuzz/", "test/e2e/",
                 "test/interop/", "test/runner/")
# The two helpers, and a test of a filter that has to allow such calls.
SLEEP_HOMES = {"test/lib/await.c", "test/e2e/lib/limit.py", "test/unit/app/syscall_filter_test.c"}

# cmocka's tables and what runs them: test/lib/case.h has both.
TABLES = re.compile(r"\b(?:cmocka_unit_test\w*|CMUnitTest|_?cmocka_run_group_tests\w*)\b|^(?:int )?main(?= ?\()")
TABLE_HOMES = {"test/lib/case.c", "test/lib/case.h"}

# In these layers each file says by a marker which of its lines belong to the data path: those from
# "/* Data path. */" to the next "/* Control path. */", or to the end.
PATH_LAYERS = {"wire", "mem", "queue", "recovery", "qp", "engine"}
PATH_MARKER = re.compile(r"^/\* (Data|Control) path\. \*/$")
DATA_PATH_DENY = re.compile(
    r"\b(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|alloc_get|alloc_put"
    r"|v?f?printf|v?sn?printf|puts|fputs|perror|log_(?:err|warn|info|write)"
    r"|clock_now|clock_wall|clock_timed_load)\s*\(")
# They read the engine's clock, once a pass. pair_tx.c times one load of an index in 50 us.
CLOCK_READERS = {"lib/engine/engine.c", "lib/engine/manual_progress.c", "drivers/shm/pair_tx.c"}

# The files that may form a cycle, {folder: {file without suffix: the reason}}, and how many at most.
CYCLES_ALLOWED = {}
CYCLES_MAX = 5
# The functions of libc that drivers/preload replaces. Its files call them by these names, too.
INTERPOSED = {"close", "dlsym", "dlvsym", "dup", "dup2", "dup3", "fcntl", "open", "open64", "openat", "read", "stat", "write"}

# The names that librocade may export: its own, and those of the libraries that it replaces.
EXPORTS = re.compile(r"^(rocade_\w+|_?ibv_\w+|rdma_\w+|(mbps|mult)_to_ibv_rate)$")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def blank(text):
    """Returns the text with spaces for comments and strings. Lines and columns do not move."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, spaces, text, flags=re.S)


class File:
    def __init__(self, root, path):
        self.path = path
        self.name = os.path.basename(path)
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            self.text = file.read()
        self.is_c = path.endswith((".c", ".h"))
        self.has_includes = self.is_c or path.endswith(".def")
        self.code = blank(self.text) if self.has_includes else ""

    def top(self):
        return self.path.split("/")[0]

    def folder(self):
        """The second part of the path: the layer, the driver, the application."""
        parts = self.path.split("/")
        return parts[1] if len(parts) > 2 else ""

    def includes(self):
        if not self.has_includes:
            return
        # A commented-out include has been blanked to nothing but spaces.
        lines = zip(self.text.splitlines(), self.code.splitlines())
        for number, (line, code) in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match and "#" in code:
                yield number, match.group(1), match.group(2)

    def find(self, pattern):
        for number, line in enumerate(self.code.splitlines(), 1):
            for match in pattern.finditer(line):
                yield number, match.group(0).rstrip("( ")


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = []
        for name in sorted(os.listdir(root)):
            if os.path.isfile(os.path.join(root, name)) and not name.startswith(".git"):
                self.add(name)
        for top in SOURCE_DIRS:
            for folder, folders, names in os.walk(os.path.join(root, top)):
                folders[:] = sorted(f for f in folders if f != "__pycache__")
                for name in sorted(names):
                    self.add(os.path.relpath(os.path.join(folder, name), root))
        self.drivers = {f.folder() for f in self.files if f.top() == "drivers"} - {""}

    def add(self, path):
        if not path.endswith((".pcap", ".pcapng", ".png", ".svg", ".pyc")):
            self.files.append(File(self.root, path))

    def under(self, *tops):
        return [f for f in self.files if f.top() in tops]

    def exists(self, path):
        return os.path.isfile(os.path.join(self.root, path))


def check_layers(tree):
    """a layer of lib/ includes only headers of itself and of the layers before it, by full name"""
    for file in tree.under("lib"):
        own = file.folder()
        for line, quote, name in file.includes():
            first = name.split("/")[0]
            where = "%s:%d" % (file.path, line)
            if own not in LAYERS:
                yield "%s: %s is not a layer" % (where, own or "lib/ itself")
            elif first in LAYERS and "/" in name:
                if quote == "<":
                    yield '%s: write "%s", not <%s>' % (where, name, name)
                elif LAYERS.index(first) > LAYERS.index(own) or \
                        first in LAYER_DENY.get(own, ()):
                    yield "%s: %s must not include %s (%s)" % (where, own, first, name)
            elif quote == '"' or first in tree.drivers or ".." in name:
                yield '%s: "%s" is not of the form "layer/file.h"' % (where, name)


def check_eal(tree):
    """lib/, except lib/verbs, includes only inline headers of DPDK"""
    for file in tree.under("lib"):
        if file.folder() == "verbs":
            continue
        for line, _, name in file.includes():
            if EAL_HEADERS.match(name):
                yield "%s:%d: <%s> needs EAL" % (file.path, line, name)


def check_drivers(tree):
    """a driver includes no other driver"""
    for file in tree.under("drivers"):
        own = file.folder()
        for line, _, name in file.includes():
            first = name.split("/")[0]
            if (first in tree.drivers and "/" in name and first != own) or ".." in name:
                yield "%s:%d: %s must not include %s" % (file.path, line, own, name)


def check_app(tree):
    """an application includes only public headers and the files of its own folder"""
    for file in tree.under("app"):
        for line, quote, name in file.includes():
            where = "%s:%d" % (file.path, line)
            inside = tree.exists("lib/" + name) or tree.exists("drivers/" + name)
            if ".." in name or inside or name.split("/")[0] in LAYERS:
                yield "%s: %s is not public" % (where, name)
            elif quote == '"' and not tree.exists(os.path.dirname(file.path) + "/" + name):
                yield "%s: %s is not in its folder" % (where, name)


def check_verbs_structures(tree):
    """within the library, only lib/verbs and drivers/preload use struct ibv_*"""
    for file in tree.under("lib", "drivers"):
        if (file.top(), file.folder()) in (("lib", "verbs"), ("drivers", "preload")):
            continue
        for line, name in file.find(re.compile(r"\bstruct\s+ibv_\w*")):
            yield "%s:%d: %s" % (file.path, line, name)


def check_spdx(tree):
    """every source file names its licence in the first two lines"""
    for file in tree.files:
        if SPDX_NAMES.search(file.name) or file.text.startswith("#!"):
            if not any(SPDX in line for line in file.text.splitlines()[:2]):
                yield "%s:1: no line %s" % (file.path, SPDX)


def check_file_size(tree):
    """no .c, .h, .py, .sh or .lua is longer than 500 lines"""
    for file in tree.files:
        lines = file.text.count("\n")
        if file.path.endswith((".c", ".h", ".py", ".sh", ".lua")) and lines > MAX_FILE_LINES:
            yield "%s:1: %d lines" % (file.path, lines)


def check_function_size(tree):
    """no function of lib, drivers or app is longer than 70 lines"""
    for file in tree.under("lib", "drivers", "app"):
        if not file.is_c:
            continue
        for function in hunks.functions(file.code.splitlines()):
            size = function.end - function.body + 1
            if size > MAX_FUNCTION_LINES:
                yield "%s:%d: %d lines" % (file.path, function.body + 1, size)


def check_clocks(tree):
    """only the engine's loop reads a clock"""
    for file in tree.under("lib", "drivers"):
        if not CLOCK_HOMES.match(file.path):
            for line, name in file.find(CLOCKS):
                yield "%s:%d: %s" % (file.path, line, name)


def check_threads(tree):
    """the libraries start threads by own_thread_start() only, so that they keep no process alive"""
    for file in tree.under("lib", "drivers"):
        if file.is_c and file.path != THREAD_HOME:
            for line, name in file.find(THREADS):
                yield "%s:%d: %s" % (file.path, line, name)


def check_sleeps(tree):
    """a test waits by the helper of its language: it neither sleeps nor has a limit of its own"""
    for file in tree.under("test"):
        if file.is_c and file.path.startswith(SLEEP_DIRS) and file.path not in SLEEP_HOMES:
            for line, name in file.find(SLEEPS):
                yield "%s:%d: %s" % (file.path, line, name)
        elif file.path.endswith(".py") and file.path.startswith(PY_SLEEP_DIRS) and \
                file.path not in SLEEP_HOMES:
            for number, line in enumerate(file.text.splitlines(), 1):
                if PY_SLEEPS.search(line.split("#")[0]):
                    yield "%s:%d: %s" % (file.path, number, line.strip())


def check_tables(tree):
    """a test program defines its cases by TEST(), and has the main() of test/lib"""
    for file in tree.under("test"):
        if not file.is_c or file.path in TABLE_HOMES:
            continue
        for line, name in file.find(TABLES):
            if name != "main" or file.name.endswith("_test.c"):
                yield "%s:%d: %s" % (file.path, line, name)


def check_data_path(tree):
    """what is marked as data path does not allocate, print, log or read a clock"""
    for file in tree.under("lib", "drivers"):
        on_path, marked = False, False
        for number, (line, code) in enumerate(
                zip(file.text.splitlines(), file.code.splitlines()), 1):
            marker = PATH_MARKER.match(line)
            if marker:
                on_path, marked = marker.group(1) == "Data", True
            match = DATA_PATH_DENY.search(code)
            # The definition of a function of that name is no call.
            if match and match.group(1).startswith("clock") and file.path in CLOCK_READERS:
                continue
            if on_path and match and line[0] in "\t ":
                yield "%s:%d: %s()" % (file.path, number, match.group(1))
        if file.is_c and file.top() == "lib" and file.folder() in PATH_LAYERS and not marked:
            yield '%s:1: neither "/* Data path. */" nor "/* Control path. */"' % file.path


def check_cycles(tree):
    """the files of a folder of lib or drivers do not call each other in a cycle"""
    folders = {}
    for file in tree.under("lib", "drivers"):
        if file.is_c:
            folders.setdefault(os.path.dirname(file.path), {})[file.name] = file.code
    for folder, files in sorted(folders.items()):
        graph = cycles.call_graph(files, INTERPOSED if folder == "drivers/preload" else ())
        for group in cycles.cycles(graph):
            if not set(group) <= set(CYCLES_ALLOWED.get(folder, {})):
                for call in cycles.calls_within(graph, group):
                    yield "%s/%s.c:1: cycle: %s" % (folder, call.split()[0], call)
    allowed = sum(len(files) for files in CYCLES_ALLOWED.values())
    if allowed > CYCLES_MAX:
        yield "test/tidy/tidy.py:1: %d files may form cycles, expected at most %d" % (
            allowed, CYCLES_MAX)


def check_outside_references(tree):
    """no file, except a test, refers to files outside the tree"""
    outside = re.compile(r"\.\./(\.\./)*" + "shared" + r"\b|/work/" + r"(main|shared)\b")
    for file in tree.files:
        if file.top() == "test":
            continue
        for number, line in enumerate(file.text.splitlines(), 1):
            if outside.search(line):
                yield "%s:%d: %s" % (file.path, number, line.strip())


def check_map(tree):
    """docs/map.md has one line for each file of lib, drivers, app and include"""
    page = next((f.text for f in tree.files if f.path == "docs/map.md"), "")
    # A line may name a .c and its .h. Only the lists count, not the text about them.
    listed = [path for line in page.splitlines() if line.startswith("- `")
              for path in re.findall(r"`([\w./-]+)`", line.split(": ")[0])]
    sources = [f.path for f in tree.under("lib", "drivers", "app", "include")
               if f.path.endswith((".c", ".h", ".def"))]
    for path in sources:
        if listed.count(path) != 1:
            yield "docs/map.md:1: %s is in %d lines" % (path, listed.count(path))
    for path in listed:
        if path.endswith((".c", ".h", ".def")) and not tree.exists(path):
            yield "docs/map.md:1: there is no file %s" % path


FAULT_ROW = re.compile(r'(?:COMPLETION|EVENT)\((request|receive), "([a-z-]+)", IBV_(?:WC|EVENT)_[A-Z_]+, [A-Z |]+, [A-Z |]+,'
                       r'\s+"[^"]+ \d[^"]*",\s+"(\w+\.py) (\w+)"\)$')


def check_fault_row(texts, where, seen, fault, program, group):
    """Yields an error if there is a second row of the fault, or no such test of it."""
    if fault in seen:
        yield "%s: a second row of %s" % (where, fault)
    seen.add(fault)
    if "\ndef %s(" % group not in texts.get("test/e2e/" + program, ""):
        yield "%s: test/e2e/%s has no %s()" % (where, program, group)


def check_request_faults(texts):
    """Yields the errors of the rows of requests."""
    text = texts.get("docs/faults.def", "")
    seen = set()
    for row in re.finditer(r"^(?:COMPLETION|EVENT)\((?:[^()\"]|\"[^\"]*\")*\)$", text, re.M):
        where = "docs/faults.def:%d" % (text.count("\n", 0, row.start()) + 1)
        parts = FAULT_ROW.match(row.group(0))
        if not parts:
            yield '%s: expected COMPLETION or EVENT(COUNTED, "NAME", VALUE, KINDS, TYPES, "RULE NUMBER", "FILE.py CASE")' % where
            continue
        counted, name, *where_tested = parts.groups()
        yield from check_fault_row(texts, where, seen, "%s of a %s" % (name, counted), *where_tested)


def fault_lines(texts, kind, pattern, expected):
    """Returns place and groups of the rows of one line each that match, and an error for each other one."""
    rows = [("docs/faults.def:%d" % number, re.match(kind + pattern + "$", line))
            for number, line in enumerate(texts.get("docs/faults.def", "").splitlines(), 1)
            if line.startswith(kind + "(")]
    return ([(where, row.groups()) for where, row in rows if row],
            ["%s: expected %s" % (where, kind + expected) for where, row in rows if not row])


def check_faults(tree):
    """each fault of docs/faults.def has one row, a rule that allows it, and a test that is there; each call has one"""
    texts = {f.path: f.text for f in tree.files}
    seen = set()
    yield from check_request_faults(texts)
    rows, errors = fault_lines(texts, "PACKET", r'\("(\w+)", FAULT_[A-Z]+, "(?:IBA|RFC) [\w.]+, [^"]+", "(\w+\.py) (\w+)"\)',
                               '("NAME", FAULT_EFFECT, "RULE NUMBER, TEXT", "FILE.py CASE")')
    yield from errors
    for where, row in rows:
        yield from check_fault_row(texts, where, seen, *row)
    rows, errors = fault_lines(
        texts, "CM", r'\((\w+), (EVENT|REJECT|LOSE), "([a-z-]+)", (?:FAULT_CM_[A-Z_]+|\d+), "[^"]+, [^"]+", "(\w+\.py) (\w+)"\)',
        '(COUNTED, EVENT|REJECT|LOSE, "NAME", VALUE, "PAGE(3), SECTION", "FILE.py CASE")')
    yield from errors
    for where, (counted, action, name, *where_tested) in rows:
        yield from check_fault_row(texts, where, seen, "%s %s of %s" % (action, name, counted), *where_tested)
    rows, errors = fault_lines(
        texts, "LINK", r'\((request|receive|time), "(down|up)", FAULT_LINK_[A-Z]+, "IBA [\d.]+, [^"]+", "(\w+\.py) (\w+)"\)',
        '(COUNTED, "STATE", FAULT_LINK_STATE, "IBA NUMBER, TEXT", "FILE.py CASE")')
    yield from errors
    for where, (counted, state, *where_tested) in rows:
        yield from check_fault_row(texts, where, seen, "link %s of a %s" % (state, counted), *where_tested)
    calls = re.findall(r"^CALL\((\w+), ", texts.get("lib/faults/calls.def", ""), re.M)
    with_errors = set()
    rows, errors = fault_lines(texts, "FAULT", r'\(calls, (\w+), (E[A-Z]+), "\w+\(3\), [A-Z ]+", "(\w+\.py) (\w+)"\)',
                               '(calls, CALL, ERROR, "PAGE(3), SECTION", "FILE.py CASE")')
    yield from errors
    for where, row in rows:
        call, error, *where_tested = row
        with_errors.add(call)
        yield from check_fault_row(texts, where, seen, "%s and %s" % (call, error), *where_tested)
        if call not in calls:
            yield "%s: %s is not in lib/faults/calls.def" % (where, call)
    for call in calls:
        if call not in with_errors:
            yield "lib/faults/calls.def:1: %s has no row in docs/faults.def" % call


def check_public_headers(tree):
    """each public header compiles alone, without a warning"""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    for file in tree.under("include"):
        if not file.path.endswith(".h"):
            continue
        command = compiler + ["-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                              "-Wstrict-prototypes", "-I", os.path.join(tree.root, "include"),
                              "-x", "c", "-"]
        source = '#include "%s"\n' % os.path.relpath(file.path, "include")
        run = subprocess.run(command, input=source, text=True, capture_output=True, check=False)
        for line in run.stderr.splitlines() if run.returncode else []:
            yield "%s: %s" % (file.path, line)


def symbols(library, *options):
    run = subprocess.run(["nm", "-P", *options, library], text=True, capture_output=True,
                         check=True)
    for line in run.stdout.splitlines():
        parts = line.split()
        if len(parts) >= 2 and len(parts[1]) == 1:
            yield parts[0].split("@")[0], parts[1]


def check_exports(library):
    """the library exports only its own names and those of verbs"""
    for name, kind in symbols(library, "-D", "--defined-only"):
        # A: the names of the version nodes themselves.
        if kind != "A" and not EXPORTS.match(name):
            yield "%s: exports %s" % (os.path.basename(library), name)


def check_core_symbols(archive):
    """the core needs no object of DPDK"""
    found = {name for name, kind in symbols(archive, "--undefined-only")
             if name.startswith(("rte_", "per_lcore_"))}
    for name in sorted(found):
        yield "%s: needs %s" % (os.path.basename(archive), name)


RULES = [check_layers, check_eal, check_drivers, check_app, check_verbs_structures, check_spdx,
         check_file_size, check_function_size, check_clocks, check_threads, check_sleeps,
         check_tables, check_data_path, check_cycles, check_outside_references, check_map,
         check_faults, check_public_headers]


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Exit status: 0 when every "
                                     "check passes, 1 when one fails, 2 on a wrong option.")
    parser.add_argument("root", help="the top of the source tree")
    parser.add_argument("--library", action="append", default=[],
                        help="a shared library whose exported names are checked")
    parser.add_argument("--core", action="append", default=[],
                        help="a static library that must not need DPDK objects")
    args = parser.parse_args()

    tree = Tree(args.root)
    cases = [(rule, tree) for rule in RULES]
    cases += [(check_exports, library) for library in args.library]
    cases += [(check_core_symbols, archive) for archive in args.core]
    failed = 0
    print("1..%d" % len(cases))
    for number, (rule, subject) in enumerate(cases, 1):
        found = list(rule(subject))
        failed += bool(found)
        print("%s %d - %s" % ("not ok" if found else "ok", number, rule.__doc__))
        for line in found:
            print("# " + line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
