/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * ISA-L is four times as fast as zlib where the CPU multiplies without carries (PCLMULQDQ,
 * PMULL) or has CRC instructions. Elsewhere it looks up each byte in a table, and zlib is eight
 * times as fast. An emulated CPU may have PCLMULQDQ and be slow at it: with QEMU 7.2 zlib is
 * twice as fast. So both are timed when the library is loaded, which takes a few microseconds.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <isa-l/crc.h>
#include <rte_common.h>
#include <zlib.h>

#include "wire/crc_choice.h"

#define TIMED_BYTES 2048
#define TIMED_RUNS 8

static uint32_t
crc_zlib(uint32_t crc, const unsigned char *data, uint64_t len)
{
	return (uint32_t)crc32_z(crc, data, len);
}

static const struct {
	const char *name;
	crc_fn *fn;
} crcs[] = {{"isal", crc32_gzip_refl}, {"zlib", crc_zlib}};

crc_fn *crc_in_use = crc32_gzip_refl;

crc_fn *
crc_named(const char *name)
{
	for (unsigned i = 0; i < RTE_DIM(crcs); i++)
		if (strcmp(name, crcs[i].name) == 0)
			return crcs[i].fn;
	return NULL;
}

/* A difference of less than a quarter may be chance. */
bool
crc_zlib_is_faster(uint64_t isal_ns, uint64_t zlib_ns)
{
	return zlib_ns < isal_ns - isal_ns / 4;
}

static uint64_t
crc_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The shortest of several runs: another process may interrupt some of them. */
static uint64_t
shortest_ns(crc_fn *crc, const unsigned char *data)
{
	uint64_t shortest = UINT64_MAX;
	volatile uint32_t sum = 0;

	for (unsigned i = 0; i < TIMED_RUNS; i++) {
		uint64_t start = crc_clock_ns();

		sum = crc(sum, data, TIMED_BYTES);
		shortest = RTE_MIN(shortest, crc_clock_ns() - start);
	}
	return shortest;
}

/* The lowest priority that is left to programs: other constructors may compute a CRC. */
static __attribute__((constructor(101))) void
crc_choose(void)
{
	static const unsigned char data[TIMED_BYTES];
	const char *name = getenv("ROCADE_CRC");
	crc_fn *named = name != NULL ? crc_named(name) : NULL;

	if (named != NULL)
		crc_in_use = named;
	else if (crc_zlib_is_faster(
			 shortest_ns(crc32_gzip_refl, data), shortest_ns(crc_zlib, data)))
		crc_in_use = crc_zlib;
}
