/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Impairment of one queue. A lane is one direction: receive or transmit. The effect on
 * each frame is drawn in the order of the frames, so that a seed and a sequence of frames
 * always give the same result, whatever the bursts. The exception is a reordered frame
 * with no frames behind it: it is released after some idle polls, and a sent one also when
 * a QP of the engine ends.
 */
#include <errno.h>
#include <string.h>

#include <rte_ether.h>

#include "base/base_alloc.h"
#include "base/splitmix64.h"
#include "port/impair.h"

#define PPM UINT32_C(1000000)
#define HELD_MAX 16       /* frames beyond that are not reordered */
#define HELD_BEHIND_MAX 8 /* at most this many frames overtake a reordered one */
#define IDLE_POLLS_MAX 16 /* idle polls until held frames are released */
#define CUT_BURSTS 1024   /* that a cut link loses in one poll */
#define READY_MAX 128     /* a burst, its duplicates and all held frames */

struct held {
	struct pkt pkt;
	unsigned behind; /* number of frames that have still to overtake it */
	bool overtaken;
};

struct lane {
	struct impair_conf conf;
	struct impair_stats *stats; /* own, unless impair_count_in() was called */
	struct impair_stats own;
	uint64_t rand;
	impair_choose_fn *choose; /* NULL: only the rates count */
	void *choose_arg;
	bool on;
	unsigned idle_polls;
	unsigned held_count;
	unsigned ready_count;
	unsigned ready_at;
	struct held held[HELD_MAX];
	struct pkt ready[READY_MAX]; /* [ready_at..ready_count) are to be passed on */
};

struct impair {
	struct port_queue inner;
	uint32_t max_frame;
	void (*held)(void *arg); /* NULL: none */
	void *held_arg;
	uint64_t *cut_lost; /* not NULL: the link is cut */
	struct lane lanes[IMPAIR_LANES];
};
static_assert(READY_MAX >= 3 * PKT_BURST + HELD_MAX, "what one poll may make ready");

/* Draws a number whatever the rate, so that a change of one rate leaves the effects of
 * the others unchanged. */
static bool
rand_ppm(struct lane *lane, uint32_t ppm)
{
	return splitmix64(&lane->rand) % PPM < ppm;
}

/* Passes a frame on, followed by held frames that have been overtaken often enough. */
static void
frame_forward(struct lane *lane, const struct pkt *pkt)
{
	unsigned kept = 0;

	lane->ready[lane->ready_count++] = *pkt;
	for (unsigned i = 0; i < lane->held_count; i++) {
		struct held *held = &lane->held[i];

		lane->stats->reordered += !held->overtaken;
		held->overtaken = true;
		if (--held->behind == 0)
			lane->ready[lane->ready_count++] = held->pkt;
		else
			lane->held[kept++] = *held;
	}
	lane->held_count = kept;
}

static void
frame_corrupt(struct lane *lane, struct pkt *pkt)
{
	uint64_t r = splitmix64(&lane->rand);
	uint32_t bytes;

	if (pkt->len <= RTE_ETHER_HDR_LEN)
		return;
	bytes = pkt->len - RTE_ETHER_HDR_LEN;
	pkt->data[RTE_ETHER_HDR_LEN + (r >> 3) % bytes] ^= (uint8_t)(1 << (r & 7));
	/* The port's checksum result was that of the original frame. */
	pkt->flags &= ~(uint32_t)PKT_RX_IPV4_CKSUM_OK;
	lane->stats->corrupted++;
}

/* The copy is in a transmit buffer of the port. Its release needs no special case. */
static void
frame_duplicate(struct impair *im, struct lane *lane, const struct pkt *pkt)
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
	lane->stats->duplicated++;
	frame_forward(lane, &copy);
}

static void
effect_draw(struct lane *lane, struct impair_effect *effect)
{
	effect->lose = rand_ppm(lane, lane->conf.loss_ppm);
	effect->duplicate = rand_ppm(lane, lane->conf.duplicate_ppm);
	effect->hold = rand_ppm(lane, lane->conf.reorder_ppm);
	effect->corrupt = rand_ppm(lane, lane->conf.corrupt_ppm);
	effect->behind = 1 + splitmix64(&lane->rand) % HELD_BEHIND_MAX;
}

static void
frame_impair(struct impair *im, struct lane *lane, struct pkt *pkt)
{
	const struct port_queue *inner = &im->inner;
	struct impair_effect effect = {.lose = false};

	if (impair_is_on(&lane->conf))
		effect_draw(lane, &effect);
	if (lane->choose != NULL)
		lane->choose(lane->choose_arg, pkt, &effect);
	if (effect.lose) {
		/* rx_release() also takes transmit buffers */
		inner->ops->rx_release(inner->queue, pkt, 1);
		lane->stats->lost++;
		return;
	}
	if (effect.duplicate)
		frame_duplicate(im, lane, pkt);
	if (effect.corrupt)
		frame_corrupt(lane, pkt);
	if (effect.hold && lane->held_count < HELD_MAX) {
		lane->held[lane->held_count++] =
			(struct held){.pkt = *pkt, .behind = effect.behind};
		if (lane == &im->lanes[IMPAIR_TX] && im->held != NULL)
			im->held(im->held_arg);
		return;
	}
	frame_forward(lane, pkt);
}

static void
held_release(struct lane *lane)
{
	for (unsigned i = 0; i < lane->held_count; i++)
		lane->ready[lane->ready_count++] = lane->held[i].pkt;
	lane->held_count = 0;
}

static void
idle_polls_count(struct lane *lane, unsigned frames)
{
	lane->idle_polls = frames == 0 ? lane->idle_polls + 1 : 0;
	if (lane->idle_polls >= IDLE_POLLS_MAX)
		held_release(lane);
}

/* Moves the frames that were not passed on to the front, and returns their number. */
static unsigned
ready_compact(struct lane *lane)
{
	unsigned left = lane->ready_count - lane->ready_at;

	memmove(lane->ready, lane->ready + lane->ready_at, left * sizeof(lane->ready[0]));
	lane->ready_at = 0;
	lane->ready_count = left;
	return left;
}

static void
ready_refill(struct impair *im, unsigned n)
{
	struct lane *lane = &im->lanes[IMPAIR_RX];
	struct pkt pkts[PKT_BURST];
	unsigned got;

	ready_compact(lane);
	got = im->inner.ops->rx_burst(im->inner.queue, pkts, n);
	for (unsigned i = 0; i < got; i++)
		frame_impair(im, lane, &pkts[i]);
	idle_polls_count(lane, got);
}

/* Returns whether all ready frames were sent. */
static bool
ready_send(struct impair *im)
{
	struct lane *lane = &im->lanes[IMPAIR_TX];
	unsigned left = lane->ready_count - lane->ready_at;

	while (left != 0) {
		unsigned sent = im->inner.ops->tx_burst(im->inner.queue,
			lane->ready + lane->ready_at, RTE_MIN(left, (unsigned)PKT_BURST));

		if (sent == 0)
			break;
		lane->ready_at += sent;
		left -= sent;
	}
	return ready_compact(lane) == 0;
}

/* rx_release() also takes transmit buffers. */
static void
cut_lose(struct impair *im, struct pkt *pkts, unsigned n)
{
	im->inner.ops->rx_release(im->inner.queue, pkts, n);
	*im->cut_lost += n;
}

/* choose() is asked all the same: counts of frames do not depend on how long the link is cut. */
static void
cut_send(struct impair *im, struct pkt *pkts, unsigned n)
{
	const struct lane *lane = &im->lanes[IMPAIR_TX];
	struct impair_effect ignored = {.lose = false};

	for (unsigned i = 0; lane->choose != NULL && i < n; i++)
		lane->choose(lane->choose_arg, &pkts[i], &ignored);
	cut_lose(im, pkts, n);
}

static void
cut_drain(struct impair *im)
{
	struct pkt pkts[PKT_BURST];
	unsigned got = PKT_BURST;

	/* Others may send all the time. */
	for (unsigned i = 0; got != 0 && i < CUT_BURSTS; i++) {
		got = im->inner.ops->rx_burst(im->inner.queue, pkts, PKT_BURST);
		cut_lose(im, pkts, got);
	}
}

static unsigned
impair_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct impair *im = queue;
	struct lane *lane = &im->lanes[IMPAIR_TX];

	if (im->cut_lost != NULL) {
		cut_send(im, pkts, n);
		return n;
	}
	if (!ready_send(im))
		return 0;
	if (!lane->on && lane->held_count == 0)
		return im->inner.ops->tx_burst(im->inner.queue, pkts, n);
	n = RTE_MIN(n, (unsigned)PKT_BURST);
	for (unsigned i = 0; i < n; i++)
		frame_impair(im, lane, &pkts[i]);
	lane->idle_polls = 0;
	ready_send(im);
	return n;
}

/* Also sends, because the engine polls in every pass, whether or not it has frames to
 * send. */
static unsigned
impair_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct impair *im = queue;
	struct lane *lane = &im->lanes[IMPAIR_RX];
	unsigned left = lane->ready_count - lane->ready_at;

	if (im->cut_lost != NULL) {
		cut_drain(im);
		return 0;
	}
	idle_polls_count(&im->lanes[IMPAIR_TX], 0);
	ready_send(im);
	n = RTE_MIN(n, (unsigned)PKT_BURST);
	if (left < n) {
		ready_refill(im, n - left);
		left = lane->ready_count;
	}
	n = RTE_MIN(n, left);
	memcpy(pkts, lane->ready + lane->ready_at, n * sizeof(*pkts));
	lane->ready_at += n;
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

/* None: a descriptor would not report held frames. */
static int
impair_wait_fd(void *queue)
{
	(void)queue;
	return -1;
}

/* Frames that the wrapper has lost or holds do not count. */
static bool
impair_tx_waits(void *queue, uint32_t qpn, struct answer_wait *wait, uint64_t now)
{
	const struct port_queue *inner = &((struct impair *)queue)->inner;

	return inner->ops->tx_waits != NULL &&
	       inner->ops->tx_waits(inner->queue, qpn, wait, now);
}

static void
impair_rx_answered(void *queue)
{
	const struct port_queue *inner = &((struct impair *)queue)->inner;

	if (inner->ops->rx_answered != NULL)
		inner->ops->rx_answered(inner->queue);
}

static bool
impair_holds(void *queue)
{
	const struct lane *lane = &((struct impair *)queue)->lanes[IMPAIR_TX];

	return lane->held_count != 0 || lane->ready_at != lane->ready_count;
}

static void
impair_held_send(void *queue)
{
	struct impair *im = queue;

	/* ready[] has room for them then */
	if (ready_send(im)) {
		held_release(&im->lanes[IMPAIR_TX]);
		ready_send(im);
	}
}

/* No link_up and no close: the port belongs to the code that opened it. */
static const struct port_ops impair_ops = {
	.rx_burst = impair_rx_burst,
	.rx_release = impair_rx_release,
	.tx_alloc = impair_tx_alloc,
	.tx_release = impair_tx_release,
	.tx_burst = impair_tx_burst,
	.holds = impair_holds,
	.held_send = impair_held_send,
	.wait_fd = impair_wait_fd,
	.tx_waits = impair_tx_waits,
	.rx_answered = impair_rx_answered,
};

int
impair_set(struct impair *im, enum impair_lane which, const struct impair_conf *conf)
{
	struct lane *lane = &im->lanes[which];

	if (conf == NULL || conf->loss_ppm > PPM || conf->duplicate_ppm > PPM ||
		conf->reorder_ppm > PPM || conf->corrupt_ppm > PPM)
		return -EINVAL;
	lane->conf = *conf;
	lane->rand = conf->seed;
	lane->on = impair_is_on(conf) || lane->choose != NULL;
	return 0;
}

void
impair_choose(
	struct impair *im, enum impair_lane which, impair_choose_fn *choose, void *arg)
{
	struct lane *lane = &im->lanes[which];

	lane->choose = choose;
	lane->choose_arg = arg;
	lane->on = true;
}

int
impair_wrap(const struct port_queue *inner, uint32_t max_frame, struct impair **out,
	struct port_queue *outer)
{
	struct impair *im = alloc_get(&alloc_plain, "impairment", sizeof(*im));

	if (im == NULL)
		return -ENOMEM;
	im->inner = *inner;
	im->max_frame = max_frame;
	for (unsigned i = 0; i < IMPAIR_LANES; i++)
		im->lanes[i].stats = &im->lanes[i].own;
	*out = im;
	*outer = (struct port_queue){.ops = &impair_ops, .queue = im};
	return 0;
}

void
impair_set_inner(struct impair *im, const struct port_queue *inner)
{
	im->inner = *inner;
}

void
impair_cut(struct impair *im, uint64_t *lost)
{
	if (lost == NULL) {
		if (im->cut_lost != NULL)
			cut_drain(im);
		im->cut_lost = NULL;
		return;
	}
	im->cut_lost = lost;
	for (unsigned i = 0; i < IMPAIR_LANES; i++) {
		struct lane *lane = &im->lanes[i];

		held_release(lane);
		cut_lose(im, lane->ready + lane->ready_at,
			lane->ready_count - lane->ready_at);
		lane->ready_at = lane->ready_count = 0;
	}
}

void
impair_on_hold(struct impair *im, void (*held)(void *arg), void *arg)
{
	im->held = held;
	im->held_arg = arg;
}

void
impair_count_in(struct impair *im, enum impair_lane which, struct impair_stats *stats)
{
	im->lanes[which].stats = stats;
}

void
impair_stats_get(
	const struct impair *im, enum impair_lane which, struct impair_stats *out)
{
	*out = *im->lanes[which].stats;
}

void
impair_unwrap(struct impair *im)
{
	for (unsigned i = 0; i < IMPAIR_LANES; i++) {
		struct lane *lane = &im->lanes[i];

		held_release(lane);
		if (i == IMPAIR_TX)
			ready_send(im);
		im->inner.ops->rx_release(im->inner.queue, lane->ready + lane->ready_at,
			lane->ready_count - lane->ready_at);
	}
	alloc_put(&alloc_plain, im, sizeof(*im));
}
