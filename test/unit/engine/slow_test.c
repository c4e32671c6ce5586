/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the time of a measured request went: what only an engine knows. */
#include "engine/engine_state.h"
#include "engine/manual_progress.h"
#include "engine_link.h"
#include "test_clock.h"

#define QPS 2
#define STEP (10 * NS_PER_US)

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];
static struct slow_request slow;

static struct engine *
engine(void)
{
	return fixture.a.dev->engines[0];
}

static void
begin(uint32_t peer_window)
{
	struct engine_link_conf conf = {.peer_window = peer_window};

	engine_link_init(&fixture, &conf);
	test_clock = &fixture.now;
	link_qps_create(&fixture, a, b, QPS, &(struct link_qp_conf){.engine = 0});
}

/* The neighbours get to know each other, and what was measured until then is
 * forgotten. */
static void
warm_up(void)
{
	link_qp_message(&a[0], &b[0], 0);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a[0], &b[0], 0);
	engine()->times.own_slowest = (struct slowest){0};
	a[0].qp->untimed = 1;
}

static void
end(void)
{
	link_qps_fini(&fixture, a, b, QPS);
}

/* Finds the slowest request of the QP. */
static void
slow_find(const struct link_qp *q)
{
	struct slow_request copy[SLOWEST_KEPT];
	unsigned n = slowest_copy(&engine()->times.own_slowest, LATENCY_TYPE_RC,
		LATENCY_OP_send, fixture.now, copy);
	unsigned i = 0;

	while (i < n && copy[i].qpn != q->qp->qpn)
		i++;
	assert_true(i < n);
	slow = copy[i];
}

static void
expect_slow(uint64_t took)
{
	slow_find(&a[0]);
	assert_int_equal(slow_total_ns(&slow), took);
}

/* For an answer that is on its way all passes find nothing, or there is none before it is
 * there. */
static void
answer_late(bool passes)
{
	begin(0);
	warm_up();
	engine_run(engine(), fixture.now);
	fixture.now += 3 * STEP;
	link_qp_message(&a[0], &b[0], 1);
	engine_run(engine(), fixture.now);
	engine_link_deliver(&fixture);
	fixture.now += STEP;
	if (passes)
		engine_run(engine(), fixture.now);
	while (engine_run(fixture.b.dev->engines[0], fixture.now) != 0)
		;
	engine_link_deliver(&fixture);
	fixture.now += 5 * STEP;
	engine_link_drain(&fixture);
	expect_slow(6 * STEP);
	assert_int_equal(slow.spent_ns[SLOW_answer], passes ? STEP : 0);
	assert_int_equal(slow.spent_ns[SLOW_engine], passes ? 5 * STEP : 6 * STEP);
	assert_int_equal(slow.before_ns, 3 * STEP);
	link_qp_expect_message(&a[0], &b[0], 1);
	end();
}

TEST(an_answer_that_waits_for_a_pass)
{
	answer_late(true);
	answer_late(false);
}

/* A post that sends at once has not waited. */
TEST(a_post_that_sends_at_once)
{
	begin(0);
	warm_up();
	(void)engine_poll(engine());
	engine()->times.before_ns = 1;
	link_qp_message(&a[0], &b[0], 1);
	assert_int_equal(engine()->stats.tx_from_post, 1);
	assert_int_equal(req_time_place(a[0].qp)->before_ns, 0);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a[0], &b[0], 1);
	end();
}

/* A post that sends at once is no pass: it takes up no other request. */
TEST(a_post_is_no_pass_for_other_requests)
{
	begin(0);
	warm_up();
	(void)engine_poll(engine());
	fixture.now += STEP;
	link_qp_message(&a[1], &b[1], 1);
	assert_int_equal(engine()->stats.tx_from_post, 1);
	link_qp_message(&a[0], &b[0], 1); /* the second post behind a pass waits */
	assert_int_equal(engine()->stats.tx_from_post, 1);
	fixture.now += STEP;
	engine_run(engine(), fixture.now);
	assert_int_equal(req_time_place(a[0].qp)->before_ns, 2 * STEP);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a[0], &b[0], 1);
	link_qp_expect_message(&a[1], &b[1], 1);
	end();
}

/* A thread that has read the clock waits for the engine lock while another one runs a pass with a later time: its own pass
 * begins at that time. */
TEST(a_pass_with_an_earlier_clock)
{
	begin(0);
	warm_up();
	fixture.now += 4 * STEP;
	engine_run(engine(), fixture.now);
	engine_run(engine(), fixture.now - 3 * STEP);
	link_qp_message(&a[0], &b[0], 1);
	fixture.now += STEP;
	engine_run(engine(), fixture.now);
	assert_int_equal(req_time_place(a[0].qp)->before_ns, STEP);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a[0], &b[0], 1);
	end();
}

/* No pass of an engine with a progress thread tells how long a post has waited. */
TEST(posts_that_run_passes_have_not_waited)
{
	static const struct engine_progress_thread thread;

	begin(0);
	warm_up();
	assert_int_not_equal(engine()->times.before_ns, 0);
	engine_set_progress_thread(engine(), &thread);
	assert_int_equal(engine()->times.before_ns, 0);
	engine_set_progress_thread(engine(), NULL);
	end();
}

/* The QP is posted to while another one fills the window of the peer. */
TEST(a_full_window)
{
	begin(4);
	warm_up();
	fixture.b.stopped = true;
	for (unsigned i = 0; i < 4; i++)
		link_qp_message(&a[1], &b[1], i);
	engine_run(engine(), fixture.now);
	a[0].qp->untimed = 1;
	link_qp_message(&a[0], &b[0], 1);
	fixture.now += STEP;
	engine_run(engine(), fixture.now);
	assert_int_equal(engine_link_blocked(engine()), 1);
	fixture.now += 3 * STEP;
	fixture.b.stopped = false;
	engine_link_drain(&fixture);
	expect_slow(3 * STEP);
	assert_int_equal(slow.spent_ns[SLOW_window], 3 * STEP);
	for (unsigned i = 0; i < 4; i++)
		link_qp_expect_message(&a[1], &b[1], i);
	link_qp_expect_message(&a[0], &b[0], 1);
	end();
}

/* A message of which the window takes a part: the wait counts until its last packet can
 * leave, not that of the requests behind it. */
TEST(a_message_longer_than_the_window)
{
	begin(2);
	warm_up();
	fixture.b.stopped = true;
	assert_int_equal(link_qp_recv(&b[0], 1, 0, 4096), 0);
	assert_int_equal(link_qp_send(&a[0], 1, 0, 3 * 1024, IBV_SEND_SIGNALED), 0);
	link_qp_message(&a[0], &b[0], 2);
	link_qp_message(&a[0], &b[0], 3);
	engine_run(engine(), fixture.now);
	engine_link_deliver(&fixture);
	fixture.now += 2 * STEP;
	engine_run(engine(), fixture.now);
	fixture.b.stopped = false;
	while (engine_run(fixture.b.dev->engines[0], fixture.now) != 0)
		;
	fixture.b.stopped = true;
	engine_link_deliver(&fixture);
	engine_run(engine(), fixture.now); /* the rest, and the next request */
	assert_true(a[0].qp->sched.on_blocked != BLOCKED_NOT);
	engine_link_deliver(&fixture);
	fixture.now += STEP;
	engine_run(engine(), fixture.now);
	fixture.b.stopped = false;
	engine_link_drain(&fixture);
	expect_slow(3 * STEP);
	assert_int_equal(slow.bytes, 3 * 1024);
	assert_int_equal(slow.spent_ns[SLOW_window], 2 * STEP);
	assert_int_equal(slow.spent_ns[SLOW_answer], STEP);
	link_qp_expect_sent(&a[0], 1, 3, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 1, 1);
	link_qp_expect_received(&b[0], 2, 1);
	link_qp_expect_received(&b[0], 3, 1);
	end();
}

/* The MAC address of the next hop is not known. */
TEST(an_unknown_next_hop)
{
	begin(0);
	fixture.a.deaf = fixture.b.deaf = true;
	link_qp_message(&a[0], &b[0], 0);
	engine_link_advance(&fixture, 5 * NS_PER_MS);
	assert_true(a[0].qp->sched.on_unresolved);
	assert_int_equal(fixture.b.roce_frames, 0);
	fixture.a.deaf = fixture.b.deaf = false;
	engine_link_advance(&fixture, 2 * NS_PER_SEC);
	link_qp_expect_message(&a[0], &b[0], 0);
	slow_find(&a[0]);
	assert_true(slow.spent_ns[SLOW_neighbour] >= 5 * NS_PER_MS);
	assert_int_equal(slow_total_ns(&slow), slow.spent_ns[SLOW_neighbour]);
	end();
}

/* The port takes no packet for a while, in which timers may expire: they find no loss. */
TEST(a_port_that_takes_nothing)
{
	begin(0);
	warm_up();
	fixture.a.port.q[0].tx_take = 0;
	link_qp_message(&a[0], &b[0], 1);
	engine_run(engine(), fixture.now);
	assert_int_equal(engine()->io.backlog_count, 1);
	fixture.now += 4 * STEP;
	engine_run(engine(), fixture.now);
	engine_lock(engine());
	req_time_lost(a[0].qp, SLOW_timer, 0);
	engine_unlock(engine());
	fixture.a.port.q[0].tx_take = UINT32_MAX;
	engine_run(engine(), fixture.now);
	fixture.now += STEP;
	engine_run(engine(), fixture.now);
	engine_link_drain(&fixture);
	expect_slow(5 * STEP);
	assert_int_equal(slow.spent_ns[SLOW_port], 4 * STEP);
	assert_int_equal(slow.spent_ns[SLOW_answer], STEP);
	link_qp_expect_message(&a[0], &b[0], 1);
	end();
}
