/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * When a thread that polls in vain offers its core to other threads with sched_yield(). Where
 * cores are short, the peer that it waits for may need this very core, and each further poll
 * delays the answer. Where they are not, the call only delays the next poll. How long the call took
 * tells the two apart: without another thread that wants the core it returns at once.
 */
#ifndef ROCADE_ENGINE_IDLE_POLLS_H
#define ROCADE_ENGINE_IDLE_POLLS_H

#include <string.h>

#include "base/common.h"

/* Environment variable: auto, or what cores count as whatever the calls tell: short or plenty. */
#define CORES_ENV "ROCADE_CORES"

/* polls in a row that find nothing before the thread offers its core */
#define IDLE_POLLS 32
/* the same where another thread took the core the last time */
#define IDLE_POLLS_SHORT 2
/* A call that took longer has switched to another thread. */
#define YIELD_TAKEN_NS NS_PER_US
/* A thread that kept the core for less than this offered it itself, as one that polls in vain does. A
 * thread that offers nothing keeps it for a time slice, some milliseconds. */
#define YIELD_TURN_NS NS_PER_MS

struct idle_polls {
	uint32_t count; /* polls in a row that found nothing */
	uint32_t limit; /* polls before the next offer */
	bool fixed;     /* the limit never changes */
	bool in_turns;  /* the threads of this core offer it to each other */
};

/* text: of the environment variable; NULL: auto. Returns false, and takes auto, if it is
 * invalid. */
static inline bool
idle_polls_init(struct idle_polls *p, const char *text)
{
	bool is_auto = text == NULL || strcmp(text, "auto") == 0;
	bool is_short = !is_auto && strcmp(text, "short") == 0;

	*p = (struct idle_polls){.limit = is_short ? IDLE_POLLS_SHORT : IDLE_POLLS};
	p->fixed = is_short || (!is_auto && strcmp(text, "plenty") == 0);
	return p->fixed || is_auto;
}

/* Returns whether the thread, which has polled in vain, should offer its core now. Threads that
 * poll the same engine share the count, without a lock: one that is lost does not matter. */
static inline bool
idle_polls_offer(struct idle_polls *p)
{
	uint32_t count = __atomic_load_n(&p->count, __ATOMIC_RELAXED) + 1;
	bool offer = count >= __atomic_load_n(&p->limit, __ATOMIC_RELAXED);

	__atomic_store_n(&p->count, offer ? 0 : count, __ATOMIC_RELAXED);
	return offer;
}

/* The thread has found something. */
static inline void
idle_polls_end(struct idle_polls *p)
{
	__atomic_store_n(&p->count, 0, __ATOMIC_RELAXED);
}

/* Returns whether another thread took the core the last time. */
static inline bool
idle_polls_short(const struct idle_polls *p)
{
	return __atomic_load_n(&p->limit, __ATOMIC_RELAXED) < IDLE_POLLS;
}

/* Returns whether the threads that use this core offered it to each other the last time: a thread
 * that waits for it gets it soon. */
static inline bool
idle_polls_in_turns(const struct idle_polls *p)
{
	return __atomic_load_n(&p->in_turns, __ATOMIC_RELAXED);
}

/* took_ns: the time of the offer. Returns whether another thread took the core. */
static inline bool
idle_polls_offered(struct idle_polls *p, uint64_t took_ns)
{
	bool taken = took_ns > YIELD_TAKEN_NS;

	__atomic_store_n(
		&p->in_turns, taken && took_ns < YIELD_TURN_NS, __ATOMIC_RELAXED);
	if (!p->fixed)
		__atomic_store_n(&p->limit, taken ? IDLE_POLLS_SHORT : IDLE_POLLS,
			__ATOMIC_RELAXED);
	return taken;
}

#endif
