#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-testpmd over net_bonding, active-backup. Its members are two net_virtio_user ports. The
other end of each is a process of its own (lib/bond.py), joined to a bridge. Under traffic the
process of the active member is killed: the other member takes over, and every message arrives,
verified.

    rocade-testpmd, bond --- net_virtio_user --- dpdk-testpmd --- leg0 --+
                         `-- net_virtio_user --- dpdk-testpmd --- leg1 --+-- bridge -- rocade-testpmd
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import ports  # noqa: E402
from bond import PORT, Leg, bond_eal, plugged  # noqa: E402
from process import until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import Testpmd, add_space, eal, ip, is_root, verified  # noqa: E402

V4 = ["192.0.2.1", "192.0.2.2"]
ROW = ports.Row("net_bonding")


def bond(space, legs, *options):
    program = Testpmd(["--port", str(PORT), "--addr", V4[0] + "/24", "--peer", V4[1]] +
                      list(options), bond_eal(legs), space=space)
    program.expect(r"^port 2: \w+, \d+ QPs", 20)
    return program


def other(space, *options):
    program = Testpmd(["--addr", V4[1] + "/24", "--peer", V4[0]] + list(options),
                      eal(0, "net_af_packet0,iface=host", memory_mb=256), space=space)
    program.expect(r"^port 0: \w+, \d+ QPs", 20)
    return program


def messages(program):
    found = re.findall(r"([\d,]+) messages", program.text)
    return int(found[-1].replace(",", "")) if found else 0


def carries(space, leg):
    """Returns the frames that have reached the bridge by this leg."""
    shown = ip("-n", space, "-s", "link", "show", leg.interface + "b")
    return int(re.search(r"RX:.*\n\s+\d+\s+(\d+)", shown).group(1))


def failover(mode):
    """The bond sends (mode send) or receives."""
    space = add_space(mode)
    ip("-n", space, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
    ip("-n", space, "link", "set", "br0", "up")
    for name in ("leg0", "leg1", "host"):
        plugged(space, name)
    legs = [Leg(space, number) for number in (0, 1)]
    options = ["-q", "4", "-s", "64,1000,4096", "-t", "5", "--timeout", "16"]
    modes = [mode, "send" if mode == "sink" else "sink"]
    ends = [bond(space, legs, "--mode", modes[0], *options),
            other(space, "--mode", modes[1], *options)]
    case("%s: the primary member carries the traffic" % mode,
         until(lambda: messages(ends[0]) > 100, 30) and carries(space, legs[0]) > 5 >
         carries(space, legs[1]), ends[0].tail() + ends[1].tail())
    legs[0].kill()
    at, others = messages(ends[0]), carries(space, legs[1])
    codes = [program.wait(90) for program in ends]
    others = carries(space, legs[1]) - others
    print("# killed after %d messages; then %d frames by the other member" % (at, others))
    case("%s: the member's process is killed under traffic, and the other member takes over" % mode,
         others > 20, ends[0].tail() + ends[1].tail())
    legs[1].kill()
    ROW.saw(ends[0].text)
    good = codes == [0, 0]
    sent, got = [ends[modes.index(one)].json() for one in ("send", "sink")] if good else (None,) * 2
    case("%s: every message arrives verified" % mode, good and verified(got) and
         got["messages"] == sent["messages"] > at,
         "%s\n%s\n%s" % (codes, ends[0].tail(), ends[1].tail()))
    if good:
        print("# %d retransmissions, %.1f s" % (sent["retransmits"], sent["seconds"]))


def main():
    if not is_root():
        return run(lambda: skip("net_bonding", "needs root"))
    return run(lambda: failover("send"), lambda: failover("sink"), ROW.case)


if __name__ == "__main__":
    sys.exit(main())
