/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#ifndef ROCADE_ENGINE_CLOCK_H
#define ROCADE_ENGINE_CLOCK_H

#include "base/common.h"

/* Measures the clock's rate on the first call, which takes 10 ms. Call it before
 * clock_now(). */
void clock_init(void);

/* Returns nanoseconds since the first clock_init(), the same on every core. */
uint64_t clock_now(void);

/* Loads a word (acquire). *took_ns: how long that took, so whether its cache line was near. Waits for
 * all loads before it: not for each packet. */
uint32_t clock_timed_load(const uint32_t *word, uint64_t *took_ns);

/* Returns nanoseconds of the wall clock, CLOCK_REALTIME. */
uint64_t clock_wall(void);

/* Returns how long the calling thread has had a core, in nanoseconds. A system call. */
uint64_t clock_thread_cpu(void);

#endif
