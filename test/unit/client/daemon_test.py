#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocaded, rocade-run and rocade-status together, without root: start, reload, end, what they say,
and their exit statuses.

    daemon_test.py ROCADED RUN STATUS FLOW [preload]

FLOW is linked with librocade-verbs. With "preload" programs are run with the library that rocade-run
finds; the libraries of a sanitizer build cannot be preloaded."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../e2e/lib"))
import process  # noqa: E402
from limit import received, until  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run  # noqa: E402

ROCADED, RUN, STATUS, FLOW = [os.path.abspath(a) for a in sys.argv[1:5]]
PRELOAD = "preload" in sys.argv[5:]

# In place of Rocade's library, which can be preloaded only if it is not sanitized.
with open("/proc/self/maps", encoding="ascii") as maps:
    LIBC = re.search(r"/\S*/libc[.-]\S+", maps.read())[0]


def not_confined(pid, uid=os.geteuid()):
    """Returns what the kernel says of each thread that has a capability, could get one, has no filter
    of system calls, or is of another user."""
    want = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapAmb"), "0" * 16)
    want.update(NoNewPrivs="1", Uid="\t".join([str(uid)] * 4), Seccomp="2")
    wrong = []
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, thread), encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file.read().splitlines())
        has = {name: fields[name].strip() for name in want}
        wrong += [has] if has != want else []
    return wrong


class Daemon:
    def __init__(self, *command, env=None):
        self.dir = tempfile.mkdtemp(prefix="rocade-test-")
        self.socket = os.path.join(self.dir, "socket")
        self.config = os.path.join(self.dir, "conf")
        self.env = dict(os.environ, ROCADE_SOCKET=self.socket, LC_ALL="C", **(env or {}))
        self.env.pop("LD_PRELOAD", None)
        self.command = [ROCADED] + [a.replace("CONFIG", self.config) for a in command]
        self.process = None

    def configure(self, text):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)

    def start(self):
        self.process = Process(self.command, env=self.env)
        return self.said("listening at")

    def said(self, word):
        """The next line with the word."""
        return self.process.wait_line(word)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
        shutil.rmtree(self.dir)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait()

    def run(self, *command, **more):
        return process.run(command, env=dict(self.env, **more))

    def begin(self, *command):
        return Process(command, apart=True, env=self.env)

    def flow(self):
        client = Process([FLOW, "idle"], feed=True, env=self.env)
        client.wait_line()

        def answers():
            clients = json.loads(self.run(STATUS, "--json").stdout)["clients"]
            return [c for c in clients if c["pid"] == client.pid and c["answered"]]
        until(answers)  # a client whose process does not run just now does not answer
        return client


def reload():
    base = "[daemon]\nlocal = yes\nlog-level = info\n[clients]\nmax-clients = %d\n"
    with Daemon("--config", "CONFIG", "--name", "rdma7") as daemon:
        daemon.configure(base % 4)
        line = daemon.start()
        case("rocaded says where it listens", daemon.socket in line, line)
        name = daemon.run(RUN, "--device", "rdma7", "--library", FLOW, "/nonexistent/program")
        case("rocade-run: a program that does not exist: 127", name.returncode == 127 and
             "cannot run /nonexistent/program" in name.stderr, name)
        daemon.configure(base % 5)
        daemon.process.send_signal(signal.SIGHUP)
        line = daemon.said("settings")
        case("SIGHUP reloads the settings", line == "rocaded: settings reloaded\n", line)
        daemon.configure(base % 5 + "[port]\nmtu = 1500\nvlan = 7\n")
        daemon.process.send_signal(signal.SIGHUP)
        line = daemon.said("settings")
        case("SIGHUP names what needs a restart", "restart to change" in line and
             "mtu" in line, line)
        daemon.configure(base % 0)
        daemon.process.send_signal(signal.SIGHUP)
        line = daemon.said("settings")
        case("SIGHUP with a wrong file changes nothing", line.endswith("settings unchanged\n"),
             line)
        daemon.configure(base % 5 + "[port]\naddress = 192.0.2.1/24,192.0.2.1/24\n")
        daemon.process.send_signal(signal.SIGHUP)
        line = daemon.said("settings")
        case("SIGHUP with a wrong address changes nothing",
             line.endswith("settings unchanged\n"), line)
        second = daemon.run(ROCADED, "--local")
        case("a second daemon is refused", second.returncode == 1 and
             "another daemon is listening there" in second.stderr, second)
        case("SIGTERM ends rocaded with 0", daemon.end() == 0 and not os.path.exists(
            daemon.socket))
    for args, said in ((["--help"], "--max-clients"), (["--version"], "rocaded ")):
        done = daemon.run(ROCADED, *args)
        case("rocaded %s" % args[0], done.returncode == 0 and said in done.stdout, done)


def other_user():
    """Started by root, rocaded becomes another user."""
    if os.geteuid() != 0:
        return
    with Daemon("--config", "CONFIG", "--user", "65533:65532") as daemon:
        daemon.configure("[daemon]\nlocal = yes\nsocket-mode = 660\n")
        os.chmod(daemon.dir, 0o755)
        daemon.start()
        wrong = not_confined(daemon.process.pid, 65533)
        case("--user: all threads of rocaded are that user's, and confined", not wrong, wrong)
        owner = os.stat(daemon.socket)
        case("--user: the socket is that user's and group's, with its mode",
             (owner.st_uid, owner.st_gid, owner.st_mode & 0o777) == (65533, 65532, 0o660), owner)
        done = daemon.run(STATUS)
        case("--user: rocaded serves its clients", done.returncode == 0, done)
        daemon.process.send_signal(signal.SIGHUP)
        line = daemon.said("settings")
        case("--user: SIGHUP reads a file that the user may read",
             line == "rocaded: settings reloaded\n", line)
        os.chmod(daemon.config, 0o600)
        daemon.process.send_signal(signal.SIGHUP)
        line = daemon.said(daemon.config)
        case("--user: SIGHUP reports a file that the user may not read",
             "Permission denied" in line, line)
        case("--user: SIGTERM ends rocaded with 0", daemon.end() == 0)
        case("--user: the socket stays in a directory of another user",
             os.path.exists(daemon.socket))
        os.chmod(daemon.config, 0o644)
        line = daemon.start()
        case("--user: the next rocaded replaces it", "listening at" in line, line)


def modes():
    """--seccomp."""
    for mode, number in (("kill", "2"), ("log", "2"), ("off", "0")):
        with Daemon("--local", "--seccomp", mode) as daemon:
            daemon.start()
            with open("/proc/%d/status" % daemon.process.pid, encoding="utf-8") as file:
                has = re.search(r"^Seccomp:\t(\d)", file.read(), re.M).group(1)
            case("--seccomp %s" % mode, has == number and daemon.end() == 0, has)


def status():
    with Daemon("--local") as daemon:
        daemon.start()
        wrong = not_confined(daemon.process.pid)
        case("rocaded --local is confined", not wrong, wrong)
        none = daemon.run(STATUS)
        case("rocade-status: no clients", none.returncode == 0 and "no clients" in none.stdout and
             "this machine only" in none.stdout, none)
        flow = daemon.flow()
        text = daemon.run(STATUS, "--qps")
        case("rocade-status --qps: device, client, SRQ, QP", all(re.search(w, text.stdout) for w in (
            r"rocade0 at .*socket, this machine only: MTU 4184, 192\.0\.2\.1, fe80::",
            r"1 of 65536 QPNs in use", r"%d +\S+ +client_flow +1 +1 " % flow.pid,
            r"SRQ 0x[0-9a-f]{6}: 10 of 64, limit 5, 0 limit events, 0 QPs",
            r"QP 0x[0-9a-f]{6} RC RTS to 0x[0-9a-f]{6}, SQ 0 of 16, RQ 16 of 32; ")), text)
        text = daemon.run(STATUS, "--peers")
        case("rocade-status --peers: the client's peer", re.search(
            r"\n      peer 192\.0\.2\.1: 1 QPs, no round trip measured, window cap (\d+) packets, "
            r"no congestion control\n"
            r"        send: 0 of \1 packets in flight, 0 QPs blocked\n"
            r"        read: 0 of \1 packets in flight, 0 QPs blocked\n", text.stdout), text)
        whole = json.loads(daemon.run(STATUS, "--json", "--socket", daemon.socket).stdout)
        case("rocade-status --json", whole["clients"][0]["pid"] == flow.pid and
             whole["socket"] == daemon.socket, whole)
        watch = daemon.run(STATUS, "--watch=0.1", "--count", "3", "--json")
        rows = [json.loads(line) for line in watch.stdout.splitlines()]
        case("rocade-status --watch --count: rates from the second on", len(rows) == 3 and
             "rates" not in rows[0]["clients"][0] and "rates" in rows[2]["clients"][0], watch)
        watch = daemon.run(STATUS, "--watch=0.1", "--count", "2")
        case("rocade-status --watch prints rates", "tx pkt/s" in watch.stdout, watch)
        watch = daemon.begin(STATUS, "--watch")
        watch.wait_line()
        watch.send_signal(signal.SIGINT)
        case("SIGINT ends rocade-status --watch with 0", watch.wait() == 0, watch.output())
        status_of_flow, said = flow.finish()
        case("the client ends with 0", status_of_flow == 0, said)
        watch = daemon.begin(STATUS, "--watch=0.1")
        watch.wait_line()
        daemon.end(signal.SIGINT)
        case("rocade-status --watch ends with 1 when the daemon does", watch.wait() == 1 and
             daemon.socket in watch.errors, watch.errors)
    for args, code, said in ((["--help"], 0, "--watch"), (["--version"], 0, "rocade-status "),
                             (["--nonsense"], 2, "unknown option"), (["more"], 2, "'more'"),
                             (["--watch=x"], 2, "invalid value 'x' for --watch"),
                             (["--watch=0.01"], 2, "expected 0.1 to 86400"),
                             (["--count", "0"], 2, "invalid value '0' for --count"),
                             (["--socket", "/nonexistent/s"], 1, "no daemon answers")):
        done = daemon.run(STATUS, *args)
        case("rocade-status %s: %d" % (" ".join(args), code), done.returncode == code and
             said in done.stdout + done.stderr, done)


def limits():
    """A program that the daemon refuses for a limit is told which."""
    with Daemon("--local", "--max-clients", "1") as daemon:
        with contextlib.ExitStack() as held:
            daemon.start()
            for _ in range(3):
                one = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                one.connect(daemon.socket)
            said = "the daemon at %s refuses this process: limit of connections to the daemon: user %d " \
                "has 3 of at most 3; to raise it: rocaded --max-clients, or max-clients in its configuration file" % (daemon.socket, os.geteuid())
            for program, args in ((RUN, ["true"]), (STATUS, []), (FLOW, ["idle"])):
                done = daemon.run(program, *args)
                case("%s is told the limit of connections" % os.path.basename(program),
                     done.returncode != 0 and done.stderr.count(said) == 1 and
                     "starts a daemon" not in done.stderr, done)


def limits_of_process():
    """A limit of the daemon's process is told, and ends no daemon that can serve."""
    with Daemon("--local") as daemon:
        done = daemon.run("prlimit", "--nofile=69:69", *daemon.command)
        case("rocaded with too few descriptors says so and does not start",
             done.returncode == 1 and done.stderr.count("\n") == 1 and
             "needs 70 file descriptors to serve one client, and may have 69" in done.stderr, done)
        daemon.command = ["prlimit", "--nofile=70:70", "--fsize=100000", *daemon.command]
        daemon.start()
        done = daemon.run(FLOW, "idle")
        case("a client whose memory the daemon cannot make is told why", done.returncode != 0 and
             "refuses this process: File too large" in done.stderr, done)
        line = daemon.said("client rejected")
        case("the daemon's log says why", "File too large (the daemon's limit RLIMIT_FSIZE" in line, line)
        case("the daemon goes on", daemon.run(STATUS).returncode == 0)
        case("and ends with 0", daemon.end() == 0)


class Stranger:
    """A false daemon of user 65534 at the socket of a Daemon; it hangs up on each client."""

    def __init__(self, daemon):
        os.chmod(daemon.dir, 0o777)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.seteuid(65534)
        self.socket.bind(daemon.socket)
        self.socket.listen()
        os.seteuid(0)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                self.socket.accept()[0].close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def strangers():
    with Daemon("--local") as daemon:
        done = daemon.run(FLOW, "idle")
        case("a program that finds no daemon says so", done.returncode != 0 and done.stderr.count(
            "no daemon answers at " + daemon.socket) == 1, done)
        if os.geteuid() != 0:
            return
        with Stranger(daemon):
            said = "at %s is of user 65534, expected root (0), user 0, or" % daemon.socket
            done = daemon.run(RUN, "true")
            case("rocade-run refuses another user's daemon", done.returncode == 1 and
                 said in done.stderr and "--daemon-uid UID" in done.stderr, done)
            for program in (STATUS, FLOW):
                done = daemon.run(program, *(["idle"] if program == FLOW else []))
                case("%s refuses another user's daemon" % os.path.basename(program),
                     done.returncode != 0 and said in done.stderr, done)
            done = daemon.run(RUN, "--daemon-uid", "65533", "true")
            case("rocade-run --daemon-uid: only this user's", done.returncode == 1 and
                 "ROCADE_DAEMON_UID (65533)" in done.stderr, done)
            done = daemon.run(RUN, "--daemon-uid", "65534", "true")
            case("rocade-run --daemon-uid: the daemon is asked", done.returncode == 1 and
                 "has ended the connection" in done.stderr, done)
        done = daemon.run(RUN, "--daemon-uid", "-1", "true")
        case("rocade-run --daemon-uid -1: 2", done.returncode == 2 and
             "expected 0 to 4294967294" in done.stderr, done)


def launch():
    with Daemon("--local") as daemon:
        silent = os.path.join(daemon.dir, "silent")
        with open(silent, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexec sleep 1000\n")
        os.chmod(silent, 0o755)
        waits = daemon.begin(RUN, "--daemon", silent, "--start-local", "true")
        for args, code, said in (
                (["--help"], 0, "--start-local"), (["--version"], 0, "rocade-run "),
                (["--nonsense"], 2, "unknown option"), ([], 2, "missing PROGRAM"),
                (["true"], 1, "no daemon answers"),
                (["--daemon", "/nonexistent", "--start-local", "true"], 1, "cannot start"),
                (["--daemon", "/bin/false", "--start-local", "true"], 1, "cannot start")):
            done = daemon.run(RUN, *args)
            case("rocade-run %s: %d" % (" ".join(args), code), done.returncode == code and
                 said in done.stdout + done.stderr, done)
        daemon.start()
        for args, said in ((["--device", "mlx5_0", "true"], "the daemon's device is 'rocade0'"),
                           (["--library", "/nonexistent", "true"], "cannot read /nonexistent")):
            done = daemon.run(RUN, *args)
            case("rocade-run %s: 1" % " ".join(args), done.returncode == 1 and
                 said in done.stderr, done)
        show = ["--library", LIBC, "sh", "-c",
                "echo $LD_PRELOAD $ROCADE_SOCKET $UCX_NET_DEVICES $NCCL_IB_HCA; exit 3"]
        done = daemon.run(RUN, *show)
        case("rocade-run sets the environment and keeps the exit status", done.returncode == 3 and
             done.stdout == "%s %s rocade0:1 =rocade0\n" % (LIBC, daemon.socket), done)
        done = daemon.run(RUN, "--socket", daemon.socket, *show, LD_PRELOAD="/nonexistent.so",
                          UCX_NET_DEVICES="mine", ROCADE_SOCKET="/other")
        case("rocade-run keeps what is set", "%s:/nonexistent.so %s mine =rocade0" % (
            LIBC, daemon.socket) in done.stdout, done)
        off = ["--library", LIBC, "sh", "-c", "echo $ROCADE_OFF"]
        for option, before, want in (([], "tlp", "tlp"), ([], "host-devices", "host-devices"),
                                     (["--host-devices", "hide"], "", "host-devices"),
                                     (["--host-devices", "show"], "host-devices", "")):
            done = daemon.run(RUN, *option, *off, ROCADE_OFF=before)
            case("rocade-run %s with ROCADE_OFF=%s" % (" ".join(option), before),
                 done.stdout == want + "\n", done)
        # ld.so leaves out a program, with a message: a sanitized rocade-run may have no library before its own.
        done = daemon.run(RUN, "--library", FLOW, *show[2:], LD_PRELOAD=FLOW)
        case("rocade-run preloads the library once", done.stdout.startswith(FLOW + " "), done)
        daemon.end()
        case("--start-local waits 10 s for a daemon that does not listen", waits.wait() == 1 and
             "silent does not listen after 10 s" in waits.errors, waits.errors)
        local = [RUN, "--daemon", ROCADED, "--start-local", "--library", LIBC]
        done = daemon.run(*local, "true")
        case("--start-local runs a daemon for the program", done.returncode == 0, done)
        done = daemon.run(*local, "sh", "-c", "echo $ROCADE_SOCKET; kill -9 $$")
        case("--start-local: a signal of the program is 128 + its number",
             done.returncode == 137, done)
        case("--start-local: the daemon ends with the program", done.stdout.strip() and
             not os.path.exists(os.path.dirname(done.stdout.strip())), done)
        launcher = daemon.begin(*local, "sh", "-c", "echo; exec sleep 1000")
        launcher.wait_line()
        launcher.send_signal(signal.SIGTERM)
        case("--start-local passes SIGTERM on to the program",
             launcher.wait() == 128 + signal.SIGTERM)
        done = daemon.run(*local, "--device", "other", "true")
        case("--start-local checks the device", done.returncode == 1 and "'other'" in done.stderr,
             done)
        if PRELOAD:
            done = daemon.run(RUN, "--start-local", "sh", "-c", "exit 5")
            case("rocade-run finds its library and its daemon", done.returncode == 5, done)


def telemetry():
    """A daemon with a port: EAL, and DPDK's telemetry."""
    run_dir = tempfile.mkdtemp(prefix="rocade-run-")
    prefix = "rocade-test-%d" % os.getpid()
    eal = ["--no-huge", "--no-pci", "-m", "64", "--file-prefix", prefix, "--vdev", "net_null0",
           "--lcores", "0"]
    with Daemon("--config", "CONFIG",
                env={"XDG_RUNTIME_DIR": run_dir, "RUNTIME_DIRECTORY": run_dir}) as daemon:
        daemon.configure("[eal]\nno-huge =\nno-pci =\nm = 64\nfile-prefix = %s\nvdev = net_null0\n"
                         "lcores = 0\n[port]\nport = 0\naddress = 192.0.2.1/24\nmtu = 4184\n" % prefix)
        line = daemon.start()
        case("rocaded serves a port", "listening at" in line, line)
        wrong = not_confined(daemon.process.pid)
        threads = len(os.listdir("/proc/%d/task" % daemon.process.pid))
        case("rocaded with a port is confined, with EAL's threads", not wrong and threads > 1, wrong)
        flow = daemon.flow()
        where = ["%s/dpdk/%s/dpdk_telemetry.v2" % (d, prefix) for d in (run_dir, "/var/run", "/tmp")]
        where = [path for path in where if os.path.exists(path)]
        case("DPDK's telemetry listens", where, run_dir)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as talk:
            talk.connect(where[0])

            def heard():
                return json.loads(received(talk, 1 << 16))
            heard()

            def ask(command):
                talk.send(command.encode())
                return heard()[command.split(",")[0]]
            device = ask("/rocade/devices")["rocade0"]
            case("telemetry: the device", device["local"] == 0 and device["mtu"] == 4184, device)
            ids = ask("/rocade/clients")
            case("telemetry: the clients", len(ids) == 1, ids)
            client = ask("/rocade/client,%d" % ids[0])
            case("telemetry: a client", client["pid"] == flow.pid and
                 client["srq_count"] == 1, client)
            srqs = ask("/rocade/srqs,%d" % ids[0])
            case("telemetry: its SRQs", len(srqs) == 1, srqs)
            qps = ask("/rocade/qps,%d,0" % ids[0])
            case("telemetry: its QPs", len(qps) == 1 and [
                q["state"] for q in qps.values()] == ["RTS"], qps)
            peers = ask("/rocade/peers,%d" % ids[0])
            case("telemetry: its peers", list(peers) == ["0"] and
                 peers["0"]["qps"] == 1 and peers["0"]["cc"] == 0 and
                 peers["0"]["send"]["window"] == peers["0"]["cap"] > 0, peers)
            case("telemetry: no client of this id", not ask("/rocade/qps,77777") and
                 not ask("/rocade/client") and not ask("/rocade/peers"))
        text = daemon.run(STATUS).stdout
        case("rocade-status shows the port", "port: link " in text, text)
        flow.finish()
        case("SIGTERM ends rocaded with 0", daemon.end() == 0)
    for args, said in ((["--port", "net_none0"], "--port: invalid value 'net_none0'"),
                       (["--port", "0", "--socket", "/nonexistent/x/y"], "socket: /nonexistent")):
        done = daemon.run(ROCADED, *eal, "--no-telemetry", "--", *args, "--address",
                          "192.0.2.1/24")
        case("rocaded %s: 1" % " ".join(args[:2]), done.returncode == 1 and said in done.stderr,
             done)
    for args, said in ((["--nonsense-of-eal"], "cannot start EAL"),
                       (["-v"] * 65, "more than 64 EAL arguments")):
        done = daemon.run(ROCADED, *args, "--", "--port", "0", "--address", "192.0.2.1/24")
        case("rocaded: EAL does not start with %s: 1" % args[0], done.returncode == 1 and
             said in done.stderr, done)
    shutil.rmtree(run_dir)


if __name__ == "__main__":
    sys.exit(run(reload, other_user, modes, status, limits, limits_of_process, strangers, launch, telemetry))
