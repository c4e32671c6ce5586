# SPDX-License-Identifier: BSD-3-Clause
"""Runs rocaded and the programs that are its clients."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

BUILD = os.environ.get("ROCADE_BUILD", "build")
# The run-time library of the sanitizers must be the first that a program loads, which excludes a
# sanitized preload. So only the daemon is of the sanitize build; its clients are of the release
# build beside it.
RELEASE = os.path.join(os.path.dirname(os.path.abspath(BUILD)), "release")
CLIENTS = RELEASE if os.path.basename(BUILD) == "sanitize" and os.path.isdir(RELEASE) else \
    os.path.abspath(BUILD)
ROCADED = os.path.join(BUILD, "app/rocaded/rocaded")
RUN = os.path.join(CLIENTS, "app/run/rocade-run")
STATUS_PROGRAM = os.path.join(BUILD, "app/status/rocade-status")
LIBRARY = os.path.join(CLIENTS, "drivers/librocade-verbs.so")
MAGIC = 0x726f6361
VERSION = 2
STATUS = 8


class Daemon:
    """A rocaded with a socket of its own: with --local, or over the port that the EAL options name.
    The daemon and its programs run in the same network namespace."""

    def __init__(self, *options, user=None, eal=None, space=None, config=None):
        self.space = space
        self.inside = ["ip", "netns", "exec", space] if space else []
        self.dir = tempfile.mkdtemp(prefix="rocade-e2e-")
        os.chmod(self.dir, 0o755 if user is None else 0o777)
        self.socket = os.path.join(self.dir, "rocade.sock")
        self.env = dict(os.environ, ROCADE_SOCKET=self.socket)
        mode = ["--local"] if eal is None else list(eal) + ["--"]
        if config is not None:
            mode = ["--config", config]
        self.command = self.inside + [ROCADED] + mode + ["--socket", self.socket] + list(options)
        self.user = user
        self.process = None
        self.first_line = ""
        self.serve()

    def serve(self):
        """Starts the daemon; starts it again after it has ended."""
        if self.process:
            self.process.wait()
            self.process.stderr.close()
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True,
                                        user=self.user)
        self.first_line = self.said("listening at")

    def said(self, word):
        """Returns the next line of the log that contains the word; the last line if none does."""
        line = ""
        for line in self.process.stderr:
            if word in line:
                break
        return line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stderr.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self, *program, **more):
        return subprocess.Popen(self.inside + [RUN, "--library", LIBRARY] + list(program),
                                env=self.env,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                **more)

    def run(self, *program, timeout_s=30, **more):
        return subprocess.run(self.inside + [RUN, "--library", LIBRARY] + list(program),
                              env=self.env, capture_output=True, text=True, check=False,
                              timeout=timeout_s, **more)

    def pair(self, *program, timeout_s=60, port=18515, listen_s=10):
        """Runs a server and a client. Returns both exit statuses, None after a timeout, and their
        output."""
        server = self.start(*program)
        wait_for_port(port, server, listen_s)
        try:
            client = self.run(*program, "127.0.0.1", timeout_s=timeout_s)
            text, _ = server.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            server.kill()
            text, _ = server.communicate()
            return None, None, text
        return server.returncode, client.returncode, text + client.stdout + client.stderr

    def status(self):
        """Asks the daemon for its status, as rocade-status does."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(60)
            s.connect(self.socket)
            s.send(struct.pack("<6I32x", MAGIC, VERSION, STATUS, 0, 0, 0))
            _, fds, _, _ = socket.recv_fds(s, 4096, 4)
            with os.fdopen(fds[0]) as file:
                return json.load(file)

    def moved(self):
        """Returns the bytes of RoCE packets that the daemon has forwarded so far."""
        status = self.status()
        return status["departed"]["rx_bytes"] + sum(c["rx_bytes"] for c in status["clients"])

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid, encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def listens(process, want):
    for name in ("/proc/%d/net/tcp" % process.pid, "/proc/%d/net/tcp6" % process.pid):
        with open(name, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                if fields[1].endswith(want) and fields[3] == "0A":
                    return True
    return False


def wait_for_port(port, process, timeout_s, space=None):
    """Waits until the process listens at the TCP port, in the given network namespace. It does not
    connect: the process would take the connection for its peer's."""
    there = os.stat("/run/netns/" + space if space else "/proc/self/ns/net").st_ino
    want = ":%04X" % port
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and process.poll() is None:
        try:
            if os.stat("/proc/%d/ns/net" % process.pid).st_ino == there and listens(process, want):
                return True
        except OSError:
            return False  # the process has ended
        time.sleep(0.02)
    return False
