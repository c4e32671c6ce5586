/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_byteorder.h>

#include "window_fixture.h"

struct qp_link p;
struct mw *mw;   /* of b, type 2, unless the test made another */
uint32_t region; /* of b */

void
win_init(void)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	qp_link_init(&p, &conf);
	region = host_key(&p.b, 0, conf.mem_bytes, WIN_RIGHTS);
	mw = host_mw(&p.b, true);
}

void
win_fini(void)
{
	mw_destroy(&p.b.keys, mw);
	assert_int_equal(key_free(&p.b.keys, region), 0);
	qp_link_fini(&p);
}

uint32_t
win_bind(void)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	host_bind(&p.b, 900, SIGNALED, rkey, region, WIN_OFFSET, WIN_LEN, ACCESS_REMOTE);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	expect_sent(&p.b, 900, IBV_WC_SUCCESS);
	return rkey;
}

struct cqe
win_poll(struct host *h, struct cq *cq)
{
	struct cqe cqe;

	assert_true(host_poll(h, cq, &cqe));
	assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	return cqe;
}

void
win_post(uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t rkey, uint32_t offset,
	uint32_t remote, uint32_t len)
{
	struct sge sge;
	struct send_req req = host_rdma(&p.a, &sge, wr_id, opcode, offset, remote, len);

	req.rkey = rkey;
	assert_int_equal(host_post_send(&p.a, &req), 0);
}

void
win_access(uint32_t rkey, enum ibv_wr_opcode opcode, uint32_t remote, uint32_t len,
	enum ibv_wc_status status)
{
	win_post(5, opcode, rkey, 0, remote, len);
	qp_link_drain(&p);
	expect_sent(&p.a, 5, status);
	if (status == IBV_WC_REM_ACCESS_ERR)
		expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
}
