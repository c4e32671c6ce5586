/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <time.h>

#include "base/no_cancel.h"
#include "base/process_barrier.h"
#include "base/ticket_lock.h"
#include "engine/engine_lock.h"

#define OWNER_PASSES 64          /* in a row, before a thread first becomes the owner */
#define OWNER_PASSES_MAX 0x10000 /* after ownerships that ended soon */
#define NO_BARRIER_NS NS_PER_MS

void
engine_lock_init(struct engine *e, bool may_own)
{
	rte_ticketlock_init(&e->lock);
	if (may_own && process_barrier_register())
		e->owner_passes = OWNER_PASSES;
}

void
engine_lock_forked(struct engine *e)
{
	rte_ticketlock_init(&e->lock);
	e->owner = 0;
	e->owner_passes = 0;
}

/* Returns the number of this thread, or 0 if there is none left. With the ticket lock held. */
static uint32_t
owner_number(struct engine *e)
{
	uintptr_t thread = engine_thread();

	for (uint32_t i = 1; i <= ENGINE_OWNERS; i++) {
		if (e->owner_thread[i] == 0)
			__atomic_store_n(&e->owner_thread[i], thread, __ATOMIC_RELAXED);
		if (e->owner_thread[i] == thread)
			return i;
	}
	return 0;
}

/* Waits for far longer than a store takes to become visible. */
static void
stores_await(void)
{
	int state = no_cancel_begin();

	(void)nanosleep(&(struct timespec){.tv_nsec = NO_BARRIER_NS}, NULL);
	no_cancel_end(state);
}

/* With the ticket lock held: ends the ownership, and returns when the owner is not inside. */
static void RARE
owner_end(struct engine *e)
{
	uint32_t owner = e->owner;
	unsigned spins = 0;

	__atomic_store_n(&e->owner, 0, __ATOMIC_RELAXED);
	/* Pairs with the compiler's fence in engine_owner_enter(). A filter of system calls that
	 * came after engine_lock_init() may refuse it. */
	if (!process_barrier())
		stores_await();
	/* Pairs with the release in engine_owner_leave(). */
	while (__atomic_load_n(&e->inside[owner], __ATOMIC_ACQUIRE)) {
		if (likely(++spins < TICKET_LOCK_SPINS))
			rte_pause();
		else
			sched_yield();
	}
	e->last_passes = 0;
	e->owner_passes = RTE_MIN(2 * e->owner_passes, OWNER_PASSES_MAX + 0u);
}

/* With the ticket lock held. An owner that takes it counts as inside, so that what it calls does not
 * enter once more. It may be inside already, in a callback or a signal handler: then it still is when it
 * releases the ticket lock. */
static void
owner_check(struct engine *e)
{
	if (e->owner == 0)
		return;
	if (e->owner_thread[e->owner] == engine_thread()) {
		e->was_inside = __atomic_load_n(&e->inside[e->owner], __ATOMIC_RELAXED);
		__atomic_store_n(&e->inside[e->owner], true, __ATOMIC_RELAXED);
	} else {
		owner_end(e);
	}
}

void
engine_lock(struct engine *e)
{
	ticket_lock(&e->lock);
	owner_check(e);
}

bool
engine_trylock(struct engine *e)
{
	if (!rte_ticketlock_trylock(&e->lock))
		return false;
	owner_check(e);
	return true;
}

void
engine_lock_release(struct engine *e)
{
	if (e->owner == 0)
		engine_grace_report(e);
	else if (!e->was_inside)
		engine_owner_leave(e, e->owner);
	rte_ticketlock_unlock(&e->lock);
}

uint32_t
engine_lock_pass(struct engine *e)
{
	uintptr_t thread = engine_thread();
	uint32_t owner = 0;

	engine_lock(e);
	if (e->last_thread != thread) {
		e->last_thread = thread;
		e->last_passes = 0;
	}
	if (++e->last_passes == e->owner_passes && e->owner == 0)
		owner = owner_number(e);
	if (owner == 0)
		return 0;
	__atomic_store_n(&e->inside[owner], true, __ATOMIC_RELAXED);
	/* Pairs with the acquire in engine_owner_enter(). */
	__atomic_store_n(&e->owner, owner, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&e->lock);
	return owner;
}
