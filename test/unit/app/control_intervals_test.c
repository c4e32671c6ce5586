/* SPDX-License-Identifier: BSD-3-Clause */
/* Intervals with and without control calls of rocade-pairs (app/perf/control_intervals.c). */
#include <stdint.h>

#include <perf/control_intervals.h>

#include "case.h"

#define BEGIN 5000
#define INTERVAL 1000

static struct control_intervals intervals;
static uint64_t messages;

static void
intervals_begin(void)
{
	control_intervals_begin(&intervals, BEGIN, INTERVAL);
	messages = 77;
	control_intervals_add(&intervals, BEGIN - 1, messages); /* in the warm-up */
}

/* An interval with this many messages in each tenth of it. */
static void
interval_pass(uint64_t number, uint64_t each)
{
	for (unsigned i = 0; i < 10; i++) {
		control_intervals_add(&intervals,
			BEGIN + number * INTERVAL + i * INTERVAL / 10, messages);
		messages += each;
	}
}

TEST(intervals_alternate)
{
	assert_false(control_intervals_on(BEGIN, INTERVAL, 0));
	assert_false(control_intervals_on(BEGIN, INTERVAL, BEGIN - 1));
	assert_false(control_intervals_on(BEGIN, INTERVAL, BEGIN));
	assert_false(control_intervals_on(BEGIN, INTERVAL, BEGIN + INTERVAL - 1));
	assert_true(control_intervals_on(BEGIN, INTERVAL, BEGIN + INTERVAL));
	assert_false(control_intervals_on(BEGIN, INTERVAL, BEGIN + 2 * INTERVAL));
	assert_true(control_intervals_on(BEGIN, INTERVAL, BEGIN + 101 * INTERVAL));
}

/* The rate of the machine grows from interval to interval; control calls take a tenth of it. */
TEST(each_interval_is_compared_with_those_around_it)
{
	double quartiles[3];

	intervals_begin();
	assert_int_equal(control_intervals_ratio(&intervals, quartiles), 0);
	for (unsigned i = 0; i < 20; i++)
		interval_pass(i, (i + 10) * (i % 2 != 0 ? 9 : 10));
	/* The last interval has not ended, and the one before it has none behind it. */
	assert_int_equal(control_intervals_ratio(&intervals, quartiles), 9);
	assert_float_equal(quartiles[1], 0.9, 1e-9);
	assert_float_equal(quartiles[0], 0.9, 1e-9);
	assert_float_equal(quartiles[2], 0.9, 1e-9);
}

/* An interval in which the thread had no core is left out, and so are those that would be compared with it. */
TEST(intervals_without_a_core_do_not_count)
{
	double quartiles[3];

	intervals_begin();
	for (unsigned i = 0; i < 12; i++) {
		if (i != 3)
			interval_pass(i, i % 2 != 0 ? 50 : 100);
	}
	/* Of 1, 3, 5, 7 and 9: interval 3 is missing, and interval 2 has no end. */
	assert_int_equal(control_intervals_ratio(&intervals, quartiles), 3);
	assert_float_equal(quartiles[0], 0.5, 1e-9);
	assert_float_equal(quartiles[2], 0.5, 1e-9);
}

TEST(more_intervals_than_there_is_room_for)
{
	double quartiles[3];

	intervals_begin();
	for (unsigned i = 0; i < CONTROL_INTERVALS_ROOM + 10; i++)
		interval_pass(i, 3);
	assert_int_equal(intervals.count, CONTROL_INTERVALS_ROOM);
	assert_int_equal(control_intervals_ratio(&intervals, quartiles),
		CONTROL_INTERVALS_ROOM / 2 - 1);
	assert_float_equal(quartiles[1], 1, 1e-9);
}
