#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the examples of docs/embedding.md. embed: over a loop and over two ethdev ports, with the
program's poll loop and with lcores. mbufs: over two ethdev ports. Needs neither root nor hugepages."""

import os
import re
import subprocess
import sys
import tempfile

EAL = ["--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "256",
       "--log-level=error"]


def run(program, eal, options):
    env = dict(os.environ)
    # EAL does not free its memory at exit.
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    return subprocess.run([program, *eal, "--", *options], text=True, capture_output=True,
                          env=env, check=False)


def memif(socket):
    return ["--vdev", "net_memif0,role=server,socket-abstract=no,socket=" + socket,
            "--vdev", "net_memif1,role=client,socket-abstract=no,socket=" + socket]


def verified(result, messages):
    return result.returncode == 0 and re.match(
        r"%d messages of 1000 bytes by 4 QPs into one SRQ, all verified; [1-9]\d* refills$"
        % messages, result.stdout.strip())


def in_mbufs(result, messages):
    """Each message, and each reply, is received in the mbuf of its frame."""
    return result.returncode == 0 and result.stdout == (
        "%d messages of 1000 bytes sent, returned and verified\n"
        "%d messages and replies received in the mbufs of their frames\n" % (messages, 2 * messages))


def show(number, name, good, result):
    print("%s %d - %s" % ("ok" if good else "not ok", number, name))
    for line in [] if good else (result.stdout + result.stderr).splitlines():
        print("# " + line)


def main():
    program, mbufs = sys.argv[1:]
    lcores = "0,1" if (os.cpu_count() or 1) > 1 else "(0,1)@0"
    workers = ["-l", lcores] if lcores == "0,1" else ["--lcores", lcores]
    with tempfile.TemporaryDirectory() as folder:
        wire = memif(os.path.join(folder, "memif"))
        cases = [
            ("a loop, the program polls", EAL + ["-l", "0"], [], 10000),
            ("a loop, lcores", EAL + workers, ["--lcore"], 10000),
            ("net_memif, the program polls", EAL + ["-l", "0"] + wire, ["--ports", "0,1"], 5000),
            ("net_memif, lcores", EAL + workers + wire, ["--ports", "0,1", "--lcore"], 5000),
        ]
        refused = [
            ("no such port", EAL + ["-l", "0"], ["--ports", "0,1"], "no port 0"),
            ("no worker lcore", EAL + ["-l", "0"], ["--lcore"], "worker lcore"),
            ("an unknown option", EAL + ["-l", "0"], ["--nonsense"], "usage"),
            ("a wrong number", EAL + ["-l", "0"], ["--messages", "x"], "--messages"),
        ]
        print("1..%d" % (len(cases) + len(refused) + 3))
        number = 0
        for name, eal, options, messages in cases:
            number += 1
            result = run(program, eal, options + ["--messages", str(messages)])
            show(number, name, verified(result, messages), result)
        for name, eal, options, word in refused:
            number += 1
            result = run(program, eal, options)
            show(number, "refused: " + name, result.returncode == 1 and word in result.stderr,
                 result)
        result = run(mbufs, EAL + ["-l", "0"] + wire, ["5000"])
        show(number + 1, "mbufs over net_memif", in_mbufs(result, 5000), result)
        result = run(mbufs, EAL + ["-l", "0"], ["5000"])
        show(number + 2, "mbufs without ports is refused",
             result.returncode == 1 and "expected 2" in result.stderr, result)
    result = subprocess.run([program, "--help"], text=True, capture_output=True, check=False)
    show(number + 3, "--help", result.returncode == 0 and "Exit status" in result.stdout, result)


if __name__ == "__main__":
    main()
