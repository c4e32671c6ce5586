/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmission: fairness between ready QPs, a port that refuses frames, next hops. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine_state.h"
#include "engine_link.h"
#include "port/net_state.h"

#define QPS 6

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];

static const struct link_qp_conf plain = {.engine = -1, .wr = 512};

static void
init(const struct engine_link_conf *conf, const struct link_qp_conf *qc, unsigned qps)
{
	engine_link_init(&fixture, conf);
	link_qps_create(&fixture, a, b, qps, qc);
}

/* One message for each QP: resolves the neighbours. */
static void
warm_up(unsigned qps)
{
	struct cqe cqe;

	for (unsigned i = 0; i < qps; i++) {
		assert_int_equal(link_qp_recv(&b[i], 0, 0, 64), 0);
		assert_int_equal(link_qp_send(&a[i], 0, 0, 64, IBV_SEND_SIGNALED), 0);
	}
	engine_link_drain(&fixture);
	for (unsigned i = 0; i < qps; i++) {
		assert_true(link_qp_poll_send(&a[i], &cqe));
		assert_true(link_qp_poll_recv(&b[i], &cqe));
	}
}

/* Each QP sends at most 16 packets before the next one, however much each has to send. */
TEST(ready_qps_share_by_budget)
{
	unsigned sent[QPS] = {0}, frames = 0;
	struct pkt frame;

	init(NULL, &plain, QPS);
	warm_up(QPS);
	for (unsigned i = 0; i < QPS; i++) {
		unsigned n = i == 2 ? 5 : 100;

		for (unsigned k = 0; k < n; k++) {
			assert_int_equal(link_qp_recv(&b[i], k, 0, 64), 0);
			assert_int_equal(link_qp_send(&a[i], k, 0, 64,
						 k + 1 == n ? IBV_SEND_SIGNALED : 0),
				0);
		}
	}
	while (engine_run(fixture.a.dev->engines[0], fixture.now) != 0) {
		while (fake_sent(&fixture.a.port, &frame)) {
			uint32_t qpn = (uint32_t)frame.data[14 + 20 + 8 + 7] -
				       b[0].qp->qpn % 256;
			unsigned least = UINT32_MAX;

			assert_true(qpn < QPS);
			for (unsigned i = 0; i < QPS; i++)
				if (i != 2)
					least = RTE_MIN(least, sent[i]);
			/* No QP is two budgets ahead of another that still has
			 * packets. */
			assert_true(sent[qpn] <= least + 2 * ENGINE_BUDGET);
			sent[qpn]++;
			frames++;
			fake_arrive(&fixture.b.port, 0, &frame);
			free(frame.data);
		}
	}
	assert_int_equal(frames, 5 * 100 + 5);
	engine_link_drain(&fixture);
	for (unsigned i = 0; i < QPS; i++) {
		link_qp_expect_received(&b[i], 0, i == 2 ? 5 : 100);
		link_qp_expect_sent(&a[i], i == 2 ? 4 : 99, 1, IBV_WC_SUCCESS);
	}
	link_qps_fini(&fixture, a, b, QPS);
}

static void
post_all(unsigned qps, unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < qps; i++) {
		for (unsigned k = 0; k < n; k++) {
			assert_int_equal(link_qp_recv(&b[i], k, 0, len), 0);
			assert_int_equal(
				link_qp_send(&a[i], k, 0, len, IBV_SEND_SIGNALED), 0);
		}
	}
}

static void
expect_all(unsigned qps, unsigned n)
{
	for (unsigned i = 0; i < qps; i++) {
		link_qp_expect_received(&b[i], 0, n);
		link_qp_expect_sent(&a[i], 0, n, IBV_WC_SUCCESS);
	}
}

/* Frames that tx_burst() refuses are sent first and in order, and no QP builds packets
 * meanwhile. No frame is lost or sent twice, however few the port takes at a time. */
TEST(refused_frames_are_sent_in_order)
{
	for (unsigned take = 1; take <= 33; take += 4) {
		init(NULL, &plain, 3);
		warm_up(3);
		fixture.a.port.q[0].tx_take = fixture.b.port.q[0].tx_take = take;
		post_all(3, 60, 1500);
		engine_link_drain(&fixture);
		expect_all(3, 60);
		assert_int_equal(
			engine_stats(fixture.a.dev->engines[0])->retransmitted, 0);
		if (take < 16)
			assert_true(
				engine_stats(fixture.a.dev->engines[0])->tx_stalled > 0);
		link_qps_fini(&fixture, a, b, 3);
	}
}

/* The port takes no frames: the engine tries once a pass, keeps its backlog, and its
 * deadline is 0. */
TEST(stalled_port_is_tried_once_a_pass)
{
	struct engine *e;
	unsigned calls;

	init(NULL, &plain, 3);
	warm_up(3);
	e = fixture.a.dev->engines[0];
	fixture.a.port.q[0].tx_take = 0;
	post_all(3, 60, 1500);
	calls = fixture.a.port.q[0].tx_calls;
	for (unsigned i = 0; i < 50; i++)
		engine_link_pass(&fixture);
	assert_in_range(fixture.a.port.q[0].tx_calls - calls, 50, 101);
	assert_in_range(e->io.backlog_count, 1, PKT_BURST);
	assert_int_equal(engine_deadline(e), 0);
	/* ACKs and ARP replies wait too. */
	assert_int_equal(fake_sent_count(&fixture.a.port), 0);
	fixture.a.port.q[0].tx_take = 7;
	engine_link_drain(&fixture);
	expect_all(3, 60);
	link_qps_fini(&fixture, a, b, 3);
}

/* Without transmit buffers the engine counts the failures and goes on when there are
 * some. */
TEST(transmission_resumes_with_buffers)
{
	struct engine *e;

	init(NULL, &plain, 3);
	warm_up(3);
	e = fixture.a.dev->engines[0];
	/* The engine's cache of buffers is used first. */
	fixture.a.port.alloc_left = 0;
	fixture.a.port.q[0].tx_take = 0;
	post_all(3, 60, 1500);
	for (unsigned i = 0; i < 10; i++)
		engine_run(e, fixture.now);
	fixture.a.port.q[0].tx_take = UINT32_MAX;
	engine_run(e, fixture.now);
	fixture.a.port.alloc_left = 0; /* buffers of sent frames came back */
	for (unsigned i = 0; i < 10; i++) {
		engine_run(e, fixture.now);
		fixture.a.port.alloc_left = 0;
	}
	assert_true(e->stats.tx_no_buffer > 0);
	assert_int_equal(e->io.cache_count, 0);
	fixture.a.port.alloc_left = 3;
	/* three buffers at a time; lost frames are retransmitted */
	engine_link_advance(&fixture, NS_PER_SEC);
	expect_all(3, 60);
	link_qps_fini(&fixture, a, b, 3);
}

/* ---- Next hops ---- */

/* Frames are lost in both directions, as a host also learns MACs from what it
 * receives. */
static void
link_cut(bool on)
{
	fixture.a.deaf = fixture.b.deaf = on;
}

/* While the neighbour does not answer, the QPs are on the unresolved list and only ARP
 * requests are sent. Then the QPs go on at once, without an ACK timeout. */
TEST(resolved_qps_go_on_without_timeout)
{
	struct engine *e;

	init(NULL, &plain, 3);
	e = fixture.a.dev->engines[0];
	link_cut(true);
	post_all(3, 20, 1500);
	engine_link_advance(&fixture, 500 * NS_PER_MS);
	assert_int_equal(fixture.b.roce_frames, 0);
	assert_true(TAILQ_EMPTY(&e->ready));
	assert_false(TAILQ_EMPTY(&e->unresolved));
	assert_int_not_equal(engine_deadline(e), 0);
	link_cut(false);
	engine_link_advance(&fixture, 300 * NS_PER_MS);
	expect_all(3, 20);
	assert_int_equal(e->stats.ack_timeouts, 0);
	assert_int_equal(e->stats.retransmitted, 0);
	link_qps_fini(&fixture, a, b, 3);
}

/* A neighbour that never answers: retries run out, the requests complete in order, and
 * the engine is idle in between. */
TEST(unreachable_neighbour_exhausts_retries)
{
	struct link_qp_conf conf = {.engine = -1, .retry_cnt = 2, .timeout = 10};

	init(NULL, &conf, 2);
	link_cut(true);
	post_all(2, 5, 1500);
	engine_link_advance(&fixture, 5 * NS_PER_SEC);
	assert_int_equal(fixture.b.roce_frames, 0);
	for (unsigned i = 0; i < 2; i++) {
		link_qp_expect_sent(&a[i], 0, 1, IBV_WC_RETRY_EXC_ERR);
		link_qp_expect_sent(&a[i], 1, 4, IBV_WC_WR_FLUSH_ERR);
	}
	assert_true(engine_stats(fixture.a.dev->engines[0])->tx_no_neighbour > 0);
	assert_int_equal(engine_stats(fixture.a.dev->engines[0])->ack_timeouts, 2 * 3);
	link_qps_fini(&fixture, a, b, 2);
}

/* No subnet and no gateway leads to the destination. */
TEST(missing_route_exhausts_retries)
{
	struct link_qp_conf conf = {.engine = -1, .retry_cnt = 1, .timeout = 5};
	struct qp_attr attr;

	init(NULL, &conf, 1);
	attr = link_qp_attr(&a[0], &b[0], &conf);
	attr.path.dgid[12] = 203;
	attr.state = IBV_QPS_SQD;
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_SQD), 0);
	assert_int_equal(dev_qp_modify(fixture.a.dev, a[0].qp, &attr, IBV_QP_AV), 0);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RTS), 0);
	assert_int_equal(link_qp_send(&a[0], 1, 0, 8, 0), 0);
	engine_link_advance(&fixture, NS_PER_SEC);
	link_qp_expect_sent(&a[0], 1, 1, IBV_WC_RETRY_EXC_ERR);
	link_qps_fini(&fixture, a, b, 1);
}

/* A QP whose next hop is unresolved moves to ERR: it leaves the unresolved list, and its
 * requests are flushed at once, later ones too. */
TEST(error_flushes_unresolved_qp)
{
	struct engine *e;

	init(NULL, &plain, 2);
	e = fixture.a.dev->engines[0];
	link_cut(true);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(link_qp_send(&a[i], 1, 0, 8, 0), 0);
	engine_link_pass(&fixture);
	assert_true(a[0].qp->sched.on_unresolved);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_ERR), 0);
	link_qp_expect_sent(&a[0], 1, 1, IBV_WC_WR_FLUSH_ERR);
	for (unsigned i = 2; i < 5; i++) {
		struct cqe cqe;

		assert_int_equal(link_qp_send(&a[0], i, 0, 8, 0), 0);
		assert_int_equal(link_qp_recv(&a[0], i, 0, 8), 0);
		engine_link_drain(&fixture);
		link_qp_expect_sent(&a[0], i, 1, IBV_WC_WR_FLUSH_ERR);
		assert_true(link_qp_poll_recv(&a[0], &cqe));
		assert_int_equal(cqe.status, IBV_WC_WR_FLUSH_ERR);
	}
	assert_false(a[0].qp->sched.on_ready);
	assert_true(TAILQ_FIRST(&e->unresolved) == a[1].qp);
	/* RESET removes a QP from the list as well. */
	assert_int_equal(link_qp_modify(&a[1], IBV_QPS_RESET), 0);
	assert_true(TAILQ_EMPTY(&e->unresolved));
	link_qps_fini(&fixture, a, b, 2);
}

/* A responder's fatal NAK waits until the requester's MAC is resolved. */
TEST(fatal_nak_waits_for_resolution)
{
	struct pkt frame;
	struct cqe cqe;

	init(NULL, &plain, 1);
	engine_link_advance(&fixture, 10 * NS_PER_SEC); /* announcements are over */
	assert_int_equal(link_qp_recv(&b[0], 1, 0, 4), 0);
	assert_int_equal(link_qp_send(&a[0], 1, 0, 8, 0), 0);
	/* b learned a's MAC from a's ARP request: remove it. */
	while (fixture.b.roce_frames == 0)
		engine_link_pass(&fixture);
	fixture.a.deaf = true;
	neigh_flush(fixture.b.dev->net, true);
	b[0].qp->sched.resolved = false;
	engine_link_pass(&fixture);
	assert_int_equal(b[0].qp->state, IBV_QPS_ERR);
	assert_true(b[0].qp->sched.on_unresolved);
	assert_true(link_qp_poll_recv(&b[0], &cqe));
	assert_int_equal(cqe.status, IBV_WC_LOC_LEN_ERR);
	fixture.a.deaf = false;
	engine_link_advance(&fixture, 50 * NS_PER_MS);
	if (a[0].qp->state != IBV_QPS_ERR) /* asks again after NEIGH_RETRY_NS */
		engine_link_advance(&fixture, 300 * NS_PER_MS);
	link_qp_expect_sent(&a[0], 1, 1, IBV_WC_REM_INV_REQ_ERR);
	while (fake_sent(&fixture.b.port, &frame))
		free(frame.data);
	link_qps_fini(&fixture, a, b, 1);
}

/* The port stops taking frames: retries run out, at once if the link is down, otherwise
 * after the engine has dropped its backlog. QPs go on when the port takes frames
 * again. */
static void
stall_case(bool link_down)
{
	const struct link_qp_conf quick = {.engine = -1, .timeout = 10, .retry_cnt = 3};
	struct port_stats stats;
	unsigned ms = 0;
	struct cqe cqe;

	init(NULL, &quick, 2);
	warm_up(2);
	fixture.a.port.q[0].tx_take = 0;
	fixture.a.port.link_down = link_down;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(link_qp_send(&a[i], 1, 0, 3000, IBV_SEND_SIGNALED), 0);
		assert_int_equal(link_qp_send(&a[i], 2, 0, 100, IBV_SEND_SIGNALED), 0);
	}
	for (unsigned failed = 0; failed < 2; ms++) {
		assert_true(ms < 3000);
		fixture.now += NS_PER_MS;
		engine_link_pass(&fixture);
		engine_link_pass(&fixture);
		failed = qp_state(a[0].qp) == IBV_QPS_ERR;
		failed += qp_state(a[1].qp) == IBV_QPS_ERR;
	}
	if (link_down) /* 4 times 4.2 ms, and the link poll */
		assert_true(ms < 300);
	else
		assert_true(ms >= 250);
	engine_link_drain(&fixture);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(link_qp_poll_send(&a[i], &cqe));
		assert_int_equal(cqe.status, IBV_WC_RETRY_EXC_ERR);
		assert_true(link_qp_poll_send(&a[i], &cqe));
		assert_int_equal(cqe.status, IBV_WC_WR_FLUSH_ERR);
	}
	dev_stats(fixture.a.dev, &stats);
	assert_true(stats.tx_given_up >= 4);
	fixture.a.port.q[0].tx_take = UINT32_MAX;
	fixture.a.port.link_down = false;
	fixture.now += NS_PER_SEC;
	engine_link_drain(&fixture);
	link_qps_fini(&fixture, a, b, 2);
	init(NULL, &quick, 2);
	warm_up(2);
	link_qps_fini(&fixture, a, b, 2);
}

TEST(long_stall_exhausts_retries)
{
	stall_case(false);
	stall_case(true);
}

/* Frames in the backlog for less than the limit are sent, none is lost. */
TEST(short_stall_loses_no_frame)
{
	struct port_stats stats;

	init(NULL, &plain, 1);
	warm_up(1);
	fixture.a.port.q[0].tx_take = 0;
	assert_int_equal(link_qp_recv(&b[0], 1, 0, 100), 0);
	assert_int_equal(link_qp_send(&a[0], 1, 0, 100, IBV_SEND_SIGNALED), 0);
	for (unsigned ms = 0; ms < 60; ms++) {
		fixture.now += NS_PER_MS;
		engine_link_pass(&fixture);
	}
	fixture.a.port.q[0].tx_take = UINT32_MAX;
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a[0], 1, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 1, 1);
	dev_stats(fixture.a.dev, &stats);
	assert_int_equal(stats.tx_given_up, 0);
	link_qps_fini(&fixture, a, b, 1);
}
