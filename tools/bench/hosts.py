# SPDX-License-Identifier: BSD-3-Clause
"""The scene "two hosts": a rocaded with a port for each end, and unmodified rocade-perf under rocade-run
at both, over net_memif and over net_af_packet at the ends of a veth. Each end has a core, on which its
daemon and its program run. What it is measured beside: raw frames over the same port, the same in process,
and TCP over a veth."""

import re

import wires
from runners import CORES, stop

ADDRESS = {"client": "192.0.2.1", "server": "192.0.2.2"}
PLACES = {"memif": "net_memif", "packet": "net_af_packet and a veth"}
FRAMES = (122, 4170)  # of a 64 B SEND, and of a 4 KiB packet of a WRITE: plan.py
LARGE = {"sq_depth": 64, "burst": 2, "signal_every": 2}  # as plan.large()
OPTIONS = {64: {}, 4096: {"mtu": 4096}, 65536: {"mtu": 4096, **LARGE},
           1 << 20: {"mtu": 4096, **LARGE}}
SIZES = {64: "64 B", 4096: "4 KiB", 65536: "64 KiB", 1 << 20: "1 MiB"}
LATENCIES = {"pingpong": "SEND 64 B, half of a round trip", "write-lat": "WRITE 64 B, half of a round trip",
             "read-lat": "READ 64 B, a round trip"}


def perf(bench, wire, mode, seconds, options):
    """A daemon for each end, and rocade-perf as a client of each."""
    bench.number += 1
    if wire == "packet":
        wires.prepare(wire)
    sockets = {role: bench.path(role + ".sock") for role in ADDRESS}
    daemons = {}
    try:
        for role in ("server", "client"):  # the end of net_memif that listens first
            daemons[role] = bench.start("daemon-" + role, [bench.daemon_program] + bench.eal(
                role, "0@%d" % CORES[role == "server"], 256, wire=wire) + [
                    "--", "--socket", sockets[role], "--address", ADDRESS[role] + "/24", "--mtu",
                    str(wires.MTU)])
            bench.await_path(sockets[role], daemons[role], "daemon-" + role)

        def command(core, role):
            return ["taskset", "-c", str(core), bench.run_program, "--socket", sockets[role],
                    bench.perf_program, "--lcores", "0@%d" % core, "--no-huge", "-m", "64",
                    "--no-pci", "--no-telemetry", "--no-shconf"]
        peers = {"client": ADDRESS["server"], "server": ADDRESS["client"]}
        return bench.perf_pair(command, mode, seconds, dict(options, device="rocade0"), peers)
    finally:
        for daemon in daemons.values():
            stop(daemon)


def tcp(bench, seconds):
    """One stream of TCP from this network namespace over a veth into another one, and a ping-pong of 64 B
    of it: bytes a second, and half of a round trip, of which qperf has the mean only."""
    ends = wires.kernel_ends()
    text = bench.pair(ends["server"] + ["qperf"], ["qperf", "-t", str(seconds), "-m", "65536",
                                                   wires.KERNEL_ADDRESS, "tcp_bw"], seconds=seconds)
    match = re.search(r"bw += +([\d.]+) (|K|M|G)B/sec", text)
    text = bench.pair(ends["server"] + ["qperf"], ["qperf", "-t", str(seconds), "-m", "64",
                                                   wires.KERNEL_ADDRESS, "tcp_lat"], seconds=seconds)
    mean = re.search(r"latency += +([\d.]+) (ns|us|ms)", text)
    if not match or not mean:
        raise wires.Failed("qperf over a veth: " + bench.why("client"))
    return {"bytes_per_s": float(match[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[match[2]],
            "latency_ns": {"mean": float(mean[1]) * {"ns": 1, "us": 1e3, "ms": 1e6}[mean[2]]},
            "size": 65536}


def points():
    """[(name without the wire, mode, options, text, field)]"""
    for mode in ("send", "write", "read"):
        for size in (64, 4096, 65536, 1 << 20) if mode == "write" else (64, 4096, 1 << 20):
            yield ("%s %d" % (mode, size), mode, {"size": size, **OPTIONS[size]},
                   "%s %s" % (mode.upper(), SIZES[size]),
                   "messages_per_s" if size == 64 else "bytes_per_s")
    yield "send 64 qps 8", "send", {"size": 64, "qps": 8, "burst": 4}, "SEND 64 B, 8 QPs", "messages_per_s"
    yield ("write 4096 qps 8", "write", {"size": 4096, "mtu": 4096, "qps": 8, "burst": 4},
           "WRITE 4 KiB, 8 QPs", "bytes_per_s")
    yield "send 64 ud", "send", {"size": 64, "ud": True}, "UD SEND 64 B", "messages_per_s"
    for mode, text in LATENCIES.items():
        yield mode, mode, {"size": 64}, text, "latency_ns"
    yield ("pingpong ud", "pingpong", {"size": 64, "ud": True}, "UD SEND 64 B, half of a round trip",
           "latency_ns")


INSIDE = ("send 64", "write 4096", "write 1048576", "read 1048576", "pingpong", "write-lat")


def measurements(measurement):
    """[measurement(name, run)], the two of a ratio next to each other. run: (bench, timing) -> numbers"""
    def between(wire, mode, options):
        return lambda bench, timing: perf(bench, wire, mode, timing.seconds, options)

    def inside(mode, options):
        return lambda bench, timing: bench.perf(mode, timing.seconds, **options)

    def frames(wire, size):
        return lambda bench, timing: bench.testpmd(size, timing.seconds, wire=wire)

    for wire in PLACES:
        for size in FRAMES:
            yield measurement("hosts %s testpmd %d" % (wire, size), frames(wire, size))
        for name, mode, options, _, _ in points():
            yield measurement("hosts %s %s" % (wire, name), between(wire, mode, options))
            if wire == "memif" and name in INSIDE:
                yield measurement("hosts inside " + name, inside(mode, options))
    yield measurement("hosts tcp", lambda bench, timing: tcp(bench, timing.seconds))


def percentile(name):
    return lambda numbers: numbers["latency_ns"][name]


def ratios():
    """As table.RATIOS."""
    rate, frames, volume = (("messages_per_s",) * 2, ("messages_per_s", "frames_per_s"),
                            ("bytes_per_s",) * 2)
    both = (percentile("p50"),) * 2
    tail = (percentile("p99"), percentile("p50"))
    for wire, place in PLACES.items():
        where, host = "two hosts over %s, " % place, "hosts %s " % wire
        gates = wire == "packet"
        yield (where + "64 B SEND / testpmd's frames of 122 B", host + "send 64", host + "testpmd 122",
               frames, gates and 0.5 or None, gates and 0.8 or None, False)
        yield (where + "64 KiB WRITE / testpmd's bytes in 4170 B frames", host + "write 65536",
               host + "testpmd 4170", volume, gates and 0.7 or None, gates and 0.9 or None, False)
        yield (where + "SEND ping-pong, p99 / p50", host + "pingpong", host + "pingpong", tail,
               None if gates else 3, None if gates else 1.5, True)
        yield (where + "WRITE ping-pong / SEND ping-pong, p50", host + "write-lat", host + "pingpong", both,
               5 if gates else 1.3, 1.5 if gates else 1, True)
        yield (where + "8 QPs / 1 QP, 64 B SEND", host + "send 64 qps 8", host + "send 64", rate, None, None,
               False)
    texts = {name: (text, field) for name, _, _, text, field in points()}
    for name in INSIDE:
        text, field = texts[name]
        latency = field == "latency_ns"
        yield ("two hosts over net_memif / in process, %s%s" % (text, ", p50" * latency),
               "hosts memif " + name, "hosts inside " + name, both if latency else (field, field), None,
               None, latency)
    yield ("two hosts over a veth, 64 KiB WRITE / TCP over a veth", "hosts packet write 65536", "hosts tcp",
           volume, None, None, False)


def numbers():
    """As table.NUMBERS."""
    for wire, place in PLACES.items():
        for size in FRAMES:
            yield ("testpmd over %s, %d B frames" % (place, size), "hosts %s testpmd %d" % (wire, size),
                   "frames_per_s" if size == FRAMES[0] else "bytes_per_s")
        for name, _, _, text, field in points():
            yield "two hosts over %s, %s" % (place, text), "hosts %s %s" % (wire, name), field
            if wire == "memif" and name in INSIDE:
                yield "in process over %s, %s" % (place, text), "hosts inside " + name, field
    yield "TCP over a veth, 64 KiB writes", "hosts tcp", "bytes_per_s"
    yield "TCP over a veth, 64 B, half of a round trip", "hosts tcp", "latency_ns"
