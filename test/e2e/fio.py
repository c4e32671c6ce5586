#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""fio's engine "rdma" through `rocaded --local`: WRITE, READ and SEND. fio verifies SENDs itself. For
WRITE and READ the I/O buffers of each end are a file, so that the test can compare them. The daemon's
counters prove that Rocade carried the bytes."""

import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import Daemon  # noqa: E402
from process import until  # noqa: E402
from rows import row  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import LONG  # noqa: E402

BLOCK, DEPTH = 65536, 16
SIZE = (256 if LONG else 16) << 20
JOB = ["--ioengine=rdma", "--port=7711", "--bs=%d" % BLOCK, "--size=%d" % SIZE, "--randseed=7"]
ADDRESS = "--hostname=192.0.2.1"


def pair(daemon, folder, receiver, sender):
    """Runs both jobs in the folder. Returns whether both ended well, the bytes that the daemon carried, the time, and
    what was wrong."""
    before, start = daemon.moved(), time.monotonic()
    server = daemon.start("fio", "--name=receiver", "--rw=read", *JOB, *receiver,
                          cwd=folder)
    daemon.wait_listener(server)
    client = daemon.start(
        "fio", "--name=sender", "--rw=write", *JOB, ADDRESS, *sender,
        cwd=folder)
    status, text = client.finish()
    served, said = server.finish(60 if status == 0 else 5)  # without its sender it waits for ever
    took, left = time.monotonic() - start, not until(daemon.idle)
    moved = daemon.moved() - before
    why = "server %s, client %s, %d of %d bytes, left %s\n%s" % (served, status, moved, SIZE, left,
                                                                   said + text)
    return served == 0 and status == 0 and moved >= SIZE and not left, moved, took, why


def blocks(path):
    with open(path, "rb") as file:
        return [file.read(BLOCK) for _ in range(DEPTH)]


def memory(daemon, folder, verb):
    """WRITE puts the sender's blocks into blocks of the receiver that it chooses at random, READ the
    other way round."""
    receiver, sender = (os.path.join(folder, verb + end) for end in ("-receiver", "-sender"))
    for path in receiver, sender:
        with open(path, "wb") as file:
            file.write(os.urandom((DEPTH + 1) * BLOCK))
    options = ["--iodepth=%d" % DEPTH, "--scramble_buffers=0"]
    good, moved, took, why = pair(
        daemon, folder, [*options, "--iomem=mmapshared:" + receiver],
        [*options, "--iomem=mmapshared:" + sender, "--verb=" + verb])
    case("fio %s: Rocade carries the bytes" % verb, good, why)
    source, target = (sender, receiver) if verb == "write" else (receiver, sender)
    sent, got = blocks(source), blocks(target)
    whole = sum(block in sent for block in got)
    different = len(set(sent))
    case("fio %s: the blocks arrive unchanged" % verb, whole == DEPTH and different > DEPTH // 2,
         "%d of %d blocks are the source's, of which %d differ" % (whole, DEPTH, different))
    row("`fio --verb=%s`" % verb, "fio", "RC over RDMA-CM, one host", took, moved,
        "buffers compared")


def send(daemon, folder):
    """The receiver has a receive for each message of the run (at most 512, a limit of fio): fio connects
    with rnr_retry_count 0, so that the first message without a receive ends the connection."""
    messages = min(SIZE, 16 << 20) // BLOCK
    size = ["--size=%d" % (messages * BLOCK), "--verify=crc32c"]
    before = daemon.moved()
    _, _, took, why = pair(daemon, folder, [*size, "--iodepth=%d" % messages],
                           [*size, "--iodepth=%d" % DEPTH, "--verb=send", "--do_verify=0"])
    moved = daemon.moved() - before
    case("fio send: Rocade carries the bytes, and fio verifies them",
         why.startswith("server 0, client 0,") and moved >= messages * BLOCK, why)
    row("`fio --verb=send`", "fio", "RC over RDMA-CM, one host", took, moved,
        "verified by fio (crc32c)")


def unverified(daemon, folder):
    """fio's verification must see messages that are not what the sender should send."""
    good, _, _, why = pair(daemon, folder, ["--verify=crc32c", "--iodepth=256", "--size=16m"],
                           ["--iodepth=16", "--verb=send", "--size=16m"])
    case("fio send: wrong messages are seen", not good and "verify" in why, why)


def fio():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        memory(daemon, folder, "write")
        memory(daemon, folder, "read")
        send(daemon, folder)
        if LONG:
            unverified(daemon, folder)


if __name__ == "__main__":
    sys.exit(run(fio))
