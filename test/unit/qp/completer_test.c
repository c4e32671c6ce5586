/* SPDX-License-Identifier: BSD-3-Clause */
/* Processing of responses by the requester (docs/protocol.md 7; IBA 9.7.5.2, 9.9.2). */
#include "qp_link.h"

static struct qp_link p;

/* Posts n signaled requests of len bytes. Their packets are sent and lost. */
static void
send_lost(unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n; i++)
		host_send(&p.a, i, 0, len, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
}

static void
expect_sent_range(unsigned from, unsigned to, enum ibv_wc_status status)
{
	for (unsigned i = from; i < to; i++)
		expect_sent(&p.a, i, status);
}

/* An ACK acknowledges every packet up to its PSN (docs/protocol.md 7.4). */
TEST(ack_covers_earlier_packets)
{
	qp_link_init_default(&p);
	send_lost(5, 2000);
	inject_ack(&p.a, AETH_ACK, PSN_A); /* inside the first message */
	expect_idle(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 6); /* inside the fourth */
	expect_sent_range(0, 3, IBV_WC_SUCCESS);
	expect_idle(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 9);
	expect_sent_range(3, 5, IBV_WC_SUCCESS);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	assert_int_equal(p.a.peer.send.inflight, 0);
	qp_link_fini(&p);
}

/* Ghosts and stale responses of any kind are dropped, a stale NAK too (docs/protocol.md
 * 7.4). */
TEST(ghosts_and_stale_are_dropped)
{
	static const uint8_t syndromes[] = {
		0x1F, 0x00, 0x21, 0x60, 0x61, 0x62, 0x63, 0x7F};
	uint64_t deadline;

	qp_link_init_default(&p);
	inject_ack(&p.a, AETH_ACK, PSN_A); /* nothing was sent at all */
	inject_ack(&p.a, AETH_ACK, PSN_A - 1);
	assert_int_equal(p.a.stats.drop[DROP_ghost], 1);
	assert_int_equal(p.a.stats.drop[DROP_stale_response], 1);
	send_lost(4, 8);
	inject_ack(&p.a, AETH_ACK, PSN_A + 1);
	expect_sent_range(0, 2, IBV_WC_SUCCESS);
	deadline = qp_deadline(&p.a.qp);
	p.now += 1000;
	for (unsigned i = 0; i < RTE_DIM(syndromes); i++) {
		inject_ack(&p.a, syndromes[i], PSN_A + 4);
		inject_ack(&p.a, syndromes[i], PSN_A + 0x7FFFFF);
		inject_ack(&p.a, syndromes[i], PSN_A + 1);
		inject_ack(&p.a, syndromes[i], psn_add(PSN_A + 2, 0x800000));
	}
	assert_int_equal(p.a.stats.drop[DROP_ghost], 1 + 2 * 8);
	assert_int_equal(p.a.stats.drop[DROP_stale_response], 1 + 2 * 8);
	assert_int_equal(qp_deadline(&p.a.qp), deadline);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	expect_idle(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 3);
	expect_sent_range(2, 4, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

/* Each AETH syndrome (docs/protocol.md 4.2) at the second of three requests. The requests
 * before complete first. NAK codes 0x61 to 0x63 have a status each; a reserved code is a
 * bad response. 0x64 and bit 7 are reserved (docs/protocol.md 19). */
static void
syndrome_run(unsigned s)
{
	enum ibv_wc_status status = IBV_WC_BAD_RESP_ERR;

	qp_link_init_default(&p);
	send_lost(3, 2000);
	inject_ack(&p.a, (uint8_t)s, PSN_A + 3);
	if (s < 0x20) { /* whatever the credits (docs/protocol.md 15) */
		expect_sent_range(0, 2, IBV_WC_SUCCESS);
		expect_idle(&p.a);
		qp_link_fini_reset(&p);
		return;
	}
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	if (s < 0x40 || s == AETH_NAK_SEQ) {
		assert_int_equal(p.a.stats.rnr_nak_received, s < 0x40);
		assert_int_equal(p.a.stats.seq_nak_received, s == AETH_NAK_SEQ);
		assert_int_equal(host_pull(&p.a, PULL_ALL), s < 0x40 ? 0 : 3);
		wire_drop_all(&p.a);
		expect_idle(&p.a);
		qp_link_fini_reset(&p);
		return;
	}
	if (s >= 0x61 && s <= 0x63)
		status = (const enum ibv_wc_status[]){IBV_WC_REM_INV_REQ_ERR,
			IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR}[s - 0x61];
	expect_sent_vendor(&p.a, 1, status,
		s >= 0x61 && s <= 0x63 ? VENDOR_REMOTE_NAK : VENDOR_BAD_SYNDROME);
	expect_sent_vendor(&p.a, 2, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	expect_idle(&p.a);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	qp_link_fini(&p);
}

TEST(aeth_syndromes)
{
	for (unsigned s = 0; s < 256; s++)
		syndrome_run(s);
}

/* READ and atomic responses to a SEND: BAD_RESP_ERR (docs/protocol.md 7.4). */
TEST(rdma_response_to_send_fails)
{
	static const uint8_t opcodes[] = {OPCODE_RC_READ_RESPONSE_FIRST,
		OPCODE_RC_READ_RESPONSE_MIDDLE, OPCODE_RC_READ_RESPONSE_LAST,
		OPCODE_RC_READ_RESPONSE_ONLY, OPCODE_RC_ATOMIC_ACKNOWLEDGE};

	for (unsigned i = 0; i < RTE_DIM(opcodes); i++) {
		qp_link_init_default(&p);
		send_lost(2, 8);
		inject(&p.a, &(struct pkt_spec){.opcode = opcodes[i],
				     .psn = PSN_A,
				     .syndrome = AETH_ACK});
		expect_sent(&p.a, 0, IBV_WC_BAD_RESP_ERR);
		expect_sent(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
		qp_link_fini(&p);
	}
}

/* An unsignaled request that fails completes, and so do all requests behind it
 * (ibv_post_send(3)). Those before it do not complete. */
TEST(failed_unsignaled_request_completes)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 5; i++)
		host_send(&p.a, i, 0, 8, i == 4 ? IBV_SEND_SIGNALED : 0);
	host_pull(&p.a, 3);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_NAK_ACCESS, PSN_A + 1);
	expect_sent(&p.a, 1, IBV_WC_REM_ACCESS_ERR);
	expect_sent_range(2, 5, IBV_WC_WR_FLUSH_ERR);
	qp_link_fini(&p);
}

/* ---- NAK 0x60 ---- */

/* NAK 0x60 acknowledges the packets before its PSN. The rest is resent unchanged, for
 * each lost packet of three messages (docs/protocol.md 7.5). */
TEST(sequence_nak_goes_back_n)
{
	for (unsigned lost = 0; lost < 8; lost++) {
		qp_link_init_default(&p);
		for (unsigned i = 0; i < 3; i++) {
			host_recv(&p.b, i, 20000 * i, 3000);
			bytes_fill(p.a.mem + 20000 * i, 3000, i);
			host_send(&p.a, i, 20000 * i, 3000, IBV_SEND_SIGNALED);
		}
		assert_int_equal(host_pull(&p.a, PULL_ALL), 9);
		wire_drop(&p.a, lost);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A + lost, lost / 3);
		wire_deliver(&p.b, 0);
		for (unsigned i = 0; i < lost / 3; i++)
			expect_sent(&p.a, i, IBV_WC_SUCCESS);
		expect_idle(&p.a);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 9 - lost);
		for (unsigned i = 0; i < p.a.wire_count; i++) {
			static const uint8_t ops[] = {OPCODE_RC_SEND_FIRST,
				OPCODE_RC_SEND_MIDDLE, OPCODE_RC_SEND_LAST};

			expect_frame(&p.a, i, ops[(lost + i) % 3], PSN_A + lost + i, -1);
		}
		assert_int_equal(p.a.stats.retransmitted, 9 - lost);
		qp_link_drain(&p);
		for (unsigned i = 0; i < 3; i++) {
			if (i >= lost / 3)
				expect_sent(&p.a, i, IBV_WC_SUCCESS);
			expect_received(&p.b, i, 3000);
			assert_true(bytes_match(p.b.mem + 20000 * i, 3000, i));
		}
		assert_int_equal(p.b.stats.seq_nak_sent, 1);
		qp_link_fini(&p);
	}
}

/* Further NAKs for the same loss neither restart the retransmission nor charge retry_cnt
 * (docs/protocol.md 7.5). */
TEST(repeated_nak_is_not_charged)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.retry_cnt = 1;
	qp_link_init(&p, &conf);
	send_lost(6, 8);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 2);
	expect_sent_range(0, 2, IBV_WC_SUCCESS);
	assert_int_equal(host_pull(&p.a, 2), 2);
	for (unsigned i = 0; i < 3; i++) {
		inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 2);
		assert_int_equal(p.a.qp.req.next_psn, PSN_A + 4);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_frame(&p.a, 2, OPCODE_RC_SEND_ONLY, PSN_A + 4, -1);
	/* Progress restores the retries, and the next NAK reports a new loss. */
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 3);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	wire_drop_all(&p.a);
	expect_idle(&p.a);
	qp_link_fini_reset(&p);
}

/* NAK 0x60 charges retry_cnt. With no retry left: RETRY_EXC_ERR (docs/protocol.md
 * 7.6). */
TEST(sequence_nak_charges_retry_cnt)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.retry_cnt = 0;
	qp_link_init(&p, &conf);
	send_lost(2, 8);
	/* its progress does not pay for the NAK */
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 1);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent_vendor(&p.a, 1, IBV_WC_RETRY_EXC_ERR, VENDOR_SEQ_RETRIES);
	qp_link_fini(&p);

	conf.retry_cnt = 2;
	qp_link_init(&p, &conf);
	send_lost(2, 8);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	qp_link_advance(&p, 100 * NS_PER_MS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	wire_drop_all(&p.a);
	expect_idle(&p.a);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A);
	expect_sent(&p.a, 0, IBV_WC_RETRY_EXC_ERR);
	expect_sent(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
	qp_link_fini(&p);
}

/* The NAK is lost. The responder sends no second one, and the timeout repairs the
 * loss. */
TEST(lost_nak_is_repaired_by_timeout)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 4; i++) {
		host_recv(&p.b, i, 0, 8);
		host_send(&p.a, i, 0, 8, IBV_SEND_SIGNALED);
	}
	host_pull(&p.a, PULL_ALL);
	wire_drop(&p.a, 1);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A + 1, 1);
	wire_drop(&p.b, 0);
	qp_link_drain(&p);
	expect_idle(&p.a);
	qp_link_advance(&p, 80 * NS_PER_MS);
	assert_int_equal(p.a.stats.ack_timeouts, 1);
	qp_link_drain(&p);
	expect_sent_range(0, 4, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		expect_received(&p.b, i, 8);
	assert_int_equal(p.b.stats.seq_nak_sent, 1);
	assert_int_equal(p.b.stats.duplicates, 1);
	qp_link_fini(&p);
}

/* An ACK of the first transmission arrives during the second: the packets that it
 * acknowledges are not sent again. */
TEST(late_ack_ends_retransmission)
{
	qp_link_init_default(&p);
	send_lost(6, 1500);
	qp_link_advance(&p, 80 * NS_PER_MS);
	assert_int_equal(host_pull(&p.a, 3), 3);
	inject_ack(&p.a, AETH_ACK, PSN_A + 6);
	expect_sent_range(0, 3, IBV_WC_SUCCESS);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 5);
	expect_frame(&p.a, 3, OPCODE_RC_SEND_LAST, PSN_A + 7, -1);
	assert_int_equal(wire_view(&p.a, 3).payload_len, 1500 - 1024);
	assert_memory_equal(wire_view(&p.a, 3).payload, p.a.mem + 1024, 1500 - 1024);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 11);
	expect_sent_range(3, 6, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

/* ---- CQ overflow ---- */

/* CQ overrun (docs/protocol.md 9): CQ_ERR, and QP_FATAL for the completion without
 * room. */
TEST(send_cq_overflow)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.cqe = 2;
	qp_link_init(&p, &conf);
	send_lost(5, 8);
	inject_ack(&p.a, AETH_ACK, PSN_A + 4);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	expect_event(&p.a, IBV_EVENT_CQ_ERR);
	expect_event(&p.a, IBV_EVENT_QP_FATAL);
	expect_sent_range(0, 2, IBV_WC_SUCCESS);
	expect_idle(&p.a);
	assert_false(qp_wants_tx(&p.a.qp));
	qp_link_fini(&p);
}
