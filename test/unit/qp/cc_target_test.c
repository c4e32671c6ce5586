/* SPDX-License-Identifier: BSD-3-Clause */
/* The delay target of congestion control (docs/protocol.md 17.2): when its level rises and
 * falls. */
#include "cc_fixture.h"

static void
idle_round_trips_ns(unsigned n, uint32_t ns)
{
	struct cc_sample s = {.delay_ns = ns, .rtt_ns = ns, .packets = 1, .idle = true};

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
TEST_WITH(level_follows_idle_samples, setup, NULL)
{
	static const struct {
		uint32_t us, level;
	} rows[] = {{9, 0}, {12, 0}, {13, 1}, {22, 1}, {23, 2}, {37, 2}, {38, 3}, {58, 3},
		{59, 4}, {87, 4}, {88, 5}, {128, 5}, {129, 6}, {187, 6}, {188, 7},
		{780, 10}, {900, 11}};

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
TEST_WITH(few_idle_samples_are_not_believed, setup, NULL)
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
TEST_WITH(small_window_gives_no_idle_samples, setup, NULL)
{
	window_set(CC_WINDOW - 0.1);
	idle_round_trips(CC_IDLE_SAMPLES, 40);
	assert_int_equal(cc.level, 0);
	window_set(CC_WINDOW);
	idle_round_trips(CC_IDLE_SAMPLES, 40);
	assert_int_equal(cc.level, 3);
}

TEST_WITH(level_falls_after_a_second, setup, NULL)
{
	cc.level = 1;
	cc.level_at = now;
	idle_round_trips(10 * CC_IDLE_SAMPLES, 12);
	assert_int_equal(cc.level, 1);
	now += CC_LEVEL_NS;
	packet_sent();
	idle_round_trips(10 * CC_IDLE_SAMPLES, 13);
	assert_int_equal(cc.level, 1);
	idle_round_trips(CC_IDLE_SAMPLES, 12);
	assert_int_equal(cc.level, 0);
	/* The same under load. */
	cc.level = 2;
	cc.level_at = now;
	cc.path_ns = 20 * US;
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
TEST_WITH(climb_finds_a_long_path, setup, NULL)
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
TEST_WITH(no_climb_from_a_usable_window, setup, NULL)
{
	for (unsigned i = 0; i < 100; i++) {
		window_set(9);
		round_trip(40);
		assert_false(cc.climbing);
	}
}

/* Behind a full link each packet adds to the delay: here a third of a microsecond. The
 * climb ends before it does harm, and the next one comes later. */
TEST_WITH(climb_ends_at_a_full_link, setup, NULL)
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
	assert_true(most <= 56 * CC_ONE);
	assert_in_range(climbs, 3, 5); /* after 16, 32, 64, 128, 256 round trips */
}

/* A path of 25 Gb/s and 60 us holds 45 packets of 4 KiB: the climb fills it, and only then
 * does the delay grow, all at once. */
TEST_WITH(climb_fills_a_long_path, setup, NULL)
{
	unsigned i = 0;

	for (; cc.level == 0 && i < 100; i++) {
		uint32_t packets = cc.cwnd / CC_ONE;

		round_trip_ns(60 * US + (packets > 45 ? (packets - 45) * 1310 : 0));
	}
	assert_in_range(i, CC_WATCH, 2 * CC_WATCH + 10);
	assert_int_equal(cc.level, 4);
	assert_true(cc.cwnd > 45 * CC_ONE);
}

/* The same growth with a small window is that of a full link. */
TEST_WITH(small_window_fills_no_path, setup, NULL)
{
	bool climbed = false;

	window_set(3);
	for (unsigned i = 0; i < 100; i++) {
		uint32_t packets = cc.cwnd / CC_ONE;

		round_trip_ns(60 * US + (packets > 8 ? (packets - 8) * 1310 : 0));
		climbed |= cc.climbing;
	}
	assert_true(climbed);
	assert_int_equal(cc.level, 0);
}

/* A delay that falls was that of a queue, not of a long path. */
TEST_WITH(climb_ends_when_the_delay_falls, setup, NULL)
{
	for (uint32_t less = 8; less <= 10; less += 2) {
		init(&(struct cc_conf){.on = true});
		window_set(3);
		while (!cc.climbing)
			round_trip(60);
		round_trip(60 - less);
		assert_int_equal(cc.climbing, less == 8);
	}
}

/* Samples right after a loss do not count, not even as the last one of a climb. */
TEST_WITH(climb_does_not_end_after_a_loss, setup, NULL)
{
	window_set(3);
	while (!cc.climbing)
		round_trip(60);
	while (cc.cwnd < CC_CLIMB_TOP)
		round_trip(60);
	(void)cc_loss(&cc, now);
	now += 3 * 60 * US;
	round_trips(CC_CLIMB_SKIP, 100);
	assert_true(cc.climbing);
	round_trip(70);
	assert_false(cc.climbing);
	assert_int_equal(cc.level, 4);
}

/* Senders that began together, and whose climbs failed, do not climb together again. */
TEST_WITH(climbs_are_apart, setup, NULL)
{
	enum { SENDERS = 4, WATCHES = 200 };
	unsigned climbs = 0, together = 0;
	uint64_t begun[SENDERS][WATCHES];
	unsigned count[SENDERS] = {0};

	for (unsigned n = 0; n < SENDERS; n++) {
		bool climbing = false;

		init(&(struct cc_conf){.on = true});
		now += n * 777;
		window_set(3);
		cc.climb_shift = 1;
		for (unsigned i = 0; i < WATCHES * CC_WATCH; i++) {
			cc.climb_shift = 1; /* the wait does not grow in this test */
			round_trip_ns(40 * US + (cc.climbing ? 10 * US : 0));
			if (cc.climbing && !climbing)
				begun[n][count[n]++] = i;
			climbing = cc.climbing;
		}
		climbs += count[n];
	}
	for (unsigned a = 0; a < count[0]; a++)
		for (unsigned n = 1; n < SENDERS; n++)
			for (unsigned b = 0; b < count[n]; b++)
				together +=
					begun[0][a] / CC_WATCH == begun[n][b] / CC_WATCH;
	/* Each of them begins one in 8 to 16 watches. */
	assert_in_range(climbs, SENDERS * WATCHES / 24, SENDERS * WATCHES / 6);
	assert_true(together < climbs / 2);
}

TEST_WITH(losses_end_a_climb, setup, NULL)
{
	window_set(3);
	while (!cc.climbing)
		round_trip(40);
	round_trips(3, 40);
	assert_true(cc.cwnd > 12 * CC_ONE);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE); /* by chance */
	assert_true(cc.climbing);
	now += 40 * US;
	for (unsigned i = 0; i < 20 && cc.climbing; i++)
		(void)cc_loss(&cc, now);
	assert_false(cc.climbing);
	assert_true(cc.cwnd < 4 * CC_ONE);
	assert_int_equal(cc.level, 0);
}

/* Where packets are lost the queue is real. */
TEST_WITH(no_climb_after_a_loss, setup, NULL)
{
	window_set(3);
	for (unsigned i = 0; i < 100; i++) {
		(void)cc_loss(&cc, now);
		window_set(3);
		round_trip(40);
		assert_false(cc.climbing);
	}
}

/* Where more than 2 % are lost the level was too high. */
TEST_WITH(losses_lower_the_level, setup, NULL)
{
	cc.level = 3;
	cc.level_at = now;
	round_trip(40);
	for (unsigned i = 0; i < 20; i++)
		(void)cc_loss(&cc, now);
	assert_int_equal(cc.level, 3);
	now += (uint64_t)CC_WATCH * 40 * US;
	(void)cc_loss(&cc, now);
	assert_int_equal(cc.level, 2);
	(void)cc_loss(&cc, now);
	assert_int_equal(cc.level, 2);
}

/* A sender that has no more than 16 packets to send at once does not reach the top. */
TEST_WITH(climb_of_a_sender_with_little, setup, NULL)
{
	for (unsigned i = 0; cc.level == 0; i++) {
		struct cc_sample s = {.delay_ns = 60 * US,
			.rtt_ns = 60 * US,
			.packets = RTE_MIN(cc_window(&cc), 16u)};

		assert_true(i < 3 * CC_WATCH);
		now += 60 * US;
		cc_sample(&cc, &s, now);
	}
	assert_int_equal(cc.level, 4);
}

/* A first window that is larger than the top of a climb. */
TEST_WITH(climb_with_a_large_first_window, setup, NULL)
{
	init(&(struct cc_conf){.on = true, .window = 200});
	for (unsigned i = 0; cc.level == 0; i++) {
		assert_true(i < 3 * CC_WATCH);
		round_trip(60);
	}
	window_set(100);
	cc.level = 0;
	for (unsigned i = 0; i < 10 * CC_WATCH; i++) {
		window_set(100);
		round_trip(60);
		assert_false(cc.climbing);
	}
}

/* Failed climbs of a time before a pause do not count. */
TEST_WITH(pause_forgets_failed_climbs, setup, NULL)
{
	unsigned i = 0;

	cc.climb_shift = CC_CLIMB_MAX_SHIFT;
	now += CC_IDLE_NS + 1;
	packet_sent();
	for (; !cc.climbing; i++) {
		assert_true(i < 2 * CC_WATCH);
		round_trip(60);
	}
}

/* A delay that stays far above the level may be that of a full queue: the level stays, and the
 * window is cut. */
TEST_WITH(full_queue_does_not_raise_the_level, setup, NULL)
{
	static const uint32_t queues_us[] = {130, 300, 800, 3000};

	for (unsigned i = 0; i < RTE_DIM(queues_us); i++) {
		setup(state);
		for (unsigned n = 0; n < 100; n++) {
			cc.watch_at = now; /* no climb */
			round_trip(queues_us[i]);
			assert_int_equal(cc.level, 0);
			assert_false(n > 8 && cc.slow_start);
		}
		assert_true(cc.cwnd <= 4 * CC_ONE);
	}
}

/* Raises the level for idle samples of 40 us, and lets round trips pass until the check
 * begins. */
static void
check_begin(void)
{
	idle_round_trips(CC_IDLE_SAMPLES, 40);
	assert_int_equal(cc.level, 3);
	for (unsigned i = 0; !cc.checking; i++) {
		assert_true(i <= CC_CHECK + 1);
		window_set(60);
		round_trip(50);
	}
	assert_int_equal(cc_window(&cc), 1);
}

/* A level that rose is checked once: the window is a packet for two round trips. If the
 * delay is less then, by more than a quarter, the level was that of a queue. */
TEST_WITH(level_is_checked_after_a_rise, setup, NULL)
{
	static const struct {
		uint32_t us, level;
	} rows[] = {{40, 3}, {31, 3}, {29, 0}, {10, 0}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(state);
		check_begin();
		round_trip(50); /* not an idle one: sent before */
		expect_window(1);
		idle_round_trips(1, 50);
		assert_true(cc.checking);
		idle_round_trips(1, rows[i].us);
		assert_false(cc.checking);
		assert_int_equal(cc.level, rows[i].level);
		expect_window(rows[i].level != 0 ? 60 : 8);
		for (unsigned n = 0; n < 10 * CC_CHECK; n++) {
			window_set(60);
			round_trip(50);
			assert_false(cc.checking);
		}
	}
}

/* A loss ends the check, for resends give no samples. It begins again later. */
TEST_WITH(loss_ends_a_check, setup, NULL)
{
	check_begin();
	(void)cc_loss(&cc, now);
	assert_false(cc.checking);
	expect_window(60);
	assert_true(cc.check_due);
	for (unsigned i = 0; !cc.checking; i++) {
		assert_true(i <= CC_CHECK + 1);
		round_trip(50);
	}
	(void)cc_probe(&cc, 2, now);
	assert_false(cc.checking);
	assert_true(cc_window(&cc) > 8);
}

/* A least round trip that was not seen for 10 ms is measured again. */
TEST_WITH(path_is_measured_again, setup, NULL)
{
	uint64_t start;

	round_trip(BASE_US);
	start = now;
	while (!cc.checking) {
		assert_true(now < start + CC_PATH_NS + NS_PER_MS);
		window_set(60);
		round_trip(16);
	}
	assert_true(now >= start + CC_PATH_NS);
	assert_int_equal(cc.path_ns, BASE_US * US);
	assert_int_equal(cc_window(&cc), 1);
	idle_round_trips(2, 15);
	assert_false(cc.checking);
	assert_int_equal(cc.path_ns, 15 * US);
	assert_int_equal(cc.level, 0);
	assert_true(cc_window(&cc) >= 58);
	/* No further one while it is seen. */
	for (unsigned i = 0; i < 1000; i++) {
		window_set(30);
		round_trip(i % 2 ? 18 : 24);
		assert_false(cc.checking);
	}
}
