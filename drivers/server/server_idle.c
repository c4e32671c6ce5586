/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <time.h>

#include "base/off.h"
#include "engine/clock.h"
#include "server/server_idle.h"

#define SHORTEST_OF 4 /* sleeps that are measured */

static void
idle_nanosleep(uint64_t ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(ns / NS_PER_SEC), .tv_nsec = (long)(ns % NS_PER_SEC)};

	(void)nanosleep(&until, NULL);
}

void
idle_open(struct core_taken *core)
{
	uint64_t shortest_ns = TIME_NEVER;

	for (unsigned i = 0; i < SHORTEST_OF; i++) {
		uint64_t begin = clock_now();

		idle_nanosleep(1);
		shortest_ns = RTE_MIN(shortest_ns, clock_now() - begin);
	}
	core_taken_init(core, is_off(OFF_CORE_TAKEN) ? 0 : shortest_ns);
}

void
idle_leave(struct core_taken *core)
{
	uint64_t ns = core_taken_ns(core);

	if (likely(ns == 0)) {
		core_taken_yields(core, clock_now());
		sched_yield();
	} else {
		idle_nanosleep(ns);
		core_taken_slept(core);
	}
}

uint64_t
idle_sleep_most(const struct core_taken *core, uint64_t max_ns, uint64_t idle_ns)
{
	uint64_t taken_ns = core_taken_ns(core);

	if (unlikely(taken_ns != 0))
		return max_ns == 0 ? taken_ns : RTE_MIN(taken_ns, max_ns);
	/* The sleep grows with the idle time: a port that was just busy is soon busy again. */
	return idle_ns < SPIN_NS ? 0 : RTE_MIN(max_ns, idle_ns);
}

void
idle_yield(const struct core_taken *core)
{
	if (likely(core_taken_ns(core) == 0))
		sched_yield();
}

uint64_t
idle_slept(const struct core_taken cores[SW_THREADS_MAX])
{
	uint64_t slept = 0;

	for (unsigned i = 0; i < SW_THREADS_MAX; i++)
		slept += __atomic_load_n(&cores[i].slept, __ATOMIC_RELAXED);
	return slept;
}
