#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""This version of Rocade against earlier ones. On the wire each works with each: programs on two hosts
whose daemons and libraries are of different versions, with every extension and mechanism on, and with
each one off at either end; and rocade-testpmd. At one daemon, versions that speak the same protocol
work with each other, and others are refused with the numbers of both.

The earlier versions are built from the commits in OLD. Their sources come from the history of the
clone."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import testpmd  # noqa: E402
from daemon import OURS, Daemon, both, programs, wait_for_port  # noqa: E402
from hosts import AF_PACKET, SOCKETS, V4, Host, veth  # noqa: E402
from process import run as run_program  # noqa: E402
from tap import case, run, skip  # noqa: E402
from testpmd import SCRATCH, SOURCE, Testpmd, eal, is_root, verified  # noqa: E402

# The first speaks an earlier version of the protocol between daemon and clients (13), the second the
# present one (19): when that changes, the second is replaced by a commit behind the change.
OLD = {"November 27": "80bca03b924e161152976870f66b54a00509190b",
       "November 30": "8a7209eab19b69cfbc1d04388bc18ae92b08ca82"}
TARGETS = ["rocaded", "rocade-run", "rocade-verbs:shared_library", "rocade-testpmd"]
BUILD_S = 1800
PORT = 18515

# Each compares the data, or moves it by each kind of request. least: bytes that the wire must carry.
PROGRAMS = [(program.split(), least) for program, least in [
    ("ibv_rc_pingpong -g 0 -c -n 200", 2 * 200 * 4096),
    ("ibv_uc_pingpong -g 0 -c -n 200", 2 * 200 * 4096),
    ("ibv_ud_pingpong -g 0 -c -s 1024 -n 200", 2 * 200 * 1024),
    ("ibv_srq_pingpong -g 0 -c -n 50", 50 * 4096),
    ("ibv_xsrq_pingpong -g 0 -n 50", 50 * 4096),
    ("ib_write_bw -x 0 -F -n 100", 100 * 65536),
    ("ib_read_bw -x 0 -F -n 100", 100 * 65536),
    ("ib_atomic_bw -x 0 -F -n 200", 200 * 8)]]
# Behind loss: with an ACK timeout of a second, because an engine without a core for the half second
# that ibv_rc_pingpong allows is nothing that a version can help.
LOSSY = [(program.split(), least) for program, least in [
    ("ib_send_bw -x 0 -F -n 100 -u 18", 100 * 65536),
    ("ib_write_bw -x 0 -F -n 100 -u 18", 100 * 65536),
    ("ib_read_bw -x 0 -F -n 100 -u 18", 100 * 65536),
    ("ib_atomic_bw -x 0 -F -n 200 -u 18", 200 * 8)]]
OFF = ["sack", "hold", "read-gap", "tlp", "cnp", "ack-coalesce"]


class Version:
    """A version: its name, its Programs, its rocade-testpmd, and whether it is this one."""

    def __init__(self, name, of, testpmd_path, is_this=False):
        self.name, self.programs, self.is_this = name, of, is_this
        self.testpmd = testpmd_path


def git(*words):
    return ["git", "-c", "safe.directory=*", "-C", SOURCE, *words]


def has_history():
    return all(run_program(git("cat-file", "-e", commit + "^{commit}")).returncode == 0
               for commit in OLD.values())


def built(name, commit):
    """Builds an earlier version, with the compiler and the libraries of this one."""
    source = os.path.join(SCRATCH, commit)
    os.mkdir(source)
    with subprocess.Popen(git("archive", commit),
                          stdout=subprocess.PIPE) as archive:
        unpacked = subprocess.run(["tar", "x", "-C", source], stdin=archive.stdout, check=False)
    build = os.path.join(source, "build")
    for command in (["meson", "setup", "-Dbuildtype=release", build, source],
                    ["meson", "compile", "-C", build, *TARGETS]):
        done = run_program(command, BUILD_S)
        if done.returncode != 0 or unpacked.returncode != 0:
            return None, done.stdout + done.stderr
    return Version(name, programs(source, build), os.path.join(build, "app/testpmd/rocade-testpmd")), ""


def carried(spaces):
    """Returns the bytes that each host's port has sent."""
    moved = []
    for space in spaces:
        done = run_program(["ip", "netns", "exec", space, "cat",
                            "/sys/class/net/eth0/statistics/tx_bytes"])
        moved.append(int(done.stdout))
    return moved


def program_case(hosts, spaces, name, words, least):
    before = carried(spaces)
    server = hosts[1].start("stdbuf", "-oL", *words)
    wait_for_port(PORT, server, 30, spaces[1])
    server, client, text = both(server, hosts[0].start("stdbuf", "-oL", *words, SOCKETS[1]), 120)
    moved = sum(carried(spaces)) - sum(before)
    return case("%s: %s" % (name, " ".join(words)), server == 0 and client == 0 and moved >= least,
                "server %s, client %s, %d of %d bytes\n%s" % (server, client, moved, least, text))


def rping_case(hosts, spaces, name):
    """RDMA-CM; rping compares the data."""
    before = carried(spaces)
    words = ["-d", "-a", V4[1], "-V", "-C", "50", "-S", "4096"]
    server = hosts[1].start("stdbuf", "-oL", "rping", "-s", *words)
    server.wait_line("rdma_listen")
    served, got, text = both(server, hosts[0].start("stdbuf", "-oL", "rping", "-c", *words), 60)
    moved = sum(carried(spaces)) - sum(before)
    case("%s: rping -V" % name, served == 0 and got == 0 and moved >= 2 * 50 * 4096,
         "server %s, client %s, %d bytes\n%s" % (served, got, moved, text))


def wire(spaces, client, server):
    """Two hosts, each with a daemon and a library of its version. The newest one loses packets for
    the second half: the earlier ones cannot."""
    name = "%s to %s" % (client.name, server.name)
    with Host(spaces, 0, AF_PACKET, "--mtu", "4184", build=client.programs) as left, \
            Host(spaces, 1, AF_PACKET, "--mtu", "4184", build=server.programs) as right:
        for words, least in PROGRAMS:
            program_case([left, right], spaces, name, words, least)
        rping_case([left, right], spaces, name)
    lossy(spaces, client, server, name)


def lossy(spaces, client, server, name):
    """Loss at the daemon of this version, which loses what it receives. Each mechanism is off at one
    end, then at the other."""
    options = {True: ["--impair", "loss=1%", "--impair-seed", "1"], False: []}
    with Host(spaces, 0, AF_PACKET, "--mtu", "4184", *options[client.is_this],
              build=client.programs) as left, \
            Host(spaces, 1, AF_PACKET, "--mtu", "4184", *options[server.is_this],
                 build=server.programs) as right:
        hosts = [left, right]
        for words, least in LOSSY:
            program_case(hosts, spaces, name + ", 1 % loss", words, least)
        for off in OFF:
            for host, where in zip(hosts, ("client", "server")):
                host.env["ROCADE_OFF"] = off
                for words, least in (LOSSY[0], LOSSY[2]):
                    program_case(hosts, spaces, "%s, 1 %% loss, the %s without %s" % (
                        name, where, off), words, least)
                del host.env["ROCADE_OFF"]
        done = (left if client.is_this else right).status()["impair"]
        case("%s: packets were lost on purpose" % name, done["lost"] > 0, done)


def testpmd_case(spaces, sender, receiver, *options):
    ends = []
    try:
        for side, mode, version in ((1, "sink", receiver), (0, "send", sender)):
            testpmd.PROGRAM = version.testpmd
            ends.append(Testpmd(["--mode", mode, "--addr", V4[side] + "/24", "--peer", V4[1 - side],
                                 "--if-mtu", "4184", "-q", "8", "-c", "20000", "-s",
                                 "64,1000,4096", "--timeout", "18", *options],
                                eal(side, AF_PACKET, memory_mb=256), space=spaces[side]))
        codes = [end.wait(90) for end in ends]
    finally:
        for end in ends:
            end.kill()
    reports = [end.json() if code == 0 else {} for end, code in zip(ends, codes)]
    case("%s, %s to %s: messages arrive verified" % (
        " ".join(["rocade-testpmd", *options]), sender.name, receiver.name),
         codes == [0, 0] and [report["messages"] for report in reports] == [20000, 20000] and
         verified(reports[0]), (codes, ends[0].tail(), ends[1].tail()))


def at_one_daemon(daemon_of, library_of, ours):
    """A program with the library of one version at the daemon of another, and a program of this
    version beside it."""
    name = "daemon of %s, library of %s" % (daemon_of.name, library_of.name)
    same = daemon_of.programs.version == library_of.programs.version
    with Daemon("--address", "192.0.2.1/24", build=daemon_of.programs) as daemon:
        words = ["ibv_rc_pingpong", "-g", "0", "-c", "-n", "200"]
        daemon.build = library_of.programs
        if not same:
            done = daemon.run("ibv_devinfo")
            case("%s: refused with the versions of both" % name, done.returncode != 0 and
                 "has version %d of the protocol, expected %d" % (
                     daemon_of.programs.version, library_of.programs.version) in done.stderr,
                 done.stdout + done.stderr)
            return
        server = daemon.start("stdbuf", "-oL", *words)
        wait_for_port(PORT, server, 30)
        daemon.build = ours.programs if ours.programs.version == library_of.programs.version \
            else library_of.programs
        status = both(server, daemon.start("stdbuf", "-oL", *words, "127.0.0.1"), 60)
        case("%s: ibv_rc_pingpong -c" % name, status[:2] == (0, 0), status[2])


def versions():
    if not is_root():
        skip("earlier versions", "needs root")
        return
    spaces = veth()
    if not has_history():
        skip("earlier versions", "the source tree has no commits of them")
        return
    ours = Version("this version", OURS, testpmd.PROGRAM, is_this=True)
    for name, commit in OLD.items():
        old, why = built(name, commit)
        if not case("the version of %s (%s) is built" % (name, commit), old, why):
            continue
        for one, other in ((old, ours), (ours, old)):
            wire(spaces, one, other)
            testpmd_case(spaces, one, other)
            testpmd_case(spaces, one, other, "--impair", "loss=1%,reorder=1%,dup=1%")
            at_one_daemon(one, other, ours)


if __name__ == "__main__":
    sys.exit(run(versions))
