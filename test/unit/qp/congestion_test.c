/* SPDX-License-Identifier: BSD-3-Clause */
/* The signals of QPs for congestion control, and the window that it sets (docs/protocol.md
 * 17.2). cc_test.c tests the rules themselves. */
#include "congestion_fixture.h"

/* Only what the window lets out is sent. Its first packet asks for an ACK to be measured,
 * and its last one for the ACK that opens the window for twice as much. */
TEST(window_lets_out_what_it_holds)
{
	init();
	writes_post(1, 60);
	for (unsigned packets = 8; packets <= 32; packets *= 2) {
		assert_int_equal(host_pull(&p.a, PULL_ALL), packets);
		assert_true(qp_peer_full(&p.a.qp));
		assert_int_equal(p.a.peer.send.inflight, packets);
		for (unsigned i = 0; i + 1 < packets; i++)
			assert_int_equal(wire_view(&p.a, i).ack_req,
				i == 0 || (wire_view(&p.a, i).psn & 31) == 31);
		assert_int_equal(wire_view(&p.a, packets - 1).ack_req, 1);
		acks_return(9 * US);
		assert_int_equal(p.a.peer.send.window, 2 * packets);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	acks_return(9 * US);
	assert_int_equal(p.a.stats.cc_cut_delay, 0);
	fini();
}

/* The rest of its burst, and bursts that are sent meanwhile, do not count. */
TEST(first_packet_is_measured)
{
	init();
	writes_post(1, 4);
	host_pull(&p.a, PULL_ALL);
	writes_post(1, 4);
	host_pull(&p.a, PULL_ALL);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(wire_view(&p.a, i).ack_req, i == 0 || i == 3 || i == 7);
	p.now += 9 * US;
	p.a.shared.polled_ns = p.now;
	wire_deliver(&p.a, 0);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	assert_int_equal(p.a.peer.send_cc.delay_ns, 9 * US);
	assert_int_equal(p.a.peer.send_cc.srtt_ns, 9 * US);
	/* The rest is no sample. */
	acks_return(90 * US);
	assert_int_equal(p.a.peer.send_cc.delay_ns, 9 * US);
	fini();
}

/* A probe copies the measured packet. An ACK of it would be ambiguous, but that of the last
 * packet is not, and without any sample a QP would wait longer and longer. */
TEST(first_sample_survives_a_probe)
{
	init();
	writes_post(1, 4);
	host_pull(&p.a, PULL_ALL);
	qp_link_advance(&p, 250 * US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(p.a.stats.tlp_sent, 1);
	acks_return(50 * US);
	assert_int_equal(p.a.peer.srtt_ns, 300 * US);
	assert_int_equal(p.a.qp.req.srtt_ns, 300 * US);
	/* Of a single packet nothing is known. */
	fini();
	init();
	writes_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	qp_link_advance(&p, 250 * US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	acks_return(50 * US);
	assert_int_equal(p.a.peer.srtt_ns, 0);
	fini();
}

/* The time that the ACK waited for the poll is not part of the delay, but of the smoothed
 * round trip, which is for timers. */
TEST(own_poll_is_no_delay)
{
	init();
	writes_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	p.a.shared.polled_ns = p.now + 7 * US;
	p.now += 80 * US;
	wire_deliver_all(&p.b);
	assert_int_equal(p.a.peer.send_cc.delay_ns, 7 * US);
	assert_int_equal(p.a.peer.srtt_ns, 80 * US);
	/* The queue was last empty before the packet was sent. */
	writes_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	p.now += 80 * US;
	wire_deliver_all(&p.b);
	assert_int_equal(p.a.peer.send_cc.delay_ns, 0);
	fini();
}

TEST(long_round_trips_cut)
{
	init();
	writes_post(1, 60);
	host_pull(&p.a, PULL_ALL);
	acks_return(100 * US);
	assert_int_equal(p.a.peer.send.window, 4);
	assert_int_equal(p.a.stats.cc_cut_delay, 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	acks_return(100 * US);
	assert_int_equal(p.a.peer.send.window, 2);
	assert_int_equal(p.a.stats.cc_cut_delay, 2);
	wire_drop_all(&p.a);
	fini();
}

/* A packet that was sent twice gives no sample (Karn). */
TEST(resent_packets_are_no_sample)
{
	init();
	writes_post(1, 2);
	host_pull(&p.a, PULL_ALL);
	wire_drop(&p.a, 0);
	acks_return(9 * US); /* a NAK */
	host_pull(&p.a, PULL_ALL);
	acks_return(100 * US);
	assert_int_equal(p.a.peer.send_cc.delay_ns, UINT32_MAX);
	assert_int_equal(p.a.stats.cc_cut_delay, 0);
	fini();
}

TEST(nak_is_a_loss)
{
	init();
	writes_post(1, 30);
	host_pull(&p.a, PULL_ALL);
	wire_drop(&p.a, 0); /* nothing is measured yet */
	acks_return(9 * US);
	assert_int_equal(p.a.stats.seq_nak_received, 1);
	assert_int_equal(p.a.peer.send_cc.lost, CC_ONE);
	assert_int_equal(p.a.stats.cc_cut_loss, 1);
	assert_int_equal(p.a.peer.send.window, 4);
	/* The NAK comes again: the same loss. */
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A);
	assert_int_equal(p.a.peer.send_cc.lost, CC_ONE);
	fini();
}

/* A probe whose answer acknowledges just the copy has found a loss; one whose answer
 * acknowledges more was only early. */
TEST(probe_that_finds_a_loss)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		init();
		writes_post(2, 1);
		host_pull(&p.a, PULL_ALL);
		if (lost) {
			wire_drop_all(&p.a);
		} else {
			wire_deliver_all(&p.a);
			host_pull(&p.b, PULL_ALL);
		}
		qp_link_advance(&p, 250 * US);
		assert_int_equal(p.a.stats.tlp_sent, 0);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		assert_int_equal(p.a.stats.cc_cut_loss, 0);
		acks_return(9 * US);
		assert_int_equal(p.a.peer.send_cc.lost, lost * CC_ONE);
		assert_int_equal(p.a.stats.cc_cut_loss, lost);
		qp_link_drain(&p);
		fini();
	}
}

/* Not before there is a round trip: then the probes only tell that it is longer than 250
 * us. */
TEST(second_probe_is_a_loss)
{
	for (unsigned known = 0; known < 2; known++) {
		init();
		if (known) {
			writes_post(1, 1);
			host_pull(&p.a, PULL_ALL);
			acks_return(9 * US);
		}
		writes_post(1, 1);
		host_pull(&p.a, PULL_ALL);
		for (unsigned nth = 1; nth <= 3; nth++) {
			wire_drop_all(&p.a);
			qp_link_advance(&p, ((known ? 100 : 250) * US) << (nth - 1));
			assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
			assert_int_equal(p.a.stats.cc_cut_loss, known * (nth - 1));
		}
		assert_true(known ? window() < 0.11 : window() == 8);
		wire_drop_all(&p.a);
		fini();
	}
}

/* A CNP is believed after the checks of cnp_test.c. */
TEST(cnp_cuts_the_window)
{
	struct pkt_spec c = {.opcode = OPCODE_CNP, .payload_len = CNP_PAYLOAD};

	init();
	c.src_ip_change = 1;
	inject(&p.a, &c);
	assert_int_equal(p.a.peer.send.window, 8);
	assert_int_equal(p.a.stats.cc_cut_cnp, 0);
	c.src_ip_change = 0;
	inject(&p.a, &c);
	assert_int_equal(p.a.peer.send.window, 4);
	assert_int_equal(p.a.stats.cc_cut_cnp, 1);
	fini();
}

/* Below one packet: one packet, and then none before its time, even if that packet is
 * acknowledged. A probe does not wait. */
TEST(less_than_a_packet_waits)
{
	uint64_t wait;

	init();
	writes_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	acks_return(40 * US);
	p.a.peer.send_cc.cwnd = CC_ONE / 4;
	p.a.peer.send_cc.slow_start = false;
	peer_window_set(&p.a.peer.send, p.now);
	writes_post(3, 1);
	assert_int_equal(p.a.peer.send.window, 1);
	p.now += 5 * US; /* the time is not that of a cut */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(p.a.stats.cc_waits, 1);
	wait = 160 * US;
	assert_int_equal(peer_opens_at(&p.a.peer.send, p.now), p.now + wait);
	assert_int_equal(p.a.peer.send.window, 0);
	acks_return(100 * US);
	assert_int_equal(p.a.peer.send.inflight, 0);
	p.a.peer.send_cc.cwnd = CC_ONE / 4;
	assert_true(qp_window_blocked(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	p.now += 60 * US - 1;
	peer_window_set(&p.a.peer.send, p.now);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	p.now += 1;
	peer_window_set(&p.a.peer.send, p.now);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(p.a.stats.cc_waits, 2);
	/* It is lost: the probe leaves at its time. */
	wire_drop_all(&p.a);
	p.a.peer.send_cc.send_at = TIME_NEVER;
	qp_link_advance(&p, NS_PER_MS);
	assert_false(qp_window_blocked(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	fini();
}

/* Off: the window is the cap, and no signal changes it. */
TEST(off_changes_nothing)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	struct pkt_spec c = {.opcode = OPCODE_CNP, .payload_len = CNP_PAYLOAD};

	conf.peer_window = 40;
	qp_link_init(&p, &conf);
	writes_post(1, 60);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 40);
	wire_drop(&p.a, 0);
	acks_return(500 * US);
	inject(&p.a, &c);
	assert_int_equal(p.a.peer.send.window, 40);
	assert_int_equal(p.a.stats.cc_cut_loss, 0);
	assert_int_equal(p.a.stats.cc_cut_cnp, 0);
	qp_link_drain(&p);
	fini();
}

/* The length of the packets that are measured is known: of a short message its own, of a long one
 * the path MTU. */
TEST(packet_length_is_measured)
{
	init();
	for (unsigned i = 0; i < 60; i++) {
		host_write(&p.a, 0, 0, 0, 64);
		host_pull(&p.a, PULL_ALL);
		acks_return(10 * US);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	}
	assert_in_range(p.a.peer.send_cc.packet, 64 + CC_HEADERS, 64 + CC_HEADERS + 8);
	for (unsigned i = 0; i < 60; i++) {
		writes_post(1, 4);
		host_pull(&p.a, PULL_ALL);
		acks_return(10 * US);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	}
	assert_in_range(p.a.peer.send_cc.packet, MTU + CC_HEADERS - 8, MTU + CC_HEADERS);
	fini();
}
