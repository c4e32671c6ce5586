/* SPDX-License-Identifier: BSD-3-Clause */
/* When the progress thread polls before it sleeps, and when it offers its core. */
#include <stdint.h>

#include "case.h"
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

TEST(polls_after_short_sleeps)
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

TEST(long_sleep_begins_the_count_anew)
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

TEST(core_is_offered_more_often_where_it_is_shared)
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

TEST(short_cores_end_it_for_a_while)
{
	struct busy_poll b;

	begin(&b);
	assert_false(busy_poll_offered(&b, now, BUSY_POLL_SLICE_NS));
	now += BUSY_POLL_SLICE_NS + BUSY_POLL_SHORT_NS - 1;
	busy_poll_moved(&b, now);
	assert_false(busy_poll_goes_on(&b, now));
	assert_true(busy_poll_goes_on(&b, now + 1));
}
