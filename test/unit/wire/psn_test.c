/* SPDX-License-Identifier: BSD-3-Clause */

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
