/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include "case.h"
#include "wr_fixture.h"

struct verbs_pair pair;
struct ibv_mr *wr_remote; /* of b, with all access rights */
struct ibv_qp_ex *ex;     /* of a */

void
wr_open(struct verbs_pair_conf conf)
{
	conf.cap = (struct ibv_qp_cap){
		.max_send_wr = 8, .max_send_sge = 3, .max_inline_data = 64};
	conf.access = WR_REMOTE;
	conf.depth = 4;
	pair_open(&pair, &conf);
	wr_remote = ibv_reg_mr(pair.b.pd, pair.b.mem + WR_FAR, WR_FAR,
		IBV_ACCESS_LOCAL_WRITE | WR_REMOTE);
	assert_non_null(wr_remote);
	for (size_t i = 0; i < WR_FAR; i++)
		pair.a.mem[i] = (uint8_t)(i * 13 + i / 251);
	ex = ibv_qp_to_qp_ex(pair.a.qp[0]);
	assert_non_null(ex);
	assert_ptr_equal(&ex->qp_base, pair.a.qp[0]);
	ex->wr_flags = IBV_SEND_SIGNALED;
	pair_drain(&pair);
}

void
wr_close(void)
{
	assert_int_equal(ibv_dereg_mr(wr_remote), 0);
	pair_close(&pair);
}

void
wr_set_local_sge(size_t offset, uint32_t len)
{
	ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.mem + offset, len);
}

void
wr_expect_success(
	struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_opcode opcode, struct ibv_wc *wc)
{
	pair_poll_cq(&pair, cq, wc, 1);
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->wr_id, wr_id);
	assert_int_equal(wc->opcode, opcode);
}

void
wr_expect_refused(int err)
{
	errno = 0;
	assert_int_equal(ibv_wr_complete(ex), err);
	assert_int_equal(errno, err);
	pair_no_completion(&pair, pair.a.send_cq);
}
