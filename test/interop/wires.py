# SPDX-License-Identifier: BSD-3-Clause
"""Rocade's end of the bridge br0: how a program opens a port of each driver, and how that port is
joined to the bridge. A wire belongs to one run of a program:

    with wires.OF["net_tap"](mtu) as wire:
        program = Process([..., *wire.eal(), *wire.device(), ...])
        wire.join(program)   # once the port is open"""

from bond import PORT, Leg, bond_eal, plugged
from testpmd import eal, ip, plug

INTERFACE = "ours0"  # a veth, whose other end CABLE is in the bridge
CABLE = "cable0"


def add_cable():
    ip("link", "add", INTERFACE, "type", "veth", "peer", "name", CABLE)
    ip("link", "set", CABLE, "master", "br0", "up")
    ip("link", "set", INTERFACE, "up")


class Wire:
    """mtu: of the port."""

    def __init__(self, mtu):
        self.mtu = mtu

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def eal(self):
        raise NotImplementedError

    def device(self):
        """Returns the options of the matrix that choose the port."""
        return ["mtu=%d" % self.mtu]

    def join(self, program):
        """To be called when the program has opened the port."""


class AfPacket(Wire):
    def __init__(self, mtu):
        super().__init__(mtu)
        for name in (INTERFACE, CABLE):  # Rocade's driver may have changed it
            ip("link", "set", name, "mtu", str(mtu))

    def eal(self):
        size = next(size for size in (2048, 2560, 5120) if self.mtu < size - 128)
        return eal(0, "net_af_packet0,iface=%s,qpairs=1,framecnt=1024,blocksz=%d,framesz=%d" % (
            INTERFACE, 4096 if size == 2048 else 20480, size), memory_mb=256)


class AfXdp(AfPacket):
    def eal(self):
        return eal(0, "net_af_xdp0,iface=" + INTERFACE, memory_mb=256)


class Tap(Wire):
    def eal(self):
        return eal(0, "net_tap0,iface=port", memory_mb=256)

    def join(self, program):
        plug(None, "port", "br0")


class Bond(Wire):
    """Each member has a process of its own at the other end."""

    def __enter__(self):
        for name in ("leg0", "leg1"):
            plugged(None, name)
        self.legs = [Leg(None, number) for number in (0, 1)]
        return self

    def __exit__(self, *_):
        for leg in self.legs:
            leg.kill()
            ip("link", "del", leg.interface)

    def eal(self):
        return bond_eal(self.legs)

    def device(self):
        return super().device() + ["port=%d" % PORT]


OF = {"net_af_packet": AfPacket, "net_af_xdp": AfXdp, "net_tap": Tap, "net_bonding": Bond}
