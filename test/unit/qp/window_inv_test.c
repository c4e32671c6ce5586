/* SPDX-License-Identifier: BSD-3-Clause */
/* Local and remote invalidates (IBA 10.6.7.2, 10.8.3.3), and their order among other
 * requests. */
#include <string.h>

#include <rte_byteorder.h>

#include "window_fixture.h"

static void
win_post_inv(uint64_t wr_id, unsigned flags, uint32_t rkey, uint32_t len)
{
	struct sge sge = host_sge(&p.a, 0, len);
	struct send_req req = {.wr_id = wr_id,
		.opcode = IBV_WR_SEND_WITH_INV,
		.flags = flags,
		.imm = rte_cpu_to_be_32(rkey),
		.sge = &sge,
		.num_sge = 1};

	assert_int_equal(host_post_send(&p.a, &req), 0);
}

/* ---- Invalidated ---- */

TEST(local_invalidate)
{
	uint32_t rkey;

	win_init();
	rkey = win_bind();
	host_local_inv(&p.b, 7, SIGNALED, rkey);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	assert_int_equal(win_poll(&p.b, &p.b.send_cq).opcode, IBV_WC_LOCAL_INV);
	win_access(rkey, WR_RDMA_WRITE, WIN_OFFSET, 8, IBV_WC_REM_ACCESS_ERR);
	win_fini();
}

/* SEND_ONLY and SEND_LAST with invalidate: the data is received, the key is invalid, and
 * the receive completion has the key. A later access is refused (capture 47). */
TEST(send_with_invalidate)
{
	for (unsigned i = 0; i < 2; i++) {
		uint32_t len = i == 0 ? 9 : 2500, rkey;
		struct cqe cqe;
		struct pkt_view v;

		win_init();
		rkey = win_bind();
		host_recv(&p.b, 3, 0, 4096);
		bytes_fill(p.a.mem, len, 4);
		win_post_inv(8, SIGNALED, rkey, len);
		host_pull(&p.a, PULL_ALL);
		expect_frame(&p.a, p.a.wire_count - 1,
			i == 0 ? OPCODE_RC_SEND_ONLY_INV : OPCODE_RC_SEND_LAST_INV,
			PSN_A + (i == 0 ? 0 : 2), 1);
		v = wire_view(&p.a, p.a.wire_count - 1);
		assert_int_equal(rte_be_to_cpu_32(view_imm_be(&v)), rkey);
		qp_link_drain(&p);
		assert_int_equal(win_poll(&p.a, &p.a.send_cq).opcode, IBV_WC_SEND);
		cqe = win_poll(&p.b, &p.b.recv_cq);
		assert_int_equal(cqe.opcode, IBV_WC_RECV);
		assert_int_equal(cqe.wc_flags, IBV_WC_WITH_INV);
		assert_int_equal(cqe.imm, rkey);
		assert_int_equal(cqe.byte_len, len);
		assert_true(bytes_match(p.b.mem, len, 4));
		win_access(rkey, WR_RDMA_WRITE, WIN_OFFSET, 8, IBV_WC_REM_ACCESS_ERR);
		win_fini();
	}
}

/* A duplicate invalidates nothing: the window has been bound again in the meantime. */
TEST(duplicate_invalidates_nothing)
{
	uint32_t rkey;

	win_init();
	rkey = win_bind();
	host_recv(&p.b, 3, 0, 64);
	win_post_inv(8, SIGNALED, rkey, 8);
	host_pull(&p.a, PULL_ALL);
	wire_dup(&p.a, 0);
	wire_deliver(&p.a, 0);
	win_poll(&p.b, &p.b.recv_cq);
	host_bind(&p.b, 1, 0, rkey, region, WIN_OFFSET, WIN_LEN, ACCESS_REMOTE);
	host_pull(&p.b, PULL_ALL);
	qp_link_drain(&p);
	expect_sent(&p.a, 8, IBV_WC_SUCCESS);
	win_access(rkey, WR_RDMA_WRITE, WIN_OFFSET, 8, IBV_WC_SUCCESS);
	win_fini();
}

/* Row 19 of docs/protocol.md 8.2: the key is not that of a window bound by this QP. No
 * data is written, no key is invalidated, and the QPs go to ERR. */
TEST(invalid_key_to_invalidate_is_refused)
{
	for (unsigned i = 0; i < 6; i++) {
		struct mw *type1;
		uint32_t keys[6];

		win_init();
		type1 = host_mw(&p.b, false);
		keys[0] = p.b.rkey;
		keys[1] = 0;
		keys[2] = UINT32_MAX;
		keys[3] = mw->rkey; /* not bound */
		keys[4] = ibv_inc_rkey(type1->rkey);
		keys[5] = win_bind() + 1;
		host_bind(
			&p.b, 1, 0, keys[4], region, WIN_OFFSET, WIN_LEN, ACCESS_REMOTE);
		host_pull(&p.b, PULL_ALL);
		memset(p.b.mem, 0x77, 64);
		host_recv(&p.b, 3, 0, 64);
		bytes_fill(p.a.mem, 8, 4);
		win_post_inv(8, 0, keys[i], 8);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A, 0);
		qp_link_drain(&p);
		expect_recv_error(&p.b, 3, IBV_WC_REM_INV_REQ_ERR, VENDOR_MEMORY_WINDOW);
		assert_int_equal(p.b.mem[0], 0x77);
		assert_non_null(key_find(&p.b.keys, p.b.rkey));
		assert_non_null(key_find(&p.b.keys, keys[4]));
		expect_sent(&p.a, 8, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
		mw_destroy(&p.b.keys, type1);
		win_fini();
	}
}

/* ---- Order ---- */

/* A list of requests of all kinds: completions in order, each operation executed once,
 * whichever packet is lost. Completions of local operations cover the requests before. */
TEST(local_operations_in_order)
{
	for (unsigned lose = 0; lose < 3; lose++) {
		struct mw *own;
		uint32_t parent, rkey;

		win_init();
		own = host_mw(&p.a, true);
		parent = host_key(&p.a, 0, 4096, WIN_RIGHTS);
		rkey = ibv_inc_rkey(own->rkey);
		for (unsigned i = 0; i < 3; i++)
			host_recv(&p.b, i, 0, 4096);
		host_send(&p.a, 1, 0, 2500, 0);
		host_bind(&p.a, 2, SIGNALED, rkey, parent, 0, 8, ACCESS_REMOTE);
		host_local_inv(&p.a, 3, 0, rkey);
		host_bind(&p.a, 4, SIGNALED, rkey, parent, 8, 8, ACCESS_REMOTE);
		host_read(&p.a, 5, 0, WIN_OFFSET, 2500);
		host_local_inv(&p.a, 6, SIGNALED, rkey);
		host_send(&p.a, 7, 0, 10, 0);
		host_local_inv(&p.a, 8, SIGNALED | IBV_SEND_FENCE, rkey);
		host_pull(&p.a, PULL_ALL);
		/* They are executed, but not complete. The fenced one waits for the
		 * READ. */
		assert_int_equal(own->rkey, rkey);
		assert_null(key_find(&p.a.keys, rkey));
		expect_idle(&p.a);
		if (lose == 1)
			wire_drop_all(&p.a);
		if (lose == 2)
			wire_drop(&p.a, 2); /* SEND_LAST */
		qp_link_drain(&p);
		qp_link_advance(&p, 500 * NS_PER_MS);
		qp_link_drain(&p);
		for (unsigned i = 0; i < 2; i++)
			expect_received(&p.b, i, i == 0 ? 2500 : 10);
		expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		expect_sent(&p.a, 4, IBV_WC_SUCCESS);
		expect_sent(&p.a, 5, IBV_WC_SUCCESS);
		expect_sent(&p.a, 6, IBV_WC_SUCCESS);
		/* The window was already invalid when this request was executed. */
		expect_sent_vendor(&p.a, 8, IBV_WC_MW_BIND_ERR, VENDOR_MEMORY_WINDOW);
		assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
		mw_destroy(&p.a.keys, own);
		assert_int_equal(key_free(&p.a.keys, parent), 0);
		win_fini();
	}
}

/* Local operations with nothing behind them are completed by the READ response. */
TEST(read_response_completes_local_operations)
{
	uint32_t rkey;

	win_init();
	rkey = win_bind();
	host_read(&p.b, 1, 0, WIN_OFFSET, 5000);
	host_local_inv(&p.b, 2, SIGNALED, rkey);
	host_bind(&p.b, 3, 0, rkey, region, WIN_OFFSET, WIN_LEN, ACCESS_REMOTE);
	host_local_inv(&p.b, 4, SIGNALED, rkey);
	host_pull(&p.b, PULL_ALL);
	expect_idle(&p.b);
	qp_link_drain(&p);
	expect_sent(&p.b, 1, IBV_WC_SUCCESS);
	expect_sent(&p.b, 2, IBV_WC_SUCCESS);
	expect_sent(&p.b, 4, IBV_WC_SUCCESS);
	assert_int_equal(p.b.qp.req.una_idx, p.b.qp.req.next_idx);
	win_fini();
}

/* UC has windows too. Their operations need no response. */
TEST(mw_on_uc)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint32_t rkey;

	conf.type = IBV_QPT_UC;
	conf.access = IBV_ACCESS_REMOTE_WRITE;
	qp_link_init(&p, &conf);
	region = host_key(&p.b, 0, conf.mem_bytes, WIN_RIGHTS);
	mw = host_mw(&p.b, true);
	rkey = win_bind();
	bytes_fill(p.a.mem, WIN_LEN, 1);
	win_post(5, WR_RDMA_WRITE, rkey, 0, WIN_OFFSET, WIN_LEN);
	win_post(6, WR_RDMA_WRITE, rkey, 0, WIN_OFFSET + 1, WIN_LEN);
	qp_link_drain(&p);
	expect_sent(&p.a, 5, IBV_WC_SUCCESS);
	expect_sent(&p.a, 6, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.b.mem + WIN_OFFSET, WIN_LEN, 1));
	/* An error stops only the send queue. */
	host_bind(&p.b, 2, 0, rkey, region, WIN_OFFSET, WIN_LEN, ACCESS_REMOTE);
	host_pull(&p.b, PULL_ALL);
	expect_sent_vendor(&p.b, 2, IBV_WC_MW_BIND_ERR, VENDOR_MEMORY_WINDOW);
	assert_int_equal(p.b.qp.state, IBV_QPS_SQE);
	win_fini();
}
