/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC (annex A14): differences from RC on the wire and in the states of both ends. The
 * SRQs are tested in xrc_srq_test.c. The sweep tests XRC with losses. */
#include <errno.h>
#include <fcntl.h>

#include "xrc_fixture.h"

/* ---- On the wire ---- */

static void
xrceth_check(unsigned index, uint8_t opcode, uint32_t psn)
{
	struct pkt_view v;

	expect_frame(&p.a, index, opcode, psn, -1);
	v = wire_view(&p.a, index);
	assert_int_equal(v.ext[0], 0);
	assert_int_equal(view_srqn(&v), p.b.srq.srqn);
}

/* Each request packet begins with the XRCETH, MIDDLE and LAST too. Responses have
 * none. */
TEST(xrceth_on_requests)
{
	struct sge sge;
	struct send_req req;
	struct pkt_view v;

	xrc_init();
	host_recv(&p.b, 1, 0x8000, 0x4000);
	host_recv(&p.b, 2, 0xC000, 0);
	host_send(&p.a, 1, 0, 2 * XRC_MTU + 5, 0);
	host_write(&p.a, 2, 0, 0x100, XRC_MTU + 1);
	req = host_rdma(
		&p.a, &sge, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0x100, 2 * XRC_MTU + 1);
	req.imm = 0x11223344;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_read(&p.a, 4, 0, 0x100, XRC_MTU + 7);
	host_atomic(&p.a, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0x200, 3, 0);
	host_atomic(&p.a, 6, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0x200, 4, 5);
	host_pull(&p.a, PULL_ALL);

	xrceth_check(0, OPCODE_XRC_SEND_FIRST, PSN_A);
	xrceth_check(1, OPCODE_XRC_SEND_MIDDLE, PSN_A + 1);
	xrceth_check(2, OPCODE_XRC_SEND_LAST, PSN_A + 2);
	xrceth_check(3, OPCODE_XRC_WRITE_FIRST, PSN_A + 3);
	v = wire_view(&p.a, 3);
	assert_int_equal(v.ext + 4 - (const uint8_t *)view_reth(&v), 0);
	assert_int_equal(be32toh(view_reth(&v)->rkey), p.b.rkey);
	assert_int_equal(be32toh(view_reth(&v)->len), XRC_MTU + 1);
	xrceth_check(4, OPCODE_XRC_WRITE_LAST, PSN_A + 4);
	xrceth_check(5, OPCODE_XRC_WRITE_FIRST, PSN_A + 5);
	xrceth_check(7, OPCODE_XRC_WRITE_LAST_IMM, PSN_A + 7);
	v = wire_view(&p.a, 7);
	assert_int_equal(view_imm_be(&v), 0x11223344);
	xrceth_check(8, OPCODE_XRC_READ_REQUEST, PSN_A + 8);
	xrceth_check(9, OPCODE_XRC_FETCH_ADD, PSN_A + 10);
	xrceth_check(10, OPCODE_XRC_COMPARE_SWAP, PSN_A + 11);
	assert_int_equal(p.a.wire_count, 11);

	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_FIRST, PSN_A + 8, 4, XRC_MTU);
	expect_response(&p.b, 1, OPCODE_RC_READ_RESPONSE_LAST, PSN_A + 9, 4, 7);
	expect_frame(&p.b, 2, OPCODE_XRC_ATOMIC_ACKNOWLEDGE, PSN_A + 10, 0);
	assert_int_equal(wire_view(&p.b, 0).opcode, OPCODE_XRC_READ_RESPONSE_FIRST);
	wire_deliver_all(&p.b);
	expect_received(&p.b, 1, 2 * XRC_MTU + 5);
	expect_received(&p.b, 2, 2 * XRC_MTU + 1);
	for (uint64_t i = 2; i <= 6; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

/* An initiator takes no requests, a target takes no responses. RC opcodes are for
 * neither. */
TEST(initiator_and_target_admission)
{
	xrc_init();
	inject_request(&p.a, OPCODE_XRC_SEND_ONLY, PSN_B, 8);
	inject_request(&p.b, OPCODE_XRC_ACKNOWLEDGE, PSN_B, 0);
	inject_request(&p.a, OPCODE_RC_ACKNOWLEDGE, PSN_A, 0);
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A, 8);
	assert_int_equal(p.a.stats.drop[DROP_qp_type], 2);
	assert_int_equal(p.b.stats.drop[DROP_qp_type], 2);
	assert_int_equal(p.b.qp.resp.epsn, PSN_A);
	qp_link_fini(&p);
}

/* A READ and its duplicate are answered in the PD of its SRQ, whatever came behind it. */
TEST(read_keeps_pd_of_its_srq)
{
	struct pkt_spec read = {.opcode = OPCODE_XRC_READ_REQUEST,
		.psn = PSN_A,
		.dma_len = 2 * XRC_MTU,
		.ack_req = true};

	xrc_init();
	second_init(XRCD);
	read.va = (uintptr_t)p.b.mem;
	read.rkey = second.key;
	read.srqn = second.srq.srqn;
	inject(&p.b, &read);
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_XRC_WRITE_ONLY,
			     .psn = PSN_A + 2,
			     .va = (uintptr_t)p.b.mem + 0x4000,
			     .rkey = p.b.rkey,
			     .dma_len = 8,
			     .payload_len = 8});
	host_pull(&p.b, PULL_ALL);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_FIRST, PSN_A, 1, XRC_MTU);
	wire_drop_all(&p.b);
	inject(&p.b, &read);
	host_pull(&p.b, PULL_ALL);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_FIRST, PSN_A, 2, XRC_MTU);
	wire_drop_all(&p.b);
	/* Not after the SRQ was removed: its PD number may belong to another
	 * application. */
	second_remove();
	inject(&p.b, &read);
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A, 2);
	wire_drop_all(&p.b);
	assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
	second_fini();
	qp_link_fini(&p);
}

/* ---- States ---- */

/* ERR raises the event at once, as the target has no receives outstanding. After RESET
 * its receive completions stay, because they are the SRQ's. */
TEST(target_in_err_and_reset)
{
	xrc_init();
	host_recv(&p.b, 1, 0x8000, XRC_MTU);
	host_send(&p.a, 11, 0, 8, IBV_SEND_SIGNALED);
	qp_link_drain(&p);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	assert_null(p.b.qp.srq);
	expect_received(&p.b, 1, 8);
	expect_sent(&p.a, 11, IBV_WC_SUCCESS);
	/* The target works again. */
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	qp_link_connect(&p);
	host_recv(&p.b, 2, 0x8000, XRC_MTU);
	host_send(&p.a, 12, 0, 8, IBV_SEND_SIGNALED);
	qp_link_drain(&p);
	expect_received(&p.b, 2, 8);
	expect_sent(&p.a, 12, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

/* The first packet in RTR raises COMM_EST, also one for an unknown SRQ. */
TEST(comm_est_of_target)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	struct qp_attr attr;

	for (int bad = 0; bad < 2; bad++) {
		conf.type = IBV_QPT_XRC_SEND;
		conf.unconnected = true;
		qp_link_init(&p, &conf);
		host_connect(&p.a);
		host_recv(&p.b, 1, 0x8000, XRC_MTU);
		attr = host_attr(&p.b);
		host_connect(&p.b);
		p.b.qp.state = IBV_QPS_RTR;
		xrc_send_to(p.b.srq.srqn + (uint32_t)bad, 11, 0, 8);
		qp_link_drain(&p);
		expect_event(&p.b, IBV_EVENT_COMM_EST);
		if (bad) {
			xrc_expect_refused(IBV_EVENT_QP_REQ_ERR);
		} else {
			expect_received(&p.b, 1, 8);
			expect_sent(&p.a, 11, IBV_WC_SUCCESS);
		}
		(void)attr;
		qp_link_fini(&p);
	}
}

/* XRC is reliable as RC: when retries are exceeded the QP goes to ERR, not to SQE. */
TEST(exceeded_retries_move_initiator_to_err)
{
	xrc_init();
	host_send(&p.a, 11, 0, 8, 0);
	host_send(&p.a, 12, 0, 8, 0);
	for (int i = 0; i < 8; i++) {
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
		qp_link_advance(&p, 68 * NS_PER_MS);
	}
	expect_sent_vendor(&p.a, 11, IBV_WC_RETRY_EXC_ERR, VENDOR_ACK_TIMEOUT);
	expect_sent(&p.a, 12, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	qp_link_fini(&p);
}

/* Each handle of a target gets the events. */
TEST(each_handle_gets_events)
{
	struct event_queue queue[2];
	struct qp_listener listener[2];
	struct event_record event;

	xrc_init();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(event_queue_init(&queue[i]), 0);
		fcntl(queue[i].fd, F_SETFL, O_NONBLOCK);
		async_event_init(&listener[i].events, &queue[i], &listener[i]);
		LIST_INSERT_HEAD(&p.b.qp.listeners, &listener[i], link);
	}
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(event_next(&queue[i], &event), 0);
		assert_int_equal(event.type, IBV_EVENT_QP_LAST_WQE_REACHED);
		assert_ptr_equal(event.object, &listener[i]);
		assert_int_equal(event_next(&queue[i], &event), -EAGAIN);
		LIST_REMOVE(&listener[i], link);
		event_queue_fini(&queue[i]);
	}
	qp_link_fini(&p);
}

/* Parameters that a QP type does not have are ignored. A target needs an XRC domain, and
 * no CQs. */
TEST(create_checks_domain_and_cqs)
{
	struct qp_conf conf = {.type = IBV_QPT_XRC_RECV,
		.max_send_wr = UINT32_MAX,
		.max_recv_wr = UINT32_MAX};
	struct cq cq;
	struct qp qp;

	assert_int_equal(qp_init(&qp, 2, &conf, &alloc_plain, NULL, NULL), -EINVAL);
	conf.xrcd = 1;
	assert_int_equal(qp_init(&qp, 2, &conf, &alloc_plain, NULL, NULL), 0);
	assert_null(qp.rq);
	assert_null(qp.send_cq);
	qp_reset(&qp);
	qp_fini(&qp);
	conf.type = IBV_QPT_XRC_SEND;
	conf.max_send_wr = 4;
	assert_int_equal(qp_init(&qp, 2, &conf, &alloc_plain, NULL, NULL), -EINVAL);
	assert_int_equal(cq_init(&cq, &alloc_plain, 4, NULL, NULL), 0);
	conf.send_cq = &cq;
	assert_int_equal(qp_init(&qp, 2, &conf, &alloc_plain, NULL, NULL), 0);
	assert_null(qp.rq);
	assert_null(qp.recv_cq);
	qp_reset(&qp);
	qp_fini(&qp);
	cq_fini(&cq);
}
