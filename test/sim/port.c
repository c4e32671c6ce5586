/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of a host, as its engines see it. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "wire/hdr.h"
#include "wire/opcode.h"

#include "link.h"

#ifdef __SANITIZE_ADDRESS__
#define EXACT 1
#else
#define EXACT 0
#endif

static struct pkt
pkt_of(struct frame *f)
{
	uint8_t *data = f->data;

	if (EXACT) {
		f->exact = malloc(f->len);
		CHECK(f->exact != NULL, "no memory");
		memcpy(f->exact, f->data, f->len);
		data = f->exact;
	}
	return (struct pkt){.data = data, .len = f->len, .room = f->len, .owner = f};
}

static unsigned
rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct link_queue *q = queue;
	unsigned got = 0;

	while (got < n && !link_queue_empty(q)) {
		struct frame *f = q->rx[q->head++ % RX_FRAMES];

		f->home = q->port;
		pkts[got++] = pkt_of(f);
	}
	q->port->lent += got;
	return got;
}

static void
frames_release(void *queue, struct pkt *pkts, unsigned n)
{
	struct link_queue *q = queue;

	CHECK(q->port->lent >= n, "more frames released than taken");
	q->port->lent -= n;
	for (unsigned i = 0; i < n; i++) {
		struct frame *f = pkts[i].owner;

		CHECK(f->home == q->port,
			"a frame is released twice, or to another port");
		f->home = NULL;
		frame_put(f);
	}
}

static unsigned
tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	struct link_queue *q = queue;

	if (chance(q->port->link->conf.stall))
		n = (unsigned)draw(n + 1);
	for (unsigned i = 0; i < n; i++) {
		struct frame *f = frame_get();

		f->home = q->port;
		pkts[i] = (struct pkt){.data = f->data, .room = FRAME_ROOM, .owner = f};
	}
	q->port->lent += n;
	return n;
}

/* A CNP that an engine sends: DSCP 48, not ECT, BECN, PSN 0, and 16 zeros. */
static void
cnp_check(const uint8_t *data, uint32_t len)
{
	static const uint8_t zeros[CNP_PAYLOAD];
	const uint8_t *ip = data + 14;
	bool v6 = data[12] == 0x86;
	const struct bth *bth = (const struct bth *)(ip + (v6 ? 40 : 20) + 8);
	unsigned tclass = v6 ? (ip[0] & 0xFu) << 4 | ip[1] >> 4 : ip[1];

	if (len < 14 + 20 + 8 + sizeof(*bth) || data[13] == 0x06 ||
		ip[v6 ? 6 : 9] != IPPROTO_UDP || bth->opcode != OPCODE_CNP)
		return;
	CHECK(tclass == CNP_TCLASS && bth->flags == 0 && bth->ecn == BTH_BECN &&
			bth->ack == 0 && be24_get(bth->psn) == 0 &&
			memcmp(bth + 1, zeros, sizeof(zeros)) == 0,
		"a CNP to QP %u is malformed", be24_get(bth->dest_qpn));
}

static unsigned
tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct link_queue *q = queue;

	if (chance(q->port->link->conf.stall))
		n = (unsigned)draw(n + 1);
	for (unsigned i = 0; i < n; i++) {
		struct frame *f = pkts[i].owner;

		CHECK(f->home == q->port && pkts[i].len >= 42 &&
				pkts[i].len <= FRAME_ROOM,
			"a frame of %u bytes is sent", pkts[i].len);
		cnp_check(f->data, pkts[i].len);
		f->len = pkts[i].len;
		link_trace("<- ", f, q->port);
		link_send(q->port, f);
	}
	q->port->lent -= n;
	return n;
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
	(void)drv;
	return true;
}

static void
close_port(void *drv)
{
	struct link_port *port = drv;

	port->closed = true;
}

static const struct port_ops ops = {
	.rx_burst = rx_burst,
	.rx_release = frames_release,
	.tx_alloc = tx_alloc,
	.tx_release = frames_release,
	.tx_burst = tx_burst,
	.wait_fd = wait_fd,
	.link_up = link_up,
	.close = close_port,
};

struct link_port *
link_attach(struct link *l, unsigned index, unsigned queues, uint32_t rx_ring)
{
	struct link_port *p = &l->ports[index];

	p->link = l;
	p->attached = true;
	for (unsigned i = 0; i < queues; i++) {
		p->queues[i].port = p;
		p->queue_list[i] = &p->queues[i];
	}
	p->port = (struct port){
		.ops = &ops,
		.drv = p,
		.queues = p->queue_list,
		.queue_count = queues,
		.caps = {.max_frame = FRAME_ROOM, .rx_ring = rx_ring},
		.mac = {0x02, 0, 0, 0, 0, (uint8_t)(index + 1)},
	};
	return p;
}
