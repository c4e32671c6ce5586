/* SPDX-License-Identifier: BSD-3-Clause */
/* A flag in memory that only its owner can write: the owner sleeps and must be woken. It is
 * odd while the owner sleeps, and another number for each sleep. So the waker knows which
 * sleep it has ended, and need not clear the flag. The number also tells how to wake the
 * owner. */
#ifndef ROCADE_BASE_ASLEEP_H
#define ROCADE_BASE_ASLEEP_H

#include "base/common.h"

/* The owner sleeps in futex_wait_any() on the word that the waker changes to make work
 * visible. Else it waits for a descriptor. */
#define ASLEEP_FUTEX 2

/* Returns the number of the sleep after this number. how: 0 or ASLEEP_FUTEX. */
static inline uint32_t
asleep_next(uint32_t number, uint32_t how)
{
	return ((number | 3) + 1) | how | 1;
}

/*
 * Sleeping without a lost wake-up. The sleeper calls asleep_set(), looks for work once
 * more, then sleeps. The waker makes work visible, then calls asleep_wake_wanted(). One of
 * the two fences comes first, so either the sleeper sees the work or the waker sees the
 * flag. Several threads of the owner may set and clear it at a time: one that reads a
 * number with acquire sees what was done before it was set. Returns the number that it has
 * set.
 */
static inline uint32_t
asleep_set_how(uint32_t *asleep, uint32_t how)
{
	uint32_t number = __atomic_load_n(asleep, __ATOMIC_RELAXED);

	/* Two threads never set the same number. Pairs with the acquire in progress_thread_sleep() and in
	 * polls_count(). */
	while (!__atomic_compare_exchange_n(asleep, &number, asleep_next(number, how),
		true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	/* Pairs with the fence in asleep_wake_wanted(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return asleep_next(number, how);
}

static inline void
asleep_set(uint32_t *asleep)
{
	(void)asleep_set_how(asleep, 0);
}

static inline void
asleep_clear(uint32_t *asleep)
{
	__atomic_and_fetch(asleep, ~UINT32_C(1), __ATOMIC_RELAXED);
}

/* The same, unless another thread has set another number since the caller has set this one. Returns whether it
 * has cleared the flag. */
static inline bool
asleep_clear_number(uint32_t *asleep, uint32_t number)
{
	return __atomic_compare_exchange_n(asleep, &number, number & ~UINT32_C(1), false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* For the owner. */
static inline bool
asleep_is_set(const uint32_t *asleep)
{
	return (__atomic_load_n(asleep, __ATOMIC_RELAXED) & 1) != 0;
}

/* For the owner. */
static inline bool
asleep_is_set_by_futex(const uint32_t *asleep)
{
	return (~__atomic_load_n(asleep, __ATOMIC_RELAXED) & (ASLEEP_FUTEX | 1)) == 0;
}

/* For the waker. Returns true once for each sleep. woken: the caller's own, 0 at first. */
static inline bool
asleep_wake_wanted(const uint32_t *asleep, uint32_t *woken)
{
	uint32_t number;

	/* Pairs with the fence in asleep_set_how(), and with that in clients_sleep(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	number = __atomic_load_n(asleep, __ATOMIC_RELAXED);
	if (likely((number & 1) == 0 || number == *woken))
		return false;
	*woken = number;
	return true;
}

/* For the waker, after that: how to wake the owner. */
static inline bool
asleep_by_futex(uint32_t woken)
{
	return (woken & ASLEEP_FUTEX) != 0;
}

#endif
