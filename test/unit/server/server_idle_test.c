/* SPDX-License-Identifier: BSD-3-Clause */
/* For how long a thread of the daemon sleeps, whose core is free or taken. */
#include "server_fixture.h"

#include "engine/clock.h"
#include "server/server_idle.h"

#define SHORTEST (5 * NS_PER_US)
#define TAKEN_NS (CORE_TAKEN_SLEEP * SHORTEST)

static void
core_take(struct core_taken *core)
{
	core_taken_init(core, SHORTEST);
	for (unsigned i = 0; i < CORE_TAKEN_ROW; i++)
		core_taken_yielded(core, NS_PER_SEC, (i + 1) * NS_PER_SEC);
	assert_int_equal(core_taken_ns(core), TAKEN_NS);
}

TEST(sleeps_of_a_free_core)
{
	struct core_taken core = {.slept = 0};

	core_taken_init(&core, SHORTEST);
	assert_int_equal(idle_sleep_most(&core, 0, NS_PER_SEC), 0); /* it polls */
	assert_int_equal(idle_sleep_most(&core, NS_PER_MS, SPIN_NS - 1), 0);
	assert_int_equal(idle_sleep_most(&core, NS_PER_MS, SPIN_NS), SPIN_NS);
	assert_int_equal(idle_sleep_most(&core, NS_PER_MS, NS_PER_SEC), NS_PER_MS);
}

TEST(sleeps_of_a_taken_core)
{
	struct core_taken core = {.slept = 0};

	core_take(&core);
	assert_int_equal(idle_sleep_most(&core, 0, 0), TAKEN_NS);
	assert_int_equal(idle_sleep_most(&core, NS_PER_MS, 0), TAKEN_NS);
	/* Not longer than the user says. */
	assert_int_equal(idle_sleep_most(&core, TAKEN_NS / 2, 0), TAKEN_NS / 2);
}

TEST(a_thread_sleeps_where_it_would_yield)
{
	struct core_taken cores[SW_THREADS_MAX] = {{.slept = 0}};

	clock_init();
	core_taken_init(&cores[1], SHORTEST);
	idle_leave(&cores[1]);
	assert_int_equal(idle_slept(cores), 0);
	assert_int_not_equal(cores[1].yielded_ns, 0);

	core_take(&cores[1]);
	idle_leave(&cores[1]);
	assert_int_equal(idle_slept(cores), 1);
	assert_int_equal(cores[1].left, CORE_TAKEN_SLEEPS_MIN - 1);
	assert_int_equal(cores[1].yielded_ns, 0);
}
