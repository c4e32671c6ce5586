/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames travel by reference. The sender takes a buffer from the pool of its queue, a
 * ring carries the packet view, and the receiver's release returns the buffer to that
 * pool. Each ring has one producer and one consumer, the engines of the two sides. Only
 * the queue's engine takes from its pool, and any thread returns to it.
 */
#include <errno.h>
#include <string.h>

#include "base/ringmem.h"
#include "loop/loop.h"
#include "port/rounds.h"

#define LOOP_MAX_QUEUES 256
#define LOOP_MIN_FRAME 64
#define LOOP_MAX_RING (UINT32_C(1) << 20)
/* buffers besides those in the ring: being written or read */
#define LOOP_SPARE (8 * PKT_BURST)

struct loop_buf {
	struct loop_buf *next;
	struct loop_queue *home; /* the queue whose pool it belongs to */
} LINE_ALIGNED;

struct loop_queue {
	struct rte_ring *rx;
	struct loop_queue *peer;
	struct loop_side *side;
	uint32_t index;         /* in loop->queues */
	struct loop_buf *spare; /* used by this queue's engine only */
	uint32_t max_frame;
	size_t size; /* of the allocation, which begins with this structure */
	struct loop_buf *returned LINE_ALIGNED; /* by any thread */
};
static_assert(
	sizeof(struct loop_queue) % RTE_CACHE_LINE_SIZE == 0, "the ring lies behind it");

struct loop_side {
	struct loop *loop;
	bool closed;
	bool down; /* set by loop_set_link() */
};

struct loop {
	struct alloc mem;
	size_t size;
	unsigned queue_count;
	unsigned open;         /* open sides */
	struct rounds *rounds; /* of the engines of both sides */
	struct loop_side sides[2];
	void *queues[]; /* of side 0, then of side 1 */
};

/* Returns a chain of buffers of one pool. Buffers leave the list only all at once, so a
 * head that is seen twice means the same list (no ABA problem). */
static inline void
loop_pool_put(struct loop_queue *home, struct loop_buf *first, struct loop_buf *last)
{
	struct loop_buf *head = __atomic_load_n(&home->returned, __ATOMIC_RELAXED);

	do {
		last->next = head;
		/* Pairs with the acquire in loop_pool_get(). */
	} while (!__atomic_compare_exchange_n(
		&home->returned, &head, first, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static inline struct loop_buf *
loop_pool_get(struct loop_queue *q)
{
	struct loop_buf *buf = q->spare;

	if (buf == NULL) {
		/* Pairs with the release in loop_pool_put(). */
		if (__atomic_load_n(&q->returned, __ATOMIC_RELAXED) != NULL)
			buf = __atomic_exchange_n(&q->returned, NULL, __ATOMIC_ACQUIRE);
		if (buf == NULL)
			return NULL;
	}
	q->spare = buf->next;
	return buf;
}

/* A burst is mostly from one pool: one exchange for each run of buffers of a pool. */
static void
loop_release(void *queue, struct pkt *pkts, unsigned n)
{
	(void)queue;
	for (unsigned i = 0; i < n;) {
		struct loop_buf *first = pkts[i].owner, *last = first;

		for (i++; i < n; i++) {
			struct loop_buf *buf = pkts[i].owner;

			if (buf->home != first->home)
				break;
			last->next = buf;
			last = buf;
		}
		loop_pool_put(first->home, first, last);
	}
}

static unsigned
loop_tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	struct loop_queue *q = queue;
	unsigned i;

	for (i = 0; i < n; i++) {
		struct loop_buf *buf = loop_pool_get(q);

		if (buf == NULL)
			break;
		pkts[i] = (struct pkt){.data = (uint8_t *)(buf + 1),
			.room = (uint16_t)q->max_frame,
			.owner = buf};
	}
	return i;
}

static unsigned
loop_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct loop_queue *q = queue;

	return rte_ring_sc_dequeue_burst_elem(q->rx, pkts, sizeof(*pkts), n, NULL);
}

static inline bool
loop_side_link_up(const struct loop_side *side)
{
	const struct loop *loop = side->loop;
	const struct loop_side *other = &loop->sides[side == &loop->sides[0]];

	return !__atomic_load_n(&other->closed, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&other->down, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&side->down, __ATOMIC_RELAXED);
}

static unsigned
loop_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct loop_queue *q = queue;

	/* The link is down: frames are lost, as with an unplugged cable. */
	if (unlikely(!loop_side_link_up(q->side))) {
		loop_release(q, pkts, n);
		return n;
	}
	for (unsigned i = 0; i < n; i++)
		pkts[i].flags = 0;
	return rte_ring_sp_enqueue_burst_elem(q->peer->rx, pkts, sizeof(*pkts), n, NULL);
}

static int
loop_wait_fd(void *queue)
{
	(void)queue;
	return -1;
}

static struct rounds *
loop_rounds(void *queue, uint32_t *index)
{
	const struct loop_queue *q = queue;

	*index = q->index;
	return q->side->loop->rounds;
}

static bool
loop_link_up(void *drv)
{
	return loop_side_link_up(drv);
}

static int
loop_set_link(void *drv, bool up)
{
	struct loop_side *side = drv;

	__atomic_store_n(&side->down, !up, __ATOMIC_RELAXED);
	return 0;
}

static void
loop_free(struct loop *loop)
{
	struct alloc mem = loop->mem;

	for (unsigned i = 0; i < 2 * loop->queue_count; i++) {
		struct loop_queue *q = loop->queues[i];

		if (q != NULL)
			alloc_put(&mem, q, q->size);
	}
	alloc_put(&mem, loop->rounds, rounds_size(2 * loop->queue_count));
	alloc_put(&mem, loop, loop->size);
}

static void
loop_close(void *drv)
{
	struct loop_side *side = drv;
	struct loop *loop = side->loop;

	__atomic_store_n(&side->closed, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < loop->queue_count; i++)
		rounds_leave(loop->rounds,
			i + (side == &loop->sides[0] ? 0 : loop->queue_count));
	/* Acquire and release: the last side to close sees all stores of the other. */
	if (__atomic_sub_fetch(&loop->open, 1, __ATOMIC_ACQ_REL) == 0)
		loop_free(loop);
}

static const struct port_ops loop_ops = {
	.rx_burst = loop_rx_burst,
	.rx_release = loop_release,
	.tx_alloc = loop_tx_alloc,
	.tx_release = loop_release,
	.tx_burst = loop_tx_burst,
	.wait_fd = loop_wait_fd,
	.rounds = loop_rounds,
	.link_up = loop_link_up,
	.set_link = loop_set_link,
	.close = loop_close,
};

/* One allocation: the queue, its receive ring, its transmit buffers. */
static struct loop_queue *
loop_queue_create(
	struct loop *loop, struct loop_side *side, uint32_t max_frame, uint32_t ring_size)
{
	size_t ring_bytes = ringmem_size(ring_size, sizeof(struct pkt));
	size_t stride = RTE_ALIGN_CEIL(sizeof(struct loop_buf) + max_frame, LINE_SIZE);
	uint32_t buffers = ring_size + LOOP_SPARE;
	size_t size = sizeof(struct loop_queue) + ring_bytes + buffers * stride;
	struct loop_queue *q = alloc_get(&loop->mem, "loop queue", size);
	uint8_t *at;

	if (q == NULL)
		return NULL;
	q->rx = (struct rte_ring *)(q + 1);
	q->side = side;
	q->max_frame = max_frame;
	q->size = size;
	(void)ringmem_init(q->rx, ring_size);
	at = (uint8_t *)q->rx + ring_bytes;
	/* In reverse, so that buffers are first taken in the order of memory. */
	for (uint32_t i = buffers; i-- > 0;) {
		struct loop_buf *buf = (struct loop_buf *)(at + i * stride);

		buf->home = q;
		buf->next = q->spare;
		q->spare = buf;
	}
	return q;
}

static int
loop_queues_create(struct loop *loop, uint32_t max_frame, uint32_t ring_size)
{
	unsigned n = loop->queue_count;

	loop->rounds = alloc_get(&loop->mem, "loop rounds", rounds_size(2 * n));
	if (loop->rounds == NULL)
		return -ENOMEM;
	loop->rounds->count = 2 * n;
	for (unsigned i = 0; i < 2 * n; i++) {
		loop->queues[i] = loop_queue_create(
			loop, &loop->sides[i / n], max_frame, ring_size);
		if (loop->queues[i] == NULL)
			return -ENOMEM;
		((struct loop_queue *)loop->queues[i])->index = i;
	}
	for (unsigned i = 0; i < n; i++) {
		struct loop_queue *a = loop->queues[i], *b = loop->queues[n + i];

		a->peer = b;
		b->peer = a;
	}
	return 0;
}

/* Makes a locally administered address from a number that is unique in this process. */
static void
loop_mac(uint8_t mac[6], uint32_t number)
{
	memset(mac, 0, 6);
	mac[0] = 0x02;
	for (unsigned i = 0; i < 4; i++)
		mac[2 + i] = (uint8_t)(number >> (24 - 8 * i));
}

static void
loop_port_fill(struct loop *loop, unsigned side, uint32_t number, uint32_t max_frame,
	uint32_t ring_size, struct port *port)
{
	memset(port, 0, sizeof(*port));
	port->ops = &loop_ops;
	port->drv = &loop->sides[side];
	port->queues = &loop->queues[side * loop->queue_count];
	port->queue_count = loop->queue_count;
	port->caps.max_frame = max_frame;
	port->caps.rx_ring = ring_size;
	loop_mac(port->mac, number);
}

int
loop_open(unsigned queues, uint32_t max_frame, uint32_t ring_size,
	const struct alloc *mem, struct port *a, struct port *b)
{
	static uint32_t serial;
	uint32_t number;
	struct loop *loop;
	size_t size;
	int ret;

	if (queues == 0 || queues > LOOP_MAX_QUEUES || max_frame < LOOP_MIN_FRAME ||
		max_frame > UINT16_MAX || ring_size == 0 || ring_size > LOOP_MAX_RING ||
		!rte_is_power_of_2(ring_size))
		return -EINVAL;
	size = sizeof(*loop) + 2 * queues * sizeof(loop->queues[0]);
	loop = alloc_get(mem, "loop", size);
	if (loop == NULL)
		return -ENOMEM;
	loop->mem = *mem;
	loop->size = size;
	loop->queue_count = queues;
	loop->open = 2;
	loop->sides[0].loop = loop->sides[1].loop = loop;
	ret = loop_queues_create(loop, max_frame, ring_size);
	if (ret != 0) {
		loop_free(loop);
		return ret;
	}
	number = __atomic_fetch_add(&serial, 2, __ATOMIC_RELAXED);
	loop_port_fill(loop, 0, number + 1, max_frame, ring_size, a);
	loop_port_fill(loop, 1, number + 2, max_frame, ring_size, b);
	return 0;
}
