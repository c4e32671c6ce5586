/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair whose first QP builds requests with the ibv_wr_*() calls. */
#ifndef ROCADE_TEST_WR_FIXTURE_H
#define ROCADE_TEST_WR_FIXTURE_H

#include "verbs_pair.h"

#define WR_FAR 262144 /* offset in b's memory that WRITEs go to */
#define WR_UC_OPS                                                                        \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |                \
		IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define WR_RC_OPS                                                                        \
	(WR_UC_OPS | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |      \
		IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define WR_REMOTE                                                                        \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

extern struct verbs_pair pair;
extern struct ibv_mr *wr_remote; /* of b, with all access rights */
extern struct ibv_qp_ex *ex;     /* of a */

void wr_open(struct verbs_pair_conf conf);
void wr_close(void);
/* Sets the SGE of the request being built, relative to a's memory. */
void wr_set_local_sge(size_t offset, uint32_t len);
/* Waits for the next completion and expects success. */
void wr_expect_success(
	struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_opcode opcode, struct ibv_wc *wc);
/* Expects ibv_wr_complete() to fail with `err` and no request of the section to be
 * sent. */
void wr_expect_refused(int err);

#endif
