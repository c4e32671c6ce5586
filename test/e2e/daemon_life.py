#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rocaded over a port, apart from plain traffic: VLAN tags, multicast, a new configuration at run
time, termination, sleep, RDMA-CM."""

import os
import re
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import limit  # noqa: E402
import process  # noqa: E402
from daemon import ROCADED, STATUS_PROGRAM, Daemon, both  # noqa: E402
from hosts import (AF_PACKET, SOCKETS, V4, V6, Host, across_case, veth,  # noqa: E402
                   wait_for_port)
from process import until  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import SCRATCH, SOURCE, eal, hugepages_wait, ip, is_root, ping  # noqa: E402

LARGE = ("--mtu", "4184")


def tagged(spaces):
    """Traffic with a VLAN tag, also to a multicast group that both ends of perftest join."""
    options = LARGE + ("--vlan", "42")
    with Host(spaces, 0, AF_PACKET, *options) as left, Host(spaces, 1, AF_PACKET,
                                                            *options) as right:
        hosts = [left, right]
        across_case(hosts, 2 * 4096 * 50, "ibv_rc_pingpong", "-g", "0", "-n", "50", "-c")
        across_case(hosts, 2 * 50, "ib_send_lat", "-c", "UD", "-x", "0", "-F", "-g", "-n", "50")
        with Host(spaces, 1, AF_PACKET, *LARGE, "--vlan", "43") as other_vlan:
            server = other_vlan.start("ibv_rc_pingpong", "-g", "0")
            wait_for_port(18515, server, 10, other_vlan.space)
            client = left.run("ibv_rc_pingpong", "-g", "0", SOCKETS[1])
            server.kill()
            case("a host of another VLAN is not reached", client.returncode != 0 and
                 "retry" in client.stdout + client.stderr, client.stdout + client.stderr)


def config(**values):
    """Returns a configuration file for the left host."""
    args = eal(0, memory_mb=128)
    lines = ["[daemon]", "log-level = %s" % values.pop("log_level", "info"), "[eal]",
             "vdev = " + AF_PACKET]
    while args:
        key = args.pop(0).lstrip("-")
        value = args.pop(0) if args and not args[0].startswith("-") else ""
        lines.append("%s = %s" % (key, value))
    lines += ["[port]", "address = " + values.pop("address", V4[0] + "/24"),
              "mtu = %s" % values.pop("mtu", 4184), "sleep-us = 200", "[clients]"]
    lines += ["%s = %s" % (key.replace("_", "-"), value) for key, value in values.items()]
    return "\n".join(lines) + "\n"


def reread(spaces):
    path = os.path.join(SCRATCH, "rocaded.conf")

    def write(text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    write(config())
    with Daemon(config=path, space=spaces[0]) as daemon, Host(spaces, 1, AF_PACKET,
                                                              *LARGE) as right:
        case("rocaded starts with a configuration file", "listening" in daemon.first_line,
             daemon.first_line)
        watch = daemon.start("stdbuf", "-oL", "ibv_asyncwatch")
        watch.wait_line()
        said = daemon.said("client")
        case("rocaded logs process and user of a new client",
             "process %d of user 0" % watch.pid in said, said)
        write(config(address="%s/24, %s/64, 192.0.2.77/24" % (V4[0], V6[0]),
                     client_qps=1, mtu=1500, max_clients=3))
        daemon.process.send_signal(signal.SIGHUP)
        said = daemon.said("settings reloaded")
        case("SIGHUP: rocaded names the setting that needs a restart",
             "restart to change mtu\n" in said, said)
        event = watch.wait_line()
        case("SIGHUP: clients get an event for the new addresses", "IBV_EVENT_GID_CHANGE" in event,
             event)
        watch.kill()
        info = daemon.run("ibv_devinfo", "-v").stdout
        case("SIGHUP: clients see the new addresses", V6[0] in info and "192.0.2.77" in info and
             "active_mtu:\t\t4096" in info, info)
        # GID 2 is the new address: the other end resolves it.
        across_case([daemon, right], 2 * 4096 * 50, "ibv_rc_pingpong", "-g", "2", "-n", "50", "-c",
                    server_gid="0", wires=[right])
        many = daemon.run("ibv_srq_pingpong", "-g", "0", SOCKETS[1])  # 16 QPs
        case("SIGHUP: the new limit of one QP applies", many.returncode != 0 and
             "Couldn't create QP[1]" in many.stdout + many.stderr, many.stdout + many.stderr)
        write(config(address="1.2.3"))
        daemon.process.send_signal(signal.SIGHUP)
        said = daemon.said("rocaded.conf:")
        case("SIGHUP: a wrong file is refused with its line",
             'address: invalid address "1.2.3"' in said, said)
        said = daemon.said("unchanged")
        case("SIGHUP: a wrong file changes nothing", "settings unchanged" in said and
             V6[0] in daemon.run("ibv_devinfo", "-v").stdout, said)
        write(config(log_level="error"))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.said("settings reloaded")
        watch = daemon.start("stdbuf", "-oL", "ibv_asyncwatch")
        watch.wait_line()
        logged = len(daemon.process.text)
        case("SIGHUP: the address is removed", "192.0.2.77" not in daemon.run("ibv_devinfo",
                                                                          "-v").stdout)
        daemon.process.send_signal(signal.SIGTERM)
        status, text = daemon.process.finish()
        watch.kill()
        case("SIGHUP: the log level changes", status == 0 and "client" not in text[logged:],
             text[logged:])


def ends(spaces):
    """SIGTERM amid traffic of both directions: the daemon ends with status 0, no client hangs, and
    the daemon can be started again."""
    with Host(spaces, 0, AF_PACKET, *LARGE) as left, Host(spaces, 1, AF_PACKET, *LARGE) as right:
        program = ("ib_send_bw", "-x", "0", "-F", "-b", "-s", "4096", "-D", "120")
        server = right.start(*program)
        wait_for_port(18515, server, 30, right.space)
        client = left.start(*program, SOCKETS[1])
        start = left.wire()
        until(lambda: left.wire() > start + 1000000)
        left.process.send_signal(signal.SIGTERM)
        case("SIGTERM amid traffic: rocaded ends with status 0", left.process.wait(20) == 0)
        text, peer = client.finish(30)[1], server.finish(30)[1]
        case("SIGTERM amid traffic: the client's requests are flushed", "status 5" in text, text)
        # The send fails first, and then the receives are flushed (0x12: the QP is in the error
        # state). ib_send_bw may poll the CQ of the receives before that of the sends.
        case("SIGTERM amid traffic: the peer's retries run out",
             "status 12" in peer or "status 5: wr_id 0 syndrom 0x12" in peer, peer)
        left.serve()
        across_case([left, right], 2 * 4096 * 50, "ibv_rc_pingpong", "-g", "0", "-n", "50", "-c")


MOST = 1200  # looks in a second: at least every 2 ms, and two threads


def sleeps(spaces):
    with Host(spaces, 0, AF_PACKET, *LARGE, "--sleep-us", "2000") as left:
        slept = limit.sleeps_between(left.process.pid, MOST)
        seen = process.run([STATUS_PROGRAM, "--socket", left.socket]).stdout
        case("rocade-status shows the port", "port: link up, " in seen and " 0 out" not in seen,
             seen)
        case("rocaded sleeps while its port is idle", slept, limit.look(left.process.pid))


def memif(spaces):
    """Two daemons over net_memif, shared memory: the first waits for the second."""
    device = "net_memif0,socket=%s,socket-abstract=no,bsize=8192,rsize=10,role=" % os.path.join(
        SCRATCH, "memif.sock")
    with Host(spaces, 0, device + "server", *LARGE) as left:
        case("net_memif without a peer has no link", not left.status()["port"]["link_up"] and
             "PORT_DOWN" in left.run("ibv_devinfo").stdout)
        with Host(spaces, 1, device + "client", *LARGE) as right:
            until(lambda: left.status()["port"]["link_up"])
            across_case([left, right], 2 * 4096 * 50, "ibv_rc_pingpong", "-g", "1", "-n", "50",
                        "-c")


def connected(spaces):
    """Programs that connect by RDMA-CM, between QP 1 of the two daemons: they need no other
    network."""
    with Host(spaces, 0, AF_PACKET, *LARGE) as left, Host(spaces, 1, AF_PACKET, *LARGE) as right:
        for program, there in [(("rping", "-C", "20", "-V"), V4[1]),
                               (("udaddy", "-C", "20"), V4[1]),
                               (("ucmatose", "-C", "20"), V4[1])]:
            server_args = ("-s", "-a", there) if program[0] == "rping" else ("-b", there)
            client_args = ("-c", "-a", there) if program[0] == "rping" else ("-s", there)
            before = right.wire()
            server = right.start(*program, *server_args)
            right.wait_listener(server)
            served, status, text = both(server, left.start(*program, *client_args), 60)
            case(" ".join(program + client_args), served == 0 and status == 0 and
                 right.wire() > before + 2000, "%s, %s\n%s" % (served, status, text))


def pinged(spaces):
    """The kernel of the other host pings the port."""
    ip("-n", spaces[1], "address", "add", "192.0.2.9/24", "dev", "eth0")
    with Host(spaces, 0, AF_PACKET, *LARGE):
        done = process.run(["ip", "netns", "exec", spaces[1]] + ping("-s", "2000", V4[0]), 120)
        case("the port answers the kernel's pings", done.returncode == 0,
             done.stdout + done.stderr)
    ip("-n", spaces[1], "address", "del", "192.0.2.9/24", "dev", "eth0")


def as_service(spaces):
    """The capabilities of the systemd unit are enough for net_af_packet, for a user without rights.
    The folder of the socket is in /run, since that user may not enter the test's own."""
    with open(os.path.join(SOURCE, "config/rocaded.service"), encoding="utf-8") as file:
        unit = file.read()
    sets = "-all" + "".join(",+" + word[len("CAP_"):].lower() for word in re.search(
        "^AmbientCapabilities=(.*)$", unit, re.M).group(1).split())
    folder = tempfile.mkdtemp(prefix="rocade-e2e-", dir="/run")
    os.chown(folder, 65534, 65534)
    # The user may not enter the folder of the build either: the shell opens the program.
    through = ["sh", "-c", 'exec 9<"$0"; exec env RUNTIME_DIRECTORY=%s setpriv --reuid 65534 '
               "--regid 65534 --clear-groups --no-new-privs --inh-caps %s --ambient-caps %s "
               '--bounding-set %s /proc/self/fd/9 "$@"' % (folder, sets, sets, sets)]
    # The locked memory of the rings has a limit.
    device = AF_PACKET.replace("framecnt=1024", "framecnt=256")
    with Host(spaces, 0, device, *LARGE, folder=folder, through=through) as left, \
            Host(spaces, 1, AF_PACKET, *LARGE) as right:
        with open("/proc/%d/status" % left.process.pid, encoding="utf-8") as file:
            user = re.search(r"^Uid:\s+(\d+)", file.read(), re.M).group(1)
        left.env["ROCADE_DAEMON_UID"] = user
        case("as a service: rocaded is another user and receives multicast", user == "65534" and
             "neither all multicast" not in left.process.text, left.process.text)
        across_case([left, right], 2 * 4096 * 50, "ibv_rc_pingpong", "-g", "1", "-n", "50", "-c")
        left.process.send_signal(signal.SIGTERM)
        case("as a service: rocaded ends with status 0 and removes its socket",
             left.process.wait(20) == 0 and not os.path.exists(left.socket))


def refuses():
    for options, word in [(["--port", "net_nothing"],
                           "--port: invalid value 'net_nothing': expected one of the 0 ports"),
                          ([], "invalid value '0': expected one of the 0 ports")]:
        wrong = process.run([ROCADED] + eal(0, memory_mb=64) + [
            "--", "--address", "192.0.2.1/24", "--socket", "/nonexistent/s"] + options)
        case("refused: " + word, wrong.returncode == 1 and word in wrong.stderr, wrong.stderr)


def ends_eal():
    """A daemon that fails once EAL has started ends EAL, which frees hugepages and removes its socket
    for other processes."""
    pages = "/run/hugepages"  # tools/lib/isolated.sh
    if not os.path.isdir(pages) or not hugepages_wait(32):
        skip("rocaded ends EAL when its start fails", "needs 32 free hugepages")
        return
    prefix = "rocade%d" % os.getpid()
    start = [ROCADED, "--huge-dir", pages, "--file-prefix", prefix, "-m", "32", "--no-pci", "--vdev",
             "net_null0", "--lcores", "0@%d" % min(os.sched_getaffinity(0)), "--", "--address",
             "192.0.2.1/24"]
    path = os.path.join(SCRATCH, "s")
    for options, word, least in [(["--port", "net_nothing", "--socket", path], "--port: invalid", 15),
                                 (["--queues", "2", "--socket", path], "lcores", 15),
                                 (["--socket", "/nonexistent/s"], "/nonexistent/s", 0)]:
        wrong = process.run(start + options)
        # EAL keeps the page of what it allocated itself, and those behind a port.
        left = len(os.listdir(pages))
        case("EAL is ended: " + word, wrong.returncode == 1 and word in wrong.stderr and
             left <= 16 - least and not os.path.exists("/var/run/dpdk/%s/mp_socket" % prefix),
             "%s\n%d pages" % (wrong.stderr, left))


def main():
    if not is_root():
        return run(lambda: skip("rocaded over a port", "needs root"))
    spaces = veth()
    return run(lambda: tagged(spaces), lambda: reread(spaces), lambda: ends(spaces),
               lambda: sleeps(spaces), lambda: pinged(spaces), lambda: memif(spaces),
               lambda: connected(spaces), lambda: as_service(spaces), refuses,
               ends_eal)


if __name__ == "__main__":
    sys.exit(main())
