/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of this folder: an allocator that counts and can refuse, and a
 * stand-in for the engine locks. */
#ifndef ROCADE_TEST_QUEUE_FIXTURE_H
#define ROCADE_TEST_QUEUE_FIXTURE_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "await.h"
#include "base/base_alloc.h"

/* ---- Memory ---- */

struct counting {
	size_t bytes;    /* allocated and not freed */
	unsigned grants; /* allocations that still succeed, when refusing */
	bool refusing;
};

static struct counting counting;

static void *
counting_get(void *ctx, const char *name, size_t len)
{
	struct counting *c = ctx;

	if (c->refusing && c->grants == 0)
		return NULL;
	c->grants--;
	c->bytes += len;
	return alloc_get(&alloc_plain, name, len);
}

static void
counting_put(void *ctx, void *mem, size_t len)
{
	struct counting *c = ctx;

	c->bytes -= len;
	alloc_put(&alloc_plain, mem, len);
}

static const struct alloc alloc_counting = {
	.get = counting_get, .put = counting_put, .ctx = &counting};

/* The next `grants` allocations succeed, all later ones fail. */
static inline void
counting_refuse(unsigned grants)
{
	counting.refusing = true;
	counting.grants = grants;
}

static inline void
counting_grant(void)
{
	counting.refusing = false;
}

/* ---- Ticket locks: a taker that loops does not starve the control thread. ---- */

#define ENGINE_LOCKS 2

struct ticket_lock {
	uint32_t next LINE_ALIGNED;
	uint32_t served;
};

static struct ticket_lock engine_locks[ENGINE_LOCKS];

static inline void
ticket_lock_take(struct ticket_lock *lock)
{
	uint32_t ticket = __atomic_fetch_add(&lock->next, 1, __ATOMIC_RELAXED);

	/* Pairs with the release in ticket_lock_release(). */
	while (__atomic_load_n(&lock->served, __ATOMIC_ACQUIRE) != ticket)
		sched_yield();
}

static inline void
ticket_lock_release(struct ticket_lock *lock)
{
	__atomic_store_n(&lock->served, lock->served + 1, __ATOMIC_RELEASE);
}

static inline void
engine_locks_take(void)
{
	for (unsigned i = 0; i < ENGINE_LOCKS; i++)
		ticket_lock_take(&engine_locks[i]);
}

static inline void
engine_locks_release(void)
{
	for (unsigned i = 0; i < ENGINE_LOCKS; i++)
		ticket_lock_release(&engine_locks[i]);
}

/* ---- Stalls: a signal stops a thread between any two of its instructions long enough
 * for the others to run far ahead, which is rare otherwise on few cores. ---- */

static unsigned stalls; /* that have ended */

static inline void
on_stall(int number)
{
	int saved = errno;

	(void)number;
	others_run();
	__atomic_fetch_add(&stalls, 1, __ATOMIC_RELEASE);
	errno = saved;
}

static inline void
stalls_open(struct sigaction *old)
{
	struct sigaction action = {.sa_handler = on_stall, .sa_flags = SA_RESTART};

	sigaction(SIGUSR2, &action, old);
}

static inline void
stalls_close(const struct sigaction *old)
{
	sigaction(SIGUSR2, old, NULL);
}

static inline void
stall(pthread_t thread)
{
	unsigned before = __atomic_load_n(&stalls, __ATOMIC_ACQUIRE);

	pthread_kill(thread, SIGUSR2);
	await(__atomic_load_n(&stalls, __ATOMIC_ACQUIRE) != before);
}

/* ---- Failures in threads, which cannot end a test themselves. ---- */

static const char *thread_failure;

#define THREAD_CHECK(condition)                                                          \
	do {                                                                             \
		if (!(condition))                                                        \
			__atomic_store_n(&thread_failure, #condition, __ATOMIC_RELAXED); \
	} while (0)

static inline bool
threads_failed(void)
{
	return __atomic_load_n(&thread_failure, __ATOMIC_RELAXED) != NULL;
}

static inline uint64_t
test_seed(uint64_t otherwise)
{
	const char *given = getenv("ROCADE_SEED");

	return given != NULL ? strtoull(given, NULL, 0) : otherwise;
}

#endif
