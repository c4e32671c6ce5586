/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rate.h"

#include <cmocka.h>

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

static void
burst_then_one_per_interval(void **state)
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
static void
idle_time_fills_the_burst(void **state)
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

static void
burst_of_one(void **state)
{
	struct rate rate;

	rate_init(&rate, INTERVAL, 1);
	assert_int_equal(take_all(&rate, 0), 1);
	assert_int_equal(rate_ready_ns(&rate), INTERVAL);
	/* later than allowed: the next one counts from here */
	assert_int_equal(take_all(&rate, INTERVAL + 7), 1);
	assert_int_equal(rate_ready_ns(&rate), 2 * INTERVAL + 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(burst_then_one_per_interval),
		cmocka_unit_test(idle_time_fills_the_burst),
		cmocka_unit_test(burst_of_one),
	};

	return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
