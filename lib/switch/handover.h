/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread of the switch hands over to another one: a ring for each pair of threads, with one
 * producer and one consumer (ring.h). The producer never waits: when the ring is full, a client's
 * packet stays in its client's ring, and a packet of the port is lost, which is counted.
 *
 * Bytes are copied into the ring. A frame of the port stays where it is, and belongs to the
 * consumer then.
 */
#ifndef ROCADE_SWITCH_HANDOVER_H
#define ROCADE_SWITCH_HANDOVER_H

#include "switch/ring.h"
#include "switch/sw_thread.h"

#define HANDOVER_SLOTS 512

enum handed_kind {
	HANDED_DELIVER, /* bytes for a client */
	HANDED_GROUP,   /* bytes for the clients that are members of the group gid */
	HANDED_FRAME,   /* a received frame of the port */
	HANDED_SEND,  /* bytes of a client, to be sent: thread 0 looks up the next hop */
	HANDED_QUERY, /* bytes of a client, a query for extensions: to thread 0 */
	HANDED_HOP,   /* the next hop of gid: from thread 0 */
	HANDED_ASK,   /* a question of a client's QP, to the thread of the QP's peer */
	HANDED_ASK_REPLY, /* the reply to it */
};

struct handed {
	enum handed_kind kind;
	uint32_t len;
	struct sw_client *client; /* NULL: it has ended meanwhile */
	uint8_t *bytes;           /* the slot's own */
	uint8_t gid[16];
	struct pkt frame;
	struct sw_hop hop;
};

struct handover {
	struct ring_prod prod LINE_ALIGNED;
	struct ring_cons cons LINE_ALIGNED;
	uint32_t prod_shown LINE_ALIGNED;
	uint32_t cons_shown LINE_ALIGNED;
	uint32_t buf_size LINE_ALIGNED;
	uint8_t *bytes;
	struct ring_desc
		desc[HANDOVER_SLOTS]; /* slots are in order: nothing to describe */
	struct handed slots[HANDOVER_SLOTS];
};

/* Bytes in two pieces. */
struct handed_bytes {
	const uint8_t *head;
	uint32_t head_len;
	const uint8_t *rest;
	uint32_t len; /* of both */
};

/* Returns NULL without memory. */
struct handover *handover_create(uint32_t buf_size);
/* No frame may be left. h may be NULL. */
void handover_destroy(struct handover *h);

/* Returns the next slot of the ring between the threads, which handover_put() then hands over, or
 * NULL if the ring is full. */
struct handed *handover_slot(struct sw_thread *from, const struct sw_thread *to);
void handover_put(struct sw_thread *from, const struct sw_thread *to);
/* Hands over a copy of the bytes. Returns false if the ring is full, or they are too many. */
bool handover_bytes(struct sw_thread *from, const struct sw_thread *to,
	enum handed_kind kind, struct sw_client *client,
	const struct handed_bytes *bytes);
/* Shows the other threads what was handed over to them, and wakes those that sleep. */
void handover_publish(struct sw_thread *from);

/* For the consumer: returns how many slots are filled, of which it may release the first ones. */
static inline uint32_t
handover_count(struct handover *h)
{
	/* The other end is a thread of this process: the index is valid. */
	(void)ring_cons_refresh(&h->cons);
	return ring_count(&h->cons);
}

static inline struct handed *
handover_at(struct handover *h, uint32_t ahead)
{
	return &h->slots[(h->cons.cons + ahead) & h->cons.mask];
}

static inline void
handover_release(struct handover *h, uint32_t n)
{
	ring_release(&h->cons, n);
}

/* For thread 0, with the locks of all threads: the client is freed. Packets that were handed over
 * for it are ignored. */
void handover_forget(struct sw *sw, const struct sw_client *client);

#endif
