# SPDX-License-Identifier: BSD-3-Clause
"""Runs rocaded and the programs that are its clients."""

import errno
import json
import os
import re
import shutil
import signal
import socket
import struct
import tempfile
from collections import namedtuple

import process
from limit import received
from process import LIMIT_S, Process, WaitFailed, until

BUILD = os.environ.get("ROCADE_BUILD", "build")
# The run-time library of the sanitizers must be the first that a program loads, which excludes a
# sanitized preload. So only the daemon is of the sanitize build; its clients are of the release
# build beside it.
RELEASE = os.path.join(os.path.dirname(os.path.abspath(BUILD)), "release")


def is_sanitized(build):
    """Whether the programs of a build directory have sanitizers. A folder that is no build
    directory of meson has none."""
    options = os.path.join(build, "meson-info/intro-buildoptions.json")
    if not os.path.exists(options):
        return False
    with open(options, encoding="utf-8") as file:
        return next(option["value"] for option in json.load(file) if option["name"] == "b_sanitize") not in ("none", [])


SANITIZED = is_sanitized(BUILD)
CLIENTS = RELEASE if SANITIZED and os.path.isdir(RELEASE) else os.path.abspath(BUILD)
STATUS_PROGRAM = os.path.join(BUILD, "app/status/rocade-status")
MAGIC = 0x726f6361
# version: of the protocol between the daemon and its clients.
Programs = namedtuple("Programs", "rocaded run library version")


def programs(source, build, clients=None):
    """The programs of a build directory and of its source tree."""
    clients = clients or build
    with open(os.path.join(source, "lib/switch/proto.h"), encoding="utf-8") as header:
        version = int(re.search(r"^#define SW_PROTO_VERSION (\d+)$", header.read(), re.M)[1])
    return Programs(os.path.join(build, "app/rocaded/rocaded"),
                    os.path.join(clients, "app/run/rocade-run"),
                    os.path.join(clients, "drivers/librocade-verbs.so"), version)


OURS = programs(os.path.join(os.path.dirname(__file__), "../../.."), BUILD, CLIENTS)
ROCADED, RUN, LIBRARY, VERSION = OURS
STATUS = 8
DEVICE, CLIENT, USER = range(3)  # parts of the state


class Daemon:
    """A rocaded with a socket of its own: with --local, or over the port that the EAL options name.
    The daemon and its programs run in the same network namespace. folder: of the socket. through:
    words of a command that executes rocaded. build: the Programs of daemon and clients."""

    def __init__(self, *options, eal=None, space=None, config=None, folder=None,
                 through=(), build=OURS):
        self.space, self.build = space, build
        self.inside = ["ip", "netns", "exec", space] if space else []
        self.dir = folder or tempfile.mkdtemp(prefix="rocade-e2e-")
        os.chmod(self.dir, 0o755)
        self.socket = os.path.join(self.dir, "rocade.sock")
        self.env = dict(os.environ, ROCADE_SOCKET=self.socket)
        mode = ["--local"] if eal is None else list(eal) + ["--"]
        if config is not None:
            mode = ["--config", config]
        self.command = [*self.inside, *through, build.rocaded, *mode, "--socket", self.socket,
                        *options]
        self.process = None
        self.first_line = ""
        self.serve()

    def serve(self):
        """Starts the daemon; starts it again after it has ended."""
        if self.process:
            self.process.wait()
        self.process = Process(self.command)
        self.first_line = self.said("listening at")
        wrong = not_confined(self.process.pid)
        if wrong:
            raise self.process.failure("not confined: %s" % wrong)

    def said(self, word):
        """Returns the next line of the log that contains the word."""
        return self.process.wait_line(word)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGTERM)
        status, text = self.process.finish(20)
        shutil.rmtree(self.dir, ignore_errors=True)
        if status == -signal.SIGSYS:
            text = "The filter of system calls has killed the daemon.\n" + text
        if status in (None, -signal.SIGSYS) and kind is None:
            raise WaitFailed(text)

    def start(self, *program, **more):
        """Starts a program as a client of the daemon."""
        return Process(self._client(program), env=self.env, **more)

    def run(self, *program, timeout_s=30):
        """Runs a program as a client of the daemon to its end."""
        return process.run(self._client(program), timeout_s, env=self.env)

    def _client(self, program):
        return [*self.inside, self.build.run, "--library", self.build.library, *program]

    def pair(self, *program, timeout_s=60, port=18515, listen_s=10):
        """Runs a server and a client. Returns both exit statuses, None after a timeout, and their
        output."""
        server = self.start(*program)
        wait_for_port(port, server, listen_s)
        return both(server, self.start(*program, "127.0.0.1"), timeout_s)

    def wait_listener(self, server, counter="listeners"):
        """Waits until the server listens by RDMA-CM, which a counter of the daemon shows, or has
        ended."""
        if not until(lambda: self.status()["rdma_cm"][counter] > 0 or
                     server.poll() is not None):
            raise server.failure("waited %d s for its %s" % (LIMIT_S, counter))

    def status(self):
        """Asks the daemon for its status, as rocade-status does."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(self.socket)
            state = json.loads("{%s}" % self._part(s, DEVICE, 0)[1])
            for name, kind in (("users", USER), ("clients", CLIENT)):
                state[name] = []
                row, text = self._part(s, kind, 0)
                while text is not None:
                    state[name] += json.loads("[%s]" % text)
                    row, text = self._part(s, kind, row + 1)
            return state

    @staticmethod
    def _part(s, kind, first):
        """Returns the id of the last row of a part of the state, and its text; None: there is none."""
        s.send(struct.pack("<6I32x", MAGIC, VERSION, STATUS, kind, first, 0))
        reply = received(s, 65536)
        error, row, size = struct.unpack_from("<3I", reply, 12)
        assert error in (0, errno.ENOENT) and len(reply) == 24 + size, (error, size, len(reply))
        return row, reply[24:].decode() if error == 0 else None

    def idle(self):
        """Whether the daemon keeps nothing of the clients that have ended."""
        state = self.status()
        return not state["clients"] and state["rdma_cm"]["ids"] == 0

    def moved(self):
        """Returns the bytes of RoCE packets that clients have received from each other so far, through
        the daemon and by their pairs."""
        status = self.status()
        return sum(c["rx_bytes"] + c["pair_bytes"] for c in [status["departed"], *status["clients"]])


def not_confined(pid):
    """Returns what the kernel says of each thread that has a capability, could get one, or has no
    filter of system calls."""
    want = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapAmb"), "0" * 16)
    want.update(NoNewPrivs="1", Seccomp="2")
    wrong = {}
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, thread), encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file.read().splitlines())
        has = {name: fields[name].strip() for name in want}
        if has != want:
            wrong[fields["Name"].strip()] = has
    return wrong


def as_user(uid, capability=None):
    """Returns words of a command that executes a program as this user, who may read all files: the
    folders of the build may be closed to others. capability: a further one that it keeps."""
    kept = "+dac_read_search" + (",+" + capability if capability else "")
    return ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups",
            "--inh-caps=" + kept, "--ambient-caps=" + kept]


RPING_CLOSED = "rdma_get_cm_event: Bad file descriptor"
RPING_LAST = {RPING_CLOSED, "server DISCONNECT EVENT...", "client DISCONNECT EVENT...",
              "wait for RDMA_READ_ADV state 10"}


def rping_status(status, text):
    """Returns the exit status of a program that printed the text. rping of rdma-core before 60
    sometimes exits with 255 after a run that succeeded: its event thread reads the event channel
    that its main thread has just closed (mended by rdma-core commit f3ae6534a, "rping: terminate CM
    event thread before exiting"). That counts as 0 if rping printed nothing else than at the end of
    each run."""
    lines = set(text.splitlines())
    return 0 if status == 255 and RPING_CLOSED in lines and lines <= RPING_LAST else status


def both(server, client, timeout_s):
    """Waits for the end of both. Returns their exit statuses, None after a timeout, and their
    output."""
    status, said = client.finish(timeout_s)
    served, text = server.finish(timeout_s)
    return rping_status(served, text), rping_status(status, said), text + said


def listens(pid, want):
    for name in ("/proc/%d/net/tcp" % pid, "/proc/%d/net/tcp6" % pid):
        with open(name, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                if fields[1].endswith(want) and fields[3] == "0A":
                    return True
    return False


def wait_for_port(port, server, timeout_s, space=None):
    """Waits until the server listens at the TCP port, in the given network namespace, or has
    ended. It does not connect: the server would take the connection for its peer's."""
    there = os.stat("/run/netns/" + space if space else "/proc/self/ns/net").st_ino
    want = ":%04X" % port

    def ready():
        try:
            return os.stat("/proc/%d/ns/net" % server.pid).st_ino == there and listens(
                server.pid, want)
        except OSError:
            return server.poll() is not None

    if not until(ready, timeout_s):
        raise server.failure("waited %d s for a listener at TCP port %d" % (timeout_s, port))
