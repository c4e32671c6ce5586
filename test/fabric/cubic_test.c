/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference beside the rows of clients: CUBIC's window against the figures of RFC 9438, and
 * connections over a switch whose capacity, buffer, policer or loss is known. */
#include <math.h>

#include "case.h"
#include "cubic.h"
#include "random.h"
#include "tcp.h"

#define S (1000 * PS_PER_MS)
#define FRAME_BYTES (1514 + FRAME_L1_BYTES)

uint64_t random_state;

static bool
near(double value, double expected, double part)
{
	return fabs(value - expected) <= part * expected;
}

/* Acknowledges the whole window, a round trip after the other, for this long. */
static void
round_trips(struct cubic *c, uint64_t rtt, uint64_t begin, uint64_t length)
{
	for (uint64_t at = 0; at < length; at += rtt)
		cubic_acked(c, c->cwnd, rtt, begin + at);
}

/* ---- The window ---- */

TEST(window_doubles_until_the_first_loss)
{
	struct cubic c;

	cubic_init(&c);
	round_trips(&c, PS_PER_MS, S, 5 * PS_PER_MS);
	assert_true(c.cwnd == CUBIC_FIRST * 32);
	cubic_lost(&c);
	assert_true(near(c.cwnd, 0.7 * 320, 1e-9) && c.ssthresh == c.cwnd);
}

/* 1,000 segments, 100 ms: the window comes back to 1,000 after the cube root of 300 / 0.4
 * seconds, which is 9.09, is flat there, and has grown by 300 after twice that time. */
TEST(large_window_follows_the_curve)
{
	struct cubic c = {.cwnd = 1000, .ssthresh = 500};
	uint64_t rtt = 100 * PS_PER_MS;

	cubic_lost(&c);
	assert_true(near(c.cwnd, 700, 1e-9));
	round_trips(&c, rtt, S, 4500 * PS_PER_MS);
	assert_true(near(c.cwnd, 1000 - 0.4 * pow(9.086 - 4.5, 3), 0.01));
	round_trips(&c, rtt, S + 4500 * PS_PER_MS, 4500 * PS_PER_MS);
	assert_true(near(c.cwnd, 1000, 0.005));
	round_trips(&c, rtt, 10 * S, 9200 * PS_PER_MS);
	assert_true(near(c.cwnd, 1300, 0.02));
}

/* 20 segments, 1 ms: the curve would take seconds. Reno's window grows by 0.53 segments in a
 * round trip up to where it was, and then by one. */
TEST(small_window_is_no_less_than_renos)
{
	struct cubic c = {.cwnd = 20, .ssthresh = 10};

	cubic_lost(&c);
	round_trips(&c, PS_PER_MS, S, 10 * PS_PER_MS);
	assert_true(near(c.cwnd, 14 + 10 * 0.9 / 1.7, 0.02));
	round_trips(&c, PS_PER_MS, S + 10 * PS_PER_MS, 22 * PS_PER_MS);
	assert_true(c.cwnd > 38 && c.cwnd < 42);
}

TEST(second_loss_below_the_first_leaves_room)
{
	struct cubic c = {.cwnd = 100, .ssthresh = 50};

	cubic_lost(&c);
	assert_true(c.w_max == 100);
	cubic_lost(&c); /* at 70 */
	assert_true(near(c.w_max, 70 * 0.85, 1e-9));
	assert_true(near(c.cwnd, 49, 1e-9));
	c.cwnd = 1;
	cubic_lost(&c);
	assert_true(c.cwnd == 2);
}

TEST(timeout_begins_with_one_segment)
{
	struct cubic c = {.cwnd = 100, .ssthresh = 50};

	cubic_timeout(&c);
	assert_true(c.cwnd == 1 && near(c.ssthresh, 70, 1e-9));
	round_trips(&c, PS_PER_MS, S, 7 * PS_PER_MS); /* to 128: slow start ends at 70 */
	assert_true(c.cwnd == 128);
	round_trips(&c, PS_PER_MS, S + 7 * PS_PER_MS, 2 * PS_PER_MS);
	assert_true(c.cwnd > 128 && c.cwnd < 132);
}

/* ---- Connections ---- */

/* 10 Gb/s, 200 us, 500 KB: hosts 1 to n to host 0. */
static struct fabric_conf
star(unsigned senders)
{
	return (struct fabric_conf){
		.shape = SHAPE_STAR,
		.hosts = senders + 1,
		.link_ps_per_byte = ps_per_byte(10),
		.delay = 50 * PS_PER_US,
		.port_bytes = 500000,
		.alpha = 1,
	};
}

static struct tcp_result
run(const struct fabric_conf *conf)
{
	struct tcp_result result;

	tcp_run(conf, 1, 20 * PS_PER_MS, 60 * PS_PER_MS, &result);
	assert_int_equal(frames_in_use(), 0);
	return result;
}

TEST(one_connection_fills_a_link)
{
	struct fabric_conf conf = star(1);
	struct tcp_result r = run(&conf);

	assert_true(r.goodput > 0.99 && r.goodput <= 1.001);
	assert_true(r.jain == 1 && r.resends == 0);
}

TEST(connections_share_a_link)
{
	struct fabric_conf conf = star(8);
	struct tcp_result r = run(&conf), again = run(&conf);

	assert_true(r.goodput > 0.95 && r.goodput <= 1.001);
	assert_true(r.jain > 0.6);
	assert_true(r.resends > 0 && r.resends < 0.1);
	/* The same seed gives the same numbers. */
	assert_true(r.goodput == again.goodput && r.resends == again.resends);
}

/* A receiver's window of 4,096 segments limits the rate on a path of 10 ms. */
TEST(window_of_the_receiver_limits)
{
	struct fabric_conf conf = star(1);
	struct tcp_result r;
	double full;

	conf.delay = 2500 * PS_PER_US;
	full = 4096.0 * FRAME_BYTES * (double)conf.link_ps_per_byte / (10.0 * PS_PER_MS);
	assert_true(full < 0.52);
	tcp_run(&conf, 1, 200 * PS_PER_MS, 200 * PS_PER_MS, &r);
	assert_true(near(r.goodput, full, 0.03));
}

TEST(policer_is_not_exceeded)
{
	struct fabric_conf conf = star(1);
	struct tcp_result r;

	conf.police_mbit_per_s = 2000;
	conf.police_burst = 100000;
	r = run(&conf);
	assert_true(r.goodput > 0.1 && r.goodput < 0.21);
	assert_true(r.resends > 0 && r.resends < 0.3);
}

/* The rate at a part p of losses is about 1.2 / sqrt(p) segments in a round trip (RFC 9438, 5.1),
 * which is a tenth of this link. */
TEST(random_losses_limit)
{
	struct fabric_conf conf = star(1);
	double few, many;

	conf.loss = 100;
	few = run(&conf).goodput;
	conf.loss = 10000;
	many = run(&conf).goodput;
	assert_true(many > 0.04 && many < 0.2);
	assert_true(few > 2 * many);
}

/* All at once into a buffer of two segments each: probes and timeouts keep them going. */
TEST(full_buffers_do_not_stop_connections)
{
	struct fabric_conf conf = star(32);
	struct tcp_result r;

	conf.port_bytes = 64 * 1514;
	r = run(&conf);
	assert_true(r.goodput > 0.7);
	assert_true(r.resends > 0.001);
}
