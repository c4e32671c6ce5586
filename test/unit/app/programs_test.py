#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ROCADED RUN STATUS FLOW LIBRARY: rocaded, rocade-run and rocade-status as whole processes: what
they print, their exit codes, signals, a changed configuration file, DPDK telemetry."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROCADED, RUN, STATUS, FLOW, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:6])
# A sanitized library is preloaded before the run-time library of the sanitizer; programs that are
# not ours may leak.
ENV = dict(os.environ, LC_ALL="C", ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") +
           ":verify_asan_link_order=0:detect_leaks=0")
TIMEOUT_S = 60
EAL = ["--no-huge", "-m", "64", "--no-pci", "--lcores", "0@%d" % min(os.sched_getaffinity(0)),
       "--file-prefix", "rocade%d" % os.getpid()]
cases = []


def case(name, good, why=""):
    cases.append(bool(good))
    print("%sok %d - %s" % ("" if good else "not ", len(cases), name), flush=True)
    if not good:
        print("# %s" % (why,), flush=True)


def until(condition):
    end = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def do(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
                          env=dict(ENV, **more))


def ends(name, done, code, *said):
    text = done.stdout + done.stderr
    case(name, done.returncode == code and all(word in text for word in said),
         "%s: %s" % (done.returncode, text))


class Daemon:
    """A rocaded in a directory of its own."""

    def __init__(self, *command, config=None):
        self.dir = tempfile.TemporaryDirectory(prefix="rocade-test-")
        self.socket = os.path.join(self.dir.name, "rocade.sock")
        self.config = os.path.join(self.dir.name, "rocaded.conf")
        if config is not None:
            self.write(config)
            command = ("--config", self.config)
        self.process = subprocess.Popen([ROCADED, *command, "--socket", self.socket],
                                        stderr=subprocess.PIPE, text=True, env=ENV)
        self.first_line = self.said("listening at")

    def write(self, text):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)

    def reload(self, text):
        """Changes the file. Returns the log up to what rocaded says about it."""
        self.write(text)
        self.process.send_signal(signal.SIGHUP)
        return self.said("settings ")

    def said(self, word):
        text = ""
        for line in self.process.stderr:
            text += line
            if word in line:
                break
        return text

    def start(self, *command):
        """Starts a client, which writes a line when it runs and ends with its standard input."""
        process = subprocess.Popen([RUN, "--socket", self.socket, "--library", LIBRARY, *command],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=ENV)
        process.stdout.readline()
        return process

    def status(self, *options):
        return do(STATUS, "--socket", self.socket, *options)

    def state(self):
        return json.loads(self.status("--json").stdout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        text = self.process.communicate(timeout=TIMEOUT_S)[1]
        case("rocaded ends with 0 on SIGTERM", self.process.returncode == 0, text)
        self.dir.cleanup()


def end(process):
    process.communicate("", timeout=TIMEOUT_S)
    return process.returncode


def private_daemon():
    """rocade-run --start-local: exit codes, and signals for the program."""
    local = (RUN, "--start-local", "--library", LIBRARY)
    ends("rocade-run returns the program's exit code", do(*local, "sh", "-c", "exit 3"), 3)
    ends("rocade-run returns 128 + the program's signal",
         do(*local, "sh", "-c", "kill -TERM $$"), 128 + signal.SIGTERM)
    ends("rocade-run returns 127 without the program", do(*local, "/nonexistent/program"), 127,
         "rocade-run: cannot run /nonexistent/program: No such file")
    ends("rocade-run reports a missing daemon", do(
        *local, "--daemon", "/nonexistent/rocaded", "true"), 1,
         "cannot run /nonexistent/rocaded: No such file", "cannot start /nonexistent/rocaded --local")
    ends("rocade-run reports a daemon that ends", do(*local, "--daemon", "/bin/false", "true"), 1,
         "rocade-run: cannot start /bin/false --local")
    process = subprocess.Popen(
        [*local, "sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done"],
        stdout=subprocess.PIPE, text=True, env=ENV)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    case("rocade-run forwards SIGTERM", end(process) == 7, process.returncode)


def launcher():
    """rocade-run with a daemon: its checks, and the environment of the program."""
    ends("rocade-run needs a program", do(RUN), 2, "rocade-run: missing PROGRAM (see --help)")
    ends("rocade-run needs a daemon", do(RUN, "--socket", "/nonexistent/s", "true"), 1,
         "/nonexistent/s", "`rocaded --local &` starts a daemon")
    with Daemon("--local", "--name", "mine") as daemon:
        run = (RUN, "--socket", daemon.socket, "--library", LIBRARY)
        ends("rocade-run checks --device", do(*run, "--device", "other", "true"), 1,
             "the daemon's device is 'mine', not 'other' as --device requires")
        ends("rocade-run checks --library", do(*run, "--library", "/nonexistent/l", "true"), 1,
             "cannot read /nonexistent/l: No such file")
        ends("rocade-run finds its library beside itself", do(
            RUN, "--device", "mine", "sh", "-c", "exit 4", ROCADE_SOCKET=daemon.socket), 4)
        ends("rocade-run executes the program", do(*run, "/nonexistent/program"), 127,
             "rocade-run: cannot run /nonexistent/program")
        show = ("sh", "-c", "echo $ROCADE_SOCKET $LD_PRELOAD $UCX_NET_DEVICES $UCX_TLS $NCCL_IB_HCA")
        ends("rocade-run sets the environment", do(*run, *show, UCX_TLS="rc", LD_PRELOAD=""), 0,
             "%s %s mine:1 rc =mine\n" % (daemon.socket, LIBRARY))
        ends("rocade-run keeps other preloads", do(*run, *show, LD_PRELOAD="libm.so.6"), 0,
             " %s:libm.so.6 mine:1 ^shm " % LIBRARY)
        ends("rocade-run preloads its library once", do(*run, *show, LD_PRELOAD=LIBRARY), 0,
             " %s mine:1 " % LIBRARY)


def objects():
    """rocade-status: a daemon, its client, an SRQ and QPs."""
    with Daemon("--local") as daemon:
        ends("rocade-status: no clients", daemon.status(), 0, "this machine only: MTU 4180",
             "192.0.2.1", "0 of 65536 QPNs in use", "\nno clients\n")
        idle = daemon.start(FLOW, "idle")
        text = daemon.status("--qps").stdout
        case("rocade-status: device, client, SRQ, QP", all(re.search(want, text) for want in (
            r"rocade0 at .*rocade\.sock", r"1 of 65536 QPNs in use",
            r"%d +\S+ +flow +1 +1 " % idle.pid,
            r"SRQ 0x[0-9a-f]{6}: 10 of 64, limit 5, 0 limit events, 0 QPs\n",
            r"QP 0x[0-9a-f]{6} RC RTS to 0x[0-9a-f]{6}, SQ 0 of 16, RQ 16 of 32; 0 sent")), text)
        client = daemon.state()["clients"][0]
        case("rocade-status --json: a client", client["name"] == "flow" and client["answered"] and
             client["qp_count"] == 1 and len(client["srqs"]) == 1, client)
        idle.send_signal(signal.SIGSTOP)
        case("rocade-status: a stopped client does not answer", until(
            lambda: "  does not answer\n" in daemon.status().stdout))
        idle.send_signal(signal.SIGCONT)
        many = daemon.start(FLOW, "many", "1100")
        ends("rocade-status counts the QPs that it does not show", daemon.status("--qps"), 0,
             " and 77 more QPs\n")
        case("the clients end", end(idle) == 0 and end(many) == 0)


def watched():
    """rocade-status --watch: rates, and its ends."""
    with Daemon("--local") as daemon:
        pair = daemon.start(FLOW, "pair")
        done = daemon.status("--watch=0.2", "--count", "3", "--json")
        rounds = [json.loads(line) for line in done.stdout.splitlines()]
        case("rocade-status --watch --json: rates from the second line on", done.returncode == 0 and
             len(rounds) == 3 and not any("rates" in c for c in rounds[0]["clients"]) and
             all(c["rates"]["tx_packets"] > 0 for c in rounds[-1]["clients"]), done.stdout)
        ends("rocade-status --watch: text", daemon.status("--watch=0.1", "--count", "2"), 0,
             "tx pkt ", "tx pkt/s ")
        case("the clients end", end(pair) == 0)
        deaf = daemon.start(FLOW, "deaf")
        case("rocade-status: packets lost to a full ring", until(
            lambda: re.search(r"daemon: .*rx_full \d", daemon.status().stdout)))
        case("the clients end", end(deaf) == 0)
        case("rocade-status: departed clients", "departed clients: " in daemon.status().stdout)
        watch = subprocess.Popen([STATUS, "--socket", daemon.socket, "--watch"], text=True,
                                 stdout=subprocess.PIPE, env=ENV)
        watch.stdout.readline()
        watch.send_signal(signal.SIGTERM)
        case("rocade-status --watch ends with 0 on SIGTERM", end(watch) == 0, watch.returncode)
        watch = subprocess.Popen([STATUS, "--socket", daemon.socket, "--watch=0.1"], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
        watch.stdout.readline()
    text = watch.communicate(timeout=TIMEOUT_S)[1]
    case("rocade-status --watch ends with 1 when the daemon ends", watch.returncode == 1 and
         "rocaded --local" in text, text)
    for options, said in [(("--watch=never",), "invalid value 'never' for --watch: expected 0.1"),
                          (("--watch=0",), "invalid value '0' for --watch"),
                          (("--count", "0"), "invalid value '0' for --count: expected 1 to 86400"),
                          (("--nonsense",), "unknown option '--nonsense' (see --help)"),
                          (("more",), "unexpected argument 'more' (see --help)")]:
        ends("refused: rocade-status " + " ".join(options), do(STATUS, *options), 2, said)


LOCAL = "[daemon]\nlocal = yes\nlog-level = info\n"


def reloaded():
    """SIGHUP: what changes, what needs a restart, and what is refused."""
    with Daemon(config=LOCAL + "[port]\nmtu = 4200\naddress = 192.0.2.5/24\n") as daemon:
        case("rocaded starts with a configuration file", "listening" in daemon.first_line,
             daemon.first_line)
        ends("rocaded uses its settings", daemon.status(), 0, "MTU 4200, 192.0.2.5")
        idle = daemon.start(FLOW, "idle")
        said = daemon.said("process")
        case("rocaded logs a client", "process %d of user %d" % (idle.pid, os.getuid()) in said,
             said)
        case("the client ends", end(idle) == 0)
        said = daemon.reload(LOCAL + "[port]\nmtu = 1400\nvlan = 5\naddress = 192.0.2.6/24, "
                             "2001:db8::6/64\n[clients]\nmax-clients = 1\n")
        case("SIGHUP: rocaded names what needs a restart",
             "settings reloaded; restart to change vlan, mtu\n" in said, said)
        ends("SIGHUP: the addresses change", daemon.status(), 0,
             "MTU 4200, 192.0.2.6, 2001:db8::6")
        said = daemon.reload(LOCAL + "[port]\nmtu = 4200\naddress = 1.2.3\n")
        case("SIGHUP: a wrong file is refused with its line", "settings unchanged" in said and
             '%s:6: address: invalid address "1.2.3"' % daemon.config in said, said)
        said = daemon.reload("[daemon]\nlocal = no\n[eal]\nm = 64\nno-huge =\n[port]\n"
                             "address = 192.0.2.6/24\n")
        case("SIGHUP: other EAL arguments need a restart", "local, " in said and "[eal]\n" in said,
             said)
        said = daemon.reload(LOCAL + "[port]\nmtu = 4200\n")
        case("SIGHUP: rocaded needs no restart", "settings reloaded\n" in said, said)
        second = do(ROCADED, "--local", "--socket", daemon.socket)
        case("a second rocaded does not take the socket", second.returncode == 1 and
             daemon.socket in second.stderr, second.stderr)


def telemetry(prefix, *commands):
    folder = "/var/run" if os.getuid() == 0 else ENV.get("XDG_RUNTIME_DIR", "/tmp")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as talk:
        talk.settimeout(TIMEOUT_S)
        talk.connect("%s/dpdk/%s/dpdk_telemetry.v2" % (folder, prefix))
        talk.recv(4096)
        for command in commands:
            talk.send(command.encode())
            yield list(json.loads(talk.recv(65536)).values())[0]


def ported():
    """rocaded over a port of DPDK."""
    eal = "[eal]\nvdev = net_null0\n" + "".join(
        "%s = %s\n" % (key.lstrip("-"), value) for key, value in
        [("no-huge", ""), ("no-pci", "")] + list(zip(EAL[1:3:2], EAL[2:3:2])) +
        list(zip(EAL[4::2], EAL[5::2])))
    port = "[port]\nport = 0\nmtu = 4180\naddress = 192.0.2.1/24\nsleep-us = 500\n"
    with Daemon(config=eal + port) as daemon:
        case("rocaded starts over a port", "listening" in daemon.first_line, daemon.first_line)
        ends("rocade-status: the port", daemon.status(), 0, "port: link up, ")
        idle = daemon.start(FLOW, "idle")
        number = daemon.state()["clients"][0]["id"]
        devices, clients, client, srqs, qps, page, nobody, none = telemetry(
            EAL[-1], "/rocade/devices", "/rocade/clients", "/rocade/client,%d" % number,
            "/rocade/srqs,%d" % number, "/rocade/qps,%d" % number, "/rocade/qps,%d,1" % number,
            "/rocade/client,%d" % (number + 1), "/rocade/client")
        case("telemetry: devices", devices["rocade0"]["local"] == 0 and
             "192.0.2.1" in devices["rocade0"]["addresses"], devices)
        case("telemetry: clients", clients == [number], clients)
        case("telemetry: a client", client["pid"] == idle.pid and client["answered"] == 1 and
             client["engine"]["drop_icrc"] == 0, client)
        case("telemetry: its SRQs", [s["fill"] for s in srqs.values()] == [10], srqs)
        case("telemetry: its QPs", [q["rq_size"] for q in qps.values()] == [32] and not page, qps)
        case("telemetry: no such client", not nobody and not none, (nobody, none))
        case("the client ends", end(idle) == 0)
    null = ["--vdev", "net_null0"]
    address = ["--", "--address", "192.0.2.1/24", "--socket", "/nonexistent/s"]
    for name, args, said in [
            ("no such port", EAL + null + address + ["--port", "net_nothing"],
             "invalid value 'net_nothing': expected one of the 1 ports of EAL"),
            ("no port", EAL + address, "invalid value '0': expected one of the 0 ports of EAL"),
            ("no such driver", EAL + ["--vdev", "nothing0"] + address, "cannot start EAL"),
            ("too many EAL arguments", ["-v"] * 65 + address, "more than 64 EAL arguments"),
            ("no directory for the socket", EAL + null + address, "/nonexistent/s")]:
        ends("refused: " + name, do(ROCADED, *args), 1, said)


def main():
    for group in (private_daemon, launcher, objects, watched, reloaded, ported):
        group()
    print("1..%d" % len(cases))
    return 0 if all(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
