/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of the daemon yields its core when a pass has found nothing, or it sleeps. */
#ifndef ROCADE_SERVER_IDLE_H
#define ROCADE_SERVER_IDLE_H

#include "base/core_taken.h"
#include "switch/sw_thread.h"

#define SPIN_NS (20 * NS_PER_US) /* idle time before a thread sleeps */

/* A thread begins its loop. Measures how long the shortest sleep takes. */
void idle_open(struct core_taken *core);

/* Returns for how long at most the thread may sleep in its set of events, after idle_ns without work;
 * 0: it may not. max_ns: as the user has it; 0: the thread polls all the time, but for a core that is
 * taken. */
uint64_t idle_sleep_most(
	const struct core_taken *core, uint64_t max_ns, uint64_t idle_ns);

/* Leaves the core where the thread may not sleep in its set of events: yields it, or sleeps if it is
 * taken. */
void idle_leave(struct core_taken *core);

/* Returns how often the threads have slept because their cores were taken. For any thread. */
uint64_t idle_slept(const struct core_taken cores[SW_THREADS_MAX]);

/* There is work for the next pass. Yields the core unless it is taken. */
void idle_yield(const struct core_taken *core);

#endif
