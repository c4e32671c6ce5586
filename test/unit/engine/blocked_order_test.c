/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs that are blocked on the peer window come before others, and those that cannot send do
 * not hold up the ones behind them. */
#include "engine/pass.h"
#include "engine/sched.h"
#include "engine_link.h"
#include "port/neigh.h"
#include "test_clock.h"

#define QPS 3

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];

static const struct link_qp_conf plain = {.engine = 0, .wr = 16};

static struct engine *
engine(void)
{
	return fixture.a.dev->engines[0];
}

static void
message(unsigned i)
{
	link_qp_message(&a[i], &b[i], 0);
}

static void
expect_message(unsigned i)
{
	link_qp_expect_message(&a[i], &b[i], 0);
}

static void
expect_all(void)
{
	engine_link_advance(&fixture, NS_PER_SEC);
	for (unsigned i = 0; i < QPS; i++)
		expect_message(i);
}

/* The window has room for one packet. The first and the last QP know the next hop, and the
 * port has sent its announcements. */
static void
init(void)
{
	struct engine_link_conf conf = {.peer_window = 1};

	engine_link_init(&fixture, &conf);
	test_clock = &fixture.now;
	link_qps_create(&fixture, a, b, QPS, &plain);
	for (unsigned i = 0; i < QPS; i += QPS - 1) {
		message(i);
		engine_link_drain(&fixture);
		expect_message(i);
	}
	engine_link_advance(&fixture, 10 * NS_PER_SEC);
}

static void
tx_pass(void)
{
	engine_run(engine(), fixture.now);
}

/* The first QP's packet fills the window. Its acknowledgement has arrived at the port, and
 * opens the window in the next pass. The second QP is blocked. */
static void
second_qp_block(void)
{
	message(0);
	tx_pass();
	engine_link_deliver(&fixture);
	message(1);
	tx_pass();
	assert_true(a[1].qp->sched.on_blocked);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
}

/* A QP whose next hop is not resolved takes no room of the window: the one behind it sends,
 * and the engine may sleep. */
TEST(unresolved_qp_leaves_the_queue)
{
	init();
	second_qp_block();
	/* The last QP goes on with the MAC that it knows. */
	neigh_flush(fixture.a.dev->net, true);
	message(2);
	tx_pass();
	tx_pass();
	assert_true(a[1].qp->sched.on_unresolved);
	assert_false(a[1].qp->sched.on_blocked);
	assert_int_equal(a[2].qp->req.unacked, 1);
	assert_true(engine_deadline(engine()) > fixture.now);
	expect_all();
	link_qps_fini(&fixture, a, b, QPS);
}

/* The window opens in the pass that drains the doorbell of another QP. */
TEST(posted_qp_queues_behind_blocked_ones)
{
	init();
	second_qp_block();
	message(2);
	tx_pass();
	assert_int_equal(a[1].qp->req.unacked, 1);
	assert_true(a[2].qp->sched.on_blocked);
	assert_int_equal(a[2].qp->req.unacked, 0);
	expect_all();
	link_qps_fini(&fixture, a, b, QPS);
}

/* A control call opens the window, and the thread that polled posts to another QP. */
TEST(post_does_not_overtake_blocked_qps)
{
	static const struct qp_attr reset = {.state = IBV_QPS_RESET};

	init();
	message(0);
	tx_pass();
	message(1);
	engine_poll(engine());
	assert_true(a[1].qp->sched.on_blocked);
	assert_int_equal(dev_qp_modify(fixture.a.dev, a[0].qp, &reset, IBV_QP_STATE), 0);
	message(2);
	assert_true(a[2].qp->sched.on_blocked);
	assert_int_equal(a[2].qp->req.unacked, 0);
	tx_pass();
	assert_int_equal(a[1].qp->req.unacked, 1);
	assert_int_equal(a[2].qp->req.unacked, 0);
	engine_link_advance(&fixture, NS_PER_SEC);
	expect_message(1);
	expect_message(2);
	link_qp_expect_received(&b[0], 0, 1);
	link_qps_fini(&fixture, a, b, QPS);
}
