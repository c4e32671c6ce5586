#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ceph over Rocade, as Debian packages it: a monitor, a manager and two OSDs, which send each other
and their clients all messages over verbs. Each object has a copy on each OSD. What was written is
read back and compared, also from one OSD alone after the other was killed."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import ceph_cluster  # noqa: E402
from daemon import Daemon  # noqa: E402
from hosts import SOCKETS, joined  # noqa: E402
from process import until  # noqa: E402
from ran import Ran  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import is_root  # noqa: E402

POOL = "data"
TRANSPORT = "RC with SRQ"
BENCH_S = 10
OBJECT = 256 << 10
FILES, FILE_MB = 6, 4


class Files:
    """Files of random bytes, and the objects of these."""

    def __init__(self, folder):
        self.folder = folder
        self.bytes = [os.urandom(FILE_MB << 20) for _ in range(FILES)]

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, node):
        for number, data in enumerate(self.bytes):
            with open(self.path("put"), "wb") as file:
                file.write(data)
            node.run("rados", "-p", POOL, "put", "file%d" % number, self.path("put"))

    def same(self, node):
        """Reads all objects. Returns the numbers of those that are equal."""
        equal = []
        for number, data in enumerate(self.bytes):
            node.run("rados", "-p", POOL, "get", "file%d" % number, self.path("got"))
            with open(self.path("got"), "rb") as file:
                if file.read() == data:
                    equal.append(number)
        return equal


def number_of(pattern, text):
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def bench(node, daemons, store):
    """rados bench writes objects, and reads and compares them."""
    with Ran(daemons) as ran:
        wrote = node.run("rados", "bench", "-p", POOL, str(BENCH_S), "write", "--no-cleanup", "-b",
                         str(OBJECT), "-t", "8")
        read = node.run("rados", "bench", "-p", POOL, str(BENCH_S), "seq", "-t", "8")
    writes = number_of(r"Total writes made: +(\d+)", wrote)
    reads = number_of(r"Total reads made: +(\d+)", read)
    # On one host an object goes to one OSD, from there to the other, and back to the client. On two
    # hosts one of the OSDs is not on the client's host, so each object is sent across once.
    least = (2 * writes + reads if len(daemons) == 1 else writes) * OBJECT
    if ran.case("rados bench writes and reads equal objects", writes > 0 and
                0 < reads <= writes and "not correct" not in read, least, wrote + read):
        ran.row("Ceph, `rados bench`, %s" % store, "ceph-osd", TRANSPORT, "objects compared")


def files(where, cluster, folder, daemons, store):
    """Both copies of the files are right, those on the second OSD without the first."""
    some = Files(folder)
    client = cluster.nodes[-1]
    with Ran(daemons) as ran:
        some.put(client)
        equal = some.same(client)
    if ran.case("files are equal", equal == list(range(FILES)),
                (2 if len(daemons) == 1 else 1) * FILES * FILE_MB << 20, str(equal)):
        ran.row("Ceph, `rados put` and `get`, %s" % store, "ceph-osd", TRANSPORT, "files compared")
    # Every message goes over verbs, and every receive is of an SRQ.
    seen = [one for node in cluster.nodes for one in node.clients()
            if one["name"] in ("ceph-mon", "ceph-mgr", "ceph-osd")]
    qps = [qp for one in seen for qp in one.get("qps", [])]
    case("%s: each daemon of Ceph has one SRQ, which all its QPs use" % where,
         len(seen) == 4 and all(one["srq_count"] == 1 and one["qps"] for one in seen) and
         all(qp["srqn"] for qp in qps), seen)
    cluster.osds[0].kill()
    cluster.nodes[0].run("ceph", "osd", "down", "0")
    cluster.wait("an OSD is down", lambda: cluster.asked("osd", "stat")["num_up_osds"] == 1)
    equal = some.same(client)
    case("%s: the copies on the other OSD are equal" % where, equal == list(range(FILES)), equal)


def walk(where, daemons, addresses, store):
    with tempfile.TemporaryDirectory() as folder:
        cluster = ceph_cluster.Cluster(folder, daemons, addresses, store)
        try:
            client = cluster.nodes[-1]
            client.run("ceph", "osd", "pool", "create", POOL, "8")
            cluster.wait("every object has its copies", cluster.clean)
            bench(client, daemons, store)
            files(where, cluster, folder, daemons, store)
        finally:
            ended = cluster.end()
        case("%s: no daemon of Ceph ended by itself" % where, ended == cluster.osds[:1],
             "\n".join(one.failure("has ended").args[0] for one in ended))
    case("%s: nothing of Ceph is left" % where, until(lambda: all(
        daemon.idle() for daemon in daemons)), [daemon.status() for daemon in daemons])


def one_host():
    with Daemon() as daemon:
        walk("one host", [daemon], ["127.0.0.1"], "memstore")


def two_hosts():
    if not is_root():
        skip("two hosts", "needs root")
        return
    with joined() as hosts:
        walk("two hosts", hosts, SOCKETS, "bluestore")


def main():
    why = ceph_cluster.missing()
    if why:
        skip("Ceph", why)
        return 1
    return run(one_host, two_hosts)


if __name__ == "__main__":
    sys.exit(main())
