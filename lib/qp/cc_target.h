/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The delay target of congestion control, for cc.c. */
#ifndef ROCADE_QP_CC_TARGET_H
#define ROCADE_QP_CC_TARGET_H

#include "qp/cc.h"

#define CC_IDLE_SAMPLES 8
#define CC_IDLE_AGREE 6
#define CC_WATCH 16        /* round trips of a watch */
#define CC_UNSTEADY_CUTS 3 /* of a watch */
#define CC_FAR 6           /* round trips far above the level */
#define CC_SMALL (8 * CC_ONE)
#define CC_CLIMB_TOP (64 * CC_ONE)
#define CC_CLIMB_ENOUGH (16 * CC_ONE) /* of a sender that has no more to send */
#define CC_CHECK 16                   /* round trips from a rise to its check */
#define CC_CHECK_SAMPLES 2
#define CC_CLIMB_NS (9 * NS_PER_US) /* more delay than that is a queue */
#define CC_CLIMB_FULL (32 * CC_ONE) /* from it on a climb may have filled the path, */
#define CC_CLIMB_SUDDEN 3 /* if the delay grew so many times as much as before */
#define CC_CLIMB_DRAWS 8  /* one of these watches begins another climb */
#define CC_CLIMB_SKIP 2   /* samples after a loss that say nothing */
#define CC_CLIMB_MAX_SHIFT 10
#define CC_LEVEL_NS NS_PER_SEC /* a level that rose stays for this long at least */

/* The smoothed round trip. */
static inline uint32_t
cc_srtt_ns(const struct cc *cc)
{
	return likely(cc->srtt_ns != 0) ? cc->srtt_ns : CC_SRTT_NS;
}

/* A window of which not even half was in use says nothing about a larger one, and is not
 * what makes a queue. */
static inline bool
cc_window_used(const struct cc *cc, const struct cc_sample *s)
{
	return (s->inflight + s->packets) << CC_SHIFT >= cc->cwnd / 2;
}

/* How fast a window grows in a round trip: */
enum cc_growth {
	CC_PACKET,      /* by a packet */
	CC_DOUBLE = 1,  /* twice as wide */
	CC_QUARTER = 4, /* by this part */
};

static inline void
cc_widen(struct cc *cc, uint32_t packets, enum cc_growth growth)
{
	uint64_t add = (uint64_t)packets << CC_SHIFT;

	if (growth == CC_QUARTER && cc->cwnd >= CC_QUARTER * CC_ONE)
		add /= CC_QUARTER;
	else if (growth != CC_DOUBLE && cc->cwnd >= CC_ONE)
		add = ((add << CC_SHIFT) + cc->cwnd - 1) / cc->cwnd;
	cc->cwnd = (uint32_t)RTE_MIN(cc->cwnd + add, (uint64_t)cc->cap);
}

/* True if more of the last packets were lost than chance explains, or more than one part of
 * that: a half, a third. */
static inline bool
cc_loses_part(const struct cc *cc, unsigned part)
{
	uint64_t all = cc->lost + ((uint64_t)(cc->acked + CC_HISTORY / 16) << CC_SHIFT);

	return part * cc->lost * UINT64_C(1000) >= all * cc->loss;
}

static inline bool
cc_loses_much(const struct cc *cc)
{
	return cc_loses_part(cc, 1);
}

/* The level, without what is added for small windows. */
uint32_t cc_level_ns(const struct cc *cc);
/* The highest level. A longer delay is no queue. */
uint32_t cc_level_top_ns(const struct cc *cc);

/* Each takes a sample in. */

/* Of an idle network. */
void cc_target_idle(struct cc *cc, uint32_t delay_ns, uint64_t now);
void cc_target_watch(struct cc *cc, const struct cc_sample *s, uint64_t now);
/* Instead of the watch, while climbing. */
void cc_target_climb(struct cc *cc, const struct cc_sample *s, uint64_t now);

/* The same for a check. Returns true if the sample belongs to it. */
bool cc_target_check(struct cc *cc, const struct cc_sample *s, uint64_t now);
/* A loss, a probe or a CNP ends a check without a result: resent packets, which give no
 * samples, would take a round trip each. */
void cc_target_check_stop(struct cc *cc, uint64_t now);

/* A packet was lost. */
void cc_target_loss(struct cc *cc, uint64_t now);
/* After a pause, and at first. */
void cc_target_restart(struct cc *cc, uint64_t now);

#endif
