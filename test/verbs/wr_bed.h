/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair whose first QP has requests built on it. */
#ifndef ROCADE_TEST_WR_BED_H
#define ROCADE_TEST_WR_BED_H

#include "pair.h"

#define WR_FAR 262144 /* of b's memory: where WRITEs go */
#define WR_UC_OPS                                                                        \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |                \
		IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define WR_RC_OPS                                                                        \
	(WR_UC_OPS | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |      \
		IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define WR_REMOTE                                                                        \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

extern struct pair pair;
extern struct ibv_mr *wr_remote; /* of b, everything allowed */
extern struct ibv_qp_ex *ex;     /* of a */

void
wr_open(struct pair_conf conf);
void
wr_close(void);
/* The SGE of the request that is built: the first side's bytes. */
void
wr_set(size_t offset, uint32_t len);
/* Waits for the next completion, which is good. */
void
wr_done(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_opcode opcode, struct ibv_wc *wc);
/* Nothing of a section is posted when one request of it is wrong. */
void
wr_refused(int err);

#endif
