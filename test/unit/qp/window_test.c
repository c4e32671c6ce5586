/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows over the wire (IBA 10.6.7, 10.8.3.3; docs/protocol.md 14.2): binding,
 * access, end of a window. Invalidates are in window_inv_test.c. */
#include <string.h>

#include <rte_byteorder.h>

#include "window_fixture.h"

/* ---- Bound ---- */

TEST(mw_grants_access)
{
	uint32_t rkey;

	win_init();
	rkey = win_bind();
	bytes_fill(p.a.mem, WIN_LEN, 1);
	win_access(rkey, WR_RDMA_WRITE, WIN_OFFSET, WIN_LEN, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.b.mem + WIN_OFFSET, WIN_LEN, 1));
	memset(p.a.mem, 0, WIN_LEN);
	win_access(rkey, IBV_WR_RDMA_READ, WIN_OFFSET, WIN_LEN, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.a.mem, WIN_LEN, 1));
	win_access(rkey, IBV_WR_ATOMIC_FETCH_AND_ADD, WIN_OFFSET, 8, IBV_WC_SUCCESS);
	win_fini();
}

/* Accesses that exceed the range of the window by a byte or more. */
TEST(mw_range_is_enforced)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t remote, len;
	} rows[] = {
		{WR_RDMA_WRITE, WIN_OFFSET - 1, 1},
		{WR_RDMA_WRITE, WIN_OFFSET, WIN_LEN + 1},
		{WR_RDMA_WRITE, WIN_OFFSET + WIN_LEN, 1},
		{IBV_WR_RDMA_READ, WIN_OFFSET - 1, WIN_LEN},
		{IBV_WR_RDMA_READ, WIN_OFFSET + 1, WIN_LEN},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, WIN_OFFSET - 8, 8},
		{IBV_WR_ATOMIC_CMP_AND_SWP, WIN_OFFSET + WIN_LEN, 8},
		{IBV_WR_ATOMIC_WRITE, WIN_OFFSET + WIN_LEN, 8},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint8_t before[8192];

		win_init();
		bytes_fill(p.b.mem + WIN_OFFSET - 8, sizeof(before), 3);
		win_access(win_bind(), rows[i].opcode, rows[i].remote, rows[i].len,
			IBV_WC_REM_ACCESS_ERR);
		assert_true(bytes_match(p.b.mem + WIN_OFFSET - 8, sizeof(before), 3));
		win_fini();
	}
}

/* The rights of the window count, not those of the region. */
TEST(mw_rights_are_enforced)
{
	static const struct {
		unsigned access;
		enum ibv_wr_opcode opcode;
		bool good;
	} rows[] = {
		{IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, true},
		{IBV_ACCESS_REMOTE_READ, WR_RDMA_WRITE, false},
		{IBV_ACCESS_REMOTE_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, false},
		{IBV_ACCESS_REMOTE_WRITE, WR_RDMA_WRITE, true},
		{IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, false},
		{IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_WRITE, true},
		{IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD, true},
		{IBV_ACCESS_REMOTE_ATOMIC, WR_RDMA_WRITE, false},
		{0, IBV_WR_RDMA_READ, false},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint32_t rkey;

		win_init();
		rkey = ibv_inc_rkey(mw->rkey);
		host_bind(&p.b, 1, 0, rkey, region, WIN_OFFSET, WIN_LEN, rows[i].access);
		host_pull(&p.b, PULL_ALL);
		win_access(rkey, rows[i].opcode, WIN_OFFSET, 8,
			rows[i].good ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		win_fini();
	}
}

/* The R_Key of a READ is checked for each response packet. */
TEST(invalidate_stops_read_response)
{
	uint32_t rkey;

	win_init();
	rkey = win_bind();
	win_post(5, IBV_WR_RDMA_READ, rkey, 0, WIN_OFFSET, WIN_LEN);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, 1), 1);
	host_local_inv(&p.b, 6, SIGNALED, rkey);
	host_pull(&p.b, 2); /* one packet for each half of the QP */
	qp_link_drain(&p);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	expect_sent(&p.a, 5, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(win_poll(&p.b, &p.b.send_cq).wr_id, 6);
	win_fini();
}

/* A local operation behind unsignaled requests: the packet before it has AckReq, also
 * when it is resent. */
TEST(packet_before_local_operation_has_ackreq)
{
	uint32_t rkey;

	win_init();
	rkey = ibv_inc_rkey(mw->rkey);
	host_recv(&p.a, 1, 0, 64);
	host_send(&p.b, 1, 0, 8, 0);
	host_bind(&p.b, 2, SIGNALED, rkey, region, WIN_OFFSET, WIN_LEN, ACCESS_REMOTE);
	assert_int_equal(host_pull(&p.b, 16), 1);
	expect_frame(&p.b, 0, OPCODE_RC_SEND_ONLY, PSN_B, 1);
	wire_drop_all(&p.b);
	expect_idle(&p.b);
	qp_link_advance(&p, 100 * NS_PER_MS); /* the ACK timeout */
	assert_int_equal(host_pull(&p.b, 16), 1);
	expect_frame(&p.b, 0, OPCODE_RC_SEND_ONLY, PSN_B, 1);
	qp_link_drain(&p);
	expect_received(&p.a, 1, 8);
	assert_int_equal(win_poll(&p.b, &p.b.send_cq).opcode, IBV_WC_BIND_MW);
	assert_non_null(key_find(&p.b.keys, rkey)); /* and not bound twice */
	win_fini();
}

/* ---- Errors, end of a window ---- */

TEST(failed_bind_flushes_queue)
{
	win_init();
	host_recv(&p.a, 1, 0, 64);
	host_send(&p.b, 1, 0, 8, SIGNALED);
	host_bind(&p.b, 2, 0, mw->rkey, region + 1, WIN_OFFSET, WIN_LEN, ACCESS_REMOTE);
	host_send(&p.b, 3, 0, 8, 0);
	host_bind(&p.b, 4, 0, mw->rkey, region, WIN_OFFSET, WIN_LEN, ACCESS_REMOTE);
	host_local_inv(&p.b, 5, 0, mw->rkey);
	qp_link_drain(&p);
	expect_received(&p.a, 1, 8);
	expect_sent(&p.b, 1, IBV_WC_SUCCESS);
	expect_sent_vendor(&p.b, 2, IBV_WC_MW_BIND_ERR, VENDOR_MEMORY_WINDOW);
	for (unsigned i = 3; i <= 5; i++)
		expect_sent(&p.b, i, IBV_WC_WR_FLUSH_ERR);
	assert_null(key_find(&p.b.keys, mw->rkey));
	win_fini();
}

/* A window of type 2 is invalidated by RESET of its QP, one of type 1 is not (IBA
 * 10.6.7.2.6). */
TEST(reset_invalidates_type2_mw)
{
	struct mw *type1;
	uint32_t rkey, other;

	win_init();
	type1 = host_mw(&p.b, false);
	rkey = win_bind();
	other = ibv_inc_rkey(type1->rkey);
	host_bind(&p.b, 1, 0, other, region, WIN_OFFSET, WIN_LEN, ACCESS_REMOTE);
	host_pull(&p.b, PULL_ALL);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	assert_non_null(key_find(&p.b.keys, rkey));
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	assert_null(key_find(&p.b.keys, rkey));
	assert_non_null(key_find(&p.b.keys, other));
	assert_int_equal(key_free(&p.b.keys, region), -EBUSY);
	mw_destroy(&p.b.keys, type1);
	win_fini();
}

/* The QP is destroyed with a window bound. */
TEST(destroy_invalidates_mw)
{
	uint32_t rkey;

	win_init();
	rkey = win_bind();
	qp_reset(&p.b.qp);
	assert_null(key_find(&p.b.keys, rkey));
	win_fini();
}
