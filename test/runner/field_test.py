#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/field: what the control connection refuses, NICs that are refused, lent and given back, by
a sysfs of this test, RDMA devices that are found, verdicts, and what the page hides."""

import contextlib
import os
import socket
import sys
import tempfile

sys.dont_write_bytecode = True
TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools")
sys.path[:0] = [os.path.join(TOOLS, "field"), os.path.join(TOOLS, "lib")]
import cases  # noqa: E402
import channel  # noqa: E402
import check  # noqa: E402
import end  # noqa: E402
import interop  # noqa: E402
import nic  # noqa: E402
import plan  # noqa: E402
import report as reports  # noqa: E402
import traffic  # noqa: E402
from program import Failed  # noqa: E402

PCI = "0000:3b:00.0"
ROUTES = {"-4": [{"dst": "default", "dev": "br0"}, {"dst": "198.51.100.0/24", "dev": "eth2"}],
          "-6": [{"dst": "fe80::/64", "dev": "eth3"}, {"dst": "default", "nexthops": [
              {"dev": "eth4"}]}]}


def refused(call, *arguments, **more):
    """Returns the sentence with which the call fails, or None."""
    try:
        call(*arguments, **more)
    except Failed as error:
        return str(error)
    return None


# ---- NICs ----

def write(folder, name, value=""):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(value)


class Nic(nic.Nic):
    """A NIC in a sysfs of files, on which write() does what the kernel does."""

    def __init__(self, folder, interface="eth0", driver="ixgbe", stubborn=False):
        self.interface, self.own, self.stubborn = interface, driver, stubborn
        self.override = ""
        write(folder, "bus/pci/devices/%s/iommu_group" % PCI)
        for name in ("ixgbe", "vfio-pci"):
            os.makedirs(os.path.join(folder, "bus/pci/drivers", name), exist_ok=True)
        super().__init__(PCI, folder)
        self.take(driver)

    def take(self, driver):
        link = os.path.join(self.path, "driver")
        if os.path.islink(link):
            os.unlink(link)
        folder = os.path.join(self.path, "net", self.interface)
        if os.path.isdir(folder):
            os.rmdir(folder)
        if driver:
            os.symlink("../../drivers/" + driver, link)
        if driver == self.own:
            os.makedirs(folder)

    def write(self, path, value):
        if path.endswith("driver_override"):
            self.override = value.strip()
        elif path.endswith("unbind"):
            self.take(None)
        elif path == "drivers_probe" and self.driver() is None:
            driver = self.override or self.own
            if not (self.stubborn and driver == "vfio-pci"):
                self.take(driver)


def carries(interface, *layout, functions=None):
    """Why a NIC with this interface is refused, among ROUTES."""
    with tempfile.TemporaryDirectory() as folder:
        one = Nic(folder, interface)
        for name in layout:
            write(folder, "class/net/" + name)
        if functions:
            write(one.path, "sriov_numvfs", functions)
        return refused(one.check, ["203.0.113.9"], "vfio-pci")


def fake_rows(*arguments):
    if arguments[:2] == ("route", "get"):
        return [{"dst": arguments[2], "dev": "eth5"}]
    if arguments[1:2] == ("route",):
        return ROUTES[arguments[0]]
    if arguments == ("address", "show"):
        return [{"ifname": "eth6", "addr_info": [{"scope": "global", "local": "192.0.2.9"}]},
                {"ifname": "eth7", "addr_info": [{"scope": "link", "local": "fe80::1"}]}]
    return []


def lent(**options):
    """The driver of a NIC while it is lent, after it was given back, and why it is not lent."""
    with tempfile.TemporaryDirectory() as folder:
        one = Nic(folder, "eth7", **options)
        with contextlib.redirect_stdout(None):
            why = refused(one.bind, "vfio-pci")
            now = one.driver()
            one.unbind()
        return now, one.driver(), one.interfaces(), one.override, why


def nics():
    nic.rows = fake_rows
    nic.run = lambda *_: None
    nic.WAIT_S = 0.3
    os.environ.pop("SSH_CONNECTION", None)
    with tempfile.TemporaryDirectory() as folder:
        one = Nic(folder, "eth7")
        os.unlink(os.path.join(one.path, "iommu_group"))
        no_iommu = refused(one.check, [], "vfio-pci"), one.driver()
    begin = "%s stays with the kernel: " % PCI
    return [
        ("an unused NIC may leave the kernel", carries("eth7"), None),
        ("link-local routes do not hold a NIC", carries("eth3"), None),
        ("the default route through a bridge holds its NIC", carries("eth0", "eth0/upper_br0"),
         begin + "its interface eth0 (through br0) carries the default route"),
        ("a default route of several next hops holds a NIC", carries("eth4"),
         begin + "its interface eth4 carries the default route"),
        ("a route holds a NIC", carries("eth2"), begin + "its interface eth2 carries a route"),
        ("the control connection holds a NIC", carries("eth5"),
         begin + "its interface eth5 carries the control connection"),
        ("an address holds a NIC", carries("eth6"),
         begin + "its interface eth6 carries an address"),
        ("virtual functions hold a NIC", carries("eth7", functions="4"),
         begin + "it has 4 virtual functions, which would end"),
        ("a NIC is lent and given back", lent(), ("vfio-pci", "ixgbe", ["eth7"], "", None)),
        ("a NIC that vfio-pci does not take is given back", lent(stubborn=True)[1:4],
         ("ixgbe", ["eth7"], "")),
        ("without an IOMMU a NIC is not lent", (no_iommu[0] or "")[:24] + no_iommu[1],
         "vfio-pci needs an IOMMU,ixgbe"),
        ("a missing PCI device is refused", refused(nic.Nic, PCI, "/nonexistent") is None, False)]


# ---- The control connection ----

def exchange(data, close=True):
    """Returns what a channel makes of the data."""
    ends = tcp_pair()
    with ends[1]:
        ends[1].sendall(data)
        if close:
            ends[1].shutdown(socket.SHUT_WR)
        one = channel.Channel(ends[0])
        try:
            return one.receive(0.3)
        except Failed as error:
            return "%s: %s" % (type(error).__name__, error)
        finally:
            one.close()


def tcp_pair():
    listener = socket.create_server(("127.0.0.1", 0))
    with listener:
        other = socket.create_connection(listener.getsockname(), 5)
        return listener.accept()[0], other


class Idle:
    """An end that must not be asked for anything."""

    steps = end.STEPS

    def ask(self, step, **_):
        raise AssertionError(step)


def ordered(message):
    """What right makes of a message of left."""
    ends = tcp_pair()
    with ends[1]:
        one = channel.Channel(ends[0])
        other = channel.Channel(ends[1])
        other.send(message)
        try:
            return end.serve(Idle(), one)
        except Failed as error:
            return type(error).__name__
        finally:
            one.close()


def step(name, **arguments):
    return {"do": name, "with": arguments}


def connection():
    run = {"case": "rate", "role": "send", "path_mtu": 1024}
    return [
        ("a message arrives", exchange(b'{"a": 1}\n{"b'), {"a": 1}),
        ("an end of file is the end", exchange(b'{"a"'), "Gone: the other end has ended"),
        ("no message in time is the end", exchange(b"", False)[:5], "Gone:"),
        ("text that is no JSON is refused", exchange(b"GET / HTTP/1.0\n"),
         "Unexpected: a message that is no JSON"),
        ("JSON that is no object is refused", exchange(b"[1]\n")[:11], "Unexpected:"),
        ("a message that nests deeply is refused", exchange(b"[" * 20000 + b"\n")[:11],
         "Unexpected:"),
        ("a message without end is refused", exchange(b"x" * 40000, False)[:11], "Unexpected:"),
        ("the last step has a verdict", ordered(step("end", verdict="pass")), "pass"),
        ("a verdict of another kind is refused", ordered(step("end", verdict="x")), "Unexpected"),
        ("an unknown step is refused", ordered(step("close")), "Unexpected"),
        ("a step that is no name is refused", ordered({"do": ["check"], "with": {}}),
         "Unexpected"),
        ("an unknown case is refused", ordered(step("start", **{**run, "case": "; reboot"})),
         "Unexpected"),
        ("another path MTU is refused", ordered(step("start", **{**run, "path_mtu": True})),
         "Unexpected"),
        ("a field too many is refused", ordered(step("start", **run, options="-x")),
         "Unexpected"),
        ("a field too few is refused", ordered(step("start", case="rate")), "Unexpected"),
        ("a text cannot be Markdown or HTML", channel.text("<b>|`[x]"), "?b????x?"),
        ("a long text is refused", refused(channel.text, "x" * 301) is None, False),
        ("NaN is refused", refused(channel.number(), float("nan")) is None, False),
        ("a number out of range is refused", refused(channel.number(), -1) is None, False),
        ("too many counters are refused", refused(
            channel.counters, {"a%d" % i: 1 for i in range(65)}) is None, False),
        ("a counter with another name is refused", refused(channel.counters, {"a b": 1}) is None,
         False),
        ("an address and a port", [channel.endpoint(one) for one in (
            "192.0.2.1:7590", "[2001:db8::1]:7590")],
         [("192.0.2.1", 7590), ("2001:db8::1", 7590)]),
        ("facts of this host pass the check", refused(
            channel.record(check.FACTS), {**check.host_facts(0), "device": "x", "driver": None,
                                          "numa_node_of_device": None, "pcie": None,
                                          "link_mbps": -1, "interface_mtu": 1500,
                                          "rdma_devices": "none"}), None)]


# ---- Results ----

GOOD = {**traffic.failure("x"), "reason": None, "messages": 10, "bytes": 640, "seconds": 1.0,
        "rate": 10.0, "bytes_verified": 640, "frames_sent": 1000, "frames_received": 980,
        "dropped_on_purpose": 10, "path_mtu": 1024}


def judged(name="rate", **changes):
    return plan.problem(name, GOOD, {**GOOD, **changes})


def verdict(**changes):
    report = reports.new("1.0", True)
    report["measurements"] = [{"result": "pass"}]
    report.update(changes)
    return plan.verdict(report)


def page():
    report = reports.new("1.0", True)
    report["ends"]["left"] = {"facts": {key: "fact" for key in check.FACTS},
                              "warnings": ["busy"]}
    report["path"].append({"path_mtu": 1024, "result": "pass", "reason": None})
    report["measurements"].append(plan.row("rate", "left", 1024, GOOD, GOOD))
    report["reason"] = traffic.hidden("192.0.2.1 or 2001:db8::2 stopped answering")
    return reports.page(report)


def results():
    text = page()
    return [
        ("a good run passes", judged(), None),
        ("a run without messages fails", judged(messages=0), "no message arrived"),
        ("a byte that was not verified fails the run", (judged(bytes_verified=639) or "")[:13],
         "wrong payload"),
        ("a wrong byte fails the run", (judged(bad_bytes=1) or "")[:13], "wrong payload"),
        ("a run that need not verify passes", judged("rate_unverified", bytes_verified=0), None),
        ("loss on purpose must happen", judged("loss", dropped_on_purpose=0),
         "no frame was dropped on purpose"),
        ("frames lost beside those on purpose", plan.row("loss", "left", 1024, GOOD,
                                                         GOOD)["lost_share"], 0.01),
        ("all passed", verdict(), "pass"),
        ("nothing measured", verdict(measurements=[]), "fail"),
        ("a failed measurement", verdict(measurements=[{"result": "fail"}]), "fail"),
        ("a failed pingpong", verdict(interop=[{"result": "fail"}]), "fail"),
        ("no RDMA device", verdict(interop=[{"result": "not present"}]), "pass"),
        ("the other end has gone", verdict(reason="gone"), "fail"),
        ("the page hides addresses", ("192.0.2.1" in text, "2001:db8" in text,
                                      "(address) or (address) stopped" in text),
         (False, False, True)),
        ("a reason has no path", traffic.hidden("cannot run /home/me/b/app: no 1/2 of it"),
         "cannot run (path): no 1/2 of it"),
        ("the page has the measurement", "| SEND 64 B, 8 QPs | left | pass |" in text, True),
        ("the page has a row for each fact", sum(
            line.startswith("| ") and " | fact | " in line for line in text.splitlines()),
         len(check.FACTS))]


# ---- RDMA devices ----

def rdma(wanted=None, **changes):
    one = {"state": "4: ACTIVE", "type": "RoCE v2", "gid": "0000:0000:0000:0000:0000:ffff:c000:0209",
           **changes}
    with tempfile.TemporaryDirectory() as folder:
        device = os.path.join(folder, "class/infiniband/rxe0")
        write(device, "parent", "eth0")
        write(device, "ports/1/state", one["state"])
        for index, kind, gid in ((0, "IB/RoCE v1", one["gid"]), (1, "RoCE v2", "fe80::1"),
                                 (10, one["type"], one["gid"])):
            write(device, "ports/1/gids/%d" % index, gid)
            write(device, "ports/1/gid_attrs/types/%d" % index, kind)
        found, why = interop.find("192.0.2.2/24", wanted, folder)
        return (found.name, found.port, found.gid_index, found.driver) if found else \
            why.split(" has ")[0]


def devices():
    nothing = "no RDMA device of the kernel"
    return [
        ("a RoCE v2 GID in the network is found", rdma(), ("rxe0", 1, 10, "rdma_rxe")),
        ("by name too", rdma("rxe0"), ("rxe0", 1, 10, "rdma_rxe")),
        ("another name", rdma("mlx5_0"), "there is no RDMA device mlx5_0"),
        ("a port that is down", rdma(state="1: DOWN"), nothing),
        ("RoCE v1 only", rdma(type="IB/RoCE v1"), nothing),
        ("another network", rdma(gid="0000:0000:0000:0000:0000:ffff:c633:6401"), nothing),
        ("the address under test", rdma(gid="0000:0000:0000:0000:0000:ffff:c000:0202"), nothing),
        ("a host without devices", interop.find("192.0.2.2/24", None, "/nonexistent")[1],
         nothing)]


if __name__ == "__main__":
    sys.exit(cases.run(connection() + results() + devices() + nics()))
