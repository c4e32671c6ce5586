/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/cc_target.h"

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

/* ---- Levels ---- */

static inline uint32_t
level_length_ns(const struct cc *cc, unsigned level)
{
	uint32_t ns = cc->base_ns << level / 2;

	return level % 2 != 0 ? ns + ns / 128 * 53 : ns; /* the square root of 2 */
}

uint32_t
cc_level_ns(const struct cc *cc)
{
	return level_length_ns(cc, cc->level);
}

uint32_t
cc_level_top_ns(const struct cc *cc)
{
	return level_length_ns(cc, CC_LEVELS - 1);
}

uint32_t
cc_target_ns(const struct cc *cc)
{
	return cc_level_ns(cc) + flow_scaling_ns(cc->cwnd);
}

static void
level_set(struct cc *cc, unsigned level, uint64_t now)
{
	cc->level = (uint8_t)level;
	cc->level_at = now;
}

/* Raises the level until it is at least this long, for a path with this delay. Slow
 * start begins again. */
static void RARE
level_raise(struct cc *cc, uint32_t ns, uint32_t delay_ns, uint64_t now)
{
	unsigned level = cc->level;

	if (!cc->check_due || cc->check_ns == 0) {
		cc->check_due = true;
		cc->check_level = cc->level;
		cc->check_ns = delay_ns;
	}
	cc->check_at = now + (uint64_t)CC_CHECK * cc_srtt_ns(cc);

	while (level < CC_LEVELS - 1 && level_length_ns(cc, level) < ns)
		level++;
	level_set(cc, level, now);
	cc->slow_start = true;
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

/* ---- Idle samples ---- */

/* Most of the idle samples must agree, because a few may have met the queues of others. */
void
cc_target_idle(struct cc *cc, uint32_t delay_ns, uint64_t now)
{
	uint32_t want = level_wanted_ns(cc, delay_ns);

	if (cc->idle == 0) {
		cc->idle_ns = UINT32_MAX;
		cc->idle_high = cc->idle_low = 0;
	}
	cc->idle++;
	cc->idle_ns = RTE_MIN(cc->idle_ns, want);
	cc->idle_high += want > cc_level_ns(cc);
	cc->idle_low += level_can_fall(cc, delay_ns);
	if (cc->idle < CC_IDLE_SAMPLES)
		return;
	if (cc->idle_high >= CC_IDLE_AGREE)
		level_raise(cc, RTE_MAX(cc->idle_ns, cc_level_ns(cc) + 1),
			cc->idle_ns - cc->base_ns / 2, now);
	else if (cc->idle_low >= CC_IDLE_AGREE && now - cc->level_at >= CC_LEVEL_NS)
		level_set(cc, cc->level - 1u, now);
	cc->idle = 0;
}

/* ---- Climbs ---- */

/*
 * With a small window, a delay that stays above the level is either the queue of many
 * senders or a long path. To tell them apart the window is doubled in each round trip:
 * behind a full link each packet adds to the delay, on a long path it does not, until the
 * window fills the path. So a delay that grows all at once, and when the window is large,
 * is that of a long path.
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
climb_begin(struct cc *cc, uint64_t now)
{
	cc->climbing = true;
	cc->climb_skip = 0;
	cc->starved = 0;
	cc->climb_from = cc->cwnd;
	/* Without any queue, too, delays differ: by the turns of the hosts' poll loops. */
	cc->climb_ns = cc->low_ns + RTE_MAX(cc->low_ns / 8 + NS_PER_US, CC_CLIMB_NS);
	cc->climb_top_ns = cc->low_ns;
	cc->watch_at = now;
}

static void RARE
climb_fail(struct cc *cc, uint64_t now)
{
	cc->cwnd = RTE_MIN(cc->cwnd, cc->climb_from);
	cc->climb_shift = RTE_MIN(cc->climb_shift + 1, CC_CLIMB_MAX_SHIFT);
	watch_restart(cc, now);
}

static void RARE
climb_succeed(struct cc *cc, uint64_t now)
{
	level_raise(cc, level_wanted_ns(cc, cc->low_ns), cc->low_ns, now);
	cc->climb_shift = 0;
	watch_restart(cc, now);
}

/* The delay has risen above climb_ns. The climb succeeds if the window is at least
 * CC_CLIMB_FULL and the delay has grown suddenly (CC_CLIMB_SUDDEN): the window has just
 * filled a long path. Else it fails: behind a link that was full before, twice the window
 * adds twice the delay. */
static void RARE
climb_stop(struct cc *cc, uint32_t delay_ns, uint64_t now)
{
	uint64_t before = cc->climb_top_ns - cc->low_ns;

	if (cc->cwnd >= CC_CLIMB_FULL &&
		delay_ns - cc->low_ns >= CC_CLIMB_SUDDEN * before)
		climb_succeed(cc, now);
	else
		climb_fail(cc, now);
}

/* The delay has not risen. The climb succeeds two round trips after the window has
 * reached its top. Below the top it lasts CC_WATCH round trips. It then succeeds if the
 * window is at least CC_CLIMB_ENOUGH (the sender has no more to send), and else fails.
 * took: ns since watch_at. */
static void RARE
climb_end(struct cc *cc, uint64_t took, uint64_t now)
{
	if (cc->cwnd >= RTE_MIN(CC_CLIMB_TOP, cc->cap) &&
		took > 2 * (uint64_t)cc_srtt_ns(cc))
		climb_succeed(cc, now);
	else if (took <= (uint64_t)CC_WATCH * cc_srtt_ns(cc))
		return;
	else if (cc->cwnd >= CC_CLIMB_ENOUGH)
		climb_succeed(cc, now);
	else
		climb_fail(cc, now);
}

void RARE
cc_target_climb(struct cc *cc, const struct cc_sample *s, uint64_t now)
{
	uint32_t top = RTE_MIN(CC_CLIMB_TOP, cc->cap);

	if (unlikely(cc->climb_skip != 0)) {
		cc->climb_skip--;
		return;
	}
	if (s->delay_ns > cc->climb_ns) {
		climb_stop(cc, s->delay_ns, now);
		return;
	}
	/* The delay has fallen by more than a rise that ends a climb: the delay at the
	 * start of the climb was that of a queue. */
	if (cc->low_ns > s->delay_ns + (cc->climb_ns - cc->low_ns)) {
		climb_fail(cc, now);
		return;
	}
	cc->climb_top_ns = RTE_MAX(cc->climb_top_ns, s->delay_ns);
	if (cc->cwnd < top && cc_window_used(cc, s)) {
		cc_widen(cc, s->packets, CC_DOUBLE);
		if (cc->cwnd >= top)
			cc->watch_at = now;
	}
	climb_end(cc, now - cc->watch_at, now);
}

/* ---- Checks ---- */

/*
 * A level that rose for the queue of others takes the link from them. So once after a rise
 * the window is a packet for two round trips. If the delay is then less than the one for
 * which the level rose, by more than a quarter, that one was a queue.
 *
 * A check also measures the least round trip anew. Without checks a path that has become
 * longer would be taken for a queue, and a sender that has only met a path with queues would
 * keep more in them than the others.
 */

static void RARE
check_end(struct cc *cc, uint64_t now)
{
	cc->checking = cc->check_due = false;
	cc->cwnd = cc->check_cwnd;
	cc->path_ns = cc->check_path;
	cc->path_at = now;
	if (cc->check_low >= cc->check_ns - cc->check_ns / 4)
		return;
	cc->cwnd = RTE_MIN(cc->cwnd, cc->first);
	cc->climb_shift = RTE_MIN(cc->climb_shift + 2, CC_CLIMB_MAX_SHIFT);
	level_set(cc, RTE_MIN(cc->level, cc->check_level), now);
	watch_restart(cc, now);
}

void
cc_target_queued(struct cc *cc, uint64_t now)
{
	if (likely(now - cc->path_at < CC_PATH_NS || cc->check_due))
		return;
	cc->check_due = true;
	cc->check_level = cc->level;
	cc->check_ns = 0; /* whatever it measures, the level stays */
	cc->check_at = now;
}

void RARE
cc_target_check_stop(struct cc *cc, uint64_t now)
{
	if (!cc->checking)
		return;
	cc->checking = false;
	cc->cwnd = cc->check_cwnd;
	cc->check_due = cc->check_ns != 0;
	cc->check_at = now + (uint64_t)CC_CHECK * cc_srtt_ns(cc);
	cc->path_at = now;
}

bool RARE
cc_target_check(struct cc *cc, const struct cc_sample *s, uint64_t now)
{
	if (!cc->checking) {
		if (now < cc->check_at || cc->climbing || cc->unsteady || cc->before != 0)
			return false;
		cc->checking = true;
		cc->check_at = now;
		cc->check_cwnd = cc->cwnd;
		cc->check_path = UINT32_MAX;
		cc->check_low = UINT32_MAX;
		cc->check_count = 0;
		cc->cwnd = RTE_MIN(cc->cwnd, CC_ONE);
		return true;
	}
	cc->check_path = RTE_MIN(cc->check_path, s->rtt_ns);
	if (s->idle) {
		cc->check_count++;
		cc->check_low = RTE_MIN(cc->check_low, s->delay_ns);
	}
	if (cc->check_count == CC_CHECK_SAMPLES ||
		now - cc->check_at > (uint64_t)CC_CHECK * cc_srtt_ns(cc))
		check_end(cc, now);
	return true;
}

/* ---- Watches ---- */

/* In an even load the least delay of a watch is at least half of the mean. If it is
 * less, and delays cut the window all the same, the long ones are not those of a queue
 * that lasts: one of the hosts polls late at times. */
static void
unsteady_judge(struct cc *cc)
{
	uint32_t mean_ns = (uint32_t)(cc->delay_sum_ns / cc->delays);

	if (cc->low_ns >= mean_ns / 2) {
		cc->unsteady = false;
	} else if (cc->cuts >= CC_UNSTEADY_CUTS && !cc->unsteady) {
		cc->unsteady = true;
		cc->few = 0;
	}
}

/* Senders that share a full link and climb at the same time add to each other's delays.
 * So after a failed climb a climb that is due begins only with a chance of one in
 * CC_CLIMB_DRAWS, at the end of each starved watch. */
static bool
climb_is_due(const struct cc *cc, uint64_t now)
{
	uint64_t draw = now * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return cc->starved >> cc->climb_shift != 0 &&
	       (cc->climb_shift == 0 || draw % CC_CLIMB_DRAWS == 0);
}

/* After some round trips: judges their delays, and begins a climb when they were above the
 * level all the time. */
static void RARE
watch_end(struct cc *cc, uint64_t now)
{
	bool starved = cc->low_ns >= cc_level_ns(cc) && cc->cwnd < CC_SMALL &&
		       cc->cwnd < cc->first && !cc->lossy && !cc_loses_part(cc, 2);

	unsteady_judge(cc);
	if (cc->cuts == 0 && now - cc->level_at >= CC_LEVEL_NS &&
		level_can_fall(cc, cc->low_ns))
		level_set(cc, cc->level - 1u, now);
	cc->starved += starved;
	if (starved && climb_is_due(cc, now))
		climb_begin(cc, now);
	else
		watch_restart(cc, now);
}

void
cc_target_watch(struct cc *cc, const struct cc_sample *s, uint64_t now)
{
	if (s->rtt_ns - cc->path_ns <= cc->path_ns / 4)
		cc->path_at = now;
	cc->low_ns = RTE_MIN(cc->low_ns, s->delay_ns);
	cc->delays++;
	cc->delay_sum_ns += s->delay_ns;
	if (unlikely(now - cc->watch_at >= (uint64_t)CC_WATCH * cc_srtt_ns(cc)))
		watch_end(cc, now);
}

void RARE
cc_target_loss(struct cc *cc, uint64_t now)
{
	cc->lossy = true;
	cc->climb_skip = CC_CLIMB_SKIP; /* they are behind resent packets */
	cc_target_check_stop(cc, now);
	if (!cc_loses_much(cc))
		return;
	if (cc->climbing)
		climb_fail(cc, now);
	if (cc->level != 0 && now - cc->level_at >= (uint64_t)CC_WATCH * cc_srtt_ns(cc))
		level_set(cc, cc->level - 1u, now);
}

void RARE
cc_target_restart(struct cc *cc, uint64_t now)
{
	watch_restart(cc, now);
	cc->checking = false;
	cc->starved = 0;
	cc->climb_shift = 0;
}
