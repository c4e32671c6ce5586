/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/cc.h"

/* ---- The delay target ---- */

/*
 * What is added to the target of a small window, so that many senders with little each
 * share fairly (Swift 3.1, flow scaling): 32.26 us / sqrt(packets) - 2.02 us, which is
 * 100 us for 0.1 and nothing from 256 packets on. Nanoseconds for powers of two from 1/16
 * on; in between a line is near enough.
 */
#define SCALING_FIRST_BIT 4
static const uint32_t scaling_ns[] = {
	127000, 89200, 62500, 43600, 30240, 20800, 14110, 9390, 6050, 3690, 2020, 840, 0};

static uint32_t
flow_scaling_ns(uint32_t cwnd)
{
	unsigned bit = 31 - (unsigned)__builtin_clz(cwnd);
	unsigned i = bit - SCALING_FIRST_BIT;

	if (i >= RTE_DIM(scaling_ns) - 1)
		return 0;
	return scaling_ns[i] - (uint32_t)((uint64_t)(scaling_ns[i] - scaling_ns[i + 1]) *
						  (cwnd - (1u << bit)) >>
					  bit);
}

static inline uint32_t
level_length_ns(const struct cc *cc, unsigned level)
{
	uint32_t ns = cc->base_ns << level / 2;

	return level % 2 != 0 ? ns + ns / 128 * 53 : ns; /* the square root of 2 */
}

static inline uint32_t
level_ns(const struct cc *cc)
{
	return level_length_ns(cc, cc->level);
}

/* A longer delay is no queue: a host that does not run, or a very long path. */
static inline uint32_t
top_ns(const struct cc *cc)
{
	return level_length_ns(cc, CC_LEVELS - 1);
}

uint32_t
cc_target_ns(const struct cc *cc)
{
	return level_ns(cc) + flow_scaling_ns(cc->cwnd);
}

static void
level_set(struct cc *cc, uint8_t level, uint64_t now)
{
	cc->level = level;
	cc->level_at = now;
}

/* Raises the level until it is at least this long. */
static void
level_raise(struct cc *cc, uint32_t ns, uint64_t now)
{
	uint8_t level = cc->level;

	while (level < CC_LEVELS - 1 && level_length_ns(cc, level) < ns)
		level++;
	level_set(cc, level, now);
}

/* The level for a round trip of this length without a queue: half of the lowest level is left
 * for the queue. */
static inline uint32_t
level_wanted_ns(const struct cc *cc, uint32_t delay_ns)
{
	return delay_ns + cc->base_ns / 2;
}

static bool
level_can_fall(const struct cc *cc, uint32_t delay_ns)
{
	return cc->level != 0 &&
	       level_wanted_ns(cc, delay_ns) <= level_length_ns(cc, cc->level - 1u);
}

/* Most of the idle samples must agree, because a few may have met the queues of others. */
static void
idle_sample(struct cc *cc, uint32_t delay_ns, uint64_t now)
{
	uint32_t want = level_wanted_ns(cc, delay_ns);

	if (cc->idle == 0) {
		cc->idle_ns = UINT32_MAX;
		cc->idle_high = cc->idle_low = 0;
	}
	cc->idle++;
	cc->idle_ns = RTE_MIN(cc->idle_ns, want);
	cc->idle_high += want > level_ns(cc);
	cc->idle_low += level_can_fall(cc, delay_ns);
	if (cc->idle < CC_IDLE_SAMPLES)
		return;
	if (cc->idle_high >= CC_IDLE_AGREE) {
		level_raise(cc, RTE_MAX(cc->idle_ns, level_ns(cc) + 1), now);
		cc->slow_start = true;
	} else if (cc->idle_low >= CC_IDLE_AGREE && now - cc->level_at >= CC_LEVEL_NS) {
		level_set(cc, cc->level - 1, now);
	}
	cc->idle = 0;
}

/* ---- Losses ---- */

/* True if so many of the last packets were lost that chance does not explain it. */
static bool
loses_much(const struct cc *cc)
{
	uint64_t all = cc->lost + ((uint64_t)(cc->acked + CC_HISTORY / 16) << CC_SHIFT);

	return cc->lost * UINT64_C(1000) >= all * cc->loss;
}

static void
acked_count(struct cc *cc, uint32_t packets)
{
	cc->acked += packets;
	if (unlikely(cc->acked > CC_HISTORY)) {
		cc->acked /= 2;
		cc->lost /= 2;
	}
}

/* ---- CNPs ---- */

/* Each round trip counts for a sixteenth, with or without CNPs (as in DCTCP). */
static void
cnp_round(struct cc *cc, uint32_t srtt_ns, uint64_t now)
{
	if (now - cc->round_at < srtt_ns)
		return;
	cc->cnp_part -= (cc->cnp_part + 15) / 16;
	if (cc->cnp_seen)
		cc->cnp_part += 64;
	cc->cnp_seen = false;
	cc->round_at = now;
}

/* ---- The window ---- */

/* A path with a long round trip has no less than a packet in a millisecond. */
static uint32_t
least_window(const struct cc *cc, uint32_t srtt_ns)
{
	return RTE_MIN(RTE_MAX(CC_MIN, srtt_ns >> 12), cc->first);
}

/* Cuts the window by this part of 1024, once in a round trip. */
static bool
cut(struct cc *cc, uint32_t part, uint32_t srtt_ns, uint64_t now)
{
	uint32_t least = least_window(cc, srtt_ns);

	cc->slow_start = false;
	if (now - cc->cut_at < srtt_ns)
		return false;
	cc->cut_at = now;
	cc->cwnd -= (uint32_t)((uint64_t)cc->cwnd * part >> 10);
	cc->cwnd = RTE_MAX(cc->cwnd, least);
	return true;
}

/* The window is at its least, and still the delay is above the target. Less does not
 * help, so it is no queue of such senders: the path or its hosts are slow. */
static void
stuck_count(struct cc *cc, uint32_t srtt_ns, uint64_t now)
{
	if (cc->cwnd > least_window(cc, srtt_ns) || loses_much(cc)) {
		cc->stuck = 0;
		return;
	}
	if (++cc->stuck < CC_STUCK)
		return;
	level_raise(cc, srtt_ns, now);
	cc->stuck = 0;
	cc->cwnd = cc->first;
}

/* A window of which not even half was in use says nothing about a larger one, and is not
 * what makes a queue. */
static inline bool
window_used(const struct cc *cc, const struct cc_sample *s)
{
	return (s->inflight + s->packets) << CC_SHIFT >= cc->cwnd / 2;
}

/* Adds the packets that were acknowledged, or what makes one packet in a round trip. */
static void
widen(struct cc *cc, const struct cc_sample *s, bool doubling)
{
	if (doubling || cc->cwnd < CC_ONE)
		cc->cwnd += s->packets << CC_SHIFT;
	else
		cc->cwnd += (s->packets << 2 * CC_SHIFT) / cc->cwnd;
	cc->cwnd = RTE_MIN(cc->cwnd, cc->cap);
}

static void
grow(struct cc *cc, const struct cc_sample *s, uint32_t delay_ns, uint32_t target_ns)
{
	cc->stuck = 0;
	if (!window_used(cc, s))
		return;
	if (delay_ns >= target_ns - cc->base_ns / 2)
		cc->slow_start = false;
	widen(cc, s, cc->slow_start);
}

/* ---- Climbs ---- */

/*
 * With a small window, a delay that stays above the level is either the queue of many
 * senders or a long path. To tell them apart the window is doubled in each round trip:
 * behind a full link each packet adds to the delay, on a long path it does not.
 */

static void
watch_restart(struct cc *cc, uint64_t now)
{
	cc->climbing = cc->lossy = false;
	cc->low_ns = UINT32_MAX;
	cc->delays = cc->cuts = 0;
	cc->delay_sum_ns = 0;
	cc->watch_at = now;
}

static void RARE
climb_fail(struct cc *cc, uint64_t now)
{
	cc->cwnd = RTE_MIN(cc->cwnd, cc->climb_from);
	cc->watch_shift = RTE_MIN(cc->watch_shift + 1, CC_WATCH_MAX_SHIFT);
	watch_restart(cc, now);
}

static void RARE
climb(struct cc *cc, const struct cc_sample *s, uint64_t now)
{
	uint32_t top = RTE_MIN(CC_CLIMB_TOP, cc->cap);
	uint64_t took = now - cc->watch_at;

	if (s->delay_ns > cc->low_ns + cc->low_ns / 8 + NS_PER_US) {
		climb_fail(cc, now);
	} else if (cc->cwnd < top) {
		if (window_used(cc, s))
			widen(cc, s, true);
		if (cc->cwnd >= top)
			cc->watch_at = now;
		else if (took > (uint64_t)CC_WATCH * s->srtt_ns)
			climb_fail(cc, now); /* there is too little to send */
	} else if (took > 2 * (uint64_t)s->srtt_ns) {
		level_raise(cc, level_wanted_ns(cc, cc->low_ns), now);
		cc->watch_shift = 0;
		watch_restart(cc, now);
	}
}

/* The delays of a host in an even load differ by less than a half. If they differ by more,
 * and cut the window all the same, they are not those of a queue that lasts: a host has
 * slow turns, and the level must be above what they take. */
static void
unsteady_count(struct cc *cc, uint64_t now)
{
	uint32_t mean_ns = (uint32_t)(cc->delay_sum_ns / cc->delays);

	if (cc->lossy || cc->cuts < CC_UNSTEADY_CUTS || cc->low_ns >= mean_ns / 2) {
		cc->unsteady = false;
	} else if (!cc->unsteady) {
		cc->unsteady = true;
	} else {
		level_raise(cc, RTE_MAX(mean_ns, level_ns(cc) + 1), now);
	}
}

/* After some round trips: judges their delays, and begins a climb when they were above the
 * level all the time. */
static void RARE
watch_end(struct cc *cc, uint64_t now)
{
	bool starved = cc->low_ns >= level_ns(cc) && cc->low_ns < top_ns(cc) &&
		       cc->cwnd < cc->first && !cc->lossy;

	unsteady_count(cc, now);
	if (cc->cuts == 0 && now - cc->level_at >= CC_LEVEL_NS &&
		level_can_fall(cc, cc->low_ns))
		level_set(cc, cc->level - 1, now);
	if (!starved) {
		watch_restart(cc, now);
		return;
	}
	cc->climbing = true;
	cc->climb_from = cc->cwnd;
	cc->watch_at = now;
}

static inline void
watch(struct cc *cc, const struct cc_sample *s, uint64_t now)
{
	cc->low_ns = RTE_MIN(cc->low_ns, s->delay_ns);
	cc->delays++;
	cc->delay_sum_ns += s->delay_ns;
	if (unlikely(now - cc->watch_at >= (uint64_t)CC_WATCH * s->srtt_ns
						   << cc->watch_shift))
		watch_end(cc, now);
}

/* ---- Signals ---- */

enum cc_cut
cc_sample(struct cc *cc, const struct cc_sample *s, uint64_t now)
{
	uint32_t target, delay = s->delay_ns;

	cc->active_at = now;
	cc->delay_ns = delay;
	acked_count(cc, s->packets);
	if (unlikely(cc->cnp_seen || cc->cnp_part != 0))
		cnp_round(cc, s->srtt_ns, now);
	/* An empty network, and nothing to gain from a larger window. */
	if (likely(delay < cc->base_ns / 2 && cc->level == 0 && !cc->climbing &&
		    (cc->cwnd == cc->cap || !window_used(cc, s)))) {
		cc->low_ns = RTE_MIN(cc->low_ns, delay);
		cc->idle = 0;
		return CC_CUT_NONE;
	}
	if (s->idle && cc->cwnd >= cc->first)
		idle_sample(cc, delay, now);
	if (unlikely(cc->climbing)) {
		climb(cc, s, now);
		return CC_CUT_NONE;
	}
	watch(cc, s, now);
	target = cc_target_ns(cc);
	if (unlikely(delay >= top_ns(cc)))
		delay = 0;
	if (delay < target) {
		grow(cc, s, delay, target);
		return CC_CUT_NONE;
	}
	if (!window_used(cc, s) ||
		!cut(cc, RTE_MIN(512u, 819 * (delay - target) / delay), s->srtt_ns, now))
		return CC_CUT_NONE;
	cc->cuts += cc->cuts != UINT8_MAX;
	stuck_count(cc, s->srtt_ns, now);
	return CC_CUT_DELAY;
}

enum cc_cut
cc_loss(struct cc *cc, uint32_t srtt_ns, uint64_t now)
{
	cc->lost += CC_ONE;
	cc->lossy = true;
	if ((cc->climbing || cc->delay_ns < level_ns(cc)) && !loses_much(cc))
		return CC_CUT_NONE;
	if (cc->climbing)
		climb_fail(cc, now);
	return cut(cc, 512, srtt_ns, now) ? CC_CUT_LOSS : CC_CUT_NONE;
}

enum cc_cut
cc_probe(struct cc *cc, unsigned nth, uint32_t srtt_ns, uint64_t now)
{
	/* The first one may only be early: what it finds lost is counted then. */
	if (nth < 2)
		return CC_CUT_NONE;
	cc->slow_start = false;
	if (nth == 2)
		return cut(cc, 512, srtt_ns, now) ? CC_CUT_LOSS : CC_CUT_NONE;
	cc->cwnd = least_window(cc, srtt_ns);
	cc->cut_at = now;
	return CC_CUT_LOSS;
}

enum cc_cut
cc_cnp(struct cc *cc, uint32_t srtt_ns, uint64_t now)
{
	cc->cnp_seen = true;
	if (cc->cnp_part == 0) {
		cc->cnp_part = 1024;
		cc->round_at = now;
	}
	return cut(cc, cc->cnp_part / 2, srtt_ns, now) ? CC_CUT_CNP : CC_CUT_NONE;
}

void
cc_sent(struct cc *cc, uint64_t now)
{
	if (unlikely(now - cc->active_at > CC_IDLE_NS)) {
		cc->cwnd = RTE_MIN(cc->cwnd, cc->first);
		cc->slow_start = true;
		watch_restart(cc, now);
	}
	cc->active_at = now;
}

uint64_t
cc_gap_ns(const struct cc *cc, uint32_t srtt_ns)
{
	return RTE_MIN(((uint64_t)srtt_ns << CC_SHIFT) / cc->cwnd, CC_GAP_MAX_NS);
}

/* Control path. */

void
cc_init(struct cc *cc, const struct cc_conf *conf, uint32_t cap)
{
	uint32_t first = conf->window != 0 ? conf->window : CC_WINDOW;

	*cc = (struct cc){0};
	if (!conf->on)
		return;
	cc->cap = cap << CC_SHIFT;
	cc->first = RTE_MIN(first, cap) << CC_SHIFT;
	cc->cwnd = cc->first;
	cc->base_ns = (conf->target_us != 0 ? conf->target_us : CC_TARGET_US) * NS_PER_US;
	cc->loss = conf->loss != 0 ? conf->loss : CC_LOSS;
	cc->slow_start = true;
	/* A loss before the first round trip is taken for congestion. */
	cc->delay_ns = cc->low_ns = UINT32_MAX;
}
