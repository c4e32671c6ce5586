/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_ENGINE_CLOCK_H
#define ROCADE_ENGINE_CLOCK_H

#include "base/common.h"

/* Measures the clock's rate, 10 ms, the first time. Before the first clock_now(). */
void
clock_init(void);

/* Nanoseconds since then, the same on every core. */
uint64_t
clock_now(void);

/* Nanoseconds of the wall clock, CLOCK_REALTIME. */
uint64_t
clock_wall(void);

#endif
