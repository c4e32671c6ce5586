/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <assert.h>
#include <sched.h>

#include <rte_pause.h>

#include "queue/app_locks.h"

/* 3 to 11 us: a batch of completions is often done by then. */
#define SPINS 200

void
app_locks_add(struct app_locks *set, rte_spinlock_t *lock)
{
	for (unsigned i = 0; i < set->count; i++) {
		if (set->lock[i] == lock)
			return;
	}
	assert(set->count < APP_LOCKS_MAX);
	set->lock[set->count++] = lock;
}

bool
app_locks_try(const struct app_locks *set)
{
	for (unsigned i = 0; i < set->count; i++) {
		if (rte_spinlock_trylock(set->lock[i]))
			continue;
		while (i-- > 0)
			rte_spinlock_unlock(set->lock[i]);
		return false;
	}
	return true;
}

void
app_locks_release(const struct app_locks *set)
{
	for (unsigned i = set->count; i-- > 0;)
		rte_spinlock_unlock(set->lock[i]);
}

void
app_locks_wait(const struct app_locks *set)
{
	unsigned spins = 0;

	for (unsigned i = 0; i < set->count; i++) {
		while (rte_spinlock_is_locked(set->lock[i])) {
			if (++spins < SPINS)
				rte_pause();
			else
				sched_yield();
		}
	}
}
