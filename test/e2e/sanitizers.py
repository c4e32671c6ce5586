#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that were built with AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer, by gcc
and by clang, run under rocade-run: nothing is reported of Rocade, and each fault of the program is."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import Daemon  # noqa: E402
from tap import case, run  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = [os.path.join(HERE, name) for name in ("sanitized.c", "flow_end.c")]
# Of each sanitizer: the faults that it must report, and a word of the report.
FAULTS = {"address": {"overflow": "heap-buffer-overflow", "leak": "detected memory leaks"},
          "undefined": {"shift": "runtime error: shift exponent 32"},
          "thread": {"race": "WARNING: ThreadSanitizer: data race"}}
# Compiler, sanitizer, and which run-time library: without an option that of gcc is a shared object, that
# of clang a part of the program.
BUILDS = [("gcc", "address", ()), ("gcc", "address", ("-static-libasan",)), ("clang", "address", ()),
          ("clang", "address", ("-shared-libasan",)), ("gcc", "undefined", ()),
          ("clang", "undefined", ()), ("gcc", "thread", ()), ("gcc", "thread", ("-static-libtsan",)),
          ("clang", "thread", ())]
REPORTS = ("Sanitizer", "runtime error")
# A program with options of its own, and suppressions, as large programs have them.
OWN = """
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_stack_use_after_return=1"; }
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:no_such_function\\n"; }
"""

scratch = tempfile.TemporaryDirectory()


def build(compiler, sanitizer, options, *sources):
    """Compiles the program, and returns its path."""
    program = os.path.join(scratch.name, "-".join([compiler, sanitizer, *options, str(len(sources))]))
    done = process.run([compiler, "-g", "-O1", "-D_GNU_SOURCE", "-fsanitize=" + sanitizer, *options, "-o", program,
                        *SOURCES, *sources, "-libverbs", "-lpthread"], 120)
    case("%s builds" % os.path.basename(program), done.returncode == 0, done.stderr)
    return program


def library_path(compiler, options):
    """The folder of a shared run-time library that the dynamic linker does not search."""
    if "-shared-libasan" not in options:
        return {}
    folder = process.run([compiler, "-print-runtime-dir"], check=True).stdout.strip()
    name = process.run([compiler, "-print-file-name=libclang_rt.asan-x86_64.so"]).stdout.strip()
    return {"LD_LIBRARY_PATH": os.path.dirname(name) if os.path.isabs(name) else folder}


def clean(name, done):
    case(name, done.returncode == 0 and done.stdout == "done\n" and
         not any(word in done.stderr for word in REPORTS), done.stdout + done.stderr)


def each_build():
    with Daemon() as daemon:
        before = dict(daemon.env)
        for compiler, sanitizer, options in BUILDS:
            name = " ".join([compiler, sanitizer, *options])
            program = build(compiler, sanitizer, options)
            daemon.env = dict(before, **library_path(compiler, options))
            for fault in ("none", "left"):
                clean("%s: no report, %s" % (name, fault), daemon.run(program, fault, timeout_s=120))
            for fault, word in FAULTS[sanitizer].items():
                done = daemon.run(program, fault, timeout_s=120)
                case("%s: reports %s of the program" % (name, fault), word in done.stderr and
                     "librocade" not in done.stderr.partition(word)[0],
                     "%s: %s" % (done.returncode, done.stderr))
            clean("%s: behind a shell" % name,
                  daemon.run("sh", "-c", "%s none; exit $?" % program, timeout_s=120))


def own_options():
    """Options of the user, of a script, and of the program."""
    with Daemon() as daemon:
        before = dict(daemon.env)
        program = build("gcc", "address", ())
        daemon.env = dict(before, ASAN_OPTIONS="exitcode=5")
        done = daemon.run(program, "leak", timeout_s=120)
        case("the user's ASAN_OPTIONS stay", done.returncode == 5 and "detected memory leaks" in done.stderr,
             done.stderr)
        done = daemon.run("printenv", "ASAN_OPTIONS")
        case("ASAN_OPTIONS", done.stdout == "verify_asan_link_order=0:exitcode=5\n", done.stdout)
        daemon.env = before
        clean("a script may set ASAN_OPTIONS",
              daemon.run("env", "ASAN_OPTIONS=detect_leaks=1", program, "none", timeout_s=120))
        own = os.path.join(scratch.name, "own.c")
        with open(own, "w", encoding="utf-8") as file:
            file.write(OWN)
        clean("a program may have ASan options of its own",
              daemon.run(build("gcc", "address", (), own), "none", timeout_s=120))
        clean("a program may have TSan suppressions of its own",
              daemon.run(build("gcc", "thread", (), own), "none", timeout_s=120))
        program = build("gcc", "thread", ())
        empty = os.path.join(scratch.name, "empty")
        with open(empty, "w", encoding="utf-8") as file:
            file.write("race:no_such_function\n")
        daemon.env = dict(before, TSAN_OPTIONS="suppressions=" + empty)
        done = daemon.run("printenv", "TSAN_OPTIONS")
        case("the user's suppressions stay", done.stdout == "suppressions=%s\n" % empty, done.stdout)
        clean("gcc's TSan with suppressions of the user", daemon.run(program, "none", timeout_s=120))


if __name__ == "__main__":
    sys.exit(run(each_build, own_options))
