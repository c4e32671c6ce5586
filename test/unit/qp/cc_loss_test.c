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
