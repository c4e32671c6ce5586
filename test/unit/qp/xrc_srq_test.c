/* SPDX-License-Identifier: BSD-3-Clause */
/* SRQs that XRC requests name (annex A14): the receives and keys used, and messages whose
 * SRQ is invalid or not usable. */
#include "xrc_fixture.h"

static void
second_recv(uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct sge sge = host_sge(&p.b, offset, len);

	sge.lkey = second.key;
	assert_int_equal(ring_post(&second.srq.ring, wr_id, &sge, 1), 0);
}

static void
second_received(uint64_t wr_id, enum ibv_wc_status status, uint32_t len_or_vendor)
{
	struct cqe cqe;

	assert_true(cq_take(&second.cq, &p.b.qp.sq, &cqe));
	assert_int_equal(cqe.wr_id, wr_id);
	assert_int_equal(cqe.status, status);
	assert_int_equal(cqe.byte_len, len_or_vendor);
	assert_int_equal(cqe.qpn, QPN_B);
	assert_false(cq_take(&second.cq, &p.b.qp.sq, &cqe));
}

/* ---- SRQs ---- */

/* The SRQ of a message determines its receive, its CQ and its PD. Completions of the
 * initiator stay in order. */
TEST(messages_to_two_srqs)
{
	xrc_init();
	second_init(XRCD);
	host_recv(&p.b, 1, 0x8000, 4 * XRC_MTU);
	second_recv(2, 0xA000, 4 * XRC_MTU);
	host_recv(&p.b, 3, 0xC000, 4 * XRC_MTU);
	xrc_send_to(p.b.srq.srqn, 11, 0, 2 * XRC_MTU);
	xrc_send_to(second.srq.srqn, 12, 0x1000, 2 * XRC_MTU + 1);
	xrc_send_to(p.b.srq.srqn, 13, 0x2000, 1);
	qp_link_drain(&p);
	expect_received(&p.b, 1, 2 * XRC_MTU);
	expect_received(&p.b, 3, 1);
	second_received(2, IBV_WC_SUCCESS, 2 * XRC_MTU + 1);
	assert_memory_equal(p.b.mem + 0x8000, p.a.mem, 2 * XRC_MTU);
	assert_memory_equal(p.b.mem + 0xA000, p.a.mem + 0x1000, 2 * XRC_MTU + 1);
	for (uint64_t i = 11; i <= 13; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	second_remove();
	second_fini();
	qp_link_fini(&p);
}

/* An unknown SRQ number or an SRQ of another XRC domain: NAK 0x61, for every opcode. */
TEST(unknown_srq_is_refused)
{
	for (int op = 0; op < 4; op++) {
		struct sge sge;
		struct send_req req;

		xrc_init();
		second_init(XRCD + 1);
		second_recv(2, 0xA000, XRC_MTU);
		req = host_rdma(&p.a, &sge, 11,
			op == 0   ? IBV_WR_SEND
			: op == 1 ? IBV_WR_RDMA_READ
			: op == 2 ? WR_RDMA_WRITE
				  : IBV_WR_ATOMIC_FETCH_AND_ADD,
			0, 0x100, 8);
		req.srqn = op == 0 ? second.srq.srqn : second.srq.srqn + 1;
		assert_int_equal(host_post_send(&p.a, &req), 0);
		xrc_expect_refused(IBV_EVENT_QP_REQ_ERR);
		assert_int_equal(recv_ring_outstanding(&second.srq.ring), 1);
		second_remove();
		second_fini();
		qp_link_fini(&p);
	}
}

/* A message that changes its SRQ: the receive that it had taken completes in error in the
 * CQ of its SRQ. */
TEST(srq_change_inside_message)
{
	xrc_init();
	second_init(XRCD);
	second_recv(2, 0xA000, 4 * XRC_MTU);
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_XRC_SEND_FIRST,
			     .psn = PSN_A,
			     .srqn = second.srq.srqn,
			     .payload_len = XRC_MTU});
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_XRC_SEND_MIDDLE,
			     .psn = PSN_A + 1,
			     .payload_len = XRC_MTU});
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_NAK_INV_REQ, PSN_A + 1, 0);
	wire_drop_all(&p.b);
	second_received(2, IBV_WC_REM_INV_REQ_ERR, VENDOR_SRQN);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	second_remove();
	second_fini();
	qp_link_fini(&p);
}

/* Remote access uses the PD of the SRQ. The target has no PD. */
TEST(remote_keys_use_srq_pd)
{
	struct sge sge;
	struct send_req req;

	xrc_init();
	second_init(XRCD);
	for (unsigned i = 0; i < 3; i++) {
		req = host_rdma(&p.a, &sge, i,
			i == 0   ? WR_RDMA_WRITE
			: i == 1 ? IBV_WR_RDMA_READ
				 : IBV_WR_ATOMIC_FETCH_AND_ADD,
			0, 0x100, 8);
		req.srqn = second.srq.srqn;
		req.rkey = second.key;
		assert_int_equal(host_post_send(&p.a, &req), 0);
		host_write(&p.a, i + 10, 0, 0x108, 8); /* the other SRQ, its key */
	}
	qp_link_drain(&p);
	for (unsigned i = 0; i < 3; i++) {
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
		expect_sent(&p.a, i + 10, IBV_WC_SUCCESS);
	}
	/* The key of one SRQ's PD with the other SRQ. */
	req.srqn = p.b.srq.srqn;
	req.wr_id = 11;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	qp_link_drain(&p);
	expect_sent(&p.a, 11, IBV_WC_REM_ACCESS_ERR);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	second_remove();
	second_fini();
	qp_link_fini(&p);
}

/* The SRQ is destroyed in the middle of a message: its receive goes with it, and the rest
 * of the message is refused. */
TEST(srq_destroyed_inside_message)
{
	xrc_init();
	second_init(XRCD);
	second_recv(2, 0xA000, 4 * XRC_MTU);
	xrc_send_to(second.srq.srqn, 11, 0, 3 * XRC_MTU);
	host_pull(&p.a, PULL_ALL);
	wire_deliver(&p.a, 0);
	assert_true(p.b.qp.resp.wqe_held);
	second_remove();
	second_fini();
	xrc_expect_refused(IBV_EVENT_QP_REQ_ERR);
	qp_link_fini(&p);
}

TEST(srq_error_sends_nak)
{
	xrc_init();
	p.b.srq.error = true;
	host_send(&p.a, 11, 0, 8, IBV_SEND_SIGNALED);
	qp_link_drain(&p);
	expect_sent(&p.a, 11, IBV_WC_REM_OP_ERR);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	qp_link_fini(&p);
}

/* An empty SRQ: RNR NAK for the message, and messages behind it wait as well. */
TEST(empty_srq_sends_rnr_nak)
{
	xrc_init();
	second_init(XRCD);
	second_recv(2, 0xA000, XRC_MTU);
	host_send(&p.a, 11, 0, 8, IBV_SEND_SIGNALED);
	xrc_send_to(second.srq.srqn, 12, 0, 8);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_RNR_NAK | 12, PSN_A, 0);
	wire_deliver_all(&p.b);
	host_recv(&p.b, 1, 0x8000, XRC_MTU);
	qp_link_advance(&p, rnr_timer_ns[12]);
	qp_link_drain(&p);
	expect_received(&p.b, 1, 8);
	second_received(2, IBV_WC_SUCCESS, 8);
	expect_sent(&p.a, 11, IBV_WC_SUCCESS);
	expect_sent(&p.a, 12, IBV_WC_SUCCESS);
	second_remove();
	second_fini();
	qp_link_fini(&p);
}

TEST(srq_limit_event)
{
	struct srq_attr attr = {.limit = 2};

	xrc_init();
	host_recv(&p.b, 1, 0x8000, XRC_MTU);
	host_recv(&p.b, 2, 0x9000, XRC_MTU);
	assert_int_equal(srq_modify(&p.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	host_send(&p.a, 11, 0, 8, IBV_SEND_SIGNALED);
	qp_link_drain(&p);
	expect_event(&p.b, IBV_EVENT_SRQ_LIMIT_REACHED);
	expect_received(&p.b, 1, 8);
	expect_sent(&p.a, 11, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}
