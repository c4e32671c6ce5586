/* SPDX-License-Identifier: BSD-3-Clause */
#include "case.h"

#include "base/core_taken.h"

#define SHORTEST (5 * NS_PER_US)
#define SLEEP (CORE_TAKEN_SLEEP * SHORTEST)
#define SLICE (3 * NS_PER_MS)
#define TURN (20 * NS_PER_US)

struct thread {
	struct core_taken core;
	uint64_t now;
};

/* Idle passes, of which each yield takes this long, until the thread sleeps. Returns their number. */
static unsigned
passes_before_sleep(struct thread *t, uint64_t yield_ns, unsigned max)
{
	for (unsigned i = 0; i < max; i++) {
		core_taken_pass(&t->core, t->now);
		if (core_taken_ns(&t->core) != 0)
			return i;
		core_taken_yields(&t->core, t->now);
		t->now += yield_ns;
	}
	return max;
}

/* Idle passes of which each sleeps for this long, until the thread yields. Returns their number. */
static unsigned
sleeps_before_yield(struct thread *t, uint64_t sleep_ns)
{
	unsigned n;

	for (n = 0; core_taken_pass(&t->core, t->now), core_taken_ns(&t->core) != 0;
		n++) {
		assert_int_equal(core_taken_ns(&t->core), sleep_ns);
		core_taken_slept(&t->core);
		t->now += sleep_ns + SHORTEST;
	}
	core_taken_yields(&t->core, t->now);
	return n;
}

TEST(core_of_its_own_or_in_turns)
{
	struct thread t = {.now = 1, .core = {.slept = 0}};

	core_taken_init(&t.core, SHORTEST);
	assert_int_equal(passes_before_sleep(&t, NS_PER_US, 1000), 1000);
	assert_int_equal(passes_before_sleep(&t, TURN, 1000), 1000);
	assert_int_equal(t.core.slept, 0);
}

/* Yields for this time, each of which returns at once. */
static void
turn_take(struct thread *t, uint64_t ns)
{
	unsigned passes = (unsigned)(ns / NS_PER_US);

	assert_int_equal(passes_before_sleep(t, NS_PER_US, passes), passes);
}

TEST(one_long_yield_is_the_machine)
{
	struct thread t = {.now = 1, .core = {.slept = 0}};

	core_taken_init(&t.core, SHORTEST);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(passes_before_sleep(&t, SLICE, 1), 1);
		turn_take(&t, (CORE_TAKEN_NEAR + 1) * SLICE);
	}
	assert_int_equal(t.core.slept, 0);
}

/* After a time slice of the other the thread has a turn. */
TEST(long_yields_are_near_each_other_with_a_turn_between)
{
	struct thread t = {.now = 1, .core = {.slept = 0}};

	core_taken_init(&t.core, SHORTEST);
	for (unsigned i = 0; i < CORE_TAKEN_ROW; i++) {
		turn_take(&t, SLICE);
		assert_int_equal(passes_before_sleep(&t, SLICE, 1), 1);
	}
	assert_int_equal(passes_before_sleep(&t, SLICE, 1), 0);
}

TEST(a_taken_core_is_slept_for)
{
	struct thread t = {.now = 1, .core = {.slept = 0}};
	unsigned sleeps = CORE_TAKEN_SLEEPS_MIN;

	core_taken_init(&t.core, SHORTEST);
	assert_int_equal(passes_before_sleep(&t, SLICE, 100), CORE_TAKEN_ROW);
	assert_int_equal(sleeps_before_yield(&t, SLEEP), sleeps);
	/* The core is still taken, which one long yield behind a turn shows: twice as many sleeps, up to a
	 * limit. */
	for (unsigned i = 0; i < 6; i++) {
		t.now += NS_PER_US;
		turn_take(&t, SLICE);
		assert_int_equal(passes_before_sleep(&t, SLICE, 1), 1);
		sleeps = RTE_MIN(2 * sleeps, (unsigned)CORE_TAKEN_SLEEPS_MAX);
		assert_int_equal(sleeps_before_yield(&t, SLEEP), sleeps);
	}
	/* It is free again: the thread polls on, and the next time begins anew. */
	t.now += NS_PER_US;
	turn_take(&t, (CORE_TAKEN_NEAR + 1) * SLICE);
	assert_int_equal(passes_before_sleep(&t, SLICE, 100), CORE_TAKEN_ROW);
	assert_int_equal(sleeps_before_yield(&t, SLEEP), CORE_TAKEN_SLEEPS_MIN);
}

TEST(the_limit_is_the_sleep_that_was_measured)
{
	struct thread t = {.now = 1, .core = {.slept = 0}};

	core_taken_init(&t.core, SHORTEST);
	assert_int_equal(
		passes_before_sleep(&t, CORE_TAKEN_LONG * SHORTEST - 1, 1000), 1000);
	/* A machine on which a sleep takes longer than a time slice. */
	core_taken_init(&t.core, SLICE);
	assert_int_equal(passes_before_sleep(&t, SLICE, 1000), 1000);
	/* Turned off. */
	core_taken_init(&t.core, 0);
	assert_int_equal(passes_before_sleep(&t, SLICE, 1000), 1000);
}
