/* SPDX-License-Identifier: BSD-3-Clause */
/* Impairments of sent frames. */
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "base/answer_wait.h"
#include "case.h"
#include "impair_fixture.h"

static unsigned
tx_drain(struct impair_fixture *ctx)
{
	struct pkt pkts[PKT_BURST];
	struct port *port = &ctx->port[0];
	unsigned got = port->ops->rx_burst(port->queues[0], pkts, PKT_BURST);

	frames_count(ctx, pkts, got);
	port->ops->rx_release(port->queues[0], pkts, got);
	return got;
}

static void
tx_burst_all(struct impair_fixture *ctx, struct pkt *pkts, unsigned n)
{
	for (unsigned sent = 0; sent < n;) {
		unsigned took =
			ctx->outer.ops->tx_burst(ctx->outer.queue, pkts + sent, n - sent);

		assert_true(took <= n - sent);
		sent += took;
		if (sent < n) /* the ring is full */
			assert_true(tx_drain(ctx) > 0);
	}
}

/* Sends numbered frames from impaired end 1 in bursts of random size, as an engine does:
 * it polls in between, and sends refused frames again. End 0 receives them, sometimes
 * late, so that its ring fills. */
static void
tx_run(struct impair_fixture *ctx, const struct impair_conf *conf, uint64_t burst_seed)
{
	const struct impair_conf none = {.seed = 5};
	unsigned free_before[2];
	uint64_t rand = burst_seed;
	struct pkt pkts[PKT_BURST];

	fixture_open(ctx, &none);
	assert_int_equal(impair_set(ctx->im, IMPAIR_TX, conf), 0);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx->port[i]);
	for (uint32_t next = 0; next < FRAMES;) {
		unsigned n = RTE_MIN(1 + rand_below(&rand, PKT_BURST), FRAMES - next);

		assert_int_equal(ctx->outer.ops->tx_alloc(ctx->outer.queue, pkts, n), n);
		for (unsigned i = 0; i < n; i++)
			numbered_frame_fill(&pkts[i], next++);
		tx_burst_all(ctx, pkts, n);
		if (rand_below(&rand, 8) == 0) {
			while (tx_drain(ctx) > 0)
				;
		}
		assert_int_equal(
			ctx->outer.ops->rx_burst(ctx->outer.queue, pkts, PKT_BURST), 0);
	}
	for (unsigned i = 0; i < 100; i++) {
		ctx->outer.ops->rx_burst(ctx->outer.queue, pkts, PKT_BURST);
		tx_drain(ctx);
	}
	impair_stats_get(ctx->im, IMPAIR_TX, &ctx->stats);
	fixture_close(ctx, free_before);
}

TEST(sent_frames_are_impaired_too)
{
	struct impair_fixture *ctx = malloc(sizeof(*ctx));

	assert_non_null(ctx);
	for (uint64_t seed = 1; seed <= 10; seed++) {
		const struct impair_conf conf = conf_all_impairments(seed);

		tx_run(ctx, &conf, seed * 77);
		/* 4000 expected, standard deviation 57. */
		assert_in_range(ctx->stats.lost, 3700, 4300);
		assert_true(ctx->stats.duplicated > 4000);
		assert_true(ctx->stats.reordered > 3000);
		assert_int_equal(ctx->stats.corrupted, ctx->corrupt_seen);
		if (ctx->count + ctx->stats.lost != FRAMES + ctx->stats.duplicated)
			fail_msg("seed %lu", seed);
	}
	free(ctx);
}

TEST(sent_frames_keep_their_order)
{
	const struct impair_conf none = {.seed = 1}, some = {.loss_ppm = 100000};
	struct impair_fixture *ctx = malloc(sizeof(*ctx));

	assert_non_null(ctx);
	tx_run(ctx, &none, 3);
	assert_int_equal(ctx->count, FRAMES);
	for (unsigned i = 0; i < FRAMES; i++)
		assert_int_equal(ctx->order[i], i);
	tx_run(ctx, &some, 3);
	assert_int_equal(ctx->count + ctx->stats.lost, FRAMES);
	for (unsigned i = 1; i < ctx->count; i++)
		assert_true(ctx->order[i] > ctx->order[i - 1]);
	free(ctx);
}

static void
lose_chosen(void *arg, const struct pkt *pkt, struct impair_effect *effect)
{
	(void)pkt;
	(*(unsigned *)arg)++;
	effect->lose = true;
}

TEST(new_rates_leave_the_chosen_effects)
{
	const struct impair_conf none = {.seed = 1};
	struct impair_fixture *ctx = malloc(sizeof(*ctx));
	const struct port_queue *outer;
	unsigned free_before[2], asked = 0;
	struct pkt pkts[10];

	assert_non_null(ctx);
	fixture_open(ctx, &none);
	outer = &ctx->outer;
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx->port[i]);
	impair_choose(ctx->im, IMPAIR_TX, lose_chosen, &asked);
	assert_int_equal(impair_set(ctx->im, IMPAIR_TX, &none), 0);
	assert_int_equal(outer->ops->tx_alloc(outer->queue, pkts, 10), 10);
	for (unsigned i = 0; i < 10; i++)
		numbered_frame_fill(&pkts[i], i);
	assert_int_equal(outer->ops->tx_burst(outer->queue, pkts, 10), 10);
	assert_int_equal(asked, 10);
	impair_stats_get(ctx->im, IMPAIR_TX, &ctx->stats);
	assert_int_equal(ctx->stats.lost, 10);
	fixture_close(ctx, free_before);
	free(ctx);
}

static struct answer_wait wait_of_qp;
static unsigned answered;

static void
inner_rx_answered(void *queue)
{
	assert_non_null(queue);
	answered++;
}

static bool
inner_tx_waits(void *queue, uint32_t qpn, struct answer_wait *wait, uint64_t now)
{
	assert_ptr_equal(wait, &wait_of_qp);
	assert_int_equal(now, 5);
	return queue != NULL && qpn == 7;
}

/* The wrapper passes the question on. A loop does not know the answer. */
TEST(receiver_of_the_inner_queue_is_asked)
{
	const struct impair_conf none = {.seed = 1};
	struct impair_fixture *ctx = malloc(sizeof(*ctx));
	struct port_queue known;
	struct port_ops ops;
	unsigned free_before[2];

	assert_non_null(ctx);
	fixture_open(ctx, &none);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx->port[i]);
	assert_false(ctx->outer.ops->tx_waits(ctx->outer.queue, 7, &wait_of_qp, 5));
	ops = *ctx->inner.ops;
	ctx->outer.ops->rx_answered(ctx->outer.queue);
	ops.tx_waits = inner_tx_waits;
	ops.rx_answered = inner_rx_answered;
	known = (struct port_queue){.ops = &ops, .queue = ctx->inner.queue};
	impair_set_inner(ctx->im, &known);
	assert_true(ctx->outer.ops->tx_waits(ctx->outer.queue, 7, &wait_of_qp, 5));
	assert_false(ctx->outer.ops->tx_waits(ctx->outer.queue, 8, &wait_of_qp, 5));
	assert_int_equal(answered, 0);
	ctx->outer.ops->rx_answered(ctx->outer.queue);
	assert_int_equal(answered, 1);
	impair_set_inner(ctx->im, &ctx->inner);
	fixture_close(ctx, free_before);
	free(ctx);
}

static unsigned holds;

static void
note_hold(void *arg)
{
	assert_ptr_equal(arg, &holds);
	holds++;
}

static void
one_sent_by(const struct port_queue *q, uint32_t number)
{
	struct pkt pkt;

	assert_int_equal(q->ops->tx_alloc(q->queue, &pkt, 1), 1);
	numbered_frame_fill(&pkt, number);
	assert_int_equal(q->ops->tx_burst(q->queue, &pkt, 1), 1);
}

static void
one_sent(struct impair_fixture *ctx, uint32_t number)
{
	one_sent_by(&ctx->outer, number);
}

/* An engine that sleeps must learn of a frame that leaves in later polls only. */
TEST(held_frame_is_announced)
{
	const struct impair_conf none = {.seed = 1}, hold = {.reorder_ppm = 1000000};
	struct impair_fixture *ctx = malloc(sizeof(*ctx));
	struct impair_stats stats = {0};
	struct pkt pkts[PKT_BURST];
	unsigned free_before[2];

	assert_non_null(ctx);
	fixture_open(ctx, &none);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx->port[i]);
	impair_on_hold(ctx->im, note_hold, &holds);
	impair_count_in(ctx->im, IMPAIR_TX, &stats);
	one_sent(ctx, 0);
	assert_false(port_queue_holds(&ctx->outer));
	assert_int_equal(impair_set(ctx->im, IMPAIR_TX, &hold), 0);
	one_sent(ctx, 1);
	assert_int_equal(holds, 1);
	for (unsigned polls = 0; port_queue_holds(&ctx->outer); polls++) {
		assert_true(polls < 100);
		assert_int_equal(
			ctx->outer.ops->rx_burst(ctx->outer.queue, pkts, PKT_BURST), 0);
	}
	assert_int_equal(tx_drain(ctx), 2);
	assert_int_equal(ctx->order[1], 1);
	assert_int_equal(stats.reordered, 0); /* no other has overtaken it */
	fixture_close(ctx, free_before);
	free(ctx);
}

/* A frame counts as reordered when one that was sent behind it leaves before it, once. */
TEST(overtaken_frames_count_as_reordered)
{
	const struct impair_conf none = {.seed = 1}, hold = {.reorder_ppm = 1000000};
	struct impair_fixture *ctx = malloc(sizeof(*ctx));
	struct impair_stats stats = {0};
	unsigned free_before[2], late = 0;

	assert_non_null(ctx);
	fixture_open(ctx, &none);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx->port[i]);
	impair_count_in(ctx->im, IMPAIR_TX, &stats);
	assert_int_equal(impair_set(ctx->im, IMPAIR_TX, &hold), 0);
	for (uint32_t i = 0; i < 3; i++)
		one_sent(ctx, i);
	assert_int_equal(impair_set(ctx->im, IMPAIR_TX, &none), 0);
	assert_int_equal(stats.reordered, 0);
	for (uint32_t i = 3; i < 13; i++)
		one_sent(ctx, i);
	assert_false(port_queue_holds(&ctx->outer));
	assert_int_equal(stats.reordered, 3);
	assert_int_equal(tx_drain(ctx), 13);
	for (unsigned i = 0; i < 13; i++)
		late += ctx->order[i] < 3 && i > 0;
	assert_int_equal(late, 3);
	impair_stats_get(ctx->im, IMPAIR_TX, &ctx->stats);
	assert_int_equal(ctx->stats.reordered, 3);
	fixture_close(ctx, free_before);
	free(ctx);
}

/* Those of a QP that ends, for which no later poll is soon enough. */
TEST(held_frames_leave_when_told)
{
	const struct impair_conf none = {.seed = 1}, hold = {.reorder_ppm = 1000000};
	struct impair_fixture *ctx = malloc(sizeof(*ctx));
	unsigned free_before[2];

	assert_non_null(ctx);
	fixture_open(ctx, &none);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx->port[i]);
	port_queue_held_send(&ctx->inner); /* it holds none */
	assert_int_equal(impair_set(ctx->im, IMPAIR_TX, &hold), 0);
	for (uint32_t i = 0; i < 3; i++)
		one_sent(ctx, i);
	assert_int_equal(tx_drain(ctx), 0);
	port_queue_held_send(&ctx->outer);
	assert_false(port_queue_holds(&ctx->outer));
	assert_int_equal(tx_drain(ctx), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(ctx->order[i], i);
	fixture_close(ctx, free_before);
	free(ctx);
}

/* A frame that was reordered is not lost when the impairment ends. */
TEST(held_frame_is_sent_at_the_end)
{
	const struct impair_conf none = {.seed = 1}, hold = {.reorder_ppm = 1000000};
	struct impair_fixture *ctx = malloc(sizeof(*ctx));

	assert_non_null(ctx);
	fixture_open(ctx, &none);
	assert_int_equal(impair_set(ctx->im, IMPAIR_TX, &hold), 0);
	one_sent(ctx, 5);
	assert_int_equal(tx_drain(ctx), 0);
	impair_unwrap(ctx->im);
	assert_int_equal(tx_drain(ctx), 1);
	assert_int_equal(ctx->order[0], 5);
	for (unsigned i = 0; i < 2; i++)
		ctx->port[i].ops->close(ctx->port[i].drv);
	free(ctx);
}

/* Frames that end 1 sends or receives are lost and counted while the link is cut, also those that the wrapper holds and
 * those that come until it is whole again. */
TEST(a_cut_link_loses_what_is_sent_and_received)
{
	const struct impair_conf none = {.seed = 5};
	const struct impair_conf hold = {.reorder_ppm = 1000000, .seed = 5};
	struct impair_fixture *ctx = malloc(sizeof(*ctx));
	struct port_queue peer;
	unsigned free_before[2];
	struct pkt pkts[4];
	uint64_t lost = 0;

	assert_non_null(ctx);
	fixture_open(ctx, &none);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx->port[i]);
	peer = (struct port_queue){ctx->port[0].ops, ctx->port[0].queues[0]};
	assert_int_equal(impair_set(ctx->im, IMPAIR_TX, &hold), 0);
	one_sent_by(&ctx->outer, 0); /* held */
	impair_cut(ctx->im, &lost);
	assert_int_equal(lost, 1);
	assert_false(port_queue_holds(&ctx->outer));
	one_sent_by(&ctx->outer, 1);
	one_sent_by(&peer, 2);
	assert_int_equal(
		ctx->outer.ops->rx_burst(ctx->outer.queue, pkts, RTE_DIM(pkts)), 0);
	assert_int_equal(lost, 3);
	one_sent_by(&peer, 3);
	impair_cut(ctx->im, NULL);
	assert_int_equal(lost, 4);
	assert_int_equal(tx_drain(ctx), 0);
	assert_int_equal(impair_set(ctx->im, IMPAIR_TX, &none), 0);
	one_sent_by(&ctx->outer, 4);
	one_sent_by(&peer, 5);
	assert_int_equal(tx_drain(ctx), 1);
	assert_int_equal(
		ctx->outer.ops->rx_burst(ctx->outer.queue, pkts, RTE_DIM(pkts)), 1);
	ctx->outer.ops->rx_release(ctx->outer.queue, pkts, 1);
	assert_int_equal(lost, 4);
	fixture_close(ctx, free_before);
	free(ctx);
}

/* choose() counts those, too, that a cut link loses. */
TEST(a_cut_link_asks_about_frames)
{
	const struct impair_conf none = {.seed = 5};
	struct impair_fixture *ctx = malloc(sizeof(*ctx));
	unsigned free_before[2], asked = 0;
	uint64_t lost = 0;

	assert_non_null(ctx);
	fixture_open(ctx, &none);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx->port[i]);
	impair_choose(ctx->im, IMPAIR_TX, lose_chosen, &asked);
	impair_cut(ctx->im, &lost);
	for (uint32_t i = 0; i < 3; i++)
		one_sent_by(&ctx->outer, i);
	assert_int_equal(asked, 3);
	assert_int_equal(lost, 3);
	impair_stats_get(ctx->im, IMPAIR_TX, &ctx->stats);
	assert_int_equal(ctx->stats.lost, 0);
	impair_cut(ctx->im, NULL);
	one_sent_by(&ctx->outer, 3);
	assert_int_equal(asked, 4);
	fixture_close(ctx, free_before);
	free(ctx);
}
