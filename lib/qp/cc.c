/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/cc_target.h"
#include "qp/srtt.h"

/* ---- Losses ---- */

void
cc_acked(struct cc *cc, uint32_t packets)
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
cnp_round(struct cc *cc, uint64_t now)
{
	if (now - cc->round_at < cc_srtt_ns(cc))
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
least_window(const struct cc *cc)
{
	return RTE_MIN(RTE_MAX(CC_MIN, cc_srtt_ns(cc) >> 12), cc->first);
}

/* Cuts the window by this part of 1024, once in a round trip. */
static bool
cut(struct cc *cc, uint32_t part, uint64_t now)
{
	cc->slow_start = false;
	cc->calm_at = now;
	if (now - cc->cut_at < cc_srtt_ns(cc))
		return false;
	cc->cut_at = now;
	cc->cwnd -= (uint32_t)((uint64_t)cc->cwnd * part >> 10);
	cc->cwnd = RTE_MAX(cc->cwnd, least_window(cc));
	return true;
}

/* Where delays are unknown: even the short ones of the last round trips are longer than the least one,
 * so there may be a queue. Waits for a core make some of them long, but not all. */
static inline bool
are_long(const struct cc *cc)
{
	return cc->recent_ns > cc->path_ns + (uint64_t)cc->path_ns / 4;
}

/* Where delays are unknown: takes a round trip in. recent_ns rises once in a smoothed round trip,
 * because several QPs have samples, which one wait for a core makes long together. If all are long for
 * CC_LONG_NS, the path has become longer, or the first requests were shorter. */
static void
recent_sample(struct cc *cc, uint32_t rtt_ns, uint64_t now)
{
	if (rtt_ns <= cc->recent_ns) {
		cc->recent_ns = rtt_ns;
	} else if (now - cc->recent_at >= cc->srtt_ns) {
		cc->recent_ns = RTE_MIN(rtt_ns, cc->recent_ns + cc->recent_ns / 32);
		cc->recent_at = now;
	}
	if (!are_long(cc)) {
		cc->path_at = now;
	} else if (unlikely(now - cc->path_at > CC_LONG_NS)) {
		cc->path_ns = cc->recent_ns;
		cc->path_at = now;
	}
}

/* Where delays are unknown: the path is measured anew. */
static void
recent_restart(struct cc *cc)
{
	cc->path_ns = UINT32_MAX;
	cc->recent_ns = NS_PER_SEC;
}

/* After CC_CALM round trips whose delays left more than base_ns / 2 to the target, the
 * window grows by a quarter in each: what had cut it is over. */
static void
grow(struct cc *cc, const struct cc_sample *s, uint32_t target_ns, uint64_t now)
{
	bool calm = now - cc->calm_at >= (uint64_t)CC_CALM * cc_srtt_ns(cc);

	if (!cc_window_used(cc, s))
		return;
	if (s->delay_ns >= target_ns - cc->base_ns / 2) {
		cc->slow_start = calm = false;
		cc->calm_at = now;
	} else if (cc->judges_losses && are_long(cc)) {
		calm = false;
		cc->calm_at = now;
	}
	cc_widen(cc, s->packets,
		cc->slow_start ? CC_DOUBLE
		: calm         ? CC_QUARTER
			       : CC_PACKET);
}

/* True if at least CC_QUEUED bytes of the window are in queues: of each packet's delay,
 * the part above the least round trip was the wait in queues (TCP Vegas). A least round trip
 * that is too long for the level includes a queue. Bytes, because 13 short packets are the
 * turns of two poll loops, and no queue. */
static inline bool
is_queued(const struct cc *cc, uint32_t delay_ns)
{
	uint32_t path_ns = RTE_MIN(cc->path_ns, cc_level_ns(cc) - cc->base_ns / 2);

	return delay_ns > path_ns &&
	       (delay_ns - path_ns) * ((uint64_t)cc->cwnd * cc->packet >> CC_SHIFT) >=
		       (uint64_t)delay_ns * CC_QUEUED;
}

/* Lets the window follow the delay. */
static enum cc_cut
delay_judge(struct cc *cc, const struct cc_sample *s, uint64_t now)
{
	uint32_t delay = s->delay_ns, target = cc_target_ns(cc), part = 0;
	bool queued = is_queued(cc, delay);

	if (delay < target && !queued) {
		grow(cc, s, target, now);
		return CC_CUT_NONE;
	}
	if (delay >= target)
		part = (uint32_t)(819 * (uint64_t)(delay - target) / delay);
	if (queued)
		part = RTE_MAX(part, CC_QUEUED_CUT);
	if (!cc_window_used(cc, s) || !cut(cc, RTE_MIN(512u, part), now))
		return CC_CUT_NONE;
	if (queued)
		cc_target_queued(cc, now);
	cc->cuts += cc->cuts != UINT8_MAX;
	cc->before = 0;
	return CC_CUT_DELAY;
}

/* Unsteady: of four delays the least one counts. */
static enum cc_cut RARE
least_judge(struct cc *cc, const struct cc_sample *s, uint64_t now)
{
	struct cc_sample least = *s;

	if (cc->few == 0) {
		cc->few_ns = UINT32_MAX;
		cc->few_packets = 0;
	}
	cc->few_ns = RTE_MIN(cc->few_ns, s->delay_ns);
	cc->few_packets += s->packets;
	if (++cc->few < CC_FEW)
		return CC_CUT_NONE;
	cc->few = 0;
	least.delay_ns = cc->few_ns;
	least.packets = cc->few_packets;
	return delay_judge(cc, &least, now);
}

/* ---- Signals ---- */

void
cc_packet(struct cc *cc, uint32_t payload)
{
	srtt_sample(&cc->packet, RTE_MIN(payload, 4096u) + CC_HEADERS);
}

enum cc_cut
cc_sample(struct cc *cc, const struct cc_sample *s, uint64_t now)
{
	uint32_t delay = s->delay_ns;

	cc->active_at = cc->sample_at = now;
	cc->delay_ns = delay;
	srtt_sample(&cc->srtt_ns, s->rtt_ns);
	if (unlikely(s->rtt_ns < cc->path_ns)) {
		cc->path_ns = s->rtt_ns;
		cc->path_at = now;
	}
	if (cc->judges_losses)
		recent_sample(cc, s->rtt_ns, now);
	cc_acked(cc, s->packets);
	if (unlikely(cc->cnp_seen || cc->cnp_part != 0))
		cnp_round(cc, now);
	/* An empty network, and nothing to gain from a larger window. */
	if (likely(delay < cc->base_ns / 2 && cc->level == 0 && !cc->climbing &&
		    (cc->cwnd == cc->cap || !cc_window_used(cc, s)))) {
		cc->low_ns = RTE_MIN(cc->low_ns, delay);
		cc->idle = 0;
		return CC_CUT_NONE;
	}
	if (unlikely(cc->check_due) && cc_target_check(cc, s, now))
		return CC_CUT_NONE;
	if (s->idle && cc->cwnd >= cc->first)
		cc_target_idle(cc, delay, now);
	/* A longer delay is no queue: a host did not run. */
	if (unlikely(delay >= cc_level_top_ns(cc)))
		return CC_CUT_NONE;
	if (unlikely(cc->climbing)) {
		cc_target_climb(cc, s, now);
		return CC_CUT_NONE;
	}
	cc_target_watch(cc, s, now);
	return likely(!cc->unsteady) ? delay_judge(cc, s, now) : least_judge(cc, s, now);
}

/* A loss where delays are unknown. After each loss the window grows by a packet in a round trip:
 * windows that grow by parts of themselves would keep their ratio for ever. Losses that were judged
 * count no more: with a small window, whose packets are few, they would cut it for long. */
static enum cc_cut RARE
loss_judge(struct cc *cc, uint64_t now)
{
	cc->slow_start = false;
	cc->calm_at = now;
	if (!are_long(cc) && !cc_loses_much(cc))
		return CC_CUT_NONE;
	cc->acked = cc->lost = 0;
	return cut(cc, 512, now) ? CC_CUT_LOSS : CC_CUT_NONE;
}

enum cc_cut
cc_loss(struct cc *cc, uint64_t now)
{
	cc->lost += CC_ONE;
	cc_target_loss(cc, now);
	if (cc->judges_losses && cc->srtt_ns != 0)
		return loss_judge(cc, now);
	if ((cc->climbing || cc->delay_ns < cc_level_ns(cc)) && !cc_loses_much(cc))
		return CC_CUT_NONE;
	return cut(cc, 512, now) ? CC_CUT_LOSS : CC_CUT_NONE;
}

enum cc_cut
cc_probe(struct cc *cc, unsigned nth, uint64_t now)
{
	/* The first one may only be early: what it finds lost is counted then. */
	if (nth < 2)
		return CC_CUT_NONE;
	cc_target_check_stop(cc, now);
	if (cc->before == 0)
		cc->before = cc->cwnd;
	cc->slow_start = false;
	if (nth == 2)
		return cut(cc, 512, now) ? CC_CUT_LOSS : CC_CUT_NONE;
	cc->cwnd = least_window(cc);
	cc->cut_at = now;
	return CC_CUT_LOSS;
}

void
cc_answer(struct cc *cc, bool late)
{
	uint32_t window = late ? cc->before : RTE_MIN(cc->before / 2, cc->first);

	cc->before = 0;
	if (cc->cwnd >= window)
		return;
	cc->cwnd = window;
	cc->exceeded = false;
	cc->slow_start = !late && window == cc->first;
}

enum cc_cut
cc_cnp(struct cc *cc, uint64_t now)
{
	cc_target_check_stop(cc, now);
	cc->cnp_seen = true;
	if (cc->cnp_part == 0) {
		cc->cnp_part = 1024;
		cc->round_at = now;
	}
	return cut(cc, cc->cnp_part / 2, now) ? CC_CUT_CNP : CC_CUT_NONE;
}

void
cc_resume(struct cc *cc, uint64_t now)
{
	if (!cc_paused(cc, now))
		return;
	cc->cwnd = cc->first;
	cc->exceeded = false;
	cc->before = 0;
	cc->slow_start = true;
	cc->calm_at = now;
	if (cc->judges_losses)
		recent_restart(cc);
	cc_target_restart(cc, now);
	cc->active_at = now;
}

uint64_t
cc_gap_ns(const struct cc *cc)
{
	return RTE_MIN(((uint64_t)cc_srtt_ns(cc) << CC_SHIFT) / cc->cwnd, CC_GAP_MAX_NS);
}

/* Control path. */

void
cc_init(struct cc *cc, const struct cc_conf *conf, uint32_t cap)
{
	uint32_t first = conf->window != 0 ? conf->window : CC_WINDOW;

	*cc = (struct cc){0};
	if (!conf->on || cap == 0)
		return;
	cap = RTE_MIN(cap, CC_CAP_MAX);
	cc->cap = cap << CC_SHIFT;
	cc->first = RTE_MIN(first, cap) << CC_SHIFT;
	cc->cwnd = cc->first;
	cc->base_ns = (conf->target_us != 0 ? conf->target_us : CC_TARGET_US) * NS_PER_US;
	cc->loss = conf->loss != 0 ? conf->loss : CC_LOSS;
	cc->delay_unknown = conf->delay_unknown && conf->target_us == 0;
	cc->judges_losses = cc->delay_unknown && !conf->memory_link;
	cc->slow_start = true;
	cc->packet = CC_LONGEST;
	recent_restart(cc);
	/* A loss before the first round trip is taken for congestion. */
	cc->delay_ns = cc->low_ns = UINT32_MAX;
}
