#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/demo.sh: its output, the state of the machine after it, also after an interrupt, and the
frames of part a, which tshark and an independent ICRC check must accept as RoCEv2."""

# test.sh: alone it compares the hugepages of the machine before and after

import json
import os
import re
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
import process  # noqa: E402
from limit import within  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import SOURCE  # noqa: E402

BUILD = os.environ.get("ROCADE_BUILD") or os.path.join(SOURCE, "build-demo")
DEMO = os.path.join(SOURCE, "tools", "demo.sh")
PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
NOBODY = 65534
COLUMNS = ["messages", "Gb/s", "p50", "p99", "p99.9", "saved", "events", "NAKs", "missions",
           "verified"]

def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def processes(scratch, name=""):
    """Returns the processes that the demo started and that still run: they have its environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                ours = ("TMPDIR=%s" % scratch).encode() in file.read().split(b"\0")
            if ours and name in read("/proc/%s/comm" % pid):
                found.append(pid)
        except OSError:
            pass  # the process has just ended
    return found


def machine_state(scratch):
    """Returns the state of the machine that the demo must not change."""
    # Network namespaces are compared below; their mounts may be of other processes.
    mounts = sorted(line.split(" ", 2)[2] for line in
                    read("/proc/self/mountinfo").splitlines() if " - nsfs " not in line)
    try:
        namespaces = sorted(os.listdir("/run/netns"))
    except FileNotFoundError:
        namespaces = None
    return {"mounts": mounts, "namespaces": namespaces, "hugepages": read(PAGES).strip(),
            "interfaces": sorted(os.listdir("/sys/class/net")), "processes": processes(scratch),
            "temporary files": sorted(os.listdir(scratch))}


def differences(before, after):
    return ["%s: %s, was %s" % (key, after[key], before[key])
            for key in before if before[key] != after[key]]


def demo(scratch, *options, prefix=()):
    env = dict(os.environ, TMPDIR=scratch)
    return process.run([*prefix, DEMO, *options], 250, env=env)


def table_rows(output):
    """Returns {part: [columns]} of the table, and its headings."""
    lines = output.splitlines()
    rule = [i for i, line in enumerate(lines) if re.fullmatch("-{40,}", line)]
    if len(rule) != 1:
        return {}, []
    rows = {}
    for line in lines[rule[0] + 1:]:
        if not line:
            break
        rows[line[0]] = re.split(r"\s{2,}", line)
    return rows, lines[rule[0] - 1].split()


def full_run(scratch, outside):
    """All three parts, with a capture."""
    before = machine_state(scratch)
    capture = os.path.join(outside, "a.pcap")
    result = os.path.join(outside, "result.json")
    done = demo(scratch, "--build", BUILD, "--quick", "--capture", capture, "--json", result)
    text = done.stdout + done.stderr
    case("the demo ends with status 0", done.returncode == 0, text)
    case("the last line is PASS", done.stdout.splitlines()[-1:] == ["PASS"], text)
    rows, headings = table_rows(done.stdout)
    case("the table has a row for each part", sorted(rows) == ["a", "b", "c"], text)
    case("the table has ten columns", headings[1:] == COLUMNS and
         all(len(row) == 12 for row in rows.values()), "%s %s" % (headings, rows))
    case("the demo shows progress", len(re.findall(r"^ +\d+ s .* messages .* Gb/s", done.stdout,
                                                   re.M)) >= 6, text)
    check_result(result)
    difference = differences(before, machine_state(scratch))
    case("the demo restores the state of the machine", not difference, difference)
    check_capture(capture)


def check_result(path):
    try:
        result = json.loads(read(path))
        parts = {part["part"]: part for part in result["parts"]}
        part = parts["a"]
    except (OSError, ValueError, KeyError) as error:
        case("--json writes the numbers", False, error)
        return
    case("--json writes the numbers", result["verdict"] == "PASS" and sorted(parts) == list("abc"),
         result)
    case("part a has 8 QPs, limit events, loss in its second half, retransmissions",
         part["qps"] == 8 and part["limit_events"] > 0 and part["retransmissions"] > 0 and
         any(rate["loss"] for rate in part["rates"]) and
         not all(rate["loss"] for rate in part["rates"]), part)
    # 1 of 64 requests is signaled: 63 of 64 completions are saved, except for a few at the end.
    shares = {name: p["completions_saved"] / p["messages"] for name, p in parts.items()}
    case("most completions are saved", all(share > 0.9 for share in shares.values()), shares)


def tshark_fields(capture, *options):
    return process.run(["tshark", "-r", capture, "--disable-protocol", "rpcordma", "-T", "fields",
                        "-e", "frame.number", *options], 120).stdout.splitlines()


def check_capture(capture):
    if not os.path.exists(capture):
        case("--capture writes the frames of part a, at most 100,000", False, "no file")
        return
    total = len(tshark_fields(capture))
    case("--capture writes the frames of part a, at most 100,000", 1000 <= total <= 100000, total)
    roce = len(tshark_fields(capture, "-Y", "infiniband.bth.opcode"))
    case("tshark decodes each frame as RoCEv2", roce == total, "%d of %d" % (roce, total))
    bad = tshark_fields(capture, "-Y", "_ws.malformed || _ws.expert.severity == \"Error\"")
    case("tshark finds no malformed frame", not bad, bad[:5])
    again = tshark_fields(capture, "-Y", "infiniband.aeth.syndrome.opcode == 3")
    case("the capture has NAKs", again, "none")
    icrc = process.run([os.path.join(SOURCE, "test", "tools", "icrc_check.py"), "--min", total,
                        capture], 120)
    case("every frame has a correct ICRC", icrc.returncode == 0, icrc.stdout + icrc.stderr)


def interrupt(scratch, part, whole_group):
    """Sends SIGINT as soon as traffic runs: to the process group, as a terminal does, or to the
    script."""
    before = machine_state(scratch)
    env = dict(os.environ, TMPDIR=scratch)
    program = Process([DEMO, "--build", BUILD, "--part", part], env=env)
    program.wait_line(" 2 s ")
    seen = len(program.text)
    running = len(processes(scratch, "rocade-testpmd"))
    began = time.monotonic()
    if whole_group:
        os.killpg(program.pid, signal.SIGINT)
    else:
        program.send_signal(signal.SIGINT)
    status, text = program.finish()
    took = time.monotonic() - began
    name = "Ctrl-C in part %s" % part if whole_group else "SIGINT to the script in part %s" % part
    case("%s: the demo ends with status 130 in time" % name,
         running >= 1 and status == 130 and within(took, 15) and "PASS" not in text[seen:],
         "%d running, exit status %s, %.1f s\n%s" % (running, status, took, text))
    difference = differences(before, machine_state(scratch))
    case("%s: the demo restores the state of the machine" % name, not difference, difference)


def interrupts(scratch):
    interrupt(scratch, "a", True)
    interrupt(scratch, "b", False)
    interrupt(scratch, "c", False)


def not_root():
    name = "without root the demo runs part c only, and says so"
    # The unprivileged user can reach this directory, but perhaps not the temporary ones of root.
    scratch = tempfile.mkdtemp(dir="/tmp")
    os.chown(scratch, NOBODY, NOBODY)
    prefix = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
              "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    try:
        reach = process.run([*prefix, "test", "-x", os.path.join(
            BUILD, "app", "testpmd", "rocade-testpmd")])
        if reach.returncode != 0:
            skip(name, "only root can reach the build directory")
            return
        done = demo(scratch, "--build", BUILD, "--quick", prefix=prefix)
        rows, _ = table_rows(done.stdout)
        case(name, done.returncode == 0 and sorted(rows) == ["c"] and
             "part c alone" in done.stdout and done.stdout.splitlines()[-1] == "PASS",
             done.stdout + done.stderr)
        case("without root the demo leaves no file", not os.listdir(scratch), os.listdir(scratch))
        done = demo(scratch, "--build", BUILD, "--part", "a", prefix=prefix)
        case("without root part a is refused", done.returncode == 3 and
             "cannot run" in done.stderr, done.stdout + done.stderr)
    finally:
        os.rmdir(scratch)


def fake_build(outside, name, script):
    """Makes a build directory with the script in the place of rocade-testpmd."""
    build = os.path.join(outside, name)
    path = os.path.join(build, "app", "testpmd")
    os.makedirs(path)
    path = os.path.join(path, "rocade-testpmd")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    os.chmod(path, 0o755)
    return build


def failures(scratch, outside):
    build = fake_build(outside, "broken", "#!/bin/sh\necho no luck today\nexit 1\n")
    done = demo(scratch, "--build", build, "--quick")
    case("a program that fails: FAIL, status 1 and its output", done.returncode == 1 and
         done.stdout.splitlines()[-1] == "FAIL" and done.stdout.count("no luck today") >= 3,
         done.stdout + done.stderr)
    # Changes the program's report: one byte less was verified than arrived.
    build = fake_build(outside, "short", """#!/usr/bin/env python3
import json, subprocess, sys
status = subprocess.run([%r] + sys.argv[1:]).returncode
path = sys.argv[sys.argv.index("--json") + 1]
report = json.load(open(path))
for port in report["ports"]:
    port["bytes_verified"] = max(0, port["bytes_verified"] - 1)
json.dump(report, open(path, "w"))
sys.exit(status)
""" % os.path.join(BUILD, "app", "testpmd", "rocade-testpmd"))
    done = demo(scratch, "--build", build, "--quick", "--part", "c")
    case("a byte that was not verified: FAIL and status 1", done.returncode == 1 and
         done.stdout.splitlines()[-1] == "FAIL" and "were verified" in done.stdout,
         done.stdout + done.stderr)
    for options, word in ((["--fast"], "--fast"), (["--part", "d"], "'d'"), (["--json"], "value"),
                          (["--build", "/nonexistent"], "/nonexistent")):
        done = demo(scratch, *options)
        case("%s: status 2 and one line" % " ".join(options), done.returncode == 2 and
             word in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout,
             done.stdout + done.stderr)
    done = demo(scratch, "--help")
    case("--help prints the usage", done.returncode == 0 and "Exit status" in done.stdout,
         done.stdout)


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        return 0
    pages = read(PAGES)
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as outside:
        try:
            # Fewer than the demo needs, so that it has to reserve pages and release them.
            with open(PAGES, "w", encoding="utf-8") as file:
                file.write("7\n")
            return run(lambda: full_run(scratch, outside), lambda: interrupts(scratch),
                       not_root, lambda: failures(scratch, outside))
        finally:
            with open(PAGES, "w", encoding="utf-8") as file:
                file.write(pages)


if __name__ == "__main__":
    sys.exit(main())
