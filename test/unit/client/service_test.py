#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocaded as a service: what it tells its service manager, and a socket that the manager makes.

    service_test.py ROCADED STATUS"""

import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../e2e/lib"))
import process  # noqa: E402
from limit import let_run, readable  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run  # noqa: E402

ROCADED, STATUS = [os.path.abspath(a) for a in sys.argv[1:3]]
WATCHDOG_US = 400000


class Manager:
    """A service manager with one service: rocaded --local."""

    def __init__(self, abstract=False):
        self.dir = tempfile.mkdtemp(prefix="rocade-test-")
        self.config = os.path.join(self.dir, "conf")
        with open(self.config, "w", encoding="ascii") as file:
            file.write("[daemon]\nlocal = yes\n")
        self.path = os.path.join(self.dir, "socket")
        self.env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "ROCADE_SOCKET": self.path}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        address = "\0rocade-test-%d" % os.getpid() if abstract else self.dir + "/notify"
        self.notify.bind(address)
        self.env["NOTIFY_SOCKET"] = address.replace("\0", "@")
        self.process = None

    def start(self, listener=None, count=1, pid="$$", **env):
        """listener: is passed on, as descriptor 3."""
        script, fds = 'exec "$@"', []
        if listener:
            fds = [listener.fileno()]
            script = 'export LISTEN_FDS=%d LISTEN_PID=%s; exec "$@" 3<&%d' % (count, pid, *fds)
        self.process = Process(["sh", "-c", script, "sh", ROCADED, "--config", self.config],
                               env=dict(self.env, **env), pass_fds=fds)

    def heard(self):
        """Returns the next message, or None."""
        return self.notify.recv(4096).decode() if readable(self.notify) else None

    def silent(self, seconds):
        """Whether no message comes while the daemon has time for it."""
        let_run(seconds)
        return not select.select([self.notify], [], [], 0)[0]

    def next_but(self, word):
        """Returns the next message that is not `word`."""
        text = self.heard()
        while text == word:
            text = self.heard()
        return text

    def stop(self):
        """Stops the daemon, and reads what it has sent until then."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)
        while not self.silent(0):
            self.heard()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
        self.notify.close()
        shutil.rmtree(self.dir)


def states():
    for abstract in (False, True):
        with Manager(abstract) as manager:
            manager.start()
            where = "an abstract address" if abstract else "a path"
            case("rocaded says by %s that it is ready" % where, manager.heard() == "READY=1")
            done = process.run([STATUS], env=manager.env)
            case("when it is ready, it answers", done.returncode == 0, done)
            manager.process.send_signal(signal.SIGHUP)
            said = [manager.heard(), manager.heard()]
            case("it says that it reads its settings again", said == ["RELOADING=1", "READY=1"],
                 said)
            case("without WATCHDOG_USEC it sends no keep-alive messages", manager.silent(0.5))
            case("SIGTERM ends it with 0", manager.end() == 0)
            case("it says that it ends", manager.heard() == "STOPPING=1")


def watchdog():
    with Manager() as manager:
        began = time.monotonic()
        manager.start(WATCHDOG_USEC=str(WATCHDOG_US))
        case("with WATCHDOG_USEC rocaded is ready, too", manager.heard() == "READY=1")
        said = [manager.heard() for _ in range(5)]
        case("it sends keep-alive messages", said == ["WATCHDOG=1"] * 5, said)
        took = time.monotonic() - began
        case("not more often than twice in WATCHDOG_USEC", took > 5 * WATCHDOG_US / 2e6, took)
        manager.stop()
        case("a daemon that does not run sends none", manager.silent(3 * WATCHDOG_US / 1e6))
        manager.process.send_signal(signal.SIGCONT)
        case("it goes on sending them", manager.heard() == "WATCHDOG=1")
        manager.end()
        case("it ends as always", manager.next_but("WATCHDOG=1") == "STOPPING=1")
    for name, env in (("of another process", {"WATCHDOG_PID": "1"}),
                      ("that is no number", {"WATCHDOG_USEC": "often"})):
        with Manager() as manager:
            manager.start(**dict({"WATCHDOG_USEC": "100000"}, **env))
            manager.heard()
            case("a watchdog %s is ignored" % name, manager.silent(0.5))
            manager.end()
    for name, path in (("an address of another family", "vsock:2:1234"),
                       ("a path without a listener", "/nonexistent/notify"),
                       ("a path that is too long", "/" + "n" * 200)):
        with Manager() as manager:
            manager.start(NOTIFY_SOCKET=path)
            line = manager.process.wait_line()
            case("NOTIFY_SOCKET with %s is ignored" % name, "listening at" in line, line)
            manager.end()


def passed(kind=socket.SOCK_SEQPACKET, backlog=8, **more):
    """Starts rocaded with a socket. Yields the manager and the first line of the log."""
    with Manager() as manager, socket.socket(socket.AF_UNIX, kind) as listener:
        listener.bind(manager.path)
        if backlog:
            listener.listen(backlog)
        manager.start(listener, **more)
        yield manager, manager.process.wait_line()


def activation():
    for manager, line in passed():
        case("rocaded serves a socket that it is passed", "listening at " + manager.path in line,
             line)
        case("and is ready", manager.heard() == "READY=1")
        done = process.run([STATUS], env=manager.env)
        case("a client attaches to it", done.returncode == 0 and manager.path in done.stdout, done)
        case("SIGTERM ends rocaded with 0", manager.end() == 0)
        case("the socket stays", os.path.exists(manager.path))
    for name, said, more in (
            ("that does not listen", "no listening AF_UNIX socket", {"backlog": 0}),
            ("of another type", "no listening AF_UNIX socket", {"kind": socket.SOCK_STREAM}),
            ("that is one of two", "several sockets: expected one", {"count": 2})):
        for manager, line in passed(**more):
            case("a socket %s is refused" % name, said in line and
                 manager.process.wait() == 1, line)
    for manager, line in passed(pid="1", backlog=0):
        case("a socket for another process is ignored", "Address already in use" not in line and
             "listening at" in line, line)
        manager.end()


if __name__ == "__main__":
    sys.exit(run(states, watchdog, activation))
