#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The stages neighbours and guest of tools/bench.sh: numbers of perftest, rows and their gates from
made-up samples, and the program that they are compared with."""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tools/bench"))
import cases  # noqa: E402
import in_guest  # noqa: E402
import neighbours  # noqa: E402
import perftest  # noqa: E402
from neighbours_table import Table  # noqa: E402

LATENCY = """ local address: LID 0000 QPN 0x27def7 PSN 0xda9df1
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 64      5000          6.65           378.04       14.74    \t       30.34       \t28.19  \t\t130.70  \t\t211.00
---------
"""
DURATION = """ #bytes        #iterations       t_avg[usec]    tps average
 64            22550            44.35          11274.80
"""
BANDWIDTH = """ #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 64         50000            0.00               70.72  \t\t   1.158734
"""


def row(results, begin, failures=None):
    """(median, verdict) of a row of the stage neighbours."""
    got = next(r for r in Table(results, failures or {}).make()
               if r["text"].startswith(begin))
    return got.get("median"), got["verdict"]


def guest_row(results, begin):
    got = next(r for r in in_guest.rows(results) if r["text"].startswith(begin))
    return got.get("median"), got["verdict"]


def reduced(rocade, other):
    return {"all-reduce rocade 3": [{"us": {8: rocade}}, None],
            "all-reduce tcp 3": [{"us": {8: other}}, {"us": {8: 1}}]}


def futex():
    """Whether the program measures, and refuses a time of 0."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "futex_pingpong")
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, os.path.join(
            HERE, "../../tools/bench/futex_pingpong.c")], check=True)
        done = subprocess.run([program, "0.2"], stdout=subprocess.PIPE, text=True, check=False)
        words = done.stdout.split()
        numbers = dict(zip(words[::2], map(float, words[1::2])))
        wrong = subprocess.run([program, "0"], stderr=subprocess.DEVNULL, check=False)
    return numbers["trips_per_s"] > 10 and 0 < numbers["p50"] <= numbers["p99"], wrong.returncode


CLIENTS = [{"drop_peer": 2, "tx_packets": 9, "engine": {"drop_peer": 1, "drop_icrc": 0}}]

CASES = [
    ("latencies of perftest", perftest.numbers(LATENCY)["p99_us"], 130.7),
    ("a latency in a fixed time", perftest.numbers(DURATION)["trips_per_s"], 11274.8),
    ("a bandwidth of perftest", perftest.numbers(BANDWIDTH)["million_per_s"], 1.158734),
    ("a program that printed no numbers", perftest.numbers(LATENCY[:200]), None),
    ("infinite times are left out", perftest.numbers(DURATION.replace("44.35", "inf")),
     {"bytes": 64, "iterations": 22550, "trips_per_s": 11274.8}),
    ("a quotient without a divisor", (perftest.over(1, 0), perftest.over(None, 1)), (None, None)),
    ("cells", [perftest.cell(n) for n in (None, 0, 0.12345, 12.345, 1234.5)],
     ["", "0", "0.123", "12.3", "1234"]),
    ("a latency that reaches", row({"idle ib_send_lat 64": [{"mean_us": 1}]},
                                   "idle: ib_send_lat 64 B, mean"), (1, "reached")),
    ("a latency within its gate", row({"idle ib_send_lat 64": [{"mean_us": 2}]},
                                      "idle: ib_send_lat 64 B, mean"), (2, "gate met")),
    ("a latency above its gate", row({"idle ib_send_lat 64": [{"mean_us": 2.1}]},
                                     "idle: ib_send_lat 64 B, mean"), (2.1, "GATE NOT MET")),
    ("a rate below its gate", row({"idle ib_send_bw 64": [{"million_per_s": 2.9}]},
                                  "idle: ib_send_bw 64 B"), (2.9, "GATE NOT MET")),
    ("beside busy loops: samples of a round are compared", row({
        "busy ib_send_lat 64": [{"trips_per_s": 8}, {"trips_per_s": 60}],
        "busy futex": [{"trips_per_s": 10}, {"trips_per_s": 100}]}, "busy: round trips of"),
     (0.7, "gate met")),
    ("events: a round trip is twice what perftest prints", row({
        "events ib_send_lat 64": [{"typical_us": 6}], "events futex": [{"p50": 8}]},
        "events: round trip of ib_send_lat"), (1.5, "gate met")),
    ("packets sent again are added up", row({
        "busy ib_send_lat 64": [{"resent": 2}, {"resent": 3}], "busy ib_read_lat 64": [
            {"resent": 1}], "idle ib_send_lat 64": [{"resent": 9}]}, "busy: packets sent again"),
     (6, "")),
    ("those of one program", row({
        "busy ib_send_lat 64": [{"resent": 2}, {"resent": 3}], "busy ib_read_lat 64": [
            {"resent": 1}]}, "busy, ib_send_lat: packets sent again"), (5, "GATE NOT MET")),
    ("a failed run", row({}, "busy: runs that failed", {"busy": 1}), (1, "GATE NOT MET")),
    ("no failed run", row({}, "busy: runs that failed", {"busy": 0}), (0, "gate met")),
    ("not run", row({}, "busy: runs that failed"), (None, "not measured")),
    ("an all-reduce over TCP's", row(reduced(3, 10), "all-reduce 8 B, 3 ranks: time over Open MPI's tcp"),
     (0.3, "reached")),
    ("an all-reduce with a reach only", row(
        {"all-reduce rocade 2": [{"us": {8: 4}}], "all-reduce vader 2": [{"us": {8: 1}}]},
        "all-reduce 8 B, 2 ranks: time over Open MPI's vader"), (4, "not reached")),
    ("packets sent again in all-reduces", row({"resends": [{"resent": 0}, {"resent": 4}, None]},
                                              "all-reduce, 3 ranks: packets sent again in 2"),
     (4, "GATE NOT MET")),
    ("dropped packets, of the daemon and of the engine", neighbours.dropped(CLIENTS),
     {"drop_peer": 3}),
    ("no scene is named twice", len({s.name for s in neighbours.SCENES}), len(neighbours.SCENES)),
    ("in a guest: a rate over rdma_rxe's", guest_row({
        "two cores, rocade, send_bw 64 B": [{"million_per_s": 4}],
        "two cores, rxe, send_bw 64 B": [{"million_per_s": 2}]}, "two cores: send_bw 64 B"),
     (2, "gate met")),
    ("in a guest: a failed program gives no ratio", guest_row({
        "two cores, rocade, send_lat 64 B": [None, {"typical_us": 2}],
        "two cores, rxe, send_lat 64 B": [{"typical_us": 1}, {"typical_us": 2}]},
        "two cores: send_lat 64 B"), (1, "reached")),
    ("in a guest: failures of both places count", guest_row({
        "two cores, rocade, send_lat 64 B": [None, {}],
        "one core, rocade, send_bw 64 B": [None]}, "rocade: failed of 3"), (2, "GATE NOT MET")),
    ("in a guest: limits are of measurements that exist",
     set(in_guest.LIMITS) <= set(in_guest.RUNS), True),
    ("the futex ping-pong", futex(), (True, 2)),
]


if __name__ == "__main__":
    sys.exit(cases.run(CASES))
