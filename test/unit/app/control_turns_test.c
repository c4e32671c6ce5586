/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns with and without control calls of rocade-pairs (app/perf/control_turns.c). */
#include <stdint.h>

#include <perf/control_turns.h>

#include "case.h"

#define BEGIN 5000
#define TURN 1000

static struct control_turns turns;
static uint64_t messages;

static void
turns_begin(void)
{
	turns = (struct control_turns){.begin_tsc = BEGIN, .turn_tsc = TURN};
	messages = 77;
	control_turns_add(&turns, BEGIN - 1, messages); /* in the warm-up */
}

/* A turn with this many messages in each tenth of it. */
static void
turn_pass(uint64_t number, uint64_t each)
{
	for (unsigned i = 0; i < 10; i++) {
		control_turns_add(
			&turns, BEGIN + number * TURN + i * TURN / 10, messages);
		messages += each;
	}
}

TEST(turns_alternate)
{
	assert_false(control_turns_on(BEGIN, TURN, 0));
	assert_false(control_turns_on(BEGIN, TURN, BEGIN - 1));
	assert_false(control_turns_on(BEGIN, TURN, BEGIN));
	assert_false(control_turns_on(BEGIN, TURN, BEGIN + TURN - 1));
	assert_true(control_turns_on(BEGIN, TURN, BEGIN + TURN));
	assert_false(control_turns_on(BEGIN, TURN, BEGIN + 2 * TURN));
	assert_true(control_turns_on(BEGIN, TURN, BEGIN + 101 * TURN));
}

/* The rate of the machine grows from turn to turn; control calls take a tenth of it. */
TEST(each_turn_is_compared_with_those_around_it)
{
	double quartiles[3];

	turns_begin();
	assert_int_equal(control_turns_ratio(&turns, quartiles), 0);
	for (unsigned i = 0; i < 20; i++)
		turn_pass(i, (i + 10) * (i % 2 != 0 ? 9 : 10));
	/* The last turn has not ended, and the one before it has none behind it. */
	assert_int_equal(control_turns_ratio(&turns, quartiles), 9);
	assert_float_equal(quartiles[1], 0.9, 1e-9);
	assert_float_equal(quartiles[0], 0.9, 1e-9);
	assert_float_equal(quartiles[2], 0.9, 1e-9);
}

/* A turn in which the thread had no core is left out, and so are those that would be compared with it. */
TEST(turns_without_a_core_do_not_count)
{
	double quartiles[3];

	turns_begin();
	for (unsigned i = 0; i < 12; i++) {
		if (i != 3)
			turn_pass(i, i % 2 != 0 ? 50 : 100);
	}
	/* Of 1, 3, 5, 7 and 9: turn 3 is missing, and turn 2 has no end. */
	assert_int_equal(control_turns_ratio(&turns, quartiles), 3);
	assert_float_equal(quartiles[0], 0.5, 1e-9);
	assert_float_equal(quartiles[2], 0.5, 1e-9);
}

TEST(more_turns_than_there_is_room_for)
{
	double quartiles[3];

	turns_begin();
	for (unsigned i = 0; i < CONTROL_TURNS_ROOM + 10; i++)
		turn_pass(i, 3);
	assert_int_equal(turns.count, CONTROL_TURNS_ROOM);
	assert_int_equal(
		control_turns_ratio(&turns, quartiles), CONTROL_TURNS_ROOM / 2 - 1);
	assert_float_equal(quartiles[1], 1, 1e-9);
}
