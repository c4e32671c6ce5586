# SPDX-License-Identifier: BSD-3-Clause
"""What the fabric predicts: test/fabric, a simulation of hosts at one switch, with Rocade's own code at
the hosts."""

import json
import os
import re
import subprocess

import check
import patterns

PROGRAM = os.path.join("test", "fabric", "fabric")
LIMIT_S = 300
FRAME = 82  # bytes of a packet on the wire beside its payload, with preamble, FCS and gap
MBIT = (10, 400000)
BUFFER_KB = (10, 1000000)
BUFFER_USUAL_KB = 1000
ROUND_TRIP_NS = (3000, 10000000)
ROUND_TRIP_USUAL_NS = 8500
VALUES = ("payload_gbps", "jain", "resent_share", "lost_share")


def rate(value):
    """Reads a rate of --link-rate: Mb/s, or with the suffix m or g. Raises ValueError."""
    match = re.match(r"(\d{1,6})([mg]?)\Z", value.lower())
    mbit = int(match[1]) * (1000 if match[2] == "g" else 1) if match else 0
    if not MBIT[0] <= mbit <= MBIT[1]:
        raise ValueError("expected %d to %d Mb/s, such as 25g or 2500m" % MBIT)
    return mbit


def clamped(value, limits):
    return int(min(max(round(value), limits[0]), limits[1]))


def model(options, path_mtu, pairs):
    """Returns what the simulation is given, and where each value is from. pairs: rows of the report,
    each of one host with the first one, alone."""
    rates = [pair["gbps"] for pair in pairs if pair["result"] == "pass"]
    trips = [pair["round_trip_us"] for pair in pairs if pair["round_trip_us"]]
    mbit = options.link_rate
    if not mbit and rates:
        mbit = clamped(max(rates) * 1e3 * (path_mtu + FRAME) / path_mtu, MBIT)
    return {
        "mbit": mbit, "mbit_from": "stated" if options.link_rate else "measured" if rates else None,
        "mtu": path_mtu,
        "rtt_ns": clamped(min(trips) * 1e3, ROUND_TRIP_NS) if trips else ROUND_TRIP_USUAL_NS,
        "rtt_from": "measured" if trips else "assumed",
        "buffer_kb": options.switch_buffer or BUFFER_USUAL_KB,
        "buffer_from": "stated" if options.switch_buffer else "assumed",
        "delay_unknown": not options.dev}


def command(build, given, pattern, hosts):
    return [os.path.join(build, PROGRAM), "predict", "--pattern", pattern, "--hosts", str(hosts),
            "--mbit", str(given["mbit"]), "--mtu", str(given["mtu"]), "--rtt-ns", str(given["rtt_ns"]),
            "--buffer-kb", str(given["buffer_kb"]), "--message", str(patterns.SIZE),
            "--depth", str(patterns.DEPTH), *(["--delay-unknown"] if given["delay_unknown"] else [])]


def predict(build, given, pattern, hosts):
    """Returns (values, None), or (None, why there are none)."""
    if not given["mbit"]:
        return None, "no pair of hosts has a rate: give --link-rate"
    if not os.path.exists(os.path.join(build, PROGRAM)):
        return None, "%s is not in the build directory: ninja %s builds it" % (
            os.path.basename(PROGRAM), PROGRAM)
    try:
        done = subprocess.run(command(build, given, pattern, hosts), capture_output=True, text=True,
                              check=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
        answer = json.loads(done.stdout)
        return {name: float(answer[name]) for name in VALUES}, None
    except subprocess.TimeoutExpired:
        return None, "the simulation has not ended within %d s" % LIMIT_S
    except subprocess.CalledProcessError as error:
        return None, check.plain((error.stderr or "").strip() or "status %d" % error.returncode, 300)
    except (OSError, ValueError, KeyError) as error:
        return None, "the simulation gives no numbers: %s" % check.plain(error, 200)
