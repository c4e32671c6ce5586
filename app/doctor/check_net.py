# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the port's interface, its MTU, and this host's firewall. Each takes the facts and
returns findings."""

import daemons
import firewall
from finding import good, note, unknown, wrong

# Bytes of the largest packet beside its payload.
HEADERS = 88
PATH_MTUS = (4096, 2048, 1024, 512, 256)
# Hooks of netfilter that frames of the daemon's port pass. The sockets of net_af_packet get a
# frame before all hooks but those of "netdev egress" see it.
PASSED = {"net_tap": ("forward", "prerouting", "postrouting", "ingress", "egress"),
          "net_af_packet": ("egress",), "net_af_xdp": ("egress",)}


def path_mtu_of(port_mtu):
    """Returns the largest path MTU that fits a port MTU."""
    return next((one for one in PATH_MTUS if one + HEADERS <= port_mtu), 0)


def device_mtu(f):
    """Returns the IP MTU of the device, as it is or is going to be; None: not known."""
    if f.status is not None and f.port == f.daemon:
        return f.status["device"]["mtu"]
    text = daemons.option(f.port, "mtu")
    return int(text) if text and text.isdigit() else None


def link_of(f):
    return next((one for one in f.links if one.get("ifname") == f.port.interface), None)


def interface(f):
    """The kernel's interface below the port exists, is up, and has a link."""
    if f.port is None or f.port.interface is None or f.port.kind == "net_tap":
        return [good("interface", "no port needs an interface of the kernel")]
    name, link = f.port.interface, link_of(f)
    if f.port.space not in (None, f.space):
        return [unknown("interface", "the daemon is in another network namespace",
                        "nsenter --net=/proc/%s/ns/net rocade-doctor" % f.port.pid)]
    if link is None:
        return [wrong("interface", "there is no interface %s" % name, "ip -brief link")]
    if "UP" not in link["flags"]:
        return [wrong("interface", "the interface %s is down" % name,
                      "ip link set dev %s up" % name)]
    if "NO-CARRIER" in link["flags"]:
        return [wrong("interface", "the interface %s has no link: its cable, or the other end, is "
                      "down" % name, "ip -details link show dev %s" % name)]
    return [good("interface", "the interface %s is up" % name)]


def mtu(f):
    """The interface carries the frames of the port, and the port those of a useful path MTU."""
    want = device_mtu(f) if f.port else None
    out = []
    if want is not None and f.port.kind != "local" and path_mtu_of(want) < 1024:
        out.append(wrong("mtu", "the port's MTU of %d leaves a path MTU of %d: other hosts use at "
                         "least 1024, which needs 1112" % (want, path_mtu_of(want)),
                         "rocaded ... --mtu 1112"))
    if f.port is None or f.port.interface is None or f.port.space not in (None, f.space) or \
            link_of(f) is None:
        return out or [good("mtu", "no interface of the kernel limits the MTU")]
    name, has = f.port.interface, link_of(f)["mtu"]
    if want is not None and has < want:
        out.append(wrong("mtu", "the interface %s has an MTU of %d, the daemon's port one of %d: "
                         "longer frames are lost" % (name, has, want),
                         "ip link set dev %s mtu %d" % (name, want)))
    elif path_mtu_of(want or has) < 4096:
        out.append(note("mtu", "the path MTU is %d; 4096, which needs an MTU of 4184 all along the "
                        "path, takes less time for long messages" % path_mtu_of(want or has),
                        "ip link set dev %s mtu 4184" % name, "rocaded ... --mtu 4184"))
    return out or [good("mtu", "the path MTU is %d" % path_mtu_of(want or has))]


def firewall_rules(f):
    """No rule of this host drops what the port sends or receives."""
    if f.nft is None and all(text is None for text in f.iptables.values()):
        if f.uid != 0:
            return [unknown("firewall", "only root may read the firewall's rules",
                            "sudo rocade-doctor")]
        return [good("firewall", "this host has neither nft nor iptables")]
    out = []
    kind = f.port.kind if f.port else "none"
    try:
        found = firewall.drops(f.nft, f.iptables)
    except (KeyError, TypeError, ValueError) as error:
        return [unknown("firewall", "cannot understand the firewall's rules (%r)" % error,
                        "nft list ruleset")]
    for one in found:
        sentence = "the firewall drops UDP port 4791 in %s (%s)" % (one.hook, one.text)
        if one.hook in PASSED.get(kind, ()):
            out.append(wrong("firewall", sentence, one.command))
        else:
            out.append(note("firewall", sentence + ": RDMA devices of the kernel need it, the "
                            "daemon's port does not pass it", one.command))
    return out or [good("firewall", "no rule of this host drops UDP port 4791")]


CHECKS = (interface, mtu, firewall_rules)
