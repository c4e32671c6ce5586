/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire between the hosts: a port for each, frames on their way in the order of their
 * arrival, and all the trouble that a network makes, from the seed. It knows Ethernet
 * addresses and what it needs for statistics, no host and no QP.
 */
#ifndef ROCADE_SIM_LINK_H
#define ROCADE_SIM_LINK_H

#include "port/port.h"

#include "sim.h"

#define LINK_PORTS 4
#define PORT_QUEUES 4
#define FRAME_ROOM 4352
#define RX_FRAMES 2048 /* of one receive queue */

struct frame {
	uint64_t when;  /* it arrives */
	uint64_t order; /* of those that arrive together */
	uint64_t sent;
	struct link_port *home; /* whose buffer it is counted as, while it is lent out */
	struct link_port *to;
	struct frame *next; /* free list */
	uint8_t *exact;     /* a copy of just its bytes, under AddressSanitizer */
	uint32_t flags;
	uint16_t len;
	uint8_t queue;
	uint8_t data[FRAME_ROOM] LINE_ALIGNED;
};

struct link_queue {
	struct link_port *port;
	struct frame *rx[RX_FRAMES];
	uint32_t head, tail;
};

struct link_port {
	struct link *link;
	struct port port; /* for the device */
	void *queue_list[PORT_QUEUES];
	struct link_queue queues[PORT_QUEUES];
	uint64_t busy_until;       /* its cable */
	uint64_t last[LINK_PORTS]; /* arrival at each other one */
	uint64_t dark_until;       /* everything is lost until then */
	uint32_t lent;             /* frames that the device holds */
	bool attached;
	bool closed;
	/* For what is no device: takes the frame instead of the queues. */
	void (*take)(void *arg, struct frame *frame);
	void *arg;
};

struct link_conf { /* chances in a thousand frames */
	uint64_t bits_per_us;
	uint64_t delay_ns, jitter_ns;
	unsigned loss, dup, reorder, corrupt, ecn;
	unsigned dark;  /* starts, in a million */
	unsigned stall; /* transmit bursts cut short, no buffers */
};

struct link {
	struct link_conf conf;
	struct link_port ports[LINK_PORTS];
	struct frame **heap;
	uint32_t count, room;
	uint64_t orders;
	uint64_t dups; /* of UC and UD packets, see link_dups() */
	bool lossy;
	bool bends; /* or has done so */
	uint64_t lost;
};

void
link_init(struct link *l, const struct link_conf *conf);
/* Nothing is on its way any more and nothing is lent (checked). */
void
link_fini(struct link *l);

/* Readies a port for dev_create(). */
struct link_port *
link_attach(struct link *l, unsigned index, unsigned queues, uint32_t rx_ring);

/* Puts a frame on the wire that a test made; it is from there on the link's. */
void
link_send(struct link_port *from, struct frame *frame);
struct frame *
frame_get(void);
void
frame_put(struct frame *frame);

/* Delivers what has arrived by now. */
void
link_run(struct link *l);
/* When the next frame arrives; TIME_NEVER. */
uint64_t
link_deadline(const struct link *l);
/* When the oldest frame on its way was sent; TIME_NEVER. */
uint64_t
link_oldest(const struct link *l);
/* Loses what is on its way to this QPN (each host has its own), and datagrams from it. */
void
link_purge(struct link *l, uint32_t qpn);

/* A line of the trace. */
void
link_trace(const char *what, const struct frame *f, const struct link_port *port);
/* The BTH of a RoCEv2 frame, NULL for another. */
const struct bth *
frame_bth(const uint8_t *data, uint32_t len);

static inline bool
link_queue_empty(const struct link_queue *q)
{
	return q->head == q->tail;
}

#endif
