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
#include <unistd.h>

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

#define GATES 2

struct gate {
	uint32_t next LINE_ALIGNED;
	uint32_t served;
};

static struct gate gates[GATES];

static inline void
gate_enter(struct gate *gate)
{
	uint32_t ticket = __atomic_fetch_add(&gate->next, 1, __ATOMIC_RELAXED);

	/* Pairs with the release in gate_leave(). */
	while (__atomic_load_n(&gate->served, __ATOMIC_ACQUIRE) != ticket)
		sched_yield();
}

static inline void
gate_leave(struct gate *gate)
{
	__atomic_store_n(&gate->served, gate->served + 1, __ATOMIC_RELEASE);
}

static inline void
gates_enter(void)
{
	for (unsigned i = 0; i < GATES; i++)
		gate_enter(&gates[i]);
}

static inline void
gates_leave(void)
{
	for (unsigned i = 0; i < GATES; i++)
		gate_leave(&gates[i]);
}

/* ---- Stalls: a signal stops a thread between any two of its instructions long enough
 * for the others to run far ahead, which is rare otherwise on few cores. ---- */

#define JOLT_US 50

static inline void
on_jolt(int number)
{
	int saved = errno;

	(void)number;
	usleep(JOLT_US);
	errno = saved;
}

static inline void
jolts_open(struct sigaction *old)
{
	struct sigaction action = {.sa_handler = on_jolt, .sa_flags = SA_RESTART};

	sigaction(SIGUSR2, &action, old);
}

static inline void
jolts_close(const struct sigaction *old)
{
	sigaction(SIGUSR2, old, NULL);
}

static inline void
jolt(pthread_t thread)
{
	pthread_kill(thread, SIGUSR2);
	usleep(JOLT_US * 2);
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
