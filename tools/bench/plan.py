# SPDX-License-Identifier: BSD-3-Clause
"""The measurements. Main ones are taken in every round, in this order. The others are taken once,
at the end."""

import dataclasses

import hosts

SIZES = (8, 64, 256, 1024, 4096, 65536, 1 << 20)
QPS = (1, 16, 256, 4096, 65536)
LOSSES_PPM = (0, 100, 1000, 10000, 50000)
FRAME_64 = 122      # Ethernet, IPv4, UDP, BTH, 64 bytes, ICRC
FRAME_1024 = 1082   # the same with 1024 bytes
FRAME_4096 = 4170   # with 4096 bytes and RETH
KERNEL_WIRES = ("tap", "packet")  # wires.py


@dataclasses.dataclass
class Timing:
    seconds: int
    rounds: int
    sweep_seconds: int

    def sweep(self):
        return Timing(self.sweep_seconds, 1, self.sweep_seconds)


# Many short windows: a long window rarely sees only one state of the machine (states.py).
FULL = Timing(2, 10, 2)
QUICK = Timing(1, 3, 1)


@dataclasses.dataclass
class Measurement:
    name: str
    run: object  # (bench, timing) -> numbers
    main: bool = False
    quick: bool = True
    # (mode, options) of rocade-perf, for measurements between two ports.
    arguments: tuple = None
    named: bool = False  # taken only if --only names it


def measurement(name, mode, quick=True, main=False, **options):
    return Measurement(name, lambda bench, timing: bench.perf(mode, timing.seconds, **options),
                       main, quick, (mode, options))


def daemon(mode, **options):
    return lambda bench, timing: bench.perf_daemon(mode, timing.seconds, **options)


def asleep(wire, sleep):
    """A ping-pong of rocade-testpmd, whose ends poll or sleep."""
    return Measurement("%s %s" % ("asleep" if sleep else "awake", wire),
                       lambda bench, timing: bench.pingpong(wire, timing.seconds, sleep))


def large(size):
    """Options for large messages: a request has many bytes, so half of the requests are signaled
    to count them exactly."""
    if size < 65536:
        return {}
    return {"sq_depth": 64, "burst": 2, "signal_every": 2}


def pairs_measurement(name, pairs, quick=True, **options):
    return Measurement(name, lambda bench, timing: bench.pairs(timing.seconds, pairs, **options),
                       quick=quick)


def main_measurements():
    both = {"mtu": 4096, **large(1 << 20)}
    small = {"size": 4096, "mtu": 4096}
    # The two measurements of a ratio follow each other, so that they are taken at nearly the
    # same time.
    return [
        Measurement("testpmd 122", lambda b, t: b.testpmd(FRAME_64, t.seconds)),
        measurement("send 64 srq", "send", size=64, srq=True),
        measurement("send 64 rq", "send", size=64, rq=True),
        measurement("send 64 qps 4096", "send", size=64, qps=4096, burst=1),
        pairs_measurement("pairs 1", 1),
        pairs_measurement("posters 0", 1, share="srq"),
        pairs_measurement("posters 1", 1, share="srq", posters=1),
        pairs_measurement("posters 2", 1, False, share="srq", posters=2),
        pairs_measurement("posters 4", 1, False, share="srq", posters=4),
        pairs_measurement("posters 2, 2 engines", 2, False, share="srq", posters=2),
        pairs_measurement("pairs 2", 2),
        pairs_measurement("pairs 2 srq", 2, share="srq"),
        pairs_measurement("pairs 2 cq", 2, share="cq"),
        pairs_measurement("pairs 2 crossed", 2, False, crossed=True),
        Measurement("testpmd 4170", lambda b, t: b.testpmd(FRAME_4096, t.seconds)),
        measurement("write 1m", "write", size=1 << 20, **both),
        measurement("read 1m", "read", size=1 << 20, **both),
        Measurement("copy pass 4096", lambda b, t: b.copy_pass(4096, t.seconds)),
        Measurement("testpmd 4170 zero copy", lambda b, t: b.testpmd(FRAME_4096, t.seconds, True),
                    quick=False),
        measurement("write 1m zero copy", "write", False, size=1 << 20, zero_copy=True, **both),
        measurement("read 1m zero copy", "read", False, size=1 << 20, zero_copy=True, **both),
        Measurement("tcp bandwidth", lambda b, t: b.tcp_bandwidth(t.seconds)),
        Measurement("ucx bandwidth", lambda b, t: b.ucx("ucp_put_bw", 1 << 20, 2000 * t.seconds),
                    quick=False),
        measurement("raw pingpong", "raw-pingpong", size=FRAME_64),
        measurement("send pingpong", "pingpong", size=64),
        measurement("write pingpong", "write-lat", size=64),
        measurement("read latency", "read-lat", size=64),
        Measurement("tcp latency", lambda b, t: b.tcp_latency(t.seconds)),
        Measurement("ucx latency", lambda b, t: b.ucx("tag_lat", 64, 50000 * t.seconds),
                    quick=False),
        measurement("write 64k", "write", size=65536, mtu=4096, **large(65536)),
        measurement("write 64k loss 10000", "write", size=65536, mtu=4096, loss_ppm=10000,
                    **large(65536)),
        measurement("write 4k", "write", **small),
        Measurement("daemon write 4k", daemon("write", **small)),
    ]


def memory_measurements():
    # "rq": 64 receives of 4 KiB for each QP. "srq": one SRQ for all QPs, with four times the
    # receives that are in flight at most.
    own = {"size": 4096, "mtu": 4096, "qps": 1000, "burst": 1}
    yield measurement("memory rq", "send", rq=True, depth=64, **own)
    yield measurement("memory srq", "send", srq=True, depth=2048, **own)
    # Two depths of the send queue give the bytes of a QP without it. 16 READs against none give
    # the bytes of the READ ring.
    for name, depth, reads in (("64", 64, 0), ("128", 128, 0), ("reads", 64, 16)):
        yield measurement("memory qp " + name, "send", size=64, qps=1000, burst=1,
                          sq_depth=depth, signal_every=8, reads=reads)


def ways_measurements():
    """Other ways to send the same message, each next to the measurement it is compared with."""
    yield measurement("send 64 again", "send", size=64)
    yield measurement("send 64 single", "send", size=64, burst=1)
    yield measurement("send 64 qps 4096 lists", "send", size=64, qps=4096, burst=8)
    yield measurement("send 64 signaled", "send", size=64, signal_every=1)
    yield measurement("send 64 inline", "send", size=64, inline=64)
    yield measurement("send 64 ud", "send", size=64, ud=True)
    yield measurement("send 64 events", "send", size=64, events=True)
    yield measurement("send 64 engines 1", "send", size=64, qps=2)
    yield measurement("send 64 engines 2", "send", size=64, qps=2, engines=2)
    yield measurement("pingpong again", "pingpong", size=64)
    yield measurement("pingpong inline", "pingpong", size=64, inline=64)
    yield measurement("pingpong ud", "pingpong", size=64, ud=True)
    yield measurement("pingpong events", "pingpong", size=64, events=True)
    yield Measurement("tcp latency asleep", lambda b, t: b.tcp_latency(t.seconds, True))
    for wire in ("vhost", "memif"):
        yield asleep(wire, False)
        yield asleep(wire, True)
    yield measurement("raw pingpong again", "raw-pingpong", size=FRAME_64)
    yield Measurement("daemon pingpong", daemon("pingpong", size=64))
    yield Measurement("daemon pingpong events", daemon("pingpong", size=64, events=True))
    yield Measurement("daemon send 64", daemon("send", size=64))
    yield Measurement("daemon send 64 single", daemon("send", size=64, burst=1))
    yield Measurement("ucx rate", lambda b, t: b.ucx("tag_bw", 64, 500000 * t.seconds),
                      quick=False)


def frames(wire, size):
    return Measurement("%s testpmd %d" % (wire, size),
                       lambda bench, timing: bench.testpmd(size, timing.seconds, wire=wire),
                       quick=False)


def stream(wire, op, size):
    return Measurement("%s %s %d" % (wire, op, size),
                       lambda bench, timing: bench.stream(wire, op, size, timing.seconds),
                       quick=False)


def wires_measurements():
    """Ports whose other end is the kernel, beside raw frames over the same ports."""
    for wire in KERNEL_WIRES:
        yield frames(wire, FRAME_1024)
        yield stream(wire, "send", 1024)
    # net_tap sends no frame that is longer than 1,522 bytes (DPDK 22.11).
    yield frames("packet", FRAME_4096)
    yield stream("packet", "write", 4096)


def grid_measurements():
    for ppm in LOSSES_PPM:
        yield measurement("loss %d" % ppm, "write", False, size=65536, mtu=4096, loss_ppm=ppm,
                          **large(65536))
    for mode in ("send", "write", "read"):
        for qps in QPS:
            yield measurement("qps %s 64 %d" % (mode, qps), mode, mode == "send" and qps == 256,
                              size=64, qps=qps, burst=1)
            yield measurement("qps %s 4096 %d" % (mode, qps), mode, False, size=4096, mtu=4096,
                              qps=qps, burst=1)
        for mtu in (1024, 4096):
            for size in SIZES:
                yield measurement("size %s %d %d" % (mode, mtu, size), mode, False, size=size,
                                  mtu=mtu, **large(size))
    for mtu in (1024, 4096):
        for size in SIZES:
            if size <= mtu:
                yield measurement("size ud %d %d" % (mtu, size), "send", False, size=size,
                                  mtu=mtu, ud=True)


def sweep_measurements():
    return [*memory_measurements(), *ways_measurements(), *wires_measurements(),
            *hosts.measurements(lambda name, run: Measurement(name, run, named=True)),
            *grid_measurements()]


MEASUREMENTS = [dataclasses.replace(m, main=True) for m in main_measurements()]
MEASUREMENTS += sweep_measurements()
BY_NAME = {m.name: m for m in MEASUREMENTS}
