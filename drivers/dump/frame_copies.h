/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of the frames of a queue, for a reader in another thread: wraps the queue. The engine
 * never waits for the reader: a frame for whose copy there is no room is counted. No cost while
 * the queue is not wrapped. With the engine lock held, except as stated.
 */
#ifndef ROCADE_DUMP_FRAME_COPIES_H
#define ROCADE_DUMP_FRAME_COPIES_H

#include "port/port.h"

struct frame_filter {
	uint32_t qpn;  /* only packets to and from this QP; 0: all frames */
	uint32_t snap; /* bytes of a frame that are kept, at least 1 */
	bool in, out;  /* received, sent */
	uint16_t vlan; /* of the port, as for pkt_parse() */
};

struct frame_copy {
	uint64_t when; /* of the engine's pass */
	uint32_t qpn;  /* that it came from or went to; 0: none */
	uint32_t len;  /* of the frame */
	uint32_t kept; /* bytes of it at data */
	uint32_t lost; /* copies lost so far, modulo 2^32 */
	bool out;
	const uint8_t *data;
};

struct frame_copies;

/* Returns how many bytes a copy takes that waits. */
uint32_t frame_copies_slot_size(const struct frame_filter *filter);

/* now: the time of the engine's pass, engine_pass_time(). slots: how many copies may wait for the
 * reader, a power of two. Returns 0 or -ENOMEM. */
int frame_copies_wrap(const struct port_queue *inner, const struct frame_filter *filter,
	const uint64_t *now, uint32_t slots, struct frame_copies **out,
	struct port_queue *outer);
const struct port_queue *frame_copies_inner(const struct frame_copies *c);
/* The queue is not used through the wrapper any more, and no thread reads. */
void frame_copies_free(struct frame_copies *c);

/* The reader, without a lock: the oldest copy, which stays valid until frame_copies_release().
 * Returns false if there is none. */
bool frame_copies_peek(struct frame_copies *c, struct frame_copy *copy);
void frame_copies_release(struct frame_copies *c);
/* Any thread. */
uint32_t frame_copies_lost(const struct frame_copies *c);

#endif
