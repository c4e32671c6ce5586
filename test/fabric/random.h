/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of a run, from its seed. */
#ifndef ROCADE_FABRIC_RANDOM_H
#define ROCADE_FABRIC_RANDOM_H

#include "../unit/rand.h"

extern uint64_t random_state;

/* In [0, 1). */
static inline double
random_unit(void)
{
	return (double)(rand_next(&random_state) >> 11) * 0x1p-53;
}

/* In [low, high). */
static inline uint64_t
random_between(uint64_t low, uint64_t high)
{
	return low + (uint64_t)(random_unit() * (double)(high - low));
}

#endif
