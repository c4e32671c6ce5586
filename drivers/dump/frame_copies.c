/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump/frame_copies.h"
#include "wire/pkt_parse.h"

/* In front of each copy. */
struct copy_head {
	uint64_t when;
	uint32_t qpn, len, kept, lost;
	uint32_t out;
	uint32_t reserved;
};

struct frame_copies {
	struct port_queue inner;
	struct frame_filter filter;
	const uint64_t *now;
	uint32_t mask;      /* slots - 1 */
	uint32_t slot_size; /* bytes */
	uint8_t *slots;
	uint32_t prod LINE_ALIGNED; /* written by the engine */
	uint32_t lost;
	uint32_t cons LINE_ALIGNED; /* written by the reader */
};

/* Where the copies of a burst begin, as the ring was before a frame. */
struct copy_mark {
	uint32_t prod, lost;
};

static struct copy_head *
slot_at(const struct frame_copies *c, uint32_t index)
{
	return (struct copy_head *)(c->slots + (size_t)(index & c->mask) * c->slot_size);
}

/* Returns the QPN that a received packet is for, or 0 if the frame is no RoCEv2 packet. */
static uint32_t
rx_qpn(const struct frame_copies *c, const struct pkt *pkt)
{
	struct pkt_view view;

	return pkt_parse_headers(pkt, c->filter.vlan, &view) == DROP_none ? view.dest_qpn
									  : 0;
}

/* Copies a frame behind the copies that mark counts. */
static void
frame_copy_write(
	struct frame_copies *c, const struct pkt *pkt, bool out, struct copy_mark *mark)
{
	uint32_t qpn = out ? PKT_TX_QPN(pkt) : rx_qpn(c, pkt);
	struct copy_head *head;

	if (c->filter.qpn != 0 && c->filter.qpn != qpn)
		return;
	/* Pairs with the release in frame_copies_release(): the slot has been read. */
	if (mark->prod - __atomic_load_n(&c->cons, __ATOMIC_ACQUIRE) > c->mask) {
		mark->lost++;
		return;
	}
	head = slot_at(c, mark->prod++);
	*head = (struct copy_head){.when = *c->now,
		.qpn = qpn,
		.len = pkt->len,
		.kept = RTE_MIN((uint32_t)pkt->len, c->filter.snap),
		.lost = mark->lost,
		.out = out};
	memcpy(head + 1, pkt->data, head->kept);
}

static void
copies_publish(struct frame_copies *c, const struct copy_mark *mark)
{
	__atomic_store_n(&c->lost, mark->lost, __ATOMIC_RELAXED);
	/* Pairs with the acquire in frame_copies_peek(). */
	__atomic_store_n(&c->prod, mark->prod, __ATOMIC_RELEASE);
}

static unsigned
copies_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct frame_copies *c = queue;
	struct copy_mark mark = {c->prod, c->lost};
	unsigned got = c->inner.ops->rx_burst(c->inner.queue, pkts, n);

	if (got == 0 || !c->filter.in)
		return got;
	for (unsigned i = 0; i < got; i++)
		frame_copy_write(c, &pkts[i], false, &mark);
	copies_publish(c, &mark);
	return got;
}

/* Copies before it sends: a sent frame is the port's. Copies of frames that the port did not
 * take are not published. */
static unsigned
copies_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct frame_copies *c = queue;
	struct copy_mark marks[PKT_BURST + 1] = {{c->prod, c->lost}};
	unsigned sent;

	if (!c->filter.out)
		return c->inner.ops->tx_burst(c->inner.queue, pkts, n);
	n = RTE_MIN(n, (unsigned)PKT_BURST);
	for (unsigned i = 0; i < n; i++) {
		marks[i + 1] = marks[i];
		frame_copy_write(c, &pkts[i], true, &marks[i + 1]);
	}
	sent = c->inner.ops->tx_burst(c->inner.queue, pkts, n);
	copies_publish(c, &marks[sent]);
	return sent;
}

static void
copies_rx_release(void *queue, struct pkt *pkts, unsigned n)
{
	const struct frame_copies *c = queue;

	c->inner.ops->rx_release(c->inner.queue, pkts, n);
}

static unsigned
copies_tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	const struct frame_copies *c = queue;

	return c->inner.ops->tx_alloc(c->inner.queue, pkts, n);
}

static void
copies_tx_release(void *queue, struct pkt *pkts, unsigned n)
{
	const struct frame_copies *c = queue;

	c->inner.ops->tx_release(c->inner.queue, pkts, n);
}

static int
copies_wait_fd(void *queue)
{
	const struct frame_copies *c = queue;

	return c->inner.ops->wait_fd(c->inner.queue);
}

static bool
copies_tx_waits(void *queue, uint32_t qpn, struct answer_wait *wait, uint64_t now)
{
	const struct frame_copies *c = queue;

	return c->inner.ops->tx_waits != NULL &&
	       c->inner.ops->tx_waits(c->inner.queue, qpn, wait, now);
}

static void
copies_rx_answered(void *queue)
{
	const struct frame_copies *c = queue;

	if (c->inner.ops->rx_answered != NULL)
		c->inner.ops->rx_answered(c->inner.queue);
}

/* No link_up, rx_arm and close: the port belongs to the code that opened it. */
static const struct port_ops copies_ops = {
	.rx_burst = copies_rx_burst,
	.rx_release = copies_rx_release,
	.tx_alloc = copies_tx_alloc,
	.tx_release = copies_tx_release,
	.tx_burst = copies_tx_burst,
	.wait_fd = copies_wait_fd,
	.tx_waits = copies_tx_waits,
	.rx_answered = copies_rx_answered,
};

bool
frame_copies_peek(struct frame_copies *c, struct frame_copy *copy)
{
	const struct copy_head *head;

	/* Pairs with the release in copies_publish(). */
	if (__atomic_load_n(&c->prod, __ATOMIC_ACQUIRE) == c->cons)
		return false;
	head = slot_at(c, c->cons);
	*copy = (struct frame_copy){.when = head->when,
		.qpn = head->qpn,
		.len = head->len,
		.kept = head->kept,
		.lost = head->lost,
		.out = head->out,
		.data = (const uint8_t *)(head + 1)};
	return true;
}

void
frame_copies_release(struct frame_copies *c)
{
	/* Pairs with the acquire in frame_copy_write(). */
	__atomic_store_n(&c->cons, c->cons + 1, __ATOMIC_RELEASE);
}

uint32_t
frame_copies_lost(const struct frame_copies *c)
{
	return __atomic_load_n(&c->lost, __ATOMIC_RELAXED);
}

/* Control path. */

uint32_t
frame_copies_slot_size(const struct frame_filter *filter)
{
	return RTE_ALIGN_CEIL(
		(uint32_t)sizeof(struct copy_head) + filter->snap, LINE_SIZE);
}

int
frame_copies_wrap(const struct port_queue *inner, const struct frame_filter *filter,
	const uint64_t *now, uint32_t slots, struct frame_copies **out,
	struct port_queue *outer)
{
	uint32_t slot_size = frame_copies_slot_size(filter);
	struct frame_copies *c = aligned_alloc(LINE_SIZE, sizeof(*c));
	uint8_t *mem = aligned_alloc(LINE_SIZE, (size_t)slots * slot_size);

	if (c == NULL || mem == NULL) {
		free(c);
		free(mem);
		return -ENOMEM;
	}
	*c = (struct frame_copies){.inner = *inner,
		.filter = *filter,
		.now = now,
		.mask = slots - 1,
		.slot_size = slot_size,
		.slots = mem};
	*out = c;
	*outer = (struct port_queue){.ops = &copies_ops, .queue = c};
	return 0;
}

const struct port_queue *
frame_copies_inner(const struct frame_copies *c)
{
	return &c->inner;
}

void
frame_copies_free(struct frame_copies *c)
{
	free(c->slots);
	free(c);
}
