/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers that expire while the receiver has not taken the packets yet (docs/protocol.md 7.6), in
 * virtual time to the nanosecond. */
#include <string.h>

#include "tlp_fixture.h"

static struct receiver {
	bool away; /* it takes nothing */
	unsigned asked;
} receiver;

static struct answer_wait wait_of_a;

static bool
receiver_away(void *arg, const struct qp *qp, struct answer_wait *wait, uint64_t now)
{
	struct receiver *r = arg;

	assert_ptr_equal(r, &receiver);
	assert_ptr_equal(qp, &p.a.qp);
	assert_ptr_equal(wait, &wait_of_a);
	assert_int_equal(now, p.now);
	r->asked++;
	return r->away;
}

static void
ask_receiver(void)
{
	receiver = (struct receiver){.away = true};
	memset(&wait_of_a, 0, sizeof(wait_of_a));
	p.a.shared.answer_waits = receiver_away;
	p.a.shared.answer_arg = &receiver;
	p.a.shared.answer_wait = &wait_of_a;
	p.a.shared.answer_wait_ns = ANSWER_WAIT_NS;
}

/* The next question of the timer is due, and nothing is sent until then. */
static void
expect_question(void)
{
	unsigned asked = receiver.asked;

	expect_silence(qp_deadline(&p.a.qp) - p.now - 1);
	assert_int_equal(receiver.asked, asked);
	expect_silence(1);
	assert_int_equal(receiver.asked, asked + 1);
}

static void
open_link(bool cc)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.cc = cc;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 8; i++)
		host_recv(&p.b, i, 0x1000, 100);
	ask_receiver();
}

/* Many more ACK timeouts than there are retries cost nothing. The question is asked again soon, and then
 * less and less often, up to the timeout. When the answer is on its way no more, the next question is a
 * timeout as usual. */
TEST(ack_timeouts_wait)
{
	uint64_t since;

	open_link(false);
	p.a.shared.tlp_off = true;
	send_lost(0);
	expect_silence(TIMEOUT_NS - 1);
	assert_int_equal(receiver.asked, 0);
	expect_silence(1);
	assert_int_equal(receiver.asked, 1);
	since = p.now;
	for (unsigned i = 0; i < 26; i++) {
		uint64_t waited = RTE_MAX(p.now - since, TIMEOUT_NS / ANSWER_ASKS);

		assert_int_equal(
			qp_deadline(&p.a.qp), p.now + RTE_MIN(waited, TIMEOUT_NS));
		expect_question();
	}
	assert_true(p.now - since > 16 * TIMEOUT_NS);
	assert_int_equal(p.a.stats.timeouts_waited, 1);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	assert_int_equal(p.a.qp.stats.timeouts, 0);
	assert_int_equal(p.a.qp.req.retry_left, 7);
	receiver.away = false;
	expect_resend(TIMEOUT_NS, PSN_A);
	assert_int_equal(p.a.stats.ack_timeouts, 1);
	assert_int_equal(p.a.stats.timeouts_waited, 1);
	assert_int_equal(p.a.qp.req.retry_left, 6);
	deliver();
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	qp_link_fini_discard(&p);
}

/* A peer that makes the QP wait for the longest time is not waited for again, until it has answered. */
TEST(wait_is_bounded)
{
	open_link(false);
	p.a.shared.tlp_off = true;
	p.a.shared.answer_wait_ns = 10 * TIMEOUT_NS;
	send_lost(0);
	expect_silence(11 * TIMEOUT_NS - 1);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	qp_link_advance(&p, TIMEOUT_NS);
	assert_int_equal(p.a.stats.ack_timeouts, 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	expect_resend(TIMEOUT_NS, PSN_A);
	assert_int_equal(p.a.stats.ack_timeouts, 2);
	deliver();
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	send_lost(1);
	expect_silence(5 * TIMEOUT_NS);
	assert_int_equal(p.a.stats.ack_timeouts, 2);
	assert_int_equal(p.a.stats.timeouts_waited, 2);
	receiver.away = false;
	qp_link_advance(&p, TIMEOUT_NS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	deliver();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	qp_link_fini_discard(&p);
}

/* Each packet has its own time. */
TEST(next_packet_is_waited_for_anew)
{
	open_link(false);
	p.a.shared.tlp_off = true;
	p.a.shared.answer_wait_ns = 10 * TIMEOUT_NS;
	for (unsigned i = 0; i < 4; i++) {
		send_signaled(i, 1);
		expect_silence(8 * TIMEOUT_NS);
		deliver();
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	}
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	assert_int_equal(p.a.stats.timeouts_waited, 4);
	qp_link_fini_discard(&p);
}

/* No probe is sent, and the wait for it does not double. */
TEST(probes_wait)
{
	open_link(false);
	round_trip(0, 10 * US);
	send_lost(1);
	expect_silence(100 * US);
	assert_int_equal(receiver.asked, 1);
	assert_in_range(qp_deadline(&p.a.qp), p.now + 1, p.now + 2 * US);
	expect_silence(3 * NS_PER_MS);
	assert_int_equal(p.a.stats.timeouts_waited, 1);
	assert_int_equal(p.a.stats.tlp_sent, 0);
	assert_int_equal(p.a.qp.req.tlp_backoff, 0);
	receiver.away = false;
	qp_link_advance(&p, 100 * US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(p.a.stats.tlp_sent, 1);
	deliver();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	qp_link_fini_discard(&p);
}

/* With waits for the probe of 40 ms, and ACK timeouts of 67 ms: the one that expires does not move
 * the other. */
TEST(each_timer_goes_on_by_itself)
{
	const uint64_t wait = 40 * NS_PER_MS;
	uint64_t start;

	open_link(false);
	round_trip(0, wait / 4);
	start = p.now;
	send_lost(1);
	expect_silence(wait);
	assert_int_equal(p.a.qp.req.ack_deadline, start + TIMEOUT_NS);
	assert_int_equal(p.a.qp.req.tlp_deadline, p.now + wait / ANSWER_ASKS);
	p.a.qp.req.tlp_deadline = start + 2 * wait;
	expect_silence(TIMEOUT_NS - wait);
	assert_int_equal(p.a.stats.timeouts_waited, 1);
	assert_int_equal(p.a.qp.req.ack_deadline, p.now + TIMEOUT_NS - wait);
	assert_int_equal(p.a.qp.req.tlp_deadline, start + 2 * wait);
	receiver.away = false;
	expect_resend(start + 2 * wait - p.now, PSN_A + 1);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	deliver();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	qp_link_fini_discard(&p);
}

/* The time that the packets have waited is no round trip. The next round trip is measured. */
TEST(wait_is_no_round_trip)
{
	open_link(false);
	round_trip(0, 10 * US);
	send_signaled(1, 1);
	expect_silence(250 * US);
	deliver();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(p.a.stats.timeouts_waited, 1);
	assert_int_equal(p.a.qp.req.srtt_ns, 10 * US);
	round_trip(2, 18 * US);
	assert_int_equal(p.a.qp.req.srtt_ns, 11 * US);
	qp_link_fini_discard(&p);
}

/* It is no sample of congestion control either, nor a probe that could cut its window. The packets
 * do not count in the window, which other QPs need, until there is an answer. */
TEST(congestion_control_is_not_told)
{
	uint32_t cwnd;

	open_link(true);
	round_trip(0, 10 * US);
	send_signaled(1, 1);
	cwnd = p.a.peer.send_cc.cwnd;
	expect_silence(NS_PER_MS);
	assert_false(p.a.qp.req.rtt_counts);
	assert_true(p.a.qp.req.stalled);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(p.a.peer.send_cc.cwnd, cwnd);
	receiver.away = false;
	qp_link_advance(&p, 100 * US);
	host_pull(&p.a, PULL_ALL);
	deliver();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_false(p.a.qp.req.stalled);
	qp_link_fini_discard(&p);
}

/* A READ is not requested again, neither by a probe nor by an ACK timeout. */
TEST(reads_wait)
{
	open_link(false);
	round_trip(0, 10 * US);
	bytes_fill(p.b.mem + 0x2000, 5000, 3);
	host_read(&p.a, 1, 0x4000, 0x2000, 5000);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_silence(20 * TIMEOUT_NS);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	assert_int_equal(p.a.stats.retransmitted, 0);
	assert_int_equal(p.a.qp.req.retry_left, 7);
	deliver();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.a.mem + 0x4000, 5000, 3));
	/* the responses are missing; the request has been taken */
	host_read(&p.a, 2, 0x4000, 0x2000, 5000);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_drop_all(&p.b);
	receiver.away = false;
	qp_link_advance(&p, NS_PER_MS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	deliver();
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	qp_link_fini_discard(&p);
}

/* The wait after an RNR NAK ends in time, and the port is not asked. */
TEST(rnr_wait_ends)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.min_rnr_timer = 12; /* 640 us */
	qp_link_init(&p, &conf);
	ask_receiver();
	send_signaled(0, 1);
	deliver();
	host_recv(&p.b, 0, 0x1000, 100);
	expect_resend(640 * US, PSN_A);
	assert_int_equal(receiver.asked, 0);
	deliver();
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_received(&p.b, 0, 8);
	qp_link_fini(&p);
}
