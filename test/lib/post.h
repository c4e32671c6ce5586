/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts and polls as lib/verbs does, and fills payload with patterns. */
#ifndef ROCADE_TEST_POST_H
#define ROCADE_TEST_POST_H

#include "queue/cq.h"
#include "queue/recv_ring.h"
#include "queue/sq.h"

struct send_req {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode; /* 0: IBV_WR_SEND */
	unsigned flags;
	uint32_t imm;
	const struct sge *sge;
	unsigned num_sge;
	uint32_t len; /* of a request without SGEs: FLUSH */
	/* WRITE, READ, atomics. */
	uint64_t remote_va;
	uint32_t rkey;
	uint64_t compare_add;
	uint64_t swap;
	/* BIND_MW, of the window at remote_va. */
	uint64_t bind_len;
	uint32_t bind_parent;
	unsigned bind_access;
	const struct ud_dest *dest; /* UD */
	uint32_t srqn;              /* XRC */
};
/* In send_req.opcode 0 means IBV_WR_SEND. This value stands for IBV_WR_RDMA_WRITE, whose
 * own value is 0. */
#define WR_RDMA_WRITE ((enum ibv_wr_opcode)0xFF)

/* Return 0 or -ENOMEM. */
int sq_post(struct sq *sq, const struct send_req *req);
int ring_post(
	struct recv_ring *ring, uint64_t wr_id, const struct sge *sge, unsigned num_sge);

/* Takes the oldest completion; frees the SQ slots that a send completion releases. False:
 * none. */
bool cq_take(struct cq *cq, struct sq *sq, struct cqe *out);

/* A pattern that depends on the key and the byte's position. */
void bytes_fill(uint8_t *to, size_t len, uint32_t key);
bool bytes_match(const uint8_t *at, size_t len, uint32_t key);

#endif
