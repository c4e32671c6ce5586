#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""doctor_test.py SOURCE: the checks of rocade-doctor (app/doctor) on recorded facts, each with a
good and a bad one."""

import copy
import os
import re
import sys
from types import SimpleNamespace

sys.dont_write_bytecode = True
SOURCE = sys.argv[1]
sys.path[:0] = [os.path.join(SOURCE, "app/doctor"), os.path.join(SOURCE, "tools/lib")]
import cases  # noqa: E402
import check_daemon  # noqa: E402
import check_host  # noqa: E402
import check_net  # noqa: E402
import daemons  # noqa: E402
import facts as doctor_facts  # noqa: E402

AF_PACKET = ["-m", "256", "--vdev", "net_af_packet0,iface=eth1,qpairs=1", "--no-huge", "--",
             "--address", "192.0.2.1/24,2001:db8::1/64", "--mtu=4184", "--sleep-us", "200"]
NIC = ["-a", "0000:3b:00.0", "-m512", "--", "--address", "192.0.2.1/24"]
OF_NIC = {"driver": "vfio-pci", "interfaces": [], "iommu": True}
CPU = {"architecture": "x86_64", "vendor": "GenuineIntel", "clock": "tsc", "cores": 4,
       "quota": None, "governor": None,
       "flags": {"sse4_2", "pclmulqdq", "avx512f", "vpclmulqdq"}}
STATUS = {"device": {"name": "rocade0", "mtu": 4184, "local": False,
                     "addresses": ["192.0.2.1", "2001:db8::1", "fe80::1"]},
          "port": {"link_up": True, "drop_icrc": 0},
          "limits": {"qps": {"user": 100}, "descriptors": {"user": 1000, "used": 2}},
          "users": [{"uid": 1000, "qps": 99, "refused": 0}],
          "clients": [{"rx_full": 0, "name": "x", "engine": {"ack_timeouts": 0}}], "departed": {}}
LINK = {"ifname": "eth1", "flags": ["UP", "LOWER_UP"], "mtu": 4200,
        "addr_info": [{"local": "198.51.100.1"}]}
SPACE = "net:[1]"


def one(words, pid=10, space=SPACE, uid=0):
    return daemons.parse(words, "", pid, uid, space)


def recorded(**changes):
    """Facts of a host on which nothing is wrong, with these changes."""
    daemon = one(AF_PACKET)
    known = {"uid": 1000, "socket": "/run/rocade.sock", "socket_file": {"uid": 0, "mode": 0o666},
             "status": copy.deepcopy(STATUS), "status_error": None, "daemons": [daemon],
             "daemon": daemon, "port": daemon, "is_planned": False, "space": SPACE, "cpu": CPU,
             "hugepages": "none", "hugepages_free_mib": 0, "noiommu": False, "memfd_error": None,
             "pci": None, "links": [copy.deepcopy(LINK)], "files_limit": 1024,
             "daemon_limits": "Max open files            65536                65536     files\n",
             "nft": None, "iptables": {"iptables": "", "ip6tables": ""}}
    return SimpleNamespace(**{**known, **changes})


def says(check, **changes):
    """The verdicts of a check."""
    return [finding.verdict for finding in check(recorded(**changes))]


def sentence(check, **changes):
    """The sentence and the commands of the first finding."""
    first = check(recorded(**changes))[0]
    return "; ".join([first.verdict, first.sentence, *first.type])


def has(text, *words):
    return [word for word in words if word not in text]


def state(**changes):
    return {**copy.deepcopy(STATUS), **changes}


# ---- The daemon ----

def no_status(error, **changes):
    return sentence(check_daemon.daemon, status=None, status_error=error, **changes)


def the_daemon():
    absent = "no daemon answers at /run/rocade.sock: No such file or directory"
    elsewhere = one(["--local", "--socket", "/tmp/x.sock"], 11)
    return [
        ("a daemon answers", says(check_daemon.daemon), ["ok"]),
        ("no daemon", has(no_status(absent, daemons=[], daemon=None, socket_file=None),
                          "wrong; ", "there is no such socket", "rocaded --local &"), []),
        ("a socket that a daemon has left", has(no_status(absent, daemons=[], daemon=None),
                                                "has ended"), []),
        ("a daemon that hangs", has(no_status(absent), "the daemon 10 has the socket",
                                    "kill -CONT 10"), []),
        ("a daemon at another socket", has(no_status(absent, daemons=[elsewhere], daemon=None),
                                           "export ROCADE_SOCKET=/tmp/x.sock"), []),
        ("no daemon yet", no_status(absent, is_planned=True)[:5], "note;"),
        ("a socket without permission", has(no_status("permission denied at /run/rocade.sock: ..."),
                                            "of user 0 with mode 666", "--socket-mode"), []),
        ("another user's daemon", has(no_status("the daemon at /x is of user 5, expected root"),
                                      "is of user 5", "rocade-run --daemon-uid 5"), []),
        ("a daemon of another version", has(no_status(
            "the daemon at /x has version 7 of the protocol, expected 8: start"), "version 7",
            "kill 10"), []),
        ("an error of another kind", no_status("cannot run rocade-status: x")[:6], "wrong;")]


def others():
    def verdicts(*more, **changes):
        return says(check_daemon.other_daemons, daemons=[one(AF_PACKET), *more], **changes)

    nic = one(NIC)
    return [
        ("one daemon", verdicts(), ["ok"]),
        ("another local daemon", verdicts(one(["--local"], 11)), ["note"]),
        ("another one at the same interface", verdicts(one(AF_PACKET, 11)), ["wrong"]),
        ("the same in another namespace", verdicts(one(AF_PACKET, 11, "net:[2]")), ["note"]),
        ("in a namespace that this user may not know", verdicts(one(AF_PACKET, 11, None)),
         ["wrong"]),
        ("another one with the same address", verdicts(one(
            ["--vdev", "net_tap0", "--", "--address", "192.0.2.1/24"], 11)), ["wrong"]),
        ("another one with other addresses", verdicts(one(
            ["--vdev", "net_tap0", "--", "--address", "192.0.2.9/24"], 11)), ["note"]),
        ("two daemons of one NIC", says(check_daemon.other_daemons, daemon=nic, port=nic, daemons=[
            nic, one(NIC, 11, "net:[2]")]), ["wrong"])]


def gids_and_counters():
    counters, gids = check_daemon.counters, check_daemon.gids
    held = {**LINK, "addr_info": [{"local": "192.0.2.1"}]}
    return [
        ("a device with addresses", says(gids), ["ok"]),
        ("a device with a link-local address only", has(sentence(gids, status=state(device={
            **STATUS["device"], "addresses": ["fe80::1"]})), "wrong", "--address"), []),
        ("the kernel has the address too", has(sentence(gids, links=[held]), "wrong",
                                               "ip address del 192.0.2.1 dev eth1"), []),
        ("which a local device does not mind", says(gids, links=[held], status=state(device={
            **STATUS["device"], "local": True})), ["ok"]),
        ("without a daemon GIDs are unknown", says(gids, status=None), ["unknown"]),
        ("no counter has risen", says(counters), ["ok"]),
        ("without a daemon counters are unknown", says(counters, status=None), ["unknown"]),
        ("a port without a link", has(sentence(counters, status=state(port={"link_up": False})),
                                      "wrong", "ip link set dev eth1 up"), []),
        ("a counter of the port", has(sentence(counters, status=state(port={
            "link_up": True, "drop_icrc": 3})), "note", "drop_icrc is 3"), []),
        ("a counter of two clients, and of those that have gone", has(sentence(
            counters, status=state(clients=[{"rx_full": 1}, {"rx_full": 2}],
                                   departed={"rx_full": 4})), "rx_full is 7"), []),
        ("copies that rocade-dump has lost", says(counters, status=state(clients=[
            {"name": "rocade-dump", "rx_full": 9}])), ["ok"]),
        ("a counter of an engine", has(sentence(counters, status=state(clients=[
            {"engine": {"ack_timeouts": 5}}])), "ack_timeouts is 5", "--peer"), []),
        ("losses on purpose are said to be", has(sentence(counters, status=state(
            impair={"loss_ppm": 1, "seed": 1})), "on purpose: the daemon was started with --impair"), []),
        ("without them nothing is said", says(counters, status=state(
            impair={"loss_ppm": 0, "seed": 1, "lost": 0})), ["ok"]),
        ("every counter exists", unknown_counters(), [])]


def unknown_counters():
    text = "".join(open(os.path.join(SOURCE, path), encoding="utf-8").read() for path in (
        "lib/base/base_stats.def", "lib/switch/sw_stats.def"))
    known = {("drop_" if "DROP" in kind else "") + name for kind, name in re.findall(
        r"^(\w*(?:STAT|ERROR|DROP))\((\w+)", text, re.M)}
    return [name for _, name, _, _ in check_daemon.COUNTERS if name not in known]


# ---- The machine ----

def port(words, **changes):
    """Facts of a port that does not run yet."""
    plan = one(words, None)
    return {"port": plan, "daemon": None, "daemons": [], "is_planned": True, "status": None,
            "pci": OF_NIC, **changes}


def memory():
    huge, iommu, bindings = check_host.hugepages, check_host.iommu, check_host.bindings
    lent = {**OF_NIC, "driver": "ixgbe", "interfaces": ["eth3"], "iommu": False}
    return [
        ("a port without hugepages", says(huge, **port(AF_PACKET)), ["ok"]),
        ("no port", says(huge, port=None), ["ok"]),
        ("a daemon that has its hugepages", says(huge, daemon=one(NIC), port=one(NIC)), ["ok"]),
        ("enough hugepages", says(huge, **port(NIC, hugepages_free_mib=512)), ["ok"]),
        ("too few hugepages, others in use: the total goes up", has(sentence(huge, **port(
            NIC, hugepages="12 of 612 of 2048 KiB free", hugepages_free_mib=24)),
            "echo 888 >/sys"), []),
        ("too few hugepages", has(sentence(huge, **port(NIC, hugepages_free_mib=511)), "wrong",
                                  "512 MiB", "511 MiB", "echo 288 >"), []),
        ("a NIC in an IOMMU group", says(iommu, **port(NIC)), ["ok"]),
        ("a port that needs no IOMMU", says(iommu), ["ok"]),
        ("a NIC that the kernel shares", says(iommu, **port(NIC, pci={
            **lent, "driver": "mlx5_core"})), ["ok"]),
        ("a NIC without an IOMMU", has(sentence(iommu, **port(NIC, pci=lent)), "wrong",
                                       "intel_iommu=on"), []),
        ("the same of another vendor", has(sentence(iommu, **port(
            NIC, pci=lent, cpu={**CPU, "vendor": "AuthenticAMD"})), "amd_iommu=on"), []),
        ("vfio without an IOMMU", says(iommu, **port(NIC, pci=lent, noiommu=True)), ["note"]),
        ("a NIC that is bound to DPDK", says(bindings, **port(NIC)), ["ok"]),
        ("a port that is no NIC", says(bindings), ["ok"]),
        ("a NIC that the kernel has", has(sentence(bindings, **port(NIC, pci=lent)), "wrong",
                                          "ixgbe (interface eth3)", "--bind=vfio-pci 0000:3b"), []),
        ("a NIC without a driver", has(sentence(bindings, **port(NIC, pci={
            **OF_NIC, "driver": None})), "wrong", "no driver"), []),
        ("a NIC that is not there", has(sentence(bindings, **port(NIC, pci=None)), "wrong",
                                        "there is no PCI device"), [])]


def the_cpu():
    cpu, cores = check_host.cpu, check_host.cores
    polling = one([word for word in AF_PACKET if word not in ("--sleep-us", "200")])
    return [
        ("a CPU with all features", says(cpu), ["ok"]),
        ("a CPU without the fast CRC", says(cpu, cpu={**CPU, "flags": {"sse4_2", "pclmulqdq"}}),
         ["note"]),
        ("a CPU without what DPDK needs", has(sentence(cpu, cpu={**CPU, "flags": set()}), "wrong",
                                              "sse4_2, pclmulqdq"), []),
        ("a clock that is not trusted", says(cpu, cpu={**CPU, "clock": "hpet"}), ["note"]),
        ("an arm64 CPU", says(cpu, cpu={**CPU, "architecture": "aarch64", "clock": "arch_sys_counter",
                                        "flags": {"crc32"}}), ["ok"]),
        ("one without CRC instructions", says(cpu, cpu={**CPU, "architecture": "aarch64",
                                                        "flags": set()}), ["wrong"]),
        ("enough cores", says(cores), ["ok"]),
        ("one core, and a daemon that polls", has(sentence(cores, port=polling, cpu={
            **CPU, "cores": 1}), "wrong", "--sleep-us 200"), []),
        ("one core, and a daemon that sleeps", says(cores, cpu={**CPU, "cores": 1}), ["note"]),
        ("a cgroup with half a core", has(sentence(cores, port=polling, cpu={**CPU, "quota": 0.5}),
                                          "wrong", "0.5 cores"), []),
        ("a slow governor", says(cores, cpu={**CPU, "governor": "powersave"}), ["note"])]


def the_limits():
    check = check_host.limits
    few = "Max open files            1024                 4096                 files\n"
    return [
        ("no limit is reached", says(check), ["ok"]),
        ("no shared memory", has(sentence(check, memfd_error="Operation not permitted"), "wrong",
                                 "memfd_create"), []),
        ("few open files", says(check, files_limit=64), ["note"]),
        ("a daemon with too few files", has(sentence(check, daemon_limits=few, status=state(limits={
            "descriptors": {"user": 2000, "used": 1000}})), "wrong", "prlimit --pid 10"), []),
        ("a user who holds all", has(sentence(check, status=state(users=[
            {"uid": 1000, "qps": 100}])), "wrong", "100 of 100 qps"), []),
        ("a user who was refused", says(check, status=state(users=[
            {"uid": 1000, "qps": 1, "refused": 2}])), ["note"]),
        ("without a daemon", says(check, status=None, daemon=None, daemon_limits=None), ["ok"])]


# ---- The interface ----

def link(**changes):
    return [{**LINK, **changes}]


def the_interface():
    interface, mtu = check_net.interface, check_net.mtu
    tap = one(["--vdev", "net_tap0,iface=rc0", "--", "--mtu", "1000"])
    return [
        ("an interface that is up", says(interface), ["ok"]),
        ("no interface", says(interface, port=None), ["ok"]),
        ("an interface that is not there", has(sentence(interface, links=[]), "wrong",
                                               "no interface eth1"), []),
        ("an interface that is down", has(sentence(interface, links=link(flags=[])), "wrong",
                                          "ip link set dev eth1 up"), []),
        ("an interface without a link", says(interface, links=link(flags=["UP", "NO-CARRIER"])),
         ["wrong"]),
        ("an interface of another namespace", says(interface, space="net:[2]"), ["unknown"]),
        ("an interface with the port's MTU", says(mtu, links=link(mtu=4184)), ["ok"]),
        ("with a smaller one", has(sentence(mtu, links=link(mtu=4183)), "wrong",
                                   "ip link set dev eth1 mtu 4184"), []),
        ("a port of a small path MTU", says(mtu, status=state(device={
            **STATUS["device"], "mtu": 1500})), ["note"]),
        ("a port whose path MTU no other host uses", says(mtu, port=tap, links=[]), ["wrong"]),
        ("no port", says(mtu, port=None), ["ok"])]


# ---- Command lines ----

CONFIG = """
# comment
[daemon]
local = no
socket = /run/x.sock
[eal]
m = 512
in-memory =
vdev = net_af_packet0,iface=eth1
[port]
address = 192.0.2.1/24, 2001:db8::1/64
mtu = 4184 # of eth1
gateway4 = 192.0.2.254
"""


def command_lines():
    daemon = daemons.parse([], CONFIG)
    later = daemons.parse(["--vdev=net_tap3,iface=rc0", "--", "--socket=/y", "--gateway4", "x"],
                          CONFIG)
    return [
        ("a configuration file", (daemon.kind, daemon.interface, daemon.memory_mb, daemon.huge),
         ("net_af_packet", "eth1", 512, True)),
        ("its addresses", [str(net) for net in daemons.networks(daemon)],
         ["192.0.2.1/24", "2001:db8::1/64"]),
        ("its routers", [str(daemons.gateway(daemon, 4)), daemons.gateway(daemon, 6)],
         ["192.0.2.254", None]),
        ("a value without the comment behind it", daemons.option(daemon, "mtu"), "4184"),
        ("options come last", daemons.option(later, "socket"), "/y"),
        ("a router that is no address", daemons.gateway(later, 4), None),
        ("a local daemon", one(["--local"]).kind, "local"),
        ("local = yes", daemons.parse([], "[daemon]\nlocal = yes\n").kind, "local"),
        ("a daemon of a NIC", (one(NIC).kind, one(NIC).device, one(NIC).memory_mb),
         ("pci", "0000:3b:00.0", 512)),
        ("a daemon whose port is not known", one(["--config", "/x"]).kind, "none"),
        ("the socket that was given", doctor_facts.socket_path("/x", {"ROCADE_SOCKET": "/y"}, 1),
         "/x"),
        ("the socket of the environment", doctor_facts.socket_path(
            None, {"ROCADE_SOCKET": "/y"}, 1), "/y"),
        ("root's socket", doctor_facts.socket_path(None, {"XDG_RUNTIME_DIR": SOURCE}, 0),
         "/run/rocade.sock")]


if __name__ == "__main__":
    sys.exit(cases.run(the_daemon() + others() + gids_and_counters() + memory() + the_cpu() +
                       the_limits() + the_interface() + command_lines()))
