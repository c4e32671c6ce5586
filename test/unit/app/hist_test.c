/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include <common/hist.h>

#include "case.h"

static struct hist hist;

TEST(empty_quantile_is_0)
{
	hist_clear(&hist);
	assert_int_equal(hist_quantile(&hist, 500), 0);
	assert_int_equal(hist_quantile_fine(&hist, 9999), 0);
}

TEST(small_values_are_exact)
{
	hist_clear(&hist);
	for (uint64_t ns = 1; ns <= 1000; ns++)
		hist_add(&hist, ns);
	assert_int_equal(hist.count, 1000);
	assert_int_equal(hist.min_ns, 1);
	assert_int_equal(hist.max_ns, 1000);
	assert_int_equal(hist_quantile(&hist, 500), 500);
	assert_int_equal(hist_quantile(&hist, 990), 990);
	assert_int_equal(hist_quantile(&hist, 999), 999);
	assert_int_equal(hist_quantile(&hist, 1000), 1000);
	assert_int_equal(hist_quantile(&hist, 0), 1);
}

/* Ranks are rounded up: the 99 % quantile of 10 values is the 10th. */
TEST(ranks_are_rounded_up)
{
	hist_clear(&hist);
	for (uint64_t i = 1; i <= 10; i++)
		hist_add(&hist, i * 100);
	assert_int_equal(hist_quantile(&hist, 500), 500);
	assert_int_equal(hist_quantile(&hist, 990), 1000);
	assert_int_equal(hist_quantile(&hist, 100), 100);
	assert_int_equal(hist_quantile(&hist, 101), 200);
}

/* Three digits of any value are exact, at both sides of each power of two. */
TEST(three_digits_are_exact)
{
	for (unsigned shift = 1; shift < 40; shift++) {
		for (int64_t off = -1; off <= 1; off++) {
			uint64_t ns = (UINT64_C(1) << shift) + (uint64_t)off;

			hist_clear(&hist);
			hist_add(&hist, ns);
			/* A larger value, so that max_ns is not the result. */
			hist_add(&hist, UINT64_C(1) << 41);
			uint64_t got = hist_quantile(&hist, 500);

			assert_true(got >= ns);
			assert_true(got - ns <= ns / 1000);
		}
	}
}

TEST(value_beyond_the_last_bucket)
{
	hist_clear(&hist);
	hist_add(&hist, UINT64_MAX / 2);
	assert_int_equal(hist_quantile(&hist, 500), UINT64_MAX / 2);
}

/* An hour of round trips of a microsecond. */
TEST(more_than_32_bits_of_samples)
{
	hist_clear(&hist);
	hist_add(&hist, 5);
	hist.bucket[5] += UINT32_MAX;
	hist.count += UINT32_MAX;
	hist_add(&hist, 9);
	assert_int_equal(hist_quantile(&hist, 500), 5);
	assert_int_equal(hist_quantile(&hist, 999), 5);
	assert_int_equal(hist_quantile(&hist, 1000), 9);
}

/* The sum of two is that of all their samples. */
TEST(histograms_are_merged)
{
	static struct hist more, all;

	hist_clear(&hist);
	hist_clear(&more);
	hist_clear(&all);
	for (uint64_t i = 1; i <= 1000; i++) {
		hist_add(i % 3 == 0 ? &hist : &more, i * i);
		hist_add(&all, i * i);
	}
	hist_merge(&hist, &more);
	assert_memory_equal(&hist, &all, sizeof(hist));
}
