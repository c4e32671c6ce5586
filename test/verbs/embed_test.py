#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the example of docs/embedding.md: over a loop and over two ethdev ports, with the
program's poll loop and with lcores. Needs neither root nor hugepages."""

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


def main():
    program = sys.argv[1]
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
        print("1..%d" % (len(cases) + len(refused) + 1))
        number = 0
        for name, eal, options, messages in cases:
            number += 1
            result = run(program, eal, options + ["--messages", str(messages)])
            good = verified(result, messages)
            print("%s %d - %s" % ("ok" if good else "not ok", number, name))
            for line in [] if good else (result.stdout + result.stderr).splitlines():
                print("# " + line)
        for name, eal, options, word in refused:
            number += 1
            result = run(program, eal, options)
            good = result.returncode == 1 and word in result.stderr
            print("%s %d - refused: %s" % ("ok" if good else "not ok", number, name))
    result = subprocess.run([program, "--help"], text=True, capture_output=True, check=False)
    good = result.returncode == 0 and "Exit status" in result.stdout
    print("%s %d - --help" % ("ok" if good else "not ok", number + 1))


if __name__ == "__main__":
    main()
