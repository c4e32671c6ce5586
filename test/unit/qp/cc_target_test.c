/* SPDX-License-Identifier: BSD-3-Clause */
/* The delay target of congestion control (docs/protocol.md 17.2): when its level rises and
 * falls. */
#include "cc_fixture.h"

static void
idle_round_trips_ns(unsigned n, uint32_t ns)
{
	struct cc_sample s = {.delay_ns = ns, .srtt_ns = ns, .packets = 1, .idle = true};

	for (unsigned i = 0; i < n; i++) {
		now += ns;
		cc_sample(&cc, &s, now);
	}
}

static void
idle_round_trips(unsigned n, uint32_t us)
{
	idle_round_trips_ns(n, us * US);
}

/* The level leaves 12.5 us to a round trip of an idle network. */
static void
level_follows_idle_samples(void **state)
{
	static const struct {
		uint32_t us, level;
	} rows[] = {{9, 0}, {12, 0}, {13, 1}, {22, 1}, {23, 2}, {37, 2}, {38, 3}, {58, 3},
		{59, 4}, {87, 4}, {88, 5}, {128, 5}, {129, 6}, {187, 6}, {188, 7},
		{780, 10}, {900, 10}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		init(&(struct cc_conf){.on = true});
		idle_round_trips(CC_IDLE_SAMPLES - 1, rows[i].us);
		assert_int_equal(cc.level, 0);
		idle_round_trips(1, rows[i].us);
		assert_int_equal(cc.level, rows[i].level);
		assert_int_equal(cc_window(&cc), CC_WINDOW);
	}
}

/* A few samples may have met a queue. One of less than 12.5 us shows that the path is
 * short. */
static void
few_idle_samples_are_not_believed(void **state)
{
	for (unsigned high = 0; high <= CC_IDLE_SAMPLES; high++) {
		init(&(struct cc_conf){.on = true});
		idle_round_trips(high, 20);
		idle_round_trips_ns(CC_IDLE_SAMPLES - high, 12500);
		assert_int_equal(cc.level, high >= CC_IDLE_AGREE);
	}
	init(&(struct cc_conf){.on = true});
	for (unsigned i = 0; i < 10; i++) {
		idle_round_trips(CC_IDLE_SAMPLES - 1, 20);
		idle_round_trips_ns(1, 12499);
	}
	assert_int_equal(cc.level, 0);
}

/* A window that was cut lets so little out that its samples look idle. */
static void
small_window_gives_no_idle_samples(void **state)
{
	window_set(CC_WINDOW - 0.1);
	idle_round_trips(CC_IDLE_SAMPLES, 40);
	assert_int_equal(cc.level, 0);
	window_set(CC_WINDOW);
	idle_round_trips(CC_IDLE_SAMPLES, 40);
	assert_int_equal(cc.level, 3);
}

static void
level_falls_after_a_second(void **state)
{
	cc.level = 1;
	cc.level_at = now;
	idle_round_trips(10 * CC_IDLE_SAMPLES, 12);
	assert_int_equal(cc.level, 1);
	now += CC_LEVEL_NS;
	cc_sent(&cc, now);
	idle_round_trips(10 * CC_IDLE_SAMPLES, 13);
	assert_int_equal(cc.level, 1);
	idle_round_trips(CC_IDLE_SAMPLES, 12);
	assert_int_equal(cc.level, 0);
	/* The same under load. */
	cc.level = 2;
	cc.level_at = now;
	window_set(100);
	round_trips(10 * CC_WATCH, 20);
	assert_int_equal(cc.level, 2);
	now += CC_LEVEL_NS;
	round_trips(2 * CC_WATCH, 20);
	assert_int_equal(cc.level, 1);
	now += CC_LEVEL_NS;
	round_trips(10 * CC_WATCH, 20);
	assert_int_equal(cc.level, 1);
}

/* A path of 60 us: the window falls to little, until a climb shows that more packets do
 * not add to the delay. */
static void
climb_finds_a_long_path(void **state)
{
	unsigned i = 0;

	for (; cc.level == 0 && i < 100; i++)
		round_trip_ns(60 * US + (i * 7919 % 3000));
	assert_in_range(i, CC_WATCH, 2 * CC_WATCH + 10);
	assert_int_equal(cc.level, 4);
	round_trips(100, 62);
	assert_true(cc.cwnd >= 150 * CC_ONE);
}

/* A window of 8 packets and more is not so small that it needs one. */
static void
no_climb_from_a_usable_window(void **state)
{
	for (unsigned i = 0; i < 100; i++) {
		window_set(9);
		round_trip(40);
		assert_false(cc.climbing);
	}
}

/* Behind a full link each packet adds to the delay: here a third of a microsecond. The
 * climb ends before it does harm, and the next one comes later. */
static void
climb_ends_at_a_full_link(void **state)
{
	uint32_t most = 0;
	unsigned climbs = 0;
	bool climbing = false;

	window_set(3);
	for (unsigned i = 0; i < 500; i++) {
		round_trip_ns(40 * US + (cc.cwnd - 3 * (int)CC_ONE) / 256 * 332);
		most = RTE_MAX(most, cc.cwnd);
		climbs += cc.climbing && !climbing;
		climbing = cc.climbing;
	}
	assert_int_equal(cc.level, 0);
	assert_true(most <= 40 * CC_ONE);
	assert_in_range(climbs, 3, 5); /* after 16, 32, 64, 128, 256 round trips */
}

static void
losses_end_a_climb(void **state)
{
	window_set(3);
	while (!cc.climbing)
		round_trip(40);
	round_trips(3, 40);
	assert_true(cc.cwnd > 12 * CC_ONE);
	assert_int_equal(cc_loss(&cc, 40 * US, now), CC_CUT_NONE); /* by chance */
	assert_true(cc.climbing);
	now += 40 * US;
	for (unsigned i = 0; i < 20 && cc.climbing; i++)
		(void)cc_loss(&cc, 40 * US, now);
	assert_false(cc.climbing);
	assert_true(cc.cwnd < 4 * CC_ONE);
	assert_int_equal(cc.level, 0);
}

/* Where packets are lost the queue is real. */
static void
no_climb_after_a_loss(void **state)
{
	window_set(3);
	for (unsigned i = 0; i < 100; i++) {
		(void)cc_loss(&cc, 40 * US, now);
		window_set(3);
		round_trip(40);
		assert_false(cc.climbing);
	}
}

/* The turns of the peer's host take up to 60 us: delays of 9 to 69 us, which no queue
 * explains. */
static void
unsteady_delays_raise_the_level(void **state)
{
	for (unsigned lossy = 0; lossy < 2; lossy++) {
		init(&(struct cc_conf){.on = true});
		window_set(30);
		for (unsigned i = 0; i < 3 * CC_WATCH; i++) {
			if (lossy)
				(void)cc_loss(&cc, 40 * US, now);
			round_trip(9 + i * 37 % 61);
		}
		assert_true(lossy ? cc.level == 0 : cc.level >= 2);
	}
	/* A queue that lasts does not differ so much. */
	init(&(struct cc_conf){.on = true});
	window_set(30);
	for (unsigned i = 0; i < 10 * CC_WATCH; i++) {
		cc.climbing = false;
		round_trip(25 + i * 7 % 20);
	}
	assert_int_equal(cc.level, 0);
}

/* Hosts so slow that round trips take 300 us whatever the window is. */
static void
least_window_without_effect_raises_the_level(void **state)
{
	for (unsigned i = 0; cc.level == 0; i++) {
		assert_true(i < 60);
		cc.watch_at = now; /* no climb */
		round_trip(300);
	}
	assert_int_equal(cc.level, 8);
	assert_int_equal(cc_window(&cc), CC_WINDOW);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(level_follows_idle_samples, setup),
		cmocka_unit_test_setup(few_idle_samples_are_not_believed, setup),
		cmocka_unit_test_setup(small_window_gives_no_idle_samples, setup),
		cmocka_unit_test_setup(level_falls_after_a_second, setup),
		cmocka_unit_test_setup(climb_finds_a_long_path, setup),
		cmocka_unit_test_setup(climb_ends_at_a_full_link, setup),
		cmocka_unit_test_setup(losses_end_a_climb, setup),
		cmocka_unit_test_setup(no_climb_after_a_loss, setup),
		cmocka_unit_test_setup(no_climb_from_a_usable_window, setup),
		cmocka_unit_test_setup(unsteady_delays_raise_the_level, setup),
		cmocka_unit_test_setup(
			least_window_without_effect_raises_the_level, setup),
	};

	return cmocka_run_group_tests_name("qp cc_target", tests, NULL, NULL);
}
