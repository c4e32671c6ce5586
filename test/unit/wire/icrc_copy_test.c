/* SPDX-License-Identifier: BSD-3-Clause */
/* Copy and CRC in one pass against the two one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/common.h"
#include "wire/icrc.h"

#include <cmocka.h>

#include "../rand.h"

#define LEN_MAX 9000
#define ROOM (LEN_MAX + 128)
#define GUARD 0xA5

static uint8_t src[ROOM], dst[ROOM], want[ROOM];

static void
bytes_fill(uint64_t *seed)
{
	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)rand_next(seed);
}

/* From and to any place in a line, on from any value: nothing beside dst is touched. */
static void
copy_checked(uint32_t crc, size_t to, size_t from, size_t len)
{
	uint32_t got;

	memset(dst, GUARD, sizeof(dst));
	memset(want, GUARD, sizeof(want));
	memcpy(want + to, src + from, len);
	got = icrc_copy(crc, dst + to, src + from, len);
	if (got != icrc_update(crc, src + from, len) ||
		memcmp(dst, want, sizeof(dst)) != 0)
		fail_msg("%zu bytes from %zu to %zu", len, from, to);
}

static void
every_length(void **state)
{
	uint64_t seed = 1;

	(void)state;
	bytes_fill(&seed);
	/* Each number of wide blocks, of narrow ones and of bytes behind them. */
	for (size_t len = icrc_copy_min; len < 3 * 256; len++)
		copy_checked((uint32_t)rand_next(&seed), len % 64, len % 61, len);
	for (size_t len = 1024; len <= LEN_MAX; len += 1 + rand_below(&seed, 97))
		copy_checked((uint32_t)rand_next(&seed), rand_below(&seed, 128),
			rand_below(&seed, 128), len);
	copy_checked(0, 54, 0, 4096);
	copy_checked(UINT32_MAX, 70, 3, 4096);
}

/* A bit that differs is seen wherever it stands. */
static void
every_bit(void **state)
{
	uint64_t seed = 2;
	uint32_t crc;

	(void)state;
	bytes_fill(&seed);
	crc = icrc_copy(7, dst, src, 1100);
	for (size_t bit = 0; bit < 8 * 1100; bit++) {
		src[bit / 8] ^= 1u << bit % 8;
		assert_int_not_equal(icrc_copy(7, dst, src, 1100), crc);
		src[bit / 8] ^= 1u << bit % 8;
	}
}

/* Headers, a long piece, a short one in between, a long one, and what is behind. */
static void
pieces_of_a_frame(void **state)
{
	uint64_t seed = 3;
	struct icrc_sum sum = {.from = dst, .crc = 5};

	(void)state;
	bytes_fill(&seed);
	memcpy(dst, src, sizeof(dst));
	for (size_t at = 16; at < 3000; at += 1000) {
		memset(dst + at, 0, 700);
		sum = icrc_sum_copy(sum, dst + at, src + at, 700);
		assert_ptr_equal(sum.from, dst + at + 700);
	}
	assert_memory_equal(dst, src, sizeof(dst));
	assert_int_equal(icrc_update(sum.crc, sum.from, 100),
		icrc_update(5, src, (size_t)(sum.from - dst) + 100));
}

/* Not there on this CPU: then nothing may say that it is. */
static void
not_here(void **state)
{
	(void)state;
	assert_true(icrc_copy_min == UINT32_MAX);
#ifdef __x86_64__
	assert_false(__builtin_cpu_supports("avx512f") &&
		     __builtin_cpu_supports("vpclmulqdq") &&
		     __builtin_cpu_supports("avx512vl"));
#endif
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length),
		cmocka_unit_test(every_bit),
		cmocka_unit_test(pieces_of_a_frame),
	};
	const struct CMUnitTest without[] = {
		cmocka_unit_test(not_here),
	};

	return icrc_copy_min != UINT32_MAX
		       ? cmocka_run_group_tests_name("icrc_copy", tests, NULL, NULL)
		       : cmocka_run_group_tests_name("icrc_copy", without, NULL, NULL);
}
