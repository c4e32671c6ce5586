# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the stage neighbours, with their gates."""

import perftest
from perftest import Row, over

RANKS = (2, 3, 8)
SIZES = (8, 4 << 20)  # bytes of an all-reduce


class Table:
    """results: {name: [a sample for each round]}. failures: {scene: runs that failed}."""

    def __init__(self, results, failures):
        self.results, self.failures = results, failures
        self.rows = []

    def samples(self, name, field):
        return [one.get(field) if one else None for one in self.results.get(name, [])]

    def add(self, text, samples, gate=None, reach=None, less=False):
        self.rows.append(Row(text, samples, gate, reach, less).report())

    def plain(self, text, name, field, gate=None, reach=None, less=False):
        self.add(text, self.samples(name, field), gate, reach, less)

    def resent(self, scene, program="ib_", gate=None):
        """The packets sent again by all programs of a scene, or by one, added up."""
        counts = [count for name in self.results if name.startswith("%s %s" % (scene, program))
                  for count in self.samples(name, "resent") if count is not None]
        who = "" if program == "ib_" else ", %s" % program
        self.add("%s%s: packets sent again" % (scene, who), [sum(counts)] if counts else [],
                 gate, less=True)

    def failed(self, scene):
        count = self.failures.get(scene)
        self.add("%s: runs that failed" % scene, [] if count is None else [count], 0,
                 less=True)

    def idle(self):
        for program in ("send", "write"):
            name = "idle ib_%s_lat 64" % program
            self.plain("idle: ib_%s_lat 64 B, mean, us" % program, name, "mean_us", 2, 1, True)
            self.plain("idle: ib_%s_lat 64 B, p99, us" % program, name, "p99_us", 10, 3, True)
        self.plain("idle: ib_read_lat 64 B, mean, us", "idle ib_read_lat 64", "mean_us")
        self.plain("idle: ib_send_bw 64 B, M/s", "idle ib_send_bw 64", "million_per_s", 3, 6)
        for program in ("write", "read"):
            self.plain("idle: ib_%s_bw 64 B, M/s" % program, "idle ib_%s_bw 64" % program,
                       "million_per_s")
        self.bandwidths("idle", ("send", "write", "read"))
        self.failed("idle")
        self.add("idle client: percent of a core that the daemon takes", [
            100 * part for part in self.samples("idle client", "part")], 0.1, less=True)

    def bandwidths(self, scene, programs):
        for program in programs:
            self.plain("%s: ib_%s_bw 64 KiB, MiB/s" % (scene, program),
                       "%s ib_%s_bw 65536" % (scene, program), "megabytes_per_s")

    def busy(self):
        trips = zip(self.samples("busy ib_send_lat 64", "trips_per_s"),
                    self.samples("busy futex", "trips_per_s"))
        self.add("busy: round trips of ib_send_lat / of a futex ping-pong",
                 [over(*pair) for pair in trips], 0.7, 0.9)
        self.resent("busy", "ib_send_lat", 0)
        self.others("busy", "trips_per_s", "round trips a second")
        self.resent("busy")
        self.failed("busy")

    def others(self, scene, field, unit):
        for program in perftest.PROGRAMS:
            name = "%s %s 64" % (scene, program)
            if program.endswith("_bw"):
                self.plain("%s: %s 64 B, M/s" % (scene, program), name, "million_per_s")
            elif (scene, program) != ("one core", "ib_send_lat"):
                self.plain("%s: %s 64 B, %s" % (scene, program, unit), name, field)

    def one_core(self):
        self.plain("one core: ib_send_lat 64 B, typical, us", "one core ib_send_lat 64",
                   "typical_us", 8, 5, True)
        self.others("one core", "typical_us", "typical, us")
        self.resent("one core")
        self.failed("one core")

    def four_pairs(self):
        self.others("four pairs", "mean_us", "mean of a pair, us")
        self.resent("four pairs")
        self.failed("four pairs")

    def events(self):
        trips = zip(self.samples("events ib_send_lat 64", "typical_us"),
                    self.samples("events futex", "p50"))
        self.add("events: round trip of ib_send_lat -e / of a futex ping-pong",
                 [over(half and 2 * half, trip) for half, trip in trips], 1.5, 1.2, True)
        self.plain("events: round trip of a futex ping-pong, p50, us", "events futex", "p50")
        for program in ("ib_send_lat", "ib_read_lat"):
            self.plain("events: %s 64 B, typical, us" % program, "events %s 64" % program,
                       "typical_us")
        for program in ("send", "read"):
            self.plain("events: ib_%s_bw 64 B, M/s" % program, "events ib_%s_bw 64" % program,
                       "million_per_s")
        self.bandwidths("events", ("send", "read"))
        self.resent("events")
        self.failed("events")

    def all_reduce(self):
        def times(transport, ranks, size):
            return [(one or {}).get(size) for one in
                    self.samples("all-reduce %s %d" % (transport, ranks), "us")]

        for other, limits in (("tcp", {8: (1, 0.3), 4 << 20: (1, 0.6)}),
                              ("vader", {8: (None, 3), 4 << 20: (None, 1.3)})):
            for size, text in ((4 << 20, "4 MiB"), (8, "8 B")):
                for ranks in RANKS:
                    pairs = zip(times("rocade", ranks, size), times(other, ranks, size))
                    self.add("all-reduce %s, %d ranks: time over Open MPI's %s" % (
                        text, ranks, other), [over(*pair) for pair in pairs], *limits[size], True)
        for size, text in ((4 << 20, "4 MiB"), (8, "8 B")):
            for ranks in RANKS:
                self.add("all-reduce %s, %d ranks, us" % (text, ranks),
                         times("rocade", ranks, size))
        runs = [count for count in self.samples("resends", "resent") if count is not None]
        self.add("all-reduce, 3 ranks: packets sent again in %d runs" % len(runs),
                 [sum(runs)] if runs else [], 0, less=True)
        self.failed("all-reduce")

    def make(self):
        for part in (self.idle, self.busy, self.one_core, self.four_pairs, self.events,
                     self.all_reduce):
            part()
        return self.rows
