/* SPDX-License-Identifier: BSD-3-Clause */
/* Wall clock times of completions (lib/engine/wall_time.h): one value each, in the order of the queue. */
#include <stdint.h>

#include "case.h"
#include "engine/wall_time.h"

#define WALL (1000 * NS_PER_SEC)

static uint64_t
read_at(struct wall_time *w, uint64_t stamp, uint64_t now, uint64_t wall)
{
	if (wall_time_is_due(w, stamp))
		wall_time_read(w, now, wall);
	return wall_time_of(w, stamp);
}

TEST(difference_is_read_for_later_stamps)
{
	struct wall_time w = {0};

	assert_int_equal(read_at(&w, 50, 100, WALL + 100), WALL + 50);
	/* Both happened before the clocks were read. */
	assert_int_equal(read_at(&w, 100, 200, WALL + 900), WALL + 100);
	assert_int_equal(read_at(&w, 101, 200, WALL + 900), WALL + 801);
	assert_int_equal(read_at(&w, 101, 300, 0), WALL + 801);
}

/* A pause between the readings of the two clocks, or a clock that is too fast. */
TEST(times_do_not_fall)
{
	struct wall_time w = {0};

	assert_int_equal(read_at(&w, 50, 100, WALL + 5000), WALL + 4950);
	assert_int_equal(read_at(&w, 150, 200, WALL + 200), WALL + 4950);
	assert_int_equal(read_at(&w, 5000, 5000, WALL + 5000), WALL + 5000);
	/* stamps of two engines */
	assert_int_equal(read_at(&w, 4990, 6000, 0), WALL + 5000);
}

TEST(clock_that_was_set_back_counts)
{
	struct wall_time w = {0};

	assert_int_equal(read_at(&w, 50, 100, WALL + 100), WALL + 50);
	assert_int_equal(read_at(&w, 150, 200, WALL + 200 - WALL_SET_BACK_NS), WALL + 50);
	assert_int_equal(
		read_at(&w, 250, 300, WALL + 300 - NS_PER_SEC), WALL + 250 - NS_PER_SEC);
}
