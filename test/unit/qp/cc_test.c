/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control of a peer (docs/protocol.md 17.2): how its window follows the delay.
 * cc_loss_test.c has the other signals, cc_target_test.c the delay target. */
#include "cc_fixture.h"

/* ---- Growth ---- */

TEST_WITH(window_doubles_at_first, setup, NULL)
{
	for (unsigned packets = 8; packets < CAP; packets *= 2) {
		assert_int_equal(cc_window(&cc), packets);
		assert_int_equal(round_trip(BASE_US), CC_CUT_NONE);
	}
	round_trip(BASE_US);
	assert_int_equal(cc_window(&cc), CAP);
	assert_int_equal(cc.cwnd, CAP * CC_ONE);
}

/* Until half of the lowest level is left to the target: for 8 packets 25 us and 9.39 us,
 * less 12.5 us. */
TEST_WITH(slow_start_ends_below_the_target, setup, NULL)
{
	round_trip_ns(21880);
	expect_window(16);
	setup(state);
	round_trip_ns(21900);
	expect_window(9);
	round_trip(BASE_US); /* and does not come back */
	expect_window(10);
}

TEST_WITH(growth_is_one_packet_in_a_round_trip, setup, NULL)
{
	struct cc_sample s = {.delay_ns = BASE_US * US, .rtt_ns = BASE_US * US};

	window_set(20);
	round_trips(4, BASE_US);
	expect_window(24);
	/* In parts: each acknowledged packet counts for its part. */
	window_set(20);
	s.packets = 5;
	s.inflight = 15;
	for (unsigned i = 0; i < 4; i++)
		cc_sample(&cc, &s, now);
	expect_window(21 - 0.02);
	/* Below one packet: by each packet. */
	window_set(0.25);
	round_trip(BASE_US);
	expect_window(1.25);
}

/* Also where a packet is less than a part in 256 of it. */
TEST_WITH(large_window_grows, setup, NULL)
{
	struct cc_sample s = {
		.delay_ns = 9 * US, .rtt_ns = 9 * US, .packets = 1, .inflight = CAP};

	window_set(CAP - 1);
	for (unsigned i = 0; i < CAP; i++)
		cc_sample(&cc, &s, now);
	assert_true(cc.cwnd > (CAP - 1) * CC_ONE + CC_ONE / 2);
}

/* What had cut the window is over when 8 round trips leave 12.5 us to the target: then it
 * grows by a quarter in each. */
TEST_WITH(calm_path_makes_the_window_grow_faster, setup, NULL)
{
	window_set(64);
	assert_int_equal(round_trip(80), CC_CUT_DELAY);
	cc.srtt_ns = BASE_US * US;
	window_set(40);
	for (unsigned i = 0; i < CC_CALM - 1; i++)
		round_trip(BASE_US);
	expect_window(40 + CC_CALM - 1);
	round_trip(BASE_US);
	window_set(40);
	round_trip(BASE_US);
	expect_window(50);
	round_trip(20); /* target 29 us, less 12.5 */
	round_trip(BASE_US);
	assert_true(cc.cwnd < 53 * CC_ONE);
}

/* A sender that uses less than half of its window does not widen it. */
TEST_WITH(unused_window_does_not_grow, setup, NULL)
{
	struct cc_sample s = {.delay_ns = BASE_US * US, .rtt_ns = BASE_US * US};

	for (unsigned slow_start = 0; slow_start < 2; slow_start++) {
		window_set(20);
		cc.slow_start = slow_start;
		s.packets = 4;
		s.inflight = 5;
		cc_sample(&cc, &s, now);
		expect_window(20);
		s.inflight = 6;
		cc_sample(&cc, &s, now);
		assert_true(cc.cwnd > 20 * CC_ONE);
	}
}

/* ---- Delay ---- */

/* 25 us, and 32.26 us / sqrt(packets) - 2.02 us, to 7 %. */
TEST_WITH(target_follows_the_window, setup, NULL)
{
	for (double packets = 0.1; packets < 2 * CAP; packets *= 1.01) {
		double scaling = fmax(32260 / sqrt(packets) - 2016, 0);

		window_set(packets);
		assert_in_range(cc_target_ns(&cc), lround(25000 + scaling * 0.97 - 30),
			lround(25000 + scaling * 1.07 + 150));
		cc.level = 4;
		assert_in_range(cc_target_ns(&cc), lround(100000 + scaling * 0.97 - 30),
			lround(100000 + scaling * 1.07 + 150));
		cc.level = 0;
	}
}

/* By 0.8 times the part of the delay above the target, no more than half, and no less than
 * for packets in queues. */
TEST_WITH(delay_cuts_in_proportion, setup, NULL)
{
	static const uint32_t delays_us[] = {26, 28, 30, 40, 50, 67, 70, 100, 799, 6399};

	/* The target for 128 packets is 25.84 us. */
	for (unsigned i = 0; i < sizeof(delays_us) / sizeof(delays_us[0]); i++) {
		double d = delays_us[i];
		double left = 1 - fmin(0.5, fmax(1.0 / 32, 0.8 * (d - 25.84) / d));

		init(&(struct cc_conf){.on = true});
		window_set(128);
		assert_int_equal(round_trip(delays_us[i]), CC_CUT_DELAY);
		assert_in_range(cc.cwnd, lround(128 * 256 * (left - 0.003)),
			lround(128 * 256 * (left + 0.003)));
	}
}

/* 13 packets in queues: 13 / 52 of the window, so a quarter of the delay. */
TEST_WITH(packets_in_queues_shrink_the_window, setup, NULL)
{
	round_trip(BASE_US);
	window_set(52);
	assert_int_equal(round_trip_ns(11990), CC_CUT_NONE);
	expect_window(53);
	window_set(52);
	assert_int_equal(round_trip_ns(12001), CC_CUT_DELAY);
	expect_window(52 - 1.625);
	/* A smaller window has fewer of them: the target decides. */
	window_set(12);
	assert_int_equal(round_trip_ns(24000), CC_CUT_NONE);
	expect_window(13);
}

/* The queue counts in bytes: 13 packets of 4 KiB, so 50 of 1 KiB and 423 of 64 bytes. */
TEST_WITH(short_packets_in_queues_are_few_bytes, setup, NULL)
{
	static const struct {
		uint32_t payload, packets;
	} rows[] = {{4096, 13}, {1024, 50}, {64, 423}, {0, 845}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(state);
		cc.cap = 8192 * CC_ONE;
		round_trip(BASE_US);
		for (unsigned n = 0; n < 100; n++)
			cc_packet(&cc, rows[i].payload);
		/* A quarter of the window is in queues. */
		window_set(4 * rows[i].packets * 0.95);
		assert_int_equal(round_trip_ns(12000), CC_CUT_NONE);
		window_set(4 * rows[i].packets * 1.05);
		assert_int_equal(round_trip_ns(12000), CC_CUT_DELAY);
	}
}

/* Until packets have been measured, they are taken for long ones. No packet counts as longer. */
TEST_WITH(packet_lengths_are_smoothed, setup, NULL)
{
	assert_int_equal(cc.packet, CC_LONGEST);
	cc_packet(&cc, 0);
	assert_int_equal(cc.packet, CC_LONGEST - 512);
	for (unsigned n = 0; n < 100; n++)
		cc_packet(&cc, 1 << 20);
	assert_in_range(cc.packet, CC_LONGEST - 8, CC_LONGEST);
}

/* A sender that has only met a full path assumes no longer one than its level is for. */
TEST_WITH(queue_of_others_is_no_long_path, setup, NULL)
{
	cc.path_ns = 24 * US;
	window_set(52);
	assert_int_equal(round_trip_ns(16660), CC_CUT_NONE);
	window_set(52);
	assert_int_equal(round_trip_ns(16680), CC_CUT_DELAY);
	cc.path_ns = 30 * US;
	cc.level = 1;
	cc.level_at = now;
	window_set(52);
	assert_int_equal(round_trip_ns(30000), CC_CUT_NONE);
}

TEST_WITH(one_cut_in_a_round_trip, setup, NULL)
{
	struct cc_sample s = {
		.delay_ns = 80 * US, .rtt_ns = 40 * US, .packets = 1, .inflight = 127};

	window_set(128);
	assert_int_equal(cc_sample(&cc, &s, now), CC_CUT_DELAY);
	expect_window(64);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(cc_sample(&cc, &s, now + 39999), CC_CUT_NONE);
		assert_int_equal(cc_loss(&cc, now + 39999), CC_CUT_NONE);
		assert_int_equal(cc_cnp(&cc, now + 39999), CC_CUT_NONE);
	}
	expect_window(64);
	assert_int_equal(cc_sample(&cc, &s, now + 40000), CC_CUT_DELAY);
	expect_window(32);
}

/* The product does not overflow with the highest target. */
TEST_WITH(long_delay_cuts_by_half, setup, NULL)
{
	init(&(struct cc_conf){.on = true, .target_us = 1000});
	window_set(128);
	assert_int_equal(round_trip(10000), CC_CUT_DELAY);
	expect_window(64);
}

/* Above the highest level it is no queue, but a host that did not run: the window stays as
 * it is. */
TEST_WITH(delay_above_the_highest_level_is_no_queue, setup, NULL)
{
	window_set(100);
	assert_int_equal(round_trip(6399), CC_CUT_DELAY);
	expect_window(50);
	assert_int_equal(round_trip(6401), CC_CUT_NONE);
	expect_window(50);
	cc.slow_start = true;
	assert_int_equal(round_trip(6401), CC_CUT_NONE);
	expect_window(50);
}

/* A host with slow turns: of four delays the least one counts, so the window is cut only if
 * all of them are long. */
TEST_WITH(unsteady_delays_count_by_the_least_of_four, setup, NULL)
{
	window_set(100);
	cc.unsteady = true;
	for (unsigned low = 0; low < 4; low++) {
		cc.calm_at = now;
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(round_trip(i == low ? 10 : 80), CC_CUT_NONE);
		expect_window(100 + 4 * (low + 1));
	}
	window_set(100);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(round_trip(80), CC_CUT_NONE);
	assert_int_equal(round_trip(60), CC_CUT_DELAY);
	expect_window(55.18); /* by 0.8 * (60 - 26.2) / 60 */
}

/* A turn of 1 to 80 us makes the delays unsteady, a queue does not. */
TEST_WITH(uneven_delays_are_unsteady, setup, NULL)
{
	for (unsigned uneven = 0; uneven < 2; uneven++) {
		init(&(struct cc_conf){.on = true});
		for (unsigned i = 0; i < 3 * CC_WATCH; i++) {
			window_set(30);
			round_trip(uneven ? 9 + i * 37 % 81 : 27 + i * 7 % 20);
		}
		assert_int_equal(cc.unsteady, uneven);
		assert_int_equal(cc.level, 0);
	}
	/* And then a queue again. */
	for (unsigned i = 0; i < 3 * CC_WATCH; i++)
		round_trip(40 + i * 7 % 20);
	assert_false(cc.unsteady);
}

/* A sender that uses less than half of its window did not make the queue. */
TEST_WITH(unused_window_is_not_cut, setup, NULL)
{
	struct cc_sample s = {.delay_ns = 100 * US, .rtt_ns = 80 * US, .packets = 4};

	window_set(20);
	s.inflight = 5;
	assert_int_equal(cc_sample(&cc, &s, now), CC_CUT_NONE);
	expect_window(20);
	s.inflight = 6;
	assert_int_equal(cc_sample(&cc, &s, now), CC_CUT_DELAY);
	expect_window(10);
}

/* ---- Below one packet ---- */

TEST_WITH(least_window_is_a_tenth_of_a_packet, setup, NULL)
{
	struct cc_sample s = {
		.delay_ns = 200 * US, .rtt_ns = 50 * US, .packets = 1, .inflight = CAP};

	for (unsigned i = 0; i < 10; i++) {
		uint32_t before = cc.cwnd;

		now += 50 * US;
		cc_sample(&cc, &s, now);
		assert_true(cc.cwnd <= before);
		assert_int_equal(cc_window(&cc), RTE_MAX(cc.cwnd / 256, 1u));
		assert_int_equal(cc_is_paced(&cc), cc.cwnd < 256);
	}
	expect_window(0.1);
	assert_int_equal(cc_gap_ns(&cc), 50 * US * 256 / cc.cwnd);
	/* Never longer than a millisecond. */
	cc.srtt_ns = 500 * US;
	assert_int_equal(cc_gap_ns(&cc), NS_PER_MS);
	/* A long round trip has at least a packet in a millisecond. */
	cc.watch_at = now;
	cc.srtt_ns = 600 * US;
	round_trip(600);
	expect_window(600 / 1048.6);
}

/* ---- Pauses ---- */

TEST_WITH(pause_restarts, setup, NULL)
{
	round_trips(10, BASE_US);
	window_set(200);
	now += CC_IDLE_NS;
	packet_sent();
	expect_window(200);
	now += CC_IDLE_NS + 1;
	packet_sent();
	expect_window(8);
	round_trip(BASE_US);
	expect_window(16);
	window_set(0.1);
	now += CC_IDLE_NS + 1;
	packet_sent();
	expect_window(8);
}

/* ---- Configuration ---- */

TEST(off_means_no_control)
{
	init(&(struct cc_conf){0});
	assert_false(cc_is_on(&cc));
}

TEST(first_window_is_within_the_cap)
{
	cc_init(&cc, &(struct cc_conf){.on = true, .window = 20}, 4);
	assert_true(cc_is_on(&cc));
	assert_int_equal(cc_window(&cc), 4);
	cc_init(&cc, &(struct cc_conf){.on = true, .window = 20, .target_us = 40}, 400);
	assert_int_equal(cc_window(&cc), 20);
	cc.cwnd = cc.cap;
	assert_int_equal(cc_target_ns(&cc), 40 * US);
	cc_init(&cc, &(struct cc_conf){.on = true}, 1u << 24);
	assert_int_equal(cc_window(&cc), CC_WINDOW);
	assert_int_equal(cc.cap, CC_CAP_MAX * CC_ONE);
	cc_init(&cc, &(struct cc_conf){.on = true, .window = 65535}, UINT32_MAX);
	assert_int_equal(cc_window(&cc), 65535);
}

/* A delay target is only of use with delays. */
TEST(target_makes_delays_count)
{
	struct cc_conf conf = {.on = true, .delay_unknown = true};

	cc_init(&cc, &conf, CAP);
	assert_true(cc.delay_unknown);
	conf.target_us = 40;
	cc_init(&cc, &conf, CAP);
	assert_false(cc.delay_unknown);
}
