/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tail-loss probe (docs/protocol.md 7.7) of a QP that has not measured a round trip: it
 * waits by its peer's round trips, else 250 us.
 */
#include "tlp_fixture.h"

/* The first packet of a QP is lost, and no QP of the peer has measured a round trip. */
TEST(first_loss_without_sample)
{
	init();
	send_lost(0);
	expect_resend(250 * US, PSN_A);
	assert_int_equal(p.a.qp.req.retry_left, 7); /* not charged */
	qp_link_drain(&p);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	qp_link_fini_discard(&p);
}

/* The same when another QP of the peer has measured one. */
TEST(first_loss_with_sample_of_peer)
{
	static const uint32_t rtts[] = {10 * US, 40 * US, 300 * US};

	for (unsigned i = 0; i < RTE_DIM(rtts); i++) {
		init();
		p.a.peer.srtt_ns = rtts[i];
		send_lost(0);
		expect_resend(RTE_MAX(4 * rtts[i], 100 * US), PSN_A);
		qp_link_drain(&p);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		qp_link_fini_discard(&p);
	}
}

/* The samples of all QPs count for the peer. */
TEST(samples_count_for_peer)
{
	init();
	round_trip(0, 80 * US);
	assert_int_equal(p.a.peer.srtt_ns, 80 * US);
	p.a.peer.srtt_ns = 800 * US;
	round_trip(1, 80 * US);
	assert_int_equal(p.a.peer.srtt_ns, 710 * US);
	assert_int_equal(p.a.qp.req.srtt_ns, 80 * US);
	qp_link_fini_discard(&p);
}

/* The first round trip of a QP is longer than the wait, so the packet is sent twice and is
 * no sample. The wait stays doubled, until a packet that is sent once is one. */
TEST(first_wait_is_doubled_until_sample)
{
	static const uint64_t rtt = 900 * US;

	init();
	send_signaled(0, 1);
	expect_resend(250 * US, PSN_A);
	expect_resend(500 * US, PSN_A);
	p.now += rtt - 750 * US;
	deliver();
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, 0);
	send_signaled(1, 1);
	expect_silence(rtt);
	deliver();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, rtt);
	send_lost(2);
	expect_resend(4 * rtt, PSN_A + 2);
	qp_link_fini_discard(&p);
}

/* The same once a QP has a sample, when round trips grow beyond the wait (Karn's second rule):
 * otherwise each packet would be sent twice, and none would give a sample. */
TEST(wait_stays_doubled_after_a_copy)
{
	static const uint64_t rtt = 150 * US;
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.cc = true;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 4; i++)
		host_recv(&p.b, i, 0x1000, 100);
	round_trip(0, 10 * US);
	send_signaled(1, 1);
	expect_resend(100 * US, PSN_A + 1);
	p.now += rtt - 100 * US;
	deliver();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, 10 * US);
	send_signaled(2, 1);
	expect_silence(rtt);
	deliver();
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, 27500);
	send_lost(3);
	expect_resend(110 * US, PSN_A + 3);
	qp_link_fini_discard(&p);
}

/* The same with several packets in flight. The last one is sent once, and is a sample. */
TEST(late_burst_is_sampled)
{
	static const uint64_t rtt = 900 * US;

	init();
	send_signaled(0, 4);
	expect_resend(250 * US, PSN_A);
	expect_resend(500 * US, PSN_A);
	p.now += rtt - 750 * US;
	deliver();
	for (unsigned i = 0; i < 4; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, rtt);
	send_lost(4);
	expect_resend(4 * rtt, PSN_A + 4);
	qp_link_fini_discard(&p);
}

/* A whole burst is lost. Only its first packet is copied. When the copy is acknowledged,
 * the others are sent again, so there is no sample. */
TEST(resent_burst_is_not_sampled)
{
	init();
	send_signaled(0, 4);
	wire_drop_all(&p.a);
	expect_resend(250 * US, PSN_A);
	p.now += 10 * US;
	deliver();
	assert_int_equal(p.a.stats.tlp_repaired, 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	p.now += 10 * US;
	deliver();
	for (unsigned i = 0; i < 4; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, 0);
	/* The ACK of three packets has ended the doubling. */
	send_lost(4);
	expect_resend(250 * US, PSN_A + 4);
	qp_link_fini_discard(&p);
}

/* No packet to another client of the daemon is lost before the daemon has kept it for a time. So the
 * QP waits for 500 ms at least, with and without a sample. */
TEST(lossless_peer_is_probed_late)
{
	init();
	p.a.qp.peer->lossless = true;
	p.a.qp.params.timeout = 17; /* 537 ms */
	send_lost(0);
	expect_resend(500 * NS_PER_MS, PSN_A);
	p.now += 10 * US;
	deliver();
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	round_trip(1, 30 * US);
	send_lost(2);
	expect_resend(500 * NS_PER_MS, PSN_A + 2);
	assert_int_equal(p.a.stats.tlp_sent, 2);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	qp_link_fini_discard(&p);
}

/* If 500 ms are longer than the ACK timeout, that comes first. */
TEST(lossless_peer_with_short_ack_timeout)
{
	init();
	p.a.qp.peer->lossless = true;
	round_trip(0, 30 * US);
	send_lost(1);
	expect_resend(TIMEOUT_NS, PSN_A + 1);
	assert_int_equal(p.a.stats.tlp_sent, 0);
	assert_int_equal(p.a.stats.ack_timeouts, 1);
	qp_link_fini_discard(&p);
}
