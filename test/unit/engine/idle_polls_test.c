/* SPDX-License-Identifier: BSD-3-Clause */
/* When a thread that polls in vain offers its core: after many polls, or after few where another
 * thread took the core the last time. */
#include <stdint.h>

#include "case.h"
#include "engine/idle_polls.h"

#define QUICK_NS (YIELD_TAKEN_NS / 2)
#define TAKEN_NS (3 * NS_PER_MS)

/* Returns the polls until the thread offers its core. */
static unsigned
polls_until_offer(struct idle_polls *p)
{
	unsigned polls = 1;

	while (!idle_polls_offer(p)) {
		polls++;
		assert_true(polls < 1000);
	}
	return polls;
}

TEST(plenty_of_cores)
{
	struct idle_polls p;

	assert_true(idle_polls_init(&p, NULL));
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(polls_until_offer(&p), IDLE_POLLS);
		assert_false(idle_polls_offered(&p, QUICK_NS));
	}
	assert_false(idle_polls_offered(&p, YIELD_TAKEN_NS));
	assert_int_equal(polls_until_offer(&p), IDLE_POLLS);
}

TEST(taken_core_is_offered_sooner)
{
	struct idle_polls p;

	assert_true(idle_polls_init(&p, "auto"));
	assert_int_equal(polls_until_offer(&p), IDLE_POLLS);
	for (unsigned i = 0; i < 10; i++) {
		assert_true(idle_polls_offered(&p, TAKEN_NS));
		assert_int_equal(polls_until_offer(&p), IDLE_POLLS_SHORT);
	}
	assert_true(idle_polls_offered(&p, YIELD_TAKEN_NS + 1));
	assert_int_equal(polls_until_offer(&p), IDLE_POLLS_SHORT);
	/* No other thread wants it any more. */
	assert_false(idle_polls_offered(&p, QUICK_NS));
	assert_int_equal(polls_until_offer(&p), IDLE_POLLS);
}

/* A poll in between that finds something begins the count anew. */
TEST(found_packet_restarts_the_count)
{
	struct idle_polls p;

	assert_true(idle_polls_init(&p, NULL));
	for (unsigned i = 1; i < IDLE_POLLS; i++)
		assert_false(idle_polls_offer(&p));
	p.count = 0;
	assert_int_equal(polls_until_offer(&p), IDLE_POLLS);
}

/* Another thread that polls the same engine may have lowered the limit below the count. */
TEST(count_beyond_the_limit)
{
	struct idle_polls p;

	assert_true(idle_polls_init(&p, NULL));
	for (unsigned i = 0; i < IDLE_POLLS_SHORT + 2; i++)
		assert_false(idle_polls_offer(&p));
	idle_polls_offered(&p, TAKEN_NS);
	assert_int_equal(polls_until_offer(&p), 1);
}

TEST(forced_by_the_environment)
{
	struct idle_polls p;

	assert_true(idle_polls_init(&p, "short"));
	assert_int_equal(polls_until_offer(&p), IDLE_POLLS_SHORT);
	assert_false(idle_polls_offered(&p, QUICK_NS));
	assert_int_equal(polls_until_offer(&p), IDLE_POLLS_SHORT);
	assert_true(idle_polls_init(&p, "plenty"));
	assert_true(idle_polls_offered(&p, TAKEN_NS));
	assert_int_equal(polls_until_offer(&p), IDLE_POLLS);
}

TEST(invalid_value_is_reported)
{
	static const char *const invalid[] = {"", "0", "Short", "plenty ", "shor"};
	struct idle_polls p;

	for (unsigned i = 0; i < RTE_DIM(invalid); i++) {
		assert_false(idle_polls_init(&p, invalid[i]));
		assert_int_equal(polls_until_offer(&p), IDLE_POLLS);
		assert_true(idle_polls_offered(&p, TAKEN_NS));
		assert_int_equal(polls_until_offer(&p), IDLE_POLLS_SHORT);
	}
}

/* A thread that soon offers the core, too, has nothing to do either. */
TEST(threads_that_poll_take_turns)
{
	static const struct {
		uint64_t took_ns;
		bool in_turns;
	} offers[] = {{YIELD_TURN_NS - 1, true}, {YIELD_TURN_NS, false},
		{YIELD_TAKEN_NS + 1, true}, {YIELD_TAKEN_NS, false},
		{2 * YIELD_TAKEN_NS, true}, {TAKEN_NS, false}};
	static const char *const cores[] = {NULL, "short", "plenty"};
	struct idle_polls p;

	for (unsigned i = 0; i < RTE_DIM(cores); i++) {
		assert_true(idle_polls_init(&p, cores[i]));
		assert_false(idle_polls_in_turns(&p));
		for (unsigned k = 0; k < RTE_DIM(offers); k++) {
			(void)idle_polls_offered(&p, offers[k].took_ns);
			assert_int_equal(idle_polls_in_turns(&p), offers[k].in_turns);
		}
	}
}
