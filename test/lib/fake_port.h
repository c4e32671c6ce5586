/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port in memory: what is sent waits until the test takes it, what is received is what
 * the test gives. Refuses frames and buffers on demand, and counts what is out. Safe with
 * a thread a queue and one that carries frames.
 */
#ifndef ROCADE_TEST_FAKE_PORT_H
#define ROCADE_TEST_FAKE_PORT_H

#include <pthread.h>

#include "port/port.h"

#define FAKE_QUEUES 4
#define FAKE_FRAMES 4096 /* that fit a list */

struct fake_list {
	struct pkt pkts[FAKE_FRAMES];
	unsigned head, count;
};

struct fake_queue {
	struct fake_port *port;
	struct fake_list rx, tx;
	unsigned tx_take;  /* frames of a burst that tx_burst takes, at the most */
	unsigned tx_calls; /* of tx_burst */
	unsigned rx_calls; /* of rx_burst */
};

struct fake_port {
	struct port port; /* for dev_create() */
	void *queues[FAKE_QUEUES];
	struct fake_queue q[FAKE_QUEUES];
	pthread_mutex_t lock;
	unsigned alloc_left; /* buffers that tx_alloc may still hand out */
	unsigned live;       /* frames that the engine has, of either kind */
	bool link_down;
	bool closed;
};

void
fake_init(struct fake_port *f, unsigned queues, uint8_t id);
/* Proves that the device closed it and gave every frame back. */
void
fake_fini(struct fake_port *f);

/* The oldest frame sent on any queue; false: none. The taker frees frame->data. */
bool
fake_sent(struct fake_port *f, struct pkt *frame);
/* A copy of it arrives; false: the queue is full. */
bool
fake_arrive(struct fake_port *f, unsigned queue, const struct pkt *frame);
/* Frames sent and not taken. */
unsigned
fake_sent_count(struct fake_port *f);

#endif
