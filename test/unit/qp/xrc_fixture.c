/* SPDX-License-Identifier: BSD-3-Clause */
#include "xrc_fixture.h"

struct qp_link p;
struct second second;

void
xrc_init(void)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.type = IBV_QPT_XRC_SEND;
	conf.srq_pd = true;
	qp_link_init(&p, &conf);
}

void
second_init(uint32_t xrcd)
{
	assert_int_equal(cq_init(&second.cq, &p.mem, 64, &p.b.events, &p.b), 0);
	cq_attach(&second.cq, 0);
	assert_int_equal(
		srq_init(&second.srq, &p.mem, XRC_PD_OTHER, 16, 2, &p.b.events, &p.b), 0);
	second.srq.xrcd = xrcd;
	second.srq.cq = &second.cq;
	assert_int_equal(srq_table_put(&p.b.srqs, &second.srq), 0);
	assert_int_equal(key_alloc(&p.b.keys, XRC_PD_OTHER, (uintptr_t)p.b.mem, p.b.mem,
				 p.conf.mem_bytes, IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE,
				 &second.key),
		0);
}

void
second_remove(void)
{
	srq_table_remove(&p.b.srqs, &second.srq);
	qp_forget_srq(&p.b.qp, &second.srq);
}

void
second_fini(void)
{
	srq_fini(&second.srq);
	cq_detach(&second.cq, 0);
	cq_fini(&second.cq);
	(void)key_free(&p.b.keys, second.key);
}

void
xrc_send_to(uint32_t srqn, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct sge sge = host_sge(&p.a, offset, len);
	struct send_req req = {.wr_id = wr_id,
		.flags = IBV_SEND_SIGNALED,
		.sge = &sge,
		.num_sge = 1,
		.srqn = srqn};

	assert_int_equal(host_post_send(&p.a, &req), 0);
}

void
xrc_expect_refused(enum ibv_event_type first)
{
	qp_link_drain(&p);
	expect_sent_vendor(&p.a, 11, IBV_WC_REM_INV_REQ_ERR, VENDOR_REMOTE_NAK);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	expect_event(&p.b, first);
	if (first != IBV_EVENT_QP_LAST_WQE_REACHED)
		expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
}
