/* SPDX-License-Identifier: BSD-3-Clause */
/* The times of passes of rocade-pairs (app/perf/pass_spans.c). */
#include <stdint.h>

#include <perf/pass_spans.h>

#include "case.h"

/* A power of 2 has spans of a microsecond, and the last one spans of half of one. */
static const uint64_t clocks[] = {UINT64_C(1048576) * 1000, UINT64_C(2095000000),
	UINT64_C(3700000000), UINT64_C(2097000000), UINT64_C(4294000000)};

static void
spans_fill(struct pass_spans *spans, uint64_t hz, unsigned count, unsigned us)
{
	for (unsigned i = 0; i < count; i++)
		pass_spans_add(spans, us * (hz / 1000000));
}

TEST(quantiles_are_exact_to_a_microsecond)
{
	for (unsigned i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		static struct pass_spans spans, other;
		uint64_t hz = clocks[i];
		double us;

		pass_spans_init(&spans, hz);
		pass_spans_init(&other, hz);
		spans_fill(&spans, hz, 9980, 10);
		spans_fill(&spans, hz, 9, 100);
		spans_fill(&other, hz, 11, 200);
		pass_spans_merge(&spans, &other);
		assert_int_equal(pass_spans_count(&spans), 10000);
		assert_int_equal(spans.longest, 200 * (hz / 1000000));
		assert_true(pass_spans_quantile(&spans, 99800, hz, &us));
		assert_true(us > 9.99 && us < 11.1);
		assert_true(pass_spans_quantile(&spans, 99890, hz, &us));
		assert_true(us > 99.9 && us < 101.1);
		/* No quantile is longer than the longest pass. */
		assert_true(pass_spans_quantile(&spans, 99900, hz, &us));
		assert_true(us > 199.8 && us <= 200.01);
	}
}

/* It is said of passes that are longer than all spans, and of no other. */
TEST(more_than_the_table_has)
{
	for (unsigned i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		static struct pass_spans spans;
		double us;

		pass_spans_init(&spans, clocks[i]);
		spans_fill(&spans, clocks[i], 9990, 254);
		spans_fill(&spans, clocks[i], 10, 5000000);
		assert_int_equal(pass_spans_count(&spans), 10000);
		assert_true(pass_spans_quantile(&spans, 99900, clocks[i], &us));
		assert_true(us > 253 && us < 255.1);
		assert_false(pass_spans_quantile(&spans, 99901, clocks[i], &us));
		assert_int_equal(spans.longest, 5000000 * (clocks[i] / 1000000));
	}
}
