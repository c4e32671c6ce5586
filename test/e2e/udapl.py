#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""uDAPL's dtest and dtestsrq through `rocaded --local`, by its provider over RDMA-CM. The daemon's
counters prove that Rocade carried the bytes."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from daemon import Daemon, both, wait_for_port  # noqa: E402
from process import until  # noqa: E402
from rows import row  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import add_space, ip, is_root  # noqa: E402

ADDRESS = "192.0.2.1"
PROVIDER = 'rocade u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "%s 0" ""\n' % ADDRESS
PORT = 15828  # at which dtest's server tells its client, over TCP, where to connect
LIMIT_S = 90


def pair(daemon, program, *options):
    command = ["stdbuf", "-oL", program, "-P", "rocade", *options]
    server = daemon.start(*command, "-s")
    if program == "dtest":
        wait_for_port(PORT, server, LIMIT_S, daemon.space)
    else:
        daemon.wait_listener(server)
    return both(server, daemon.start(*command, "-h", ADDRESS), LIMIT_S)


def program_case(daemon, least, said, result, program, *options):
    """said: what both ends print when all has passed."""
    before, start = daemon.moved(), time.monotonic()
    served, status, text = pair(daemon, program, *options)
    took, left = time.monotonic() - start, not until(daemon.idle)
    moved = daemon.moved() - before
    name = " ".join([program, *options])
    case(name, served == 0 and status == 0 and text.count(said) == 2 and moved >= least and not left,
         "server %s, client %s, %d of %d bytes, left %s\n%s" % (served, status, moved, least, left, text))
    row("uDAPL's `%s`" % name, "dapl2-utils", "RC over RDMA-CM, one host", took, moved, result)


def udapl():
    if not is_root():
        skip("uDAPL", "needs root")
        return
    # dtest uses the device's address for its TCP connection, too.
    space = add_space("udapl")
    ip("-n", space, "link", "set", "lo", "up")
    ip("-n", space, "address", "add", ADDRESS + "/32", "dev", "lo")
    with Daemon(space=space) as daemon:
        daemon.env["DAT_OVERRIDE"] = os.path.join(daemon.dir, "dat.conf")
        with open(daemon.env["DAT_OVERRIDE"], "w", encoding="ascii") as file:
            file.write(PROVIDER)
        program_case(daemon, 64 << 20, "DAPL Test Complete. PASSED", "completed", "dtest", "-b",
                     "65536")
        program_case(daemon, 4096, "DAPL RC SRQ Test Complete.", "completed", "dtestsrq", "-c", "4")


if __name__ == "__main__":
    sys.exit(run(udapl))
