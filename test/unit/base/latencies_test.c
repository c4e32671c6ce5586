/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "base/latencies.h"
#include "case.h"

static char text[LATENCY_TEXT_MAX + 1];

/* Prints as a member of an object. Returns the text. */
static const char *
printed(const struct latencies *l)
{
	struct json_out j = {.to = fmemopen(text, sizeof(text), "w")};

	assert_non_null(j.to);
	json_out_object(&j, NULL);
	latencies_print(&j, "l", l);
	json_out_end(&j);
	assert_int_equal(fclose(j.to), 0);
	return text;
}

TEST(buckets_end_at_their_bound)
{
	assert_int_equal(latency_bucket(0), 0);
	assert_int_equal(latency_bucket(1), 0);
	for (unsigned i = 0; i < LATENCY_BUCKETS - 1; i++) {
		uint64_t bound = LATENCY_FIRST_NS << i;

		assert_int_equal(latency_bucket(bound), i);
		assert_int_equal(latency_bucket(bound + 1), i + 1);
	}
	assert_int_equal(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
}

TEST(a_time_is_counted_once_and_summed)
{
	struct latency_hist hist = {0};

	latency_count(&hist, 512);
	latency_count(&hist, 513);
	latency_count(&hist, 1000);
	assert_int_equal(hist.sum_ns, 2025);
	assert_int_equal(hist.count[0], 1);
	assert_int_equal(hist.count[1], 2);
	assert_int_equal(hist.count[2], 0);
}

TEST(sums_have_every_value)
{
	struct latencies from, sum = {0};
	uint64_t *value = (uint64_t *)&from;
	const uint64_t *got = (const uint64_t *)&sum;

	for (size_t i = 0; i < sizeof(from) / 8; i++)
		value[i] = i + 1;
	latencies_add(&sum, &from);
	latencies_add(&sum, &from);
	for (size_t i = 0; i < sizeof(from) / 8; i++)
		assert_int_equal(got[i], 2 * (i + 1));
}

/* Whatever a client writes: no sum overflows, and the text has room for them. */
TEST(values_without_bounds)
{
	struct latencies from, sum = {0};
	const char *at = text;
	unsigned rows = 0;

	memset(&from, 0xff, sizeof(from));
	for (unsigned i = 0; i < 3; i++)
		latencies_add(&sum, &from);
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		assert_int_equal(sum.of[1][2].count[i], LATENCY_COUNT_MAX);
	assert_int_equal(sum.of[1][2].sum_ns, LATENCY_SUM_MAX);
	printed(&sum);
	assert_true(strlen(text) < LATENCY_TEXT_MAX);
	assert_string_equal(text + strlen(text) - 4, "}}]}");
	while ((at = strstr(at, "\"count\": 6755399441055744,")) != NULL) {
		at++;
		rows++;
	}
	assert_int_equal(rows, LATENCY_TYPES * LATENCY_OPS);
}

TEST(rows_of_what_was_measured)
{
	struct latencies l = {0};

	assert_string_equal(printed(&l), "{\"l\": []}");
	latency_count(&l.of[LATENCY_TYPE_XRC][LATENCY_OP_atomic_write], 1024);
	latency_count(&l.of[LATENCY_TYPE_XRC][LATENCY_OP_atomic_write], UINT64_MAX / 4);
	printed(&l);
	assert_non_null(strstr(text,
		"{\"l\": [{\"type\": \"XRC\", \"operation\": \"atomic_write\", \"count\": 2, "
		"\"sum_ns\": 4611686018427388927, \"buckets\": {\"512\": 0, \"1024\": 1, "
		"\"2048\": 0, "));
	assert_non_null(strstr(text, "\"2147483648\": 0, \"inf\": 1}}]}"));
}
