/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the progress thread goes on polling before it sleeps. A peer that waits for each answer,
 * as one that READs a word at a time, sends the next packet within microseconds: to sleep and be
 * woken takes longer than to answer. So when packets have ended some sleeps in a row soon after
 * they began, the thread polls for a while before it sleeps, until a while was in vain.
 *
 * It offers its core meanwhile. Another thread that takes it for a moment may be the very peer: Linux
 * wakes a thread on the core of the one that wakes it. Both are ready to run then, so that Linux moves
 * one of them to a core that is idle, which it does not if this one sleeps. But if it gets the core back
 * only after a time slice, cores are short: it sleeps, and tries again later.
 */
#ifndef ROCADE_SHM_BUSY_POLL_H
#define ROCADE_SHM_BUSY_POLL_H

#include "engine/idle_polls.h"

#define BUSY_POLL_NS (50 * NS_PER_US)    /* after the last packet */
#define BUSY_POLL_SOON (100 * NS_PER_US) /* a sleep that is shorter was not worth it */
#define BUSY_POLL_SLEEPS 4 /* such sleeps in a row before the thread polls */
#define BUSY_POLL_OFFER 16 /* empty passes from one offer of the core to the next */
#define BUSY_POLL_SLICE_NS                                                               \
	(100 * NS_PER_US) /* another thread had the core for a time slice */
#define BUSY_POLL_SHORT_NS (10 * NS_PER_MS) /* no polling after that */

struct busy_poll {
	uint64_t moved_ns; /* when the last packet came */
	uint64_t sleep_ns; /* when the thread went to sleep; 0: a packet has come since */
	uint64_t not_before_ns; /* cores were short */
	uint32_t short_sleeps;  /* in a row */
	bool shared; /* another thread took the core when it was offered last */
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

/* Returns whether the thread is to offer its core after this many empty passes. */
static inline bool
busy_poll_offers(const struct busy_poll *b, unsigned idle)
{
	return b->shared || idle % BUSY_POLL_OFFER == 0;
}

/* The offer took this long. Returns whether the thread is to go on. */
static inline bool
busy_poll_offered(struct busy_poll *b, uint64_t now, uint64_t took_ns)
{
	b->shared = took_ns > YIELD_TAKEN_NS;
	if (took_ns < BUSY_POLL_SLICE_NS)
		return true;
	b->not_before_ns = now + took_ns + BUSY_POLL_SHORT_NS;
	return false;
}

/* The thread goes to sleep. */
static inline void
busy_poll_sleeps(struct busy_poll *b, uint64_t now)
{
	if (b->sleep_ns == 0)
		b->sleep_ns = now;
}

#endif
