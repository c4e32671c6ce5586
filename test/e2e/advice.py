#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The line that a program of rocade-run prints at its end: after retries that were exceeded, after
calls that were refused with EINVAL or by a queue that stays full, not after a good run, and not when it is turned off."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, LIBRARY, RUN, Daemon, both, wait_for_port  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run  # noqa: E402

LINE = re.compile(r"^rocade: warning: (.*); ROCADE_OFF=advice turns this line off$", re.M)


def advice(text):
    """Returns the lines of advice in the output."""
    return LINE.findall(text)


def refused():
    with Daemon("--mtu", "1500") as daemon:
        # The server is refused first, and the client's end of the TCP connection closes then.
        for words, call, reason in [
                (["ibv_rc_pingpong"], "ibv_modify_qp", "the path has no GRH"),
                (["ib_send_bw", "-F", "-x", "9"], "ibv_modify_qp", "the GID index names an empty"),
                (["ibv_rc_pingpong", "-g", "0", "-m", "4096"], "ibv_modify_qp",
                 "the path MTU is above the port's"),
                (["ibv_ud_pingpong", "-s", "100"], "ibv_create_ah", "the path has no GRH")]:
            served, _, text = daemon.pair(*words)
            said = advice(text)
            case("refused: %s" % " ".join(words), served not in (0, None) and said and all(
                one.startswith("%s returned EINVAL: %s" % (call, reason)) for one in said), text)
        served, status, text = daemon.pair("ibv_rc_pingpong", "-g", "0", "-m", "1024", "-n", "100")
        case("a good run prints no advice", (served, status) == (0, 0) and "rocade:" not in text,
             text)


def full_queue():
    """A queue is full for ever if no request in it is signaled."""
    program = os.path.join(CLIENTS, "test/e2e/full_queue")
    with Daemon() as daemon:
        for kind, advised in [("unsignaled", True), ("signaled", False)]:
            process = daemon.start(program, kind)
            status = process.wait()
            said = advice(process.output())
            case("a queue is full, %s" % kind, status == 0 and len(said) == advised and all(
                one.startswith("ibv_post_send returned ENOMEM: no request in the send queue")
                for one in said), process.output())


def silenced():
    with Daemon() as daemon:
        for name, before, env in [("--no-advice", ["--no-advice"], {}),
                                  ("ROCADE_OFF=advice", [], {"ROCADE_OFF": "advice"}),
                                  ("neither", [], {})]:
            words = [RUN, "--library", LIBRARY, *before, "ibv_rc_pingpong"]
            server = Process(words, env=dict(daemon.env, **env))
            wait_for_port(18515, server, 10)
            client = Process([*words, "127.0.0.1"], env=dict(daemon.env, **env))
            text = both(server, client, 30)[2]
            case("advice with %s" % name, "Failed to modify QP" in text and
                 len(advice(text)) == (name == "neither"), text)
        daemon.env["ROCADE_OFF"] = "pairs,tlp"
        kept = process.run([RUN, "--library", LIBRARY, "--no-advice", "printenv", "ROCADE_OFF"], env=daemon.env)
        case("--no-advice keeps what the user turns off", kept.stdout == "advice,pairs,tlp\n", kept.stdout)
        daemon.env["ROCADE_OFF"] = "pairs,tpl"
        wrong = daemon.run("ibv_devinfo")
        case("a name that does not exist is refused", wrong.returncode != 0 and
             "rocade: ROCADE_OFF: invalid entry 'tpl': expected names of this list" in wrong.stderr,
             wrong.stderr)


def unanswered():
    with Daemon() as daemon:
        # A stopped program that receives directly from its peer is waited for longer otherwise.
        daemon.env["ROCADE_PAIR_WAIT"] = "1"
        server = daemon.start("ib_send_bw", "-x", "0", "-F", "-D", "30", "-u", "10")
        wait_for_port(18515, server, 10)
        client = daemon.start("ib_send_bw", "-x", "0", "-F", "-D", "30", "-u", "10", "127.0.0.1")
        until(lambda: daemon.moved() > 1 << 20)
        server.send_signal(signal.SIGSTOP)
        status = client.wait()
        case("retries exceeded", status != 0 and len(advice(client.output())) == 1 and re.search(
            r"a peer did not answer \(IBV_WC_RETRY_EXC_ERR, 1 QPs\): its program has ended",
            client.output()), client.output())
        server.kill()


if __name__ == "__main__":
    sys.exit(run(refused, full_queue, silenced, unanswered))
