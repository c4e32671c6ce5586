/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the time of a measured request went, in virtual time: each cause is made, and the
 * split says it. */
#include "qp/req_time.h"
#include "qp_link.h"

#define STEP 1000 /* ns */

static struct qp_link p;
static struct slow_request slow;

/* The engine would have looked for packets until now. */
static void
look(void)
{
	p.a.shared.polled_ns = p.now;
}

static void
wait_for(uint64_t ns)
{
	p.now += ns;
	look();
}

/* Takes the slowest request of the row: there are n. */
static void
slowest_of(enum latency_type type, enum latency_op op, unsigned n)
{
	struct slow_request copy[SLOWEST_KEPT];

	assert_int_equal(slowest_copy(&p.a.times.own_slowest, type, op, p.now, copy), n);
	slow = copy[0];
	assert_int_equal(slow.qpn, QPN_A);
}

/* It took so long, so much of it for this part, and the rest for the other one. */
static void
expect_split(uint64_t took, enum slow_part part, uint64_t ns, enum slow_part other)
{
	assert_int_equal(slow.spent_ns[part], ns);
	assert_int_equal(slow.spent_ns[other], took - ns);
	assert_int_equal(slow_total_ns(&slow), took);
}

static void
expect_counts(uint32_t resent, uint32_t timers, uint32_t naks, uint32_t rnr_naks)
{
	assert_int_equal(slow.resent, resent);
	assert_int_equal(slow.timers, timers);
	assert_int_equal(slow.naks, naks);
	assert_int_equal(slow.rnr_naks, rnr_naks);
}

static void
post(uint64_t wr_id, uint32_t len)
{
	host_recv(&p.b, wr_id, 0, len);
	host_send(&p.a, wr_id, 0, len, IBV_SEND_SIGNALED);
}

static void
expect_done(uint64_t wr_id, uint32_t len)
{
	expect_sent(&p.a, wr_id, IBV_WC_SUCCESS);
	expect_received(&p.b, wr_id, len);
}

/* The answer comes late, and the engine looks for it all the time. */
TEST(a_slow_peer)
{
	qp_link_init_default(&p);
	p.a.qp.stats.retransmitted = 5; /* of requests before it */
	post(1, 100);
	host_pull(&p.a, PULL_ALL);
	wait_for(7 * STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 1);
	expect_split(7 * STEP, SLOW_answer, 7 * STEP, SLOW_queue);
	expect_counts(0, 0, 0, 0);
	assert_int_equal(slow.bytes, 100);
	assert_int_equal(slow.ended_ns, p.now);
	assert_int_equal(slow.before_ns, 0);
	expect_done(1, 100);
	qp_link_fini(&p);
}

/* The answer may have come since the last pass: that is not the peer's time, unless a
 * thread slept until it came. */
TEST(an_engine_that_looks_late)
{
	for (unsigned slept = 0; slept < 2; slept++) {
		qp_link_init_default(&p);
		post(1, 100);
		host_pull(&p.a, PULL_ALL);
		wait_for(2 * STEP);
		p.now += 5 * STEP;
		if (slept)
			p.a.times.woke_ns = p.now - STEP;
		qp_link_drain(&p);
		slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 1);
		expect_split(7 * STEP, SLOW_engine, slept ? STEP : 5 * STEP, SLOW_answer);
		expect_done(1, 100);
		qp_link_fini(&p);
	}
}

/* How long before the engine found it its pass before was. 0: it was found in its
 * post. */
TEST(an_engine_that_takes_a_request_late)
{
	qp_link_init_default(&p);
	p.a.times.before_ns = p.now - 3 * STEP;
	post(1, 100);
	host_pull(&p.a, PULL_ALL);
	wait_for(STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 1);
	assert_int_equal(slow.before_ns, 3 * STEP);
	expect_split(STEP, SLOW_answer, STEP, SLOW_queue);
	expect_done(1, 100);
	p.a.qp.untimed = 1;
	p.a.times.before_ns = p.now - 3 * STEP;
	p.a.times.woke_ns = p.now - STEP;
	post(2, 100);
	host_pull(&p.a, PULL_ALL);
	wait_for(2 * STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 2);
	assert_int_equal(slow.before_ns, STEP);
	expect_done(2, 100);
	qp_link_fini(&p);
}

/* The request that is measured is posted with others, and waits until as many packets are
 * acknowledged. */
TEST(behind_requests_of_its_qp)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.peer_window = 2;
	qp_link_init(&p, &conf);
	post(0, 100);
	host_pull(&p.a, PULL_ALL);
	qp_link_drain(&p);
	expect_done(0, 100);
	p.a.qp.untimed = 3;
	for (unsigned i = 1; i <= 3; i++)
		post(i, 100);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	wait_for(4 * STEP);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wait_for(STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 2);
	expect_split(5 * STEP, SLOW_queue, 4 * STEP, SLOW_answer);
	/* The histogram begins with the first packet. */
	assert_int_equal(p.a.times.own.of[LATENCY_TYPE_RC][LATENCY_OP_send].sum_ns, STEP);
	for (unsigned i = 1; i <= 3; i++)
		expect_done(i, 100);
	qp_link_fini(&p);
}

/* The peer has no receive. Its answers before and after the wait are the peer's time. */
TEST(a_peer_without_a_receive)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t wait;

	conf.min_rnr_timer = 1; /* 10 us */
	qp_link_init(&p, &conf);
	host_send(&p.a, 1, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wait_for(2 * STEP);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	wait = p.a.qp.req.rnr_deadline - p.now;
	assert_int_equal(wait, 10 * NS_PER_US);
	host_recv(&p.b, 1, 0, 100);
	qp_link_advance(&p, wait);
	look();
	host_pull(&p.a, PULL_ALL);
	wait_for(3 * STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 1);
	expect_split(wait + 5 * STEP, SLOW_rnr, wait, SLOW_answer);
	expect_counts(1, 0, 0, 1);
	expect_done(1, 100);
	qp_link_fini(&p);
}

/* A packet is lost, and the next one makes the peer say so. */
TEST(a_loss_that_the_peer_finds)
{
	qp_link_init_default(&p);
	post(1, 3000);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	wire_drop(&p.a, 0);
	wait_for(2 * STEP);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	wait_for(STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 1);
	expect_split(3 * STEP, SLOW_nak, 2 * STEP, SLOW_answer);
	expect_counts(3, 0, 1, 0);
	expect_done(1, 3000);
	qp_link_fini(&p);
}

/* Until packets behind it are sent, the time is that of the peer, and no time of the
 * loss. */
TEST(a_loss_after_a_good_while)
{
	qp_link_init_default(&p);
	post(1, 3000);
	assert_int_equal(host_pull(&p.a, 1), 1);
	wait_for(5 * STEP);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	wire_drop(&p.a, 0);
	wait_for(2 * STEP);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	host_pull(&p.a, PULL_ALL);
	wait_for(STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 1);
	expect_split(8 * STEP, SLOW_nak, 2 * STEP, SLOW_answer);
	expect_counts(2, 0, 1, 0);
	expect_done(1, 3000);
	qp_link_fini(&p);
}

/* The packet that is sent after the wait is lost, too: that is no part of the wait. */
TEST(a_loss_after_an_rnr_wait)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t start;

	conf.min_rnr_timer = 1; /* 10 us */
	conf.timeout = 10;      /* 4.2 ms */
	qp_link_init(&p, &conf);
	p.a.shared.tlp_off = true;
	host_send(&p.a, 1, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	host_recv(&p.b, 1, 0, 100);
	qp_link_advance(&p, 10 * NS_PER_US);
	start = p.now;
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	while (!qp_wants_tx(&p.a.qp))
		qp_link_advance(&p, 100 * NS_PER_US);
	look();
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 1);
	assert_int_equal(slow.spent_ns[SLOW_rnr], 10 * NS_PER_US);
	assert_int_equal(slow.spent_ns[SLOW_timer], UINT64_C(4096) << conf.timeout);
	assert_int_equal(slow_total_ns(&slow), p.now - start + 10 * NS_PER_US);
	expect_counts(2, 1, 0, 1);
	expect_done(1, 100);
	qp_link_fini(&p);
}

/* The only packet is lost: nothing but a timer finds that, a probe or the ACK timer. */
static void
loss_until_timer(bool probe)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t start;

	conf.timeout = 10; /* 4.2 ms */
	qp_link_init(&p, &conf);
	p.a.shared.tlp_off = !probe;
	post(1, 100);
	start = p.now;
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	while (!qp_wants_tx(&p.a.qp))
		qp_link_advance(&p, 100 * NS_PER_US);
	look();
	start = p.now - start;
	host_pull(&p.a, PULL_ALL);
	wait_for(STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 1);
	assert_int_equal(p.a.stats.ack_timeouts, !probe);
	assert_in_range(slow.spent_ns[SLOW_timer], 200 * NS_PER_US, start);
	expect_split(start + STEP, SLOW_timer, slow.spent_ns[SLOW_timer], SLOW_answer);
	expect_counts(1, 1, 0, 0);
	expect_done(1, 100);
	qp_link_fini(&p);
}

TEST(a_loss_that_a_timer_finds)
{
	loss_until_timer(false);
	loss_until_timer(true);
}

/* While the port takes nothing no part of the wait is the peer's, or the queue's. */
TEST(a_full_port)
{
	qp_link_init_default(&p);
	post(1, 100);
	host_pull(&p.a, PULL_ALL);
	p.a.port_full_ns += 4 * STEP;
	wait_for(7 * STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_send, 1);
	expect_split(7 * STEP, SLOW_port, 4 * STEP, SLOW_answer);
	expect_done(1, 100);
	qp_link_fini(&p);
}

/* No peer answers: between its packets the request waits for its turn. */
TEST(a_uc_request)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.type = IBV_QPT_UC;
	qp_link_init(&p, &conf);
	post(1, 2000);
	assert_int_equal(host_pull(&p.a, 1), 1);
	wait_for(STEP);
	assert_int_equal(host_pull(&p.a, 1), 1);
	slowest_of(LATENCY_TYPE_UC, LATENCY_OP_send, 1);
	expect_split(STEP, SLOW_queue, STEP, SLOW_answer);
	qp_link_drain(&p);
	expect_done(1, 2000);
	qp_link_fini(&p);
}

/* A request that waits in the queue is flushed, and leaves nothing. So does one before
 * which a local operation, which is not measured, takes its turn. */
TEST(a_queued_request_that_does_not_start)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.peer_window = 1;
	qp_link_init(&p, &conf);
	p.a.qp.untimed = 2;
	for (unsigned i = 0; i < 3; i++)
		host_send(&p.a, i, 0, 100, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_true(p.a.qp.timed);
	wire_drop_all(&p.a);
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	assert_false(p.a.qp.timed);
	assert_true(req_times_idle(&p.a.times));
	/* None is found in an error state. */
	p.a.qp.untimed = 1;
	host_send(&p.a, 3, 0, 100, IBV_SEND_SIGNALED);
	req_time_look(&p.a.qp);
	assert_false(p.a.qp.timed);
	qp_link_fini_discard(&p);
}

/* The neighbour of a datagram is not known. It completes without an end of a measurement,
 * so none begins: the place would be taken for ever. */
TEST(a_datagram_is_not_measured)
{
	struct send_req req = {.wr_id = 1, .flags = IBV_SEND_SIGNALED};
	struct ud_dest dest;
	struct qp_link_conf conf = qp_link_defaults();

	conf.type = IBV_QPT_UD;
	qp_link_init(&p, &conf);
	dest = host_dest(&p.a);
	req.dest = &dest;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	req_time_wait(&p.a.qp, SLOW_neighbour);
	assert_true(req_times_idle(&p.a.times));
	host_pull(&p.a, PULL_ALL);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_true(req_times_idle(&p.a.times));
	wire_drop_all(&p.a);
	qp_link_fini(&p);
}

/* A local operation before the request that was found. */
TEST(a_request_behind_a_local_operation)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	uint32_t region, rkey;
	struct mw *mw;

	qp_link_init(&p, &conf);
	region = host_key(&p.a, 0, conf.mem_bytes,
		ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = host_mw(&p.a, true);
	rkey = ibv_inc_rkey(mw->rkey);
	host_bind(&p.a, 1, IBV_SEND_SIGNALED, rkey, region, 0, 64, ACCESS_REMOTE);
	host_write(&p.a, 2, 0, 0x8000, 64);
	p.a.shared.now = p.now;
	req_time_look(&p.a.qp);
	wait_for(3 * STEP);
	host_pull(&p.a, PULL_ALL);
	wait_for(STEP);
	qp_link_drain(&p);
	slowest_of(LATENCY_TYPE_RC, LATENCY_OP_write, 1);
	expect_split(4 * STEP, SLOW_queue, 3 * STEP, SLOW_answer);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	mw_destroy(&p.a.keys, mw);
	/* no local invalidate */
	assert_int_equal(key_free(&p.a.keys, region), 0);
	qp_link_fini(&p);
}

TEST(a_local_operation_is_no_queued_request)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	uint32_t region, rkey;
	struct mw *mw;

	qp_link_init(&p, &conf);
	region = host_key(&p.a, 0, conf.mem_bytes,
		ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = host_mw(&p.a, true);
	rkey = ibv_inc_rkey(mw->rkey);
	host_bind(&p.a, 1, IBV_SEND_SIGNALED, rkey, region, 0, 64, ACCESS_REMOTE);
	req_time_look(&p.a.qp);
	assert_true(p.a.qp.timed);
	host_pull(&p.a, PULL_ALL);
	assert_false(p.a.qp.timed);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	host_local_inv(&p.a, 2, IBV_SEND_SIGNALED, rkey);
	host_pull(&p.a, PULL_ALL);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	mw_destroy(&p.a.keys, mw);
	assert_int_equal(key_free(&p.a.keys, region), 0);
	qp_link_fini(&p);
}
