/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that UC messages take (IBA 9.8.3). */
#include "uc_fixture.h"

/* WRITE with immediate without a receive: the packet is dropped and its message with it.
 * The packet's PSN does not come again. */
TEST(write_with_imm_without_receive)
{
	struct pkt_spec c = {.opcode = OPCODE_UC_WRITE_FIRST,
		.psn = PSN_A,
		.payload_len = UC_MTU,
		.dma_len = UC_MTU + 8};

	uc_open_default();
	c.va = (uintptr_t)p.b.mem;
	c.rkey = p.b.rkey;
	inject(&p.b, &c);
	c = (struct pkt_spec){
		.opcode = OPCODE_UC_WRITE_LAST_IMM, .psn = PSN_A + 1, .payload_len = 8};
	inject(&p.b, &c);
	assert_int_equal(uc_dropped(DROP_no_receive), 1);
	/* The next LAST belongs to no message. */
	host_recv(&p.b, 70, 8192, 100);
	c.psn++;
	inject(&p.b, &c);
	expect_idle(&p.b);
	assert_int_equal(uc_dropped(DROP_psn_gap), 1);
	c = (struct pkt_spec){.opcode = OPCODE_UC_WRITE_ONLY_IMM,
		.psn = PSN_A + 3,
		.payload_len = 8,
		.dma_len = 8,
		.va = (uintptr_t)p.b.mem,
		.rkey = p.b.rkey};
	inject(&p.b, &c);
	expect_received(&p.b, 70, 8);
	inject(&p.b, &c);
	assert_int_equal(uc_dropped(DROP_no_receive), 1);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
	uc_close();
}

/* SEND without a receive: the whole message is dropped. The next one finds its
 * receive. */
TEST(send_without_receive)
{
	uc_open_default();
	host_send(&p.a, 1, 0, 2500, 0);
	uc_send_all_but(UC_NONE_LOST);
	assert_int_equal(uc_dropped(DROP_no_receive), 1);
	assert_int_equal(uc_dropped(DROP_psn_gap), 2);
	host_recv(&p.b, 70, 0, 8192);
	host_send(&p.a, 2, 0, 2500, IBV_SEND_SIGNALED);
	uc_send_all_but(UC_NONE_LOST);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	expect_received(&p.b, 70, 2500);
	uc_close();
}

/* A message longer than its receive is dropped. The receive serves the next message; one
 * of an SRQ completes in error. */
TEST(message_too_long)
{
	for (unsigned srq = 0; srq < 2; srq++) {
		struct qp_link_conf conf = qp_link_defaults();

		conf.srq = srq != 0;
		uc_open(conf);
		host_recv(&p.b, 70, 0, 1500);
		if (srq)
			host_recv(&p.b, 71, 0, 1500);
		host_send(&p.a, 1, 0, 1501, 0);
		host_send(&p.a, 2, 0, 1500, IBV_SEND_SIGNALED);
		uc_send_all_but(UC_NONE_LOST);
		expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		assert_int_equal(uc_dropped(DROP_discarded), 1);
		if (srq)
			expect_recv_error(
				&p.b, 70, IBV_WC_LOC_LEN_ERR, VENDOR_RECV_SHORT);
		expect_received(&p.b, 70 + srq, 1500);
		assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
		uc_close();
	}
}

/* The receive of an SRQ that a discarded message had taken completes in error. Nothing
 * else happens to the QP (class E). The lost packet is any of the message; later messages
 * arrive. */
TEST(srq_receive_of_lost_message)
{
	for (unsigned lost = 0; lost < 4; lost++) {
		struct qp_link_conf conf = qp_link_defaults();
		bool taken = lost == 1 || lost == 2;

		conf.srq = true;
		uc_open(conf);
		host_recv(&p.b, 70, 0, 8192);
		host_recv(&p.b, 71, 8192, 8192);
		host_send(&p.a, 1, 0, 2500, 0);
		host_send(&p.a, 2, 0, 10, lost == 3 ? 0 : IBV_SEND_SIGNALED);
		uc_send_all_but(lost);
		if (lost != 3)
			expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		if (taken)
			expect_recv_error(
				&p.b, 70, IBV_WC_REM_INV_REQ_ERR, VENDOR_OPCODE_ORDER);
		if (lost == 3)
			expect_received(&p.b, 70, 2500);
		else
			expect_received(&p.b, 70 + taken, 10);
		assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
		expect_idle(&p.b);
		uc_close();
	}
}

/* The CQ has no room for that completion: QP_FATAL, and no packet is taken any more. */
TEST(srq_receive_of_lost_message_cq_full)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint32_t psn = PSN_A;
	struct cqe cqe;

	conf.srq = true;
	conf.cqe = 1;
	uc_open(conf);
	for (unsigned i = 0; i < 4; i++)
		host_recv(&p.b, 70 + i, 0, 8192);
	/* As many completions as the CQ holds. */
	for (; psn < PSN_A + p.b.recv_cq.size; psn++)
		inject_request(&p.b, OPCODE_UC_SEND_ONLY, psn, 8);
	inject_request(&p.b, OPCODE_UC_SEND_FIRST, psn, UC_MTU);
	inject_request(&p.b, OPCODE_UC_SEND_ONLY, psn + 5, 8);
	expect_event(&p.b, IBV_EVENT_CQ_ERR);
	expect_event(&p.b, IBV_EVENT_QP_FATAL);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_ERR);
	while (host_poll(&p.b, &p.b.recv_cq, &cqe))
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	uc_close();
}

/* A receive whose memory cannot be written moves the QP to ERR (row 18 of
 * docs/protocol.md 8.2). */
TEST(unwritable_receive_moves_qp_to_err)
{
	struct sge sge;

	uc_open_default();
	sge = host_sge(&p.b, 0, 100);
	sge.lkey = p.b.recv_key ^ 1;
	assert_int_equal(host_post_recv(&p.b, 70, &sge, 1), 0);
	host_recv(&p.b, 71, 0, 100);
	inject_request(&p.b, OPCODE_UC_SEND_ONLY, PSN_A, 8);
	expect_recv_error(&p.b, 70, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
	expect_recv_error(&p.b, 71, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_ERR);
	inject_request(&p.b, OPCODE_UC_SEND_ONLY, PSN_A + 1, 8);
	assert_int_equal(uc_dropped(DROP_qp_state), 1);
	uc_close();
}

/* The receive that a discarded message had taken is flushed when the QP enters ERR. */
TEST(taken_receive_is_flushed)
{
	uc_open_default();
	host_recv(&p.b, 70, 0, 8192);
	inject_request(&p.b, OPCODE_UC_SEND_FIRST, PSN_A, UC_MTU);
	inject_request(&p.b, OPCODE_UC_SEND_LAST, PSN_A + 2, 8);
	expect_idle(&p.b);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	expect_recv_error(&p.b, 70, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	uc_close();
}
