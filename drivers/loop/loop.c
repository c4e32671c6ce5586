/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/ringmem.h"
#include "loop/loop.h"

/* Frames that a sender may hold beside those in the ring: allocated, staged, being read. */
#define LOOP_SPARE (8 * PKT_BURST)
#define LOOP_QUEUES_MAX 16

/* One direction of one queue pair. */
struct loop_wire {
	struct rte_ring *frames; /* of struct pkt: sender to receiver */
	struct rte_ring *pool;	 /* of buffer addresses; given back by any engine */
	uint8_t *buffers;
	uint32_t room; /* of a buffer */
};

struct loop_queue {
	struct loop_wire *out;
	struct loop_wire *in;
};

struct loop {
	const struct alloc *mem;
	uint32_t ring_size;
	unsigned queues;
	unsigned open; /* ends not closed yet */
	struct loop_wire wires[2][LOOP_QUEUES_MAX];
	struct loop_queue ends[2][LOOP_QUEUES_MAX];
	void *handles[2][LOOP_QUEUES_MAX];
};

static uint32_t
pool_size(uint32_t ring_size)
{
	return ring_size + LOOP_SPARE;
}

static unsigned
loop_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct loop_queue *q = queue;

	return rte_ring_sc_dequeue_burst_elem(
		q->in->frames, pkts, sizeof(*pkts), n, NULL);
}

/* Back to the pools they come from: runs of one wire at once. */
static void
loop_release(void *queue, struct pkt *pkts, unsigned n)
{
	uint8_t *buffers[PKT_BURST];
	unsigned run;

	(void)queue;
	for (unsigned i = 0; i < n; i += run) {
		struct loop_wire *wire = pkts[i].owner;

		for (run = 0; i + run < n && run < PKT_BURST && pkts[i + run].owner == wire;
			run++)
			buffers[run] = pkts[i + run].data;
		/* The pool holds every buffer of the wire, so it cannot be full. */
		rte_ring_mp_rts_enqueue_bulk_elem(
			wire->pool, buffers, sizeof(buffers[0]), run, NULL);
	}
}

static unsigned
loop_tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	struct loop_wire *wire = ((struct loop_queue *)queue)->out;
	uint8_t *buffers[PKT_BURST];
	unsigned got = rte_ring_sc_dequeue_burst_elem(wire->pool, buffers,
		sizeof(buffers[0]), RTE_MIN(n, PKT_BURST + 0u), NULL);

	for (unsigned i = 0; i < got; i++)
		pkts[i] = (struct pkt){
			.data = buffers[i], .room = (uint16_t)wire->room, .owner = wire};
	return got;
}

static unsigned
loop_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct loop_queue *q = queue;

	return rte_ring_sp_enqueue_burst_elem(
		q->out->frames, pkts, sizeof(*pkts), n, NULL);
}

static int
loop_wait_fd(void *queue)
{
	(void)queue;
	return -1;
}

static void
wire_free(const struct loop *loop, struct loop_wire *wire)
{
	uint32_t count = pool_size(loop->ring_size);

	alloc_put(loop->mem, wire->frames,
		ringmem_size(loop->ring_size, sizeof(struct pkt)));
	alloc_put(loop->mem, wire->pool, ringmem_size(count, sizeof(uint8_t *)));
	alloc_put(loop->mem, wire->buffers, (size_t)count * wire->room);
}

static int
wire_init(const struct loop *loop, struct loop_wire *wire, uint32_t max_frame)
{
	uint32_t count = pool_size(loop->ring_size);

	wire->room = RTE_ALIGN_CEIL(max_frame, LINE_SIZE);
	wire->frames = alloc_get(loop->mem, "loop frames",
		ringmem_size(loop->ring_size, sizeof(struct pkt)));
	wire->pool = alloc_get(
		loop->mem, "loop pool", ringmem_size(count, sizeof(uint8_t *)));
	wire->buffers = alloc_get(loop->mem, "loop buffers", (size_t)count * wire->room);
	if (wire->frames == NULL || wire->pool == NULL || wire->buffers == NULL)
		return -ENOMEM;
	ringmem_init(wire->frames, loop->ring_size, false, false);
	ringmem_init(wire->pool, count, true, false);
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *buffer = wire->buffers + (size_t)i * wire->room;

		rte_ring_mp_rts_enqueue_bulk_elem(
			wire->pool, &buffer, sizeof(buffer), 1, NULL);
	}
	return 0;
}

static void
loop_free(struct loop *loop)
{
	for (unsigned end = 0; end < 2; end++)
		for (unsigned i = 0; i < loop->queues; i++)
			wire_free(loop, &loop->wires[end][i]);
	alloc_put(loop->mem, loop, sizeof(*loop));
}

static bool
loop_link_up(void *drv)
{
	return __atomic_load_n(&((struct loop *)drv)->open, __ATOMIC_RELAXED) == 2;
}

static void
loop_close(void *drv)
{
	struct loop *loop = drv;

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
	.link_up = loop_link_up,
	.close = loop_close,
};

/* Locally administered; every loop of a process has its own two. */
static void
mac_make(uint8_t mac[6], uint32_t serial)
{
	const uint8_t bytes[6] = {0x02, 0x52, 0x6f, (uint8_t)(serial >> 16),
		(uint8_t)(serial >> 8), (uint8_t)serial};

	memcpy(mac, bytes, sizeof(bytes));
}

static void
port_fill(struct loop *loop, unsigned end, uint32_t max_frame, uint32_t serial,
	struct port *port)
{
	for (unsigned i = 0; i < loop->queues; i++) {
		loop->ends[end][i] = (struct loop_queue){
			.out = &loop->wires[end][i], .in = &loop->wires[1 - end][i]};
		loop->handles[end][i] = &loop->ends[end][i];
	}
	*port = (struct port){
		.ops = &loop_ops,
		.drv = loop,
		.queues = loop->handles[end],
		.queue_count = loop->queues,
		.caps = {.max_frame = max_frame, .rx_ring = loop->ring_size},
	};
	mac_make(port->mac, serial + end);
}

int
loop_open(unsigned queues, uint32_t max_frame, uint32_t ring_size,
	const struct alloc *mem, struct port *a, struct port *b)
{
	static uint32_t serials;
	uint32_t serial;
	struct loop *loop;
	int rc = 0;

	if (queues == 0 || queues > LOOP_QUEUES_MAX || max_frame < 64 ||
		max_frame > UINT16_MAX - LINE_SIZE || ring_size == 0 ||
		!rte_is_power_of_2(ring_size))
		return -EINVAL;
	loop = alloc_get(mem, "loop", sizeof(*loop));
	if (loop == NULL)
		return -ENOMEM;
	loop->mem = mem;
	loop->ring_size = ring_size;
	loop->queues = queues;
	loop->open = 2;
	for (unsigned i = 0; i < 2 * queues && rc == 0; i++)
		rc = wire_init(loop, &loop->wires[i % 2][i / 2], max_frame);
	if (rc != 0) {
		loop_free(loop);
		return rc;
	}
	serial = __atomic_add_fetch(&serials, 2, __ATOMIC_RELAXED);
	port_fill(loop, 0, max_frame, serial, a);
	port_fill(loop, 1, max_frame, serial, b);
	return 0;
}
