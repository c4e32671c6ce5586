# SPDX-License-Identifier: BSD-3-Clause
"""Cases of test/e2e/sysfs.py: rdma(8) asks by netlink, and gets what the files of the device say."""

import json
import signal
import sys

from daemon import Daemon, wait_for_port
from tap import case

CLASS = "/sys/class/infiniband/rocade0"
INDEX = """
import ctypes
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_get_device_index.argtypes = [ctypes.c_void_p]
print(verbs.ibv_get_device_index(verbs.ibv_get_device_list(None)[0]))
"""


def rdma(daemon, *words):
    """Returns the only object that rdma(8) prints, and its output."""
    done = daemon.run("rdma", "-j", "-d", *words)
    text = done.stdout + done.stderr
    try:
        objects = json.loads(done.stdout)
    except ValueError:
        objects = []
    return (objects[0] if len(objects) == 1 and done.returncode == 0 else {}), text


def file_text(daemon, name):
    return daemon.run("cat", "%s/%s" % (CLASS, name)).stdout.strip()


def queries():
    """What stays: the device, its port, the system."""
    with Daemon() as daemon:
        got, text = rdma(daemon, "link")
        case("rdma link: the port's state and interface", got.get("ifname") == "rocade0" and
             got["port"] == 1 and got["state"] == file_text(daemon, "ports/1/state").split()[1] and
             got["physical_state"].replace("_", "") ==
             file_text(daemon, "ports/1/phys_state").split()[1].upper() and
             got["netdev"] == file_text(daemon, "ports/1/gid_attrs/ndevs/0"), text)
        done = daemon.run("rdma", "link", "show", "rocade0/1")
        case("rdma link show rocade0/1, as text", done.stdout.split() ==
             "link rocade0/1 state ACTIVE physical_state LINK_UP netdev lo".split() and
             not done.stderr, done.stdout + done.stderr)
        got, text = rdma(daemon, "dev")
        case("rdma dev: type, version and GUIDs", got.get("ifname") == "rocade0" and
             got["node_type"] == file_text(daemon, "node_type").split()[1].lower() and
             [got["fw"], got["node_guid"], got["sys_image_guid"]] ==
             [file_text(daemon, name) for name in ("fw_ver", "node_guid", "sys_image_guid")], text)
        index = daemon.run(sys.executable, "-c", INDEX)
        case("rdma dev: the index of ibv_get_device_index()",
             str(got.get("ifindex")) == index.stdout.strip(), text + index.stdout + index.stderr)
        done = daemon.run("rdma", "system", "show")
        case("rdma system: a device of all namespaces, and fork() is safe",
             "netns shared" in done.stdout and "copy-on-fork on" in done.stdout,
             done.stdout + done.stderr)
        done = daemon.run("--mount", "rdma", "link")
        case("rdma link beside --mount", "link rocade0/1 state ACTIVE" in done.stdout,
             done.stdout + done.stderr)
        done = daemon.run("env", "ROCADE_OFF=netlink", "rdma", "link")
        case("ROCADE_OFF=netlink turns the answers off", "rocade0" not in done.stdout,
             done.stdout + done.stderr)
        for words in ("system set netns exclusive", "dev set rocade0 name other",
                      "resource show qp"):
            done = daemon.run("rdma", *words.split())
            case("rdma %s is refused" % words, done.returncode != 0 and
                 "Operation not supported" in done.stderr, done.stdout + done.stderr)


def query_counters():
    """What moves: counters, and the number of QPs."""
    with Daemon() as daemon:
        status, _, text = daemon.pair("ibv_rc_pingpong", "-g", "0", "-n", "100", "-s", "4096")
        got, said = rdma(daemon, "statistic", "show")
        files = [int(file_text(daemon, "ports/1/hw_counters/" + name))
                 for name in ("sent_pkts", "rcvd_pkts")]
        case("rdma statistic: the counters of the files", status == 0 and files[0] >= 200 and
             [got.get("sent_pkts"), got.get("rcvd_pkts")] == files, "%s %s %s" % (files, said, text))
        before, text = rdma(daemon, "resource", "show")
        server = daemon.start("ibv_rc_pingpong", "-g", "0")
        wait_for_port(18515, server, 10)
        now, said = rdma(daemon, "resource", "show")
        server.send_signal(signal.SIGTERM)
        server.wait()
        case("rdma resource: the QP of a program", before.get("qp") == 0 and now.get("qp") == 1,
             text + said)
