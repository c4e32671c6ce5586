# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the path to other hosts: the neighbour answers, UDP port 4791 passes, packets of the
path MTU arrive."""

import ipaddress

import daemons
from check_net import HEADERS, PATH_MTUS, device_mtu, link_of, path_mtu_of
from finding import good, note, unknown, wrong

SMALL = 84  # bytes of an IP packet that every network carries


def networks(f):
    """Returns the device's addresses with their prefixes, as it was started, or is to be."""
    return daemons.networks(f.port)


def next_hop(f, peer):
    """Returns the own address, and the host on the link that leads to the peer; (None, None): no
    network of the port, and no router."""
    nets = [net for net in networks(f) if net.version == peer.version]
    for net in nets:
        if peer in net.network:
            return net.ip, peer
    router = daemons.gateway(f.port, peer.version)
    for net in nets:
        if router is not None and (router in net.network or router.is_link_local):
            return net.ip, router
    return None, None


def largest(answers, limit):
    """Returns the largest path MTU whose packets are answered, 0 for none."""
    for one in PATH_MTUS:
        if one <= limit and answers(one + HEADERS):
            return one
    return 0


def peer(f, text, wire):
    """Returns the findings on the path to one host. wire: a Probe."""
    target = ipaddress.ip_address(text)
    own, hop = next_hop(f, target)
    if own is None:
        return [wrong("path", "%s is in no network of the port (%s), and there is no router to it" % (
            text, ", ".join(str(net) for net in networks(f)) or "no address"),
            "rocaded ... --gateway%d ADDRESS" % target.version)]
    mac = wire.neighbour(own, hop)
    if mac is None:
        what = "ARP" if target.version == 4 else "neighbour discovery"
        return [wrong("neighbours", "%s does not answer %s on %s: it is off, on another link or "
                      "VLAN, or has another address" % (
                          hop if hop == target else "the router %s" % hop, what, f.port.interface),
                      "rocade-doctor  # at %s" % text,
                      "tcpdump -ni %s arp or icmp6" % f.port.interface)]
    out = [good("neighbours", "%s is at %s" % (hop, mac.hex(":")))]
    pings = wire.echo(mac, own, target, SMALL)
    if wire.roce(mac, own, target):
        out.append(good("path", "%s answers at UDP port 4791" % text))
    elif pings:
        out.append(wrong("path", "%s answers ping, and does not answer at UDP port 4791: a firewall "
                         "on the way drops it, or no daemon or RDMA device has this address" % text,
                         "nft list ruleset  # at each host and router on the way",
                         "rocade-status  # at %s" % text))
    else:
        out.append(wrong("path", "%s answers neither ping nor UDP port 4791" % text,
                         "rocade-doctor  # at %s" % text))
    return out + (mtu(f, text, target, lambda size: wire.echo(mac, own, target, size))
                  if pings else [unknown("mtu", "%s does not answer ping, which measures the path "
                                         "MTU" % text)])


def mtu(f, text, target, answers):
    link = link_of(f)
    limit = path_mtu_of(device_mtu(f) or (link["mtu"] if link else 1500))
    found = largest(answers, limit)
    if found == limit:
        return [good("mtu", "packets of path MTU %d arrive at %s and back" % (limit, text))]
    if found == 0:
        return [note("mtu", "%s answers short pings only, so that the path MTU is not known" % text)]
    return [wrong("mtu", "packets of path MTU %d do not arrive at %s or back, those of %d arrive: "
                  "an interface or switch on the way, or the other host's port, carries less than %d "
                  "bytes" % (limit, text, found, limit + HEADERS),
                  "ip link set dev INTERFACE mtu %d  # on the way" % (limit + HEADERS),
                  "ib_send_bw -m %d  # or a smaller path MTU" % found)]


def check(f, peers, connect):
    """connect(): returns a Probe, or raises OSError."""
    if not peers:
        return [good("path", "no --peer is given: the path to other hosts was not looked at")]
    if f.port is None or f.port.kind != "net_af_packet":
        return [unknown("path", "the path is looked at over ports of net_af_packet only; for others "
                        "let a program try it", "rocade-run rping -c -v -C 1 -a %s" % peers[0])]
    if f.port.space not in (None, f.space):
        return [unknown("path", "the daemon is in another network namespace",
                        "nsenter --net=/proc/%s/ns/net rocade-doctor" % f.port.pid)]
    try:
        wire = connect()
    except PermissionError:
        return [unknown("path", "only root may send what finds out about the path",
                        "sudo rocade-doctor --peer %s" % peers[0])]
    except OSError as error:
        return [unknown("path", "cannot send on %s: %s" % (f.port.interface, error.strerror))]
    try:
        return [one for text in peers for one in peer(f, text, wire)]
    finally:
        wire.close()
