/* SPDX-License-Identifier: BSD-3-Clause */
/* Selective acknowledgements, both halves together: which a responder sends, and what the
 * requester then sends again (docs/protocol.md 20.4 to 20.6). */
#include "sack_fixture.h"

/* ---- The responder ---- */

static void
post_receives(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		host_recv(&p.b, i, 1024 * i, 1024);
}

/* Injects a SEND of 8 bytes, the nth packet. */
static void
inject_nth(unsigned n)
{
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, psn_add(p.conf.psn[0], n), 8);
}

static void
expect_all_received(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		expect_received(&p.b, i, 8);
}

/* A SACK says what is held, behind the NAK of a new hole, or alone. */
static void
sack_names_held_packets(void **state)
{
	open_default();
	post_receives(7);
	inject_nth(1);
	inject_nth(3);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A, 0);
	expect_sack_at(1, PSN_A, PSN_A + 3, 0x5);
	wire_drop_all(&p.b);
	inject_nth(6);
	inject_nth(4);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_sack_at(0, PSN_A, PSN_A + 4, 0x2d);
	wire_drop_all(&p.b);
	/* a held packet comes again */
	inject_nth(6);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_sack_at(0, PSN_A, PSN_A + 6, 0x2d);
	wire_drop_all(&p.b);
	/* the hole is filled up to the next one */
	inject_nth(0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A + 2, 2);
	expect_sack_at(1, PSN_A + 2, PSN_A, 0xb);
	wire_drop_all(&p.b);
	inject_nth(5);
	inject_nth(2);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_ACK, PSN_A + 6, 7);
	wire_drop_all(&p.b);
	assert_int_equal(p.b.stats.sack_sent, 4);
	expect_all_received(7);
	assert_false(qp_wants_tx(&p.b.qp));
	close_pair();
}

/* The last packet that a map can name, and PSNs around the wrap. */
static void
map_has_room_for_all_held_packets(void **state)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	struct pkt_view v;

	conf.psn[0] = PSN_MASK - 1;
	open_pair(&conf);
	inject_nth(3);
	inject_nth(QP_MAX_UNACKED - 1);
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
	qp_link_fini_reset(&p);
	hold_arena_fini(&arena);
	sack_boards_fini(&boards);
}

/* Nothing is held any more: a SACK that was due is not sent. */
static void
sack_goes_with_what_was_held(void **state)
{
	open_default();
	inject_nth(1);
	hold_drop(&p.b.qp);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A, 0);
	assert_false(qp_wants_tx(&p.b.qp));
	inject_nth(1);
	inject_nth(0); /* no receive */
	wire_drop_all(&p.b);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_RNR_NAK | 12, PSN_A, 0);
	wire_drop_all(&p.b);
	inject_nth(1);
	inject_nth(2);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	assert_false(qp_has_response_pending(&p.b.qp));
	close_pair();
}

/* Hosts that have not agreed: NAKs alone. */
static void
without_agreement_there_is_none(void **state)
{
	open_default();
	p.b.peer.extensions = 0;
	post_receives(3);
	inject_nth(1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A, 0);
	wire_drop_all(&p.b);
	inject_nth(2);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	inject_nth(0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	wire_drop_all(&p.b);
	assert_int_equal(p.b.stats.sack_sent, 0);
	expect_all_received(3);
	close_pair();
}

/* A SACK waits for room in the burst, as every response. */
static void
sack_waits_for_room(void **state)
{
	open_default();
	post_receives(2);
	inject_nth(1);
	assert_int_equal(host_pull(&p.b, 1), 1);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A, 0);
	assert_true(qp_wants_tx(&p.b.qp));
	assert_int_equal(host_pull(&p.b, 1), 1);
	expect_sack_at(1, PSN_A, PSN_A + 1, 1);
	wire_drop_all(&p.b);
	inject_nth(0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	wire_drop_all(&p.b);
	expect_all_received(2);
	close_pair();
}

/* ---- Both ---- */

/* Posts n SENDs of 8 bytes and their receives, and loses those of the mask. */
static void
send_and_lose(unsigned n, uint64_t lost)
{
	for (unsigned i = 0; i < n; i++) {
		host_recv(&p.b, posted, 0, 1024);
		host_send(&p.a, posted++, 0, 8, i + 1 == n ? IBV_SEND_SIGNALED : 0);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), n);
	for (unsigned i = n; i-- != 0;) {
		if (lost >> i & 1)
			wire_drop(&p.a, i);
	}
	qp_link_advance(&p, 10 * NS_PER_US);
	wire_deliver_all(&p.a);
}

/* Delivers b's n responses. */
static void
respond(unsigned n)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), n);
	wire_deliver_all(&p.b);
}

/* a sends n packets, which are delivered but for those of the mask. */
static void
resend(unsigned n, uint64_t lost)
{
	assert_int_equal(host_pull(&p.a, PULL_ALL), n);
	for (unsigned i = n; i-- != 0;) {
		if (lost >> i & 1)
			wire_drop(&p.a, i);
	}
	qp_link_advance(&p, 10 * NS_PER_US);
	wire_deliver_all(&p.a);
}

/* All that was sent has been received, once and in order, and completed. */
static void
expect_all(void)
{
	struct cqe cqe;

	while (received != posted)
		expect_received(&p.b, received++, 8);
	while (host_poll(&p.a, &p.a.send_cq, &cqe))
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.una_idx, posted);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_false(p.a.qp.req.sacked);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
}

/* All lost packets are sent again within one round trip, and nothing else is. */
static void
all_losses_are_repaired_in_one_round_trip(void **state)
{
	open_default();
	send_and_lose(20, 0x2a313);
	respond(2);
	resend(8, 0);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.resent_few, 8);
	assert_int_equal(p.a.stats.retransmitted, 8);
	assert_int_equal(p.a.stats.tlp_sent, 0);
	assert_int_equal(p.b.stats.duplicates, 0);
	close_pair();
}

/* The first loss: the requester has never had a SACK of the peer, and the peer sends none
 * before it has heard that the requester understands them. */
static void
first_losses_are_repaired_without_sacks(void **state)
{
	open_default();
	p.a.peer.sacks = false;
	p.b.peer.extensions = 0;
	send_and_lose(8, 0x5);
	respond(1);
	resend(1, 0);
	p.b.peer.extensions = EXT_SACK;
	respond(1); /* the NAK of packet 2 was due before */
	resend(1, 0);
	respond(1);
	expect_all();
	assert_false(p.a.peer.sacks);
	send_and_lose(8, 0x25);
	respond(2);
	assert_true(p.a.peer.sacks);
	resend(3, 0);
	respond(1);
	expect_all();
	close_pair();
}

/* The copy of packet 0 is lost. A later copy has come, which shows that. */
static void
lost_copy_is_shown_by_a_later_copy(void **state)
{
	open_default();
	send_and_lose(1, 0);
	respond(1); /* a round trip */
	expect_all();
	send_and_lose(8, 0x11);
	respond(2);
	resend(2, 0x1);
	respond(1);
	resend(1, 0);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.resent_few, 3);
	assert_int_equal(p.a.stats.tlp_sent, 0);
	close_pair();
}

/* The copy is lost, and a new packet comes, which was sent after it. */
static void
lost_copy_is_shown_by_a_new_packet(void **state)
{
	open_default();
	send_and_lose(1, 0);
	respond(1);
	expect_all();
	send_and_lose(4, 0x1);
	respond(2);
	resend(1, 0x1);
	send_and_lose(2, 0);
	respond(1);
	resend(1, 0);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.resent_few, 2);
	assert_int_equal(p.a.stats.tlp_sent, 0);
	close_pair();
}

/* Nothing follows a lost copy: a tail-loss probe finds it. The scoreboard says what else is
 * missing. */
static void
lost_copies_are_probed(void **state)
{
	open_default();
	send_and_lose(1, 0);
	respond(1);
	expect_all();
	send_and_lose(8, 0xb);
	respond(2);
	resend(3, 0x7);
	qp_link_advance(&p, 15 * NS_PER_US);
	resend(1, 0); /* the probe */
	assert_int_equal(p.a.stats.tlp_sent, 1);
	respond(2); /* NAK and SACK */
	resend(2, 0);
	respond(1);
	expect_all();
	close_pair();
}

/* An answer to an earlier packet says nothing about a copy that is under way. */
static void
copies_under_way_are_not_repeated(void **state)
{
	open_default();
	send_and_lose(1, 0);
	respond(1);
	expect_all();
	send_and_lose(8, 0x1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	wire_dup(&p.b, 1);
	wire_deliver_all(&p.b);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	qp_link_advance(&p, 8 * NS_PER_US); /* of a round trip of 10 us */
	inject_nth(1 + 6);                  /* comes twice */
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	close_pair();
}

/* Packets that the peer holds do not count in the window: new ones are sent. */
static void
held_packets_leave_room_in_the_window(void **state)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.peer_window = 8;
	open_pair(&conf);
	for (unsigned i = 0; i < 14; i++) {
		host_recv(&p.b, posted, 0, 1024);
		host_send(&p.a, posted++, 0, 8, i == 13 ? IBV_SEND_SIGNALED : 0);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), 8);
	wire_drop(&p.a, 0);
	wire_deliver_all(&p.a);
	respond(2);
	assert_int_equal(p.a.peer.send.inflight, 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1 + 6);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A, 1);
	expect_frame(&p.a, 1, OPCODE_RC_SEND_ONLY, PSN_A + 8, -1);
	assert_int_equal(p.a.peer.send.inflight, 7);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	close_pair();
}

/* The peer drops what it held. Its NAKs say so. */
static void
dropped_packets_are_sent_again(void **state)
{
	open_default();
	send_and_lose(6, 0x1);
	respond(2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	hold_drop(&p.b.qp);
	wire_deliver_all(&p.a);
	respond(1); /* just packet 0 is acknowledged */
	assert_true(p.a.qp.req.sacked);
	inject_nth(5);
	respond(2);
	resend(4, 0);
	respond(1);
	expect_all();
	close_pair();
}

/* The scoreboard ends at a READ, whose request the requester goes back for. */
static void
reads_end_what_is_held(void **state)
{
	open_default();
	host_recv(&p.b, 0, 0, 1024);
	host_send(&p.a, 100, 0, 8, 0);
	host_send(&p.a, 101, 0, 8, 0);
	host_recv(&p.b, 1, 0, 1024);
	host_read(&p.a, 102, 0x4000, 0, 8);
	host_recv(&p.b, 2, 0, 1024);
	host_send(&p.a, 103, 0, 8, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	wire_drop(&p.a, 2); /* the READ */
	wire_drop(&p.a, 0);
	wire_deliver_all(&p.a);
	respond(2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	qp_link_drain(&p);
	expect_sent(&p.a, 102, IBV_WC_SUCCESS);
	expect_sent(&p.a, 103, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 3; i++)
		expect_received(&p.b, i, 8);
	assert_int_equal(p.a.stats.resent_few, 1);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	close_pair();
}

/* An XRC target sends them to its initiator. */
static void
xrc_has_them(void **state)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.type = IBV_QPT_XRC_SEND;
	open_pair(&conf);
	send_and_lose(10, 0x111);
	respond(2);
	resend(3, 0);
	respond(1);
	expect_all();
	close_pair();
}

/* ICRC, addresses and header fields of a SACK over IPv6. */
static void
sacks_pass_over_ipv6(void **state)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.ipv6 = true;
	open_pair(&conf);
	send_and_lose(10, 0x111);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	assert_int_equal(p.b.wire[1].len, 14 + 40 + 8 + 12 + 20 + 4);
	wire_deliver_all(&p.b);
	resend(3, 0);
	respond(1);
	expect_all();
	close_pair();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sack_names_held_packets),
		cmocka_unit_test(map_has_room_for_all_held_packets),
		cmocka_unit_test(sack_goes_with_what_was_held),
		cmocka_unit_test(without_agreement_there_is_none),
		cmocka_unit_test(sack_waits_for_room),
		cmocka_unit_test(all_losses_are_repaired_in_one_round_trip),
		cmocka_unit_test(first_losses_are_repaired_without_sacks),
		cmocka_unit_test(lost_copy_is_shown_by_a_later_copy),
		cmocka_unit_test(lost_copy_is_shown_by_a_new_packet),
		cmocka_unit_test(lost_copies_are_probed),
		cmocka_unit_test(copies_under_way_are_not_repeated),
		cmocka_unit_test(held_packets_leave_room_in_the_window),
		cmocka_unit_test(dropped_packets_are_sent_again),
		cmocka_unit_test(reads_end_what_is_held),
		cmocka_unit_test(xrc_has_them),
		cmocka_unit_test(sacks_pass_over_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
