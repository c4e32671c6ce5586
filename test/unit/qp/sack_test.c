/* SPDX-License-Identifier: BSD-3-Clause */
/* Selective acknowledgements, both halves together: what the requester sends again
 * (docs/protocol.md 20.6). */
#include "sack_fixture.h"

/* a sends n packets, which are delivered but for those of the mask. */
static void
resend(unsigned n, uint64_t lost)
{
	assert_int_equal(host_pull(&p.a, PULL_ALL), n);
	deliver_but(lost);
}

/* Opens the pair, and lets a measure a round trip of 10 us. */
static void
open_measured(void)
{
	open_default();
	send_and_lose(1, 0);
	respond(1);
	expect_all();
}

/* All lost packets are sent again within one round trip, and nothing else is. */
TEST(all_losses_are_repaired_in_one_round_trip)
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

/* However many bursts the copies take, the measured request has waited for a NAK once, and for
 * what a selective acknowledgement showed once. */
TEST(losses_are_counted_when_they_are_known)
{
	open_default();
	send_and_lose(20, 0x2a313);
	respond(2);
	assert_int_equal(req_time_place(&p.a.qp)->request.naks, 2);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(host_pull(&p.a, 1), 1);
	assert_int_equal(req_time_place(&p.a.qp)->request.naks, 2);
	deliver_but(0);
	respond(1);
	expect_all();
	close_pair();
}

/* The first loss: the requester has never had a SACK of the peer, and the peer sends none
 * before it has heard that the requester understands them. */
TEST(first_losses_are_repaired_without_sacks)
{
	open_default();
	p.a.qp.sacks = false;
	p.b.peer.extensions = 0;
	send_and_lose(8, 0x5);
	respond(1);
	resend(1, 0);
	p.b.peer.extensions = EXT_SACK;
	respond(1); /* the NAK of packet 2 was due before */
	resend(1, 0);
	respond(1);
	expect_all();
	assert_false(p.a.qp.sacks);
	send_and_lose(8, 0x25);
	respond(2);
	assert_true(p.a.qp.sacks);
	resend(3, 0);
	respond(1);
	expect_all();
	close_pair();
}

/* Without probes nothing would find what is missing behind the few packets that a NAK asks for. A
 * peer that holds packets sends SACKs, another one drops them. */
TEST(nak_without_probes_resends_all)
{
	for (unsigned i = 0; i < 4; i++) {
		bool holds = i % 2 != 0;

		open_default();
		if (i / 2 != 0)
			p.a.shared.tlp_off = true;
		else
			p.a.qp.params.timeout = 0;
		if (!holds) {
			p.b.shared.hold = NULL;
			p.a.peer.extensions = p.b.peer.extensions = 0;
			p.a.qp.sacks = false;
		}
		send_and_lose(11, 0x401); /* the first and the last one */
		respond(holds ? 2 : 1);
		resend(11, 0);
		respond(1);
		expect_all();
		assert_int_equal(p.a.stats.retransmitted, 11);
		p.b.shared.hold = &arena;
		close_pair();
	}
}

/* The peer understands SACKs, but the process of this QP sends none, and holds nothing: it is
 * served as any other peer. */
TEST(silent_process_of_a_peer_gets_more_packets)
{
	open_default();
	p.a.qp.sacks = false;
	p.b.shared.hold = NULL;
	send_and_lose(20, 1);
	respond(1);
	resend(1, 0);
	respond(1);
	assert_int_equal(p.a.peer.resend_shift, 1);
	send_and_lose(1, 0);
	respond(1);
	assert_false(p.a.qp.req.missing);
	resend(2, 0);
	respond(1);
	close_discard();
}

/* The peer drops what it held and has nothing more to say. A probe finds that out, and all is
 * sent again. */
TEST(dropped_tail_is_sent_again_after_one_probe)
{
	open_default();
	send_and_lose(8, 0x1);
	respond(2);
	hold_drop(&p.b.qp);
	resend(1, 0);
	respond(1);
	assert_true(p.a.qp.req.missing);
	qp_link_advance(&p, 100 * NS_PER_US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A + 1, 1);
	wire_deliver_all(&p.a);
	respond(1);
	assert_false(p.a.qp.req.missing);
	resend(6, 0);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.tlp_sent, 1);
	assert_int_equal(p.a.stats.tlp_repaired, 1);
	close_pair();
}

/* The copy of packet 0 is lost. A later copy has come, which shows that. */
TEST(lost_copy_is_shown_by_a_later_copy)
{
	open_measured();
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
TEST(lost_copy_is_shown_by_a_new_packet)
{
	open_measured();
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
TEST(lost_copies_are_probed)
{
	open_measured();
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
TEST(copies_under_way_are_not_repeated)
{
	open_measured();
	send_and_lose(8, 0x1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	wire_dup(&p.b, 1);
	wire_deliver_all(&p.b);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	qp_link_advance(&p, 8 * NS_PER_US); /* of a round trip of 10 us */
	inject_nth(1 + 6, true);            /* comes twice */
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	close_pair();
}

/* Packets that the peer holds do not count in the window: new ones are sent. */
TEST(held_packets_leave_room_in_the_window)
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
TEST(dropped_packets_are_sent_again)
{
	open_default();
	send_and_lose(6, 0x1);
	respond(2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	hold_drop(&p.b.qp);
	wire_deliver_all(&p.a);
	respond(1); /* just packet 0 is acknowledged */
	assert_true(p.a.qp.req.missing);
	inject_nth(5, true);
	respond(2);
	resend(4, 0);
	respond(1);
	expect_all();
	close_pair();
}

/* The scoreboard ends at a READ, whose request the requester goes back for. */
TEST(reads_end_what_is_held)
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
TEST(xrc_has_them)
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
TEST(sacks_pass_over_ipv6)
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
