/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire between the hosts: one port per host, frames in flight in order of arrival,
 * and every fault of a network, from the seed. It knows Ethernet addresses and the
 * headers that its statistics need, but no host and no QP.
 */
#ifndef ROCADE_SIM_LINK_H
#define ROCADE_SIM_LINK_H

#include "port/port.h"

#include "sim.h"

#define LINK_ROUTES 4
#define LINK_PORTS 4
#define PORT_QUEUES 4
#define FRAME_ROOM 4352
#define RX_FRAMES 2048 /* of one receive queue */

struct frame {
	uint64_t when;  /* time of arrival */
	uint64_t order; /* among frames with the same arrival time */
	uint64_t sent;
	/* the port whose buffer it is, while the device holds it */
	struct link_port *home;
	struct link_port *to;
	struct frame *next; /* free list */
	uint8_t *exact; /* under AddressSanitizer: a heap copy of exactly `len` bytes */
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
	uint64_t busy_until; /* end of its last transmission */
	/* last arrival at each other port, over each route */
	uint64_t last[LINK_PORTS][LINK_ROUTES];
	unsigned outage_route; /* LINK_ROUTES: all of them */
	uint64_t outage_until; /* outage: frames that it sends until then are lost */
	uint32_t lent;         /* frames that the device holds */
	bool attached;
	bool closed;
	/* For a port without a device: takes the frame instead of the queues. */
	void (*take)(void *arg, struct frame *frame);
	void *arg;
};

struct link_conf { /* rate, delay, and faults in per mille of the frames */
	uint64_t bits_per_us;
	uint64_t delay_ns, jitter_ns;
	/* The UDP source port chooses one of LINK_ROUTES routes, each of which takes so much
	 * longer than the one before it. */
	uint64_t route_ns;
	unsigned loss, dup, reorder, corrupt, ecn;
	unsigned outage; /* starts of an outage (see outage_until), per million */
	unsigned stall;  /* short transmit bursts and failed allocations */
	unsigned lie;    /* of the selective acknowledgements */
};

struct link {
	struct link_conf conf;
	struct link_port ports[LINK_PORTS];
	struct frame **heap;
	uint32_t count, room;
	uint64_t orders;
	uint64_t dups; /* duplicated UC and UD packets, see count_dup() */
	bool lossy;
	bool corrupts; /* packets are, or were, corrupted */
	uint64_t lost;
};

void link_init(struct link *l, const struct link_conf *conf);
/* Drops the frames in flight. Checks that the devices hold none. */
void link_fini(struct link *l);

/* Prepares a port for dev_create(). */
struct link_port *link_attach(
	struct link *l, unsigned index, unsigned queues, uint32_t rx_ring);

/* Sends a frame that a test made. The link takes ownership. */
void link_send(struct link_port *from, struct frame *frame);
struct frame *frame_get(void);
void frame_put(struct frame *frame);

/* Delivers the frames that have arrived by now. */
void link_run(struct link *l);
/* Returns the arrival time of the next frame, or TIME_NEVER. */
uint64_t link_deadline(const struct link *l);
/* Returns when the oldest frame in flight was sent, or TIME_NEVER. */
uint64_t link_oldest(const struct link *l);
/* Drops the frames in flight to this QPN (unique among the hosts), and datagrams from
 * it. */
void link_purge(struct link *l, uint32_t qpn);

/* Adds a frame to the trace. */
void link_trace(const char *what, const struct frame *f, const struct link_port *port);
/* Returns the BTH of a RoCEv2 frame, NULL for other frames. */
const struct bth *frame_bth(const uint8_t *data, uint32_t len);

static inline bool
link_queue_empty(const struct link_queue *q)
{
	return q->head == q->tail;
}

#endif
