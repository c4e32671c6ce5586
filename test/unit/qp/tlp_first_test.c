/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tail-loss probe (docs/protocol.md 7.7) of a QP that has not measured a round trip: it
 * waits by its peer's round trips, else 250 us.
 */
#include "tlp_fixture.h"

/* The first packet of a QP is lost, and no QP of the peer has measured a round trip. */
static void
first_loss_without_sample(void **state)
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
static void
first_loss_with_sample_of_peer(void **state)
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
static void
samples_count_for_peer(void **state)
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
static void
first_wait_is_doubled_until_sample(void **state)
{
	static const uint64_t rtt = 900 * US;

	init();
	host_send(&p.a, 0, 0, 8, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_resend(250 * US, PSN_A);
	expect_resend(500 * US, PSN_A);
	p.now += rtt - 750 * US;
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, 0);
	round_trip(1, rtt);
	assert_int_equal(p.a.stats.tlp_sent, 2);
	assert_int_equal(p.a.qp.req.srtt_ns, rtt);
	send_lost(2);
	expect_resend(4 * rtt, PSN_A + 2);
	qp_link_fini_discard(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_loss_without_sample),
		cmocka_unit_test(first_loss_with_sample_of_peer),
		cmocka_unit_test(samples_count_for_peer),
		cmocka_unit_test(first_wait_is_doubled_until_sample),
	};

	return cmocka_run_group_tests_name("qp tlp_first", tests, NULL, NULL);
}
