/* SPDX-License-Identifier: BSD-3-Clause */
/* Selective acknowledgements that a requester must not believe, and how its scoreboard ends
 * (docs/protocol.md 20.6). */
#include "sack_fixture.h"

/* Posts n SENDs of 8 bytes and sends them; all frames are lost. */
static void
send_into_the_void(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		host_send(&p.a, posted++, 0, 8, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&p.a, PULL_ALL), n);
	wire_drop_all(&p.a);
}

static struct pkt_spec
sack_spec(uint32_t psn, uint32_t echo, uint64_t map)
{
	struct pkt_spec c = {.opcode = OPCODE_SACK, .psn = psn};

	c.seth.version = SETH_VERSION << 4;
	be24_put(c.seth.echo, echo);
	memcpy(c.seth.map, &map, sizeof(map)); /* little-endian machines */
	return c;
}

static void
sack_arrives(uint32_t psn, uint32_t echo, uint64_t map)
{
	struct pkt_spec c = sack_spec(psn, echo, map);

	inject(&p.a, &c);
}

/* The SACK changes nothing and is counted under this reason. */
static void
expect_dropped(const struct pkt_spec *c, enum drop_reason why)
{
	uint64_t before = p.a.stats.drop[why];

	inject(&p.a, c);
	assert_int_equal(p.a.stats.drop[why], before + 1);
	assert_int_equal(p.a.stats.sack_received, 0);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_int_equal(p.a.qp.req.una_psn, PSN_A);
}

static void
end_in_error(void)
{
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	while (received != posted)
		expect_sent(&p.a, received++, IBV_WC_WR_FLUSH_ERR);
	close_pair();
}

TEST(only_agreed_ones_of_the_peer_are_taken)
{
	struct pkt_spec c, good = sack_spec(PSN_A, PSN_A + 2, 0x2);

	open_default();
	send_into_the_void(4);
	p.a.peer.extensions = 0;
	expect_dropped(&good, DROP_sack);
	p.a.peer.extensions = EXT_SACK;
	c = good;
	c.seth.version = 2 << 4;
	expect_dropped(&c, DROP_sack);
	c = good;
	c.payload_len = 4;
	expect_dropped(&c, DROP_sack);
	c = good;
	c.src_ip_change = 1;
	expect_dropped(&c, DROP_address);
	c = good;
	c.pkey = 0x8001;
	expect_dropped(&c, DROP_pkey);
	inject(&p.a, &good);
	assert_int_equal(p.a.stats.sack_received, 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	wire_drop_all(&p.a);
	end_in_error();
}

/* A SACK of a peer that has not been asked shows that it understands them, unless they are
 * switched off. One that is refused shows nothing. */
TEST(sack_shows_that_the_peer_understands)
{
	struct pkt_spec c, good = sack_spec(PSN_A, PSN_A + 2, 0x2);
	struct peers peers = {.ext_off = true};

	open_default();
	TAILQ_INIT(&peers.asking);
	send_into_the_void(4);
	p.a.peer.extensions = 0;
	p.a.shared.peers = &peers;
	expect_dropped(&good, DROP_sack);
	peers.ext_off = false;
	c = sack_spec(PSN_A, PSN_A + 4, 1);
	expect_dropped(&c, DROP_ghost);
	assert_int_equal(p.a.peer.extensions, 0);
	inject(&p.a, &good);
	assert_int_equal(p.a.stats.sack_received, 1);
	assert_int_equal(p.a.peer.extensions, EXT_SACK);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	wire_drop_all(&p.a);
	end_in_error();
}

/* A lost packet has the peer asked, once, whether it understands them. */
TEST(first_loss_asks_the_peer)
{
	struct peers peers = {.ext_off = false};

	open_default();
	TAILQ_INIT(&peers.asking);
	p.a.peer.extensions = 0;
	p.a.shared.peers = &peers;
	send_into_the_void(4);
	assert_true(TAILQ_EMPTY(&peers.asking));
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A);
	assert_ptr_equal(TAILQ_FIRST(&peers.asking), &p.a.peer);
	assert_memory_equal(p.a.peer.ext_sgid, p.a.qp.path.sgid, 16);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	peer_ext_unlink(&peers, &p.a.peer);
	/* as a responder */
	inject_request(&p.a, OPCODE_RC_SEND_ONLY, PSN_B + 1, 8);
	assert_ptr_equal(TAILQ_FIRST(&peers.asking), &p.a.peer);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	peer_ext_unlink(&peers, &p.a.peer);
	end_in_error();
}

/* Packets that were never sent, or that are acknowledged. */
TEST(psns_outside_of_the_window_are_refused)
{
	struct pkt_spec c;

	open_default();
	send_into_the_void(4);
	c = sack_spec(PSN_A - 1, PSN_A + 2, 1);
	expect_dropped(&c, DROP_stale_response);
	c = sack_spec(PSN_A + 4, PSN_A + 2, 1);
	expect_dropped(&c, DROP_ghost);
	c = sack_spec(PSN_A, PSN_A + 4, 1);
	expect_dropped(&c, DROP_ghost);
	c = sack_spec(PSN_A + 1, PSN_A + 1 - QP_MAX_UNACKED - 1, 1);
	expect_dropped(&c, DROP_stale_response);
	end_in_error();
}

/* In states that send nothing, and for QPs that have no requester. */
TEST(states_and_types_that_have_none)
{
	struct pkt_spec c = sack_spec(PSN_A, PSN_A + 1, 1);
	struct qp_link_conf conf = qp_link_defaults_rdma();

	open_default();
	send_into_the_void(2);
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	inject(&p.a, &c);
	assert_int_equal(p.a.stats.drop[DROP_qp_state], 1);
	end_in_error();
	conf.type = IBV_QPT_UC;
	open_pair(&conf);
	inject(&p.a, &c);
	assert_int_equal(p.a.stats.drop[DROP_qp_type], 1);
	close_pair();
	conf.type = IBV_QPT_XRC_SEND;
	open_pair(&conf);
	c.psn = PSN_B;
	inject(&p.b, &c);
	assert_int_equal(p.b.stats.drop[DROP_qp_type], 1);
	close_pair();
}

/* A peer that says it holds everything, but acknowledges nothing: the window opens, up to
 * the limit of the QP, and probes and the ACK timeout resend. */
TEST(lies_cost_only_the_liar)
{
	open_default();
	send_into_the_void(8);
	sack_arrives(PSN_A, PSN_A + 7, 0x7f);
	assert_int_equal(p.a.peer.send.inflight, 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	assert_int_equal(p.a.qp.req.una_psn, PSN_A);
	expect_idle(&p.a);
	qp_link_advance(&p, UINT64_C(4096) << 14);
	assert_int_equal(p.a.stats.ack_timeouts, 1);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 8);
	assert_int_equal(p.a.peer.send.inflight, 8);
	wire_drop_all(&p.a);
	end_in_error();
}

/* A peer that shows again and again that copies are lost, after the first copies for 20 us:
 * the copies are repeated once `least` has passed. */
static void
expect_copies_after(uint32_t srtt_ns, uint64_t least)
{
	open_default();
	send_into_the_void(8);
	sack_arrives(PSN_A, PSN_A + 7, 0x40);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 7);
	p.a.qp.req.srtt_ns = p.a.peer.srtt_ns = srtt_ns;
	p.a.qp.req.tlp_deadline = TIME_NEVER; /* probes are not looked at here */
	wire_drop_all(&p.a);
	for (uint64_t passed = NS_PER_US; passed <= least; passed += NS_PER_US) {
		qp_link_advance(&p, NS_PER_US);
		sack_arrives(PSN_A, PSN_A + 6, 0x60);
		p.a.qp.req.tlp_deadline = TIME_NEVER;
		assert_int_equal(host_pull(&p.a, PULL_ALL), passed == least ? 6 : 0);
		wire_drop_all(&p.a);
	}
	assert_int_equal(p.a.stats.resent_few, 13);
	end_in_error();
}

/* Each packet is sent again once in half a round trip, or in 250 us as long as none is known. */
TEST(copies_have_a_limit)
{
	expect_copies_after(20 * NS_PER_US, 10 * NS_PER_US);
	expect_copies_after(0, 250 * NS_PER_US);
}

/* Some of the copies that are due are acknowledged before they are sent, or held after all. */
TEST(copies_stay_due_or_not)
{
	open_default();
	send_into_the_void(8);
	sack_arrives(PSN_A, PSN_A + 7, 0x40);
	inject_ack(&p.a, AETH_ACK, PSN_A + 2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A + 3, 1);
	wire_drop_all(&p.a);
	send_into_the_void(2);
	sack_arrives(PSN_A + 3, PSN_A + 9, 0x28);
	assert_true(qp_copy_due(&p.a.qp));
	sack_arrives(PSN_A + 9, PSN_A + 8, 0);
	assert_false(qp_copy_due(&p.a.qp));
	assert_true(p.a.qp.req.tlp_deadline != TIME_NEVER);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	while (received != 3)
		expect_sent(&p.a, received++, IBV_WC_SUCCESS);
	end_in_error();
}

/* The end of a READ of 2^23 packets is outstanding, which began as far before. */
TEST(long_read_has_no_scoreboard)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	struct requester *req = &p.a.qp.req;
	struct sge sge;
	struct send_req read;
	uint32_t key;

	conf.mtu = IBV_MTU_256;
	open_pair(&conf);
	/* Nothing of it is accessed. */
	assert_int_equal(key_alloc(&p.a.keys, PD_A, (uintptr_t)p.a.mem, p.a.mem, MSG_MAX,
				 IBV_ACCESS_LOCAL_WRITE, &key),
		0);
	sge = (struct sge){(uintptr_t)p.a.mem, MSG_MAX, key};
	read = (struct send_req){.wr_id = posted++,
		.opcode = IBV_WR_RDMA_READ,
		.sge = &sge,
		.num_sge = 1,
		.rkey = p.b.rkey};
	assert_int_equal(host_post_send(&p.a, &read), 0);
	assert_int_equal(host_pull(&p.a, 1), 1);
	wire_drop_all(&p.a);
	/* As if all but the last 100 packets had come. */
	req->una_psn = psn_add(req->una_psn, (1 << 23) - 100);
	req->next_psn = req->pos_psn = req->sent_psn = req->una_psn;
	req->reads = 0;
	peer_charge(&p.a.peer.read, req->reading, 0);
	req->reading = 0;
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	wire_drop_all(&p.a);
	sack_arrives(req->una_psn, psn_add(req->una_psn, 50), 0x7);
	assert_false(req->missing);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(key_free(&p.a.keys, key), 0);
	end_in_error();
}

/* The wait for a probe ends in the pass in which a SACK shows losses: what is lost is sent, and
 * no probe. */
TEST(copies_that_are_due_are_sent_in_place_of_a_probe)
{
	uint64_t deadline;

	open_default();
	send_into_the_void(4);
	sack_arrives(PSN_A, PSN_A + 3, 0x4);
	deadline = p.a.qp.req.tlp_deadline;
	qp_timeout(&p.a.qp, deadline);
	assert_int_equal(p.a.qp.req.tlp_backoff, 0);
	/* the timer goes on */
	assert_true(p.a.qp.req.tlp_deadline > deadline);
	assert_true(p.a.qp.req.tlp_deadline < p.a.qp.req.ack_deadline);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	assert_int_equal(p.a.stats.resent_few, 3);
	assert_int_equal(p.a.stats.tlp_sent, 0);
	wire_drop_all(&p.a);
	/* The copies are lost, too. */
	qp_timeout(&p.a.qp, p.a.qp.req.tlp_deadline);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(p.a.stats.tlp_sent, 1);
	wire_drop_all(&p.a);
	end_in_error();
}

/* Between the end of the wait for a probe and its sending a SACK comes that shows no loss. */
TEST(probe_that_is_due_stays_due)
{
	open_default();
	send_into_the_void(4);
	qp_timeout(&p.a.qp, p.a.qp.req.tlp_deadline);
	sack_arrives(PSN_A, PSN_A, 0x1);
	assert_true(p.a.qp.req.missing);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A, 1);
	assert_int_equal(p.a.stats.tlp_sent, 1);
	wire_drop_all(&p.a);
	end_in_error();
}

/* The QP gets another peer, which may hold nothing: the scoreboard ends, and a probe finds out, also
 * of a QP that sends no others. */
TEST(change_of_peer_leaves_a_probe)
{
	struct peer other = {.qps = 1};

	peer_windows_init(&other, 256, &(struct cc_conf){.on = false});
	for (unsigned i = 0; i < 3; i++) {
		open_default();
		p.a.shared.tlp_off = i == 1;
		p.a.qp.params.timeout *= i != 2;
		send_into_the_void(4);
		sack_arrives(PSN_A, PSN_A + 3, 0x4);
		qp_set_peer(&p.a.qp, &other);
		assert_false(p.a.qp.req.missing);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		assert_int_equal(p.a.stats.tlp_sent, 1);
		assert_int_equal(p.a.stats.resent_few, 0);
		expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A, 1);
		wire_drop_all(&p.a);
		qp_set_peer(&p.a.qp, &p.a.peer);
		end_in_error();
	}
}

/* All scoreboards are taken: the NAK alone decides. */
TEST(without_a_scoreboard_naks_decide)
{
	open_default();
	maps.touched = TXMAPS;
	send_into_the_void(4);
	sack_arrives(PSN_A, PSN_A + 3, 0x4);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	maps.touched = 0;
	end_in_error();
}

/* A NAK comes before a SACK, or after it, or alone: the packet is sent again once, and
 * charged once. */
TEST(nak_and_sack_resend_once)
{
	open_default();
	send_into_the_void(4);
	sack_arrives(PSN_A, PSN_A + 3, 0x4);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_int_equal(p.a.qp.req.retry_left, p.a.qp.params.retry_cnt);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 1); /* its copy is under way */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	inject_ack(&p.a, AETH_ACK, PSN_A + 3);
	assert_false(p.a.qp.req.missing);
	send_into_the_void(2);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 4);
	assert_true(p.a.qp.req.missing);
	assert_int_equal(p.a.qp.req.retry_left, p.a.qp.params.retry_cnt - 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 5);
	while (received != posted)
		expect_sent(&p.a, received++, IBV_WC_SUCCESS);
	close_pair();
}

/* A NAK has come, and before its packet is sent again, the first SACK of the peer, which does
 * not show that the packet is lost: its echo is the copy of an earlier one. */
TEST(nak_before_the_first_sack_resends)
{
	open_default();
	p.a.qp.sacks = false;
	send_into_the_void(6);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 1);
	sack_arrives(PSN_A + 1, PSN_A, 0x1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A + 1, 1);
	wire_drop_all(&p.a);
	assert_true(p.a.qp.req.tlp_deadline != TIME_NEVER);
	expect_sent(&p.a, received++, IBV_WC_SUCCESS);
	end_in_error();
}

/* No retry is left for a NAK: the request fails. */
TEST(naks_use_up_the_retries)
{
	open_default();
	p.a.qp.req.retry_left = 0;
	send_into_the_void(2);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A);
	expect_sent_vendor(&p.a, received++, IBV_WC_RETRY_EXC_ERR, VENDOR_SEQ_RETRIES);
	end_in_error();
}

/* The memory of a request is gone: its copy cannot be built. */
TEST(copy_of_lost_memory_waits_for_the_timeout)
{
	struct sge sge;
	uint32_t key;

	open_default();
	key = host_key(&p.a, 0, 64, 0);
	sge = (struct sge){(uintptr_t)p.a.mem, 8, key};
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(
			host_post_send(&p.a, &(struct send_req){.wr_id = posted++,
						     .opcode = IBV_WR_SEND,
						     .flags = IBV_SEND_SIGNALED,
						     .sge = &sge,
						     .num_sge = 1}),
			0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	wire_drop_all(&p.a);
	assert_int_equal(key_free(&p.a.keys, key), 0);
	sack_arrives(PSN_A, PSN_A + 2, 0x2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(p.a.peer.send.inflight, 3);
	qp_link_advance(&p, UINT64_C(4096) << 14);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	expect_sent_vendor(&p.a, received++, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
	end_in_error();
}

/* The round trip of a held packet is measured, although una_psn does not move. That of a
 * packet that was sent again is not. */
TEST(held_packets_give_round_trips)
{
	open_default();
	send_into_the_void(4);
	assert_int_equal(p.a.qp.req.rtt_psn, PSN_A + 3);
	qp_link_advance(&p, 7 * NS_PER_US);
	sack_arrives(PSN_A, PSN_A + 3, 0x7);
	assert_int_equal(p.a.qp.req.srtt_ns, 7 * NS_PER_US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	send_into_the_void(3);
	wire_drop_all(&p.a);
	/* the copy of packet 0 is measured */
	assert_int_equal(p.a.qp.req.rtt_psn, PSN_A);
	qp_link_advance(&p, 3 * NS_PER_US);
	sack_arrives(PSN_A, PSN_A + 5, 0x17);
	assert_int_equal(p.a.qp.req.srtt_ns, 7 * NS_PER_US);
	end_in_error();
}

/* The measured packet is lost, and sent again: the measurement of its copies begins anew. */
TEST(lost_packets_are_not_measured)
{
	open_default();
	p.a.qp.req.srtt_ns = 10 * NS_PER_US;
	send_into_the_void(4);
	assert_int_equal(p.a.qp.req.rtt_psn, PSN_A + 3);
	send_into_the_void(2);
	assert_int_equal(p.a.qp.req.rtt_psn, PSN_A + 3);
	qp_link_advance(&p, 12 * NS_PER_US);
	sack_arrives(PSN_A, PSN_A + 5, 0x10);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 5);
	assert_int_equal(p.a.qp.req.rtt_psn, PSN_A);
	assert_true(p.a.qp.req.rtt_start == p.now);
	wire_drop_all(&p.a);
	end_in_error();
}
