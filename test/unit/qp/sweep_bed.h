/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the sweep share: two QPs, a flow of messages each way and what it
 * must come to. */
#ifndef ROCADE_TEST_QP_SWEEP_BED_H
#define ROCADE_TEST_QP_SWEEP_BED_H

#include "../rand.h"
#include "qp_pair.h"

#define MSG_BYTES 12000 /* of the longest message */
#define SLOT_BYTES (MSG_BYTES + 64)
#define SLOTS 64       /* of requests, of receives, of remote targets: host memory */
#define WORDS 8        /* of atomics, behind them */
#define UNTOUCHED 0xD7 /* what stands in a receive before */

#define WR_FLUSH ((enum ibv_wr_opcode)14)
#define ACCESS_FLUSH (1u << 8)

struct chances { /* in a thousand */
	unsigned drop, dup, move, corrupt, hold;
};

struct flow { /* one direction */
	struct host *from, *to;
	uint32_t from_region, to_region;
	struct window *own; /* of from: bound and invalidated by local operations */
	bool own_bound;     /* when all posted has been executed */
	uint32_t own_rkey;
	struct window *whole; /* of to: all its memory, instead of its rkey */
	unsigned total;       /* messages to send */
	unsigned posted;      /* requests */
	unsigned received;    /* receives posted */
	unsigned sent_done;   /* next request that may complete */
	unsigned recv_done;   /* next message to arrive */
	unsigned signaled_of; /* one in so many; 0: only the last */
	unsigned takers;      /* requests that take a receive */
	uint32_t requests;    /* that the responder counts: a READ can be several */
	uint64_t word[WORDS]; /* what stands there when all posted has been executed */
	struct {
		uint32_t len;
		uint8_t signaled;
		uint8_t imm;
		uint8_t op;
		uint64_t value;        /* atomic: what it returns */
		struct window *window; /* of to: what a SEND invalidates */
	} msg[128];
	uint8_t taker[128]; /* receive -> message */
};

struct sweep {
	uint64_t rand;
	struct pair pair;
	struct flow flow[2];
	struct chances chances;
	unsigned late; /* in a thousand rounds: receives are posted */
};

extern struct sweep s;

/* ---- What is posted (sweep_post.c) ---- */

/* Each operation that there is was posted, in all seeds together. */
bool
ops_all_seen(void);
bool
chance(unsigned of_thousand);
uint32_t
key_of(const struct flow *f, unsigned message);
uint8_t *
slot_at(const struct host *h, unsigned kind, unsigned i);
uint64_t *
word_at(const struct host *h, unsigned i);
void
post_send(struct flow *f);
/* What stands behind the message's end afterwards shows what was written too far. */
void
post_recv(struct flow *f);

/* ---- What must come of it (sweep_check.c) ---- */

void
sent_check(struct flow *f);
void
received_check(struct flow *f);

#endif
