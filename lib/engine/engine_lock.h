/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The engine lock. A thread takes the ticket lock, as in lib/base/ticket_lock.h, or is the owner of
 * the engine: the owner enters without an atomic read-modify-write and without a fence.
 *
 * A thread becomes the owner when it has run some passes in a row with the ticket lock. The owner
 * says that it is inside by a plain store, and then looks whether it still is the owner. Any other
 * thread takes the ticket lock, ends the ownership, calls membarrier(2), and waits until the owner
 * is not inside: the owner has seen that it no longer is one, or the other thread sees it inside.
 * After each time an ownership was ended, the next one takes twice as many passes. So threads that
 * poll an engine in turn pay for few such calls.
 *
 * A thread that was the owner may say that it is inside long after that, when it runs again, before it
 * sees that it is the owner no more. So each owner has a number and a flag of its own, for as long as
 * the engine lives. A thread that gets no number uses the ticket lock.
 */
#ifndef ROCADE_ENGINE_ENGINE_LOCK_H
#define ROCADE_ENGINE_ENGINE_LOCK_H

#include "engine/engine_state.h"
#include "engine/mr_fault.h"

/* Before the first use. may_own: a loop polls the engine. */
void engine_lock_init(struct engine *e, bool may_own);
/* For the only thread of a child of fork(), whichever thread of the parent has the lock. */
void engine_lock_forked(struct engine *e);

/* As engine_lock(), for a pass: the thread may become the owner. Returns the owner's number, or
 * 0. */
uint32_t engine_lock_pass(struct engine *e);
/* Returns false if another thread holds the ticket lock; waits for an owner. */
bool engine_trylock(struct engine *e);
/* Releases the lock after engine_lock() or engine_trylock(), and does nothing else. */
void engine_lock_release(struct engine *e);

/* Identifies the calling thread, as pthread_self() does, which is not an inline function. A thread
 * may get the number of one that has ended; libc orders it behind that one, whose stack it has. */
static inline uintptr_t
engine_thread(void)
{
	return (uintptr_t)&mr_fault_keys;
}

/* For the owner. Returns its number, or 0 if the thread is not the owner, or is inside already. */
static inline uint32_t
engine_owner_enter(struct engine *e)
{
	/* Pairs with the release in engine_lock_pass(). */
	uint32_t owner = __atomic_load_n(&e->owner, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&e->owner_thread[owner], __ATOMIC_RELAXED) !=
			engine_thread() ||
		unlikely(__atomic_load_n(&e->inside[owner], __ATOMIC_RELAXED)))
		return 0;
	__atomic_store_n(&e->inside[owner], true, __ATOMIC_RELAXED);
	/* The load must follow the store. For the CPU process_barrier() in owner_end() sees to
	 * that, with which this pairs. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (likely(__atomic_load_n(&e->owner, __ATOMIC_RELAXED) == owner))
		return owner;
	__atomic_store_n(&e->inside[owner], false, __ATOMIC_RELAXED);
	return 0;
}

/* For a thread that is about to leave: it uses nothing any more that it has looked up inside. */
static inline void
engine_grace_report(struct engine *e)
{
	/* Pairs with the fetch_add in dev_grace_wait(): the next lookups find nothing that was withdrawn
	 * before. */
	uint32_t asked = __atomic_load_n(&e->grace_asked, __ATOMIC_ACQUIRE);

	/* Pairs with the acquire in engine_grace_await(). */
	__atomic_store_n(&e->grace_passed, asked, __ATOMIC_RELEASE);
}

static inline void
engine_owner_leave(struct engine *e, uint32_t owner)
{
	engine_grace_report(e);
	/* Pairs with the acquire in owner_end(). */
	__atomic_store_n(&e->inside[owner], false, __ATOMIC_RELEASE);
}

/* Enclose a pass. */
static inline uint32_t
engine_enter(struct engine *e)
{
	uint32_t owner = engine_owner_enter(e);

	return likely(owner != 0) ? owner : engine_lock_pass(e);
}

static inline void
engine_leave(struct engine *e, uint32_t owner)
{
	if (likely(owner != 0))
		engine_owner_leave(e, owner);
	else
		engine_lock_release(e);
}

#endif
