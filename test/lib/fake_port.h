/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port in memory. Frames that an engine sends are queued until the test takes them; an
 * engine receives the frames that the test queues. The port refuses frames and buffers on
 * demand and counts the buffers that the engine holds. One thread per queue may use it
 * beside one thread that carries frames.
 */
#ifndef ROCADE_TEST_FAKE_PORT_H
#define ROCADE_TEST_FAKE_PORT_H

#include <pthread.h>

#include "port/port.h"
#include "port/rss.h"

#define FAKE_QUEUES 4
#define FAKE_FRAMES 4096 /* capacity of a list */

struct fake_list {
	struct pkt pkts[FAKE_FRAMES];
	unsigned head, count;
};

struct fake_queue {
	struct fake_port *port;
	struct fake_list rx, tx;
	unsigned tx_take;  /* most frames of a burst that tx_burst takes */
	unsigned tx_calls; /* calls of tx_burst */
	unsigned rx_calls; /* calls of rx_burst */
};

struct fake_port {
	struct port port; /* for dev_create() */
	void *queues[FAKE_QUEUES];
	struct fake_queue q[FAKE_QUEUES];
	pthread_mutex_t lock;
	unsigned alloc_left;   /* buffers that tx_alloc still hands out */
	unsigned live;         /* rx and tx buffers that the engine holds */
	struct rounds *rounds; /* fake_share_rounds() */
	unsigned rounds_first;
	const struct rss *rss; /* NULL: the port does not know the queue of a flow */
	bool link_down;
	bool closed;
};

void fake_init(struct fake_port *f, unsigned queues, uint8_t id);
/* For dev_create(): the engines of the port share the rounds (port/rounds.h) with others. The first one
 * has this number. */
void fake_share_rounds(struct fake_port *f, struct rounds *rounds, unsigned first);
/* Checks that the device closed the port and returned every buffer. */
void fake_fini(struct fake_port *f);

/* Takes the oldest frame sent on any queue; false: none. The caller frees frame->data. */
bool fake_sent(struct fake_port *f, struct pkt *frame);
/* Queues a copy of the frame for reception; false: the queue is full. */
bool fake_arrive(struct fake_port *f, unsigned queue, const struct pkt *frame);
/* Number of frames sent and not yet taken. */
unsigned fake_sent_count(struct fake_port *f);

#endif
