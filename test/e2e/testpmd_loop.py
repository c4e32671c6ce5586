#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd with both ends in one process: sizes, queues, modes, commands, impairment, and the
messages for wrong options. It needs no root, EAL or hugepages."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import LONG, PROGRAM, SCRATCH, Terminal, Testpmd, is_root, loop  # noqa: E402

NOBODY = 65534


def good(report, count):
    sink = next((p for p in report["ports"] if p["mode"] == "sink"), None)
    return report["result"] == "pass" and report["messages"] == count and (
        sink is None or sink["messages"] == count and sink["bytes_verified"] == sink["bytes"])


def sends():
    rows = [
        ("one QP", ["-c", "10000"], 10000),
        ("8 QPs into one SRQ, sizes of all kinds",
         ["-q", "8", "-c", "20000", "-s", "0,1,63,64,65,1023,4096,4097,20000"], 20000),
        ("receive queues", ["-q", "8", "-c", "20000", "--rq", "--depth", "64"], 20000),
        ("every request signaled", ["-c", "5000", "--signal-every", "1"], 5000),
        ("inline", ["-c", "5000", "--inline", "128", "-s", "1,64,128,129"], 5000),
        ("only 0-byte messages", ["-c", "1000", "-s", "0"], 1000),
        ("large messages", ["-c", "40", "-s", "8m", "-q", "2"], 40),
        ("a small send queue", ["-c", "5000", "--sq-depth", "3", "--signal-every", "2"], 5000),
        ("a send queue of one request", ["-c", "500", "--sq-depth", "1"], 500),
        ("bursts that do not divide the queue",
         ["-c", "50000", "--sq-depth", "100", "--signal-every", "100", "-b", "33"], 50000),
        ("the PSN wraps", ["-c", "5000", "--psn", "16776000"], 5000),
        ("IPv6, DSCP, hop limit", ["-c", "5000", "--port", "0", "--peer", "2001:db8::2", "--dscp",
                                   "26", "--hop-limit", "3", "--port", "1", "--peer",
                                   "2001:db8::1"], 5000),
        ("a few engines", ["-c", "20000", "-q", "8", "--engines", "4"], 20000),
        ("1000 QPs", ["-c", "50000", "-q", "1000", "--sq-depth", "16", "--signal-every", "8"],
         50000),
    ]
    for mtu in (256, 512, 1024, 2048, 4096):
        rows.append(("path MTU %d" % mtu, ["-c", "2000", "-q", "2", "--mtu", str(mtu), "-s",
                                           "0,255,256,257,4096,10000"], 2000))
    for name, options, count in rows:
        done, report = loop(*options)
        case(name, done.returncode == 0 and report and good(report, count),
             done.stdout + done.stderr)


def lcores():
    """With EAL: a worker lcore runs all engines."""
    if len(os.sched_getaffinity(0)) < 2:
        skip("a worker lcore runs the engines", "one core only")
        return
    cpus = sorted(os.sched_getaffinity(0))[:2]
    program = Testpmd(["--loop", "-q", "4", "-c", "50000", "--engines", "2", "--cmdline-file",
                       os.devnull, "-i"],
                      ["--lcores", "0@%d,1@%d" % tuple(cpus), "-m", "256", "--no-pci", "--no-huge",
                       "--no-shconf", "--no-telemetry"])
    program.say("show engine")
    program.say("start")
    program.say("wait")
    program.say("quit")
    case("a worker lcore runs the engines", program.wait(60) == 0 and
         program.text.count("run by a worker lcore") == 4 and good(program.json(), 50000),
         program.tail())


def limit():
    done, report = loop("-c", "100000", "-q", "4", "--srq-limit", "512", "--depth", "2048")
    case("limit events alone refill the SRQ", done.returncode == 0 and good(report, 100000) and
         report["limit_events"] >= 60 and report["refills"] == report["limit_events"],
         done.stdout + done.stderr)
    case("unsignaled requests save completions", report["cqes_saved"] >= 98000, report)


def pingpong():
    done, report = loop("-m", "pingpong", "-c", "20000", "-q", "3", "-s", "64,1500")
    case("pingpong verifies both directions", done.returncode == 0 and
         report["messages"] == 20000 and report["bytes_verified"] == 2 * report["bytes"],
         done.stdout + done.stderr)
    order = [report["lat_%s_ns" % name] for name in ("min", "p50", "p99", "p999", "max")]
    case("the latency percentiles are in order", None not in order and
         order == sorted(order) and order[0] > 0, order)
    count = 20
    done, report = loop("-m", "pingpong", "-c", str(count))
    # From the first answer to the last. Latencies, of half a round trip, have three digits.
    least, most = (2 * (count - 1) * report["lat_%s_ns" % name] / 1e9 for name in ("min", "max"))
    case("a short pingpong takes the sum of its round trips",
         0.99 * least <= report["seconds"] <= 1.01 * most, (least, report["seconds"], most))


def both():
    """Each end sends, and verifies what it receives."""
    for options, least, most in (
            (["-c", "20000", "-q", "3", "-s", "0,64,1500,4097"], 20000, 20000),
            (["-c", "5000", "-q", "3", "--rq", "--events"], 5000, 5000),
            (["-c", "5000", "-q", "3", "--impair", "loss=1%,dup=1%,reorder=1%", "--timeout", "8"], 5000, 5000),
            (["-c", "1"], 1, 1),
            (["-t", "1", "-q", "2"], 1, 1 << 40)):
        done, report = loop("-m", "both", *options)
        ends = report["ports"] if report else []
        case("--mode both %s" % " ".join(options), done.returncode == 0 and all(
            end["bytes_verified"] == end["bytes"] and least <= end["messages"] <= most and
            end["messages"] == other["sent_messages"] == other["operations"]["send"] and
            end["bytes"] == other["sent_bytes"]
            for end, other in zip(ends, reversed(ends))), done.stdout + done.stderr)
    done, report = loop("-m", "both", "-i", "-q", "2", text="start\nwait 1\nstop\nstart\nwait 1\nquit\n")
    case("--mode both: two runs are stopped", done.returncode == 0 and done.stdout.count("\nPASS") == 2 and
         report["ports"][0]["messages"] == report["ports"][1]["sent_messages"] > 0, done.stdout + done.stderr)
    done, report = loop("-m", "both", "-t", "1", "--rate", "2k")
    case("--mode both --rate: latencies of both directions", done.returncode == 0 and all(
        port["lat_p50_ns"] is not None and port["rate_asked"] == 2000 for port in report["ports"]),
        done.stdout + done.stderr)


def impairment():
    count = 300000 if LONG else 30000
    done, report = loop("-c", str(count), "-q", "4", "-s", "64,3000",
                        "--impair", "loss=1%,dup=1%,reorder=1%,corrupt=0.5%")
    case("messages arrive verified: 1 % lost, duplicated, reordered, 0.5 % corrupted",
         done.returncode == 0 and good(report, count) and report["retransmits"] > 0,
         done.stdout + done.stderr)
    sink = next(p for p in report["ports"] if p["mode"] == "sink")["impaired"]
    case("all four impairments happened", min(sink.values()) > 0, sink)
    case("corrupted frames fail the ICRC check", report["drops"].get("icrc", 0) > 0,
         report["drops"])
    done, report = loop("-c", "1000", "--impair", "loss=100%", "--wait", "2")
    case("all frames lost: status 1 and a message", done.returncode == 1 and
         "192.0.2.2 did not answer within 2 s (--wait)" in done.stderr, done.stderr)


def unsignaled():
    done, _ = loop("-c", "10000", "--signal-every", "0")
    case("no request signaled: the send queue fills, status 1 and a message",
         done.returncode == 1 and "full of unsignaled requests" in done.stderr, done.stderr)
    done, _ = loop("-i", "-c", "10000", "--signal-every", "0", text="start\nwait\nshow qp\nquit\n")
    case("no request signaled: `show qp` prints the remedy", "none signaled" in done.stdout and
         "signal at least one request in every" in done.stdout, done.stdout)


def size_changes():
    """Both ends of one process have the same --size, which `set size` changes between two runs."""
    done, report = loop("-i", "-s", "64,128", "-q", "1", text="start\nwait 1\nstop\nset size 128\n"
                        "start\nwait 1\nquit\n")
    case("a new --size reconnects the QPs", done.returncode == 0 and
         report["result"] == "pass", done.stdout + done.stderr)


def commands():
    script = os.path.join(SCRATCH, "commands")
    lines = ["# a comment", "help", "show port stats", "start", "wait 1", "show srq all",
             "set srq 0 limit 64", "set srq 0 size 8192", "show srq",
             "set impair rx loss 1% dup 1% reorder 1% corrupt 0.1%", "wait 1",
             "set impair rx off", "show qp stats", "show cq all", "show mr", "show neigh", "show peer",
             "show engine all", "show port all", "clear", "show port", "stop", "set mtu 512",
             "set burst 8", "set signal-every 16", "set count 5000", "start", "wait",
             "set srq 0 size 10000", "start", "wait", "quit"]
    with open(script, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    done, report = loop("-q", "4", "--depth", "4096", "--timeout", "8", "--cmdline-file", script)
    case("a file of commands runs", done.returncode == 0 and good(report, 5000),
         done.stdout + done.stderr)
    for what in ("limit 64 armed", "of 8192 receives", "reachable", "to receive",
                 "congestion window", "rnr_nak_sent", "run by the main loop"):
        case("a file of commands prints \"%s\"" % what, what in done.stdout, done.stdout)
    case("a file of commands: three runs pass", done.stdout.count("\nPASS") == 3, done.stdout)
    case("a file of commands: `set mtu` changes the path MTU",
         all(p["path_mtu"] == 512 for p in report["ports"]), report["ports"])
    for line, words in (("set srq 0 size 0", "Invalid"), ("set srq 9 limit 1", "no such SRQ"),
                        ("set srq 0 limit 99999", "Invalid"), ("frobnicate", "unknown command"),
                        ("set type ud", "cannot set 'type' after program start; expected addr, peer,"),
                        ("set port 0 qps 3", "cannot set 'qps' after program start; expected addr,"),
                        ("set frob 1", "unknown option 'frob'; expected srq, impair, dump, port, addr,"),
                        ("set burst", "missing value: expected 1 to 256"),
                        ("set op", "missing value: expected send, send-imm,"),
                        ("show frob", "invalid 'frob'; expected port, engine, qp,"),
                        ("help op", "unknown topic 'op'; expected control, display, config, ports or traffic"),
                        ("set size 1m", "the largest --size at program start"),
                        ("set port 0 peer 0.0.0.0", "invalid value '0.0.0.0' for --peer"),
                        ("set port 7 peer 1.2.3.4", "port not open"),
                        ("set peer 1.2.3.4", "several ports are open"),
                        ("set impair rx loss 1", "expected off, or"),
                        ("set burst 999", "1 to 256"), ("stop", "no run is active")):
        done, _ = loop("-i", text=line + "\nquit\n")
        case("\"%s\": one line of error" % line, words in done.stderr and
             done.stderr.count("\n") == 1, done.stderr)
    with open(script, "w", encoding="utf-8") as file:
        file.write("start\nnonsense\nwait\n")
    done, _ = loop("--cmdline-file", script)
    case("a wrong line ends a file of commands with status 1", done.returncode == 1 and
         "unknown command 'nonsense'" in done.stderr, done.stderr)


def helps():
    """`help` by topic, and commands with the words of dpdk-testpmd."""
    for topic, words, other in (("control", "connect IP PORT", "set srq N"), ("display", "show WHAT", "start"),
                                ("config", "set srq N limit", "show WHAT"), ("ports", "set addr LIST", "set burst"),
                                ("traffic", "set burst N", "set addr")):
        done, _ = loop("-i", text="help %s\nquit\n" % topic)
        case("`help %s`" % topic, words in done.stdout and other not in done.stdout and not done.stderr,
             done.stdout + done.stderr)
    done, _ = loop("-i", "-c", "1000", text="start\nwait\nshow port stats all\nclear port stats all\n"
                   "show port info all\nquit\n")
    shown = done.stdout[done.stdout.index("PASS"):]
    case("`show port stats all`, `clear port stats all`, `show port info all`", done.returncode == 0 and
         not done.stderr and shown.count("port 0: send, done") == 2 and shown.count("rx_roce ") == 2,
         done.stdout + done.stderr)


def one_port():
    """The id of a port in place of `all`, as in dpdk-testpmd."""
    done, _ = loop("-i", "-c", "1000", text="start\nwait\nclear port stats 1\nshow port stats 0\nshow port info 1\n"
                   "quit\n")
    shown = done.stdout[done.stdout.index("PASS"):]
    case("`clear port stats 1`, `show port stats 0`, `show port info 1`", done.returncode == 0 and not done.stderr and
         shown.count("port 0: send, done") == shown.count("port 1: sink, done") == 1 and
         shown.count("rx_roce ") == 1, done.stdout + done.stderr)
    done, _ = loop("-i", text="show port stats 2\nclear port stats 7\nquit\n")
    case("a port that is not open", all("%s: port not open (`show port` lists the ports)" % words in done.stderr
         for words in ("show port stats 2", "clear port stats 7")) and done.stderr.count("\n") == 2, done.stderr)


def recorder():
    fails = ["-i", "--retry-cnt", "1", "--timeout", "8"]
    text = "start\nwait 1\nset impair rx loss 100%\nwait\nshow qp 0 events\nquit\n"
    done, _ = loop("--flight-recorder", *fails, text=text)
    case("--flight-recorder prints the events of a QP that fails", all(
        re.search("^rocade: warning: " + line, done.stderr, re.M) for line in (
            r"QP 0x\w+ to 0x\w+: the last \d+ of \d+ events$", r"\+[\d.]+ [mu]?s: sent PSN \d+ to ",
            r"\+[\d.]+ [mu]?s: no answer for PSN \d+ within the local ACK timeout$",
            r"\+0.00 us: goes back to PSN \d+, try 1 of 1$",
            r"\+0.00 us: RTS to ERR$")), done.stderr)
    case("`show qp 0 events` prints them, too", re.search(
        r"port 0, QP 0:\n  QP 0x\w+ to 0x\w+: the last 256 of \d+ events\n  \+0.00 us: ", done.stdout),
        done.stdout)
    done, _ = loop(*fails, text=text)
    case("without --flight-recorder there are none", "warning: QP" not in done.stderr and
         "the port was opened without flight_recorder" in done.stderr, done.stderr)
    done, _ = loop("-i", "--flight-recorder", "-q", "2", text="start\nshow qp 2 events\nquit\n")
    case("`show qp 2 events` of two QPs is an error", "has QPs 0 to 1, not 2" in done.stderr,
         done.stderr)


def stop_and_start():
    program = Testpmd(["--loop", "-i", "-q", "4"])
    for _ in range(3):
        mark = len(program.text)
        program.say("start")
        program.expect(r"\d+ messages", 5, mark)
        program.say("stop")
        if not program.expect(r"^PASS", 10, mark):
            break
    program.say("quit")
    case("three starts and stops pass", program.wait(10) == 0 and
         program.text.count("\nPASS") == 3, program.tail())
    program = Testpmd(["--loop", "-q", "4"])
    program.expect(r"\d+ messages", 5)
    program.send_signal(signal.SIGTERM)
    case("SIGTERM ends a run with status 0", program.wait(10) == 0 and
         "\nPASS" in program.text, program.tail())


def terminal():
    """Completion and history, as on a terminal."""
    end = Terminal()
    for name, words, typed in (
            ("the terminal shows a prompt", "rocade-testpmd> ", b""),
            ("Tab completes a command", "srq ", b"sh\tsr\t"),
            ("a completed command runs", "receives posted", b"\n"),
            ("the up arrow recalls a command", "show srq", b"\x1b[A"),
            ("a recalled command runs", "receives posted", b"\n"),
            ("? lists the next words of a command", "neigh", b"show ?"),
            ("^C clears the line", "rocade-testpmd> ", b"\x03"),
            ("`start` works on a terminal", "send, 1 QPs", b"start\n"),
            ("`stop` works on a terminal", "PASS", b"wait 1\nstop\n")):
        case(name, end.expect(words, typed), end.text)
    end.type(b"\x04")
    code = end.end()
    case("^D ends the program with status 0", code == 0, "%s %s" % (code, end.text))


def table_of_wrong_options():
    rows = [
        (["--size", "64x"], "invalid value '64x' for --size: expected bytes"),
        (["--qps", "0"], "invalid value '0' for --qps: expected 1 to 65536"),
        (["--mode", "duplex"], "invalid value 'duplex' for --mode: expected send, sink, pingpong"),
        (["--addr", "1.2.3/24"], "invalid value '1.2.3/24' for --addr: expected ADDRESS/"),
        (["--peer", "255.255.255.255"], "invalid value '255.255.255.255' for --peer"),
        (["--frobnicate"], "unknown option '--frobnicate'"),
        (["--signal-every", "1000"], "invalid value '1000' for --signal-every: expected at most 512"),
        (["stray"], "unexpected argument 'stray'"),
    ]
    for options, words in rows:
        done, _ = loop(*options)
        case("%s: status 2 and one line" % " ".join(options), done.returncode == 2 and
             words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout,
             "%d %s" % (done.returncode, done.stderr))
    rows = [
        (["--port", "0", "--peer", "198.51.100.1"], 2, "in no network of --addr"),
        (["--port", "0", "--peer", "192.0.2.77", "--wait", "1"], 1, "no ARP or ND answer for this address"),
        (["--inline", "65535"], 3, "--inline 65535"),
        (["--mtu", "4096", "--if-mtu", "1500"], 2, "--if-mtu"),
        (["--port", "0", "--addr", "192.0.2.1/24", "--peer", "2001:db8::2"], 2,
         "no address of its family"),
    ]
    for options, code, words in rows:
        done, _ = loop(*options)
        case("%s: status %d and a message" % (" ".join(options), code), done.returncode == code and
             words in done.stderr, "%d %s" % (done.returncode, done.stderr))
    done = process.run([PROGRAM, "--no-pci", "--no-huge", "--", "--addr", "10.0.0.1/24",
                        "--peer", "10.0.0.2"])
    case("a missing port: status 3 and a message", done.returncode == 3 and
         "cannot open port 0" in done.stderr, done.stderr)


def ordinary_user():
    how = {}
    if is_root():
        how = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    # The case passes without a run if the user cannot read the build.
    folder = os.path.dirname(PROGRAM)
    if how and process.run(["test", "-x", PROGRAM], **how).returncode != 0:
        case("an unprivileged user can run rocade-testpmd --loop", True)
        print("# user %d cannot reach %s: not tried" % (NOBODY, folder))
        return
    done = process.run([PROGRAM, "--", "--loop", "-c", "1000"], **how)
    case("an unprivileged user can run rocade-testpmd --loop", done.returncode == 0,
         done.stdout + done.stderr)


if __name__ == "__main__":
    sys.exit(run(sends, lcores, limit, pingpong, both, impairment, unsignaled, size_changes, commands,
                 helps, one_port, recorder, stop_and_start, terminal, table_of_wrong_options, ordinary_user))
