# SPDX-License-Identifier: BSD-3-Clause
"""The measurements. Main ones are taken in every round, in this order; the others once, at the
end."""

import dataclasses

SIZES = (8, 64, 256, 1024, 4096, 65536, 1 << 20)
QPS = (1, 16, 256, 4096, 65536)
LOSSES_PPM = (0, 100, 1000, 10000, 50000)
FRAME_64 = 122      # Ethernet, IPv4, UDP, BTH, 64 bytes, ICRC
FRAME_4096 = 4170   # the same with 4096 bytes and RETH


@dataclasses.dataclass
class Timing:
    seconds: int
    rounds: int
    sweep_seconds: int

    def sweep(self):
        return Timing(self.sweep_seconds, 1, self.sweep_seconds)


FULL = Timing(10, 4, 3)
QUICK = Timing(1, 3, 1)


@dataclasses.dataclass
class Measurement:
    name: str
    run: object  # (bench, timing) -> numbers
    main: bool = False
    quick: bool = True


def perf(mode, **options):
    return lambda bench, timing: bench.perf(mode, timing.seconds, **options)


def large(size):
    """Few requests are many bytes: signaled often, so that they are counted exactly."""
    if size < 65536:
        return {}
    return {"sq_depth": 64, "burst": 2, "signal_every": 2}


def main_measurements():
    both = {"mtu": 4096, **large(1 << 20)}
    listed = [
        ("testpmd 122", lambda b, t: b.testpmd(FRAME_64, t.seconds)),
        ("send 64 srq", perf("send", size=64, srq=True)),
        ("send 64 rq", perf("send", size=64, rq=True)),
        ("send 64 qps 4096", perf("send", size=64, qps=4096, burst=1)),
        ("testpmd 4170", lambda b, t: b.testpmd(FRAME_4096, t.seconds)),
        ("write 1m", perf("write", size=1 << 20, **both)),
        ("read 1m", perf("read", size=1 << 20, **both)),
        ("tcp bandwidth", lambda b, t: b.tcp_bandwidth(t.seconds)),
        ("ucx bandwidth", lambda b, t: b.ucx("ucp_put_bw", 1 << 20, 2000 * t.seconds)),
        ("raw pingpong", perf("raw-pingpong", size=FRAME_64)),
        ("send pingpong", perf("pingpong", size=64)),
        ("write pingpong", perf("write-lat", size=64)),
        ("read latency", perf("read-lat", size=64)),
        ("tcp latency", lambda b, t: b.tcp_latency(t.seconds)),
        ("ucx latency", lambda b, t: b.ucx("tag_lat", 64, 50000 * t.seconds)),
        ("write 64k", perf("write", size=65536, mtu=4096, **large(65536))),
        ("write 64k loss 10000", perf("write", size=65536, mtu=4096, loss_ppm=10000,
                                      **large(65536))),
    ]
    return [Measurement(name, run, main=True) for name, run in listed]


def sweep_measurements():
    # 64 receives of 4 KiB for each QP, or one SRQ for all, which four times what is under way at
    # the most suffices for.
    yield Measurement("memory rq", perf("send", size=4096, mtu=4096, qps=1000, burst=1, rq=True,
                                        depth=64))
    yield Measurement("memory srq", perf("send", size=4096, mtu=4096, qps=1000, burst=1, srq=True,
                                         depth=2048))
    # Of two depths of the send queue follows what a QP takes without it.
    for depth in (64, 128):
        yield Measurement("memory qp %d" % depth, perf("send", size=64, qps=1000, burst=1,
                                                       sq_depth=depth, signal_every=8))
    yield Measurement("send 64 signaled", perf("send", size=64, signal_every=1))
    yield Measurement("send 64 inline", perf("send", size=64, inline=64))
    yield Measurement("send pingpong inline", perf("pingpong", size=64, inline=64))
    yield Measurement("ucx rate", lambda b, t: b.ucx("tag_bw", 64, 500000 * t.seconds))
    for qps in QPS:
        yield Measurement("qps %d" % qps, perf("send", size=64, qps=qps, burst=1),
                          quick=qps in (1, 256))
    for ppm in LOSSES_PPM:
        yield Measurement("loss %d" % ppm, perf("write", size=65536, mtu=4096, loss_ppm=ppm,
                                                **large(65536)), quick=False)
    for mode in ("send", "write", "read"):
        for mtu in (1024, 4096):
            for size in SIZES:
                yield Measurement("size %s %d %d" % (mode, mtu, size),
                                  perf(mode, size=size, mtu=mtu, **large(size)), quick=False)


MEASUREMENTS = main_measurements() + list(sweep_measurements())
