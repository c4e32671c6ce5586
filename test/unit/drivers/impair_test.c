/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "impair_bed.h"

#include <cmocka.h>

static void
bed_send(struct bed *bed, uint32_t first, unsigned n)
{
	struct pkt pkts[PKT_BURST];
	struct port *port = &bed->port[0];

	assert_int_equal(port->ops->tx_alloc(port->queues[0], pkts, n), n);
	for (unsigned i = 0; i < n; i++)
		bed_fill(&pkts[i], first + i);
	assert_int_equal(port->ops->tx_burst(port->queues[0], pkts, n), n);
}

static unsigned
bed_receive(struct bed *bed, unsigned n)
{
	struct pkt pkts[PKT_BURST];
	unsigned got = bed->outer.ops->rx_burst(bed->outer.queue, pkts, n);

	assert_true(got <= n);
	bed_count(bed, pkts, got);
	bed->outer.ops->rx_release(bed->outer.queue, pkts, got);
	return got;
}

/* Sends all frames in bursts of random size, then polls until no more frames come. */
static void
bed_run(struct bed *bed, const struct impair_conf *conf, uint64_t burst_seed)
{
	unsigned free_before[2];
	uint64_t rand = burst_seed;
	uint32_t sent = 0;

	bed_open(bed, conf);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&bed->port[i]);
	while (sent < FRAMES) {
		unsigned n = RTE_MIN(1 + rand_below(&rand, PKT_BURST), FRAMES - sent);

		bed_send(bed, sent, n);
		sent += n;
		n = 1 + rand_below(&rand, PKT_BURST);
		/* A whole burst may be delayed. */
		for (unsigned idle = 0; idle < 3;)
			idle = bed_receive(bed, n) > 0 ? 0 : idle + 1;
	}
	for (unsigned i = 0; i < 100; i++)
		bed_receive(bed, PKT_BURST);
	impair_stats_get(bed->im, IMPAIR_RX, &bed->stats);
	bed_close(bed, free_before);
}

static struct bed *
bed_make(const struct impair_conf *conf, uint64_t burst_seed)
{
	struct bed *bed = malloc(sizeof(*bed));

	assert_non_null(bed);
	bed_run(bed, conf, burst_seed);
	return bed;
}

static void
nothing_asked_nothing_done(void **state)
{
	const struct impair_conf conf = {.seed = 1};
	struct bed *bed = bed_make(&conf, 2);

	(void)state;
	assert_int_equal(bed->count, FRAMES);
	for (unsigned i = 0; i < FRAMES; i++)
		assert_int_equal(bed->order[i], i);
	assert_int_equal(bed->spoilt, 0);
	assert_int_equal(bed->stats.lost + bed->stats.duplicated + bed->stats.reordered +
				 bed->stats.corrupted,
		0);
	free(bed);
}

static void
loses_its_share(void **state)
{
	const struct impair_conf conf = {.loss_ppm = 100000, .seed = 1};
	struct bed *bed = bed_make(&conf, 2);

	(void)state;
	assert_int_equal(bed->count + bed->stats.lost, FRAMES);
	/* 2000 expected, standard deviation 42. */
	assert_in_range(bed->stats.lost, 1750, 2250);
	for (unsigned i = 1; i < bed->count; i++)
		assert_true(bed->order[i] > bed->order[i - 1]);
	free(bed);
}

static void
duplicates_its_share(void **state)
{
	const struct impair_conf conf = {.duplicate_ppm = 100000, .seed = 1};
	struct bed *bed = bed_make(&conf, 2);
	unsigned twice = 0;

	(void)state;
	for (unsigned i = 0; i < FRAMES; i++) {
		assert_in_range(bed->arrived[i], 1, 2);
		twice += bed->arrived[i] == 2;
	}
	assert_int_equal(bed->stats.duplicated, twice);
	assert_in_range(twice, 1750, 2250);
	free(bed);
}

static void
reorders_its_share_and_loses_none(void **state)
{
	const struct impair_conf conf = {.reorder_ppm = 50000, .seed = 1};
	struct bed *bed = bed_make(&conf, 2);
	unsigned late = 0;

	(void)state;
	assert_int_equal(bed->count, FRAMES);
	for (unsigned i = 0; i < FRAMES; i++) {
		int shift = (int)i - (int)bed->order[i];

		assert_int_equal(bed->arrived[i], 1);
		/* Behind 8 others at most, and behind delayed ones that were released
		 * among them. */
		assert_in_range(shift + 16, 0, 32);
		late += shift > 0;
	}
	assert_in_range(bed->stats.reordered, 800, 1200);
	assert_in_range(late, bed->stats.reordered * 8 / 10, bed->stats.reordered);
	free(bed);
}

static void
spoils_one_bit_behind_the_ethernet_header(void **state)
{
	const struct impair_conf conf = {.corrupt_ppm = 100000, .seed = 1};
	struct bed *bed = bed_make(&conf, 2);

	(void)state;
	assert_int_equal(bed->count, FRAMES);
	assert_int_equal(bed->stats.corrupted, bed->spoilt);
	assert_in_range(bed->spoilt, 1750, 2250);
	free(bed);
}

static void
everything_at_once(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		const struct impair_conf conf = bed_everything(seed);
		struct bed *bed = bed_make(&conf, seed * 77);

		if (bed->count + bed->stats.lost != FRAMES + bed->stats.duplicated)
			fail_msg("seed %lu", seed);
		free(bed);
	}
}

static void
always_is_always(void **state)
{
	const struct impair_conf lose = {.loss_ppm = 1000000},
				 copy = {.duplicate_ppm = 1000000,
					 .reorder_ppm = 1000000,
					 .corrupt_ppm = 1000000};
	struct bed *bed = bed_make(&lose, 3);

	(void)state;
	assert_int_equal(bed->count, 0);
	assert_int_equal(bed->stats.lost, FRAMES);
	free(bed);
	bed = bed_make(&copy, 3);
	assert_int_equal(bed->count, FRAMES + bed->stats.duplicated);
	assert_int_equal(bed->stats.duplicated, FRAMES);
	assert_int_equal(bed->spoilt, FRAMES); /* the copies are not corrupted */
	free(bed);
}

/* The same seed has the same effects, whatever the bursts. Another seed has others. */
static void
seeds_repeat(void **state)
{
	struct impair_conf conf = {.loss_ppm = 50000, .duplicate_ppm = 50000, .seed = 7};
	struct bed *a = bed_make(&conf, 1), *b = bed_make(&conf, 99), *c;

	(void)state;
	conf.seed = 8;
	c = bed_make(&conf, 1);
	assert_int_equal(a->count, b->count);
	assert_memory_equal(a->order, b->order, a->count * sizeof(a->order[0]));
	assert_memory_not_equal(a->order, c->order, a->count * sizeof(a->order[0]));
	free(a);
	free(b);
	free(c);
}

static void
wrong_rates_are_refused(void **state)
{
	const struct impair_conf good = {.seed = 1}, bad[] = {
							     {.loss_ppm = 1000001},
							     {.duplicate_ppm = 1000001},
							     {.reorder_ppm = 1000001},
							     {.corrupt_ppm = UINT32_MAX},
						     };
	static struct bed bed;
	unsigned free_before[2];

	(void)state;
	bed_open(&bed, &good);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&bed.port[i]);
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(impair_set(bed.im, IMPAIR_RX, &bad[i]), -EINVAL);
		assert_int_equal(impair_set(bed.im, IMPAIR_TX, &bad[i]), -EINVAL);
	}
	bed_send(&bed, 0, 20);
	assert_int_equal(bed_receive(&bed, PKT_BURST), 20); /* the rates are unchanged */
	bed_close(&bed, free_before);
}

/* Unwrapping releases delayed and ready frames. Received frames stay valid. */
static void
unwrap_returns_what_is_inside(void **state)
{
	const struct impair_conf conf = {
		.reorder_ppm = 900000, .duplicate_ppm = 500000, .seed = 3};
	static struct bed bed;
	unsigned free_before[2], got;
	struct pkt pkts[4];

	(void)state;
	bed_open(&bed, &conf);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&bed.port[i]);
	bed_send(&bed, 0, 32);
	got = bed.outer.ops->rx_burst(bed.outer.queue, pkts, 4);
	assert_in_range(got, 1, 4);
	impair_unwrap(bed.im);
	bed.inner.ops->rx_release(bed.inner.queue, pkts, got);
	for (;;) {
		got = bed.inner.ops->rx_burst(bed.inner.queue, pkts, 4);
		if (got == 0)
			break;
		bed.inner.ops->rx_release(bed.inner.queue, pkts, got);
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pool_free(&bed.port[i]), free_before[i]);
		bed.port[i].ops->close(bed.port[i].drv);
	}
}

/* The impairments of received frames do not apply to sent ones. */
static void
sending_passes_through(void **state)
{
	const struct impair_conf conf = {.loss_ppm = 1000000};
	static struct bed bed;
	unsigned free_before[2];
	struct pkt pkts[3];

	(void)state;
	bed_open(&bed, &conf);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&bed.port[i]);
	assert_int_equal(bed.outer.ops->wait_fd(bed.outer.queue), -1);
	assert_int_equal(bed.outer.ops->tx_alloc(bed.outer.queue, pkts, 3), 3);
	for (unsigned i = 0; i < 3; i++)
		pkts[i].len = 60;
	assert_int_equal(bed.outer.ops->tx_burst(bed.outer.queue, pkts, 2), 2);
	bed.outer.ops->tx_release(bed.outer.queue, pkts + 2, 1);
	assert_int_equal(bed.port[0].ops->rx_burst(bed.port[0].queues[0], pkts, 3), 2);
	bed.port[0].ops->rx_release(bed.port[0].queues[0], pkts, 2);
	bed_close(&bed, free_before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_asked_nothing_done),
		cmocka_unit_test(loses_its_share),
		cmocka_unit_test(duplicates_its_share),
		cmocka_unit_test(reorders_its_share_and_loses_none),
		cmocka_unit_test(spoils_one_bit_behind_the_ethernet_header),
		cmocka_unit_test(everything_at_once),
		cmocka_unit_test(always_is_always),
		cmocka_unit_test(seeds_repeat),
		cmocka_unit_test(wrong_rates_are_refused),
		cmocka_unit_test(unwrap_returns_what_is_inside),
		cmocka_unit_test(sending_passes_through),
	};

	return cmocka_run_group_tests_name("impair", tests, NULL, NULL);
}
