/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "fake_port.h"

#define FRAME_ROOM 4300

static bool
list_put(struct fake_list *l, const struct pkt *pkt)
{
	if (l->count == FAKE_FRAMES)
		return false;
	l->pkts[(l->head + l->count++) % FAKE_FRAMES] = *pkt;
	return true;
}

static bool
list_get(struct fake_list *l, struct pkt *pkt)
{
	if (l->count == 0)
		return false;
	*pkt = l->pkts[l->head];
	l->head = (l->head + 1) % FAKE_FRAMES;
	l->count--;
	return true;
}

static unsigned
rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct fake_queue *q = queue;
	unsigned got = 0;

	pthread_mutex_lock(&q->port->lock);
	q->rx_calls++;
	while (got < n && list_get(&q->rx, &pkts[got]))
		got++;
	q->port->live += got;
	pthread_mutex_unlock(&q->port->lock);
	return got;
}

static void
release(void *queue, struct pkt *pkts, unsigned n)
{
	struct fake_queue *q = queue;

	pthread_mutex_lock(&q->port->lock);
	assert(q->port->live >= n);
	q->port->live -= n;
	for (unsigned i = 0; i < n; i++) {
		assert(pkts[i].owner == q->port);
		free(pkts[i].data);
	}
	pthread_mutex_unlock(&q->port->lock);
}

static void
tx_release(void *queue, struct pkt *pkts, unsigned n)
{
	struct fake_queue *q = queue;

	release(queue, pkts, n);
	pthread_mutex_lock(&q->port->lock);
	q->port->alloc_left += n;
	pthread_mutex_unlock(&q->port->lock);
}

static unsigned
tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	struct fake_queue *q = queue;
	struct fake_port *f = q->port;

	pthread_mutex_lock(&f->lock);
	n = RTE_MIN(n, f->alloc_left);
	f->alloc_left -= n;
	f->live += n;
	for (unsigned i = 0; i < n; i++)
		pkts[i] = (struct pkt){
			.data = malloc(FRAME_ROOM), .room = FRAME_ROOM, .owner = f};
	pthread_mutex_unlock(&f->lock);
	return n;
}

static unsigned
tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct fake_queue *q = queue;
	unsigned sent = 0;

	pthread_mutex_lock(&q->port->lock);
	q->tx_calls++;
	while (sent < RTE_MIN(n, q->tx_take) && list_put(&q->tx, &pkts[sent])) {
		assert(pkts[sent].len >= 42 && pkts[sent].len <= pkts[sent].room);
		sent++;
	}
	q->port->live -= sent;
	q->port->alloc_left += sent;
	pthread_mutex_unlock(&q->port->lock);
	return sent;
}

static int
wait_fd(void *queue)
{
	(void)queue;
	return -1;
}

static bool
link_up(void *drv)
{
	struct fake_port *f = drv;

	return !__atomic_load_n(&f->link_down, __ATOMIC_RELAXED);
}

static int
flow_queue(void *drv, const struct port_flow *flow)
{
	const struct fake_port *f = drv;

	return f->rss != NULL ? rss_queue(f->rss, flow) : -1;
}

static void
close_port(void *drv)
{
	struct fake_port *f = drv;

	f->closed = true;
}

static const struct port_ops ops = {
	.rx_burst = rx_burst,
	.rx_release = release,
	.tx_alloc = tx_alloc,
	.tx_release = tx_release,
	.tx_burst = tx_burst,
	.wait_fd = wait_fd,
	.link_up = link_up,
	.flow_queue = flow_queue,
	.close = close_port,
};

static struct rounds *
shared_rounds(void *queue, uint32_t *index)
{
	const struct fake_queue *q = queue;

	*index = q->port->rounds_first + (uint32_t)(q - q->port->q);
	return q->port->rounds;
}

void
fake_share_rounds(struct fake_port *f, struct rounds *rounds, unsigned first)
{
	static struct port_ops sharing;

	sharing = ops;
	sharing.rounds = shared_rounds;
	f->port.ops = &sharing;
	f->rounds = rounds;
	f->rounds_first = first;
}

void
fake_init(struct fake_port *f, unsigned queues, uint8_t id)
{
	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
	f->alloc_left = 1u << 20;
	for (unsigned i = 0; i < queues; i++) {
		f->q[i].port = f;
		f->q[i].tx_take = UINT32_MAX;
		f->queues[i] = &f->q[i];
	}
	f->port = (struct port){
		.ops = &ops,
		.drv = f,
		.queues = f->queues,
		.queue_count = queues,
		.caps = {.max_frame = FRAME_ROOM, .rx_ring = 1024},
		.mac = {0x02, 0, 0, 0, 0, id},
	};
}

void
fake_fini(struct fake_port *f)
{
	struct pkt pkt;

	assert(f->closed && f->live == 0);
	while (fake_sent(f, &pkt))
		free(pkt.data);
	for (unsigned i = 0; i < FAKE_QUEUES; i++) {
		while (list_get(&f->q[i].rx, &pkt))
			free(pkt.data);
	}
	pthread_mutex_destroy(&f->lock);
}

bool
fake_sent(struct fake_port *f, struct pkt *frame)
{
	bool got = false;

	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < FAKE_QUEUES && !got; i++)
		got = list_get(&f->q[i].tx, frame);
	pthread_mutex_unlock(&f->lock);
	return got;
}

bool
fake_arrive(struct fake_port *f, unsigned queue, const struct pkt *frame)
{
	/* A buffer of exactly this length, so that AddressSanitizer reports reads beyond
	 * it. */
	struct pkt copy = {.data = malloc(frame->len),
		.len = frame->len,
		.room = frame->len,
		.owner = f};
	bool put;

	assert(copy.data != NULL);
	memcpy(copy.data, frame->data, frame->len);
	pthread_mutex_lock(&f->lock);
	put = list_put(&f->q[queue].rx, &copy);
	pthread_mutex_unlock(&f->lock);
	if (!put)
		free(copy.data);
	return put;
}

unsigned
fake_sent_count(struct fake_port *f)
{
	unsigned count = 0;

	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < FAKE_QUEUES; i++)
		count += f->q[i].tx.count;
	pthread_mutex_unlock(&f->lock);
	return count;
}
