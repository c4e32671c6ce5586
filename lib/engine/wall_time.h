/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Time stamps of completions as wall clock time. The difference of the two clocks is read for a stamp that is
 * later than the last reading. So a stamp has one value, and stamps of a queue keep their order: between two
 * readings the difference changes by their pauses, and by the error of the rate of the process's clock.
 */
#ifndef ROCADE_ENGINE_WALL_TIME_H
#define ROCADE_ENGINE_WALL_TIME_H

#include "base/common.h"

/* A fall by this much means that the wall clock was set back. */
#define WALL_SET_BACK_NS (100 * NS_PER_MS)

/* Of a CQ; all zeros begins. */
struct wall_time {
	uint64_t read_at; /* process's clock */
	uint64_t ahead;   /* what the wall clock was ahead of it then */
	uint64_t last;    /* highest value since */
};

static inline bool
wall_time_is_due(const struct wall_time *w, uint64_t stamp)
{
	return w->read_at == 0 || stamp > w->read_at;
}

/* now, wall: both clocks, read together. */
static inline void
wall_time_read(struct wall_time *w, uint64_t now, uint64_t wall)
{
	w->read_at = now;
	w->ahead = wall - now;
}

static inline uint64_t
wall_time_of(struct wall_time *w, uint64_t stamp)
{
	uint64_t value = stamp + w->ahead;

	if (value > w->last || w->last - value >= WALL_SET_BACK_NS)
		w->last = value;
	return w->last;
}

#endif
