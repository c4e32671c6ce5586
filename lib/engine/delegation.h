/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Manual progress: whether packets wake the progress thread even while the application polls. An
 * application that polls takes its packets itself, and the thread is in its way. But some poll only to
 * see that a request has completed, and look at nothing but memory in between. Of these the other end
 * says that they do not take their packets: then the thread is woken for packets, for a while. That
 * period ends early when the application takes some bursts in a row.
 */
#ifndef ROCADE_ENGINE_DELEGATION_H
#define ROCADE_ENGINE_DELEGATION_H

#include "base/common.h"

#define DELEGATION_FIRST_NS (250 * NS_PER_US)
/* If the next period begins within 4 times the length of the last one, it is twice as long, up to this. */
#define DELEGATION_LAST_NS (32 * NS_PER_MS)
#define DELEGATION_BURSTS 16

struct delegation {
	uint64_t until_ns;
	uint64_t ns;     /* the length of the last period */
	uint32_t bursts; /* that the application still has to take */
};

/* The progress thread has found packets that the application did not take. */
static inline void
delegation_begin(struct delegation *d, uint64_t now)
{
	uint64_t until = __atomic_load_n(&d->until_ns, __ATOMIC_RELAXED);
	bool again = now < until + 4 * d->ns;

	d->ns = again ? RTE_MIN(2 * d->ns, DELEGATION_LAST_NS) : DELEGATION_FIRST_NS;
	__atomic_store_n(&d->bursts, DELEGATION_BURSTS, __ATOMIC_RELAXED);
	__atomic_store_n(&d->until_ns, now + d->ns, __ATOMIC_RELAXED);
}

/* The progress thread has taken packets. */
static inline void
delegation_taken(struct delegation *d)
{
	__atomic_store_n(&d->bursts, DELEGATION_BURSTS, __ATOMIC_RELAXED);
}

/* The application has taken packets. */
static inline void
delegation_burst(struct delegation *d)
{
	uint32_t bursts = __atomic_load_n(&d->bursts, __ATOMIC_RELAXED);

	if (likely(bursts == 0))
		return;
	__atomic_store_n(&d->bursts, bursts - 1, __ATOMIC_RELAXED);
	if (bursts == 1)
		__atomic_store_n(&d->until_ns, 0, __ATOMIC_RELAXED);
}

static inline bool
delegation_holds(const struct delegation *d, uint64_t now)
{
	return now < __atomic_load_n(&d->until_ns, __ATOMIC_RELAXED);
}

#endif
