/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that a responder holds behind a missing one (docs/protocol.md 8.10), and the
 * requester that then sends only the missing one again (7.9). */
#include "hold_fixture.h"

static void
open_pair(void)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	hold_open(&conf);
}

/* The nth SEND was received, after those before it. */
static void
expect_nth(unsigned n)
{
	expect_received(&p.b, n, 8);
	assert_true(bytes_match(p.b.mem + 1024 * n, 8, n));
}

/* The missing packet comes: all behind it are executed in order, by one ACK. */
TEST(held_packets_follow_the_missing_one)
{
	open_pair();
	post_receives(4);
	inject_nth(1, false);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A, 0);
	inject_nth(3, true);
	inject_nth(2, false);
	inject_nth(3, true); /* twice */
	expect_no_frame(&p.b);
	expect_idle(&p.b);
	inject_nth(0, false);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 3, 4);
	for (unsigned i = 0; i < 4; i++)
		expect_nth(i);
	assert_int_equal(p.b.stats.held, 3);
	assert_int_equal(p.b.stats.drop[DROP_psn_gap], 0);
	assert_int_equal(p.b.stats.seq_nak_sent, 1);
	hold_close();
}

/* Each second one comes with a copy of its headers (host_rx()). */
TEST(held_packets_are_whole)
{
	open_pair();
	post_receives(4);
	for (unsigned i = 4; i-- != 0;)
		inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_SEND_ONLY,
				     .psn = psn_add(PSN_A, i),
				     .payload_len = 300 + 4 * i,
				     .payload_key = i,
				     .ack_req = i == 3});
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 3, 4);
	for (unsigned i = 0; i < 4; i++) {
		expect_received(&p.b, i, 300 + 4 * i);
		assert_true(bytes_match(p.b.mem + 1024 * i, 300 + 4 * i, i));
	}
	assert_int_equal(p.b.stats.held, 3);
	hold_close();
}

/* The ACK covers held packets without AckReq, too. */
TEST(acknowledgement_covers_all_that_was_held)
{
	open_pair();
	post_receives(3);
	inject_nth(1, false);
	inject_nth(2, false);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A, 0);
	inject_nth(0, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 2, 3);
	for (unsigned i = 0; i < 3; i++)
		expect_nth(i);
	hold_close();
}

/* Another packet is missing behind the first one: its NAK leaves at once, and acknowledges
 * what was executed. */
TEST(next_hole_is_asked_for_at_once)
{
	open_pair();
	post_receives(6);
	inject_nth(1, true);
	inject_nth(3, true);
	inject_nth(5, true);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A, 0);
	inject_nth(0, true);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A + 2, 2);
	inject_nth(2, true);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A + 4, 4);
	inject_nth(4, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 5, 6);
	for (unsigned i = 0; i < 6; i++)
		expect_nth(i);
	hold_close();
}

/* The missing packet comes before the NAK was sent: there is none. If it was not the only
 * one, the NAK names the next. */
TEST(reordering_needs_no_nak)
{
	open_pair();
	post_receives(5);
	inject_nth(1, true);
	inject_nth(0, false);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 1, 2);
	inject_nth(3, true);
	inject_nth(4, true);
	inject_nth(2, false);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 4, 5);
	for (unsigned i = 0; i < 5; i++)
		expect_nth(i);
	hold_close();
}

/* A packet that is too far ahead is dropped. When all before it have come, it is asked
 * for. */
TEST(reach_is_limited)
{
	open_pair();
	post_receives(3);
	inject_nth(QP_MAX_UNACKED, true);
	assert_int_equal(p.b.stats.held, 0);
	inject_nth(1, true);
	inject_nth(QP_MAX_UNACKED - 1, true);
	assert_int_equal(p.b.stats.held, 2);
	assert_int_equal(p.b.stats.drop[DROP_psn_gap], 1);
	inject_nth(0, true);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A + 2, 2);
	expect_nth(0);
	expect_nth(1);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	assert_true(TAILQ_EMPTY(&arena.waiting));
	expect_recv_error(&p.b, 2, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	hold_close();
}

/* After an RNR NAK the peer sends everything again. */
TEST(rnr_nak_drops_held_packets)
{
	open_pair();
	post_receives(1);
	inject_nth(1, true);
	inject_nth(2, true);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A, 0);
	inject_nth(0, true);
	expect_one_ack(&p.b, AETH_RNR_NAK | 12, PSN_A + 1, 1);
	assert_true(TAILQ_EMPTY(&arena.waiting));
	expect_nth(0);
	hold_close();
}

/* The rkey of a held WRITE goes: it writes nothing, and the WRITE fails in its turn. */
TEST(keys_are_checked_when_the_hole_fills)
{
	uint8_t before[8];

	open_pair();
	post_receives(2);
	memcpy(before, p.b.mem + 0x4000, sizeof(before));
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_WRITE_ONLY,
			     .psn = PSN_A + 1,
			     .payload_len = 8,
			     .payload_key = 9,
			     .va = (uintptr_t)p.b.mem + 0x4000,
			     .rkey = p.b.rkey,
			     .dma_len = 8,
			     .ack_req = true});
	inject_nth(2, true);
	assert_int_equal(p.b.stats.held, 2);
	assert_int_equal(key_free(&p.b.keys, p.b.rkey), 0);
	inject_nth(0, true);
	expect_one_ack(&p.b, AETH_NAK_ACCESS, PSN_A + 1, 1);
	assert_memory_equal(p.b.mem + 0x4000, before, sizeof(before));
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_ERR);
	assert_true(TAILQ_EMPTY(&arena.waiting));
	expect_nth(0);
	expect_recv_error(&p.b, 1, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	hold_close();
}

/* Memory is full: a QP's own packets stay, and the next one is dropped; of other QPs, the
 * one that has waited longest gives up what it holds. */
TEST(full_arena_means_go_back_n)
{
	static struct qp_link other;

	open_pair();
	post_receives(4);
	arena.touched = HOLD_PACKETS - 2;
	inject_nth(1, true);
	inject_nth(2, true);
	assert_int_equal(p.b.stats.held, 2);
	qp_link_init_default(&other);
	other.b.shared.hold = &arena;
	for (unsigned i = 1; i <= 3; i++)
		inject(&other.b, &(struct pkt_spec){.opcode = OPCODE_RC_SEND_ONLY,
					 .psn = PSN_A + i,
					 .payload_len = 8});
	assert_int_equal(p.b.stats.hold_evicted, 1);
	assert_int_equal(other.b.stats.held, 2);
	assert_int_equal(other.b.stats.drop[DROP_psn_gap], 1);
	/* Nothing is held of the first QP any more, so its NAK stays due. */
	inject_nth(0, true);
	expect_one_ack(&p.b, AETH_NAK_SEQ, PSN_A + 1, 1);
	for (unsigned i = 1; i < 4; i++)
		inject_nth(i, true);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 3, 4);
	for (unsigned i = 0; i < 4; i++)
		expect_nth(i);
	assert_int_equal(host_pull(&other.b, PULL_ALL), 1);
	wire_drop_all(&other.b);
	qp_link_fini_reset(&other);
	arena.touched = HOLD_PACKETS;
	hold_close();
}

/* ---- The requester ---- */

/* Resends n packets for a NAK, and delivers them. */
static void
resend(unsigned n)
{
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), n);
	wire_deliver_all(&p.a);
}

/* The QP gets another peer after copies were sent: the next answer says nothing about how
 * many that peer takes. */
TEST(change_of_peer_ends_a_repair)
{
	struct peer other = {.qps = 1, .resend_shift = 2};

	open_pair();
	peer_windows_init(&other, 256, &(struct cc_conf){.on = false});
	send_and_lose(8, 1);
	resend(1);
	qp_set_peer(&p.a.qp, &other);
	respond(1);
	assert_int_equal(other.resend_shift, 2);
	expect_all();
	qp_set_peer(&p.a.qp, &p.a.peer);
	hold_close();
}

/* The QP gets another peer while copies are due: the first of them leaves at once, as a
 * probe, which shows what that peer has. */
TEST(copy_that_is_due_outlives_a_change_of_peer)
{
	struct peer other = {.qps = 1};

	open_pair();
	peer_windows_init(&other, 256, &(struct cc_conf){.on = false});
	p.a.peer.resend_shift = 1;
	send_and_lose(8, 1);
	respond(1);
	qp_set_peer(&p.a.qp, &other);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(p.a.stats.tlp_sent, 1);
	assert_int_equal(p.a.stats.resent_few, 0);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	/* a probe */
	send_and_lose(4, 0xF);
	qp_timeout(&p.a.qp, p.a.qp.req.tlp_deadline);
	qp_set_peer(&p.a.qp, &p.a.peer);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_deliver_all(&p.a);
	resend(3);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.tlp_sent, 2);
	hold_close();
}

/* Only the missing packet is sent again, for the first loss, too. After an answer to just
 * that packet two are sent again; after an answer to more it is one. */
TEST(missing_packets_are_sent_alone)
{
	open_pair();
	send_and_lose(8, 1);
	resend(1);
	assert_int_equal(req_time_place(&p.a.qp)->request.naks, 1);
	respond(1); /* acknowledges all of them */
	expect_all();
	/* two packets in a row, and then one */
	send_and_lose(8, 0x23);
	resend(1);
	resend(2);
	assert_int_equal(p.a.peer.resend_shift, 1);
	resend(1);
	assert_int_equal(p.a.peer.resend_shift, 0);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.resent_few, 5);
	assert_int_equal(p.a.stats.retransmitted, 5);
	assert_int_equal(p.a.stats.tlp_sent, 0);
	assert_int_equal(p.b.stats.held, 7 + 5);
	hold_close();
}

/* A copy is lost: a tail-loss probe finds that after 25 us. */
TEST(lost_copy_is_probed)
{
	open_pair();
	send_and_lose(1, 0);
	respond(1); /* a round trip */
	send_and_lose(4, 1);
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	qp_link_advance(&p, 24 * NS_PER_US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	qp_link_advance(&p, NS_PER_US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(p.a.stats.tlp_sent, 1);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	hold_close();
}

/* A peer that holds nothing: each answer acknowledges just what was sent again, and next
 * time it is twice as much, at last everything. */
TEST(peer_without_hold_gets_all_packets)
{
	open_pair();
	p.b.shared.hold = NULL;
	send_and_lose(20, 1);
	for (unsigned n = 1; n <= 8; n *= 2) {
		resend(n);
		respond(1); /* acknowledges just these */
		send_and_lose(1, 0);
	}
	assert_int_equal(p.a.peer.resend_shift, RESEND_ALL_SHIFT);
	resend(20 - 15 + 4);
	respond(1);
	expect_all();
	/* One NAK of 16 tries whether that has changed. */
	for (unsigned loss = 1; loss < RESEND_TRY_EVERY - 1; loss++) {
		send_and_lose(10, 1);
		resend(10);
		respond(1);
		expect_all();
	}
	p.b.shared.hold = &arena;
	send_and_lose(10, 1);
	resend(8);
	respond(1);
	expect_all();
	assert_int_equal(p.a.peer.resend_shift, 0);
	hold_close();
}

/* All packets are sent again, and the first of them is answered by an acknowledgement of
 * more: the peer holds packets. */
TEST(early_answer_shows_that_the_peer_holds)
{
	open_pair();
	p.a.peer.resend_shift = RESEND_ALL_SHIFT;
	send_and_lose(10, 1);
	respond(1);
	assert_int_equal(host_pull(&p.a, 2), 2);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	assert_int_equal(p.a.peer.resend_shift, 0);
	hold_close();
}

/* A lost READ request: all requests from it on are sent again, because each of them needs
 * its response. */
TEST(read_is_not_sent_alone)
{
	open_pair();
	host_read(&p.a, 100, 0x4000, 0, 8);
	host_recv(&p.b, 0, 0, 1024);
	host_send(&p.a, 101, 0, 8, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	wire_drop(&p.a, 0);
	wire_deliver_all(&p.a);
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	qp_link_drain(&p);
	expect_sent(&p.a, 100, IBV_WC_SUCCESS);
	expect_sent(&p.a, 101, IBV_WC_SUCCESS);
	expect_received(&p.b, 0, 8);
	assert_int_equal(p.a.stats.resent_few, 0);
	hold_close();
}
