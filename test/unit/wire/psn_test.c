/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "case.h"
#include "wire/psn.h"

#define HALF 0x800000

TEST(add_wraps)
{
	assert_int_equal(psn_add(0, 0), 0);
	assert_int_equal(psn_add(0x1000, 3), 0x1003);
	assert_int_equal(psn_add(0xFFFFFF, 1), 0);
	assert_int_equal(psn_add(0xFFFFF0, 0x20), 0x10);
	assert_int_equal(psn_add(5, (uint32_t)-6), 0xFFFFFF);
	/* High bits of an argument do not reach the result. */
	assert_int_equal(psn_add(0xAB000001, 1), 2);
	assert_int_equal(psn_add(1, 0xFF000001), 2);
}

TEST(diff_is_signed)
{
	static const uint32_t bases[] = {
		0, 1, 0x1000, 0x7FFFFF, 0x800000, 0xFFFFFE, 0xFFFFFF};
	static const int32_t diffs[] = {
		0, 1, -1, 2, -2, 127, -128, 0x7FFFFE, 0x7FFFFF, -0x7FFFFF, -HALF};

	for (size_t b = 0; b < sizeof(bases) / sizeof(bases[0]); b++) {
		for (size_t d = 0; d < sizeof(diffs) / sizeof(diffs[0]); d++) {
			uint32_t psn = psn_add(bases[b], (uint32_t)diffs[d]);

			assert_true(psn <= PSN_MASK);
			assert_int_equal(psn_diff(psn, bases[b]), diffs[d]);
			assert_int_equal(psn_diff(psn | 0xC3000000, bases[b]), diffs[d]);
			assert_int_equal(psn_diff(psn, bases[b] | 0x3C000000), diffs[d]);
		}
	}
}

TEST(half_way_is_earlier)
{
	/* ePSN + 2^23 is a duplicate, from either side (as in rxe). */
	assert_int_equal(psn_diff(0x801002, 0x001002), -HALF);
	assert_int_equal(psn_diff(0x001002, 0x801002), -HALF);
	assert_int_equal(psn_diff(0x801001, 0x001002), HALF - 1);
}

/* Any number of bits is cleared and counted, across words and around the end, and no other one. */
TEST(bits_of_psns)
{
	struct psn_bits bits;

	for (uint32_t psn = 0xFFFFF0; psn < 0xFFFFF0 + PSN_BITS; psn += 3) {
		for (uint32_t n = 1; n <= PSN_BITS; n += n < 70 ? 1 : 31) {
			memset(&bits, 0xff, sizeof(bits));
			psn_bits_clear(&bits, psn, n);
			assert_int_equal(psn_bits_count(&bits), PSN_BITS - n);
			assert_int_equal(psn_bits_any(&bits), n != PSN_BITS);
			for (uint32_t i = 0; i < PSN_BITS; i++)
				assert_int_equal(psn_bit(&bits, psn + i), i >= n);
			psn_bit_set(&bits, psn + n - 1);
			for (uint32_t i = 0; i < PSN_BITS; i++)
				assert_int_equal(psn_bit(&bits, psn + i), i >= n - 1);
		}
	}
}

/* The next bit is found in any word, around the end of the PSNs, and never behind the end. */
TEST(next_bit)
{
	for (uint32_t set = 0xFFFF80; set != 0x100; set = psn_add(set, 1)) {
		struct psn_bits bits = {0};

		psn_bit_set(&bits, set);
		for (uint32_t before = 0; before < 200; before++) {
			uint32_t from = (set - before) & PSN_MASK;

			assert_int_equal(
				psn_bits_next(&bits, from, psn_add(set, 30)), set);
			assert_int_equal(
				psn_bits_next(&bits, from, psn_add(set, 1)), set);
			assert_int_equal(psn_bits_next(&bits, from, set), set);
			if (before > 0)
				assert_int_equal(
					psn_bits_next(&bits, from, (set - 1) & PSN_MASK),
					(set - 1) & PSN_MASK);
		}
		assert_int_equal(psn_bits_next(&bits, psn_add(set, 1), psn_add(set, 99)),
			psn_add(set, 99));
	}
}
