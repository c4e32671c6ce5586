#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/field.sh between two hosts, network namespaces with a net_af_packet port each on one
bridge, and a network for the control connection: the report and the page, a pingpong with a device
that stands for an RNIC, other programs on the control connection, an end that is killed or interrupted,
and wrong options."""

import json
import os
import re
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import process  # noqa: E402
from daemon import CLIENTS, LIBRARY, RUN, Daemon  # noqa: E402
from process import Process, until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import SCRATCH, SOURCE, add_space, eal, ip, is_root  # noqa: E402

KIT = os.path.join(SOURCE, "tools", "field.sh")
SIDES = ("left", "right")
ADDRESS = {"left": "192.0.2.1", "right": "192.0.2.2"}
RNIC = "192.0.2.9"  # of the device that stands for an RNIC of the right host
CONTROL = {"left": "198.51.100.1", "right": "198.51.100.2"}
PORT = 7590
PCI = "0000:3b:00.0"
FRAMES = "qpairs=1,framecnt=1024,blocksz=20480,framesz=5120"
MTU = 4200


def network():
    """Adds a namespace for each host, and one with the bridge between their ports. Returns them."""
    spaces = {side: add_space(side) for side in SIDES}
    wire = add_space("wire")
    ip("-n", wire, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    ip("-n", wire, "link", "set", "br0", "mtu", str(MTU), "up")
    for port, side in (("left", "left"), ("right", "right"), ("rnic", "right")):
        name = "rnic0" if port == "rnic" else "eth0"
        ip("-n", spaces[side], "link", "add", name, "mtu", str(MTU), "type", "veth", "peer",
           "name", port, "mtu", str(MTU), "netns", wire)
        ip("-n", spaces[side], "link", "set", name, "up")
        ip("-n", wire, "link", "set", port, "master", "br0", "up")
    ip("-n", spaces["left"], "link", "add", "mgmt", "type", "veth", "peer", "name", "mgmt",
       "netns", spaces["right"])
    for side in SIDES:
        ip("-n", spaces[side], "address", "add", CONTROL[side] + "/24", "dev", "mgmt")
        ip("-n", spaces[side], "link", "set", "mgmt", "up")
        ip("-n", spaces[side], "link", "set", "lo", "up")
        ip("-n", spaces[side], "route", "add", "default", "via", CONTROL["left"], "dev", "mgmt")
    return spaces


def folder(name):
    path = os.path.join(SCRATCH, name)
    os.makedirs(path, exist_ok=True)
    return path


def arguments(side, port=None):
    other = SIDES[1 - SIDES.index(side)]
    cpus = sorted(os.sched_getaffinity(0))
    return [side, "--control", "%s:%d" % (CONTROL["left"], PORT),
            *(port or ["--vdev", "net_af_packet0,iface=eth0," + FRAMES]),
            "--addr", ADDRESS[side] + "/24", "--peer", ADDRESS[other],
            "--core", str(cpus[SIDES.index(side) % len(cpus)]), "--quick"]


class End(Process):
    def __init__(self, spaces, side, *options, port=None):
        super().__init__(["ip", "netns", "exec", spaces[side], KIT, *arguments(side, port),
                          "--build", CLIENTS, *options], env=dict(os.environ, TMPDIR=folder(side)))


def state(spaces, side):
    """Returns what a run must leave as it was: MTU and flags of the interface, temporary files and
    processes of the host."""
    link = json.loads(ip("-json", "-n", spaces[side], "link", "show", "eth0"))[0]
    return (link["mtu"], sorted(link["flags"]), os.listdir(folder(side)),
            process.run(["ip", "netns", "pids", spaces[side]]).stdout.split())


# ---- Other programs on the control connection ----

OTHERS = """
import json, socket, sys
def talk(data):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 20) as s:
        s.settimeout(20)
        answer = b""
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while True:
                more = s.recv(4096)
                if not more: break
                answer += more
        except OSError: # left has closed the connection with data in it
            pass
        print(json.dumps(answer.decode()), flush=True)
hello = {"kit": "rocade-field", "format": 1, "version": sys.argv[3], "side": "right",
         "addr": "192.0.2.2", "peer": "192.0.2.1"}
talk(b"GET / HTTP/1.0\\r\\n\\r\\n")
talk(b"x" * 40000)
for change in ({"side": "left"}, {"version": "9.9.9"}, {"format": 2}, {"addr": "192.0.2.3"},
               {"kit": "x"}, {"run": "reboot"}):
    talk(json.dumps({**hello, **change}).encode() + b"\\n")
"""


def others(spaces, version):
    """Returns what left says to each of them."""
    done = process.run(["ip", "netns", "exec", spaces["right"], sys.executable, "-c", OTHERS,
                        CONTROL["left"], str(PORT), version], 60, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_others(answers, left):
    words = ("", "", "both ends are left", "versions differ: left is", "versions differ",
             "addresses do not match", "no field kit", "")
    case("left refuses other programs, another left, another version and other addresses, says why, and "
         "goes on waiting", len(answers) == len(words) and all(
             word in answer and bool(word) == bool(answer) for word, answer in
             zip(words, answers)) and left.text.count("refused a connection") == len(words),
         (answers, left.text))


# ---- A device that stands for an RNIC ----

def rnic_sysfs():
    """Makes a sysfs with an RDMA device."""
    sysfs = folder("sysfs-rnic")
    for name, value in (("parent", "rnic0"), ("ports/1/state", "4: ACTIVE"),
                        ("ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:c000:0209"),
                        ("ports/1/gid_attrs/types/0", "RoCE v2")):
        path = os.path.join(sysfs, "class/infiniband/rnic0", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(value + "\n")
    return sysfs


def rnic_programs(daemon):
    """Makes a folder with an ibv_rc_pingpong that runs on the device of the daemon when the right
    end asks for that. In its place an RNIC's host has the kernel's device."""
    path = os.path.join(folder("bin"), "ibv_rc_pingpong")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\ncase \" $* \" in\n*\" -d rnic0 \"*) exec %s --library %s --socket "
                   "%s /usr/bin/ibv_rc_pingpong \"$@\" ;;\nesac\n"
                   "exec /usr/bin/ibv_rc_pingpong \"$@\"\n" % (RUN, LIBRARY, daemon.socket))
    os.chmod(path, 0o755)
    return os.path.dirname(path)


def right_with_rnic(spaces, daemon):
    """Starts right without its shell script, which puts /usr/bin first."""
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
               PATH=rnic_programs(daemon) + ":" + os.environ["PATH"])
    return Process(["ip", "netns", "exec", spaces["right"], sys.executable, os.path.join(
        SOURCE, "tools/field/field.py"), *arguments("right"), "--build", CLIENTS, "--scratch",
        folder("scratch"), "--sys", rnic_sysfs()], env=env)


# ---- Groups of cases ----

def whole_run(spaces):
    version = process.run([os.path.join(CLIENTS, "app/testpmd/rocade-testpmd"), "--", "-V"],
                          check=True).stdout.split()[-1]
    before = [state(spaces, side) for side in SIDES]
    out = folder("whole")
    left = End(spaces, "left", "--out", out)
    left.wait_line("waiting")
    answers = others(spaces, version)
    with Daemon("--address", RNIC + "/24", "--name", "rnic0", "--mtu", "4184", space=spaces["right"], eal=eal(
            1, "net_af_packet1,iface=rnic0," + FRAMES, memory_mb=256)) as daemon:
        right = right_with_rnic(spaces, daemon)
        codes = [left.wait(150), right.wait(20)]
    check_others(answers, left)
    case("both ends end with status 0 and PASS", codes == [0, 0] and
         left.text.rstrip().endswith("PASS") and right.text.rstrip().endswith("PASS"),
         (codes, left.text, right.text))
    after = [state(spaces, side) for side in SIDES]
    case("the hosts are as before", before == after, (before, after))
    if not os.path.exists(os.path.join(out, "field-left.json")):
        case("left writes a report", False, left.text)
        return
    with open(os.path.join(out, "field-left.json"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(out, "field-left.md"), encoding="utf-8") as file:
        page = file.read()
    check_report(json.loads(text), version)
    check_page(json.loads(text), page)
    private = [socket.gethostname(), *ADDRESS.values(), *CONTROL.values(), RNIC, SCRATCH]
    # A host may be called as short as "vm".
    found = [word for word in private if re.search(r"\b%s\b" % re.escape(word), text + page)] + \
        re.findall(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", text + page)
    case("report and page have no host name, path, IP or MAC address", not found, found)


def check_report(report, version):
    case("the report says what it is", [report[key] for key in (
        "kit", "format", "rocade", "quick", "result", "reason", "path_mtu")] ==
        ["rocade-field", 1, version, True, "pass", None, 4096], report)
    case("it has the facts of both hosts", list(report["ends"]) == list(SIDES) and all(
        end["facts"]["cores"] > 0 and end["facts"]["device"] == "net_af_packet" and
        end["facts"]["interface_mtu"] == MTU and end["facts"]["memory_mib"] > 0
        for end in report["ends"].values()), report["ends"])
    rows = report["measurements"]
    got = sorted((row["case"], row["from"]) for row in rows)
    case("it has rate and bandwidth in both directions, latency and loss", got == [
        ("bandwidth", "left"), ("bandwidth", "right"), ("latency", "left"), ("loss", "left"),
        ("rate", "left"), ("rate", "right")], got)
    case("all payload was verified", all(
        row["result"] == "pass" and row["verified"] and row["bad_bytes"] == 0 and
        row["bytes_verified"] == row["bytes"] > 0 for row in rows), rows)
    case("all rates are above 0", all(
        row["messages_per_s"] > 0 and row["gbps"] > 0 and row["seconds"] > 0 and
        row["frames_sent"] > 0 and 0 <= row["lost_share"] < 1 for row in rows), rows)
    by = {row["case"]: row for row in rows}
    latency = by["latency"]["latency_us"]
    case("the latency has percentiles", 0 < latency["min"] <= latency["p50"] <= latency["p99"] <=
         latency["p999"] <= latency["max"], latency)
    loss = by["loss"]
    # 1 % of the frames that the port received, of which it has the others.
    share = loss["dropped_on_purpose"] / (loss["dropped_on_purpose"] + loss["frames_received"])
    case("1 % was lost on purpose and sent again", 0.003 < share < 0.03 and
         loss["retransmits"] > 0, loss)
    pingpongs = [(one["device_end"], one["result"], one["device"], one["driver"])
                 for one in report["interop"]]
    case("a pingpong with the RDMA device of right passes; left has none", pingpongs == [
        ("left", "not present", None, None), ("right", "pass", "rnic0", "rdma_rxe")] and
        report["interop"][0]["reason"] and report["interop"][1]["usec_per_round"] > 0,
        report["interop"])


def check_page(report, page):
    titles = [row["title"] for row in report["measurements"]]
    case("the page has every measurement, and the verdict", "Result: **pass**" in page and all(
        "| %s | " % title in page for title in titles) and "What this page contains" in page, page)


def gone(spaces):
    """Right is killed while left measures."""
    before = state(spaces, "left")
    out = folder("gone")
    left = End(spaces, "left", "--out", out)
    left.wait_line("waiting")
    right = End(spaces, "right")
    left.wait_line("measure")
    right.kill()
    status = left.wait(30)
    with open(os.path.join(out, "field-left.json"), encoding="utf-8") as file:
        report = json.load(file)
    case("when right is killed left ends with status 1, and reports what it has", status == 1 and
         report["result"] == "fail" and "the other end has ended" in report["reason"] and
         report["path_mtu"] == 4096 and len(report["ends"]) == 2, (status, report, left.text))
    after = state(spaces, "left")
    case("the host of left is as before", before == after, (before, after))


def interrupted(spaces):
    """Left is interrupted, as by Ctrl-C, while right waits for it."""
    left = End(spaces, "left")
    left.wait_line("waiting")
    right = End(spaces, "right")
    left.wait_line("path")
    os.killpg(left.pid, signal.SIGINT)
    codes = [left.wait(30), right.wait(30)]
    case("an interrupted left ends with status 130, and right with 1", codes == [130, 1] and
         "the other end has ended" in right.text, (codes, left.text, right.text))
    pids = [process.run(["ip", "netns", "pids", space]).stdout for space in spaces.values()]
    case("both leave no process", pids == ["", ""], pids)


def pci_sysfs(interface, name):
    """Makes a sysfs with a NIC that has this interface."""
    sysfs = folder("sysfs-" + name)
    device = os.path.join(sysfs, "bus/pci/devices", PCI)
    os.makedirs(os.path.join(device, "net", interface), exist_ok=True)
    os.symlink("../../drivers/ixgbe", os.path.join(device, "driver"))
    return sysfs


class Kernel(threading.Thread):
    """Does on a sysfs of files what the kernel does when the kit writes to it: binds the NIC."""

    def __init__(self, sysfs):
        super().__init__(daemon=True)
        self.bus = os.path.join(sysfs, "bus/pci")
        self.device = os.path.join(self.bus, "devices", PCI)
        self.drivers = ["ixgbe"]  # that the NIC has had
        self.over = threading.Event()
        os.makedirs(os.path.join(self.device, "iommu_group"))
        for driver in ("ixgbe", "vfio-pci"):
            os.makedirs(os.path.join(self.bus, "drivers", driver))

    def written(self, name):
        """Returns what was written to the file since the last time."""
        path = os.path.join(self.bus, name)
        try:
            with open(path, encoding="utf-8") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    def run(self):
        driver = os.path.join(self.device, "driver")
        while not self.over.wait(0.01):
            unbind = "drivers/%s/unbind" % self.drivers[-1]
            if self.written(unbind) and os.path.islink(driver):
                os.unlink(os.path.join(self.bus, unbind))
                os.unlink(driver)
            if self.written("drivers_probe") and not os.path.islink(driver):
                os.unlink(os.path.join(self.bus, "drivers_probe"))
                self.drivers.append(self.written("devices/%s/driver_override" % PCI))
                os.symlink("../../drivers/" + self.drivers[-1], driver)


def lent(spaces):
    """Right lends its NIC, and is interrupted as soon as the NIC has left its driver."""
    sysfs = pci_sysfs("eth0", "lent")
    kernel = Kernel(sysfs)
    kernel.start()
    left = End(spaces, "left", "--out", folder("lent"))
    left.wait_line("waiting")
    right = End(spaces, "right", "--bind", "--sys", sysfs, port=["--dev", PCI])
    right.wait_line("dpdk-devbind.py --bind=ixgbe " + PCI)
    until(lambda: "vfio-pci" in kernel.drivers, 10)
    os.killpg(right.pid, signal.SIGINT)
    codes = [left.wait(30), right.wait(30)]
    kernel.over.set()
    kernel.join(5)
    case("an interrupted end gives its NIC back, and ends with status 130; the other one with 1",
         codes == [1, 130] and kernel.drivers == ["ixgbe", "vfio-pci", "ixgbe"] and
         not kernel.written("devices/%s/driver_override" % PCI) and
         "is with ixgbe again" in right.text, (codes, kernel.drivers, left.text, right.text))


def refusals(spaces):
    mgmt, eth0 = pci_sysfs("mgmt", "default"), pci_sysfs("eth0", "idle")
    nic = ["--dev", PCI]
    for name, status, word, options, port in (
            ("the NIC of the default route is not lent", 3, "interface mgmt carries the default "
             "route", ["--bind", "--sys", mgmt], nic),
            ("a NIC of the kernel needs --bind", 3, "give --bind", ["--sys", eth0], nic),
            ("without an IOMMU a NIC is not lent", 3, "needs an IOMMU", ["--bind", "--sys", eth0],
             nic),
            ("a missing NIC", 3, "no PCI device", [], nic),
            ("left waits no longer than --wait", 3, "right has not connected within 1 s",
             ["--wait", "1"], None),
            ("left on another host's address", 3, "Give left an address of its own",
             ["--control", CONTROL["right"] + ":7590"], None),
            ("an address of another network", 2, "--peer", ["--peer", "203.0.113.1"], None),
            ("a control address without a port", 2, "HOST:PORT", ["--control", "x"], None),
            ("--bind of a virtual device", 2, "--bind needs --dev", ["--bind"], None),
            ("an unknown option", 2, "--fast", ["--fast"], None),
            ("a directory that does not exist", 2, "/nonexistent", ["--out", "/nonexistent"],
             None)):
        end = End(spaces, "left", *options, port=port)
        got, text = end.finish(30)
        lines = [line for line in text.splitlines() if not line.startswith("waiting")]
        case("%s: status %d and one line" % (name, status), got == status and len(lines) == 1 and
             word in lines[0], (got, text))
    end = End(spaces, "right", "--wait", "1")
    got, text = end.finish(30)
    case("right without left ends with status 3", got == 3 and "Start left first" in text,
         (got, text))
    done = process.run([KIT, "--help"])
    case("--help prints the usage", done.returncode == 0 and "Exit status" in done.stdout,
         done.stdout)


def main():
    if not is_root():
        return run(lambda: skip("field", "needs root"))
    spaces = network()
    return run(lambda: whole_run(spaces), lambda: gone(spaces), lambda: interrupted(spaces),
               lambda: lent(spaces), lambda: refusals(spaces))


if __name__ == "__main__":
    sys.exit(main())
