#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test/tsan/tests names every test that starts a thread, but for EXEMPT, and no other test.
Usage: threads_test.py SOURCE BUILD"""

import json
import os
import re
import sys

# Threads that live in a child process which gives up privileges or system calls: ThreadSanitizer's
# run-time library makes calls that are not permitted there. rdmacm, rdmacm_addrinfo: librdmacm and
# libibverbs query the port while an engine runs, which counts without atomic instructions.
# own_thread, preload_alone: a process under ThreadSanitizer has one more thread, which does not end.
EXEMPT = ("privileges", "syscall_filter", "rdmacm", "rdmacm_addrinfo", "own_thread",
          "preload_alone")
THREADS = re.compile(r"\b(pthread_create|own_thread_start|pair_threads_start|flight_printer_start) ?\(|"
                     r"\"(traffic|thread_fixture)\.h\"")


def listed(source):
    with open(os.path.join(source, "test/tsan/tests"), encoding="utf-8") as file:
        return {line.split(":")[-1].strip() for line in file
                if line.strip() and not line.startswith("#")}


def threaded(source, build):
    """Returns the names of the tests whose own source starts threads."""
    def info(kind):
        with open(os.path.join(build, "meson-info/intro-%s.json" % kind),
                  encoding="utf-8") as file:
            return json.load(file)

    programs = set()
    for target in info("targets"):
        for group in target.get("target_sources", []):
            for path in group.get("sources", []):
                if path.endswith("_test.c"):
                    with open(path, encoding="utf-8") as file:
                        if THREADS.search(file.read()):
                            programs.update(target["filename"])
    return {test["name"] for test in info("tests")
            if test["cmd"][0] in programs and test["name"] not in EXEMPT}


def main():
    source, build = sys.argv[1:3]
    have, want = listed(source), threaded(source, build)
    print("1..1")
    print("%s 1 - test/tsan/tests lists the tests that start threads"
          % ("ok" if have == want else "not ok"))
    for name in sorted(want - have):
        print("# %s starts threads and is not in test/tsan/tests" % name)
    for name in sorted(have - want):
        print("# %s is in test/tsan/tests and starts no thread" % name)
    return 0 if have == want else 1


if __name__ == "__main__":
    sys.exit(main())
