/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the sweep: two QPs, a flow of messages in each direction and the
 * model of its result. */
#ifndef ROCADE_TEST_QP_SWEEP_FIXTURE_H
#define ROCADE_TEST_QP_SWEEP_FIXTURE_H

#include "../rand.h"
#include "qp_link.h"

#define MSG_BYTES 12000 /* of the longest message */
#define SLOT_BYTES (MSG_BYTES + 64)
#define SLOTS 64 /* of requests, of receives and of remote targets, in host memory */
#define WORDS 8  /* of atomics, behind them */
#define UNTOUCHED 0xD7 /* bytes of a receive before the message */

#define WR_FLUSH ((enum ibv_wr_opcode)14)
#define ACCESS_FLUSH (1u << 8)

struct chances { /* per thousand */
	unsigned drop, dup, move, corrupt, hold;
};

struct flow { /* one direction */
	struct host *from, *to;
	uint32_t from_region, to_region;
	struct mw *local_mw; /* of `from`: bound and invalidated by local operations */
	bool local_mw_bound; /* after all posted requests are executed */
	uint32_t local_mw_rkey;
	/* of `to`: over all its memory; requests may use its rkey in the place of the
	 * region's */
	struct mw *memory_mw;
	unsigned total;          /* messages to send */
	unsigned posted;         /* requests */
	unsigned received;       /* receives posted */
	unsigned sent_done;      /* next request that may complete */
	unsigned recv_done;      /* next message to arrive */
	unsigned signaled_of;    /* one of this many is signaled; 0: only the last */
	unsigned recv_msg_count; /* messages that take a receive */
	uint32_t requests;       /* counted by the responder; a long READ is several */
	uint64_t word[WORDS];    /* values after all posted requests are executed */
	struct {
		uint32_t len;
		uint8_t signaled;
		uint8_t imm;
		uint8_t op;
		uint64_t value; /* atomic: the value that it returns */
		struct mw *mw;  /* of `to`: the one that a SEND invalidates */
	} msg[128];
	uint8_t recv_msg[128]; /* receive -> message */
};

struct sweep {
	uint64_t rand;
	struct qp_link link;
	struct flow flow[2];
	struct chances chances;
	/* probability per thousand that receives are posted in a round */
	unsigned recv_chance;
};

extern struct sweep s;

/* ---- Posting (sweep_post.c) ---- */

/* Returns true if each operation was posted, in all seeds together. */
bool ops_all_seen(void);
bool chance(unsigned of_thousand);
uint32_t key_of(const struct flow *f, unsigned message);
uint8_t *slot_at(const struct host *h, unsigned kind, unsigned i);
uint64_t *word_at(const struct host *h, unsigned i);
void post_send(struct flow *f);
/* The pattern behind the end of the message detects writes beyond it. */
void post_recv(struct flow *f);

/* ---- Checking (sweep_check.c) ---- */

void sent_check(struct flow *f);
void received_check(struct flow *f);

#endif
