/* SPDX-License-Identifier: BSD-3-Clause */
/* A rate limit with a burst: one action per interval on average, and burst of them at
 * once after an idle time. Time is an argument. Not for data paths that count packets:
 * each action is taken on its own. */
#ifndef ROCADE_BASE_RATE_H
#define ROCADE_BASE_RATE_H

#include "base/common.h"

struct rate {
	uint64_t interval_ns;
	uint64_t credit_ns; /* of a full burst */
	uint64_t full_ns;   /* when the burst is full again */
};

/* burst: at least 1. */
static inline void
rate_init(struct rate *rate, uint64_t interval_ns, uint32_t burst)
{
	*rate = (struct rate){
		.interval_ns = interval_ns, .credit_ns = interval_ns * (burst - 1)};
}

/* Returns when the next action may be taken: now or earlier if it may be taken now. */
static inline uint64_t
rate_ready_ns(const struct rate *rate)
{
	return rate->full_ns > rate->credit_ns ? rate->full_ns - rate->credit_ns : 0;
}

/* Counts an action that is taken now. */
static inline void
rate_take(struct rate *rate, uint64_t now)
{
	if (rate->full_ns < now)
		rate->full_ns = now;
	rate->full_ns += rate->interval_ns;
}

/* Takes back one rate_take(): the action was not taken after all. */
static inline void
rate_give(struct rate *rate)
{
	assert(rate->full_ns >= rate->interval_ns);
	rate->full_ns -= rate->interval_ns;
}

#endif
