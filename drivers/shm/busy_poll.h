/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the progress thread goes on polling before it sleeps. A peer that waits for each answer,
 * as one that READs a word at a time, sends the next packet within microseconds: to sleep and be
 * woken takes longer than to answer. So when packets have ended some sleeps in a row soon after
 * they began, the thread polls for a while before it sleeps, until a while was in vain. Where
 * another thread wants the core, it sleeps at once, and tries again later.
 */
#ifndef ROCADE_SHM_BUSY_POLL_H
#define ROCADE_SHM_BUSY_POLL_H

#include "base/common.h"

#define BUSY_POLL_NS (50 * NS_PER_US)    /* after the last packet */
#define BUSY_POLL_SOON (100 * NS_PER_US) /* a sleep that is shorter was not worth it */
#define BUSY_POLL_SLEEPS 4 /* such sleeps in a row before the thread polls */
#define BUSY_POLL_SHORT_NS                                                               \
	(10 * NS_PER_MS) /* no polling after another thread wanted the core */

struct busy_poll {
	uint64_t moved_ns; /* when the last packet came */
	uint64_t sleep_ns; /* when the thread went to sleep; 0: a packet has come since */
	uint64_t not_before_ns; /* another thread wanted the core */
	uint32_t short_sleeps;  /* in a row */
};

/* Packets have come. */
static inline void
busy_poll_moved(struct busy_poll *b, uint64_t now)
{
	b->moved_ns = now;
	if (likely(b->sleep_ns == 0))
		return;
	if (now - b->sleep_ns >= BUSY_POLL_SOON)
		b->short_sleeps = 0;
	else if (b->short_sleeps < BUSY_POLL_SLEEPS)
		b->short_sleeps++;
	b->sleep_ns = 0;
}

/* A pass found nothing. Returns whether the thread is to go on. */
static inline bool
busy_poll_goes_on(struct busy_poll *b, uint64_t now)
{
	if (b->short_sleeps < BUSY_POLL_SLEEPS || now < b->not_before_ns)
		return false;
	if (now - b->moved_ns < BUSY_POLL_NS)
		return true;
	b->short_sleeps = 0;
	return false;
}

/* Another thread took the core. */
static inline void
busy_poll_core_taken(struct busy_poll *b, uint64_t now)
{
	b->not_before_ns = now + BUSY_POLL_SHORT_NS;
}

/* The thread goes to sleep. */
static inline void
busy_poll_sleeps(struct busy_poll *b, uint64_t now)
{
	if (b->sleep_ns == 0)
		b->sleep_ns = now;
}

#endif
