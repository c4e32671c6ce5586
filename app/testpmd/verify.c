/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <string.h>

#include "verify.h"

#define STEP UINT64_C(0x9e3779b97f4a7c15)

uint64_t
verify_seed(uint32_t qpn, uint64_t message)
{
	/* A 64-bit finaliser: adjacent arguments give unrelated seeds. */
	uint64_t x = message + ((uint64_t)qpn << 40) + STEP;

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t
verify_seed_at(uint64_t seed, uint64_t offset)
{
	return seed + offset / 8 * STEP;
}

uint8_t
verify_byte(uint64_t seed, uint64_t offset)
{
	return (uint8_t)(verify_seed_at(seed, offset) >> (offset % 8 * 8));
}

void
verify_fill(void *buf, size_t len, uint64_t seed)
{
	uint8_t *p = buf;
	uint64_t word;

	for (; len >= 8; len -= 8, p += 8, seed += STEP) {
		word = htole64(seed);
		memcpy(p, &word, 8);
	}
	word = htole64(seed);
	memcpy(p, &word, len);
}

/* Compares all whole words without a branch, so that the compiler vectorises the loop. */
static uint64_t
differing_bits(const uint8_t *p, size_t words, uint64_t seed)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < words; i++, p += 8, seed += STEP) {
		uint64_t word;

		memcpy(&word, p, 8);
		bits |= word ^ htole64(seed);
	}
	return bits;
}

size_t
verify_check(const void *buf, size_t len, uint64_t seed, size_t *first)
{
	const uint8_t *p = buf;
	uint64_t tail_seed = htole64(verify_seed_at(seed, len));
	size_t bad = 0;

	if (differing_bits(p, len / 8, seed) == 0 &&
		memcmp(p + (len & ~(size_t)7), &tail_seed, len & 7) == 0)
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (p[i] == verify_byte(seed, i))
			continue;
		if (bad == 0)
			*first = i;
		bad++;
	}
	return bad;
}
