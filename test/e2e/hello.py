#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The examples hello_server and hello_client (app/examples), two processes over `rocaded --local`:
the text arrives in the server's memory, the reply at the client, byte for byte, and the daemon's
counters say that Rocade carried both."""

import os
import random
import string
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, Daemon  # noqa: E402
from process import until  # noqa: E402
from tap import case, run  # noqa: E402

SERVER = os.path.join(CLIENTS, "app/examples/hello_server")
CLIENT = os.path.join(CLIENTS, "app/examples/hello_client")
SOURCE = os.environ.get("ROCADE_SOURCE", ".")
ADDRESS = "192.0.2.1"
LONGEST = 8192  # HELLO_BYTES
LETTERS = string.ascii_letters + string.digits + " .,:;!?"


def text_of(length):
    return "".join(random.Random(length).choices(LETTERS, k=length))


def serve(daemon, *arguments):
    """A server that listens; it may have ended instead, which its cases show."""
    server = daemon.start(SERVER, *arguments)
    daemon.wait_listener(server)
    return server


def exchange(daemon, text, port):
    before = daemon.moved()
    server = serve(daemon, *port)
    client = daemon.run(CLIENT, ADDRESS, text, *port)
    status, received = server.finish()
    why = "server %s: %s\nclient %s: %s" % (status, received, client.returncode,
                                            client.stdout + client.stderr)
    name = "%d bytes%s" % (len(text), ", port " + port[0] if port else "")
    case(name + " in the server's memory", status == 0 and
         received == "received: %s\n" % text, why)
    case(name + " in the reply", client.returncode == 0 and
         client.stdout == "reply: %s\n" % text.upper(), why)
    case(name + " over Rocade", until(daemon.idle) and
         daemon.moved() - before >= 2 * len(text), "%d bytes" % (daemon.moved() - before))


def exchanges():
    with Daemon() as daemon:
        for length in 1, 13, 1024, 4096, 4097, LONGEST:
            exchange(daemon, text_of(length), ())
        exchange(daemon, text_of(100), ("7500",))
        exchange(daemon, "", ())


def refused():
    with Daemon() as daemon:
        done = daemon.run(CLIENT, ADDRESS, "text")
        case("without a server", done.returncode == 1 and "rdma_connect" in done.stderr,
             done.stdout + done.stderr)
        done = daemon.run(CLIENT, "203.0.113.9", "text")
        case("without a route", done.returncode == 1 and "rdma_create_ep" in done.stderr,
             done.stdout + done.stderr)
        done = daemon.run(CLIENT, ADDRESS, text_of(LONGEST + 1))
        case("a text that is too long", done.returncode == 1 and str(LONGEST) in done.stderr,
             done.stdout + done.stderr)
        first = serve(daemon)
        second = daemon.run(SERVER)
        case("a port that has a listener", second.returncode == 1 and second.stderr != "",
             second.stdout + second.stderr)
        first.kill()
    for program in SERVER, CLIENT:
        done = process.run([program, "a", "b", "c", "d"])
        case(os.path.basename(program) + " says how it is used",
             done.returncode == 2 and "usage" in done.stderr, done.stderr)


def built_by_hand():
    """Builds the examples with the command in the comment of hello_server.c."""
    with Daemon() as daemon:
        folder = os.path.join(SOURCE, "app/examples")
        with open(os.path.join(folder, "hello_server.c"), encoding="utf-8") as file:
            commands = [line.split()[1:] for line in file if line.startswith(" *   cc ")]
        for command in commands:
            name = command[command.index("-o") + 1]
            command[command.index("-o") + 1] = os.path.join(daemon.dir, name)
            done = process.run(command + ["-Wall", "-Wextra", "-Werror"], cwd=folder)
            case(name + " is built by hand", done.returncode == 0, done.stderr)
        case("both commands are there", len(commands) == 2, str(commands))


if __name__ == "__main__":
    sys.exit(run(exchanges, refused, built_by_hand))
