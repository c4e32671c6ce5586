/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fates are drawn in the order of arrival, so a seed and a sequence of frames always give
 * the same result, however the frames fall into bursts. (Reordered ones that nothing
 * follows are let go after some idle polls, which does depend on the polling.)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "impair/impair.h"

#define PPM UINT32_C(1000000)
#define HELD_MAX 16 /* more are let through in order */
#define HELD_BEHIND_MAX 8
#define IDLE_POLLS_MAX 16 /* polls without a frame until what is held back comes */
#define READY_MAX 128     /* a burst, its duplicates and all that was held */

struct held {
	struct pkt pkt;
	unsigned behind; /* frames that still overtake it */
};

struct impair {
	struct port_queue inner;
	struct impair_conf conf;
	struct impair_stats stats;
	uint64_t rand;
	uint32_t max_frame;
	unsigned idle_polls;
	unsigned held_count;
	unsigned ready_count;
	unsigned ready_at;
	struct held held[HELD_MAX];
	struct pkt ready[READY_MAX]; /* [ready_at..ready_count) are to be handed out */
};
static_assert(READY_MAX >= 3 * PKT_BURST + HELD_MAX, "what one poll may make ready");

/* SplitMix64. */
static uint64_t
draw(struct impair *im)
{
	uint64_t z = im->rand += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Draws whatever the probability, so that changing one leaves the others' fates alone. */
static bool
draw_ppm(struct impair *im, uint32_t ppm)
{
	return draw(im) % PPM < ppm;
}

/* To the engine; what was held back behind this one follows it. */
static void
pass(struct impair *im, const struct pkt *pkt)
{
	unsigned kept = 0;

	im->ready[im->ready_count++] = *pkt;
	for (unsigned i = 0; i < im->held_count; i++) {
		struct held *held = &im->held[i];

		if (--held->behind == 0)
			im->ready[im->ready_count++] = held->pkt;
		else
			im->held[kept++] = *held;
	}
	im->held_count = kept;
}

static void
corrupt(struct impair *im, struct pkt *pkt)
{
	uint64_t r = draw(im);
	uint32_t bytes;

	if (pkt->len <= RTE_ETHER_HDR_LEN)
		return;
	bytes = pkt->len - RTE_ETHER_HDR_LEN;
	pkt->data[RTE_ETHER_HDR_LEN + (r >> 3) % bytes] ^= (uint8_t)(1 << (r & 7));
	/* The port's verdict was on what it had seen. */
	pkt->flags &= ~(uint32_t)PKT_RX_IPV4_CKSUM_OK;
	im->stats.corrupted++;
}

/* A copy in one of the port's own buffers: whoever gives it back needs not know. */
static void
duplicate(struct impair *im, const struct pkt *pkt)
{
	const struct port_queue *inner = &im->inner;
	struct pkt copy;

	if (pkt->len > im->max_frame || inner->ops->tx_alloc(inner->queue, &copy, 1) != 1)
		return;
	if (copy.room < pkt->len) {
		inner->ops->tx_release(inner->queue, &copy, 1);
		return;
	}
	memcpy(copy.data, pkt->data, pkt->len);
	copy.len = pkt->len;
	copy.flags = pkt->flags;
	im->stats.duplicated++;
	pass(im, &copy);
}

static void
take(struct impair *im, struct pkt *pkt)
{
	const struct port_queue *inner = &im->inner;
	bool lose = draw_ppm(im, im->conf.loss_ppm);
	bool copy = draw_ppm(im, im->conf.duplicate_ppm);
	bool hold = draw_ppm(im, im->conf.reorder_ppm);
	bool spoil = draw_ppm(im, im->conf.corrupt_ppm);
	unsigned behind = 1 + draw(im) % HELD_BEHIND_MAX;

	if (lose) {
		inner->ops->rx_release(inner->queue, pkt, 1);
		im->stats.lost++;
		return;
	}
	if (copy)
		duplicate(im, pkt);
	if (spoil)
		corrupt(im, pkt);
	if (hold && im->held_count < HELD_MAX) {
		im->held[im->held_count++] = (struct held){*pkt, behind};
		im->stats.reordered++;
		return;
	}
	pass(im, pkt);
}

static void
let_go(struct impair *im)
{
	for (unsigned i = 0; i < im->held_count; i++)
		im->ready[im->ready_count++] = im->held[i].pkt;
	im->held_count = 0;
}

static void
refill(struct impair *im, unsigned n)
{
	struct pkt pkts[PKT_BURST];
	unsigned got, left = im->ready_count - im->ready_at;

	memmove(im->ready, im->ready + im->ready_at, left * sizeof(im->ready[0]));
	im->ready_at = 0;
	im->ready_count = left;
	got = im->inner.ops->rx_burst(im->inner.queue, pkts, n);
	for (unsigned i = 0; i < got; i++)
		take(im, &pkts[i]);
	im->idle_polls = got == 0 ? im->idle_polls + 1 : 0;
	if (im->idle_polls >= IDLE_POLLS_MAX)
		let_go(im);
}

static unsigned
impair_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct impair *im = queue;
	unsigned left = im->ready_count - im->ready_at;

	n = RTE_MIN(n, (unsigned)PKT_BURST);
	if (left < n) {
		refill(im, n - left);
		left = im->ready_count;
	}
	n = RTE_MIN(n, left);
	memcpy(pkts, im->ready + im->ready_at, n * sizeof(*pkts));
	im->ready_at += n;
	return n;
}

static void
impair_rx_release(void *queue, struct pkt *pkts, unsigned n)
{
	struct impair *im = queue;

	im->inner.ops->rx_release(im->inner.queue, pkts, n);
}

static unsigned
impair_tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	struct impair *im = queue;

	return im->inner.ops->tx_alloc(im->inner.queue, pkts, n);
}

static void
impair_tx_release(void *queue, struct pkt *pkts, unsigned n)
{
	struct impair *im = queue;

	im->inner.ops->tx_release(im->inner.queue, pkts, n);
}

static unsigned
impair_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct impair *im = queue;

	return im->inner.ops->tx_burst(im->inner.queue, pkts, n);
}

/* None: a descriptor does not know of frames that are held back here. */
static int
impair_wait_fd(void *queue)
{
	(void)queue;
	return -1;
}

/* The port is closed by the one who opened it: no link_up, no close. */
static const struct port_ops impair_ops = {
	.rx_burst = impair_rx_burst,
	.rx_release = impair_rx_release,
	.tx_alloc = impair_tx_alloc,
	.tx_release = impair_tx_release,
	.tx_burst = impair_tx_burst,
	.wait_fd = impair_wait_fd,
};

int
impair_set(struct impair *im, const struct impair_conf *conf)
{
	if (conf == NULL || conf->loss_ppm > PPM || conf->duplicate_ppm > PPM ||
		conf->reorder_ppm > PPM || conf->corrupt_ppm > PPM)
		return -EINVAL;
	im->conf = *conf;
	im->rand = conf->seed;
	return 0;
}

int
impair_wrap(const struct port_queue *inner, const struct impair_conf *conf,
	uint32_t max_frame, struct impair **out, struct port_queue *outer)
{
	struct impair *im = calloc(1, sizeof(*im));
	int ret;

	if (im == NULL)
		return -ENOMEM;
	im->inner = *inner;
	im->max_frame = max_frame;
	ret = impair_set(im, conf);
	if (ret != 0) {
		free(im);
		return ret;
	}
	*out = im;
	*outer = (struct port_queue){.ops = &impair_ops, .queue = im};
	return 0;
}

void
impair_stats_get(const struct impair *im, struct impair_stats *out)
{
	*out = im->stats;
}

void
impair_unwrap(struct impair *im)
{
	let_go(im);
	im->inner.ops->rx_release(im->inner.queue, im->ready + im->ready_at,
		im->ready_count - im->ready_at);
	free(im);
}
