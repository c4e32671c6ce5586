/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The delay target of congestion control, for cc.c (docs/protocol.md 17.2). The words:
 * - A watch is CC_WATCH round trips, whose delays are judged together at its end.
 * - A watch is starved if all its delays were at the level or above it, the window was
 *   small, and no packet was lost. Then a climb may follow.
 * - A climb doubles the window in each round trip, to tell a long path from a queue.
 * - A check measures the path with a window of one packet: after a rise of the level, and
 *   when the least round trip is older than CC_PATH_NS.
 */
#ifndef ROCADE_QP_CC_TARGET_H
#define ROCADE_QP_CC_TARGET_H

#include "qp/cc.h"

#define CC_IDLE_SAMPLES 8
#define CC_IDLE_AGREE 6
#define CC_WATCH 16        /* round trips of a watch */
#define CC_UNSTEADY_CUTS 3 /* of a watch */
#define CC_SMALL (8 * CC_ONE)
#define CC_CLIMB_TOP (64 * CC_ONE)
#define CC_CLIMB_ENOUGH (16 * CC_ONE) /* of a sender that has no more to send */
#define CC_CHECK 16                   /* round trips from a rise to its check */
#define CC_CHECK_SAMPLES 2
#define CC_CLIMB_NS (9 * NS_PER_US) /* least growth of the delay that ends a climb */
/* A climb that the delay ends succeeds from this window on, if the delay has grown by so
 * many times its growth before. */
#define CC_CLIMB_FULL (32 * CC_ONE)
#define CC_CLIMB_SUDDEN 3
/* After a failed climb, one of this many due climbs begins, drawn at random. */
#define CC_CLIMB_DRAWS 8
#define CC_CLIMB_SKIP 2 /* samples after a loss that say nothing */
#define CC_CLIMB_MAX_SHIFT 10
#define CC_PATH_NS (10 * NS_PER_MS) /* a least round trip is measured again after it */
#define CC_LEVEL_NS NS_PER_SEC      /* a level that rose stays for this long at least */

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
	CC_PACKET,     /* by a packet; below one packet: by each acknowledged packet */
	CC_DOUBLE = 1, /* to twice its size */
	/* by a quarter, from 4 packets on; the value divides the acknowledged packets */
	CC_QUARTER = 4,
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

/* True if of about the last CC_HISTORY packets at least cc->loss / part of 1000 were
 * lost. CC_HISTORY / 16 packets are added as if acknowledged, so that a loss among the
 * first packets does not count as a high rate. */
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

/* Evaluates a sample whose packet was sent while hardly anything was in flight. */
void cc_target_idle(struct cc *cc, uint32_t delay_ns, uint64_t now);
/* Evaluates a sample outside a climb. */
void cc_target_watch(struct cc *cc, const struct cc_sample *s, uint64_t now);
/* Evaluates a sample during a climb. */
void cc_target_climb(struct cc *cc, const struct cc_sample *s, uint64_t now);

/* The window has been cut because of the packets in queues. Has the path checked if its
 * least round trip was not seen lately. */
void cc_target_queued(struct cc *cc, uint64_t now);
/* Begins a check that is due, continues or ends it. Returns true if the sample must not
 * be evaluated otherwise. */
bool cc_target_check(struct cc *cc, const struct cc_sample *s, uint64_t now);
/* A loss, a probe or a CNP ends a check without a result: resent packets, which give no
 * samples, would take a round trip each. */
void cc_target_check_stop(struct cc *cc, uint64_t now);

/* A packet was lost. */
void cc_target_loss(struct cc *cc, uint64_t now);
/* Begins a new watch, after a pause and at first. Ends a climb or a check. */
void cc_target_restart(struct cc *cc, uint64_t now);

#endif
