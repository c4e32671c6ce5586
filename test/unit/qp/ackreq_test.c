/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AckReq suppression (docs/protocol.md 7.3), in virtual time to the nanosecond. Where
 * many QPs send to one peer, unsignaled requests leave without AckReq. All of them still
 * arrive, and the peer window is not exceeded.
 */
#include "qp_link.h"

static struct qp_link p;

#define US NS_PER_US
#define ACKREQ_DELAY_NS NS_PER_MS /* with few QPs: the minimum */

static void
init(uint32_t window)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.suppress_ackreq = true;
	conf.peer_window = window;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 48; i++)
		host_recv(&p.b, i, 0x1000, 100);
}

/* Sends one SEND, and checks whether it has AckReq. */
static void
send_one(uint64_t wr_id, unsigned flags, bool ackreq)
{
	struct pkt_view view;

	host_send(&p.a, wr_id, 0, 8, flags);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	view = wire_view(&p.a, p.a.wire_count - 1);
	assert_int_equal(view.ack_req, ackreq);
}

static void
expect_peer_counts(uint32_t inflight, uint32_t suppressed)
{
	assert_int_equal(p.a.peer.inflight, inflight);
	assert_int_equal(p.a.peer.suppressed, suppressed);
}

static void
receive_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		expect_received(&p.b, i, 8);
}

/* No ACK is requested before a signaled request, which piggybacks the others. */
static void
signaled_request_has_ackreq(void **state)
{
	init(512);
	for (unsigned i = 0; i < 5; i++)
		send_one(i, 0, false);
	expect_peer_counts(0, 5);
	wire_deliver_all(&p.a);
	receive_all(5);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	send_one(5, IBV_SEND_SIGNALED, true);
	expect_peer_counts(6, 0);
	assert_int_equal(p.a.qp.req.una_idx, 0);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 5, IBV_WC_SUCCESS);
	expect_peer_counts(0, 0);
	assert_int_equal(p.a.qp.req.una_idx, 6);
	expect_received(&p.b, 5, 8);
	assert_int_equal(p.a.stats.ackreq_suppressed, 5);
	assert_int_equal(p.a.stats.ackreq_kept, 0);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	qp_link_fini(&p);
}

/* A list of requests: the last one leaves without AckReq. A signaled one in the middle
 * has AckReq, those behind it have none. */
static void
ackreq_in_a_list(void **state)
{
	init(512);
	for (unsigned i = 0; i < 4; i++)
		host_send(&p.a, i, 0, 8, i == 1 ? IBV_SEND_SIGNALED : 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(wire_view(&p.a, i).ack_req, i == 1);
	expect_peer_counts(0, 4);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	receive_all(4);
	/* Two packets are still unacknowledged. */
	assert_int_equal(p.a.qp.req.una_idx, 2);
	assert_int_equal(qp_deadline(&p.a.qp), p.now + ACKREQ_DELAY_NS);
	qp_link_advance(&p, ACKREQ_DELAY_NS);
	qp_link_drain(&p);
	assert_int_equal(p.a.qp.req.una_idx, 4);
	qp_link_fini(&p);
}

/* A quarter of the peer window may be sent without AckReq. */
static void
suppression_share_of_peer_window(void **state)
{
	init(16);
	for (unsigned i = 0; i < 4; i++)
		send_one(i, 0, false);
	send_one(4, 0, true);
	expect_peer_counts(5, 0);
	/* While that ACK is outstanding the next packets have AckReq, too. */
	send_one(5, 0, true);
	expect_peer_counts(6, 0);
	qp_link_drain(&p);
	expect_peer_counts(0, 0);
	receive_all(6);
	assert_int_equal(p.a.qp.req.una_idx, 6);
	send_one(6, 0, false);
	wire_drop_all(&p.a);
	qp_link_fini_discard(&p);
}

/* Each 32nd packet has AckReq. */
static void
every_32nd_packet_has_ackreq(void **state)
{
	init(4096);
	for (unsigned i = 0; i < 40; i++) {
		send_one(i, 0, (PSN_A + i) % 32 == 31);
		if (i % 32 == 31)
			qp_link_drain(&p);
	}
	qp_link_drain(&p);
	receive_all(40);
	assert_int_equal(p.a.qp.req.una_idx, 32);
	qp_link_advance(&p, ACKREQ_DELAY_NS);
	qp_link_drain(&p);
	assert_int_equal(p.a.qp.req.una_idx, 40);
	assert_int_equal(p.b.stats.duplicates, 1); /* the tail-loss probe */
	qp_link_fini(&p);
}

/* A copy of the oldest packet has AckReq once the delay is over, whether packets were
 * lost or not. */
static void
probe_after_delay(void **state)
{
	for (unsigned lost = 0; lost <= 3; lost++) {
		init(512);
		for (unsigned i = 0; i < 3; i++)
			send_one(i, 0, false);
		for (unsigned i = 0; i < lost; i++)
			wire_drop(&p.a, 0);
		wire_deliver_all(&p.a);
		if (lost != 0 && lost < 3) /* the responder sees the gap at once */
			assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		wire_drop_all(&p.b);
		qp_link_advance(&p, ACKREQ_DELAY_NS - 1);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		qp_link_advance(&p, 1);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A, 1);
		assert_true(p.a.qp.req.ack_deadline != TIME_NEVER);
		qp_link_drain(&p);
		receive_all(3);
		assert_int_equal(p.a.qp.req.una_idx, 3);
		assert_int_equal(p.a.qp.req.retry_left, 7);
		assert_int_equal(p.a.stats.ack_timeouts, 0);
		assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
		expect_peer_counts(0, 0);
		qp_link_fini_discard(&p);
	}
}

/* The peer is gone: retries are exceeded as usual, and nothing stays counted in the peer
 * window. */
static void
lost_peer_frees_window(void **state)
{
	init(512);
	send_one(0, 0, false);
	send_one(1, IBV_SEND_SIGNALED, true);
	expect_peer_counts(2, 0);
	for (unsigned i = 0; i < 100 && p.a.qp.state == IBV_QPS_RTS; i++) {
		wire_drop_all(&p.a);
		qp_link_advance(&p, 100 * NS_PER_MS);
		host_pull(&p.a, PULL_ALL);
	}
	wire_drop_all(&p.a);
	expect_sent(&p.a, 0, IBV_WC_RETRY_EXC_ERR);
	expect_sent(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
	expect_peer_counts(0, 0);
	qp_link_fini_discard(&p);
}

/* A packet with piggybacked ones is resent: their count is released. */
static void
resend_releases_piggybacked(void **state)
{
	init(512);
	for (unsigned i = 0; i < 3; i++)
		send_one(i, 0, false);
	send_one(3, IBV_SEND_SIGNALED, true);
	expect_peer_counts(4, 0);
	wire_deliver(&p.a, 0);
	wire_drop(&p.a, 0);
	wire_deliver_all(&p.a);
	qp_link_drain(&p); /* a NAK, and packets 1 to 3 again */
	assert_int_equal(p.a.stats.retransmitted, 3);
	expect_sent(&p.a, 3, IBV_WC_SUCCESS);
	expect_peer_counts(0, 0);
	receive_all(4);
	qp_link_fini(&p);
}

/* SQD does not wait for the delay. */
static void
drain_requests_ack(void **state)
{
	init(512);
	send_one(0, 0, false);
	wire_deliver_all(&p.a);
	assert_int_equal(host_modify(&p.a, IBV_QPS_SQD), 0);
	assert_true(p.a.qp.req.draining);
	assert_true(qp_wants_tx(&p.a.qp));
	qp_link_drain(&p);
	assert_false(p.a.qp.req.draining);
	receive_all(1);
	qp_link_fini(&p);
}

/* A READ response that is awaited first is requested again when it is late. No more READs
 * are counted than were sent. */
static void
drain_waits_for_read(void **state)
{
	uint32_t mtu;

	init(512);
	mtu = 1u << p.a.qp.pmtu_shift;
	host_read(&p.a, 0, 0x2000, 0x8000, 3 * mtu);
	host_send(&p.a, 1, 0, 8, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	assert_int_equal(wire_view(&p.a, 1).ack_req, false);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop(&p.b, 2);
	wire_deliver_all(&p.b);
	assert_int_equal(host_modify(&p.a, IBV_QPS_SQD), 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_int_equal(p.a.qp.req.reads, 1);
	qp_link_advance(&p, ACKREQ_DELAY_NS);
	qp_link_drain(&p);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	qp_link_advance(&p, ACKREQ_DELAY_NS);
	qp_link_drain(&p);
	assert_false(p.a.qp.req.draining);
	assert_int_equal(p.a.qp.req.reads, 0);
	receive_all(1);
	qp_link_fini(&p);
}

/* The probe cannot copy its packet. With no AckReq outstanding, the retransmission that
 * it starts instead reports the error. */
static void
probe_memory_deregistered(void **state)
{
	struct sge sge;
	struct send_req req = {
		.wr_id = 0, .opcode = IBV_WR_SEND, .sge = &sge, .num_sge = 1};

	init(512);
	sge = host_sge(&p.a, 0, 8);
	sge.lkey = host_key(&p.a, 0, 64, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	send_one(1, 0, false);
	wire_drop_all(&p.a);
	assert_int_equal(key_free(&p.a.keys, sge.lkey), 0);
	qp_link_advance(&p, ACKREQ_DELAY_NS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	expect_sent(&p.a, 0, IBV_WC_LOC_PROT_ERR);
	expect_sent(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
	expect_peer_counts(0, 2); /* until the next packet with AckReq */
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	qp_link_fini_discard(&p);
}

/* A request that cannot be sent fails behind the packets without AckReq. Their ACK is
 * requested at once. */
static void
failed_request_requests_ack(void **state)
{
	struct sge sge;
	struct send_req req = {
		.wr_id = 2, .opcode = IBV_WR_SEND, .sge = &sge, .num_sge = 1};

	init(512);
	send_one(0, 0, false);
	send_one(1, 0, false);
	wire_deliver_all(&p.a);
	sge = host_sge(&p.a, 0, 8);
	sge.lkey ^= 1;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_true(qp_wants_tx(&p.a.qp));
	qp_link_drain(&p);
	expect_sent(&p.a, 2, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	receive_all(2);
	qp_link_fini_discard(&p);
}

/* No suppression without an ACK timeout, because nothing would request the ACK in the
 * end, and none while a READ is outstanding. */
static void
no_suppression_without_ack_timeout(void **state)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.suppress_ackreq = true;
	conf.timeout = 0;
	qp_link_init(&p, &conf);
	host_recv(&p.b, 0, 0x1000, 100);
	send_one(0, 0, true);
	qp_link_drain(&p);
	receive_all(1);
	qp_link_fini(&p);

	init(512);
	host_read(&p.a, 0, 0x2000, 0x8000, 8);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	send_one(1, 0, true);
	qp_link_drain(&p);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	receive_all(1);
	expect_peer_counts(0, 0);
	qp_link_fini(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signaled_request_has_ackreq),
		cmocka_unit_test(ackreq_in_a_list),
		cmocka_unit_test(suppression_share_of_peer_window),
		cmocka_unit_test(every_32nd_packet_has_ackreq),
		cmocka_unit_test(probe_after_delay),
		cmocka_unit_test(lost_peer_frees_window),
		cmocka_unit_test(resend_releases_piggybacked),
		cmocka_unit_test(drain_requests_ack),
		cmocka_unit_test(drain_waits_for_read),
		cmocka_unit_test(probe_memory_deregistered),
		cmocka_unit_test(failed_request_requests_ack),
		cmocka_unit_test(no_suppression_without_ack_timeout),
	};

	return cmocka_run_group_tests_name("qp ackreq", tests, NULL, NULL);
}
