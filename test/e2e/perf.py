#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocade-perf as tools/bench.sh runs it, for a second each: every mode, over net_memif and through
the daemon, and the ping-pong of rocade-testpmd whose ends sleep. Checks that the reported numbers
are consistent, not how fast they are."""

import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/bench"))
import runners  # noqa: E402
from process import run as run_program  # noqa: E402
from tap import case, run  # noqa: E402
from testpmd import hugepages_free, hugepages_wait  # noqa: E402

# On a busy machine an end may not run for long: it gets 8 times half a second.
LONG_TIMEOUT = {"timeout": 17, "warmup_ms": 100}
bench = runners.Bench(os.environ.get("ROCADE_BUILD", "build"), tempfile.mkdtemp())
bench.megabytes = 256


def measured(through, mode, **options):
    """Returns the numbers; None if it failed or the numbers are inconsistent."""
    try:
        got = through(mode, 1, **options, **(LONG_TIMEOUT if mode != "raw-pingpong" else {}))
    except runners.Failed as error:
        print(error, file=sys.stderr)
        return None
    latency = got["latency_ns"]
    if latency:
        order = [latency[q] for q in ("min", "p10", "p25", "p50", "p75", "p90", "p99", "p999",
                                      "max")]
        good = 0 < order[0] and order == sorted(order)
    else:
        good = got["bytes_per_s"] == got["messages_per_s"] * got["size"]
    if good and got["messages"] > 0 and got["mode"] == mode:
        return got
    print(got, file=sys.stderr)
    return None


def rates(through):
    for mode in ("send", "write", "read"):
        yield measured(through, mode, size=4096, mtu=4096)


def latencies(through):
    for mode in ("pingpong", "write-lat", "read-lat"):
        yield measured(through, mode, size=64)


def with_events(mode):
    got = measured(bench.perf, mode, size=64, events=True)
    return got and got["events"]


def asleep(wire):
    """Returns the median latencies of ends that sleep and of ends that poll."""
    medians = []
    for sleep in (True, False):
        try:
            got = bench.pingpong(wire, 1, sleep)
        except runners.Failed as error:
            print(error, file=sys.stderr)
            return None
        latency = got["latency_ns"]
        if not 0 < latency["p50"] <= latency["p99"] <= latency["p999"] or got["messages"] == 0:
            print(got, file=sys.stderr)
            return None
        medians.append(latency["p50"])
    print("# %s: p50 %d ns asleep, %d ns polling" % (wire, *medians))
    return medians


def datagrams():
    for mode in ("send", "pingpong"):
        got = measured(bench.perf, mode, size=64, ud=True)
        yield got and got["ud"] and got["retransmitted"] == 0


def two_engines():
    got = measured(bench.perf, "send", size=64, qps=4, engines=2)
    return got and got["engines"] == 2


def spans_fit(got, options):
    """Whether the times of the passes fit to each other and to the rate. A pass takes at most 64 messages,
    and the window is a second or longer."""
    if "passes" not in options:
        return not any("pass" in name for name in got)
    longest = got["longest_pass_us"]
    times = [longest if us == "more than 256" and longest > 256 else us
             for us in (got["pass_us_p999"], got["pass_us_p9999"])]
    return 0 < times[0] <= times[1] <= longest and got["passes"] * 64 >= got["messages_per_s"]


def pairs(engines=2, **options):
    """The numbers of pairs of engines; None if a pair has moved nothing, or not the right
    packets were handed to another engine."""
    try:
        got = bench.pairs(1, engines, **options)
    except runners.Failed as error:
        print(error, file=sys.stderr)
        return None
    # Crossed, all messages and acknowledgements; ARP stays where it is.
    least, most = (0.9, 1) if "crossed" in options else (0, 0)
    if (spans_fit(got, options) and min(got["messages_per_s_of_pair"]) > 0 and
            least <= got["rx_handoff"] / got["rx_packets"] <= most and
            got["messages_per_s"] == sum(got["messages_per_s_of_pair"])):
        return got
    print(got, file=sys.stderr)
    return None


def memory():
    got = measured(bench.perf, "send", size=4096, mtu=4096, qps=100, burst=1, depth=512)
    return got and got["srq_bytes"] > 512 * 16 and got["qp_bytes"] > 1000 and \
        got["memory_bytes"] > 512 * 4096


def without_eal(program, *options):
    """What a program says when EAL does not start."""
    status, _, said = run_program([program, "--nonsense-of-eal", "--", *options])
    return status == 3 and "cannot start EAL (" in said and "--no-huge without hugepages" in said, (status, said)


def main():
    case("rocade-perf says what to give to EAL, which does not start",
         *without_eal(bench.perf_program, "--socket", bench.path("link")))
    case("rocade-pairs says what to give to EAL, which does not start", *without_eal(bench.pairs_program))
    pages = 2 * bench.megabytes // 2  # of two ends
    if not case("there are %d hugepages of 2 MiB" % pages, hugepages_wait(pages), "%d are free: write a larger number "
                "to /proc/sys/vm/nr_hugepages" % hugepages_free()):
        return
    case("rocade-perf measures raw frames", measured(bench.perf, "raw-pingpong", size=122))
    case("rocade-perf measures rates", all(rates(bench.perf)))
    case("rocade-perf measures latencies", all(latencies(bench.perf)))
    case("rocade-perf measures datagrams", all(datagrams()))
    case("rocade-perf measures a rate whose receiver waits for events", with_events("send"))
    case("rocade-perf measures a ping-pong whose ends wait for events", with_events("pingpong"))
    case("rocade-testpmd measures ends that a receive interrupt wakes", asleep("vhost"))
    # Without interrupts an end looks for packets every millisecond.
    medians = asleep("memif")
    case("rocade-testpmd measures ends that sleep without interrupts",
         medians and medians[0] > 100000, medians)
    case("rocade-perf measures two engines", two_engines())
    case("rocade-pairs measures pairs of engines that share nothing", pairs())
    case("rocade-pairs measures pairs of engines with one SRQ", pairs(share="srq"))
    case("rocade-pairs measures pairs of engines with one CQ", pairs(share="cq"))
    case("rocade-pairs measures how long passes take", pairs(passes=True))
    case("rocade-pairs measures a thread that posts beside an lcore that runs the engines",
         pairs(engines=1, share="srq", posters=1))
    case("rocade-pairs measures packets that are handed to another engine", pairs(crossed=True))
    case("rocade-perf measures the memory of an SRQ and of many QPs", memory())
    case("rocade-perf measures rates through the daemon", all(rates(bench.perf_daemon)))
    case("rocade-perf measures latencies through the daemon", all(latencies(bench.perf_daemon)))
    case("rocade-perf measures ends that wait for events, through the daemon",
         measured(bench.perf_daemon, "pingpong", size=64, events=True))
    case("rocade-perf measures datagrams through the daemon",
         measured(bench.perf_daemon, "send", size=64, ud=True))


if __name__ == "__main__":
    sys.exit(run(main))
