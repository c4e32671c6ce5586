/* SPDX-License-Identifier: BSD-3-Clause */
/* READ responses behind a missing one: peers of other kinds, and what makes the requester go
 * back (docs/protocol.md 7.10). */
#include "read_gap_fixture.h"

static void
respond_rxe(uint8_t opcode, unsigned nth)
{
	inject(&p.a, &(struct pkt_spec){
			     .opcode = opcode, .psn = PSN_A + nth, .payload_len = MTU});
}

/* A peer that may forget what lies before a part that it was asked for is asked for the oldest
 * missing part only, and for the next one when that has come. It may go on with LAST. */
TEST(other_peers_get_one_repeat_at_a_time)
{
	gap_open(4, false);
	p.a.peer.resend_shift = 2;
	gap_read(8);
	gap_respond(8, 0x2a); /* 1, 3, 5 */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 1, 1);
	wire_drop_all(&p.a);
	respond_rxe(LAST, 1);
	assert_int_equal(p.a.qp.req.una_psn, PSN_A + 3);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 3, 1);
	wire_deliver_all(&p.a);
	gap_respond(1, 0); /* ONLY */
	assert_int_equal(p.a.qp.req.una_psn, PSN_A + 5);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 5, 1);
	wire_deliver_all(&p.a);
	gap_respond(1, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(p.a.peer.resend_shift, 2); /* that is for SENDs and WRITEs */
	gap_close();
}

/* ROCADE_OFF=read-gap: no response behind a missing one is taken. */
TEST(switched_off_the_requester_goes_back)
{
	gap_open(4, true);
	p.a.shared.read_gap_off = true;
	gap_read(8);
	gap_respond(8, 0x04);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 2, 6);
	gap_close();
}

/* FIRST and LAST fit only where a repeat begins and ends, besides the original places. */
TEST(opcodes_are_those_of_the_repeat)
{
	static const struct {
		uint8_t opcode;
		unsigned nth;
		bool fits;
	} rows[] = {
		{FIRST, 2, true}, {MIDDLE, 2, true}, {ONLY, 2, false}, {LAST, 2, false}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		gap_open(4, true);
		gap_read(8);
		gap_respond(8, 0x0c);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		wire_drop_all(&p.a);
		respond_rxe(rows[i].opcode, rows[i].nth);
		if (rows[i].fits) {
			assert_int_equal(p.a.qp.req.una_psn, PSN_A + 3);
			respond_rxe(FIRST, 3); /* no repeat begins here */
		}
		expect_sent_vendor(&p.a, 0, IBV_WC_BAD_RESP_ERR, VENDOR_RESPONSE);
		assert_false(p.a.qp.req.missing);
		gap_close();
	}
}

/* These make the requester go back, as without a record: a wrong length or
 * opcode, an atomic's response, a NAK, memory that is gone. */
TEST(requester_goes_back)
{
	for (unsigned what = 0; what < 5; what++) {
		struct pkt_spec c = {
			.opcode = MIDDLE, .psn = PSN_A + 7, .payload_len = MTU};

		gap_open(4, true);
		host_read(&p.a, 0, 0, REMOTE, 9 * MTU);
		host_atomic(&p.a, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 0x7000, REMOTE + 0x7000,
			1, 0);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 10);
		for (unsigned i = 0; i < 6; i++)
			wire_deliver(&p.b, i >= 2);
		wire_drop(&p.b, 0);
		wire_drop(&p.b, 0);
		assert_true(p.a.qp.req.missing);
		assert_int_equal(p.a.qp.req.retry_left, 6);
		if (what == 0) {
			c.payload_len = MTU - 4;
			inject(&p.a, &c);
		} else if (what == 1) {
			c.opcode = FIRST;
			inject(&p.a, &c);
		} else if (what == 2) {
			wire_deliver(&p.b, 1);
		} else if (what == 3) {
			inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 9);
		} else {
			inject_ack(&p.a, AETH_ACK, PSN_A + 9); /* past the atomic */
		}
		wire_drop_all(&p.b);
		assert_false(p.a.qp.req.missing);
		assert_int_equal(p.a.qp.req.reading, 0);
		assert_int_equal(p.a.qp.req.retry_left, 6); /* one loss */
		assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
		expect_request(
			0, p.a.qp.req.una_psn - PSN_A, 9 - (p.a.qp.req.una_psn - PSN_A));
		qp_link_drain(&p);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 9 * MTU);
		gap_close();
	}
}

/* With no record left the QP goes back. Errors give records back. */
TEST(records_are_limited)
{
	static struct txmaps none;

	none.touched = TXMAPS;
	gap_open(4, true);
	p.a.shared.txmaps = &none;
	gap_read(8);
	gap_respond(8, 0x04);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 2, 6);
	p.a.shared.txmaps = &maps;
	wire_deliver_all(&p.a);
	gap_respond(6, 0x1);
	assert_true(p.a.qp.req.missing);
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(p.a.qp.req.reading, 0);
	gap_close();
}

/* The responder answers parts that it is asked for in turn, and what it was sending before
 * them goes on. */
TEST(responder_sends_parts_in_turn)
{
	gap_open(4, true);
	inject_read(PSN_A, read_va(0), p.b.rkey, 12 * MTU);
	assert_int_equal(host_pull(&p.b, 8), 8);
	wire_drop_all(&p.b);
	inject_read(PSN_A + 1, read_va(MTU), p.b.rkey, 2 * MTU);
	inject_read(PSN_A + 6, read_va(6 * MTU), p.b.rkey, MTU);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 7);
	expect_response(&p.b, 0, MIDDLE, PSN_A + 8, 1, MTU);
	expect_response(&p.b, 3, LAST, PSN_A + 11, 1, MTU);
	expect_response(&p.b, 4, FIRST, PSN_A + 1, 1, MTU);
	expect_response(&p.b, 5, LAST, PSN_A + 2, 1, MTU);
	expect_response(&p.b, 6, ONLY, PSN_A + 6, 1, MTU);
	wire_drop_all(&p.b);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	gap_close();
}

/* Another peer for the QP: it goes back. */
TEST(change_of_peer_goes_back)
{
	struct peer other = {.qps = 1};

	gap_open(4, true);
	peer_windows_init(&other, 256, &(struct cc_conf){.on = false});
	gap_read(8);
	gap_respond(8, 0x04);
	qp_set_peer(&p.a.qp, &other);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(other.read.inflight + p.a.peer.read.inflight, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 2, 6);
	qp_link_drain(&p);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_int_equal(other.read.inflight + other.send.inflight, 0);
	qp_set_peer(&p.a.qp, &p.a.peer);
	gap_close();
}
