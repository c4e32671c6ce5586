# SPDX-License-Identifier: BSD-3-Clause
"""What the checks look at. gather() reads it from this host; the tests record it."""

import json
import os
import platform
import resource
import subprocess
import sys
from types import SimpleNamespace

import daemons
import hostinfo
from hostinfo import read

DEFAULT_CONFIG = "/etc/rocaded.conf"
PCI = "/sys/bus/pci/devices"


def socket_path(given, env, uid):
    """Returns the daemon's socket as a client of this user finds it."""
    given = given or env.get("ROCADE_SOCKET")
    own = os.path.join(env.get("XDG_RUNTIME_DIR") or "/nonexistent", "rocade.sock")
    if given:
        return given
    return own if uid != 0 and os.path.exists(own) else "/run/rocade.sock"


def socket_facts(path):
    """Returns owner and mode of the socket's file, or None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return {"uid": found.st_uid, "mode": found.st_mode & 0o777}


def status_program():
    """Returns rocade-status beside this program: installed, or in the build folder."""
    folder = os.path.dirname(os.path.realpath(sys.argv[0]))
    for path in ("rocade-status", "../status/rocade-status"):
        if os.access(os.path.join(folder, path), os.X_OK):
            return os.path.join(folder, path)
    return "rocade-status"


def status(socket, daemon_uid):
    """Asks the daemon for its state. Returns it, and the sentence of an error."""
    env = dict(os.environ, **({} if daemon_uid is None else {
        "ROCADE_DAEMON_UID": str(daemon_uid)}))
    try:
        done = subprocess.run([status_program(), "--socket", socket, "--json"], text=True,
                              capture_output=True, env=env, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, "cannot run rocade-status: %s" % error
    if done.returncode == 0:
        return json.loads(done.stdout), None
    return None, (done.stderr.splitlines() or ["no error"])[0].replace("rocade-status: ", "", 1)


def pci_facts(address):
    """Returns what the kernel has of a PCI device, or None if there is none."""
    path = os.path.join(PCI, address)
    if not os.path.isdir(path):
        return None
    return {"driver": hostinfo.driver_of(path), "interfaces": hostinfo.interfaces_of(path),
            "iommu": os.path.exists(os.path.join(path, "iommu_group"))}


def cores():
    """Returns the number of cores that this process may use, and of the cgroup's quota."""
    quota = None
    group = hostinfo.field(read("/proc/self/cgroup", ""), "0:") or "/"
    for path in ("/sys/fs/cgroup%s/cpu.max" % group, "/sys/fs/cgroup/cpu.max"):
        words = (read(path, "") or "").split()
        if len(words) == 2 and words[0].isdigit():
            quota = int(words[0]) / int(words[1])
            break
    return len(os.sched_getaffinity(0)), quota


def hardware():
    cpuinfo = read("/proc/cpuinfo", "")
    count, quota = cores()
    return {"architecture": platform.machine(), "flags": hostinfo.cpu_flags(cpuinfo),
            "vendor": hostinfo.field(cpuinfo, "vendor_id") or "",
            "clock": hostinfo.clock_source(), "cores": count, "quota": quota,
            "governor": hostinfo.governor(min(os.sched_getaffinity(0)))}


def memfd_error():
    """Returns why this process cannot share memory with the daemon, or None."""
    try:
        os.close(os.memfd_create("rocade-doctor"))
    except OSError as error:
        return error.strerror
    return None


def the_daemon(found, socket, env):
    """Returns which of the running daemons listens at the socket, or None."""
    for daemon in found:
        default = "/run/rocade.sock" if daemon.uid == 0 else os.path.join(
            env.get("XDG_RUNTIME_DIR") or "/nonexistent", "rocade.sock")
        if os.path.realpath(daemons.option(daemon, "socket", default)) == os.path.realpath(socket):
            return daemon
    return None


def listener_pid(path, pids):
    """Returns which of these processes has the listening socket with this path. Needs their
    /proc/PID/fd: root, or their user."""
    inodes = [words[6] for words in map(str.split, (read("/proc/net/unix", "") or "").splitlines())
              if len(words) == 8 and words[7] == path]
    for pid in pids:
        folder = "/proc/%d/fd" % pid
        try:
            if any(os.readlink(os.path.join(folder, name)) in ["socket:[%s]" % i for i in inodes]
                   for name in os.listdir(folder)):
                return pid
        except OSError:
            continue
    return None


def planned(options):
    """Returns the daemon that the options describe, which does not run yet, or None."""
    space = daemons.space_of("/proc/self")
    if options.config:
        return daemons.parse([], read(options.config, ""), space=space)
    if options.dev:
        return daemons.parse(["-a", options.dev, "--"], space=space)
    if options.interface:
        return daemons.parse(["--vdev", "net_af_packet0,iface=" + options.interface, "--no-huge",
                              "--"], space=space)
    return None


def gather(options):
    """Returns all facts. options: of the command line."""
    uid = os.geteuid()
    socket = socket_path(options.socket, os.environ, uid)
    found = daemons.running()
    pid = listener_pid(socket, [one.pid for one in found])
    ours = next((one for one in found if one.pid == pid), None) or the_daemon(
        found, socket, os.environ)
    plan = planned(options)
    port = plan or ours
    state, error = status(socket, options.daemon_uid)
    memory, free_mib = hostinfo.hugepages()
    return SimpleNamespace(
        uid=uid, socket=socket, socket_file=socket_facts(socket), status=state,
        status_error=error, daemons=found, daemon=ours, port=port,
        is_planned=plan is not None,
        space=daemons.space_of("/proc/self"), cpu=hardware(), hugepages=memory,
        hugepages_free_mib=free_mib, iommu_groups=hostinfo.iommu_groups(),
        noiommu=hostinfo.noiommu(), memfd_error=memfd_error(),
        pci=pci_facts(port.device) if port and port.kind == "pci" else None,
        links=hostinfo.rows("-details", "address", "show"),
        files_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        daemon_limits=read("/proc/%d/limits" % ours.pid) if ours and ours.pid else None,
        nft=hostinfo.run("nft", "--json", "list", "ruleset"),
        iptables={name: hostinfo.run(name + "-save") for name in ("iptables", "ip6tables")})
