/* SPDX-License-Identifier: BSD-3-Clause */
/* ERR and RESET: their effect on requests, receives and completions (docs/protocol.md
 * 13.3; IBA 10.3.1.7, 10.8.3.1). */
#include "qp_link.h"

static struct qp_link p;

static void
init(bool srq)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.srq = srq;
	qp_link_init(&p, &conf);
}

/* ERR flushes both queues in order: requests that are complete, sent, half sent and not
 * sent, signaled or not. */
TEST(err_flushes_in_order)
{
	init(false);
	for (unsigned i = 0; i < 6; i++)
		host_send(&p.a, i, 0, 2000, i % 2 ? IBV_SEND_SIGNALED : 0);
	for (unsigned i = 0; i < 4; i++)
		host_recv(&p.a, 100 + i, 0, 4000);
	host_pull(&p.a, 7);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 3);
	inject_request(&p.a, OPCODE_RC_SEND_FIRST, PSN_B, 1024); /* a receive in use */
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	for (unsigned i = 2; i < 6; i++)
		expect_sent_vendor(&p.a, i, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	for (unsigned i = 0; i < 4; i++)
		expect_recv_error(&p.a, 100 + i, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	expect_idle(&p.a);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(p.a.qp.sq.freed, 6);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a); /* a pending acknowledgement */
	qp_link_fini(&p);
}

/* Any number of later posts is accepted and flushed. */
TEST(later_posts_are_flushed)
{
	init(false);
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	for (unsigned round = 0; round < 200; round++) {
		assert_false(qp_wants_tx(&p.a.qp));
		for (unsigned i = 0; i < 3; i++) {
			host_send(&p.a, 3 * round + i, 0, 2000, 0);
			host_recv(&p.a, 3 * round + i, 0, 2000);
		}
		assert_true(qp_wants_tx(&p.a.qp));
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		for (unsigned i = 0; i < 3; i++) {
			expect_sent(&p.a, 3 * round + i, IBV_WC_WR_FLUSH_ERR);
			expect_recv_error(&p.a, 3 * round + i, IBV_WC_WR_FLUSH_ERR, ANY);
		}
	}
	/* Responses and requests are dropped, and no timer runs. */
	inject_request(&p.a, OPCODE_RC_SEND_ONLY, PSN_B, 8);
	assert_int_equal(p.a.stats.drop[DROP_qp_state], 1);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	qp_link_fini(&p);
}

/* Receives of an SRQ are not flushed, except one that the QP has taken.
 * QP_LAST_WQE_REACHED is raised once, behind the last receive completion (o11-5.2.5). */
TEST(srq_receives_are_not_flushed)
{
	for (unsigned held = 0; held < 2; held++) {
		init(true);
		for (unsigned i = 0; i < 3; i++)
			host_recv(&p.b, i, 0, 4000);
		if (held)
			inject_request(&p.b, OPCODE_RC_SEND_FIRST, PSN_A, 1024);
		assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
		expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
		if (held)
			expect_recv_error(&p.b, 0, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
		assert_int_equal(recv_ring_outstanding(&p.b.srq.ring), 3 - held);
		assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
		host_send(&p.b, 9, 0, 8, 0);
		host_pull(&p.b, PULL_ALL);
		wire_drop_all(&p.b);
		expect_sent(&p.b, 9, IBV_WC_WR_FLUSH_ERR);
		expect_idle(&p.b);
		assert_int_equal(recv_ring_outstanding(&p.b.srq.ring), 3 - held);
		/* A QP that is connected again raises the event again. */
		assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
		host_connect(&p.b);
		assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
		expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
		qp_link_fini(&p);
	}
}

/* RESET discards all requests without a completion and clears PSNs, MSN and opcode state.
 * It removes unpolled CQEs: polling one later would free slots of the reconnected QP. */
TEST(reset_discards_everything)
{
	struct cqe cqe;

	init(false);
	for (unsigned i = 0; i < 40; i++) {
		host_send(&p.a, i, 0, 2000, IBV_SEND_SIGNALED);
		host_recv(&p.a, i, 0, 2000);
	}
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 9);
	inject_request(&p.a, OPCODE_RC_SEND_ONLY, PSN_B, 8);
	inject_request(&p.a, OPCODE_RC_SEND_FIRST, PSN_B + 1, 1024);
	assert_true(host_poll(&p.a, &p.a.send_cq, &cqe));
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	expect_idle(&p.a);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	assert_false(qp_wants_tx(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_int_equal(p.a.qp.sq.prod, 0);
	assert_int_equal(recv_ring_outstanding(p.a.qp.rq), 0);
	assert_int_equal(p.a.qp.resp.msn, 0);

	/* The QP works again, with other PSNs. */
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	p.conf.psn[0] = 0xFFFFFE;
	p.conf.psn[1] = 5;
	qp_link_connect(&p);
	for (unsigned i = 0; i < 64; i++) {
		host_recv(&p.b, 200 + i, 0, 2000);
		host_send(&p.a, 100 + i, 0, 2000, IBV_SEND_SIGNALED);
	}
	qp_link_drain(&p);
	for (unsigned i = 0; i < 64; i++) {
		expect_sent(&p.a, 100 + i, IBV_WC_SUCCESS);
		expect_received(&p.b, 200 + i, 2000);
	}
	qp_link_fini(&p);
}

/* RESET changes what pollers and posters use: they are kept out, each by its lock. */
TEST(reset_needs_locks_of_both_cqs_and_sq)
{
	struct app_locks set = {.count = 0}, shared = {.count = 0};

	init(false);
	qp_reset_locks(&p.a.qp, &set);
	assert_int_equal(set.count, 3);
	assert_ptr_equal(set.lock[0], &p.a.send_cq.lock);
	assert_ptr_equal(set.lock[1], &p.a.recv_cq.lock);
	assert_ptr_equal(set.lock[2], &p.a.qp.sq.lock);
	p.a.qp.recv_cq = &p.a.send_cq;
	p.a.qp.sq.unlocked = true;
	qp_reset_locks(&p.a.qp, &shared);
	assert_int_equal(shared.count, 1);
	p.a.qp.recv_cq = &p.a.recv_cq;
	p.a.qp.sq.unlocked = false;
	qp_link_fini(&p);
}

/* RESET from every state, and twice. */
TEST(reset_from_every_state)
{
	for (unsigned s = IBV_QPS_RESET; s <= IBV_QPS_ERR; s++) {
		init(true);
		p.b.qp.state = (uint8_t)s;
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
			assert_int_equal(p.b.qp.state, IBV_QPS_RESET);
		}
		host_connect(&p.b);
		host_recv(&p.b, 1, 0, 8);
		host_send(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
		qp_link_drain(&p);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_received(&p.b, 1, 8);
		qp_link_fini(&p);
	}
}

/* Both queues use one CQ: RESET cleans it once and completely, and leaves the CQEs of
 * other QPs. */
TEST(reset_cleans_shared_cq)
{
	struct cqe other_cqe = {.wr_id = 77, .qpn = 0x99, .opcode = IBV_WC_RECV}, cqe;

	init(false);
	p.a.qp.recv_cq = &p.a.send_cq;
	host_send(&p.a, 1, 0, 8, 0);
	host_recv(&p.a, 2, 0, 8);
	assert_true(cq_put(&p.a.send_cq, &other_cqe, NULL));
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	assert_true(host_poll(&p.a, &p.a.send_cq, &cqe));
	assert_int_equal(cqe.wr_id, 77);
	p.a.qp.recv_cq = &p.a.recv_cq;
	qp_link_fini(&p);
}
