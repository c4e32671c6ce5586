/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of control calls beside the traffic, on a machine whose rate changes from second to second: intervals
 * without and with such calls alternate, the first one without. Each interval with them is compared with the two
 * around it.
 */
#ifndef PERF_CONTROL_INTERVALS_H
#define PERF_CONTROL_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_INTERVALS_ROOM 8192

struct control_intervals {
	uint64_t interval_tsc; /* the length of each */
	uint64_t next_tsc;     /* when the next one begins; UINT64_MAX: there are none */
	uint64_t number;       /* of the present one */
	uint64_t from_tsc;     /* when it was first seen; 0: none has begun */
	uint64_t from;         /* the messages until then */
	unsigned count;        /* intervals that have ended */
	/* of each, in messages per cycle of the TSC; 0: it was not measured */
	double rate[CONTROL_INTERVALS_ROOM];
};

/* Whether there are control calls in this interval. */
static inline bool
control_intervals_on(uint64_t begin_tsc, uint64_t interval_tsc, uint64_t now)
{
	return now >= begin_tsc && (now - begin_tsc) / interval_tsc % 2 != 0;
}

/* interval_tsc 0: no intervals. */
void control_intervals_begin(
	struct control_intervals *intervals, uint64_t begin_tsc, uint64_t interval_tsc);
void control_intervals_next(
	struct control_intervals *intervals, uint64_t now, uint64_t messages);

/* To be called again and again, with the number of messages that had been received by now. */
static inline void
control_intervals_add(
	struct control_intervals *intervals, uint64_t now, uint64_t messages)
{
	if (now >= intervals->next_tsc)
		control_intervals_next(intervals, now, messages);
}

/* The rate of intervals with control calls over the mean of the intervals around them: the median, and the first and the third
 * quartile. Returns the number of intervals with control calls; with 0 nothing is set. */
unsigned control_intervals_ratio(
	const struct control_intervals *intervals, double quartiles[3]);

#endif
