/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sweep draws, and what it finds in results. */
#include "case.h"
#include "random.h"
#include "sweep.h"

uint64_t random_state;

TEST(draws_differ_and_repeat)
{
	unsigned loads = 0, mtus = 0, clients = 0, warm = 0, reads = 0, policed = 0;

	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct drawn d, again;

		sweep_draw(&d, seed);
		sweep_draw(&again, seed);
		assert_true(d.fair == again.fair && d.row.n == again.row.n);
		assert_int_equal(d.row.us, again.row.us);
		loads |= 1u << d.row.load;
		mtus |= d.row.mtu;
		clients += d.row.client;
		warm += d.row.client && d.row.hello != 0;
		reads += d.row.read;
		policed += d.row.police_mbit_per_s != 0;
	}
	assert_int_equal(loads, 1u << LOAD_INCAST | 1u << LOAD_FANOUT |
					1u << LOAD_DUPLEX | 1u << LOAD_ALL |
					1u << LOAD_PAIRS | 1u << LOAD_CHAIN);
	assert_int_equal(mtus, 1024 | 4096);
	assert_in_range(clients, 150, 250);
	assert_in_range(warm, 60, 140);
	assert_in_range(reads, 50, 130);
	assert_in_range(policed, 5, 50);
}

TEST(networks_can_be_asked_for_something)
{
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct drawn d;
		double packet_us;

		sweep_draw(&d, seed);
		packet_us = d.row.mtu * 8.0 / d.row.mbit_per_s;
		assert_true(d.fair > 0 && d.fair <= 1);
		assert_true(d.allowed >= 0 && d.allowed <= 1);
		assert_true(d.fluid >= 0 && d.fluid < 1);
		assert_true(d.resends >= 10 && d.buffer_us > 0);
		/* The measurement has the time of 100 packets of a flow's fair part. */
		assert_true(d.row.us >= 20000 && d.row.us * d.fair >= 100 * packet_us);
		assert_true(d.row.warm_us >= 10000);
	}
}

/* Four flows share a link; the buffer is 100 us. */
static const struct drawn four = {
	.fair = 0.25, .allowed = 1, .resends = 10, .buffer_us = 100};

static struct result
good_result(void)
{
	struct result r = {.least = 0.2};

	r.value[METRIC_goodput] = 95;
	r.value[METRIC_resends] = 1;
	r.value[METRIC_queue_p50] = 20;
	return r;
}

TEST(faults_are_found_one_by_one)
{
	struct result r = good_result();
	struct drawn small = four, fanout = four;

	assert_int_equal(sweep_judge(&four, &r), 0);
	r.least = 0.026;
	assert_int_equal(sweep_judge(&four, &r), 0);
	r.least = 0.024;
	assert_int_equal(sweep_judge(&four, &r), SWEEP_STARVED);
	r = good_result();
	r.value[METRIC_resends] = 10.5;
	assert_int_equal(sweep_judge(&four, &r), SWEEP_RESENDS);
	r = good_result();
	r.value[METRIC_queue_p50] = 91;
	assert_int_equal(sweep_judge(&four, &r), SWEEP_FULL);
	fanout.row.load = LOAD_FANOUT; /* its own link is full */
	assert_int_equal(sweep_judge(&fanout, &r), 0);
	small.fluid = 0.1; /* a packet of each flow fills it */
	assert_int_equal(sweep_judge(&small, &r), 0);
	r = good_result();
	r.value[METRIC_goodput] = 79;
	assert_int_equal(sweep_judge(&four, &r), SWEEP_UNUSED);
	small.allowed = 0; /* not known */
	assert_int_equal(sweep_judge(&small, &r), 0);
}

/* A listed seed may have the faults that stand with it, and no other. */
TEST(other_faults_of_a_listed_seed_count)
{
	static const struct sweep_listed list[] = {
		{3, SWEEP_RESENDS}, {8, SWEEP_RESENDS | SWEEP_FULL}};
	static const struct {
		uint64_t seed;
		unsigned found, fresh, gone;
	} cases[] = {
		{3, SWEEP_RESENDS, 0, 0},
		{3, SWEEP_STARVED, SWEEP_STARVED, SWEEP_RESENDS},
		{3, SWEEP_RESENDS | SWEEP_FULL, SWEEP_FULL, 0},
		{3, 0, 0, SWEEP_RESENDS},
		{8, SWEEP_FULL, 0, SWEEP_RESENDS},
		{5, 0, 0, 0},
		{5, SWEEP_UNUSED, SWEEP_UNUSED, 0},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sweep_verdict v =
			sweep_compare(list, 2, cases[i].seed, cases[i].found);

		assert_int_equal(v.fresh, cases[i].fresh);
		assert_int_equal(v.gone, cases[i].gone);
	}
}
