/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of control calls beside the traffic, on a machine whose rate changes from second to second: turns
 * without and with such calls alternate, the first one without. Each turn with them is compared with the two
 * around it.
 */
#ifndef PERF_CONTROL_TURNS_H
#define PERF_CONTROL_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_TURNS_ROOM 8192

struct control_turns {
	uint64_t begin_tsc,
		turn_tsc; /* of the first turn; of each. turn_tsc 0: no turns */
	unsigned count;   /* turns that have ended */
	uint64_t number;  /* of the present one */
	uint64_t from_tsc,
		from; /* when it began, and the messages until then; 0: none has begun */
	double rate
		[CONTROL_TURNS_ROOM]; /* of each, in messages per cycle of the TSC; 0: it was not measured */
};

/* Whether there are control calls in this turn. */
static inline bool
control_turns_on(uint64_t begin_tsc, uint64_t turn_tsc, uint64_t now)
{
	return now >= begin_tsc && (now - begin_tsc) / turn_tsc % 2 != 0;
}

/* To be called again and again, with the number of messages that had been received by now. */
void control_turns_add(struct control_turns *turns, uint64_t now, uint64_t messages);
/* The rate of turns with control calls over the mean of the turns around them: the median, and the first and the third
 * quartile. Returns the number of turns with control calls; with 0 nothing is set. */
unsigned control_turns_ratio(const struct control_turns *turns, double quartiles[3]);

#endif
