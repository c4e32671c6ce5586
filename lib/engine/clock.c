/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* The clock of the process: the TSC (on arm64 the generic timer) in nanoseconds since
 * clock_init(). Its rate is measured here, once, against CLOCK_MONOTONIC_RAW, because EAL's is
 * not known before EAL is initialised. */
#include <pthread.h>
#include <time.h>

#include <rte_atomic.h>
#include <rte_cycles.h>

#include "engine/clock.h"

#define CALIBRATE_NS (10 * NS_PER_MS)
#define SHIFT 24 /* ns = ticks * mult >> SHIFT */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t start_ticks;
static uint64_t mult;

static uint64_t
clock_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void
calibrate(void)
{
	uint64_t ns = clock_read(CLOCK_MONOTONIC_RAW);
	uint64_t ticks = rte_rdtsc();
	uint64_t end_ns, end_ticks;

	do {
		end_ns = clock_read(CLOCK_MONOTONIC_RAW);
		end_ticks = rte_rdtsc();
	} while (end_ns - ns < CALIBRATE_NS);
	mult = (uint64_t)(((unsigned __int128)(end_ns - ns) << SHIFT) /
			  (end_ticks - ticks));
	start_ticks = ticks;
}

void
clock_init(void)
{
	pthread_once(&once, calibrate);
}

static uint64_t
ticks_ns(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * mult >> SHIFT);
}

uint64_t
clock_now(void)
{
	return ticks_ns(rte_rdtsc() - start_ticks);
}

uint32_t
clock_timed_load(const uint32_t *word, uint64_t *took_ns)
{
	uint64_t begin;
	uint32_t value;

	/* The CPU reads the counter neither before loads that come first nor before this one. */
	rte_rmb();
	begin = rte_rdtsc();
	/* Pairs with the release in taken_show(), if the word is what that stores. */
	value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	rte_rmb();
	*took_ns = ticks_ns(rte_rdtsc() - begin);
	return value;
}

uint64_t
clock_wall(void)
{
	return clock_read(CLOCK_REALTIME);
}

uint64_t
clock_thread_cpu(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}
