# SPDX-License-Identifier: BSD-3-Clause
"""A Ceph cluster of one monitor, one manager and two OSDs, on one machine or two. All its messages
go over verbs: ms_type async+rdma, with an SRQ for all receives of a process."""

import json
import os
import shutil
import uuid

import process
from daemon import LIBRARY, RUN, STATUS_PROGRAM
from process import Process, until

PROGRAMS = ["ceph", "rados", "monmaptool", "ceph-mon", "ceph-mgr", "ceph-osd"]
LIMIT_S = 120
# 128 KiB each. Ceph's own value needs 4 GiB for each process.
CONF = """[global]
fsid = {fsid}
mon_host = v2:{mon}:3300
public_addr = {address}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
auth_allow_insecure_global_id_reclaim = true
ms_type = async+rdma
ms_cluster_type = async+rdma
ms_public_type = async+rdma
ms_async_op_threads = 1
ms_async_rdma_device_name = rocade0
ms_async_rdma_support_srq = true
ms_async_rdma_receive_buffers = 512
ms_async_rdma_receive_queue_len = 256
ms_async_rdma_send_buffers = 256
ms_bind_ipv6 = false
plugin_dir = /usr/lib/x86_64-linux-gnu/ceph
run_dir = {folder}
log_file = {folder}/$name.log
admin_socket = {folder}/$name.$pid.asok
pid_file = {folder}/$name.pid
mon_data = {folder}/mon
mgr_data = {folder}/mgr
osd_data = {folder}/osd$id
mon_data_avail_warn = 1
mon_data_avail_crit = 1
osd_objectstore = {store}
memstore_device_bytes = 536870912
bluestore_block_size = 2147483648
bluestore_block_db_size = 0
bluestore_block_wal_size = 0
bluestore_cache_size = 67108864
osd_crush_chooseleaf_type = 0
osd_pool_default_pg_autoscale_mode = off
osd_pool_default_size = 2
osd_pool_default_min_size = 1
osd_memory_target = 939524096
osd_heartbeat_grace = 60
"""


def missing():
    """Returns why Ceph cannot run on this machine, or None."""
    absent = [program for program in PROGRAMS if not shutil.which(program)]
    if absent:
        return "no %s here (tools/install-deps.sh --long)" % ", ".join(absent)
    return None


class Node:
    """A machine of the cluster, with the address of its TCP sockets, by which Ceph exchanges QPNs."""

    def __init__(self, daemon, folder, address, **conf_words):
        self.daemon, self.folder = daemon, folder
        os.makedirs(folder)
        for part in "mon", "mgr":
            os.mkdir(os.path.join(folder, part))
        conf = os.path.join(folder, "ceph.conf")
        with open(conf, "w", encoding="ascii") as file:
            file.write(CONF.format(address=address, folder=folder, **conf_words))
        self.env = dict(daemon.env, CEPH_CONF=conf)

    def command(self, *program):
        return [*self.daemon.inside, RUN, "--library", LIBRARY, *program]

    def run(self, *program, timeout_s=LIMIT_S):
        return process.run(self.command(*program), timeout_s, env=self.env, check=True).stdout

    def start(self, *program):
        return Process(self.command(*program), env=self.env)

    def clients(self):
        """Returns what the daemon knows of the clients of this node."""
        done = process.run([STATUS_PROGRAM, "--json", "--qps", "--socket", self.daemon.socket],
                           check=True)
        return json.loads(done.stdout)["clients"]


class Cluster:
    """daemons: of the nodes. addresses: of their sockets. The monitor and the manager are on the
    first node, an OSD on each of two: on one node both are there. store: in which the OSDs keep
    objects, memstore (memory) or bluestore (a file)."""

    def __init__(self, folder, daemons, addresses, store):
        fsid = str(uuid.uuid4())
        self.nodes = [Node(daemon, os.path.join(folder, "node%d" % number), address,
                           mon=addresses[0], fsid=fsid, store=store)
                      for number, (daemon, address) in enumerate(zip(daemons, addresses))]
        first = self.nodes[0]
        self.processes = []
        monmap = os.path.join(folder, "monmap")
        process.run(["monmaptool", "--create", "--addv", "a", "[v2:%s:3300]" % addresses[0],
                     "--fsid", fsid, monmap], check=True)
        first.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap)
        self.begin(first, "ceph-mon", "a")
        # This waits for the monitor.
        first.run("ceph", "status")
        self.begin(first, "ceph-mgr", "x")
        self.osds = [self.add_osd(number, node) for number, node in
                     enumerate((first, self.nodes[-1]))]
        self.wait("both OSDs are up", lambda: self.asked("osd", "stat")["num_up_osds"] == 2)

    def begin(self, node, program, name):
        self.processes.append(node.start(program, "-f", "-i", name))
        return self.processes[-1]

    def add_osd(self, number, node):
        key = str(uuid.uuid4())
        os.mkdir(os.path.join(node.folder, "osd%d" % number))
        self.nodes[0].run("ceph", "osd", "new", key)
        node.run("ceph-osd", "-i", str(number), "--mkfs", "--osd-uuid", key)
        return self.begin(node, "ceph-osd", str(number))

    def asked(self, *words):
        """Returns the answer of the monitor to a command."""
        return json.loads(self.nodes[0].run("ceph", *words, "--format", "json"))

    def wait(self, what, condition, timeout_s=LIMIT_S):
        if not until(condition, timeout_s, 0.5):
            raise process.WaitFailed("waited %d s until %s\n%s" % (
                timeout_s, what, self.nodes[0].run("ceph", "status")))

    def clean(self):
        """Whether every placement group has all its copies."""
        states = self.asked("pg", "stat")["pg_summary"]["num_pg_by_state"]
        return [state["name"] for state in states] == ["active+clean"]

    def end(self):
        """Kills all that still runs. Returns the processes that had ended before."""
        ended = [one for one in self.processes if one.poll() is not None]
        for one in reversed(self.processes):
            if one.poll() is None:
                one.kill()
        return ended
