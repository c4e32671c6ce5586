# SPDX-License-Identifier: BSD-3-Clause
"""Left's walk through the steps. Fills the report row by row, so that it has what was measured
before a failure."""

import time

import traffic
from channel import Gone, Unexpected
from program import Failed

OTHER = {"left": "right", "right": "left"}


def check(ends, report, say):
    say("check")
    for side, end in ends.items():
        began = time.monotonic()
        report["ends"][side] = end.ask("check")
        if side == "right":
            report["control_ms"] = round((time.monotonic() - began) * 1e3, 1)
        for warning in report["ends"][side]["warnings"]:
            say("  %s: %s" % (side, warning))


def bind(ends, say):
    say("bind")
    for end in ends.values():
        end.ask("bind")


def run(ends, name, sender, path_mtu):
    """Runs a case. Returns the results of sender and receiver, one for each end."""
    receiver = OTHER[sender]
    try:
        ends[receiver].ask("start", case=name, role="sink", path_mtu=path_mtu)
        ends[sender].ask("start", case=name, role="send", path_mtu=path_mtu)
        sent = ends[sender].ask("wait")
        return sent, ends[receiver].ask("stop")
    except (Gone, Unexpected):
        raise
    except Failed as error:
        for end in ends.values():
            end.ask("stop")
        broken = traffic.failure(str(error))
        return broken, broken


def problem(name, sent, received):
    """Returns why the run has failed, or None."""
    one = traffic.CASES[name]
    for result in (sent, received):
        if result["reason"]:
            return result["reason"]
    if received["messages"] == 0:
        return "no message arrived"
    if "--no-verify" not in one.options and (
            received["bad_bytes"] or received["bad_messages"] or
            received["bytes_verified"] != received["bytes"]):
        return "wrong payload: %d bytes in %d messages, %d of %d bytes verified" % (
            received["bad_bytes"], received["bad_messages"], received["bytes_verified"],
            received["bytes"])
    if one.to_sink and not received["dropped_on_purpose"]:
        return "no frame was dropped on purpose"
    return None


def row(name, sender, path_mtu, sent, received):
    one = traffic.CASES[name]
    why = problem(name, sent, received)
    lost = max(sent["frames_sent"] - received["frames_received"] -
               received["dropped_on_purpose"], 0)
    latency = None
    if sent["lat_p50_ns"] is not None:
        latency = {key: sent["lat_%s_ns" % key] / 1e3 for key in ("min", "p50", "p99", "p999",
                                                                  "max")}
    return {
        "case": name, "title": one.title, "from": sender, "qps": one.qps, "size": one.size,
        "path_mtu": path_mtu, "verified": "--no-verify" not in one.options,
        "result": "fail" if why else "pass", "reason": why, "seconds": received["seconds"],
        "messages": received["messages"], "messages_per_s": received["rate"],
        "gbps": received["gbps"], "bytes": received["bytes"],
        "bytes_verified": received["bytes_verified"], "bad_bytes": received["bad_bytes"],
        "latency_us": latency, "retransmits": sent["retransmits"],
        "frames_sent": sent["frames_sent"], "frames_received": received["frames_received"],
        "dropped_on_purpose": received["dropped_on_purpose"],
        "lost_share": lost / sent["frames_sent"] if sent["frames_sent"] else None,
        "drops": {sender: sent["drops"], OTHER[sender]: received["drops"]}}


def shown(result):
    """Returns a row of the report in a line."""
    if result["result"] == "fail":
        return "FAIL: " + result["reason"]
    if result["latency_us"]:
        return "p50 %(p50).2f us, p99 %(p99).2f us, p99.9 %(p999).2f us" % result["latency_us"]
    return "%.3f M messages/s, %.3f Gb/s, %.4f %% lost, %d sent again" % (
        result["messages_per_s"] / 1e6, result["gbps"], (result["lost_share"] or 0) * 100,
        result["retransmits"])


def path(ends, report, limit, say):
    """Finds the largest path MTU that arrives in both directions. Raises Failed if none does. The
    largest comes first: the ends are made for frames of the path MTU, and a port may refuse to be
    set up for smaller ones than its own."""
    say("path")
    for path_mtu in sorted(traffic.PATH_MTUS, reverse=True):
        if path_mtu > limit:
            continue
        for sender in ends:
            why = problem("path", *run(ends, "path", sender, path_mtu))
            if why:
                why = "from %s: %s" % (sender, why)
                break
        report["path"].append({"path_mtu": path_mtu, "result": "fail" if why else "pass",
                               "reason": why})
        say("  path MTU %d: %s" % (path_mtu, why or "arrives in both directions"))
        if not why:
            report["path_mtu"] = path_mtu
            return
    raise Failed("no traffic between the ends: %s" % why)


def measure(ends, report, first, quick, say):
    """first: the side with the lower address, which sends first in a pingpong."""
    say("measure")
    for name, one in traffic.CASES.items():
        if name == "path" or (quick and one.full):
            continue
        senders = list(ends)
        if one.mode == "pingpong":
            senders = [first]
        elif quick and one.to_sink:
            senders = senders[:1]
        for sender in senders:
            result = row(name, sender, report["path_mtu"],
                         *run(ends, name, sender, report["path_mtu"]))
            report["measurements"].append(result)
            say("  %s, from %s: %s" % (one.title, sender, shown(result)))


def pingpong(ends, side, path_mtu):
    """Runs a pingpong with the RDMA device of `side`. Returns the results of both ends."""
    try:
        ends[side].ask("pingpong_device")
        ends[OTHER[side]].ask("pingpong_rocade", path_mtu=path_mtu)
        return ends[OTHER[side]].ask("pingpong_wait"), ends[side].ask("pingpong_wait")
    except (Gone, Unexpected):
        raise
    except Failed as error:
        return {"reason": traffic.hidden(str(error)), "usec_per_round": None, "rounds": 0}, None
    finally:
        for end in ends.values():
            end.ask("pingpong_stop")


def interop(ends, report, say):
    say("interop")
    for side in ends:
        device = ends[side].ask("rdma")
        out = {"device_end": side, "device": device["name"] or None,
               "driver": device["driver"] or None, "result": "not present",
               "reason": device["reason"], "usec_per_round": None, "rounds": 0}
        if device["present"]:
            rocade, kernel = pingpong(ends, side, report["path_mtu"])
            out["reason"] = rocade["reason"] or kernel["reason"]
            out["result"] = "fail" if out["reason"] else "pass"
            out["usec_per_round"] = rocade["usec_per_round"]
            out["rounds"] = rocade["rounds"]
        report["interop"].append(out)
        say("  RDMA device of %s: %s%s" % (
            side, out["device"] or "not present", "" if out["result"] == "not present" else
            ", %s" % (out["reason"] or "%.1f us a round trip, verified" % out["usec_per_round"])))


def verdict(report):
    bad = [one for one in report["measurements"] + report["interop"] if one["result"] == "fail"]
    return "fail" if report["reason"] or bad or not report["measurements"] else "pass"
