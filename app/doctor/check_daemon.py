# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the daemons: the one at the socket, the other ones, its GIDs, its counters. Each takes
the facts and returns findings."""

import ipaddress
import re

import daemons
from finding import good, note, unknown, wrong


def daemon(f):
    """A daemon of the right user and version answers at the socket."""
    if f.status is not None:
        device = f.status["device"]
        return [good("daemon", "a daemon answers at %s: device %s, %s" % (
            f.socket, device["name"], "this machine only" if device["local"] else "with a port"))]
    error = f.status_error
    if "permission denied" in error:
        owner = f.socket_file
        what = "" if owner is None else " of user %d with mode %03o" % (owner["uid"], owner["mode"])
        return [wrong("daemon", "the socket %s%s does not let user %d attach. The user of the "
                      "daemon decides: start it with --socket-mode 666, or 660 and a group" % (
                          f.socket, what, f.uid), "rocaded ... --socket-mode 666")]
    match = re.search(r"is of user (\d+), expected", error)
    if match:
        return [wrong("daemon", "the daemon at %s is of user %s, and a client trusts only a daemon "
                      "of root and of its own user: the daemon can read all that clients send"
                      % (f.socket, match[1]),
                      "rocade-run --daemon-uid %s PROGRAM  # if you trust that user" % match[1])]
    if "of the protocol" in error:
        return [wrong("daemon", error, "kill %s" % (f.daemon.pid if f.daemon else "PID_OF_ROCADED"),
                      "rocaded ...  # as before")]
    if "no daemon answers" not in error:
        return [wrong("daemon", error)]
    if f.is_planned:
        return [note("daemon", "no daemon answers at %s yet" % f.socket)]
    return [no_daemon(f)]


def no_daemon(f):
    others = [one for one in f.daemons if one != f.daemon]
    if f.daemon is not None:
        return wrong("daemon", "the daemon %d has the socket %s and does not answer: it is stopped "
                     "or hangs" % (f.daemon.pid, f.socket), "kill -CONT %d" % f.daemon.pid)
    if others:
        one = others[0]
        socket = daemons.option(one, "socket")
        return wrong("daemon", "no daemon answers at %s. The daemon %d of user %s listens at %s"
                     % (f.socket, one.pid, one.uid, socket or "its user's default socket"),
                     "export ROCADE_SOCKET=%s" % socket if socket else
                     "rocade-doctor --socket /run/rocade.sock")
    why = "there is no such socket" if f.socket_file is None else \
        "the daemon that made this socket has ended"
    return wrong("daemon", "no daemon answers at %s: %s" % (f.socket, why), "rocaded --local &")


def in_one_space(one, other):
    """Whether both are in one network namespace, as far as this user may know."""
    return None in (one.space, other.space) or one.space == other.space


def shared(one, other):
    """Returns what both daemons have and only one can use, or None."""
    if one.kind == "pci" and one.kind == other.kind and one.device == other.device:
        return "the NIC " + one.device
    if "local" in (one.kind, other.kind) or not in_one_space(one, other):
        return None
    if one.interface and one.interface == other.interface:
        return "the interface " + one.interface
    same = {net.ip for net in daemons.networks(one)} & {net.ip for net in daemons.networks(other)}
    return "the address %s" % min(same, key=str) if same else None


def other_daemons(f):
    """No other daemon has the port or the addresses of the one at the socket."""
    out = []
    for one in f.daemons:
        if one == f.daemon:
            continue
        both = shared(f.port, one) if f.port else None
        if both:
            out.append(wrong("daemons", "the daemon %d has %s, too: both answer for it" % (
                one.pid, both), "kill %d" % one.pid))
        else:
            socket = daemons.option(one, "socket", "the default socket of user %s" % one.uid)
            out.append(note("daemons", "another daemon, %d of user %s, listens at %s: a program "
                            "reaches it by --socket" % (one.pid, one.uid, socket)))
    return out or [good("daemons", "there is no other daemon")]


def gids(f):
    """The device has addresses that other hosts can send to."""
    if f.status is None:
        return [unknown("gids", "no daemon tells its addresses")]
    addresses = [ipaddress.ip_address(text) for text in f.status["device"]["addresses"]]
    usable = [str(one) for one in addresses if not one.is_link_local]
    if not usable:
        return [wrong("gids", "the device has the link-local address %s only: other networks and "
                      "IPv4 programs cannot reach it" % ", ".join(str(one) for one in addresses),
                      "rocaded ... --address 192.0.2.1/24")]
    local = f.status["device"]["local"]
    held = {info["local"]: link["ifname"] for link in f.links
            for info in link.get("addr_info", []) if "local" in info}
    out = [wrong("gids", "the kernel has the address %s of the device, too, on %s: it answers "
                 "packets to UDP port 4791 with errors" % (one, held[one]),
                 "ip address del %s dev %s" % (one, held[one]))
           for one in usable if one in held and not local]
    return out or [good("gids", "GID 0 is %s" % usable[0])]


# Counters of the daemon, its port, its clients: what each says, and what to type.
COUNTERS = (
    ("port", "drop_icrc", "packets arrived damaged: a middlebox changes addresses or ports (RoCEv2 "
     "passes no NAT), or a wire is bad", ()),
    ("port", "drop_vlan", "frames of another VLAN arrived: give both ends the same --vlan", ()),
    ("port", "drop_fragment", "a router fragments packets: choose a smaller path MTU",
     ("ib_send_bw -m 1024",)),
    ("port", "drop_ip_checksum", "packets with a wrong IPv4 checksum arrived: turn the sender's "
     "offload off", ()),
    ("client", "rx_full", "a program did not poll in time, and packets to it were dropped: it needs a "
     "core, or a larger ring", ("rocaded ... --client-ring 4096",)),
    ("client", "drop_no_route", "packets were for an address of no network of the port: give a "
     "router", ("rocaded ... --gateway4 ADDRESS",)),
    ("client", "drop_unresolved", "packets were for hosts that did not answer ARP or ND",
     ("rocade-doctor --peer ADDRESS",)),
    ("client", "drop_source_address", "a QP sent from an address that the daemon does not have any "
     "more: connect it again", ()),
    ("client", "drop_no_link", "packets were sent while the port had no link", ()),
    ("engine", "retries_exceeded", "QPs failed because a peer did not answer: its program has ended, or "
     "packets to it are lost", ("rocade-doctor --peer ADDRESS",)),
    ("engine", "rnr_retries_exceeded", "QPs failed because the peer had no receive posted: post receives "
     "before the peer sends", ()),
    ("engine", "ack_timeouts", "requests were not acknowledged in time: packets are lost, or a peer "
     "does not answer", ("rocade-doctor --peer ADDRESS",)),
    ("engine", "drop_qpn", "packets for QPs that do not exist arrived: the peer has an old QP "
     "number", ()),
    ("engine", "rnr_nak_sent", "receives ran out: post more of them", ()),
)


def totals(state):
    """Returns the counters by where they are counted, summed over clients."""
    # A copy that rocade-dump loses is missing in its file only.
    clients = [one for one in state.get("clients", []) if one.get("name") != "rocade-dump"]
    rows = {"port": [state.get("port", {})], "client": clients + [state.get("departed", {})],
            "engine": [one.get("engine", {}) for one in clients]}
    return {where: {name: sum(row.get(name, 0) for row in found)
                    for name in {name for row in found for name in row}
                    if all(isinstance(row.get(name, 0), int) for row in found)}
            for where, found in rows.items()}


def counters(f):
    """No counter of losses has risen, and the port has a link."""
    if f.status is None:
        return [unknown("counters", "no daemon tells its counters")]
    out = []
    port = f.status.get("port")
    if port and not port["link_up"]:
        interface = f.port.interface if f.port else None
        out.append(wrong("counters", "the port has no link%s" % (
            "" if interface is None else ": the interface %s, or the cable" % interface),
            *(["ip link set dev %s up" % interface] if interface else [])))
    impair = f.status.get("impair", {})
    if any(value for name, value in impair.items() if name.endswith("_ppm")):
        out.append(note("counters", "packets are lost, duplicated, reordered or corrupted on purpose: the daemon "
                        "was started with --impair"))
    found = totals(f.status)
    for where, name, sentence, commands in COUNTERS:
        count = found[where].get(name, 0)
        if count:
            out.append(note("counters", "%s is %d: %s" % (name, count, sentence), *commands))
    return out or [good("counters", "no counter of losses has risen")]


CHECKS = (daemon, other_daemons, gids, counters)
