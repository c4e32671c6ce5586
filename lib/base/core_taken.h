/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that polls yields its core when a pass has found nothing, or it sleeps.
 *
 * A yield leaves the core to who wants it. A thread that offers the core in turn gives it back in
 * microseconds. One that never offers it, as a program that polls memory, keeps it for a time slice, some
 * milliseconds, and packets that arrive meanwhile wait. A thread that sleeps is given a taken core
 * back as soon as its sleep ends, if it has used less than its share. So the thread sleeps where yields
 * take much longer than sleeps. The shortest sleep is nearly all falling asleep and waking. A sleep of three
 * times that leaves three fourths of the core to the other.
 *
 * Times in nanoseconds. The caller passes the time; one thread uses the object.
 */
#ifndef ROCADE_BASE_CORE_TAKEN_H
#define ROCADE_BASE_CORE_TAKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/common.h"

/* A sleep is asked to be as long as this many of the shortest ones. */
#define CORE_TAKEN_SLEEP 3
/* A yield that took as long as this many of the shortest sleeps is long: eight times what a sleep
 * would have taken, from its beginning to its end. */
#define CORE_TAKEN_LONG (8 * (CORE_TAKEN_SLEEP + 1))
/* Long yields near each other that turn sleeping on. A machine that stops for a moment makes one. */
#define CORE_TAKEN_ROW 2
/* They are near if at most this many times as long as the later one lies between them. The scheduler gives
 * the thread a turn in between, in which its yields return at once. */
#define CORE_TAKEN_NEAR 4
/* Sleeps until the thread yields again, until its next long yield, which shows that the core is still
 * taken: doubled each time that it does. A yield of 4 ms, with sleeps of 20 us, is 5 % of the time at
 * first and 0.3 % at last. */
#define CORE_TAKEN_SLEEPS_MIN 4096
#define CORE_TAKEN_SLEEPS_MAX 65536

struct core_taken {
	uint64_t
		shortest_ns; /* of a sleep, as it was measured; 0: the thread never sleeps */
	uint64_t yielded_ns; /* when the thread yielded; 0: it has not */
	uint64_t long_ns;    /* when its last long yield ended, or its sleeps */
	uint32_t row;        /* long yields near each other */
	uint32_t left;       /* sleeps before the next yield */
	uint32_t sleeps;     /* between the next two yields */
	bool resumed;   /* the sleeps are over, and the thread has not yielded since */
	uint64_t slept; /* counts all sleeps; other threads read it */
} LINE_ALIGNED;         /* the threads of a daemon have one each */

/* Keeps what it has counted. */
static inline void
core_taken_init(struct core_taken *c, uint64_t shortest_ns)
{
	c->shortest_ns = shortest_ns;
	c->yielded_ns = c->long_ns = 0;
	c->row = c->left = 0;
	c->sleeps = CORE_TAKEN_SLEEPS_MIN;
	c->resumed = false;
}

/* A yield that took this long ends now. */
static inline void
core_taken_yielded(struct core_taken *c, uint64_t took_ns, uint64_t now)
{
	if (took_ns < CORE_TAKEN_LONG * c->shortest_ns)
		return;
	if (now - took_ns - c->long_ns > CORE_TAKEN_NEAR * took_ns) {
		c->row = 0;
		c->sleeps = CORE_TAKEN_SLEEPS_MIN;
	}
	c->long_ns = now;
	if (c->row < CORE_TAKEN_ROW && ++c->row < CORE_TAKEN_ROW)
		return;
	c->left = c->sleeps;
	c->sleeps = RTE_MIN(2 * c->sleeps, (uint32_t)CORE_TAKEN_SLEEPS_MAX);
}

/* A pass begins, or what else follows a yield. */
static inline void
core_taken_pass(struct core_taken *c, uint64_t now)
{
	if (likely(c->yielded_ns == 0))
		return;
	core_taken_yielded(c, now - c->yielded_ns, now);
	c->yielded_ns = 0;
}

/* For how long the thread is to sleep; 0: it is to yield. */
static inline uint64_t
core_taken_ns(const struct core_taken *c)
{
	return likely(c->left == 0) ? 0 : CORE_TAKEN_SLEEP * c->shortest_ns;
}

/* The thread is about to yield. */
static inline void
core_taken_yields(struct core_taken *c, uint64_t now)
{
	if (unlikely(c->resumed))
		c->long_ns = now;
	c->resumed = false;
	c->yielded_ns = c->shortest_ns != 0 ? now : 0;
}

/* The thread has slept, for whatever reason. */
static inline void
core_taken_slept(struct core_taken *c)
{
	if (likely(c->left == 0))
		return;
	c->resumed = --c->left == 0;
	__atomic_store_n(&c->slept, c->slept + 1, __ATOMIC_RELAXED);
}

#endif
