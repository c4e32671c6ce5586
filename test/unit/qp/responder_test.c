/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's checks and responses, in the order of docs/protocol.md 8.2 (IBA
 * 9.7.4.1): PSNs, opcode sequence, lengths, acknowledgements. Receives that fail:
 * receive_test.c. */
#include <string.h>

#include "qp_link.h"

static struct qp_link p;

static void
inject_packet(uint8_t opcode, uint32_t psn, uint32_t len, bool ack_req, uint32_t key)
{
	inject(&p.b, &(struct pkt_spec){.opcode = opcode,
			     .psn = psn,
			     .payload_len = len,
			     .payload_key = key,
			     .ack_req = ack_req});
}

static void
inject_send_only(uint32_t psn, bool ack_req)
{
	inject_packet(OPCODE_RC_SEND_ONLY, psn, 8, ack_req, psn);
}

static void
post_receives(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		host_recv(&p.b, i, 4096 * i, 4096);
}

/* A packet with AckReq is acknowledged when it is executed. One ACK may cover several
 * packets (docs/protocol.md 8.5). A packet without AckReq is not acknowledged. An ACK
 * inside a message has the packet's PSN and the MSN before the message. */
TEST(acks_are_coalesced)
{
	qp_link_init_default(&p);
	post_receives(6);
	inject_send_only(PSN_A, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A, 1);
	expect_no_frame(&p.b);
	inject_send_only(PSN_A + 1, false);
	expect_no_frame(&p.b);
	inject_send_only(PSN_A + 2, true);
	inject_send_only(PSN_A + 3, true);
	inject_send_only(PSN_A + 4, false);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 3, 5);
	inject_packet(OPCODE_RC_SEND_FIRST, PSN_A + 5, 1024, true, 0);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 5, 5);
	inject_packet(OPCODE_RC_SEND_MIDDLE, PSN_A + 6, 1024, true, 0);
	inject_packet(OPCODE_RC_SEND_LAST_IMM, PSN_A + 7, 1, true, 0);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 7, 6);
	for (unsigned i = 0; i < 5; i++) {
		expect_received(&p.b, i, 8);
		assert_true(bytes_match(p.b.mem + 4096 * i, 8, PSN_A + i));
	}
	expect_received(&p.b, 5, 2049);
	qp_link_fini(&p);
}

/* Rows 7 and 8 of docs/protocol.md 8.2: ePSN + 1 .. ePSN + 2^23 - 1 is a gap. The first
 * one gets NAK 0x60 with ePSN and the MSN. ePSN - 2^23 .. ePSN - 1 is a duplicate and is
 * acknowledged with ePSN - 1, with AckReq or without. Exactly half the PSN space away is
 * a duplicate. The steps of capture c4-psn. */
TEST(psn_gaps_and_duplicates)
{
	qp_link_init_default(&p);
	post_receives(4);
	inject_send_only(PSN_A + 2, true);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A, 0);
	inject_send_only(PSN_A + 3, true);
	expect_no_frame(&p.b);
	inject_send_only(PSN_A + 0x7FFFFF, true);
	expect_no_frame(&p.b);
	inject_send_only(PSN_A, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A, 1);
	inject_send_only(PSN_A + 1, false);
	expect_no_frame(&p.b);
	inject_send_only(PSN_A, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 1, 2);
	inject_send_only(PSN_A + 1, false);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 1, 2);
	inject_send_only(0x800, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 1, 2);
	inject_send_only(psn_add(PSN_A + 2, 0x800001), true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 1, 2);
	inject_send_only(psn_add(PSN_A + 2, 0x7FFFFF), true);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A + 2, 2);
	inject_send_only(psn_add(PSN_A + 2, 0x800000), true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 1, 2);
	inject_send_only(PSN_A + 2, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 2, 3);
	for (unsigned i = 0; i < 3; i++) {
		expect_received(&p.b, i, 8);
		assert_true(bytes_match(p.b.mem + 4096 * i, 8, PSN_A + i));
	}
	assert_int_equal(p.b.stats.seq_nak_sent, 2);
	assert_int_equal(p.b.stats.drop[DROP_psn_gap], 4);
	assert_int_equal(p.b.stats.duplicates, 5);
	assert_int_equal(recv_ring_outstanding(p.b.qp.rq), 1);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	qp_link_fini(&p);
}

/* A duplicate of any kind does not disturb the message in progress (docs/protocol.md
 * 8.7), and its payload is not written again. */
TEST(duplicate_inside_message)
{
	static const uint8_t opcodes[] = {OPCODE_RC_SEND_FIRST, OPCODE_RC_SEND_MIDDLE,
		OPCODE_RC_SEND_LAST, OPCODE_RC_SEND_LAST_IMM, OPCODE_RC_SEND_ONLY,
		OPCODE_RC_WRITE_FIRST, OPCODE_RC_SEND_ONLY_INV};

	qp_link_init_default(&p);
	post_receives(2);
	inject_send_only(PSN_A, true);
	inject_packet(OPCODE_RC_SEND_FIRST, PSN_A + 1, 1024, false, 1);
	expect_one_ack(&p.b, AETH_ACK, PSN_A, 1);
	memset(p.b.mem, 0xEE, 8);
	for (unsigned i = 0; i < RTE_DIM(opcodes); i++) {
		inject_packet(opcodes[i], PSN_A, 8, i % 2, 99);
		expect_one_ack(&p.b, AETH_ACK, PSN_A + 1, 1);
	}
	inject_packet(OPCODE_RC_SEND_LAST, PSN_A + 2, 100, true, 2);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 2, 2);
	expect_received(&p.b, 0, 8);
	expect_received(&p.b, 1, 1124);
	assert_int_equal(p.b.mem[0], 0xEE);
	assert_true(bytes_match(p.b.mem + 4096, 1024, 1));
	assert_true(bytes_match(p.b.mem + 4096 + 1024, 100, 2));
	qp_link_fini(&p);
}

/* Packets are reordered within a burst. A NAK that is still pending names the ePSN at the
 * time it leaves. It becomes an ACK if nothing is missing any more, even if the last
 * packet has no AckReq: an earlier one had it. */
TEST(pending_nak_in_reordered_burst)
{
	qp_link_init_default(&p);
	post_receives(6);
	inject_send_only(PSN_A, true);
	inject_send_only(PSN_A + 3, false);
	inject_send_only(PSN_A + 1, false);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A + 2, 2);
	inject_send_only(PSN_A + 2, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 2, 3);
	inject_send_only(PSN_A + 3, true);
	inject_send_only(PSN_A + 5, false); /* overtakes PSN_A + 4, then both arrive */
	inject_send_only(PSN_A + 4, false);
	inject_send_only(PSN_A + 5, false);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 5, 6);
	expect_no_frame(&p.b);
	for (unsigned i = 0; i < 6; i++)
		expect_received(&p.b, i, 8);
	/* The next gap gets a NAK of its own. */
	inject_send_only(PSN_A + 7, false);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A + 6, 6);
	qp_link_fini(&p);
}

/* Row 12 of docs/protocol.md 8.2: without a receive, an RNR NAK with the packet's PSN and
 * min_rnr_timer. Then silence until that PSN comes again, without NAK 0x60 for later
 * packets. Duplicates are still acknowledged. */
TEST(rnr_nak_until_psn_returns)
{
	qp_link_init_default(&p);
	post_receives(1);
	inject_send_only(PSN_A, false);
	expect_no_frame(&p.b);
	inject_packet(OPCODE_RC_SEND_FIRST, PSN_A + 1, 1024, false, 0);
	inject_packet(OPCODE_RC_SEND_LAST, PSN_A + 2, 8, true, 0);
	expect_one_ack(&p.b, AETH_RNR_NAK | 12, PSN_A + 1, 1);
	inject_send_only(PSN_A + 3, true);
	expect_no_frame(&p.b);
	inject_send_only(PSN_A, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A, 1);
	for (unsigned i = 0; i < 3; i++) {
		inject_packet(OPCODE_RC_SEND_FIRST, PSN_A + 1, 1024, false, 0);
		expect_one_ack(&p.b, AETH_RNR_NAK | 12, PSN_A + 1, 1);
	}
	assert_int_equal(p.b.stats.drop[DROP_rnr_wait], 2);
	assert_int_equal(p.b.stats.seq_nak_sent, 0);
	host_recv(&p.b, 1, 4096, 4096);
	inject_packet(OPCODE_RC_SEND_FIRST, PSN_A + 1, 1024, false, 0);
	inject_packet(OPCODE_RC_SEND_LAST, PSN_A + 2, 8, true, 0);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 2, 2);
	expect_received(&p.b, 0, 8);
	expect_received(&p.b, 1, 1032);
	inject_send_only(PSN_A + 4, true); /* the gap NAK works again */
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A + 3, 2);
	qp_link_fini(&p);
}

/* The receive is posted and the packet resent while its RNR NAK is still pending: an ACK
 * leaves instead, for an earlier packet with AckReq. An RNR NAK replaces a pending
 * sequence NAK. */
TEST(pending_rnr_nak_is_withdrawn)
{
	qp_link_init_default(&p);
	post_receives(1);
	inject_send_only(PSN_A, true);
	inject_send_only(PSN_A + 1, false);
	host_recv(&p.b, 1, 4096, 4096);
	inject_send_only(PSN_A + 1, false);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 1, 2);
	inject_send_only(PSN_A + 3, false);
	inject_send_only(PSN_A + 2, false);
	expect_one_ack(&p.b, AETH_RNR_NAK | 12, PSN_A + 2, 2);
	inject_send_only(PSN_A + 3, true);
	expect_no_frame(&p.b);
	expect_received(&p.b, 0, 8);
	expect_received(&p.b, 1, 8);
	qp_link_fini(&p);
}

/* ---- Opcode sequence ---- */

enum reaction { ACCEPTED, INVALID_NAK, ACCESS_NAK, IGNORED };

/* The opcode sequence (row 9 of docs/protocol.md 8.2). Of the allowed opcodes this QP
 * takes only SENDs (row 10 of docs/protocol.md 8.2: NAK 0x61). Opcodes that are no RC
 * request are not for the responder. */
static enum reaction
opcode_reaction(unsigned opcode, bool inside)
{
	switch (opcode) {
	case 0x00: /* SEND_FIRST */
	case 0x04: /* SEND_ONLY */
	case 0x05: /* SEND_ONLY_WITH_IMMEDIATE */
		return inside ? INVALID_NAK : ACCEPTED;
	case 0x01: /* SEND_MIDDLE */
	case 0x02: /* SEND_LAST */
	case 0x03: /* SEND_LAST_WITH_IMMEDIATE */
		return inside ? ACCEPTED : INVALID_NAK;
	case 0x0d: /* READ responses */
	case 0x0e:
	case 0x0f:
	case 0x10:
	case 0x11: /* ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE */
	case 0x12:
	case 0x15: /* reserved */
		return IGNORED;
	case 0x16: /* SEND with invalidate, of an invalid key */
		return inside ? ACCESS_NAK : INVALID_NAK;
	case 0x17:
		return inside ? INVALID_NAK : ACCESS_NAK;
	case 0x1c: /* FLUSH, ATOMIC_WRITE */
	case 0x1d:
		return INVALID_NAK;
	default:
		return opcode <= 0x17 ? INVALID_NAK : IGNORED;
	}
}

static void
opcode_run(unsigned opcode, bool inside)
{
	static const uint8_t full[] = {0x00, 0x01, 0x06, 0x07};
	enum reaction want = opcode_reaction(opcode, inside);
	uint32_t psn = PSN_A + (inside ? 1 : 0);
	uint32_t len = 8;

	for (unsigned i = 0; i < RTE_DIM(full); i++)
		len = opcode == full[i] ? 1024 : len;
	qp_link_init_default(&p);
	post_receives(2);
	if (inside)
		inject_packet(OPCODE_RC_SEND_FIRST, PSN_A, 1024, false, 0);
	inject_packet((uint8_t)opcode, psn, len, true, 0);
	if (want == ACCEPTED) {
		bool last = opcode != 0x00 && opcode != 0x01;

		expect_one_ack(&p.b, AETH_ACK, psn, last);
		if (last)
			expect_received(&p.b, 0, len + (inside ? 1024 : 0));
		assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	} else if (want == INVALID_NAK || want == ACCESS_NAK) {
		bool held = inside || want == ACCESS_NAK;

		expect_one_ack(&p.b,
			want == ACCESS_NAK ? AETH_NAK_ACCESS : AETH_NAK_INV_REQ, psn, 0);
		assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
		if (held) /* out of sequence, while a receive is in use */
			expect_recv_error(&p.b, 0, IBV_WC_REM_INV_REQ_ERR,
				want == ACCESS_NAK ? VENDOR_MEMORY_WINDOW
						   : VENDOR_OPCODE_ORDER);
		else
			expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
		for (unsigned i = held; i < 2; i++)
			expect_recv_error(&p.b, i, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
		/* docs/protocol.md 8.8: nothing else is answered */
		inject_send_only(psn, true);
		expect_no_frame(&p.b);
	} else {
		expect_no_frame(&p.b);
		expect_idle(&p.b);
		assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
		assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	}
	qp_link_fini(&p);
}

TEST(opcode_sequence)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		if (op_rows[opcode].kind == OP_UNKNOWN)
			continue; /* the parser drops it */
		opcode_run(opcode, false);
		opcode_run(opcode, true);
	}
}

/* ---- Lengths ---- */

struct length_case {
	uint8_t opcode;
	/* payload length minus path MTU; the payload length if `alone` is set */
	int32_t beyond_mtu;
	bool alone;
	bool good;
};

/* Payload lengths (row 13 of docs/protocol.md 8.2; 5.1): FIRST and MIDDLE have the PMTU,
 * LAST 1 to PMTU, ONLY 0 to PMTU bytes. */
static const struct length_case length_cases[] = {
	{OPCODE_RC_SEND_FIRST, 0, false, true},
	{OPCODE_RC_SEND_FIRST, -1, false, false},
	{OPCODE_RC_SEND_FIRST, 1, false, false},
	{OPCODE_RC_SEND_FIRST, 0, true, false},
	{OPCODE_RC_SEND_MIDDLE, 0, false, true},
	{OPCODE_RC_SEND_MIDDLE, -1, false, false},
	{OPCODE_RC_SEND_MIDDLE, 1, false, false},
	{OPCODE_RC_SEND_MIDDLE, 0, true, false},
	{OPCODE_RC_SEND_LAST, 0, false, true},
	{OPCODE_RC_SEND_LAST, 1, true, true},
	{OPCODE_RC_SEND_LAST, 1, false, false},
	{OPCODE_RC_SEND_LAST, 0, true, false},
	{OPCODE_RC_SEND_LAST_IMM, 1, true, true},
	{OPCODE_RC_SEND_LAST_IMM, 0, true, false},
	{OPCODE_RC_SEND_LAST_IMM, 1, false, false},
	{OPCODE_RC_SEND_ONLY, 0, true, true},
	{OPCODE_RC_SEND_ONLY, 0, false, true},
	{OPCODE_RC_SEND_ONLY, 1, false, false},
	{OPCODE_RC_SEND_ONLY_IMM, 0, true, true},
	{OPCODE_RC_SEND_ONLY_IMM, 4, false, false},
};

static void
length_run(const struct length_case *c, enum ibv_mtu mtu)
{
	struct qp_link_conf conf = qp_link_defaults();
	bool first = op_is_first(&op_rows[c->opcode]);
	uint32_t len =
		(uint32_t)((c->alone ? 0 : (int32_t)mtu_bytes(mtu)) + c->beyond_mtu);
	uint32_t psn = PSN_A + (first ? 0 : 1);

	conf.mtu = mtu;
	qp_link_init(&p, &conf);
	host_recv(&p.b, 0, 0, 20000);
	if (!first)
		inject_packet(OPCODE_RC_SEND_FIRST, PSN_A, mtu_bytes(mtu), false, 0);
	inject_packet(c->opcode, psn, len, true, 0);
	if (c->good) {
		bool last = op_is_last(&op_rows[c->opcode]);

		expect_one_ack(&p.b, AETH_ACK, psn, last);
		if (last)
			expect_received(&p.b, 0, len + (first ? 0 : mtu_bytes(mtu)));
		assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	} else {
		expect_one_ack(&p.b, AETH_NAK_INV_REQ, psn, 0);
		/* An invalid packet must not take a receive. */
		expect_recv_error(&p.b, 0,
			first ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_INV_REQ_ERR,
			first ? VENDOR_FLUSHED : VENDOR_PACKET_LENGTH);
		if (first)
			expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
		assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	}
	qp_link_fini(&p);
}

TEST(send_packet_lengths)
{
	for (unsigned mtu = IBV_MTU_256; mtu <= IBV_MTU_2048; mtu++) {
		for (unsigned i = 0; i < RTE_DIM(length_cases); i++)
			length_run(&length_cases[i], (enum ibv_mtu)mtu);
	}
}
