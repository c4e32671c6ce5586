/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include "base/rate.h"
#include "case.h"

#define INTERVAL 100
#define BURST 8

/* Takes as many as there may be at this time. */
static unsigned
take_all(struct rate *rate, uint64_t now)
{
	unsigned n = 0;

	for (; rate_ready_ns(rate) <= now; n++)
		rate_take(rate, now);
	return n;
}

TEST(burst_then_one_per_interval)
{
	struct rate rate;

	rate_init(&rate, INTERVAL, BURST);
	assert_int_equal(take_all(&rate, 5000), BURST);
	for (uint64_t now = 5000; now < 5000 + 50 * INTERVAL; now += INTERVAL) {
		assert_int_equal(rate_ready_ns(&rate), now + INTERVAL);
		assert_int_equal(take_all(&rate, now + INTERVAL - 1), 0);
		assert_int_equal(take_all(&rate, now + INTERVAL), 1);
	}
}

/* Time that was not used fills the burst again, and no more. */
TEST(idle_time_fills_the_burst)
{
	struct rate rate;
	uint64_t now = 1;

	rate_init(&rate, INTERVAL, BURST);
	assert_int_equal(take_all(&rate, now), BURST);
	for (unsigned idle = 1; idle < 2 * BURST; idle++) {
		now += idle * INTERVAL;
		assert_int_equal(take_all(&rate, now), idle < BURST ? idle : BURST);
	}
	assert_int_equal(take_all(&rate, now + 1000000 * INTERVAL), BURST);
}

TEST(burst_of_one)
{
	struct rate rate;

	rate_init(&rate, INTERVAL, 1);
	assert_int_equal(take_all(&rate, 0), 1);
	assert_int_equal(rate_ready_ns(&rate), INTERVAL);
	/* later than allowed: the next one counts from here */
	assert_int_equal(take_all(&rate, INTERVAL + 7), 1);
	assert_int_equal(rate_ready_ns(&rate), 2 * INTERVAL + 7);
}
