# SPDX-License-Identifier: BSD-3-Clause
"""Runs one sample of a measurement as a pair of processes on two cores. Each function returns the
numbers of the sample as a dictionary, or raises Failed."""

import json
import os
import re
import subprocess
import time

import wires
from states import EVERY_MS, LineProbe
from wires import Failed

CORES = (0, 1)  # client (sender), server (receiver)
DAEMON_CORES = "0,1"  # the scheduler chooses


class Bench:
    """build, scratch: directories. The names of sockets and logs have the number of the run."""

    def __init__(self, build, scratch, cycles=None):
        self.cycles_program = cycles and os.path.join(cycles, "app", "perf", "rocade-perf")
        self.perf_program = os.path.join(build, "app", "perf", "rocade-perf")
        self.testpmd_program = os.path.join(build, "app", "testpmd", "rocade-testpmd")
        self.daemon_program = os.path.join(build, "app", "rocaded", "rocaded")
        self.pairs_program = os.path.join(build, "app", "perf", "rocade-pairs")
        self.run_program = os.path.join(build, "app", "run", "rocade-run")
        self.copy_program = os.path.join(build, "tools", "bench", "copy_pass")
        self.scratch = scratch
        self.line_program = os.path.join(build, "app", "perf", "rocade-line")
        self.megabytes = 768
        self.number = 0
        self.window = (0, 0)  # when the last sample was measured, by the monotonic clock

    def path(self, name):
        return os.path.join(self.scratch, "%04d-%s" % (self.number, name))

    def start(self, name, command, **more):
        with open(self.path(name + ".log"), "w", encoding="utf-8") as log:
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                    stdin=more.pop("stdin", subprocess.DEVNULL),
                                    close_fds=False, **more)  # the lock of tools/bench.sh

    def log(self, name):
        try:
            with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as log:
                return log.read()
        except OSError:
            return ""

    def why(self, name):
        lines = [line for line in self.log(name).splitlines()
                 if line.strip() and not line.startswith("EAL:")]
        return lines[-1] if lines else "it printed nothing"

    def memif(self, role, zero_copy=False, number=0):
        return ("net_memif%d,role=%s,id=0,socket=%s,socket-abstract=no,bsize=8192,rsize=11%s"
                % (number, role, self.path("memif"), ",zero-copy=yes" if zero_copy else ""))

    def eal(self, role, lcores, megabytes, zero_copy=False, wire="memif"):
        """memif offers zero copy to its client only: the server maps the client's memory."""
        zero_copy = zero_copy and role == "client"
        device = self.memif(role, zero_copy) if wire == "memif" else wires.device(wire, role)
        return ["--lcores", lcores, "-m", str(megabytes), "--no-pci", "--no-telemetry",
                "--in-memory", "--log-level", "pmd.*:error", "--vdev", device
                ] + ["--single-file-segments"] * zero_copy

    def line_probe(self):
        """The cache-line probe between the two measured cores; it runs until it is stopped."""
        return LineProbe([self.line_program, "--every-ms", str(EVERY_MS), *map(str, CORES)],
                         os.path.join(self.scratch, "line"))

    def measured(self, seconds, until):
        self.window = (until - seconds, until)

    def await_path(self, path, process, name):
        end = time.monotonic() + 20
        while not os.path.exists(path):
            if process.poll() is not None or time.monotonic() > end:
                raise Failed("%s does not start: %s" % (name, self.why(name)))
            time.sleep(0.02)

    # ---- Rocade, and raw frames, by rocade-perf ----

    def perf(self, mode, seconds, **options):
        """Two processes, one port each."""
        self.number += 1
        zero_copy = options.pop("zero_copy", False)

        def command(core, role):
            # A process that sleeps runs its engine on a second lcore of the same core.
            lcores = "0@{0},1@{0}" if options.get("events") else "0@{0}"
            return [self.perf_program] + self.eal(role, lcores.format(core), self.megabytes,
                                                  zero_copy)
        return self.perf_pair(command, mode, seconds, options)

    def cycles(self, mode, options):
        """{end: {stage: cycles a packet, call: cycles a message}}, from the build with -Dcycles."""
        plain, self.perf_program = self.perf_program, self.cycles_program
        try:
            self.perf(mode, 1, **options)
        finally:
            self.perf_program = plain
        return {end: {stage: float(cycles) for stage, cycles in re.findall(
            r"^%s: (\w+): ([\d.]+) cycles a (?:packet|message)" % end, self.log(end), re.M)}
                for end in ("client", "server")}

    def perf_daemon(self, mode, seconds, **options):
        """Two clients of the daemon: they have no port and no hugepages."""
        self.number += 1
        where = self.path("daemon.sock")
        daemon = self.start("daemon", ["taskset", "-c", DAEMON_CORES, self.daemon_program,
                                       "--local", "--socket", where])

        def command(core, _role):
            return ["taskset", "-c", str(core), self.run_program, "--socket", where,
                    self.perf_program, "--lcores", "0@%d" % core, "--no-huge", "-m", "64",
                    "--no-pci", "--no-telemetry", "--no-shconf"]
        try:
            self.await_path(where, daemon, "daemon")
            return self.perf_pair(command, mode, seconds, dict(options, device="rocade0"))
        finally:
            stop(daemon)

    def perf_pair(self, command, mode, seconds, options, peers=None):
        """peers: of each end the address of the other one, unless that is the program's default."""
        link, out = self.path("link"), self.path("json")
        own = ["--device", options["device"]] if "device" in options else []
        more = {role: ["--peer", peers[role]] if peers else [] for role in ("client", "server")}
        arguments = []
        # The warm-up of a short window is short, too.
        for name, value in {"warmup_ms": min(500, 200 * seconds), **options}.items():
            arguments.append("--" + name.replace("_", "-"))
            if value is not True:
                arguments.append(str(value))
        server = self.start("server", command(CORES[1], "server") + [
            "--", "--socket", link, "--server"] + own + more["server"])
        try:
            self.await_path(link, server, "server")
            client = self.start("client", command(CORES[0], "client") + [
                "--", "--socket", link, "--mode", mode, "--seconds", str(seconds),
                "--json", out] + arguments + more["client"])
            try:
                client.wait(seconds + 60)
                server.wait(20)
            except subprocess.TimeoutExpired as error:
                raise Failed("rocade-perf --mode %s: the %s did not end; client: %s; server: %s"
                             % (mode, "client" if client.poll() is None else "server",
                                self.why("client"), self.why("server"))) from error
            finally:
                stop(client)
        finally:
            stop(server)
        if client.returncode != 0 or server.returncode != 0:
            raise Failed("rocade-perf --mode %s: client: status %d, %s; server: status %d, %s" % (
                mode, client.returncode, self.why("client"), server.returncode,
                self.why("server")))
        return self.result(out, seconds)

    def pairs(self, seconds, pairs, **options):
        """One process with both ports. A thread on each core runs a pair of engines; with posters, threads
        on the first core post, and lcores on the last ones run the engines."""
        self.number += 1
        out = self.path("json")
        posters = options.get("posters", 0)
        cores = [CORES[0]] * posters + list(CORES[-pairs:] if posters else CORES[:pairs])
        lcores = ",".join("%d@%d" % lane for lane in enumerate(cores))
        command = [self.pairs_program] + self.eal("server", lcores, self.megabytes) + [
            "--vdev", self.memif("client", number=1), "--", "--pairs", str(pairs),
            "--seconds", str(seconds), "--warmup-ms", str(min(500, 200 * seconds)),
            "--json", out]
        for name, value in options.items():
            command += ["--" + name] + [str(value)] * (value is not True)
        process = self.start("pairs", command)
        try:
            process.wait(seconds + 60)
        except subprocess.TimeoutExpired as error:
            raise Failed("rocade-pairs did not end: " + self.why("pairs")) from error
        finally:
            stop(process)
        if process.returncode != 0:
            raise Failed("rocade-pairs: status %d, %s" % (process.returncode, self.why("pairs")))
        return self.result(out, seconds)

    def result(self, out, seconds):
        """What the program has written right after the window."""
        with open(out, encoding="utf-8") as file:
            self.measured(seconds, time.monotonic() - time.time() + os.fstat(file.fileno()).st_mtime)
            return json.load(file)

    # ---- A pass over the payload ----

    def copy_pass(self, size, seconds):
        """The time of the slower direction: both ends make a pass for each packet."""
        self.number += 1
        begin = time.monotonic()
        done = subprocess.run(["taskset", "-c", str(CORES[0]), self.copy_program, str(seconds),
                               str(size)], capture_output=True, text=True, timeout=seconds + 60,
                              check=False)
        if done.returncode != 0:
            raise Failed("copy_pass: status %d, %s" % (done.returncode, done.stderr.strip()))
        self.window = (begin, time.monotonic())
        numbers = json.loads(done.stdout)
        return {**numbers, "pass_ns": max(numbers["send_ns"], numbers["receive_ns"])}

    # ---- Ends that sleep: rocade-testpmd ----

    def pingpong_device(self, wire, role):
        """Returns the EAL options of one end. net_vhost and net_virtio_user have receive interrupts,
        net_memif has none."""
        if wire == "memif":
            return ["--vdev", self.memif(role)]
        return ["--single-file-segments", "--vdev", (
            "net_vhost0,iface=%s" if role == "server" else "net_virtio_user0,path=%s") % (
                self.path("vhost"))]

    def pingpong(self, wire, seconds, sleep):
        """Half of a round trip between two rocade-testpmd, whose ends poll, or sleep whenever there
        is nothing to do. The server returns messages until it is stopped."""
        self.number += 1
        out = self.path("json")
        # An end may be without a core for longer than the half second after which RC gives up by default.
        common = ["--mode", "pingpong", "--size", "64", "--timeout", "17"] + ["--sleep"] * sleep
        command = {role: [self.testpmd_program, "--lcores", "0@%d" % core, "-m",
                          str(self.megabytes), "--no-pci", "--no-telemetry", "--in-memory",
                          "--log-level", "pmd.*:error", *self.pingpong_device(wire, role), "--",
                          *common]
                   for core, role in zip(CORES, ("client", "server"))}
        server = self.start("server", command["server"] + [
            "--addr", "192.0.2.2/24", "--peer", "192.0.2.1"])
        try:
            self.await_line("server", server, "port 0: pingpong")
            client = self.start("client", command["client"] + [
                "--addr", "192.0.2.1/24", "--peer", "192.0.2.2", "--duration", str(seconds),
                "--json", out])
            try:
                client.wait(seconds + 60)
            except subprocess.TimeoutExpired as error:
                raise Failed("rocade-testpmd did not end: " + self.why("client")) from error
            finally:
                stop(client)
        finally:
            stop(server)
        if client.returncode != 0:
            raise Failed("rocade-testpmd: client: status %d, %s; server: %s" % (
                client.returncode, self.why("client"), self.why("server")))
        self.measured(seconds, time.monotonic())
        with open(out, encoding="utf-8") as file:
            got = json.load(file)
        return {"latency_ns": {name: got["lat_%s_ns" % name] for name in ("p50", "p99", "p999")},
                "messages": got["messages"], "size": 64}

    # ---- Ports whose other end is the kernel: rocade-testpmd ----

    def stream(self, wire, op, size, seconds):
        """Messages a second of one QP, without verification: dpdk-testpmd looks at no frame, either."""
        self.number += 1
        out = self.path("json")
        wires.prepare(wire)
        common = ["--op", op, "--size", str(size), "--no-verify", "--signal-every", "64"]
        if wire == "packet":
            common += ["--if-mtu", str(wires.MTU), "--mtu", str(size)]

        def start(role, core, *options):
            process = self.start(role, [self.testpmd_program, *self.eal(
                role, "0@%d" % core, self.megabytes, wire=wire), "--", *common, *options])
            self.await_line(role, process, "port 0: ")
            wires.plug(wire, role)
            return process
        server = start("server", CORES[1], "--mode", "sink", "--addr", "192.0.2.2/24", "--peer",
                       "192.0.2.1")
        client = None
        try:
            client = start("client", CORES[0], "--mode", "send", "--addr", "192.0.2.1/24", "--peer",
                           "192.0.2.2", "--duration", str(seconds), "--json", out)
            client.wait(seconds + 60)
        except subprocess.TimeoutExpired as error:
            raise Failed("rocade-testpmd did not end: " + self.why("client")) from error
        finally:
            for process in filter(None, (client, server)):
                stop(process)
        if client.returncode != 0:
            raise Failed("rocade-testpmd: client: status %d, %s; server: %s" % (
                client.returncode, self.why("client"), self.why("server")))
        self.measured(seconds, time.monotonic())
        with open(out, encoding="utf-8") as file:
            got = json.load(file)
        return {"messages_per_s": got["rate"], "retransmits": got["retransmits"],
                "size": size}

    # ---- The limit: dpdk-testpmd ----

    def testpmd_start(self, side, role, mode, size, zero_copy, wire):
        mbuf = 8320 if size > 2000 or wire == "packet" else 2176  # the latter: as its framesz
        return self.start(
            side, ["stdbuf", "-oL", "dpdk-testpmd"] +
            # Two lcores on one core: the first one only reads commands.
            self.eal(role, "0@{0},1@{0}".format(CORES[role == "server"]), 512, zero_copy, wire) +
            # testpmd ignores --txpkts that exceed the mbuf size known so far: keep this order.
            ["--", "-i", "--forward-mode=" + mode, "--mbuf-size=%d" % mbuf,
             "--total-num-mbufs=16384", "--txpkts=%d" % size],
            stdin=subprocess.PIPE, text=True)

    def testpmd(self, size, seconds, zero_copy=False, wire="memif"):
        """Frames a second from txonly to rxonly."""
        self.number += 1
        wires.prepare(wire)
        receiver = self.testpmd_start("receiver", "server", "rxonly", size, zero_copy, wire)
        sender = None
        try:
            if wire == "memif":
                self.await_path(self.path("memif"), receiver, "receiver")
            self.await_line("receiver", receiver, "testpmd>")
            wires.plug(wire, "server")
            say(receiver, "start")
            sender = self.testpmd_start("sender", "client", "txonly", size, zero_copy, wire)
            self.await_line("sender", sender, "testpmd>")
            wires.plug(wire, "client")
            say(sender, "start")
            time.sleep(0.7)
            say(receiver, "show port stats 0")
            time.sleep(seconds)
            say(receiver, "show port stats 0")
            self.measured(seconds, time.monotonic())
            time.sleep(0.2)
            rates = re.findall(r"Rx-pps: +(\d+) +Rx-bps: +(\d+)", self.log("receiver"))
        except OSError as error:
            raise Failed("dpdk-testpmd: %s; %s" % (self.why("receiver"), error)) from error
        finally:
            # Kill both together: net_memif does not always survive that its peer leaves.
            for process in (sender, receiver):
                if process:
                    process.kill()
                    process.wait()
                    process.stdin.close()
        if len(rates) != 2 or int(rates[1][0]) == 0:
            raise Failed("dpdk-testpmd: no frames arrive: " + self.why("receiver"))
        frames, bytes_per_s = int(rates[1][0]), int(rates[1][1]) // 8
        if round(bytes_per_s / frames) != size:
            raise Failed("dpdk-testpmd: frames of %d bytes, not %d" % (bytes_per_s / frames, size))
        return {"frames_per_s": frames, "bytes_per_s": bytes_per_s, "size": size}

    def await_line(self, name, process, text):
        end = time.monotonic() + 20
        while text not in self.log(name):
            if process.poll() is not None or time.monotonic() > end:
                raise Failed("the %s does not start: %s" % (name, self.why(name)))
            time.sleep(0.02)

    # ---- The alternatives: TCP and UCX over TCP ----

    def pair(self, server_command, client_command, environment=None, seconds=0):
        """Runs both commands, one pinned to each core. Returns what the client prints."""
        self.number += 1
        env = dict(os.environ, **(environment or {}))
        server = self.start("server", ["taskset", "-c", str(CORES[1])] + server_command, env=env)
        try:
            time.sleep(0.5)
            begin = time.monotonic()
            client = self.start("client", ["taskset", "-c", str(CORES[0])] + client_command,
                                env=env)
            try:
                client.wait(seconds + 60)
                self.window = (begin, time.monotonic())
            except subprocess.TimeoutExpired as error:
                raise Failed("%s did not end" % client_command[0]) from error
            finally:
                stop(client)
        finally:
            stop(server)
        if client.returncode != 0:
            raise Failed("%s: %s" % (client_command[0], self.why("client")))
        return self.log("client")

    def tcp_bandwidth(self, seconds, size=1 << 20):
        text = self.pair(["qperf"], ["qperf", "-t", str(seconds), "-m", str(size), "127.0.0.1",
                                     "tcp_bw"], seconds=seconds)
        match = re.search(r"bw += +([\d.]+) (|K|M|G)B/sec", text)
        if not match:
            raise Failed("qperf: " + self.why("client"))
        scale = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[match[2]]
        return {"bytes_per_s": float(match[1]) * scale, "size": size}

    def tcp_latency(self, seconds, asleep=False, size=64):
        """Both ends poll, as Rocade's ends do; with asleep both ends sleep until data arrives."""
        where = ["--tcp", "-i", "127.0.0.1", "-p", "11111"] + ["--nonblocked"] * (not asleep)
        text = self.pair(["sockperf", "sr"] + where,
                         ["sockperf", "pp"] + where + ["-t", str(seconds), "-m", str(size)],
                         seconds=seconds)
        found = dict(re.findall(r"percentile ([\d.]+) = +([\d.]+)", text))
        if "50.000" not in found:
            raise Failed("sockperf: " + self.why("client"))
        return {"latency_ns": {name: float(found[text]) * 1e3 for name, text in (
            ("p25", "25.000"), ("p50", "50.000"), ("p75", "75.000"), ("p90", "90.000"),
            ("p99", "99.000"), ("p999", "99.900")) if text in found}, "size": size}

    def ucx(self, test, size, iterations):
        """UCX over TCP: median latency, mean bandwidth and message rate."""
        port = str(20000 + self.number % 20000)
        common = ["ucx_perftest", "-p", port]
        text = self.pair(common, common + ["127.0.0.1", "-t", test, "-s", str(size), "-n",
                                           str(iterations), "-f", "-v"],
                         {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo",
                          "UCX_WARN_UNUSED_ENV_VARS": "n"})
        rows = [line.split(",") for line in text.splitlines() if re.match(r"^\d+,", line)]
        if not rows or len(rows[-1]) < 8:
            raise Failed("ucx_perftest: " + self.why("client"))
        values = [float(value) for value in rows[-1][1:8]]
        return {"latency_ns": {"p50": values[0] * 1e3}, "bytes_per_s": values[4] * 2**20,
                "messages_per_s": values[6], "size": size}


def say(process, command):
    process.stdin.write(command + "\n")
    process.stdin.flush()


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
