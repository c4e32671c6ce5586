#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs find the device in /sys/class/infiniband and /dev/infiniband: by each function of libc, in
each way to name a path, in C, C++, Python and shells, and the tools of infiniband-diags."""

import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
import rdma_queries  # noqa: E402
from daemon import CLIENTS, LIBRARY, RUN, Daemon  # noqa: E402
from sysfs_trees import leftovers, lifetime, trees  # noqa: E402
from tap import case, run  # noqa: E402

CLASS = "/sys/class/infiniband/rocade0"
FILES = ("openat openat64 open open64 fopen fopen64 freopen freopen64 fstatat fstatat64 statx "
         "faccessat stat stat64 lstat lstat64 access eaccess euidaccess").split()
REFUSED = "openat-wronly creat open-rdwr fopen-w".split()
FOLDERS = ("scandirat fdopendir opendir readdir64 scandir scandir64 statfs statvfs glob ftw ftw64 "
           "nftw nftw64 fts fts-nochdir").split()
# What _FORTIFY_SOURCE calls.
CHECKED = "__open_2 __open64_2 __openat_2 __openat64_2".split()
CHECKED_RESULTS = "__realpath_chk __getcwd_chk __readlink_chk __readlinkat_chk".split()
RESULTS = ("readlinkat fstatat-nofollow lstat-slash lstat-dot readlink realpath "
           "canonicalize_file_name chdir getcwd get_current_dir_name fchdir").split()
AT = "openat openat64 fstatat fstatat64 statx faccessat scandirat fdopendir".split()
AT_RESULTS = ["readlinkat", "fstatat-nofollow"]
ROWS = {
    "absolute": FILES + REFUSED + FOLDERS + RESULTS + CHECKED + CHECKED_RESULTS,
    "link": FILES + REFUSED + FOLDERS + CHECKED,
    "chdir": ["chdir-ports", *FILES, *REFUSED, *FOLDERS, *CHECKED, "chdir-class", *RESULTS,
              *CHECKED_RESULTS, "chdir-root"],
    "descriptor": ["open-ports", *AT, "openat-wronly", "open-class", *AT_RESULTS]}
OTHERS = ("stack-readlink stack-readlink-short stack-readlinkat stack-open stack-openat "
          "stack-open-write stack-stat stack-fstatat stack-access stack-chdir stack-getcwd "
          "stack-getcwd-short readlink-fault readlink-empty readlink-short glob-old glob-old-device glob-new abort-getcwd "
          "abort-readlink abort-readlinkat").split()
CPP = ("exists ifstream directory_iterator is_symlink read_symlink canonical "
       "recursive_directory_iterator status current_path relative").split()


def folder():
    """Of a socket that other users reach: the stage's folder of temporary files is root's only."""
    return tempfile.mkdtemp(prefix="rocade-e2e-", dir="/run")


def program(name):
    return os.path.join(os.path.abspath(CLIENTS), "test/e2e", name)


def of_c():
    """A row for each function and each way."""
    with Daemon() as daemon:
        done = daemon.run(program("sysfs_calls"), "rocade0")
        got = {tuple(line.split(" ", 2)[:2]): line for line in done.stdout.splitlines()}
        for way, functions in ROWS.items():
            for function in functions:
                line = got.pop((function, way), "no line")
                case("C: %s() by %s" % (function, way), line.endswith(" ok"),
                     line + "\n" + done.stderr)
        case("C: the program has no other rows", done.returncode == 0 and not got,
             "%s %s %s" % (done.returncode, got, done.stderr))


def of_others():
    """Paths of no device."""
    with Daemon() as daemon:
        done = daemon.run(program("sysfs_others"))
        lines = [line.split() for line in done.stdout.splitlines()]
        for name in OTHERS:
            got = [words[1:] for words in lines if words[0] == name]
            case("others: %s" % name, [words[0] for words in got] == ["ok"],
                 "%s %s %s" % (got, done.returncode, done.stderr))


def of_cpp():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sysfs_walk.cc")
    with tempfile.TemporaryDirectory() as folder, Daemon() as daemon:
        built = os.path.join(folder, "sysfs_walk")
        process.run(["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", source, "-o", built], 120)
        done = daemon.run(built, "rocade0")
        for name in CPP:
            case("C++: %s" % name, name + " ok" in done.stdout.splitlines(),
                 done.stdout + done.stderr)


PYTHON = """
import ctypes, glob, os, pathlib
top = "/sys/class/infiniband/rocade0"
ports = top + "/ports/1"
def text(path, **more):
    with open(path, encoding="ascii", **more) as file:
        return file.read()
print("listdir", os.listdir("/sys/class/infiniband") == ["rocade0"])
print("open", text(ports + "/state") == "4: ACTIVE\\n")
print("exists", os.path.exists(ports) and os.path.islink(top) and os.path.isdir(top))
print("glob", len(glob.glob("/sys/class/infiniband/*/ports/*/gids/*")) == 16)
print("pathlib", len(list(pathlib.Path(ports).glob("gids/*"))) == 16)
print("scandir", sorted(e.name for e in os.scandir(ports + "/pkeys")) == ["0"])
print("walk", any("port_rcv_data" in files for _, _, files in os.walk(top)))
print("fwalk", any("port_rcv_data" in files for _, _, files, _ in os.fwalk(ports)))
real = os.path.realpath(top)
print("realpath", real.startswith("/sys/devices/") and os.path.exists(real))
folder = os.open(ports, os.O_RDONLY)
opener = lambda path, flags: os.open(path, flags, dir_fd=folder)
print("dir_fd", text("state", opener=opener) == "4: ACTIVE\\n" and
      os.stat("gids", dir_fd=folder).st_nlink > 0)
os.chdir(ports)
print("chdir", os.getcwd() == real + "/ports/1" and text("state") == "4: ACTIVE\\n")
print("nodes", {"rdma_cm", "rocade0", "uverbs0"} <= set(os.listdir("/dev/infiniband")))
print("verbs", text("/sys/class/infiniband_verbs/uverbs0/ibdev") == "rocade0\\n")
print("access", os.access(ports + "/state", os.R_OK) and not os.path.exists(ports + "/none"))
print("net", os.listdir(top + "/device/net") == ["lo"])
def failure(path):
    try:
        return text(path)
    except OSError as error:
        return error.errno
print("types", text("gid_attrs/types/0") == "RoCE v2\\n" and text("gid_attrs/ndevs/0") == "lo\\n")
print("types-of-none", [failure(one) for one in (ports + "/gid_attrs/types/15", "gid_attrs/ndevs/15")] == [22, 22])
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p
stream = libc.fopen((ports + "/gid_attrs/types/15").encode(), b"r")
print("stream-of-none", libc.fgetc(ctypes.c_void_p(stream)) == -1 and ctypes.get_errno() == 22)
"""


def of_python():
    with Daemon() as daemon:
        done = daemon.run(sys.executable, "-c", PYTHON)
        lines = done.stdout.splitlines()
        for line in lines:
            case("Python: " + line.split()[0], line.endswith(" True"), line + done.stderr)
        case("Python: all rows ran", done.returncode == 0 and len(lines) == 18, done.stderr)


SHELL = """
cd /sys/class/infiniband || exit 1
for device in *; do echo "class $device"; done
cd rocade0/ports/1 && cat state
test -e gids/15 && test -d ../../device && test -L ../../device && echo tests
read -r state <"$PWD/state" && echo "read $state"
pwd -P
for gid in /sys/class/infiniband/*/ports/*/gids/1?; do echo "${gid##*/}"; done | tail -n 1
cat ../../node_type /sys/class/infiniband/rocade0/ports/1/link_layer
ls /sys/class/infiniband/rocade0/ports
find /sys/class/infiniband/ -name rocade0
find -L /sys/class/infiniband/rocade0/ports -name rate
readlink -f /sys/class/infiniband/rocade0
(cd /sys/class/infiniband/rocade0/device/ && ls -d numa_node)
ls -l /sys/class/infiniband/rocade0/ports/1/state >/dev/null && echo long
echo 1 2>/dev/null >/sys/class/infiniband/rocade0/ports/1/state || echo refused
"""
REAL = "/sys/devices/pciffff:ff/ffff:ff:00.0/infiniband/rocade0"
SHELL_SAYS = """class rocade0
4: ACTIVE
tests
read 4: ACTIVE
%s/ports/1
15
1: CA
Ethernet
1
/sys/class/infiniband/rocade0
/sys/class/infiniband/rocade0/ports/1/rate
%s
numa_node
long
refused
""" % (REAL, REAL)


def of_shells():
    with Daemon() as daemon:
        for shell in "dash", "bash":
            done = daemon.run(shell, "-c", SHELL)
            case("%s finds the device's files" % shell, done.stdout == SHELL_SAYS and
                 not done.stderr, done.stdout + done.stderr)


BESIDE = """
import os
top = "/sys/class/infiniband"
print(sorted(os.listdir(top)), sorted(os.listdir("/sys/class/infiniband_verbs")))
for name in "kernel0", "rocade0":
    path = top + "/" + name
    real = os.path.realpath(path)
    with open(path + "/ports/1/link_layer", encoding="ascii") as file:
        print(real, os.path.exists(real + "/ports"), os.path.isdir(path), file.read().strip())
print(sorted(os.listdir("/dev/infiniband")))
"""
BESIDE_SAYS = """['kernel0', 'rocade0'] ['abi_version', 'uverbs0', 'uverbs1']
/sys/devices/pciffff:ff/ffff:ff:00.0/infiniband/kernel0 True True Ethernet
/sys/devices/pciffff:ff/ffff:ff:01.0/infiniband/rocade0 True True Ethernet
['kernel0', 'rdma_cm', 'rocade0', 'uverbs0', 'uverbs1']
"""


def beside_the_kernel():
    """A device that is in the kernel's directories: that of another daemon, by --mount."""
    with Daemon("--name", "kernel0") as other, Daemon() as daemon:
        done = other.run("--mount", RUN, "--library", LIBRARY, "--socket", daemon.socket,
                         "/usr/bin/python3", "-c", BESIDE)
        case("the kernel's devices stay", done.stdout == BESIDE_SAYS and not done.stderr,
             done.stdout + done.stderr)


CHILD = """
cd /sys/class/infiniband/rocade0/ports/1 || exit
(read -r go; cat state; pwd -P; ls counters | head -n 1) <&3 &
exit 0
"""
EXECUTED = """
import os, subprocess
print(os.getcwd())
subprocess.run(["ls", "/sys/class/infiniband"], check=True)
os.closerange(3, 1024)
with open("state", encoding="ascii") as file:
    print(file.read(), os.listdir("pkeys"))
"""
USER = """
import os
print(os.listdir("/sys/class/infiniband"))
os.setuid(65534)
print(os.listdir("/sys/class/infiniband"), len(os.listdir("/proc/self/fd")))
os.listdir("/sys/class/infiniband")
print(len(os.listdir("/proc/self/fd")))
"""


def passed_on():
    """A process has a directory of the tree, but not the lock of the process that has made it."""
    with Daemon("--socket-mode", "666", folder=folder()) as daemon:
        os.chmod(daemon.dir, 0o755)
        done = daemon.run("bash", "-c", "mkfifo $0/go; exec 3<>$0/go; bash -c '%s'; echo >&3; wait; "
                          "until test -s $0/out; do :; done; cat $0/out" % CHILD.replace(
                              "<&3 &", "<&3 >$0/part && mv $0/part $0/out &").replace("$0", daemon.dir),
                          daemon.dir)
        case("a child of a process that has ended", done.stdout ==
             "4: ACTIVE\n%s/ports/1\nVL15_dropped\n" % REAL, done.stdout + done.stderr)
        done = daemon.run("sh", "-c", "cd %s/ports/1 && exec \"$@\"" % CLASS, "sh", sys.executable,
                          "-c", EXECUTED)
        case("a program that was executed in the directory", done.stdout ==
             "%s/ports/1\nrocade0\n4: ACTIVE\n ['0']\n" % REAL, done.stdout + done.stderr)
        done = daemon.run(sys.executable, "-c", USER)
        lines = done.stdout.splitlines()
        case("a program that becomes another user", lines[:1] == ["['rocade0']"] and
             lines[1].split(" ") == ["['rocade0']", lines[2]], done.stdout + done.stderr)


def refused_places():
    with Daemon() as daemon:
        runtime = os.path.join(daemon.dir, "run")
        os.mkdir(runtime, 0o700)
        daemon.env["XDG_RUNTIME_DIR"] = runtime
        daemon.run("ls", CLASS)
        made = trees(runtime)
        shutil.rmtree(made[0])
        os.mkdir(made[0])
        os.chmod(made[0], 0o755)
        done = daemon.run("cat", CLASS + "/node_type")
        case("a directory that is open to others is not used", done.stdout == "1: CA\n" and
             os.listdir(made[0]) == [], done.stdout + done.stderr)
        os.rmdir(made[0])
        done = daemon.run("env", "ROCADE_OFF=sysfs", "ls", CLASS)
        node = daemon.run("env", "ROCADE_OFF=sysfs", "test", "-c", "/dev/infiniband/rdma_cm")
        case("but not the node of RDMA-CM", node.returncode == 0, node.stdout + node.stderr)
        case("ROCADE_OFF=sysfs turns the files off", done.returncode == 2 and not done.stdout,
             done.stdout + done.stderr)
        daemon.run("ls", "/sys/class/net")
        case("a program that does not look makes none", not trees(runtime), trees(runtime))


# Of the kernel, not of the library.
PLACE = """
import ctypes, os
os.chdir('%s')
place = ctypes.create_string_buffer(4096)
number = 267 if os.uname().machine == "x86_64" else 78  # readlinkat
ctypes.CDLL(None).syscall(number, -100, b"/proc/self/cwd", place, 4096)
print(place.value.decode().split("/rocade-sysfs-")[0])
""" % CLASS


def places():
    """$XDG_RUNTIME_DIR is used if it is the user's, and no other can change it."""
    with Daemon() as daemon:
        for mode, owner, used in (0o700, 0, True), (0o755, 0, False), (0o700, 65534, False):
            runtime = os.path.join(daemon.dir, "run-%o-%d" % (mode, owner))
            os.mkdir(runtime)
            os.chmod(runtime, mode)
            os.chown(runtime, owner, owner)
            daemon.env["XDG_RUNTIME_DIR"] = runtime
            done = daemon.run(sys.executable, "-c", PLACE)
            want = runtime if used else "/dev/shm"
            case("root with a directory of %d, mode %o: in %s" %
                 (owner, mode, "it" if used else "/dev/shm"), done.stdout == want + "\n" and
                 (used or not os.listdir(runtime)), done.stdout + done.stderr)


READ_ONLY = """
for folder in /dev/shm /tmp; do
    mount --bind $folder $folder && mount -o remount,bind,ro $folder || exit 9
done
exec "$@"
"""


def read_only():
    """A container in which no directory can be made."""
    with Daemon() as daemon:
        env = {name: value for name, value in daemon.env.items() if name != "XDG_RUNTIME_DIR"}
        done = process.run(["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", RUN, "--library", LIBRARY,
                            "ls", "-l", "/sys/class/infiniband", CLASS], env=env)
        case("where no directory can be made one line says so", done.returncode == 2 and
             done.stderr.count("rocade: warning: no directory for the sysfs files of rocade0") == 1,
             done.stdout + done.stderr)


def counter(daemon, name):
    return int(daemon.run("cat", "%s/ports/1/%s" % (CLASS, name)).stdout)


def live():
    with Daemon() as daemon:
        before = counter(daemon, "counters/port_rcv_data")
        packets = counter(daemon, "hw_counters/rcvd_pkts")
        status, _, text = daemon.pair("ibv_rc_pingpong", "-g", "0", "-n", "100", "-s", "4096")
        moved = counter(daemon, "counters/port_rcv_data") - before
        case("counters rise by what programs have received", status == 0 and
             moved * 4 >= 200 * 4096 and counter(daemon, "hw_counters/rcvd_pkts") >= packets + 200,
             "%d words\n%s" % (moved, text))
        sent = counter(daemon, "counters/port_xmit_data")
        case("on a machine of its own all that was sent was received",
             sent == counter(daemon, "counters/port_rcv_data"), sent)


STOPPED = """
import os, signal
top = "/sys/class/infiniband/rocade0/ports/1/"
def text(name):
    with open(top + name, encoding="ascii") as file:
        return file.read().strip()
print(text("state"), text("counters/port_rcv_data"))
os.kill(%d, signal.SIGSTOP)
for _ in range(8):
    print(text("state"), text("counters/port_rcv_data"))
os.kill(%d, signal.SIGCONT)
"""


def stopped():
    """A daemon that does not answer."""
    with Daemon() as daemon:
        number = daemon.process.pid
        done = daemon.run(sys.executable, "-c", STOPPED % (number, number))
        case("files keep their text while the daemon is stopped",
             done.stdout == "4: ACTIVE 0\n" * 9, done.stdout + done.stderr)


def tools():
    with Daemon() as daemon:
        done = daemon.run("ibstat")
        case("ibstat shows the device", done.returncode == 0 and all(
            word in done.stdout for word in ("CA 'rocade0'", "State: Active", "Physical state: LinkUp",
                                             "Rate: 25", "Link layer: Ethernet")),
             done.stdout + done.stderr)
        done = daemon.run("ibstat", "-l")
        case("ibstat -l lists it", done.stdout == "rocade0\n", done.stdout + done.stderr)
        done = daemon.run("ibstatus")
        case("ibstatus shows the device", done.returncode == 0 and all(
            word in done.stdout for word in ("Infiniband device 'rocade0' port 1 status",
                                             "4: ACTIVE", "5: LinkUp", "25 Gb/sec (1X EDR)",
                                             "Ethernet")), done.stdout + done.stderr)
        done = daemon.run("ibv_devinfo")
        case("ibv_devinfo lists the device once, without warnings",
             done.stdout.count("hca_id:") == 1 and not done.stderr, done.stdout + done.stderr)


DLVSYM = """
import ctypes
dl = ctypes.CDLL(None)
dl.dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
handle = ctypes.CDLL("libibverbs.so.1")._handle
dl.dlvsym(handle, b"ibv_none", b"IBVERBS_1.1")
dl.dlvsym(handle, b"ibv_open_device", b"IBVERBS_1.1")
"""


CLOSED = """
import os, sys
name = os.path.exists("/dev/infiniband/umad0")
os.closerange(3, 2048)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for fd in range(256, 300):
    os.dup2(file, fd)
"""
# The child lives until the shell has read the last of the parent's output.
DAEMON = """
import os, sys
os.path.exists("/dev/infiniband/umad0")
if os.fork() == 0:
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.read(0, 1)
"""


CAPTURED = """
mkfifo "$0" && exec 3<>"$0"
said=$("$@" 2>&1 <&3 3<&-)
echo >&3
echo "$said"
"""


def explain_elsewhere():
    """The lines go to the standard error, or nowhere."""
    with Daemon() as daemon:
        path = os.path.join(daemon.dir, "file")
        done = daemon.run("--explain", sys.executable, "-c", CLOSED, path)
        with open(path, encoding="ascii") as file:
            text = file.read()
        case("--explain writes to no file of the program", done.returncode == 0 and text == "",
             text + done.stderr)
        done = process.run(["sh", "-c", CAPTURED, daemon.dir + "/go", RUN, "--library", LIBRARY,
                            "--explain", sys.executable, "-c", DAEMON], env=daemon.env)
        case("--explain keeps no pipe open in a child", "looked in vain" in done.stdout,
             done.stdout + done.stderr)


def explain():
    """rocade-run --explain."""
    with Daemon() as daemon:
        for command, line in [
                (("cat", "/dev/infiniband/umad0"), "cat looked in vain for the path /dev/infiniband/umad0"),
                (("ls", CLASS + "/ports/2"), "ls looked in vain for the path %s/ports/2" % CLASS),
                (("rdma", "resource", "show", "qp"),
                 "rdma looked in vain for netlink RDMA_NLDEV_CMD_RES_QP_GET (EOPNOTSUPP)"),
                (("env", "ROCADE_OFF=netlink", "rdma", "link"),
                 "rdma looked in vain for netlink NETLINK_RDMA (as rdma(8) does)"),
                (("/usr/bin/python3", "-c", DLVSYM), "python3 looked in vain for the symbol ibv_none")]:
            done = daemon.run("--explain", *command)
            said = [one for one in done.stderr.splitlines() if " looked in vain " in one]
            case("--explain: %s" % line[:60], said == ["rocade: " + line], done.stderr)
            done = daemon.run(*command)
            case("without --explain %s prints none" % command[0], " in vain " not in done.stderr,
                 done.stderr)
        done = daemon.run("--explain", "rdma", "link")
        case("--explain: nothing of an answered query", "looked in vain" not in done.stderr,
             done.stderr)
        done = daemon.run("--explain", "ibstat", "-l")
        case("--explain: nothing of what is there", " %s" % CLASS not in done.stderr, done.stderr)


GROUPS = {f.__name__: f for f in (
    of_c, of_others, of_cpp, of_python, of_shells, beside_the_kernel, lifetime, leftovers, passed_on, refused_places,
    places, read_only, live, stopped, tools,
    rdma_queries.queries, rdma_queries.query_counters,
    explain, explain_elsewhere)}

if __name__ == "__main__":
    sys.exit(run(*(GROUPS[name] for name in sys.argv[1:] or GROUPS)))
