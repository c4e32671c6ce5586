#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd with traffic loops on worker lcores (--nb-cores): operations and types, queues, events,
loss, rates, commands and wrong options in one process, and between two processes over net_memif. There are
more lcores than CPUs."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tap import case, run, skip  # noqa: E402
from testpmd import MemifWire, eal_cores, loop  # noqa: E402

ALL = "send:3,send-imm:2,send-inv:2,write:5,write-imm:5,read:4,fadd:3,cas:3,atomic-write:2,flush:2"
LOSS = ["--impair", "loss=1%", "--timeout", "8"]
SUMS = ("messages", "bytes", "bytes_verified", "bad_bytes", "bad_messages", "cq_events", "qps",
        "limit_events", "lost_messages", "late_messages", "duplicate_messages")


def without_eal(text):
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith("EAL: "))


def cores(count, *options, lcores=None, text=None):
    """Runs both ends with that number of traffic loops, on lcores 1 and up; lcores: with the main one."""
    done, report = loop("--nb-cores", str(count), *options, text=text,
                        eal_options=eal_cores(lcores or count + 1))
    return done._replace(stderr=without_eal(done.stderr)), report


def shared(port, count):
    """Each core has QPs of its own, and the port has the sum of their counts."""
    return [core["core"] for core in port["cores"]] == list(range(count)) and \
        [core["lcore"] for core in port["cores"]] == list(range(1, count + 1)) and \
        all(sum(core[name] for core in port["cores"]) == port[name] for name in SUMS) and \
        all(core["qps"] in (port["qps"] // count, port["qps"] // count + 1) for core in port["cores"])


def good(done, report, count, messages):
    """All messages are counted, and every byte of them was verified at one end."""
    return done.returncode == 0 and report and report["result"] == "pass" and \
        report["messages"] == messages and report["bad_bytes"] == report["bad_messages"] == 0 and \
        report["bytes_verified"] == report["bytes"] and \
        all(shared(port, count) for port in report["ports"]) and \
        all(core["messages"] > 0 for core in report["ports"][0]["cores"])


def matrix():
    for count in (1, 2):
        for queue in ("--srq", "--srq-per-core", "--rq")[:1 if count == 1 else 3]:
            for mix, how in (("send", []), (ALL, ["--events"]), (ALL, LOSS)):
                done, report = cores(count, "-q", "5", "-c", "5000", "--op", mix, queue, *how, "-s",
                                     "64,8,1500,0,4096")
                case("%d cores, %s, %s" % (count, queue, " ".join(["--op", mix[:5], *how])), good(
                    done, report, count, 5000) and (report["retransmits"] > 0 or how != LOSS) and
                    (report["cq_events"] > 0) == ("--events" in how), done.stdout + done.stderr)


def shapes():
    rows = [
        ("SENDs with loss", 3, ["-q", "4", *LOSS], 5000),
        ("a small SRQ", 3, ["-q", "6", "--depth", "8"], 5000),
        ("limit events refill the SRQ of each core", 2, [
            "-q", "4", "--srq-per-core", "--srq-limit", "64", "--depth", "256"], 20000),
        ("two engines of a port", 2, ["-q", "8", "--engines", "2"], 5000),
        ("UD", 2, ["-q", "4", "--type", "ud"], 5000),
        ("UC with WRITEs", 2, ["-q", "4", "--type", "uc", "--op", "write:2,send-imm:1"], 5000),
        ("XRC", 2, ["-q", "4", "--type", "xrc", "--srq-per-core", "--op", "send:1,read:1,cas:1"], 5000),
        ("events, and engines on other lcores", 2, ["-q", "4", "--events"], 5000),
    ]
    for name, count, options, messages in rows:
        done, report = cores(count, "-c", str(messages), *options, lcores=5 if "other" in name else None)
        case("%d cores: %s" % (count, name), good(done, report, count, messages) and
             (report["limit_events"] > 0) == ("--srq-limit" in options), done.stdout + done.stderr)
    done, report = cores(2, "-c", "5000", "-q", "4", "--type", "ud", "--impair", "loss=1%,dup=1%,reorder=1%")
    sink = report["ports"][1]
    case("2 cores: UD with loss", done.returncode == 0 and shared(sink, 2) and sink["lost_messages"] > 0 and
         5000 == sink["messages"] + sink["lost_messages"], done.stdout + done.stderr)
    done, report = cores(3, "-c", "1", "-q", "4")
    case("3 cores, one message", done.returncode == 0 and report["messages"] == 1 and
         report["ports"][1]["messages"] == 1, done.stdout + done.stderr)


def latencies():
    done, report = cores(2, "-m", "pingpong", "-q", "4", "-c", "4000")
    port = report["ports"][0]
    ends = [port["cores"][0][key] for key in ("lat_min_ns", "lat_max_ns")], \
        [port["cores"][1][key] for key in ("lat_min_ns", "lat_max_ns")]
    case("pingpong: latencies of each core, and of both", done.returncode == 0 and shared(port, 2) and
         port["messages"] == 4000 and port["lat_min_ns"] == min(ends[0][0], ends[1][0]) and
         port["lat_max_ns"] == max(ends[0][1], ends[1][1]), done.stdout + done.stderr)
    done, report = cores(2, "-t", "1", "-q", "4", "--op", "write:2,read:1", "--rate", "4k")
    port = report["ports"][0]
    case("--rate is divided among the cores", done.returncode == 0 and port["rate_asked"] == 4000 and
         port["messages"] <= 4000 * port["seconds"] + 4 and
         sum(row["count"] for row in port["latency"].values()) == port["messages"] and
         all(core["lat_p50_ns"] is not None and core["messages"] <= 2000 * port["seconds"] + 2
             for core in port["cores"]), done.stdout + done.stderr)


def directions():
    done, report = cores(2, "-m", "both", "-q", "5", "-c", "5000", "-s", "64,8,1500,0,4096", "--rq")
    case("2 cores: both directions", done.returncode == 0 and all(
        shared(port, 2) and port["messages"] == port["sent_messages"] == 5000 and
        port["bytes_verified"] == port["bytes"] == port["sent_bytes"] for port in report["ports"]),
        done.stdout + done.stderr)


def lcores_of(port):
    """The lcores that have run a port's engines and its traffic."""
    return [engine["lcore"] for engine in port["engines"]], [core["lcore"] for core in port["cores"]]


def engines():
    """Lcores run the engines, while others post receives and unsignaled sends into shared rings."""
    rows = [
        ("one lcore for all", ["--engine-lcores", "2"], ([2], [2]), [None]),
        ("an lcore for each", ["--engine-lcores", "3,1"], ([3], [1]), [None]),
        ("two engines a port", ["--engines", "2", "--engine-lcores", "4,1"], ([4, 1], [4, 1]), [None]),
        ("two cores post", ["--engine-lcores", "1,3", "--nb-cores", "2"], ([1], [3]), [2, 4]),
        ("two named cores post", ["--engine-lcores", "4,2", "--corelist", "3,1"], ([4], [2]), [3, 1]),
        ("two cores post all operations, with events", [
            "--engine-lcores", "2", "--nb-cores", "2", "--op", ALL, "--events"], ([2], [2]), [1, 3]),
    ]
    for name, options, ran, posted in rows:
        done, report = loop("-q", "4", "-c", "20000", *options, eal_options=eal_cores(5))
        case("--engine-lcores: %s" % name, done.returncode == 0 and report["bad_bytes"] == 0 and
             report["bytes_verified"] == report["bytes"] and report["messages"] == 20000 and
             report["cqes_saved"] > 10000 and
             [lcores_of(port) for port in report["ports"]] == [(lcores, posted) for lcores in ran] and
             all(sum(core["messages"] for core in port["cores"]) == port["messages"]
                 for port in report["ports"]) and
             "port 1, engines: engine 0 on lcore %d" % ran[1][0] in done.stdout, done.stdout + done.stderr)
    done, report = loop("-m", "pingpong", "-q", "4", "-c", "2000", "--engine-lcores", "1", "--nb-cores", "2",
                        eal_options=eal_cores(4))
    case("--engine-lcores: latencies of each core", done.returncode == 0 and shared_latency(report["ports"][0]),
         done.stdout + done.stderr)
    for options, words in (
            (["--engine-lcores", "7"], "invalid value '7' for --engine-lcores: expected worker lcores of EAL (-l): "
                                       "1, 2"),
            (["--engine-lcores", "0"], "invalid value '0' for --engine-lcores: expected worker lcores"),
            (["--engine-lcores", "1,1"], "for --engine-lcores: entry 2, '1', comes twice"),
            (["--engine-lcores", "1,2", "--nb-cores", "1"], "invalid value '1' for --nb-cores: expected at most 0, as "
             "EAL (-l) has the worker lcores 1, 2, and --engine-lcores has 2 of them"),
            (["--engine-lcores", "1", "--corelist", "1"], "expected other lcores than those of --corelist")):
        done, _ = loop(*options, eal_options=eal_cores(3))
        said = without_eal(done.stderr)
        case("%s: status 2 and one line" % " ".join(options), done.returncode == 2 and words in said and
             said.count("\n") == 1 and not done.stdout, "%d %s" % (done.returncode, said))
    done, _ = loop("--engine-lcores", "1")
    case("--engine-lcores without EAL: status 2 and one line", done.returncode == 2 and done.stderr ==
         "rocade-testpmd: invalid value '1' for --engine-lcores: EAL has no worker lcores; expected -l 0-1 or more "
         "before --\n", done.stderr)


def shared_latency(port):
    return port["messages"] == sum(core["messages"] for core in port["cores"]) and \
        port["lat_min_ns"] == min(core["lat_min_ns"] for core in port["cores"]) and \
        port["lat_max_ns"] == max(core["lat_max_ns"] for core in port["cores"])


def lcores():
    """Which lcores run what."""
    done, report = loop("--corelist", "3,1", "-q", "2", "-c", "1000", eal_options=eal_cores(4))
    case("--corelist names the lcores", done.returncode == 0 and
         [core["lcore"] for core in report["ports"][0]["cores"]] == [3, 1], done.stdout + done.stderr)
    for count, by in ((3, "a core of --nb-cores"), (2, "a worker lcore")):
        done, _ = cores(count, "-i", "-q", "3", lcores=4, text="show engine\nquit\n")
        case("%d cores on 3 worker lcores: %s runs the engines" % (count, by), done.returncode == 0 and
             done.stdout.count("run by " + by) == 2, done.stdout + done.stderr)
    engines()
    if len(os.sched_getaffinity(0)) < 2:
        skip("a core on a CPU of its own", "one CPU only")
        return
    options = eal_cores(2)
    options[1] = "0@%d,1@%d" % tuple(sorted(os.sched_getaffinity(0))[:2])
    done, report = loop("--nb-cores", "1", "-q", "4", "-c", "20000", eal_options=options)
    case("a core on a CPU of its own", good(done, report, 1, 20000), done.stdout + done.stderr)


def commands():
    text = "start\nwait 1\nset burst 4\nshow qp\nshow srq\nset impair rx loss 1%\nwait 1\n" \
        "set impair rx off\nset srq 0 size 8192\nstop\nclear\nset count 3000\nset op read:1,write:2\n" \
        "start\nwait\nshow cq\nlisten 7471\nquit\n"
    done, report = cores(2, "-i", "-q", "3", "--timeout", "8", text=text)
    case("commands while cores run", done.returncode == 0 and done.stdout.count("\nPASS") == 2 and
         report["messages"] == 3000 and shared(report["ports"][0], 2), done.stdout + done.stderr)
    case("`show` has each object once", all(
        len(re.findall(line, done.stdout, re.M)) == count for line, count in (
            ("^  0x00010[012] RTS ", 6), ("^port 1: SRQ ", 1), ("^port 0: send CQ", 2))), done.stdout)
    case("commands that cores do not have", done.stderr.splitlines() == [
        "set srq 0 size 8192: the cores share this SRQ: expected --srq-per-core"] and
        "port 1: listening on port 7471, 3 QPs from 0x100" in done.stdout, done.stdout + done.stderr)
    text = "listen 7471\nconnect 192.0.2.2 7471\nstart\nwait\nquit\n"
    done, report = cores(2, "-i", "-q", "4", "-c", "3000", "--srq-per-core", "--srq-limit", "64", text=text)
    case("RDMA-CM connects the QPs of cores that have an SRQ each", done.returncode == 0 and not done.stderr and
         "4 QPs connected with 192.0.2.2" in done.stdout and report["messages"] == 3000 and
         shared(report["ports"][0], 2), done.stdout + done.stderr)
    text = "start\nset srq 1 limit 32\nset srq 1 size 8192\nshow srq\nwait 1\nstop\nquit\n"
    done, report = cores(2, "-i", "-q", "3", "--srq-per-core", text=text)
    case("an SRQ for each core: `set srq 1` is that of core 1", done.returncode == 0 and not done.stderr and
         re.findall(r"^port 1: SRQ \w+, \d+ of (\d+)", done.stdout, re.M) == ["4096", "8192"],
         done.stdout + done.stderr)
    done, report = cores(3, "-q", "3", "-c", "1000", "--impair", "loss=100%", "--wait", "1")
    said = [line for line in done.stderr.splitlines() if line.startswith("port 0: ")]
    case("all frames lost: one line of error", done.returncode == 1 and len(said) == 1 and
         "192.0.2.2 did not answer within 1 s (--wait)" in said[0] and
         report["ports"][0]["reason"] in said[0], done.stdout + done.stderr)


def wrong_options():
    for count, options, words in (
            (3, ["-q", "2"], "invalid value '3' for --nb-cores: expected at most 2 (--qps, "
             "of each peer)"),
            (3, ["-q", "3"], "invalid value '3' for --nb-cores: expected at most 2, as EAL (-l) has the "
                             "worker lcores 1, 2"),
            (1, ["--corelist", "7"], "invalid value '7' for --corelist: expected worker lcores of EAL (-l): "
                                     "1, 2"),
            (1, ["--corelist", "0"], "invalid value '0' for --corelist: expected worker lcores"),
            (1, ["--corelist", "1,1"], "invalid value '1,1' for --corelist: entry 2, '1', comes twice; expected"),
            (2, ["-q", "2", "--corelist", "1"], "at most 1, the lcores of --corelist"),
            (1, ["--sleep"], "expected it without --nb-cores"),
            (2, ["-q", "2", "--srq-limit", "5"], "expected 0, or --srq-per-core"),
            (2, ["-q", "2", "--type", "xrc"], "expected 1, or --srq-per-core, with --type xrc"),
            (1, ["--rq", "--srq-per-core"], "expected it without --rq")):
        done, _ = cores(count, *options, lcores=3)
        case("%d cores, %s: status 2 and one line" % (count, " ".join(options)), done.returncode == 2 and
             words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout,
             "%d %s" % (done.returncode, done.stderr))
    done, _ = loop("--nb-cores", "2", "-q", "2")
    case("no EAL: status 2 and one line", done.returncode == 2 and done.stderr ==
         "rocade-testpmd: invalid value '2' for --nb-cores: EAL has no worker lcores; expected -l 0-2 or more "
         "before --\n", done.stderr)


def run_ends(numbers, *options, modes=("sink", "send")):
    return MemifWire().run(options, options, numbers, modes)


def two_processes():
    for receiver, sender, options in ((0, 2, []), (2, 1, []), (2, 2, ["--op", ALL])):
        ends = run_ends((receiver, sender), "-q", "4", "-c", "10000", *options)
        case("%d cores receive from %d: %s" % (receiver, sender, " ".join(options)), all(
            "\nPASS" in end.text for end in ends) and ends[1].json()["messages"] == 10000 and
            sum(end.json()["bytes_verified"] for end in ends) == ends[1].json()["bytes"],
            ends[0].tail() + ends[1].tail())
    ends = run_ends((0, 2), "-q", "4", "-c", "10000", modes=("both", "both"))
    case("both directions, without and with cores", all(
        "\nPASS" in end.text and end.json()["messages"] == end.json()["sent_messages"] == 10000 and
        end.json()["bytes_verified"] == end.json()["bytes"] for end in ends), ends[0].tail() + ends[1].tail())
    ends = MemifWire().run(["-q", "2", "-t", "1", "-w", "2"], ["-q", "4", "-t", "1", "-w", "2"],
                           modes=("both", "both"))
    case("both directions, another number of QPs: the message does not blame ARP",
         "\nFAIL: 192.0.2.2 did not answer within 2 s (--wait): the host is reachable, but no rocade-testpmd "
         "receives with the same" in ends[1].text, ends[1].tail())
    ends = run_ends((1, 2), "-q", "4", "-c", "1000", "--op", "write")
    case("other operations need the same number of cores", all(
        "\nFAIL: " in end.text and "--nb-cores 2" in end.text and "both ends need the same" in end.text
        for end in ends), ends[0].tail() + ends[1].tail())


if __name__ == "__main__":
    sys.exit(run(matrix, shapes, latencies, directions, lcores, commands, wrong_options, two_processes))
