/* SPDX-License-Identifier: BSD-3-Clause */
/* Which requests are kept as the slowest ones, for how long, and what is read of those of
 * another process. */
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "base/slowest.h"
#include "case.h"

#define NOW (1000 * NS_PER_SEC)
#define TO_WALL (UINT64_C(1700000000) * NS_PER_SEC)

static struct slowest set;
static struct slow_request copy[SLOWEST_KEPT];

static struct slowest_row *
row(void)
{
	return &set.of[LATENCY_TYPE_RC][LATENCY_OP_read];
}

/* A request that took so long, in two parts, and ended then. Returns whether it may be
 * kept. */
static bool
ends(uint64_t took_ns, uint64_t ended_ns)
{
	struct slow_request r = {
		.ended_ns = ended_ns, .qpn = 7, .bytes = (uint32_t)took_ns};

	if (!slowest_takes(row(), took_ns, ended_ns))
		return false;
	r.spent_ns[SLOW_queue] = 1;
	r.spent_ns[SLOW_answer] = took_ns - 1;
	slowest_add(row(), &r);
	return true;
}

static unsigned
read_at(uint64_t now)
{
	return slowest_copy(&set, LATENCY_TYPE_RC, LATENCY_OP_read, now + TO_WALL, copy);
}

static void
expect_kept(uint64_t now, unsigned n, const uint64_t *took_ns)
{
	assert_int_equal(read_at(now), n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(slow_total_ns(&copy[i]), took_ns[i]);
		assert_int_equal(copy[i].bytes, took_ns[i]);
	}
}

static void
begin(void)
{
	memset(&set, 0, sizeof(set));
	slowest_clock_set(&set, NOW, NOW + TO_WALL);
}

TEST(the_slowest_are_kept_slowest_first)
{
	begin();
	assert_int_equal(read_at(NOW), 0);
	for (uint64_t i = 0; i < 6; i++)
		assert_true(ends(100 + 10 * i, NOW + i));
	expect_kept(NOW + 6, 4, (const uint64_t[]){150, 140, 130, 120});
	assert_int_equal(copy[3].ended_ns, NOW + 2 + TO_WALL);
	/* As fast as the fastest of them, or faster: the caller need not even ask. */
	assert_false(ends(120, NOW + 7));
	assert_true(ends(121, NOW + 8));
	expect_kept(NOW + 8, 4, (const uint64_t[]){150, 140, 130, 121});
}

/* Also if it is faster: one place after the other. */
TEST(a_request_is_forgotten_after_the_period)
{
	begin();
	for (uint64_t i = 0; i < 4; i++)
		assert_true(ends(1000 + i, NOW + i));
	assert_false(ends(10, NOW + SLOWEST_PERIOD_NS - 1));
	assert_int_equal(read_at(NOW + SLOWEST_PERIOD_NS - 1), 4);
	expect_kept(NOW + SLOWEST_PERIOD_NS, 3, (const uint64_t[]){1003, 1002, 1001});
	assert_true(ends(10, NOW + SLOWEST_PERIOD_NS));
	expect_kept(NOW + SLOWEST_PERIOD_NS, 4, (const uint64_t[]){1003, 1002, 1001, 10});
	assert_false(ends(9, NOW + SLOWEST_PERIOD_NS));
	for (uint64_t i = 1; i < 4; i++)
		assert_true(ends(20 + i, NOW + SLOWEST_PERIOD_NS + 3));
	expect_kept(NOW + SLOWEST_PERIOD_NS + 3, 4, (const uint64_t[]){23, 22, 21, 10});
	assert_int_equal(read_at(NOW + 3 * SLOWEST_PERIOD_NS), 0);
	assert_false(slowest_any(&set, NOW + 3 * SLOWEST_PERIOD_NS + TO_WALL));
}

/* A reader waits for no writer, which may be stopped, or hostile. */
TEST(a_request_that_is_being_written_is_not_read)
{
	begin();
	assert_true(ends(100, NOW));
	assert_int_equal(read_at(NOW), 1);
	row()->writes++;
	assert_int_equal(read_at(NOW), 0);
	row()->writes++;
	assert_int_equal(read_at(NOW), 1);
}

static char text[SLOWEST_TEXT_MAX + 1];

static const char *
printed(void)
{
	struct json_out j = {.to = fmemopen(text, sizeof(text), "w")};

	assert_non_null(j.to);
	json_out_object(&j, NULL);
	slowest_print(&j, "slowest", &set, NOW + TO_WALL);
	json_out_end(&j);
	assert_int_equal(fclose(j.to), 0);
	return text;
}

TEST(the_text_has_every_part)
{
	begin();
	assert_string_equal(printed(), "{\"slowest\": []}");
	assert_true(ends(100, NOW));
	assert_string_equal(printed(),
		"{\"slowest\": [{\"type\": \"RC\", \"operation\": \"read\", \"requests\": [{"
		"\"ended_ns\": 1700001000000000000, \"qpn\": 7, \"bytes\": 100, \"took_ns\": 100, "
		"\"spent_ns\": {\"queue\": 1, \"window\": 0, \"rnr\": 0, \"neighbour\": 0, "
		"\"port\": 0, \"nak\": 0, \"timer\": 0, \"answer\": 99, \"engine\": 0}, "
		"\"engine_before_ns\": 0, \"resent\": 0, \"timers\": 0, \"naks\": 0, "
		"\"rnr_naks\": 0}]}]}");
}

/* The largest numbers everywhere: the text is short enough, complete, and bounded. */
TEST(numbers_without_bounds)
{
	const char *last;

	memset(&set, 0xff, sizeof(set));
	set.to_wall_ns = 0;
	for (unsigned i = 0; i < LATENCY_TYPES * LATENCY_OPS; i++)
		(&set.of[0][0])[i].writes = 0;
	(void)printed();
	last = text + strlen(text) - strlen("}]}]}");
	assert_in_range(strlen(text), SLOWEST_TEXT_MAX / 2, SLOWEST_TEXT_MAX - 1);
	assert_string_equal(last, "}]}]}");
	assert_non_null(strstr(text, "\"took_ns\": 2533274790395904, "));
	assert_non_null(strstr(text, "\"qpn\": 16777215, \"bytes\": 4294967295, "));
	assert_null(strstr(text, "18446744073709551615"));
}
