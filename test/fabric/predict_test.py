#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""predict_test.py FABRIC: `fabric predict` with the rates and buffers of real networks: links that are full,
the path MTU, fairness, buffers that are too small, the same numbers from the same seed, and wrong values."""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../runner"))
import cases  # noqa: E402

FABRIC = sys.argv[1]
SMALL = ["--hosts", "4", "--mbit", "10000", "--rtt-ns", "20000"]


def predict(*options):
    return subprocess.run([FABRIC, "predict", *options], capture_output=True, text=True, check=False)


def made(pattern, *options):
    done = predict("--pattern", pattern, *SMALL, *options)
    return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr}


def part(answer, links=1, least=0.9):
    """Whether the payload is nearly all that this number of links of 10 Gb/s carries of it."""
    most = 10 * links * answer["mtu"] / (answer["mtu"] + 82)
    return least * most <= answer["payload_gbps"] <= most


def patterns():
    one, fan, both = (made(name) for name in ("all-to-one", "one-to-all", "all-to-all"))
    short = made("all-to-one", "--mtu", "1024")
    slow = made("all-to-one", "--mbit", "100")
    again = made("all-to-one")
    for answer in (one, again):
        answer.pop("cpu_s")
    return [
        ("all to one fills the link of the one", part(one), True),
        ("one to all fills it in the other direction", part(fan), True),
        ("all to all fills the links of all four, beside acknowledgements", part(both, 4, 0.75), True),
        ("the flows share fairly", [answer["jain"] > 0.9 for answer in (one, fan, both)], [True] * 3),
        ("a smaller path MTU carries less payload", (part(short), short["payload_gbps"] < one["payload_gbps"]),
         (True, True)),
        ("a slow link", 0.09 <= slow["payload_gbps"] <= 0.1, True),
        ("it says what it was asked for", [one[key] for key in (
            "pattern", "hosts", "mbit", "mtu", "rtt_ns", "buffer_kb", "message", "depth")],
         ["all-to-one", 4, 10000, 4096, 20000, 1000, 16384, 32]),
        ("the same seed gives the same numbers", again, one)]


def buffers():
    """Without congestion control 3 x 512 KiB are on their way to a port."""
    off = ["--cc", "off"]
    small, large = made("all-to-one", *off, "--buffer-kb", "50"), made("all-to-one", *off, "--buffer-kb", "10000")
    lossy, other = (made("all-to-one", "--loss-ppm", "10000", "--seed", seed) for seed in "12")
    deaf = made("all-to-one", "--delay-unknown", "--buffer-kb", "50")
    heard = made("all-to-one", "--buffer-kb", "50")
    return [
        ("a small buffer loses packets, which are sent again", (
            small["lost_share"] > 0.01, small["resent_share"] > 0.01), (True, True)),
        ("a large one does not", (large["lost_share"], large["resent_share"]), (0, 0)),
        ("random loss", 0.005 < lossy["lost_share"] < 0.02, True),
        ("another seed gives other numbers", other["lost_share"] != lossy["lost_share"], True),
        ("without delays more is lost than with them", deaf["lost_share"] > heard["lost_share"], True)]


def wrong():
    rows = [
        (["--hosts", "1"], "invalid value '1' for --hosts (number of hosts): expected 2 to 64"),
        (["--hosts", "65"], "expected 2 to 64"),
        (["--mbit", "9"], "expected 10 to 400000"),
        (["--mbit", "10g"], "invalid value '10g' for --mbit"),
        (["--mtu", "1500"], "path MTU: 256, 512, 1024, 2048 or 4096"),
        (["--rtt-ns", "-1"], "invalid value '-1' for --rtt-ns"),
        (["--pattern", "ring"], "invalid value 'ring' for --pattern: expected all-to-one, one-to-all or all-to-all"),
        (["--cc", "x"], "--cc"),
        (["x"], "unexpected 'x': expected options")]
    out = []
    for options, words in rows:
        done = predict(*options)
        out.append(("%s is refused in a line" % " ".join(options), (
            done.returncode, words in done.stderr, done.stderr.count("\n"), done.stdout), (2, True, 1, "")))
    done = predict("--help")
    return out + [("--help", (done.returncode, "--buffer-kb N" in done.stdout), (0, True))]


if __name__ == "__main__":
    sys.exit(cases.run(patterns() + buffers() + wrong()))
