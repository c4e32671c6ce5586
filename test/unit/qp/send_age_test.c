/* SPDX-License-Identifier: BSD-3-Clause */
/* How long send requests have been unacknowledged, and unsignaled ones have held their slots, in
 * virtual time. */
#include "qp/send_age.h"
#include "qp_link.h"

#define STEP (10 * NS_PER_MS)

static struct qp_link p;

static struct send_ages
ages(void)
{
	struct send_ages got;

	send_ages(&p.a.qp, p.now, &got);
	return got;
}

/* Never more than it is, and less by a tick at most. */
static void
expect_age(uint64_t got, uint64_t want)
{
	uint64_t tick = UINT64_C(1) << SEND_AGE_TICK_SHIFT;

	if (want == 0)
		assert_int_equal(got, 0);
	else if (want <= tick)
		assert_in_range(got, 1, want);
	else
		assert_in_range(got, want - tick, want);
}

static void
expect_ages(uint64_t unacked_ns, uint64_t unsignaled_ns)
{
	struct send_ages got = ages();

	expect_age(got.unacked_ns, unacked_ns);
	expect_age(got.unsignaled_ns, unsignaled_ns);
}

static void
send_n(unsigned n, unsigned flags)
{
	for (unsigned i = 0; i < n; i++)
		host_send(&p.a, i, 0, 100, flags);
}

/* Sends what is posted, and loses it. */
static void
lose_all(void)
{
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
}

/* Requests of a program that signals all of them: the age is the time since the first packet, through
 * all timeouts, and 0 once the QP is in ERR. */
TEST(unacked_age_grows_while_the_peer_is_silent)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t start;

	conf.timeout = 10; /* 4.2 ms */
	conf.retry_cnt = 3;
	qp_link_init(&p, &conf);
	expect_ages(0, 0);
	p.now += STEP;
	start = p.now;
	send_n(2, IBV_SEND_SIGNALED);
	lose_all();
	while (p.a.stats.retries_exceeded == 0) {
		qp_link_advance(&p, NS_PER_MS);
		lose_all();
		if (p.a.stats.retries_exceeded == 0)
			expect_ages(p.now - start, 0);
	}
	assert_true(p.now - start > 16 * NS_PER_MS);
	expect_ages(0, 0);
	expect_sent(&p.a, 0, IBV_WC_RETRY_EXC_ERR);
	expect_sent(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
	expect_ages(0, 0);
	qp_link_fini_reset(&p);
}

/* No call before: RNR NAKs do not start the age anew. */
TEST(unacked_age_grows_under_rnr)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t start;

	conf.rnr_retry = 7;
	qp_link_init(&p, &conf);
	start = p.now;
	send_n(1, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 20; i++) {
		qp_link_drain(&p);
		qp_link_advance(&p, 640 * NS_PER_US);
	}
	assert_int_equal(p.a.stats.rnr_nak_received, 20);
	expect_ages(p.now - start, 0);
	host_recv(&p.b, 0, 0, 100);
	qp_link_drain(&p);
	expect_ages(0, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_received(&p.b, 0, 100);
	qp_link_fini(&p);
}

/* Behind an unsignaled request that is acknowledged and holds its slot, and with more posts and looks
 * meanwhile. rnr: the peer has no receive; else it is silent. */
static void
behind_held_slot_run(bool rnr)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t start;

	conf.timeout = 10; /* 4.2 ms */
	conf.rnr_retry = 7;
	qp_link_init(&p, &conf);
	host_recv(&p.b, 0, 0, 100);
	send_n(1, 0);
	qp_link_drain(&p);
	expect_received(&p.b, 0, 100);
	p.now += STEP;
	start = p.now;
	for (unsigned i = 0; i < 20; i++) {
		send_n(1, 0);
		if (rnr)
			qp_link_drain(&p);
		else
			lose_all();
		qp_link_advance(&p, NS_PER_MS);
		expect_age(ages().unacked_ns, p.now - start);
	}
	if (rnr)
		assert_in_range(p.a.stats.rnr_nak_received, 10, 20);
	else
		assert_true(p.a.stats.ack_timeouts >= 3);
	qp_link_fini_reset(&p);
}

TEST(unacked_age_grows_behind_a_held_slot)
{
	behind_held_slot_run(false);
	behind_held_slot_run(true);
}

/* With the ACK timeout of conf. Without one, requests count from the first look at them. */
static void
progress_run(const struct qp_link_conf *conf)
{
	bool looks = conf->timeout == 0;

	qp_link_init(&p, conf);
	send_n(3, IBV_SEND_SIGNALED);
	lose_all();
	qp_link_advance(&p, 5 * STEP);
	inject_ack(&p.a, AETH_ACK, PSN_A);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	if (looks)
		(void)ages();
	qp_link_advance(&p, 2 * STEP);
	expect_ages(2 * STEP, 0);
	/* The third request was posted before that look, or the one before. */
	inject_ack(&p.a, AETH_ACK, PSN_A + 1);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	if (looks)
		(void)ages();
	qp_link_advance(&p, 3 * STEP);
	expect_ages((looks ? 5 : 3) * STEP, 0);
	inject_ack(&p.a, AETH_ACK, PSN_A + 2);
	expect_ages(0, 0);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	/* Nothing was unacknowledged meanwhile. */
	qp_link_advance(&p, 4 * STEP);
	send_n(1, IBV_SEND_SIGNALED);
	lose_all();
	if (looks)
		(void)ages();
	qp_link_advance(&p, STEP);
	expect_ages(STEP, 0);
	inject_ack(&p.a, AETH_ACK, PSN_A + 3);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	qp_link_fini_reset(&p);
}

TEST(acknowledgement_starts_unacked_age_anew)
{
	struct qp_link_conf conf = qp_link_defaults();

	progress_run(&conf);
	conf.timeout = 0;
	progress_run(&conf);
}

/* A NAK stops the ACK timer. The time of the first transmission stays. */
TEST(unacked_age_outlasts_sequence_naks)
{
	uint64_t start;

	qp_link_init_default(&p);
	p.a.shared.tlp_off = true;
	start = p.now;
	send_n(1, IBV_SEND_SIGNALED);
	lose_all();
	for (unsigned i = 0; i < 3; i++) {
		qp_link_advance(&p, STEP);
		inject_ack(&p.a, AETH_NAK_SEQ, PSN_A);
		lose_all();
		qp_link_advance(&p, STEP);
		expect_ages(p.now - start, 0);
	}
	qp_link_fini_discard(&p);
}

/* Unsignaled requests that the peer has acknowledged hold their slots until a completion behind them
 * is polled. They count from the mark behind their posts. */
TEST(unsignaled_age_counts_from_the_mark)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 6; i++)
		host_recv(&p.b, i, 0, 100);
	send_n(1, IBV_SEND_SIGNALED);
	send_n(2, 0);
	qp_link_drain(&p);
	qp_link_advance(&p, STEP);
	send_age_mark(&p.a.qp, p.now);
	qp_link_advance(&p, 2 * STEP);
	expect_ages(0, 2 * STEP);
	/* Its completion says nothing of those behind it. */
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_ages(0, 2 * STEP);
	send_n(1, 0);
	qp_link_drain(&p);
	qp_link_advance(&p, STEP);
	send_age_mark(&p.a.qp, p.now);
	expect_ages(0, 3 * STEP);
	send_n(1, IBV_SEND_SIGNALED);
	send_n(1, 0);
	qp_link_drain(&p);
	expect_ages(0, 3 * STEP);
	qp_link_advance(&p, 5 * STEP);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	/* The last one: the second mark, which is that of the call before it. */
	expect_ages(0, 5 * STEP);
	for (unsigned i = 0; i < 6; i++)
		expect_received(&p.b, i, 100);
	qp_link_fini_reset(&p);
}

/* A mark that is further back than the queue is long covers nothing. */
TEST(unsignaled_age_is_of_requests_in_the_queue)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.send_wr = 4;
	qp_link_init(&p, &conf);
	for (unsigned round = 0; round < 3; round++) {
		host_recv(&p.b, 0, 0, 100);
		host_recv(&p.b, 1, 0, 100);
		send_n(1, 0);
		send_n(1, IBV_SEND_SIGNALED);
		qp_link_drain(&p);
		if (round == 0)
			send_age_mark(&p.a.qp, p.now);
		qp_link_advance(&p, STEP);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		expect_received(&p.b, 0, 100);
		expect_received(&p.b, 1, 100);
	}
	expect_ages(0, 0);
	send_n(1, 0);
	expect_ages(1, 1); /* seen for the first time */
	qp_link_advance(&p, STEP);
	expect_ages(STEP, STEP);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	expect_ages(0, 0);
	host_connect(&p.a);
	send_n(1, 0);
	expect_ages(1, 1);
	qp_link_fini_reset(&p);
}

/* A QP with sq_sig_all, and one whose requests are all signaled. */
TEST(signaled_requests_have_no_unsignaled_age)
{
	struct qp_link_conf conf = qp_link_defaults();

	for (unsigned all = 0; all < 2; all++) {
		conf.sig_all = all;
		qp_link_init(&p, &conf);
		send_n(3, all ? 0 : IBV_SEND_SIGNALED);
		lose_all();
		send_n(1, all ? 0 : IBV_SEND_SIGNALED); /* not seen by the requester */
		qp_link_advance(&p, STEP);
		expect_ages(STEP, 0);
		qp_link_fini_discard(&p);
	}
}

/* Unsignaled requests that are flushed complete: their slots are free once that is polled. */
TEST(unsignaled_age_ends_when_flushed_completions_are_polled)
{
	qp_link_init_default(&p);
	send_n(2, 0);
	lose_all();
	send_age_mark(&p.a.qp, p.now);
	qp_link_advance(&p, STEP);
	expect_ages(STEP, STEP);
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	assert_int_equal(ages().unacked_ns, 0);
	expect_age(ages().unsignaled_ns, STEP);
	expect_sent(&p.a, 0, IBV_WC_WR_FLUSH_ERR);
	expect_sent(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
	expect_ages(0, 0);
	/* After RESET the first request has the index that the mark covered. */
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	host_connect(&p.a);
	send_n(1, 0);
	expect_ages(1, 1);
	qp_link_fini_reset(&p);
}
