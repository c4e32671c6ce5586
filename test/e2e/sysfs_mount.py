#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-run --mount: programs that no preload reaches find the device's files, as those in Go (node_exporter) and
those that are linked statically (busybox), for root and for a user in a user namespace."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import LIBRARY, RUN, Daemon  # noqa: E402
from tap import case, run  # noqa: E402

CLASS = "/sys/class/infiniband/rocade0"
COUNTER = CLASS + "/ports/1/hw_counters/rcvd_pkts"
USER, GROUP = 65531, 65530
LOOK = """
busybox ls /sys/class/infiniband
busybox cat %s/ports/1/state %s/device/numa_node
busybox cat /sys/class/infiniband_verbs/uverbs0/ibdev
busybox ls %s/ports/1/gids | busybox wc -l
busybox cat /sys/class/net/lo/address
busybox test -c /dev/infiniband/uverbs0 && echo node
echo x >/dev/null && busybox test -c /dev/null && busybox head -c 1 /dev/zero | busybox wc -c
busybox id -u
""" % (CLASS, CLASS, CLASS)


def folder():
    """Of a socket that other users reach: the stage's folder of temporary files is root's only."""
    return tempfile.mkdtemp(prefix="rocade-e2e-", dir="/run")


def says(uid):
    return ("rocade0\n4: ACTIVE\n-1\nrocade0\n16\n00:00:00:00:00:00\nnode\n1\n%d\n" % uid)


def mounts():
    with open("/proc/self/mounts", encoding="utf-8") as file:
        return file.read()


# Tries to change a file of the device, and the directories around it.
WRITE = """
import os
def refused(what, *args):
    try:
        what(*args)
    except OSError as error:
        return error.strerror
    return "done"
name = "%s/node_type"
print(refused(open, name, "w"), refused(os.chmod, name, 0o666), refused(os.unlink, name),
      refused(os.mkdir, "/sys/class/made"), open(name).read(), end="")
""" % CLASS


def read_only(name, prefix=()):
    """Also of nothing that the preload knows."""
    with Daemon("--socket-mode", "666", folder=folder()) as daemon:
        done = user_run(daemon, "env", "-u", "LD_PRELOAD", "/usr/bin/python3", "-c", WRITE, prefix=prefix)
        case("%s: the files are read-only" % name, done.stdout == " ".join(
             ["Read-only file system"] * 4) + " 1: CA\n", done.stdout + done.stderr)


def files_are_read_only():
    read_only("root")
    read_only("a user", as_group_member())


ONE_NAMESPACE = 'echo 1 >/proc/sys/user/max_mnt_namespaces && exec "$@"'


def one_namespace():
    """The limit is that of a user namespace of the test's."""
    with Daemon("--socket-mode", "666", folder=folder()) as daemon:
        done = user_run(daemon, "cat", CLASS + "/node_type", prefix=[
            "unshare", "--user", "--map-root-user", "sh", "-c", ONE_NAMESPACE, "sh"])
        case("without a second namespace the program runs, and one line says what is missing",
             done.stdout == "1: CA\n" and done.stderr.count("\n") == 1 and
             "not read-only" in done.stderr, done.stdout + done.stderr)


OTHER_DEV = """
mount -t tmpfs tmpfs /mnt && mkdir /mnt/infiniband /mnt/shm
for node in null zero random urandom; do touch /mnt/$node && mount --bind /dev/$node /mnt/$node; done
mount --rbind /mnt /dev && exec "$@"
"""


def nodes_beside_the_kernels():
    """Where /dev/infiniband is there, it is covered, and stays one in which files can be made."""
    with Daemon() as daemon:
        done = user_run(daemon, "sh", "-c", "touch /dev/infiniband/made && ls /dev/infiniband",
                        prefix=["unshare", "--mount", "sh", "-c", OTHER_DEV, "sh"])
        case("/dev/infiniband is not read-only", not done.stderr and
             {"made", "rocade0", "uverbs0"} <= set(done.stdout.split()), done.stdout + done.stderr)


def of_root():
    with Daemon() as daemon:
        before = mounts()
        done = daemon.run("--mount", "sh", "-c", LOOK)
        case("root: a static program finds the files, and the others as before",
             done.stdout == says(0) and not done.stderr, done.stdout + done.stderr)
        case("root: the machine does not change", mounts() == before and
             not os.path.exists("/sys/class/infiniband/rocade0"), mounts())
        done = daemon.run("--mount", "sh", "-c", "exit 7")
        case("the exit status is the program's", done.returncode == 7, done)
        done = daemon.run("--mount", "sh", "-c", "kill -TERM $$")
        case("a signal gives 128 and its number", done.returncode == 143, done)
        done = daemon.run("--mount", "sh", "-c",
                          "mknod /dev/made c 1 3 && echo x >/dev/made && echo written")
        case("root: a device node that is made works", done.stdout == "written\n" and
             not os.path.exists("/dev/made"), done.stdout + done.stderr)
        done = daemon.run("--mount", "ibv_devinfo")
        case("a program with the preload finds the device once", done.returncode == 0 and
             done.stdout.count("hca_id:") == 1 and not done.stderr, done.stdout + done.stderr)
        done = daemon.run("--mount", "ibstat", "-l")
        case("ibstat finds it once", done.stdout == "rocade0\n", done.stdout + done.stderr)


def as_group_member():
    return ["setpriv", "--reuid=%d" % USER, "--regid=%d" % USER, "--groups=%d" % GROUP]


def user_run(daemon, *command, prefix=()):
    return process.run([*prefix, RUN, "--library", LIBRARY, "--mount", *command], 60, env=daemon.env)


def of_a_user():
    """The daemon's socket is open to a supplementary group of the user only, and the daemon is root's,
    who has no number in the user namespace."""
    with Daemon("--socket-mode", "660", folder=folder()) as daemon:
        os.chown(daemon.socket, 0, GROUP)
        os.chmod(daemon.dir, 0o755)
        done = user_run(daemon, "sh", "-c", LOOK, prefix=as_group_member())
        case("a user: a static program finds the files", done.stdout == says(USER) and
             not done.stderr, done.stdout + done.stderr)
        pair = "ibv_rc_pingpong -g 0 -n 10 >/dev/null & sleep_pid=$!; " \
            "until ibv_rc_pingpong -g 0 -n 10 127.0.0.1; do busybox usleep 50000; done; wait $sleep_pid"
        done = user_run(daemon, "sh", "-c", pair, prefix=as_group_member())
        case("a user: programs use the device in the namespace", done.returncode == 0 and
             "iters in" in done.stdout, done.stdout + done.stderr)


CURRENT = """
busybox cat %s
ibv_rc_pingpong -g 0 -n 100 >/dev/null & server=$!
until ibv_rc_pingpong -g 0 -n 100 127.0.0.1 >/dev/null 2>&1; do busybox usleep 50000; done
wait $server
while test "$(busybox cat %s)" = 0; do busybox usleep 50000; done
busybox cat %s
""" % (COUNTER, COUNTER, COUNTER)


ENDED = """
busybox cat %s/ports/1/state
kill -KILL $1
while test "$(busybox cat %s/ports/1/state)" = "4: ACTIVE"; do busybox usleep 50000; done
busybox cat %s/ports/1/state
""" % (CLASS, CLASS, CLASS)


def kept_current():
    with Daemon() as daemon:
        done = daemon.run("--mount", "sh", "-c", CURRENT, timeout_s=60)
        case("counters rise while the program runs", re.fullmatch("0\n[1-9][0-9]*\n", done.stdout),
             done.stdout + done.stderr)
    with Daemon() as daemon:
        done = daemon.run("--mount", "sh", "-c", ENDED, "sh", daemon.process.pid, timeout_s=60)
        case("the port is down when the daemon has ended", done.stdout == "4: ACTIVE\n1: DOWN\n",
             done.stdout + done.stderr)
    done = process.run([RUN, "--library", LIBRARY, "--start-local", "--mount", "busybox", "cat",
                        CLASS + "/ports/1/state"])
    case("--start-local --mount", done.stdout == "4: ACTIVE\n", done.stdout + done.stderr)


BESIDE = """
busybox ls /sys/class/infiniband /sys/class/infiniband_verbs /dev/infiniband
busybox cat /sys/class/infiniband/*/ports/1/link_layer /sys/class/infiniband_verbs/abi_version
busybox cat /sys/class/misc/rdma_cm/abi_version
"""
BESIDE_SAYS = """/dev/infiniband:
kernel0
rdma_cm
rocade0
uverbs0
uverbs1

/sys/class/infiniband:
kernel0
rocade0

/sys/class/infiniband_verbs:
abi_version
uverbs0
uverbs1
Ethernet
Ethernet
6
4
"""


def beside_the_kernel():
    """A device that is in the kernel's directories: that of another daemon, by --mount. For a user
    these files are read-only, as those of the kernel are for all."""
    for name, prefix in ("root", ()), ("a user", as_group_member()):
        with Daemon("--name", "kernel0", "--socket-mode", "666", folder=folder()) as other, \
                Daemon("--socket-mode", "666", folder=folder()) as daemon:
            done = user_run(other, RUN, "--library", LIBRARY, "--socket", daemon.socket, "--mount",
                            "sh", "-c", BESIDE, prefix=prefix)
            case("%s: the kernel's devices stay" % name, done.stdout == BESIDE_SAYS and
                 not done.stderr, done.stdout + done.stderr)


EXPORTER = """
prometheus-node-exporter --collector.disable-defaults --collector.infiniband \\
    --web.listen-address=127.0.0.1:9177 2>/dev/null & exporter=$!
until busybox wget -q -O - http://127.0.0.1:9177/metrics; do busybox usleep 50000; done
kill $exporter
"""
METRICS = {
    'node_infiniband_state_id{device="rocade0",port="1"} 4',
    'node_infiniband_physical_state_id{device="rocade0",port="1"} 5',
    'node_infiniband_rate_bytes_per_second{device="rocade0",port="1"} 3.125e+09',
    'node_infiniband_port_data_received_bytes_total{device="rocade0",port="1"} 0',
    'node_scrape_collector_success{collector="infiniband"} 1'}


def node_exporter():
    """A program in Go."""
    with Daemon() as daemon:
        done = daemon.run("--mount", "sh", "-c", EXPORTER, timeout_s=60)
        case("node_exporter has the device's metrics", METRICS <= set(done.stdout.splitlines()),
             done.stdout + done.stderr)


TERMINAL = "import os, pty; print(os.isatty(pty.openpty()[1]))"


def terminals():
    """Programs of root and of a user make pseudo-terminals."""
    with Daemon("--socket-mode", "666", folder=folder()) as daemon:
        os.chmod(daemon.dir, 0o755)
        done = daemon.run("--mount", "/usr/bin/python3", "-c", TERMINAL)
        case("a pseudo-terminal of root", done.stdout == "True\n", done.stdout + done.stderr)
        done = user_run(daemon, "/usr/bin/python3", "-c", TERMINAL, prefix=[
            "setpriv", "--reuid=%d" % USER, "--regid=%d" % GROUP, "--clear-groups"])
        case("a pseudo-terminal of a user", done.stdout == "True\n", done.stdout + done.stderr)


def refused():
    """Linux makes no user namespace in a chroot environment."""
    with Daemon("--socket-mode", "666", folder=folder()) as daemon:
        os.chmod(daemon.dir, 0o755)
        jail = os.path.join("/run", "jail")
        os.mkdir(jail)
        process.run(["mount", "--rbind", "/", jail])
        done = user_run(daemon, "echo", "ran", prefix=[
            "chroot", "--userspec=%d:%d" % (USER, USER), jail])
        case("without user namespaces one sentence says so, and the program does not run",
             done.returncode == 1 and not done.stdout and done.stderr.count("\n") == 1 and
             "--mount needs root" in done.stderr, done.stdout + done.stderr)
        process.run(["umount", "-l", jail])


GROUPS = {f.__name__: f for f in (of_root, of_a_user, files_are_read_only, one_namespace,
                                  nodes_beside_the_kernels, kept_current, beside_the_kernel,
                                  node_exporter, terminals, refused)}

if __name__ == "__main__":
    sys.exit(run(*(GROUPS[name] for name in sys.argv[1:] or GROUPS)))
