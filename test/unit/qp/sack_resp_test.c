/* SPDX-License-Identifier: BSD-3-Clause */
/* Selective acknowledgements of a responder: when one is due, and what it says
 * (docs/protocol.md 20.4, 20.5). */
#include "sack_fixture.h"

static void
expect_all_received(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		expect_received(&p.b, i, 8);
}

/* A SACK says what is held, behind the NAK of a new hole, or alone. */
TEST(sack_names_held_packets)
{
	open_default();
	post_receives(7);
	inject_nth(1, true);
	inject_nth(3, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A, 0);
	expect_sack_at(1, PSN_A, PSN_A + 3, 0x5);
	wire_drop_all(&p.b);
	inject_nth(6, true);
	inject_nth(4, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_sack_at(0, PSN_A, PSN_A + 4, 0x2d);
	wire_drop_all(&p.b);
	/* a held packet comes again */
	inject_nth(6, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_sack_at(0, PSN_A, PSN_A + 6, 0x2d);
	wire_drop_all(&p.b);
	/* the hole is filled up to the next one */
	inject_nth(0, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A + 2, 2);
	expect_sack_at(1, PSN_A + 2, PSN_A, 0xb);
	wire_drop_all(&p.b);
	inject_nth(5, true);
	inject_nth(2, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_ACK, PSN_A + 6, 7);
	wire_drop_all(&p.b);
	assert_int_equal(p.b.stats.sack_sent, 4);
	expect_all_received(7);
	assert_false(qp_wants_tx(&p.b.qp));
	close_pair();
}

/* The last packet that a map can name, and PSNs around the wrap. */
TEST(map_has_room_for_all_held_packets)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	struct pkt_view v;

	conf.psn[0] = PSN_MASK - 1;
	open_pair(&conf);
	inject_nth(3, true);
	inject_nth(QP_MAX_UNACKED - 1, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	v = wire_view(&p.b, 1);
	assert_int_equal(v.psn, PSN_MASK - 1);
	assert_int_equal(be24_get(view_seth(&v)->echo), QP_MAX_UNACKED - 3);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(view_seth(&v)->map[i], i == 0    ? 0x04
							: i == 15 ? 0x40
								  : 0);
	wire_drop_all(&p.b);
	hold_drop(&p.b.qp);
	close_discard();
}

/* Nothing is held any more: a SACK that was due is not sent. */
TEST(sack_goes_with_what_was_held)
{
	open_default();
	inject_nth(1, true);
	hold_drop(&p.b.qp);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A, 0);
	assert_false(qp_wants_tx(&p.b.qp));
	inject_nth(1, true);
	inject_nth(0, true); /* no receive */
	wire_drop_all(&p.b);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_RNR_NAK | 12, PSN_A, 0);
	wire_drop_all(&p.b);
	inject_nth(1, true);
	inject_nth(2, true);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	assert_false(qp_has_response_pending(&p.b.qp));
	close_pair();
}

/* Hosts that have not agreed: NAKs alone. */
TEST(without_agreement_there_is_none)
{
	open_default();
	p.b.peer.extensions = 0;
	post_receives(3);
	inject_nth(1, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A, 0);
	wire_drop_all(&p.b);
	inject_nth(2, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	inject_nth(0, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	wire_drop_all(&p.b);
	assert_int_equal(p.b.stats.sack_sent, 0);
	expect_all_received(3);
	close_pair();
}

/* A SACK waits for room in the burst, as every response. */
TEST(sack_waits_for_room)
{
	open_default();
	post_receives(2);
	inject_nth(1, true);
	assert_int_equal(host_pull(&p.b, 1), 1);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A, 0);
	assert_true(qp_wants_tx(&p.b.qp));
	assert_int_equal(host_pull(&p.b, 1), 1);
	expect_sack_at(1, PSN_A, PSN_A + 1, 1);
	wire_drop_all(&p.b);
	inject_nth(0, true);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	wire_drop_all(&p.b);
	expect_all_received(2);
	close_pair();
}
