/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "case.h"
#include "impair_fixture.h"

static void
frames_send(struct impair_fixture *ctx, uint32_t first, unsigned n)
{
	struct pkt pkts[PKT_BURST];
	struct port *port = &ctx->port[0];

	assert_int_equal(port->ops->tx_alloc(port->queues[0], pkts, n), n);
	for (unsigned i = 0; i < n; i++)
		numbered_frame_fill(&pkts[i], first + i);
	assert_int_equal(port->ops->tx_burst(port->queues[0], pkts, n), n);
}

static unsigned
frames_receive(struct impair_fixture *ctx, unsigned n)
{
	struct pkt pkts[PKT_BURST];
	unsigned got = ctx->outer.ops->rx_burst(ctx->outer.queue, pkts, n);

	assert_true(got <= n);
	frames_count(ctx, pkts, got);
	ctx->outer.ops->rx_release(ctx->outer.queue, pkts, got);
	return got;
}

/* Sends all frames in bursts of random size, then polls until no more frames come. */
static void
fixture_run(
	struct impair_fixture *ctx, const struct impair_conf *conf, uint64_t burst_seed)
{
	unsigned free_before[2];
	uint64_t rand = burst_seed;
	uint32_t sent = 0;

	fixture_open(ctx, conf);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx->port[i]);
	while (sent < FRAMES) {
		unsigned n = RTE_MIN(1 + rand_below(&rand, PKT_BURST), FRAMES - sent);

		frames_send(ctx, sent, n);
		sent += n;
		n = 1 + rand_below(&rand, PKT_BURST);
		/* A whole burst may be delayed. */
		for (unsigned idle = 0; idle < 3;)
			idle = frames_receive(ctx, n) > 0 ? 0 : idle + 1;
	}
	for (unsigned i = 0; i < 100; i++)
		frames_receive(ctx, PKT_BURST);
	impair_stats_get(ctx->im, IMPAIR_RX, &ctx->stats);
	fixture_close(ctx, free_before);
}

static struct impair_fixture *
fixture_make(const struct impair_conf *conf, uint64_t burst_seed)
{
	struct impair_fixture *ctx = malloc(sizeof(*ctx));

	assert_non_null(ctx);
	fixture_run(ctx, conf, burst_seed);
	return ctx;
}

TEST(zero_rates_change_nothing)
{
	const struct impair_conf conf = {.seed = 1};
	struct impair_fixture *ctx = fixture_make(&conf, 2);

	assert_int_equal(ctx->count, FRAMES);
	for (unsigned i = 0; i < FRAMES; i++)
		assert_int_equal(ctx->order[i], i);
	assert_int_equal(ctx->corrupt_seen, 0);
	assert_int_equal(ctx->stats.lost + ctx->stats.duplicated + ctx->stats.reordered +
				 ctx->stats.corrupted,
		0);
	free(ctx);
}

TEST(loses_its_share)
{
	const struct impair_conf conf = {.loss_ppm = 100000, .seed = 1};
	struct impair_fixture *ctx = fixture_make(&conf, 2);

	assert_int_equal(ctx->count + ctx->stats.lost, FRAMES);
	/* 2000 expected, standard deviation 42. */
	assert_in_range(ctx->stats.lost, 1750, 2250);
	for (unsigned i = 1; i < ctx->count; i++)
		assert_true(ctx->order[i] > ctx->order[i - 1]);
	free(ctx);
}

TEST(duplicates_its_share)
{
	const struct impair_conf conf = {.duplicate_ppm = 100000, .seed = 1};
	struct impair_fixture *ctx = fixture_make(&conf, 2);
	unsigned twice = 0;

	for (unsigned i = 0; i < FRAMES; i++) {
		assert_in_range(ctx->arrived[i], 1, 2);
		twice += ctx->arrived[i] == 2;
	}
	assert_int_equal(ctx->stats.duplicated, twice);
	assert_in_range(twice, 1750, 2250);
	free(ctx);
}

TEST(reorders_its_share_and_loses_none)
{
	const struct impair_conf conf = {.reorder_ppm = 50000, .seed = 1};
	struct impair_fixture *ctx = fixture_make(&conf, 2);
	unsigned late = 0;

	assert_int_equal(ctx->count, FRAMES);
	for (unsigned i = 0; i < FRAMES; i++) {
		int shift = (int)i - (int)ctx->order[i];

		assert_int_equal(ctx->arrived[i], 1);
		/* Behind 8 others at most, and behind delayed ones that were released
		 * among them. */
		assert_in_range(shift + 16, 0, 32);
		late += shift > 0;
	}
	assert_in_range(ctx->stats.reordered, 800, 1200);
	assert_in_range(late, ctx->stats.reordered * 8 / 10, ctx->stats.reordered);
	free(ctx);
}

TEST(corrupts_one_bit_behind_the_ethernet_header)
{
	const struct impair_conf conf = {.corrupt_ppm = 100000, .seed = 1};
	struct impair_fixture *ctx = fixture_make(&conf, 2);

	assert_int_equal(ctx->count, FRAMES);
	assert_int_equal(ctx->stats.corrupted, ctx->corrupt_seen);
	assert_in_range(ctx->corrupt_seen, 1750, 2250);
	free(ctx);
}

TEST(all_impairments_at_once)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		const struct impair_conf conf = conf_all_impairments(seed);
		struct impair_fixture *ctx = fixture_make(&conf, seed * 77);

		if (ctx->count + ctx->stats.lost != FRAMES + ctx->stats.duplicated)
			fail_msg("seed %lu", seed);
		free(ctx);
	}
}

TEST(full_rates_hit_every_frame)
{
	const struct impair_conf lose = {.loss_ppm = 1000000},
				 copy = {.duplicate_ppm = 1000000,
					 .reorder_ppm = 1000000,
					 .corrupt_ppm = 1000000};
	struct impair_fixture *ctx = fixture_make(&lose, 3);

	assert_int_equal(ctx->count, 0);
	assert_int_equal(ctx->stats.lost, FRAMES);
	free(ctx);
	ctx = fixture_make(&copy, 3);
	assert_int_equal(ctx->count, FRAMES + ctx->stats.duplicated);
	assert_int_equal(ctx->stats.duplicated, FRAMES);
	assert_int_equal(ctx->corrupt_seen, FRAMES); /* the copies are not corrupted */
	free(ctx);
}

/* The same seed has the same effects, whatever the bursts. Another seed has others. */
TEST(same_seed_has_same_effects)
{
	struct impair_conf conf = {.loss_ppm = 50000, .duplicate_ppm = 50000, .seed = 7};
	struct impair_fixture *a = fixture_make(&conf, 1), *b = fixture_make(&conf, 99),
			      *c;

	conf.seed = 8;
	c = fixture_make(&conf, 1);
	assert_int_equal(a->count, b->count);
	assert_memory_equal(a->order, b->order, a->count * sizeof(a->order[0]));
	assert_memory_not_equal(a->order, c->order, a->count * sizeof(a->order[0]));
	free(a);
	free(b);
	free(c);
}

TEST(wrong_rates_are_refused)
{
	const struct impair_conf good = {.seed = 1}, bad[] = {
							     {.loss_ppm = 1000001},
							     {.duplicate_ppm = 1000001},
							     {.reorder_ppm = 1000001},
							     {.corrupt_ppm = UINT32_MAX},
						     };
	static struct impair_fixture ctx;
	unsigned free_before[2];

	fixture_open(&ctx, &good);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx.port[i]);
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(impair_set(ctx.im, IMPAIR_RX, &bad[i]), -EINVAL);
		assert_int_equal(impair_set(ctx.im, IMPAIR_TX, &bad[i]), -EINVAL);
	}
	frames_send(&ctx, 0, 20);
	assert_int_equal(
		frames_receive(&ctx, PKT_BURST), 20); /* the rates are unchanged */
	fixture_close(&ctx, free_before);
}

/* Unwrapping releases delayed and ready frames. Received frames stay valid. */
TEST(unwrap_releases_delayed_frames)
{
	const struct impair_conf conf = {
		.reorder_ppm = 900000, .duplicate_ppm = 500000, .seed = 3};
	static struct impair_fixture ctx;
	unsigned free_before[2], got;
	struct pkt pkts[4];

	fixture_open(&ctx, &conf);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx.port[i]);
	frames_send(&ctx, 0, 32);
	got = ctx.outer.ops->rx_burst(ctx.outer.queue, pkts, 4);
	assert_in_range(got, 1, 4);
	impair_unwrap(ctx.im);
	ctx.inner.ops->rx_release(ctx.inner.queue, pkts, got);
	for (;;) {
		got = ctx.inner.ops->rx_burst(ctx.inner.queue, pkts, 4);
		if (got == 0)
			break;
		ctx.inner.ops->rx_release(ctx.inner.queue, pkts, got);
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pool_free(&ctx.port[i]), free_before[i]);
		ctx.port[i].ops->close(ctx.port[i].drv);
	}
}

/* The impairments of received frames do not apply to sent ones. */
TEST(rx_rates_do_not_impair_tx)
{
	const struct impair_conf conf = {.loss_ppm = 1000000};
	static struct impair_fixture ctx;
	unsigned free_before[2];
	struct pkt pkts[3];

	fixture_open(&ctx, &conf);
	for (unsigned i = 0; i < 2; i++)
		free_before[i] = pool_free(&ctx.port[i]);
	assert_int_equal(ctx.outer.ops->wait_fd(ctx.outer.queue), -1);
	assert_int_equal(ctx.outer.ops->tx_alloc(ctx.outer.queue, pkts, 3), 3);
	for (unsigned i = 0; i < 3; i++)
		pkts[i].len = 60;
	assert_int_equal(ctx.outer.ops->tx_burst(ctx.outer.queue, pkts, 2), 2);
	ctx.outer.ops->tx_release(ctx.outer.queue, pkts + 2, 1);
	assert_int_equal(ctx.port[0].ops->rx_burst(ctx.port[0].queues[0], pkts, 3), 2);
	ctx.port[0].ops->rx_release(ctx.port[0].queues[0], pkts, 2);
	fixture_close(&ctx, free_before);
}
