#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd with every operation and mixes of them: in one process, with and without loss, through
an SRQ and through receive queues, over several runs, and between two processes over net_memif: ends with
other options, and ends that restart."""

import csv
import json
import os
import sys
from xml.etree import ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tap import case, run  # noqa: E402
from testpmd import SCRATCH, MemifWire, loop  # noqa: E402

OPS = ("send", "send-imm", "send-inv", "write", "write-imm", "read", "fadd", "cas", "atomic-write", "flush")
ALL = "send:3,send-imm:2,send-inv:2,write:5,write-imm:5,read:4,fadd:3,cas:3,atomic-write:2,flush:2"
WORDS = ("fadd", "cas", "atomic-write")
QUANTILES = ("min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns")
LOSS = ["--impair", "loss=1%", "--timeout", "8"]


def names(mix):
    return [item.split(":")[0] for item in mix.split(",")]


def good(report, mix, count):
    """All messages are counted by operation, and every byte of them was verified at one end."""
    ends = {port["mode"]: port for port in report["ports"]}
    operations = ends["send"]["operations"]
    return report["result"] == "pass" and report["messages"] == count and \
        sorted(operations) == sorted(names(mix)) and min(operations.values()) > 0 and \
        sum(operations.values()) == count and report["bad_bytes"] == report["bad_messages"] == 0 and \
        report["bytes_verified"] == report["bytes"]


def matrix():
    for mix in OPS + (ALL,):
        for queue in (["--srq"], ["--rq"], ["--srq", "--events"]):
            for how, options in (("lossless", []), ("1 % loss", LOSS)):
                count = 3000 if options else 10000
                sizes = [] if mix in WORDS else ["-s", "64,8,1500,0,4096"]
                done, report = loop("-q", "4", "-c", str(count), "--op", mix, *queue, *sizes, *options)
                case("%s, %s, %s" % (mix, " ".join(queue), how), done.returncode == 0 and report and
                     good(report, mix, count) and (not options or report["retransmits"] > 0) and
                     (report["cq_events"] > 0) == ("--events" in queue),
                     done.stdout + done.stderr)


def types():
    mixes = {"uc": ("send", "send-imm", "write", "write-imm",
                    "send:1,write:2,write-imm:2,send-imm:1"),
             "ud": ("send", "send-imm", "send:1,send-imm:2"),
             "xrc": ("send", "write-imm", "read", "cas", "send:2,send-imm:1,write:3,write-imm:2,read:1,"
                     "fadd:1,cas:1")}
    for kind, of_kind in mixes.items():
        for mix in of_kind:
            for queue in ("--srq",) if kind == "xrc" else ("--srq", "--rq"):
                lossy(kind, mix, queue)


def lossy(kind, mix, queue):
    options = ["-q", "4", "--type", kind, "--op", mix, queue]
    if mix != "cas":
        options += ["-s", "64,1500,8,4096"]
    done, report = loop("-c", "10000", *options)
    case("%s, %s, %s" % (kind, mix, queue), done.returncode == 0 and report and
         good(report, mix, 10000) and report["lost_messages"] == 0, done.stdout + done.stderr)
    done, report = loop("-c", "10000", *options, "--impair", "loss=1%,dup=1%,reorder=1%", "--timeout", "8")
    passed = done.returncode == 0 and report["bad_messages"] == 0
    if kind == "xrc":
        passed = passed and good(report, mix, 10000)
    else:
        sink = next(port for port in report["ports"] if port["mode"] == "sink")
        passed = passed and report["messages"] == 10000 == sink["messages"] + sink["lost_messages"] and \
            0 < sink["lost_messages"] < 1000 and sink["bytes_verified"] >= sink["bytes"]
        if "write" not in names(mix):
            passed = passed and sink["late_messages"] > 0 and sink["duplicate_messages"] > 0
    case("%s, %s, %s, 1 %% loss, repeats and late frames" % (kind, mix, queue), passed,
         done.stdout + done.stderr)


def shapes():
    rows = [
        ("the weights are kept", "write:70,read:20,send:10", ["-c", "10000"], 10000),
        ("a small send queue", ALL, ["-c", "5000", "--sq-depth", "3", "--signal-every", "2"], 5000),
        ("each request signaled, and a burst of 1", ALL, ["-c", "5000", "--signal-every", "1", "-b", "1"],
         5000),
        ("inline", ALL, ["-c", "5000", "--inline", "128", "-s", "1,64,128,129"], 5000),
        ("1 MiB", "write:2,read:1,write-imm:1", ["-c", "100", "-s", "1m"], 100),
        ("300 QPs", ALL, ["-c", "30000", "-q", "300"], 30000),
        ("5000 QPs, more than the datagrams in a send queue", "write", [
            "-c", "10000", "-q", "5000", "--sq-depth", "16", "--signal-every", "8"], 10000),
        ("UD by events", "send", ["-c", "10000", "--type", "ud", "--events"], 10000),
        ("two engines, and path MTU 256", ALL, ["-c", "10000", "-q", "8", "--engines", "2", "--mtu", "256",
                                                "-s", "600"], 10000),
        ("all impairments", ALL, ["-c", "10000", "-q", "4", "--timeout", "8", "--impair",
                                  "loss=1%,dup=1%,reorder=1%,corrupt=0.5%"], 10000),
    ]
    for name, mix, options, count in rows:
        done, report = loop("--op", mix, *options)
        case(name, done.returncode == 0 and report and good(report, mix, count),
             done.stdout + done.stderr)
    done, report = loop("--op", "write:70,read:20,send:10", "-c", "10000")
    case("a mix has its shares", report and report["ports"][0]["operations"] == {
        "write": 7000, "read": 2000, "send": 1000}, report)
    case("the table has the operations of the sender only", [line.split() for line in done.stdout.splitlines()
         if line.startswith("  read ")] == [["read", "2,000", "-"]], done.stdout)
    done, report = loop("--op", ALL, "-c", "20000", "--no-verify")
    case("--no-verify verifies nothing", done.returncode == 0 and report["messages"] == 20000 and
         report["bytes_verified"] == 0, done.stdout + done.stderr)


def rates():
    mix = "send:1,write:2,read:1"
    done, report = loop("-t", "1", "-q", "4", "--op", mix, "--rate", "5k")
    sender = report["ports"][0]
    case("--rate 5k: latencies of each operation", done.returncode == 0 and
         sorted(sender["latency"]) == sorted(sender["operations"]) and
         all(row["count"] == sender["operations"][name] for name, row in sender["latency"].items()) and
         all([row[key] for key in QUANTILES] == sorted(row[key] for key in QUANTILES)
             for row in sender["latency"].values()) and
         sender["rate_asked"] == 5000 and report["lat_p9999_ns"] <= report["lat_max_ns"],
         done.stdout + done.stderr)
    # No more are sent than are due, whatever the machine does meanwhile.
    case("--rate 5k: no faster", sender["messages"] <= 5000 * sender["seconds"] + 2, sender)
    done, report = loop("-c", "3000", "-s", "1000", "--rate", "80mbps")
    case("--rate 80mbps of 1000 bytes", done.returncode == 0 and report["messages"] == 3000 and
         report["ports"][0]["rate_asked"] == 10000 and report["ports"][0]["latency"]["send"]["count"] == 2999,
         done.stdout + done.stderr)
    done, report = loop("-t", "1", "--rate", "1g", "--op", "write")
    case("a rate that is too high: what is not posted is counted", done.returncode == 0 and
         report["ports"][0]["behind"] > report["messages"], done.stdout + done.stderr)
    done, report = loop("-c", "1000", "--rate", "50k", "--type", "ud")
    case("UD has a rate, and no latencies", done.returncode == 0 and report["lat_max_ns"] is None and
         report["ports"][0]["latency"] == {}, done.stdout + done.stderr)
    done, report = loop("-i", "-c", "300", "--rate", "1k", text="start\nset rate 7k\nwait\nquit\n")
    case("`set rate` in a run is for the next one", done.returncode == 0 and report["ports"][0]["rate_asked"] ==
         1000, report)
    done, report = loop("-i", "-c", "1000", "--rate", "50k", text="start\nwait\nset rate 0\nstart\nwait\n"
                        "quit\n")
    case("`set rate 0`", done.returncode == 0 and done.stdout.count("\nPASS") == 2 and
         report["lat_max_ns"] is None, done.stdout + done.stderr)


def sweep():
    name = os.path.join(SCRATCH, "sweep")
    sizes = ",".join(str(size) for size in range(64, 128, 2))
    done, _ = loop("-t", "1", "-q", "2", "--op", "write:3,read:1", "--rate-sweep", "2k,20k,1g", "--sweep-file",
                   name, "-s", sizes)
    with open(name + ".csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with open(name + ".json", encoding="utf-8") as file:
        steps = json.load(file)["steps"]
    picture = ElementTree.parse(name + ".svg").getroot()
    case("--rate-sweep: a run for each rate", done.returncode == 0 and done.stdout.count("\nPASS") == 3 and
         [float(row["asked_per_s"]) for row in rows] == [2000, 20000, 1e9], done.stdout + done.stderr)
    case("--rate-sweep: CSV and JSON have the same", len(rows) == len(steps) == 3 and all(
        list(row) == list(step) and all(abs(float(row[key]) - step[key]) <= 0.51 for key in step)
        for row, step in zip(rows, steps)), (rows, steps))
    with open(name + ".json", encoding="utf-8") as file:
        case("--rate-sweep: the title has all options", json.load(file)["title"].endswith(sizes), file.name)
    case("--rate-sweep: a rate that is not reached", int(rows[2]["behind"]) > 0 and
         float(rows[2]["rate_per_s"]) < 1e9, rows)
    tags = [tag.tag.split("}")[1] for tag in picture]
    case("--rate-sweep: a curve for each percentile", tags.count("polyline") == 4 and
         tags.count("circle") == 4 * 3, tags)


def several_runs():
    text = "start\nwait\nstart\nwait\nset op read\nstart\nwait\nset op send\nstart\nwait\n" \
        "set op cas:1,write:3\nstart\nwait\nset op frobnicate\nquit\n"
    done, report = loop("-i", "-q", "3", "-c", "5000", "--op", ALL, text=text)
    case("`set op` between runs", done.returncode == 0 and done.stdout.count("\nPASS") == 5 and
         good(report, "cas:1,write:3", 5000), done.stdout + done.stderr)
    case("`set op` with another name: one line of error",
         "invalid value 'frobnicate' for --op: expected send, send-imm" in done.stderr and
         done.stderr.count("\n") == 1, done.stderr)


def wrong_options():
    for options, words in (
            (["--op", "frobnicate"], "invalid value 'frobnicate' for --op: expected send, send-imm"),
            (["--op", "send,write"], "each with a weight from 1 to 1000: write:70,read:20,send:10"),
            (["--op", "write:0"], "invalid value 'write:0' for --op"),
            (["--op", "fadd", "-s", "64"], "invalid value '64' for --size: expected 8 with --op fadd"),
            (["--op", "read", "-m", "pingpong"], "'read' for --op: expected send with --mode pingpong"),
            (["--type", "uc", "-m", "pingpong"], "'uc' for --type: expected rc with --mode pingpong"),
            (["--type", "uc", "--op", "send-inv"], "'send-inv' for --op: expected send, send-imm, write, write-imm"),
            (["--rate", "fast"], "invalid value 'fast' for --rate: expected a whole number of messages a second"),
            (["--rate", "0.4"], "invalid value '0.4' for --rate: expected a whole number of messages a second"),
            (["--rate", "1k", "--sleep"], "expected it without --sleep"),
            (["--rate", "1k", "-m", "pingpong"], "expected --mode send or both, not pingpong"),
            (["--rate-sweep", "1k,0", "-t", "1"], "invalid value '1k,0' for --rate-sweep"),
            (["--rate-sweep", "1k"], "expected it with --duration"),
            (["--rate-sweep", "1k", "-t", "1", "--type", "ud"], "expected --type rc or xrc"),
            (["--type", "rd"], "invalid value 'rd' for --type: expected rc, uc, ud or xrc"),
            (["--type", "uc", "--op", "read"], "expected send, send-imm, write, write-imm with --type uc"),
            (["--type", "ud", "--op", "send:1,write:1"], "expected send, send-imm with --type ud"),
            (["--type", "ud", "-s", "2048", "--mtu", "1024"], "at most 1024 (--mtu) with --type ud"),
            (["--type", "ud", "-s", "5000"], "expected at most 4096 with --type ud, the path MTU"),
            (["--type", "uc", "-s", "7"], "expected at least 8 with --type uc"),
            (["--type", "xrc", "--op", "atomic-write"], "with --type xrc"),
            (["--type", "xrc", "--rq"], "expected --srq with --type xrc"),
            (["--op", "read", "--signal-every", "0"], "expected at least 1 with --op read")):
        done, _ = loop(*options)
        case("%s: status 2 and one line" % " ".join(options), done.returncode == 2 and
             words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout,
             "%d %s" % (done.returncode, done.stderr))


def too_many_windows():
    done, _ = loop("-q", "32768", "--sq-depth", "32", "-m", "sink", "--op", "send-inv")
    case("more QPs than the device has memory windows for: one line", done.returncode == 3 and
         "invalid value '32768' for --qps: expected at most 32767 with --op send-inv, as each QP has 32" in done.stderr
         and done.stderr.count("\n") == 1 and not done.stdout, "%d %s" % (done.returncode, done.stderr))


def two_processes():
    ends = MemifWire().run(["--op", ALL, "-c", "20000", "-q", "4"], ["--op", ALL, "-c", "20000", "-q", "4"])
    case("a mix between two processes", all("\nPASS" in end.text for end in ends) and
         good({**ends[1].json(), "ports": ends[0].json()["ports"] + ends[1].json()["ports"],
               "bytes_verified": ends[0].json()["bytes_verified"] + ends[1].json()["bytes_verified"]},
              ALL, 20000), ends[0].tail() + ends[1].tail())
    for name, receiver, sender in (
            ("another operation", ["--op", "read"], ["--op", "write"]),
            ("another size", ["--op", "write"], ["--op", "write", "-s", "128"]),
        ("another count", ["--op", "write", "-c", "1000"], ["--op", "write", "-c", "2000"]),
        ("another number of QPs", ["--op", "write"], ["--op", "write", "-q", "2"]),
        ("another PSN", ["--op", "write"], ["--op", "write", "--psn", "77"]),
        ("another path MTU", ["--op", "write", "-s", "600"], ["--op", "write", "-s", "600", "--mtu", "256"]),
            ("a receiver with --op send", [], ["--op", "write"])):
        ends = MemifWire().run([*receiver, "-t", "2"], [*sender, "-t", "2"])
        said = ["--op read" if "read" in receiver else "--op write" if receiver else "--op send",
                {"128": "--size 128", "2": "--qps 2", "2000": "--count 2000", "77": "--psn 77",
                 "256": "--mtu 256"}.get(sender[-1], "--op write"), "both ends need the same"]
        case("%s: both ends say so" % name, all("\nFAIL: " in end.text and all(
            words in end.text for words in said) for end in ends), ends[0].tail() + ends[1].tail())
    ends = MemifWire().run(["--op", "write", "-t", "2"], ["--op", "write", "-c", "2000", "--mtu", "256"])
    case("one end with --count, and messages of one packet with two path MTUs", all(
        "\nPASS" in end.text for end in ends), ends[0].tail() + ends[1].tail())
    ends = MemifWire().run(["--op", "write", "-t", "2"], ["-t", "2"])
    case("a sender with --op send: the receiver says so", "\nFAIL: 192.0.2.1 sends messages that this end "
         "with '--type rc --op write" in ends[0].text, ends[0].tail() + ends[1].tail())


if __name__ == "__main__":
    sys.exit(run(matrix, types, shapes, rates, sweep, several_runs, wrong_options, too_many_windows, two_processes))
