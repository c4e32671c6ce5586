#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-dump: tshark reads what it writes, with Rocade's dissector; filters, limits, what users other
than root get, and errors."""

import json
import os
import re
import signal
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import BUILD, CLIENTS, STATUS_PROGRAM, Daemon, as_user  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run, skip  # noqa: E402

DUMP = os.path.join(BUILD, "app/dump/rocade-dump")
TESTPMD = os.path.join(BUILD, "app/testpmd/rocade-testpmd")
FLOW = os.path.join(CLIENTS, "test/e2e/flow")
DISSECTOR = os.path.join(os.path.dirname(__file__), "../../tools/wireshark/rocade.lua")
NOBODY = 65534
FIELDS = ("frame.interface_name", "frame.interface_description", "frame.packet_flags_direction",
          "frame.comment", "infiniband.bth.destqp", "infiniband.bth.psn", "frame.len", "frame.cap_len",
          "frame.time_epoch")


def tshark(capture, *options):
    """Prints packets with Rocade's dissector. Returns the lines."""
    done = process.run(["tshark", "-X", "lua_script:" + DISSECTOR, "-r", capture, *options], 60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def packets(capture):
    """Returns a dictionary of the fields of each packet."""
    options = [word for field in FIELDS for word in ("-e", field)]
    return [dict(zip(FIELDS, line.split("\t")))
            for line in tshark(capture, "-T", "fields", *options)]


def start(daemon, capture, *options, before=()):
    """Starts a dump, which gets packets when this returns."""
    dump = Process([*before, DUMP, "--write", capture, *options], apart=True, env=daemon.env)
    until(lambda: "packets are written" in dump.errors or dump.poll() is not None)
    return dump


def ended(dump):
    """Waits for the end of the dump. Returns its exit status, and how many packets it has written and
    lost."""
    status = dump.wait()
    found = re.search(r"(\d+) packets written, (\d+) lost", dump.errors)
    return status, *(map(int, found.groups()) if found else (None, None))


def stop(dump):
    dump.send_signal(signal.SIGINT)
    return ended(dump)


def counted(capture):
    """Returns how many lost packets the file counts: in front of packets, and in statistics."""
    with open(capture, "rb") as file:
        data = file.read()
    at, before, statistics = 0, 0, 0
    while at < len(data):
        kind, size = struct.unpack_from("<2I", data, at)
        options = {1: 16, 5: 20, 0x0a0d0d0a: 24}.get(kind)
        if kind == 6:
            options = 28 + (struct.unpack_from("<I", data, at + 20)[0] + 3 & ~3)
        where, code = at + options, 1
        while code != 0:
            code, length = struct.unpack_from("<2H", data, where)
            if (kind, code) == (6, 4):
                before += struct.unpack_from("<Q", data, where + 4)[0]
            elif (kind, code) == (5, 5):
                statistics += struct.unpack_from("<Q", data, where + 4)[0]
            where += 4 + (length + 3 & ~3)
        assert where == at + size - 4 and struct.unpack_from("<I", data, where)[0] == size, at
        at += size
    return before, statistics


def flow(daemon, *args, before=()):
    client = daemon.start(*before, FLOW, *args, feed=True)
    client.wait_line()
    return client


def clients_of(daemon):
    return [c for c in daemon.status()["clients"] if c["name"] != "rocade-dump"]


def contents():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "all.pcapng")
        dump = start(daemon, capture, "--count", "2000")
        pair = flow(daemon, "pair")
        status, written, lost = ended(dump)
        ids = {c["id"]: c for c in clients_of(daemon)}
        case("--count ends the dump", status == 0 and written == 2000, dump.errors)
        rows = packets(capture)
        case("tshark reads all packets", len(rows) == 2000, len(rows))
        case("each packet is whole, and RoCEv2", all(
            row["frame.len"] == row["frame.cap_len"] and row["infiniband.bth.destqp"]
            for row in rows), rows[:2])
        case("tshark finds no malformed packet", not tshark(
            capture, "-Y", "_ws.malformed || _ws.expert.severity == \"Error\"")[:3])
        case("an interface for each client, which it describes",
             {(row["frame.interface_name"], row["frame.interface_description"]) for row in rows} ==
             {("client %d" % i, "flow, process %d, user %d" % (c["pid"], c["uid"]))
              for i, c in ids.items()}, rows[:2])
        sent = [row for row in rows if int(row["frame.packet_flags_direction"], 0) == 2]
        got = [row for row in rows if int(row["frame.packet_flags_direction"], 0) == 1]
        case("a packet is there as sent by one client and as received by the other",
             len(sent) + len(got) == 2000 and abs(len(sent) - len(got)) <= 1 + lost and (lost or all(
                 a["infiniband.bth.psn"] == b["infiniband.bth.psn"] and
                 a["frame.interface_name"] != b["frame.interface_name"] and
                 a["infiniband.bth.destqp"] == b["infiniband.bth.destqp"]
                 for a, b in zip(sent, got))), rows[:4])
        case("the comment names the client's QP", all(
            row["frame.comment"] == "to QP " + row["infiniband.bth.destqp"] for row in got) and all(
                row["frame.comment"] != "to QP " + row["infiniband.bth.destqp"] and
                re.fullmatch("from QP 0x[0-9a-f]{6}", row["frame.comment"]) for row in sent), rows[:4])
        times = [float(row["frame.time_epoch"]) for row in rows]
        case("the times are of now, and in order", times == sorted(times) and
             abs(times[-1] - os.stat(capture).st_mtime) < 60, times[:3])
        pair.finish()


def pairs():
    """Packets that clients exchange directly go through the daemon while there is a dump."""
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        pair = flow(daemon, "pair")

        def counts(name):
            return [c[name] for c in clients_of(daemon)]

        def grows(name):
            before = counts(name)
            return until(lambda: all(now > was + 100 for now, was in zip(counts(name), before)))
        case("clients without a dump exchange packets directly", grows("pair_packets"),
             daemon.status())
        capture = os.path.join(folder, "pair.pcapng")
        dump = start(daemon, capture, "--snap", "128")
        case("a dump gets the packets of both", grows("rx_packets"), daemon.status())
        before = counts("pair_packets")
        grows("rx_packets")
        case("meanwhile they exchange none directly", counts("pair_packets") == before, daemon.status())
        status, written, _ = stop(dump)
        rows = packets(capture)
        case("the dump has them", status == 0 and written == len(rows) > 200 and
             len({row["frame.interface_name"] for row in rows}) == 2, dump.errors)
        case("after the dump they exchange packets directly", grows("pair_packets"), daemon.status())
        status, text = pair.finish()
        case("the data of both is correct", status == 0 and "messages" in text, text)


def filters():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        pair = flow(daemon, "pair")
        one = clients_of(daemon)[0]
        report = json.loads(process.run([STATUS_PROGRAM, "--json"], env=daemon.env).stdout)
        qpn = [c for c in report["clients"] if c["id"] == one["id"]][0]["qps"][0]["qpn"]
        name, comment = "client %d" % one["id"], "QP 0x%06x" % qpn
        for options, good in (
                (("--client", str(one["id"])), lambda row: row["frame.interface_name"] == name),
                (("--qp", hex(qpn)), lambda row: row["frame.comment"].endswith(comment)),
                (("--direction", "in"), lambda row: row["frame.comment"].startswith("to ")),
                (("--direction", "out"), lambda row: row["frame.comment"].startswith("from ")),
                (("--snap", "128"), lambda row: int(row["frame.cap_len"]) ==
                 min(128, int(row["frame.len"])))):
            capture = os.path.join(folder, "some.pcapng")
            dump = start(daemon, capture, "--count", "200", *options)
            status, written, _ = ended(dump)
            rows = packets(capture)
            case("filter: " + " ".join(options), status == 0 and written == len(rows) == 200 and
                 all(map(good, rows)), dump.errors + str(rows[:3]))
        capture = os.path.join(folder, "none.pcapng")
        dump = start(daemon, capture, "--client", "4711", "--seconds", "1")
        status, written, _ = ended(dump)
        case("--seconds ends a dump without packets", status == 0 and written == 0 and
             not packets(capture), dump.errors)
        case("without a dump the daemon has none of its clients left",
             until(lambda: len(daemon.status()["clients"]) == 2))
        pair.finish()


def losses():
    """A dump that is stopped: the daemon goes on, and counts what it could not keep."""
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "late.pcapng")
        dump = start(daemon, capture, "--snap", "128")
        pair = flow(daemon, "pair")
        dump.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, dump.pid, os.WSTOPPED | os.WNOWAIT)

        def lost_so_far():
            return [c["rx_full"] for c in daemon.status()["clients"] if c["name"] == "rocade-dump"][0]
        case("a dump that does not read blocks nobody", until(lambda: lost_so_far() > 1000),
             daemon.status())
        before = daemon.moved()
        case("packets still flow", until(lambda: daemon.moved() > before + 1000000))
        dump.send_signal(signal.SIGCONT)
        until(lambda: os.path.getsize(capture) > 2000000)
        pair.finish()
        status, written, lost = stop(dump)
        case("what was lost is counted", status == 0 and written == len(packets(capture)) and
             lost > 1000, dump.errors)
        before, statistics = counted(capture)
        case("the file counts it, too", 0 < before <= lost == statistics, (before, statistics, lost))


def users():
    if os.getuid() != 0:
        skip("other users", "needs root")
        return
    with Daemon("--socket-mode", "666") as daemon, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        pair = flow(daemon, "pair")
        capture = os.path.join(folder, "other.pcapng")
        other = as_user(NOBODY)
        dump = start(daemon, capture, "--seconds", "1", before=other)
        status, written, _ = ended(dump)
        case("a user gets no packets of others", status == 0 and written == 0, dump.errors)
        own = flow(daemon, "pair", before=other)
        dump = start(daemon, capture, "--snap", "128", before=other)
        second = process.run([*other, DUMP, "--write", os.devnull, "--count", "1"], env=daemon.env)
        case("a user has one dump at a time", second.returncode == 1 and
             "another rocade-dump of this user" in second.stderr, second.stderr)
        root = process.run([DUMP, "--write", os.devnull, "--count", "1"], env=daemon.env)
        case("root may dump meanwhile", root.returncode == 0, root.stderr)
        status, written, _ = stop(dump)
        mine = {"client %d" % c["id"] for c in clients_of(daemon) if c["uid"] == NOBODY}
        case("a user gets the packets of its own clients", status == 0 and written == len(packets(capture)) > 0 and
             {row["frame.interface_name"] for row in packets(capture)} == mine and len(mine) == 2,
             dump.errors)
        own.finish()
        pair.finish()


def port():
    """rocade-testpmd writes the frames of its ports, which no daemon serves."""
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "port.pcapng")
        done = process.run([TESTPMD, "--", "--loop", "-T", "0", "-c", "2000", "--dump", capture,
                            "--dump-snap", "128"], 60)
        totals = re.findall(r"port (\d): (\d+) frames written, (\d+) lost", done.stdout)
        case("--dump: a file for each port", done.returncode == 0 and
             [row[0] for row in totals] == ["0", "1"], done.stdout + done.stderr)
        for path, (_, written, lost) in zip((capture, capture + ".1"), totals):
            rows = packets(path)
            roce = [row for row in rows if row["infiniband.bth.destqp"]]
            sent = [row for row in roce if int(row["frame.packet_flags_direction"], 0) == 2]
            got = [row for row in roce if int(row["frame.packet_flags_direction"], 0) == 1]
            case("tshark reads %s: each frame once, cut to 128 bytes" % os.path.basename(path),
                 len(rows) == int(written) and counted(path)[1] == int(lost) and
                 len(rows) + int(lost) > 2000 and all(
                     int(row["frame.cap_len"]) == min(128, int(row["frame.len"])) for row in rows),
                 (written, lost, len(rows)))
            case("%s names direction and QP" % os.path.basename(path), sent and got and all(
                re.fullmatch("from QP 0x[0-9a-f]{6}", row["frame.comment"]) for row in sent) and all(
                    row["frame.comment"] == "to QP " + row["infiniband.bth.destqp"] for row in got),
                rows[:4])
            times = [float(row["frame.time_epoch"]) for row in rows]
            case("%s: the times are of now, and in order" % os.path.basename(path),
                 times == sorted(times) and abs(times[-1] - os.stat(path).st_mtime) < 60, times[:3])
        late, more = os.path.join(folder, "late.pcapng"), os.path.join(folder, "more.pcapng")
        done = process.run([TESTPMD, "--", "--loop", "-T", "0", "-i", "-c", "2000"], 60, feed=(
            "set dump %s\nset impair rx loss 1%%\nstart\nwait\nset dump %s\nstart\nwait\n"
            "set dump off\nstart\nwait\nquit\n" % (late, more)))
        totals = re.findall(r"port (\d): (\d+) frames written, (\d+) lost", done.stdout)
        case("`set dump` begins, changes and ends the files of a running program, under impairment",
             done.returncode == 0 and len(totals) == 4 and done.stdout.count("PASS") == 3 and [
                 len(tshark(path)) for path in (late, late + ".1", more, more + ".1")] ==
             [int(row[1]) for row in totals], done.stdout[-2000:] + done.stderr)
        wrong = process.run([TESTPMD, "--", "--loop", "--dump", folder + "/none/x"], 60)
        case("a file that cannot be opened is an error", wrong.returncode != 0 and
             "No such file" in wrong.stderr, wrong.stderr)


def errors():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "x.pcapng")
        dump = start(daemon, capture)
        daemon.process.kill()
        case("the dump ends with status 1 when the daemon ends", dump.wait() == 1 and
             "the daemon has ended" in dump.errors, dump.errors)
        gone = process.run([DUMP, "--write", capture], env=daemon.env)
        case("without a daemon: status 1 and its socket", gone.returncode == 1 and
             daemon.socket in gone.stderr, gone.stderr)
        decimal = process.run([DUMP, "--write", capture, "--qp", "09"], env=daemon.env)
        case("a QPN with a leading 0 is decimal", decimal.returncode == 1 and
             daemon.socket in decimal.stderr, decimal.stderr)
        for options, word in ((("--qp", "1"), "0xfffffe"), (("--direction", "up"), "up"),
                              (("--snap", "0"), "0"), (("--client", "x"), "x")):
            wrong = process.run([DUMP, "--write", capture, *options], env=daemon.env)
            case("refused: " + " ".join(options), wrong.returncode == 2 and word in wrong.stderr,
                 wrong.stderr)
        wrong = process.run([DUMP, "--write", "/no/such/file"], env=daemon.env)
        case("a file that cannot be written: status 1", wrong.returncode == 1 and
             "/no/such/file" in wrong.stderr, wrong.stderr)


if __name__ == "__main__":
    sys.exit(run(contents, pairs, filters, losses, users, port, errors))
