/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control of a peer (docs/protocol.md 17.2): losses, probes and CNPs. */
#include "cc_fixture.h"

/* ---- Loss ---- */

/* Acknowledges packets at a low delay, and loses some. Returns the number of cuts. */
static unsigned
lose(unsigned packets, unsigned every)
{
	unsigned cuts = 0;

	for (unsigned i = 1; i <= packets; i++) {
		struct cc_sample s = {
			.delay_ns = BASE_US * US, .rtt_ns = BASE_US * US, .packets = 1};

		now += BASE_US * US;
		cc_sample(&cc, &s, now);
		if (i % every == 0)
			cuts += cc_loss(&cc, now) == CC_CUT_LOSS;
	}
	return cuts;
}

/* Up to 2 % of the last packets are lost by chance: no sign of congestion while the delay
 * is low. */
TEST_WITH(random_loss_is_no_congestion, setup, NULL)
{
	static const struct {
		unsigned every, cuts;
	} rows[] = {{10000, 0}, {1000, 0}, {100, 0}, {60, 0}, {45, 100}, {20, 100}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned cuts;

		init(&(struct cc_conf){.on = true});
		cuts = lose(50000, rows[i].every);
		if (rows[i].cuts == 0)
			assert_int_equal(cuts, 0);
		else
			assert_true(cuts > rows[i].cuts);
	}
	init(&(struct cc_conf){.on = true, .loss = 100});
	assert_int_equal(lose(50000, 12), 0);
}

/* Losses of long ago do not count. */
TEST_WITH(losses_are_forgotten, setup, NULL)
{
	(void)lose(10000, 20);
	(void)lose(40000, 1000000);
	assert_int_equal(lose(10000, 100), 0);
}

TEST_WITH(loss_with_a_high_delay_cuts, setup, NULL)
{
	window_set(20);
	round_trip_ns(24999);
	now += 25 * US;
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	assert_true(cc.cwnd > 20 * CC_ONE);
	window_set(20);
	round_trip_ns(25000);
	window_set(100);
	now += 25 * US;
	assert_int_equal(cc_loss(&cc, now), CC_CUT_LOSS);
	expect_window(50);
}

/* ---- Loss, delays unknown ---- */

static int
unknown_setup(void **state)
{
	(void)state;
	init(&(struct cc_conf){.on = true, .delay_unknown = true});
	return 0;
}

/* A round trip, in which the whole window was used. */
static void
trip(uint32_t us)
{
	struct cc_sample s = {.rtt_ns = us * US, .packets = cc_window(&cc)};

	now += us * US;
	cc_sample(&cc, &s, now);
}

/* Round trips are long, and 1 % is chance all the same: the link is memory of this host. */
TEST(memory_link_loses_by_chance)
{
	init(&(struct cc_conf){.on = true, .delay_unknown = true, .memory_link = true});
	trip(50);
	for (unsigned i = 0; i < 1000; i++) {
		trip(500);
		cc_acked(&cc, 100);
		assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	}
}

/* 1 % is chance. Of 5 %, 9 losses are above 2 % of the packets since the last ones that were judged,
 * and of 256 more. */
TEST_WITH(losses_that_were_judged_count_no_more, unknown_setup, NULL)
{
	static const struct {
		unsigned every, least, most;
	} rows[] = {{100, 0, 0}, {20, 10, 12}, {10, 27, 30}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned cuts = 0;

		init(&(struct cc_conf){.on = true, .delay_unknown = true});
		for (unsigned packet = 1; packet <= 2000; packet++) {
			struct cc_sample s = {.rtt_ns = 50 * US, .packets = 1};

			now += 51 * US;
			cc_sample(&cc, &s, now);
			if (packet % rows[i].every == 0)
				cuts += cc_loss(&cc, now) == CC_CUT_LOSS;
		}
		assert_in_range(cuts, rows[i].least, rows[i].most);
	}
}

/* For 8 round trips, whether it cuts the window or not. */
TEST_WITH(loss_makes_the_window_grow_by_packets, unknown_setup, NULL)
{
	trip(50);
	expect_window(16);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	for (unsigned i = 1; i < CC_CALM; i++) {
		trip(50);
		expect_window(16 + i);
	}
	trip(50);
	expect_window(23 * 1.25);
	window_set(100);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	trip(50);
	expect_window(101);
}

/* If even the short ones are more than a quarter longer than the least one, there may be a queue: a
 * loss then cuts, and the window grows by packets. */
TEST_WITH(long_round_trips_are_taken_for_a_queue, unknown_setup, NULL)
{
	trip(50);
	for (unsigned i = 0; i < 100; i++)
		trip(62);
	window_set(100);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	for (unsigned i = 0; i < 100; i++)
		trip(64);
	window_set(100);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_LOSS);
	expect_window(50);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE); /* of the same round trip */
	for (unsigned i = 1; i <= 2 * CC_CALM; i++)
		trip(64);
	assert_in_range(cc.cwnd, 65 * CC_ONE, 67 * CC_ONE);
	for (unsigned i = 1; i <= 2 * CC_CALM; i++)
		trip(50);
	assert_true(cc.cwnd > 100 * CC_ONE);
}

/* A thread waits for a core in six of seven round trips: there is no queue. In all of eight there is. */
TEST_WITH(some_long_round_trips_are_no_queue, unknown_setup, NULL)
{
	for (unsigned i = 0; i < 70; i++)
		trip(i % 7 == 0 ? 50 : 3000);
	window_set(100);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	expect_window(100);
	trip(3000);
	trip(3000);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_LOSS);
}

/* Of eight QPs, each of which has a sample in a round trip: one wait for a core is no queue. If there
 * are several in a row, there is one. */
TEST_WITH(one_wait_of_several_qps_is_no_queue, unknown_setup, NULL)
{
	struct cc_sample s = {.packets = 1};

	for (unsigned i = 0; i < 80; i++) {
		s.rtt_ns = 50 * US;
		now += 50 * US / 8;
		cc_sample(&cc, &s, now);
	}
	for (unsigned i = 0; i < 8; i++) {
		s.rtt_ns = 3000 * US;
		now += US;
		cc_sample(&cc, &s, now);
	}
	window_set(100);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	expect_window(100);
	for (unsigned i = 0; i < 80; i++) {
		s.rtt_ns = 3000 * US;
		now += 3000 * US / 8;
		cc_sample(&cc, &s, now);
	}
	assert_int_equal(cc_loss(&cc, now), CC_CUT_LOSS);
}

/* The route changes, or the first requests were shorter than later ones: after a second of long round
 * trips these are taken for the path, and a loss for chance. One that is as short as before begins the
 * second again. */
TEST_WITH(path_becomes_longer, unknown_setup, NULL)
{
	for (unsigned i = 0; i < 10; i++)
		trip(50);
	for (unsigned i = 0; i < 7000; i++)
		trip(100);
	trip(50);
	for (unsigned i = 0; i < 9900; i++)
		trip(100);
	window_set(100);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_LOSS);
	for (unsigned i = 0; i < 200; i++)
		trip(100);
	window_set(100);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	expect_window(100);
	/* From then on the longer one is the least one. */
	for (unsigned i = 0; i < 20; i++)
		trip(120);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	for (unsigned i = 0; i < 20; i++)
		trip(130);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_LOSS);
}

/* After a pause the network may be another one. */
TEST_WITH(pause_forgets_the_path, unknown_setup, NULL)
{
	for (unsigned pause = 0; pause < 2; pause++) {
		for (unsigned i = 0; i < 100; i++)
			trip(50);
		if (pause != 0)
			now += CC_IDLE_NS + 1;
		packet_sent();
		for (unsigned i = 0; i < 100; i++)
			trip(100);
		window_set(100);
		assert_int_equal(
			cc_loss(&cc, now), pause != 0 ? CC_CUT_NONE : CC_CUT_LOSS);
		/* Shorter ones are the path at once. */
		trip(50);
	}
}

/* A first round trip of more than a second is not longer than itself. */
TEST_WITH(first_round_trip_may_take_seconds, unknown_setup, NULL)
{
	trip(3900000);
	window_set(100);
	assert_int_equal(cc_loss(&cc, now), CC_CUT_NONE);
	expect_window(100);
}

/* Without any loss they do not matter. */
TEST_WITH(long_round_trips_alone_change_nothing, unknown_setup, NULL)
{
	trip(50);
	trip(500);
	trip(500);
	expect_window(64);
}

/* ---- Loss, at first ---- */

/* Nothing is known of the delay. */
TEST_WITH(loss_before_the_first_round_trip_cuts, setup, NULL)
{
	now += NS_PER_MS;
	assert_int_equal(cc_loss(&cc, now), CC_CUT_LOSS);
	expect_window(4);
	round_trip(BASE_US);
	expect_window(5); /* slow start has ended */
}

/* The first probe may only be early, the second is a loss, the third says that nothing
 * gets through. */
TEST_WITH(probes_in_a_row, setup, NULL)
{
	window_set(100);
	now += NS_PER_MS;
	assert_int_equal(cc_probe(&cc, 1, now), CC_CUT_NONE);
	expect_window(100);
	assert_int_equal(cc_probe(&cc, 2, now), CC_CUT_LOSS);
	expect_window(50);
	assert_int_equal(cc_probe(&cc, 3, now), CC_CUT_LOSS);
	expect_window(0.1);
}

/* Before a round trip is known, the window is cut once in 50 us. */
TEST_WITH(losses_before_the_first_round_trip_cut_once, setup, NULL)
{
	for (unsigned i = 0; i < 50; i++)
		(void)cc_cnp(&cc, now + i * US - i);
	expect_window(4);
	(void)cc_cnp(&cc, now + 50 * US);
	expect_window(2);
}

/* The peer's host did not run for a while: nothing was lost, and the window is the one
 * before. If packets were lost, it is half of that, but no more than the first one. */
TEST_WITH(answer_restores_the_window, setup, NULL)
{
	static const struct {
		double before;
		bool late;
		double after;
	} rows[] = {{100, true, 100}, {100, false, 8}, {10, false, 5}, {0.5, true, 0.5}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		init(&(struct cc_conf){.on = true});
		round_trip(BASE_US);
		window_set(rows[i].before);
		for (unsigned nth = 1; nth <= 3; nth++) {
			now += NS_PER_MS;
			(void)cc_probe(&cc, nth, now);
			(void)cc_probe(&cc, nth, now); /* another QP's */
		}
		expect_window(0.1);
		cc_answer(&cc, rows[i].late);
		expect_window(rows[i].after);
		assert_int_equal(cc.slow_start, i == 1);
		window_set(2); /* a second answer has no effect */
		cc_answer(&cc, rows[i].late);
		expect_window(2);
	}
}

/* ---- CNPs ---- */

/* The first one halves. Then the cut is half of the part of round trips that had one. */
TEST_WITH(cnps_cut_by_their_part, setup, NULL)
{
	window_set(400);
	assert_int_equal(cc_cnp(&cc, now), CC_CUT_CNP);
	expect_window(200);
	/* In each round trip: always by half. */
	round_trip(BASE_US);
	window_set(400);
	assert_int_equal(cc_cnp(&cc, now), CC_CUT_CNP);
	expect_window(200);
	/* None for 16 round trips: the part is (15/16)^16. */
	round_trips(17, BASE_US);
	window_set(400);
	assert_int_equal(cc_cnp(&cc, now), CC_CUT_CNP);
	assert_in_range(
		cc.cwnd, (uint32_t)(400 * 256 * 0.80), (uint32_t)(400 * 256 * 0.84));
	/* None for long: as at first. */
	round_trips(200, BASE_US);
	window_set(400);
	assert_int_equal(cc_cnp(&cc, now), CC_CUT_CNP);
	expect_window(200);
}
