#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-perf PERF: the exit codes and messages of ends that do not connect. The ports are of
net_null: no packet arrives."""

import os
import socket
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../e2e/lib"))
from limit import readable  # noqa: E402
from process import Process  # noqa: E402
from tap import case, run  # noqa: E402

PERF = sys.argv[1]
EAL = ["--no-huge", "-m", "64", "--no-pci", "--no-shconf", "--no-telemetry", "--lcores",
       "0@%d" % min(os.sched_getaffinity(0)), "--vdev", "net_null0", "--"]
RUN, USAGE, ENVIRONMENT = 1, 2, 3
LOST = "the peer disconnected before it was ready"


def start(path, *options):
    return Process([PERF, *EAL, "--socket", path, *options], apart=True)


def end(process):
    """Returns the exit code, and the last line of what the program has printed."""
    status, _ = process.finish()
    return status, (process.errors.splitlines() or [""])[-1]


def both(name, server, client, want_server, want_client):
    """Starts both ends. want: the code, and a part of the message."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "link")
        ends = start(path, "--server", *server), start(path, *client)
        got = [end(process) for process in ends]
        case(name, all(code == want[0] and want[1] in text for (code, text), want in zip(
            got, (want_server, want_client))), got)


def alone(name, *client):
    """The server ends before it is ready."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(
            socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        path = os.path.join(folder, "link")
        server.bind(path)
        server.listen(1)
        process = start(path, *client)
        if readable(server):
            with server.accept()[0] as peer:
                if readable(peer):
                    peer.recv(65536)
        got = end(process)
        case(name, got[0] == RUN and LOST in got[1], got)


def ends():
    alone("a server that ends early")
    alone("a server of raw frames that ends early", "--mode", "raw-pingpong", "--size", "64")
    both("an invalid --addr of the server", ["--addr", "192.0.2"], [], (USAGE, "192.0.2"),
         (RUN, LOST))
    both("an invalid --addr of the client", [], ["--addr", "192.0.2"], (RUN, LOST),
         (USAGE, "192.0.2"))
    both("an invalid --peer", [], ["--peer", "192.0.2"], (RUN, LOST), (USAGE, "--peer"))
    both("a --peer of another family", [], ["--peer", "2001:db8::1"], (RUN, LOST),
         (USAGE, "--addr"))
    both("an invalid --cc", [], ["--cc", "swift,target=x"], (RUN, LOST), (USAGE, "swift,target=x"))
    both("a port that does not exist", ["--port", "7"], [], (ENVIRONMENT, "port 7"), (RUN, LOST))
    both("a device that does not exist", ["--device", "nosuch"], ["--device", "nosuch"],
         (ENVIRONMENT, "'nosuch'"), (RUN, LOST))


if __name__ == "__main__":
    sys.exit(run(ends))
