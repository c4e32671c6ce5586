/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices of a process, between which packets travel by rings: no live peer is declared dead, and one
 * that has lost the packets is found after the time that was set (docs/protocol.md 7.6). */
#include "engine/engine_state.h"
#include "engine_link.h"

#define TIMEOUT 5 /* 131 us */
#define TIMEOUT_NS (UINT64_C(4096) << TIMEOUT)
#define RETRIES 3
#define FAILS_NS (TIMEOUT_NS * (RETRIES + 1))

static struct engine_link fixture;
static struct link_qp a, b;

static const struct link_qp_conf qp_conf = {
	.engine = 0, .timeout = TIMEOUT, .retry_cnt = RETRIES};

static void
open_engines(unsigned engines, int engine_of_b)
{
	const struct engine_link_conf conf = {
		.engines = {engines, engines}, .rings = true};
	struct link_qp_conf of_b = qp_conf;

	of_b.engine = engine_of_b;
	engine_link_init(&fixture, &conf);
	link_qp_create(&fixture.a, &a, &qp_conf);
	link_qp_create(&fixture.b, &b, &of_b);
	link_qp_connect(&a, &b, &qp_conf);
	link_qp_message(&a, &b, 0); /* resolves the partners */
	link_qp_message(&b, &a, 0);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a, &b, 0);
	link_qp_expect_message(&b, &a, 0);
}

static void
open_link(void)
{
	open_engines(1, 0);
}

static void
close_link(void)
{
	engine_link_advance(&fixture, NS_PER_SEC);
	link_qps_fini(&fixture, &a, &b, 1);
}

static struct port_stats *
stats(void)
{
	return &fixture.a.dev->engines[0]->stats;
}

/* Sends a message that fails, and returns how long that takes. */
static uint64_t
send_fails(void)
{
	uint64_t since = fixture.now;
	struct cqe cqe;

	assert_int_equal(link_qp_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	while (!link_qp_poll_send(&a, &cqe)) {
		engine_link_advance(&fixture, NS_PER_US);
		assert_true(fixture.now - since < 2 * FAILS_NS);
	}
	assert_int_equal(cqe.status, IBV_WC_RETRY_EXC_ERR);
	return fixture.now - since;
}

/* Far longer than all tries take. */
TEST(peer_without_a_pass_is_waited_for)
{
	open_link();
	fixture.b.stopped = true;
	link_qp_message(&a, &b, 1);
	engine_link_advance(&fixture, 10 * NS_PER_SEC);
	assert_int_equal(stats()->ack_timeouts, 0);
	assert_int_equal(stats()->retransmitted, 0);
	assert_int_equal(stats()->timeouts_waited, 1);
	fixture.b.stopped = false;
	engine_link_drain(&fixture);
	link_qp_expect_message(&a, &b, 1);
	close_link();
}

/* The packets have come, and the pass that would answer them has not. */
TEST(answer_of_a_pass_that_is_not_complete_is_waited_for)
{
	open_link();
	fixture.b.stopped = true;
	link_qp_message(&a, &b, 1);
	for (unsigned i = 0; i < 20; i++) {
		engine_link_advance(&fixture, TIMEOUT_NS);
		/* An earlier pass ends, of which nothing is known. */
		rounds_pass(fixture.rounds, fixture.b.dev->engines[0]->round, false);
	}
	assert_int_equal(stats()->ack_timeouts, 0);
	fixture.b.stopped = false;
	engine_link_drain(&fixture);
	link_qp_expect_message(&a, &b, 1);
	close_link();
}

/* The packets of other QPs fill the pass that receives a request, so that its acknowledgement leaves in a
 * later one. */
TEST(answer_of_a_later_pass_is_waited_for)
{
	enum { QPS = 6, LAST = QPS - 1, LEN = 2 * ENGINE_BUDGET * 1024 };
	struct link_qp from[QPS], to[QPS];
	const struct engine_link_conf conf = {.rings = true};
	const struct round_engine *round;
	struct engine *e;
	uint32_t number;

	static_assert(LAST * ENGINE_BUDGET > ENGINE_TX_PASS, "more than a pass sends");
	engine_link_init(&fixture, &conf);
	link_qps_create(&fixture, to, from, QPS, &qp_conf);
	e = fixture.b.dev->engines[0];
	round = e->round;
	for (unsigned i = 0; i < QPS; i++) { /* resolves the next hop */
		link_qp_message(&from[i], &to[i], 0);
		engine_link_drain(&fixture);
		link_qp_expect_message(&from[i], &to[i], 0);
	}
	for (unsigned i = 0; i < LAST; i++) {
		assert_int_equal(link_qp_recv(&to[i], 1, 0, LEN), 0);
		assert_int_equal(link_qp_send(&from[i], 1, 0, LEN, 0), 0);
	}
	number = rounds_begin(fixture.rounds);
	engine_run(e, fixture.now);
	assert_int_equal(round->began, number);
	link_qp_message(&to[LAST], &from[LAST], 2);
	engine_run(fixture.a.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
	engine_run(e, fixture.now);
	assert_true(qp_has_response_pending(from[LAST].qp));
	assert_int_not_equal(round->done, number);
	engine_run(e, fixture.now);
	assert_false(qp_has_response_pending(from[LAST].qp));
	assert_int_equal(round->done, number);
	engine_link_drain(&fixture);
	link_qp_expect_message(&to[LAST], &from[LAST], 2);
	for (unsigned i = 0; i < LAST; i++)
		link_qp_expect_received(&to[i], 1, 1);
	link_qps_destroy(to, from, QPS);
	engine_link_fini(&fixture);
}

TEST(wait_is_bounded)
{
	open_link();
	fixture.b.stopped = true;
	assert_int_equal(link_qp_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_link_advance(&fixture, ANSWER_WAIT_NS);
	assert_int_equal(stats()->ack_timeouts, 0);
	engine_link_advance(&fixture, 2 * FAILS_NS);
	link_qp_expect_sent(&a, 1, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(stats()->timeouts_waited, 1);
	fixture.b.stopped = false;
	close_link();
}

TEST(lost_packets_expire_as_set)
{
	uint64_t took;

	open_link();
	fixture.b.deaf = true;
	took = send_fails();
	assert_true(took >= FAILS_NS);
	assert_true(took < FAILS_NS + FAILS_NS / 2);
	assert_int_equal(stats()->ack_timeouts, RETRIES + 1);
	fixture.b.deaf = false;
	close_link();
}

TEST(peer_in_err_or_reset_is_found)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_ERR, IBV_QPS_RESET};

	for (unsigned i = 0; i < RTE_DIM(states); i++) {
		uint64_t took;

		open_link();
		assert_int_equal(link_qp_modify(&b, states[i]), 0);
		took = send_fails();
		assert_true(took >= FAILS_NS);
		assert_true(took < FAILS_NS + FAILS_NS / 2);
		close_link();
	}
}

/* Its device is gone, and makes no pass any more. */
TEST(closed_port_is_not_waited_for)
{
	open_link();
	fixture.b.stopped = true;
	rounds_leave(fixture.rounds, 1);
	assert_true(send_fails() < FAILS_NS + FAILS_NS / 2);
	fixture.b.stopped = false;
	close_link();
}

/* The packets come to another engine than the QP's, which hands them over. */
TEST(engines_hand_over)
{
	uint64_t took;

	open_engines(2, 1);
	fixture.b.stopped = true;
	link_qp_message(&a, &b, 1);
	/* Only the one to which they come makes passes. */
	for (unsigned i = 0; i < 40; i++) {
		engine_link_advance(&fixture, TIMEOUT_NS);
		engine_run(fixture.b.dev->engines[0], fixture.now);
	}
	assert_int_equal(stats()->ack_timeouts, 0);
	fixture.b.stopped = false;
	engine_link_drain(&fixture);
	link_qp_expect_message(&a, &b, 1);
	fixture.b.deaf = true;
	took = send_fails();
	assert_true(took < FAILS_NS + FAILS_NS);
	fixture.b.deaf = false;
	close_link();
}
