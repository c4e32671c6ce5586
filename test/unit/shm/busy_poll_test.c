/* SPDX-License-Identifier: BSD-3-Clause */
/* When the progress thread polls before it sleeps, and when it offers its core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shm/busy_poll.h"

static uint64_t now;

/* A packet ends a sleep of this length. */
static void
slept(struct busy_poll *b, uint64_t ns)
{
	busy_poll_sleeps(b, now);
	now += ns;
	busy_poll_moved(b, now);
}

static void
short_sleeps(struct busy_poll *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		slept(b, BUSY_POLL_SOON - 1);
}

static void
begin(struct busy_poll *b)
{
	*b = (struct busy_poll){0};
	now = NS_PER_SEC;
	short_sleeps(b, BUSY_POLL_SLEEPS);
}

static void
polls_after_short_sleeps(void **state)
{
	struct busy_poll b = {0};

	now = NS_PER_SEC;
	short_sleeps(&b, BUSY_POLL_SLEEPS - 1);
	assert_false(busy_poll_goes_on(&b, now));
	short_sleeps(&b, 1);
	assert_true(busy_poll_goes_on(&b, now + BUSY_POLL_NS - 1));
	/* Packets keep it going without a sleep. */
	now += BUSY_POLL_NS - 1;
	busy_poll_moved(&b, now);
	assert_true(busy_poll_goes_on(&b, now + BUSY_POLL_NS - 1));
	/* A while in vain. */
	assert_false(busy_poll_goes_on(&b, now + BUSY_POLL_NS));
	assert_false(busy_poll_goes_on(&b, now));
}

static void
long_sleep_begins_the_count_anew(void **state)
{
	struct busy_poll b;

	begin(&b);
	slept(&b, BUSY_POLL_SOON);
	assert_false(busy_poll_goes_on(&b, now));
	short_sleeps(&b, BUSY_POLL_SLEEPS - 1);
	assert_false(busy_poll_goes_on(&b, now));
	/* Several sleeps without a packet are one. */
	busy_poll_sleeps(&b, now);
	now += BUSY_POLL_SOON;
	slept(&b, 1);
	assert_false(busy_poll_goes_on(&b, now));
}

static void
core_is_offered_more_often_where_it_is_shared(void **state)
{
	struct busy_poll b;

	begin(&b);
	assert_false(busy_poll_offers(&b, BUSY_POLL_OFFER - 1));
	assert_true(busy_poll_offers(&b, BUSY_POLL_OFFER));
	assert_true(busy_poll_offered(&b, now, YIELD_TAKEN_NS + 1));
	assert_true(busy_poll_offers(&b, BUSY_POLL_OFFER + 1));
	assert_true(busy_poll_offered(&b, now, BUSY_POLL_SLICE_NS - 1));
	assert_true(busy_poll_goes_on(&b, now));
	assert_true(busy_poll_offered(&b, now, YIELD_TAKEN_NS));
	assert_false(busy_poll_offers(&b, BUSY_POLL_OFFER + 1));
}

static void
short_cores_end_it_for_a_while(void **state)
{
	struct busy_poll b;

	begin(&b);
	assert_false(busy_poll_offered(&b, now, BUSY_POLL_SLICE_NS));
	now += BUSY_POLL_SLICE_NS + BUSY_POLL_SHORT_NS - 1;
	busy_poll_moved(&b, now);
	assert_false(busy_poll_goes_on(&b, now));
	assert_true(busy_poll_goes_on(&b, now + 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_after_short_sleeps),
		cmocka_unit_test(long_sleep_begins_the_count_anew),
		cmocka_unit_test(core_is_offered_more_often_where_it_is_shared),
		cmocka_unit_test(short_cores_end_it_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
