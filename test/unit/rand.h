/* SPDX-License-Identifier: BSD-3-Clause */
/* Seeded numbers for sweeps (SplitMix64): the same on every machine. */
#ifndef ROCADE_TEST_RAND_H
#define ROCADE_TEST_RAND_H

#include <stdint.h>

static inline uint64_t
rand_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* In 0 .. limit - 1. */
static inline uint64_t
rand_below(uint64_t *state, uint64_t limit)
{
	return rand_next(state) % limit;
}

/* Of any magnitude up to the given number of bits, each equally likely. */
static inline uint64_t
rand_magnitude(uint64_t *state, unsigned max_bits)
{
	unsigned bits = rand_below(state, max_bits + 1);

	return bits == 0 ? 0 : rand_next(state) >> (64 - bits);
}

#endif
