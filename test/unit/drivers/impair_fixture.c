/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "loop/loop.h"
#include "impair_fixture.h"

void
fixture_open(struct impair_fixture *ctx, const struct impair_conf *conf)
{
	memset(ctx, 0, sizeof(*ctx));
	assert_int_equal(
		loop_open(1, 256, RING, &alloc_plain, &ctx->port[0], &ctx->port[1]), 0);
	ctx->inner = (struct port_queue){ctx->port[1].ops, ctx->port[1].queues[0]};
	assert_int_equal(impair_wrap(&ctx->inner, 256, &ctx->im, &ctx->outer), 0);
	assert_int_equal(impair_set(ctx->im, IMPAIR_RX, conf), 0);
}

unsigned
pool_free(struct port *port)
{
	struct pkt pkts[2 * RING + 512];
	unsigned n = 0;

	while (n < RTE_DIM(pkts) &&
		port->ops->tx_alloc(port->queues[0], &pkts[n], 1) == 1)
		n++;
	port->ops->tx_release(port->queues[0], pkts, n);
	return n;
}

void
fixture_close(struct impair_fixture *ctx, unsigned free_before[2])
{
	impair_unwrap(ctx->im);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pool_free(&ctx->port[i]), free_before[i]);
	for (unsigned i = 0; i < 2; i++)
		ctx->port[i].ops->close(ctx->port[i].drv);
}

static uint8_t
byte_of(uint32_t number, unsigned at)
{
	return (uint8_t)(number * 31 + at * 7);
}

void
numbered_frame_fill(struct pkt *pkt, uint32_t number)
{
	/* The number is in the Ethernet header, which is not corrupted. */
	memcpy(pkt->data, &number, sizeof(number));
	for (unsigned at = sizeof(number); at < LEN; at++)
		pkt->data[at] = byte_of(number, at);
	pkt->len = LEN;
}

static unsigned
bits_wrong(struct impair_fixture *ctx, const struct pkt *pkt, uint32_t number)
{
	unsigned bits = 0;

	for (unsigned at = sizeof(number); at < LEN; at++) {
		uint8_t diff = pkt->data[at] ^ byte_of(number, at);

		if (diff != 0)
			ctx->bad_at = at;
		bits += (unsigned)__builtin_popcount(diff);
	}
	return bits;
}

void
frames_count(struct impair_fixture *ctx, const struct pkt *pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t number;
		unsigned bits;

		memcpy(&number, pkts[i].data, sizeof(number));
		assert_in_range(number, 0, FRAMES - 1);
		assert_int_equal(pkts[i].len, LEN);
		bits = bits_wrong(ctx, &pkts[i], number);
		assert_in_range(bits, 0, 1);
		if (bits == 1) {
			assert_in_range(ctx->bad_at, 14, LEN - 1);
			ctx->corrupt_seen++;
		}
		ctx->arrived[number]++;
		assert_true(ctx->count < RTE_DIM(ctx->order));
		ctx->order[ctx->count++] = number;
	}
}
