/* SPDX-License-Identifier: BSD-3-Clause */
/* The SplitMix64 generator (Steele, Lea, Flood 2014). An observer of its numbers
 * can predict the next ones. */
#ifndef ROCADE_BASE_SPLITMIX64_H
#define ROCADE_BASE_SPLITMIX64_H

#include <stdint.h>

/* Returns the next number. *state is the seed at first. */
static inline uint64_t
splitmix64(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

#endif
