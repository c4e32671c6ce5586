#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocaded as a service: what it tells its service manager, and a socket that the manager makes.

    service_test.py ROCADED STATUS"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROCADED, STATUS = [os.path.abspath(a) for a in sys.argv[1:3]]
TIMEOUT_S = 60
WATCHDOG_US = 400000
cases = []


def case(name, good, why=""):
    cases.append(bool(good))
    print("%sok %d - %s" % ("" if good else "not ", len(cases), name), flush=True)
    if not good:
        print("\n".join("# " + line for line in str(why).splitlines()), flush=True)


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
        self.notify.settimeout(TIMEOUT_S)
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
        self.process = subprocess.Popen(
            ["sh", "-c", script, "sh", ROCADED, "--config", self.config],
            env=dict(self.env, **env), stderr=subprocess.PIPE, text=True, pass_fds=fds)

    def heard(self, timeout_s=TIMEOUT_S):
        """Returns the next message, or None."""
        self.notify.settimeout(timeout_s)
        try:
            return self.notify.recv(4096).decode()
        except TimeoutError:
            return None

    def next_but(self, word):
        """Returns the next message that is not `word`."""
        text = self.heard()
        while text == word:
            text = self.heard()
        return text

    def forget(self):
        """Reads what has been sent so far."""
        while self.heard(0.01):
            pass

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(TIMEOUT_S)
        self.process.stderr.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.notify.close()
        shutil.rmtree(self.dir)


def states():
    for abstract in (False, True):
        with Manager(abstract) as manager:
            manager.start()
            where = "an abstract address" if abstract else "a path"
            case("rocaded says by %s that it is ready" % where, manager.heard() == "READY=1")
            case("when it is ready, it answers", subprocess.run(
                [STATUS], env=manager.env, stdout=subprocess.DEVNULL, check=False,
                timeout=TIMEOUT_S).returncode == 0)
            manager.process.send_signal(signal.SIGHUP)
            said = [manager.heard(), manager.heard()]
            case("it says that it reads its settings again", said == ["RELOADING=1", "READY=1"],
                 said)
            case("without WATCHDOG_USEC it sends no keep-alive messages", manager.heard(0.5) is None)
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
        manager.process.send_signal(signal.SIGSTOP)
        manager.forget()
        case("a daemon that does not run sends none", manager.heard(3 * WATCHDOG_US / 1e6) is None)
        manager.process.send_signal(signal.SIGCONT)
        case("it goes on sending them", manager.heard() == "WATCHDOG=1")
        manager.end()
        case("it ends as always", manager.next_but("WATCHDOG=1") == "STOPPING=1")
    for name, env in (("of another process", {"WATCHDOG_PID": "1"}),
                      ("that is no number", {"WATCHDOG_USEC": "often"})):
        with Manager() as manager:
            manager.start(**dict({"WATCHDOG_USEC": "100000"}, **env))
            manager.heard()
            case("a watchdog %s is ignored" % name, manager.heard(0.5) is None)
            manager.end()
    for name, path in (("an address of another family", "vsock:2:1234"),
                       ("a path without a listener", "/nonexistent/notify"),
                       ("a path that is too long", "/" + "n" * 200)):
        with Manager() as manager:
            manager.start(NOTIFY_SOCKET=path)
            line = manager.process.stderr.readline()
            case("NOTIFY_SOCKET with %s is ignored" % name, "listening at" in line, line)
            manager.end()


def passed(kind=socket.SOCK_SEQPACKET, backlog=8, **more):
    """Starts rocaded with a socket. Yields the manager and the first line of the log."""
    with Manager() as manager, socket.socket(socket.AF_UNIX, kind) as listener:
        listener.bind(manager.path)
        if backlog:
            listener.listen(backlog)
        manager.start(listener, **more)
        yield manager, manager.process.stderr.readline()


def activation():
    for manager, line in passed():
        case("rocaded serves a socket that it is passed", "listening at " + manager.path in line,
             line)
        case("and is ready", manager.heard() == "READY=1")
        done = subprocess.run([STATUS], env=manager.env, stdout=subprocess.PIPE, check=False,
                              timeout=TIMEOUT_S, text=True)
        case("a client attaches to it", done.returncode == 0 and manager.path in done.stdout, done)
        case("SIGTERM ends rocaded with 0", manager.end() == 0)
        case("the socket stays", os.path.exists(manager.path))
    for name, said, more in (
            ("that does not listen", "no listening AF_UNIX socket", {"backlog": 0}),
            ("of another type", "no listening AF_UNIX socket", {"kind": socket.SOCK_STREAM}),
            ("that is one of two", "several sockets: expected one", {"count": 2})):
        for manager, line in passed(**more):
            case("a socket %s is refused" % name, said in line and
                 manager.process.wait(TIMEOUT_S) == 1, line)
            manager.process.stderr.close()
    for manager, line in passed(pid="1", backlog=0):
        case("a socket for another process is ignored", "Address already in use" not in line and
             "listening at" in line, line)
        manager.end()


def main():
    states()
    watchdog()
    activation()
    print("1..%d" % len(cases))
    return 0 if all(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
