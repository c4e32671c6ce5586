/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_ticketlock, for locks that are held for a pass: fair, and a thread that waits for longer
 * than a pass takes yields its core, because the holder, or a thread with an earlier ticket, may be
 * preempted. rte_ticketlock_unlock() releases it. */
#ifndef ROCADE_BASE_TICKET_LOCK_H
#define ROCADE_BASE_TICKET_LOCK_H

#include <sched.h>

#include <rte_pause.h>
#include <rte_ticketlock.h>

#include "base/common.h"

/* 3 to 11 us, as long as a pass: rte_pause() takes 40 to 140 cycles on the CPUs of today. */
#define TICKET_LOCK_SPINS 200

static inline void
ticket_lock(rte_ticketlock_t *lock)
{
	uint16_t ticket = __atomic_fetch_add(&lock->s.next, 1, __ATOMIC_RELAXED);
	unsigned spins = 0;

	/* Pairs with the release in rte_ticketlock_unlock(). */
	while (__atomic_load_n(&lock->s.current, __ATOMIC_ACQUIRE) != ticket) {
		if (likely(++spins < TICKET_LOCK_SPINS))
			rte_pause();
		else
			sched_yield();
	}
}

#endif
