/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* 24-bit packet sequence numbers: arithmetic modulo 2^24 (IBA 9.7.1), and bitmaps. Inputs may
 * carry high bits; every PSN returned is in 0..0xFFFFFF. */
#ifndef ROCADE_WIRE_PSN_H
#define ROCADE_WIRE_PSN_H

#include "base/common.h"

#define PSN_MASK 0xFFFFFFu

static inline uint32_t
psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

/* a - b in -2^23 .. 2^23-1: above 0 a is later, below 0 it is earlier (C9-72). */
static inline int32_t
psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* A bit for each PSN, modulo the number of bits. */
struct psn_bits {
	uint64_t word[4];
};
#define PSN_BITS 256

static inline bool
psn_bit(const struct psn_bits *bits, uint32_t psn)
{
	return (bits->word[psn % PSN_BITS / 64] >> psn % 64 & 1) != 0;
}

static inline void
psn_bit_set(struct psn_bits *bits, uint32_t psn)
{
	bits->word[psn % PSN_BITS / 64] |= UINT64_C(1) << psn % 64;
}

/* n: PSN_BITS at most. */
static inline void
psn_bits_clear(struct psn_bits *bits, uint32_t psn, uint32_t n)
{
	while (n != 0) {
		uint32_t part = RTE_MIN(n, 64 - psn % 64);

		bits->word[psn % PSN_BITS / 64] &=
			~(UINT64_MAX >> (64 - part) << psn % 64);
		psn += part;
		n -= part;
	}
}

static inline bool
psn_bits_any(const struct psn_bits *bits)
{
	return (bits->word[0] | bits->word[1] | bits->word[2] | bits->word[3]) != 0;
}

/* Returns how many bits are set. */
static inline uint32_t
psn_bits_count(const struct psn_bits *bits)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < PSN_BITS / 64; i++)
		set += (uint32_t)__builtin_popcountll(bits->word[i]);
	return set;
}

/* Returns the first PSN from psn up to end whose bit is set; end: none is. */
static inline uint32_t
psn_bits_next(const struct psn_bits *bits, uint32_t psn, uint32_t end)
{
	while (psn_diff(psn, end) < 0) {
		uint64_t rest = bits->word[psn % PSN_BITS / 64] >> psn % 64;

		if (rest != 0) {
			psn = psn_add(psn, (uint32_t)__builtin_ctzll(rest));
			return psn_diff(psn, end) < 0 ? psn : end;
		}
		psn = psn_add(psn, 64 - psn % 64);
	}
	return end;
}

#endif
