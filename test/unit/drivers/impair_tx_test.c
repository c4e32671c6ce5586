/* SPDX-License-Identifier: BSD-3-Clause */
/* Impairments of sent frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "impair_bed.h"

#include <cmocka.h>

static unsigned
tx_drain(struct bed *bed)
{
	struct pkt pkts[PKT_BURST];
	struct port *port = &bed->port[0];
	unsigned got = port->ops->rx_burst(port->queues[0], pkts, PKT_BURST);

	bed_count(bed, pkts, got);
	port->ops->rx_release(port->queues[0], pkts, got);
	return got;
}

static void
tx_burst_all(struct bed *bed, struct pkt *pkts, unsigned n)
{
	for (unsigned sent = 0; sent < n;) {
		unsigned took =
			bed->outer.ops->tx_burst(bed->outer.queue, pkts + sent, n - sent);

		assert_true(took <= n - sent);
		sent += took;
		if (sent < n) /* the ring is full */
			assert_true(tx_drain(bed) > 0);
	}
}

/* Sends numbered frames from impaired end 1 in bursts of random size, as an engine does:
 * it polls in between, and sends refused frames again. End 0 receives them, sometimes
 * late, so that its ring fills. */
static void
tx_run(struct bed *bed, const struct impair_conf *conf, uint64_t burst_seed)
{
	const struct impair_conf none = {.seed = 5};
	unsigned free_before[2];
	uint64_t rand = burst_seed;
	struct pkt pkts[PKT_BURST];

	bed_open(bed, &none);
	assert_int_equal(impair_set(bed->im, IMPAIR_TX, conf), 0);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&bed->port[i]);
	for (uint32_t next = 0; next < FRAMES;) {
		unsigned n = RTE_MIN(1 + rand_below(&rand, PKT_BURST), FRAMES - next);

		assert_int_equal(bed->outer.ops->tx_alloc(bed->outer.queue, pkts, n), n);
		for (unsigned i = 0; i < n; i++)
			bed_fill(&pkts[i], next++);
		tx_burst_all(bed, pkts, n);
		if (rand_below(&rand, 8) == 0) {
			while (tx_drain(bed) > 0)
				;
		}
		assert_int_equal(
			bed->outer.ops->rx_burst(bed->outer.queue, pkts, PKT_BURST), 0);
	}
	for (unsigned i = 0; i < 100; i++) {
		bed->outer.ops->rx_burst(bed->outer.queue, pkts, PKT_BURST);
		tx_drain(bed);
	}
	impair_stats_get(bed->im, IMPAIR_TX, &bed->stats);
	bed_close(bed, free_before);
}

static void
sent_frames_are_impaired_too(void **state)
{
	struct bed *bed = malloc(sizeof(*bed));

	(void)state;
	assert_non_null(bed);
	for (uint64_t seed = 1; seed <= 10; seed++) {
		const struct impair_conf conf = bed_everything(seed);

		tx_run(bed, &conf, seed * 77);
		/* 4000 expected, standard deviation 57. */
		assert_in_range(bed->stats.lost, 3700, 4300);
		assert_true(bed->stats.duplicated > 4000);
		assert_true(bed->stats.reordered > 3000);
		assert_int_equal(bed->stats.corrupted, bed->spoilt);
		if (bed->count + bed->stats.lost != FRAMES + bed->stats.duplicated)
			fail_msg("seed %lu", seed);
	}
	free(bed);
}

static void
sent_frames_keep_their_order(void **state)
{
	const struct impair_conf none = {.seed = 1}, some = {.loss_ppm = 100000};
	struct bed *bed = malloc(sizeof(*bed));

	(void)state;
	assert_non_null(bed);
	tx_run(bed, &none, 3);
	assert_int_equal(bed->count, FRAMES);
	for (unsigned i = 0; i < FRAMES; i++)
		assert_int_equal(bed->order[i], i);
	tx_run(bed, &some, 3);
	assert_int_equal(bed->count + bed->stats.lost, FRAMES);
	for (unsigned i = 1; i < bed->count; i++)
		assert_true(bed->order[i] > bed->order[i - 1]);
	free(bed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent_frames_are_impaired_too),
		cmocka_unit_test(sent_frames_keep_their_order),
	};

	return cmocka_run_group_tests_name("impair_tx", tests, NULL, NULL);
}
