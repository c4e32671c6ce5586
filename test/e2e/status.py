#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-status and DPDK telemetry show the state of a daemon and its clients."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, STATUS_PROGRAM, Daemon  # noqa: E402
from limit import received  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run, skip  # noqa: E402

FLOW = os.path.join(CLIENTS, "test/e2e/flow")


# Runs a program as another user, who may read the build and the directories of this test.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
          "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


def status(daemon, *options, before=()):
    return process.run([*before, STATUS_PROGRAM, *options], env=daemon.env)


def flow(daemon, *args):
    client = daemon.start(FLOW, *args, feed=True)
    client.wait_line()
    return client


def client_of(daemon, client):
    return [c for c in json.loads(status(daemon, "--json").stdout)["clients"]
            if c["pid"] == client.pid][0]


def reported(daemon, client):
    """Returns what the client reports as soon as it has answered: under load it may take long."""
    until(lambda: client_of(daemon, client)["answered"])
    return client_of(daemon, client)


def objects():
    with Daemon() as daemon:
        idle = flow(daemon, "idle")
        whole = json.loads(status(daemon, "--json").stdout)
        client = client_of(daemon, idle)
        case("--json shows device and socket", whole["device"]["name"] == "rocade0" and
             whole["socket"] == daemon.socket, str(whole))
        case("--json shows a client", client["name"] == "flow" and client["uid"] == os.getuid() and
             client["answered"] and client["qp_count"] == 1 and client["srq_count"] == 1,
             str(client))
        case("--json shows a client's SRQ with fill and limit", len(client["srqs"]) == 1 and dict(
            client["srqs"][0], srqn=0) == {
                "srqn": 0, "xrc": False, "fill": 10, "size": 64, "limit": 5, "limit_events": 0,
                "qps": 0, "error": False}, str(client["srqs"]))
        qp = client["qps"][0]
        case("--json shows a client's QP", len(client["qps"]) == 1 and qp["type"] == "RC" and
             qp["state"] == "RTS" and qp["dest_qpn"] == qp["qpn"] and qp["rq_fill"] == 16 and
             qp["rq_size"] == 32, str(qp))
        text = status(daemon, "--qps").stdout
        case("--qps prints device, client, SRQ, QP", all(re.search(want, text) for want in (
            r"rocade0 at .*rocade\.sock, this machine only", r"1 of 65536 QPNs in use",
            r"%d +\S+ +flow +1 +1 " % idle.pid,
            r"SRQ 0x[0-9a-f]{6}: 10 of 64, limit 5, 0 limit events, 0 QPs",
            r"QP 0x[0-9a-f]{6} RC RTS to 0x[0-9a-f]{6}, SQ 0 of 16, RQ 16 of 32; ")), text)
        idle.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, idle.pid, os.WSTOPPED | os.WNOWAIT)
        # The daemon reuses an answer that is a moment old.
        case("a stopped client does not answer", until(
            lambda: client_of(daemon, idle)["answered"] is False), str(client_of(daemon, idle)))
        text = status(daemon).stdout
        case("the text says that a client does not answer", "does not answer" in text, text)
        idle.send_signal(signal.SIGCONT)
        idle.finish()
        case("the text says that there are no clients", "no clients" in status(daemon).stdout)


PEER = r"(?m)^      peer %s: 1 QPs, no round trip measured, window cap %d packets, no congestion control\n"
WINDOW = r"        %s: 0 of %d packets in flight, 0 QPs blocked\n"


def peers():
    with Daemon() as daemon:
        idle = flow(daemon, "idle")
        client = reported(daemon, idle)
        seen = client["peers"]
        window = {"qps_blocked": 0, "inflight": 0, "window": seen[0]["cap"]}
        case("--json shows the peer of a connected QP", client["peer_count"] == 1 and
             len(seen) == 1 and dict(seen[0], cap=0, address="", srtt_ns=0) == {
                 "address": "", "qps": 1, "cap": 0, "srtt_ns": 0, "cc": False, "send": window,
                 "read": window} and seen[0]["cap"] > 0 and
             seen[0]["address"] in json.loads(
                 status(daemon, "--json").stdout)["device"]["addresses"], str(client))
        text = status(daemon, "--peers").stdout
        cap = seen[0]["cap"]
        want = PEER % (re.escape(seen[0]["address"]), cap) + WINDOW % ("send", cap) + WINDOW % (
            "read", cap)
        case("--peers prints the peer below its client", re.search(want, text) and
             text.index("%d " % idle.pid) < text.index("      peer "), text)
        case("without --peers there is no line for it", "peer " not in status(daemon).stdout)
        idle.finish()
        pair = flow(daemon, "pair")
        case("a round trip is shown once there is one", until(lambda: re.search(
            r"round trip \d+\.\d us, window cap \d+ packets, no congestion",
            status(daemon, "--peers").stdout)),
            status(daemon, "--peers").stdout)
        pair.finish()
        # Other hosts: with congestion control.
        daemon.env["ROCADE_CC"] = "swift,target=70"
        # Without probes, after which packets without an answer do not count.
        daemon.env["ROCADE_OFF"] = "tlp"
        host = flow(daemon, "hosts", "1")
        case("packets in flight are shown", until(lambda: [
            (p["address"], p["send"]["inflight"]) for p in client_of(daemon, host)["peers"]] == [
                ("192.0.2.100", 3)]), str(client_of(daemon, host)))
        case("the age of a request without an answer is shown", any(
            q["sq_unacked_ns"] > 0 for q in client_of(daemon, host)["qps"]) and re.search(
                r", SQ 1 of 16, oldest unacknowledged \d+\.\d{3} s, RQ ",
                status(daemon, "--qps").stdout), status(daemon, "--qps").stdout)
        host.kill()
        del daemon.env["ROCADE_OFF"]
        hosts = flow(daemon, "hosts", "100")
        client = reported(daemon, hosts)
        seen = client["peers"]
        case("--json shows at most 64 peers of a client", client["peer_count"] == 100 and
             len(seen) == 64 and len({p["address"] for p in seen}) == 64, str(client["peers"]))
        case("--json shows congestion control", all(
            p["cc"] and not w["cc_paced"] and w["cc_window"] == 8 and w["window"] == 8 and
            w["cc_target_ns"] >= 70000 and "cc_delay_ns" not in w
            for p in seen if p["address"] != "192.0.2.100"
            for w in (p["send"], p["read"])), str(seen))
        text = status(daemon, "--peers").stdout
        case("--peers shows congestion control, and counts what it does not show", re.search(
            r"congestion window 8\.00 packets, target \d+\.\d us$", text, re.M) and
            text.count("      peer ") == 64 and "      and 36 more peers\n" in text, text)
        hosts.kill()


def traffic():
    with Daemon() as daemon:
        pair = flow(daemon, "pair")
        done = status(daemon, "--watch=0.3", "--count", "3", "--json")
        rounds = [json.loads(line) for line in done.stdout.splitlines()]
        case("--watch --json prints a line per interval", done.returncode == 0 and len(rounds) == 3,
             done.stdout + done.stderr)
        case("the first line of --watch has no rates", all("rates" not in c for c in
                                                           rounds[0]["clients"]))
        last = rounds[-1]["clients"]
        case("--watch --json shows the rates of each client", len(last) == 2 and all(
            # by the pair; or by the daemon for a second, if the other one lags often
            c["rates"]["pair_packets"] + c["rates"]["rx_packets"] > 0 and
            c["rates"]["pair_bytes"] + c["rates"]["rx_bytes"] > 0 for c in last), str(last))
        case("--json shows the counters of each client's engine", all(
            0 < c["engine"]["tx_packets"] and 0 < c["engine"]["rx_roce"] for c in last), str(last))
        done = status(daemon, "--watch=0.1", "--count", "2")
        case("--watch prints text per interval", done.stdout.count("rocade0 at") == 2 and
             "tx pkt/s" in done.stdout, done.stdout)
        case("the text shows what each client receives from the other directly", len(re.findall(
            r"(?m)^      1 pairs: rx pkt +\d+[ k], rx B +\d+[ kM] ?$", done.stdout)) == 2 and len(re.findall(
                r"(?m)^      1 pairs: rx pkt/s +\d+[ k], rx B/s +\d+[ kM] ?$", done.stdout)) == 2, done.stdout)
        case("--json has the number of pairs of each client", [c["pairs"] for c in last] == [1, 1],
             str(last))
        _, found, _ = metrics(daemon)
        case("so do the metrics", all(
            found["rocade_client_pairs", ("client", str(c["id"])), ("program", "flow")] == 1
            for c in last), str(found))
        many = flow(daemon, "many", "1500")
        client = client_of(daemon, many)
        case("--json shows at most 1024 QPs of a client", client["qp_count"] == 1501 and
             len(client["qps"]) == 1024)
        text = status(daemon, "--qps").stdout
        case("--qps counts the QPs that it does not show", "and 477 more QPs" in text)
        many.kill()
        pair.finish()


def plausible(row):
    """Whether a histogram counts each time once, and the sum lies between what the bounds of the buckets say."""
    counts = list(row["buckets"].values())
    bounds = [int(bound) for bound in row["buckets"] if bound != "inf"]
    least = sum(n * below for n, below in zip(counts, [0, *bounds]))
    most = sum(n * bound for n, bound in zip(counts, bounds))
    return row["count"] == sum(counts) > 0 and least <= row["sum_ns"] and (
        counts[-1] > 0 or row["sum_ns"] <= most)


def latencies():
    with Daemon() as daemon:
        case("without a client there are no latencies", json.loads(
            status(daemon, "--json").stdout)["departed_latencies"] == [])
        for program, kind, operation in (
                ("ib_send_lat", "RC", "send"), ("ib_write_lat", "RC", "write"), ("ib_read_lat", "RC", "read"),
                ("ib_atomic_lat", "RC", "atomic"), ("ib_send_lat", "UC", "send")):
            served, done, text = daemon.pair(program, "-x", "0", "-F", "-c", kind, "-n", "200")
            until(daemon.idle)
            rows = json.loads(status(daemon, "--json").stdout)["departed_latencies"]
            mine = [row for row in rows if (row["type"], row["operation"]) == (kind, operation)]
            case("%s -c %s leaves a histogram" % (program, kind), (served, done) == (0, 0) and len(mine) == 1 and
                 all(map(plausible, rows)), text + str(rows))
        case("each type and operation has one row", len(rows) == len(
            {(row["type"], row["operation"]) for row in rows}), str(rows))
        text = status(daemon, "--latencies").stdout
        case("--latencies prints a line for each", all(re.search(
            r"(?m)^departed clients: %s %s: %d measured, mean \d+\.\d (us|ms|s)(, [0-9.]+ %% (within|above) \d+\.\d "
            r"(us|ms|s)){3}$" % (row["type"], row["operation"], row["count"]), text) for row in rows), text)
        case("without --latencies there is none", "measured" not in status(daemon).stdout)
        pair = flow(daemon, "pair")
        case("the histogram of a client that runs", until(lambda: [
            row["operation"] for c in json.loads(status(daemon, "--json").stdout)["clients"]
            for row in c["latencies"] if row["type"] == "RC" and row["count"] > 0]), status(daemon, "--json").stdout)
        text, found, wrong = metrics(daemon)
        case("without --latencies no metric is a histogram", " histogram\n" not in text, text)
        text, found, wrong = metrics(daemon, "--latencies")
        case("promtool accepts histograms", not wrong, wrong)
        counts = {key[1:]: value for key, value in found.items() if key[0] == "rocade_client_request_seconds_count"}
        case("the metrics of a client have its histogram", counts and all(
            value == found["rocade_client_request_seconds_bucket", *sorted([*labels, ("le", "+Inf")])] and
            found["rocade_client_request_seconds_sum", *labels] >= 0 for labels, value in counts.items()), text)
        case("the metrics have those of departed clients", all(
            found["rocade_departed_request_seconds_count", ("operation", row["operation"]), ("type", row["type"])] ==
            row["count"] for row in rows), text)
        pair.finish()


SERIES = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def series(text):
    """Returns each value by its metric and its labels without the device's."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SERIES.match(line).groups()
        labels = dict(LABEL.findall(labels))
        assert labels.pop("device") == "rocade0", line
        key = (name, *sorted(labels.items()))
        assert key not in found, line
        found[key] = float(value)
    return found


def metrics(daemon, *options):
    """Returns the text, its series, and what promtool says against it."""
    done = status(daemon, "--prometheus", *options)
    assert done.returncode == 0, done.stderr
    checked = subprocess.run(["promtool", "check", "metrics"], input=done.stdout, text=True,
                             capture_output=True, check=False)
    wrong = checked.stdout + checked.stderr
    if checked.returncode != 0:
        wrong += "\nexit status %d" % checked.returncode
    return done.stdout, series(done.stdout), wrong


def prometheus():
    with Daemon() as daemon:
        text, found, wrong = metrics(daemon, "--qps", "--peers")
        case("promtool accepts the metrics of a daemon without clients", not wrong, wrong)
        case("the metrics of a daemon without clients", found["rocade_device_mtu_bytes",] == 4184 and
             found["rocade_device_qpns",] == 65536 and not any("client" in dict(key[1:])
                                                              for key in found), text)
        daemon.env["ROCADE_CC"] = "swift"
        idle = flow(daemon, "idle")
        hosts = flow(daemon, "hosts", "2")
        client, other = reported(daemon, idle), reported(daemon, hosts)
        text, found, wrong = metrics(daemon, "--qps", "--peers")
        case("promtool accepts the metrics of clients, QPs and peers", not wrong, wrong)
        label = ("client", str(client["id"])), ("program", "flow")
        of = ("client", str(other["id"])), ("program", "flow")
        case("the metrics of a client", found["rocade_client_qps", *label] == 1 and
             found["rocade_client_info", label[0], ("pid", str(idle.pid)), label[1],
                   ("uid", str(os.getuid()))] == 1, text)
        whole = json.loads(status(daemon, "--json").stdout)
        want = {"rocade_client_%s_total" % name for name in whole["departed"]}
        case("each counter of a client is a metric", want <= {key[0] for key in found},
             str(want - {key[0] for key in found}))
        want = {"rocade_engine_%s_total" % name for name in client["engine"]}
        case("each counter of an engine is a metric", want <= {key[0] for key in found},
             str(want - {key[0] for key in found}))
        case("the values are those of --json", found["rocade_srq_receives", *label,
                                                     ("srqn", "0x%06x" % client["srqs"][0]["srqn"])] == 10 and
             found["rocade_limit_used", ("kind", "clients")] == 2 and
             found["rocade_user_held", ("kind", "clients"), ("uid", str(os.getuid()))] == 2 and
             found["rocade_engine_rx_roce_total", *of] == other["engine"]["rx_roce"] and
             found["rocade_qp_rq_receives", label[0], label[1],
                   ("qpn", "0x%06x" % client["qps"][0]["qpn"])] == 16, text)
        case("times are in seconds", sum(
            key[0] == "rocade_peer_cc_target_seconds" and 0 < value < 1
            for key, value in found.items()) == 2 * len(
                [p for p in other["peers"] if p["send"].get("cc_target_ns")]), text)
        text, found, wrong = metrics(daemon)
        case("without --qps and --peers they have no metrics", not wrong and not any(
            key[0].startswith(("rocade_qp_", "rocade_peer_")) for key in found), text)
        hosts.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, hosts.pid, os.WSTOPPED | os.WNOWAIT)
        case("a client that does not answer has no metrics of its engine", until(
            lambda: metrics(daemon)[1]["rocade_client_answered", *of] == 0) and
            ("rocade_engine_rx_roce_total", *of) not in metrics(daemon)[1])
        hosts.send_signal(signal.SIGCONT)
        hosts.kill()
        idle.finish()
    for other in ("--json", "--watch"):
        wrong = status(daemon, "--prometheus", other)
        case("refused: --prometheus %s" % other, wrong.returncode == 2 and other in wrong.stderr,
             wrong.stderr)


def events():
    with Daemon("--socket-mode", "666") as daemon:
        idle = flow(daemon, "idle")
        off = status(daemon, "--flight", "%d" % client_of(daemon, idle)["id"])
        case("--flight of a client without a recorder: status 1 and what to set",
             off.returncode == 1 and "ROCADE_FLIGHT_RECORDER=1" in off.stderr, off.stderr)
        daemon.env["ROCADE_FLIGHT_RECORDER"] = "1"
        pair = flow(daemon, "pair")
        del daemon.env["ROCADE_FLIGHT_RECORDER"]
        client = reported(daemon, pair)
        until(lambda: "RC_ACKNOWLEDGE" in status(daemon, "--flight", "%d" % client["id"]).stdout)
        seen = status(daemon, "--flight", "%d" % client["id"])
        heads = re.findall(r"(?m)^QP 0x([0-9a-f]{6}) to 0x[0-9a-f]{6}: the last \d+ of \d+ events$",
                           seen.stdout)
        case("--flight prints what each QP of a client did, while it runs",
             seen.returncode == 0 and
             {int(qpn, 16) for qpn in heads} == {qp["qpn"] for qp in client["qps"]} and all(
                 re.search(want, seen.stdout) for want in (
                     r"(?m)^\+[0-9.]+ (us|ms|s): sent PSN \d+ to \d+ \(packets: \d+\)$",
                     r"(?m)^\+[0-9.]+ (us|ms|s): received RC_ACKNOWLEDGE, PSN \d+",
                     r"(?m)^\+[0-9.]+ (us|ms|s): now$")), seen.stdout + seen.stderr)
        one = status(daemon, "--flight", "%d:0x%x" % (client["id"], client["qps"][0]["qpn"]))
        case("--flight prints what one QP did", one.returncode == 0 and re.findall(
            "(?m)^QP 0x([0-9a-f]{6})", one.stdout) == ["%06x" % client["qps"][0]["qpn"]] and
            one.stdout.splitlines()[-1].endswith(": now"), one.stdout + one.stderr)
        for what, why in [("%d:0xfffff" % client["id"], "no QP 0x0fffff"), ("999:17", "no QP"),
                          ("999", "no such client")]:
            none = status(daemon, "--flight", what)
            case("--flight %s: status 1 and why" % what, none.returncode == 1 and
                 why in none.stderr and none.stdout == "", none.stdout + none.stderr)
        if os.getuid() == 0:
            for what in "%d" % client["id"], "%d:%d" % (client["id"], client["qps"][0]["qpn"]):
                other = status(daemon, "--flight", what, before=NOBODY)
                case("--flight shows another user nothing of " + what, other.returncode == 1 and
                     other.stdout == "", other.stdout)
        pair.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, pair.pid, os.WSTOPPED | os.WNOWAIT)
        late = status(daemon, "--flight", "%d:%d" % (client["id"], client["qps"][0]["qpn"]))
        case("--flight of a stopped client: status 1", late.returncode == 1 and
             "has not answered within 200 ms" in late.stderr, late.stderr)
        pair.send_signal(signal.SIGCONT)
        pair.finish()
        idle.finish()
    for options in [("--flight", "0"), ("--flight", "1:"), ("--flight", "1:0x1000000"),
                    ("--flight", "1:2:3"), ("--flight", "1", "--json")]:
        wrong = status(daemon, *options)
        case("refused: " + " ".join(options), wrong.returncode == 2 and "flight" in wrong.stderr,
             wrong.stderr)


def catches(pid, number):
    """Whether the process has a handler of the signal."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return int(re.search(r"^SigCgt:\s+(\w+)", file.read(), re.M)[1], 16) >> (number - 1) & 1


def errors():
    with Daemon("--socket-mode", "666") as daemon:
        idle = flow(daemon, "idle")
        if os.getuid() == 0:
            seen = json.loads(status(daemon, "--json", before=NOBODY).stdout)
            case("--json shows nothing of another user's client but totals",
                 seen["clients"] == [] and [u["uid"] for u in seen["users"]] == [65534] and
                 seen["hidden"] == {"clients": 1, "users": 1} and
                 seen["limits"]["clients"]["used"] == 1, str(seen))
            text = status(daemon, before=NOBODY).stdout
            row = r"(?m)^ *\d+ +%d " % idle.pid  # a client's: its id and its process
            case("the text says what is not shown, and why", not re.search(row, text) and
                 "no clients of this user" in text and
                 re.search(r"not shown: 1 clients of 1 other users \(only root and", text), text)
            case("root is shown the client's row", re.search(row, status(daemon).stdout))
            seen = json.loads(status(daemon, "--json").stdout)
            case("root is shown all", len(seen["clients"]) == 1 and
                 seen["hidden"] == {"clients": 0, "users": 0}, str(seen))
        idle.finish()
    gone = status(daemon)
    case("without a daemon: status 1, the socket and a hint", gone.returncode == 1 and
         daemon.socket in gone.stderr and "rocaded --local" in gone.stderr and gone.stdout == "",
         gone.stderr)
    with Daemon() as daemon:
        watch = Process([STATUS_PROGRAM, "--watch=0.1"], apart=True, env=daemon.env)
        watch.wait_line()
        daemon.process.kill()
        case("--watch ends with status 1 when the daemon ends", watch.wait() == 1 and watch.errors,
             watch.errors)
    with Daemon() as daemon:
        # The daemon does not answer, and the signal comes before the pause.
        daemon.process.send_signal(signal.SIGSTOP)
        watch = Process([STATUS_PROGRAM, "--watch=80000"], apart=True, env=daemon.env)
        until(lambda: catches(watch.pid, signal.SIGTERM))
        watch.send_signal(signal.SIGTERM)
        daemon.process.send_signal(signal.SIGCONT)
        case("--watch ends by SIGTERM while it waits for an answer", watch.wait() == 0 and
             not watch.errors, watch.errors)
    for options, word in [(("--watch=never",), "never"), (("--watch", "2"), "2"),
                          (("--count", "0"), "0"), (("--nonsense",), "--help")]:
        wrong = status(daemon, *options)
        case("refused: " + " ".join(options), wrong.returncode == 2 and word in wrong.stderr,
             wrong.stderr)


def telemetry():
    if os.getuid() != 0:
        skip("telemetry", "needs root")
        return
    prefix = "rocade%d" % os.getpid()
    cpu = min(os.sched_getaffinity(0))
    eal = ["--no-huge", "-m", "128", "--no-pci", "--vdev", "net_null0", "--lcores", "0@%d" % cpu,
           "--file-prefix", prefix]
    # EAL takes no '-' in the keys of its answers.
    with Daemon("--port", "net_null0", "--address", "192.0.2.1/24", "--name", "ro-cade0",
                eal=eal), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as talk:
        talk.connect("/var/run/dpdk/%s/dpdk_telemetry.v2" % prefix)
        received(talk, 4096)
        talk.send(b"/rocade/devices")
        device = json.loads(received(talk, 65536))["/rocade/devices"]
        case("telemetry: a device with a '-' in its name", list(device) == ["ro_cade0"] and
             device["ro_cade0"]["name"] == "ro-cade0", device)
    with Daemon("--port", "net_null0", "--mtu", "4184", "--address", "192.0.2.1/24", "--sleep-us",
                "500", eal=eal) as daemon, socket.socket(
                    socket.AF_UNIX, socket.SOCK_SEQPACKET) as talk:
        # A daemon that systemd starts may not connect to its own socket either.
        os.chmod(daemon.socket, 0)
        talk.connect("/var/run/dpdk/%s/dpdk_telemetry.v2" % prefix)
        received(talk, 4096)

        def ask(what):
            talk.send(what.encode())
            return list(json.loads(received(talk, 65536)).values())[0]
        idle = flow(daemon, "idle")
        number = client_of(daemon, idle)["id"]
        device = ask("/rocade/devices")["rocade0"]
        case("telemetry: the device", device["mtu"] == 4184 and device["local"] == 0 and
             "192.0.2.1" in device["addresses"] and
             device["qpn_count"] == device["qpns_free"] + 1, str(device))
        case("telemetry: the clients", ask("/rocade/clients") == [number])
        client = ask("/rocade/client,%d" % number)
        case("telemetry: a client", client["pid"] == idle.pid and client["name"] == "flow" and
             client["answered"] == 1 and client["engine"]["drop_icrc"] == 0 and
             client["srq_count"] == 1, str(client))
        srqs = list(ask("/rocade/srqs,%d" % number).values())
        case("telemetry: its SRQs", len(srqs) == 1 and srqs[0]["fill"] == 10 and
             srqs[0]["limit"] == 5, str(srqs))
        found = ask("/rocade/peers,%d" % number)
        case("telemetry: its peers", client["peer_count"] == 1 and list(found) == ["0"] and
             found["0"]["address"] == "192.0.2.1" and found["0"]["cc"] == 0, str(found))
        qps = list(ask("/rocade/qps,%d" % number).values())
        case("telemetry: its QPs", len(qps) == 1 and qps[0]["state"] == "RTS", str(qps))
        many = flow(daemon, "many", "100")
        number = client_of(daemon, many)["id"]
        numbers = [set(ask("/rocade/qps,%d,%d" % (number, first))) for first in (0, 32, 64, 96, 128)]
        case("telemetry: many QPs, 32 at a time", [len(n) for n in numbers] == [32, 32, 32, 5, 0] and
             len(set.union(*numbers)) == 101, str(numbers))
        case("telemetry: an unknown client has no value", ask("/rocade/client,4711") is None and
             ask("/rocade/qps") is None and ask("/rocade/srqs,x") is None and
             ask("/rocade/peers,4711") is None)
        many.kill()
        daemon.env["ROCADE_CC"] = "swift"
        hosts = flow(daemon, "hosts", "90")
        number = reported(daemon, hosts)["id"]
        found = [ask("/rocade/peers,%d,%d" % (number, first)) for first in (0, 32, 64)]
        rows = [row for part in found for row in part.values() if row["address"] != "192.0.2.100"]
        case("telemetry: many peers, 32 at a time, at most 64", [len(f) for f in found] ==
             [32, 32, 0] and all(r["cc"] == 1 and r[w]["cc_window"] == "8.00"
                                 for r in rows for w in ("send", "read")), str(found))
        hosts.kill()
        idle.finish()


if __name__ == "__main__":
    sys.exit(run(objects, peers, traffic, latencies, prometheus, events, errors, telemetry))
