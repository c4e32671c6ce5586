/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP whose ACK timer has expired, and whose peer is on this machine, asks where the packets and their
 * answer are (docs/protocol.md 7.6). This is how far the answer to that has come: a step at a time,
 * each of them behind the one before.
 */
#ifndef ROCADE_BASE_ANSWER_WAIT_H
#define ROCADE_BASE_ANSWER_WAIT_H

#include "base/common.h"

/* A timeout is put off for this long at most. */
#define ANSWER_WAIT_NS (60 * NS_PER_SEC)

/* The first question is repeated after this part of the timer's interval. */
#define ANSWER_ASKS 64

struct answer_wait {
	uint64_t since_ns; /* when a timer first expired for packet psn */
	uint32_t psn : 24;
	uint32_t step : 6;   /* steps that have ended; 0 also before the first question */
	uint32_t on : 1;     /* there is such a wait */
	uint32_t marked : 1; /* mark is set for this step */
	uint32_t mark;       /* of the step: the number that it waits for */
};
static_assert(sizeof(struct answer_wait) == 16, "each QP has one");

/* Returns when the next question is due, from now on: the time doubles, up to the timer's interval.
 * So a peer that is only slow is not asked for all the time, and one that is gone is found soon after
 * the time that was set. */
static inline uint64_t
answer_ask_ns(uint64_t interval_ns, uint64_t waited_ns)
{
	return RTE_MIN(interval_ns, RTE_MAX(interval_ns / ANSWER_ASKS, waited_ns));
}

#endif
