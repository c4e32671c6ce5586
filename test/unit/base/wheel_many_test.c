/* SPDX-License-Identifier: BSD-3-Clause */
/* A timing wheel with many timers, advanced in steps. */
#include <string.h>

#include "base/wheel.h"

#include "case.h"

#define MANY 65536

struct many {
	struct wheel wheel;
	struct wheel_timer timers[MANY];
	uint64_t when_ns[MANY];
	uint8_t levels[MANY];
	uint64_t last_ns;
};

static void
many_fire(struct wheel_timer *timer, uint64_t now_ns, void *arg)
{
	struct many *many = arg;
	uint64_t when_ns = many->when_ns[timer - many->timers] >> WHEEL_TICK_SHIFT;

	(void)now_ns;
	assert_true(when_ns >= many->last_ns);
	many->last_ns = when_ns;
}

/* Timers that were set at once, and are due at once, as those of many peers: a call moves and fires
 * few of them. */
TEST(each_step_is_bounded)
{
	static const struct wheel_budget budget = {1000, 100};
	static struct many many;
	const uint64_t end = 40 * NS_PER_SEC;
	unsigned calls = 0, left = MANY;

	wheel_init(&many.wheel, NS_PER_SEC);
	for (unsigned i = 0; i < MANY; i++) {
		many.when_ns[i] = 31 * NS_PER_SEC + i * (uint64_t)1000;
		wheel_timer_init(&many.timers[i]);
		wheel_set(&many.wheel, &many.timers[i], many.when_ns[i]);
		many.levels[i] = many.timers[i].level;
	}
	for (; wheel_next(&many.wheel) <= end; calls++) {
		unsigned fired =
			wheel_advance_some(&many.wheel, end, &budget, many_fire, &many);
		unsigned changed = 0;

		assert_in_range(fired, 0, budget.fires);
		for (unsigned i = 0; i < MANY; i++)
			changed += many.timers[i].level != many.levels[i];
		assert_in_range(changed, 0, budget.moves + budget.fires);
		for (unsigned i = 0; i < MANY; i++)
			many.levels[i] = many.timers[i].level;
		left -= fired;
	}
	assert_int_equal(left, 0);
	assert_int_equal(many.wheel.count, 0);
	assert_in_range(calls, MANY / budget.fires,
		MANY / budget.fires + MANY * WHEEL_LEVELS / budget.moves);
}
