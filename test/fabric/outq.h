/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An output queue with its link: frames wait in order, leave at the link's rate, and
 * arrive at the other end after the propagation delay. Queues of one switch may share
 * its buffer memory. A frame that finds no room is dropped (tail drop).
 */
#ifndef ROCADE_FABRIC_OUTQ_H
#define ROCADE_FABRIC_OUTQ_H

#include "clock.h"
#include "frame.h"

/* The packet memory of a switch, shared with a dynamic threshold: a queue may grow to
 * alpha times the memory that is free (Choudhury and Hahne, 1998). */
struct buffer {
	uint64_t size, used; /* bytes */
	double alpha;
};

/* Random early detection on the current length of the queue: a frame is marked with a
 * probability that rises from 0 at kmin to pmax at kmax, and always from there on. */
struct red {
	uint64_t kmin, kmax; /* bytes; kmax 0: off */
	double pmax;
};

struct outq_conf {
	uint64_t ps_per_byte;
	uint64_t delay;        /* propagation, in picoseconds */
	uint64_t limit;        /* bytes; 0: none */
	uint32_t frames;       /* the most frames; 0: any number */
	struct buffer *buffer; /* NULL: none that is shared */
	struct red red;
	void (*deliver)(void *to, struct frame *frame);
	void *to;
};

struct outq {
	struct outq_conf conf;
	struct frame_list waiting; /* the first one is being sent */
	struct frame_list flying;  /* on the wire */
	uint64_t bytes;            /* of the frames that wait */
	uint32_t count;
	bool dead; /* the link is down: what it is given is lost */
	struct event leave, arrive;
	/* Counters: of frames with payload, but for sent_bytes. */
	uint64_t offered, dropped, marked;
	uint64_t sent_bytes; /* on the wire */
};

void outq_init(struct outq *q, const struct outq_conf *conf);
/* Gives all frames back. */
void outq_fini(struct outq *q);

/* Sends the frame, or drops it. Returns whether it was taken. */
bool outq_send(struct outq *q, struct frame *frame);

/* Returns whether the queue has room for a frame of this length. */
bool outq_admits(const struct outq *q, uint32_t len);
/* Returns the probability that a frame is marked when the queue has this length. */
double red_probability(const struct red *red, uint64_t bytes);

#endif
