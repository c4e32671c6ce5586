/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of DMA-bufs: sizes, and a request of side a to the memory of side b. */
#ifndef ROCADE_TEST_DMABUF_FIXTURE_H
#define ROCADE_TEST_DMABUF_FIXTURE_H

#include "case.h"
#include "verbs_pair.h"

#define PAGE 4096
#define LEN (4 * PAGE)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define IOVA UINT64_C(0x700000000000)

static const struct verbs_pair_conf dmabuf_pair = {.srq_wr = 16,
	.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	.depth = 4};

/* A request for a page, to or from the start of a's memory, whose region is mine. */
static inline void
dmabuf_request(struct verbs_pair *p, const struct ibv_mr *mine, enum ibv_wr_opcode opcode,
	uint64_t addr, uint32_t rkey, enum ibv_wc_status status)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)p->a.mem, .length = PAGE, .lkey = mine->lkey};
	struct ibv_send_wr wr = {.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = addr, .rkey = rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(p->a.qp[0], &wr, &bad), 0);
	pair_drain(p);
	assert_int_equal(ibv_poll_cq(p->a.send_cq, 1, &wc), 1);
	assert_int_equal(wc.status, status);
}

#endif
