/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine asks its port whether the receiver has taken the packets of a QP whose timer has
 * expired. */
#include <stdlib.h>

#include "engine/engine_state.h"
#include "engine_link.h"
#include "qp/send_age.h"

static struct engine_link fixture;
static struct link_qp a, b;
static struct port_ops ops;

static struct {
	bool away;
	unsigned asked;
} receiver;

static bool
receiver_away(void *queue, uint32_t qpn, struct answer_wait *wait, uint64_t now)
{
	assert_ptr_equal(queue, &fixture.a.port.q[0]);
	assert_int_equal(qpn, a.qp->qpn);
	assert_true(now <= fixture.now);
	receiver.asked++;
	return receiver.away;
}

static struct engine *
engine(void)
{
	return fixture.a.dev->engines[0];
}

/* Replaces the queue of a's engine. known: by one that knows what its receiver has taken. */
static void
set_queue(bool known)
{
	struct port_queue queue;

	dev_engines_lock(fixture.a.dev);
	queue = engine_queue(engine());
	ops = *queue.ops;
	ops.tx_waits = known ? receiver_away : NULL;
	queue.ops = &ops;
	engine_set_queue(engine(), &queue);
	dev_engines_unlock(fixture.a.dev);
}

static void
open_link(void)
{
	const struct link_qp_conf qc = {.engine = 0, .timeout = 10, .retry_cnt = 2};

	engine_link_init(&fixture, NULL);
	link_qps_create(&fixture, &a, &b, 1, &qc);
	link_qp_message(&a, &b, 0); /* resolves the partners */
	link_qp_message(&b, &a, 0);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a, &b, 0);
	link_qp_expect_message(&b, &a, 0);
	receiver.away = true;
	receiver.asked = 0;
}

static void
close_link(void)
{
	engine_link_advance(&fixture, NS_PER_SEC);
	assert_int_equal(engine()->wheel.count, 0);
	link_qps_fini(&fixture, &a, &b, 1);
}

/* The receiver takes nothing for 5 s, far more than all tries take. Then it has lost the packet. */
TEST(timers_wait_for_the_receiver)
{
	struct send_ages ages;
	unsigned waited;

	open_link();
	set_queue(true);
	fixture.b.deaf = true;
	link_qp_message(&a, &b, 1);
	engine_link_drain(&fixture);
	waited = fixture.b.roce_frames;
	engine_link_advance(&fixture, 5 * NS_PER_SEC);
	assert_int_equal(fixture.b.roce_frames, waited);
	send_ages(a.qp, fixture.now, &ages);
	assert_in_range(ages.unacked_ns, 5 * NS_PER_SEC - 2 * NS_PER_MS, 5 * NS_PER_SEC);
	assert_true(receiver.asked > 1000);
	assert_int_equal(engine()->stats.timeouts_waited, 1);
	assert_int_equal(engine()->stats.ack_timeouts, 0);
	assert_int_equal(engine()->stats.retransmitted, 0);
	receiver.away = false;
	fixture.b.deaf = false;
	engine_link_advance(&fixture, 5 * NS_PER_MS);
	assert_true(engine()->stats.retransmitted != 0);
	link_qp_expect_message(&a, &b, 1);
	close_link();
}

/* The driver gives up: the request fails after its tries. */
TEST(request_fails_when_the_driver_gives_up)
{
	open_link();
	set_queue(true);
	fixture.b.deaf = true;
	assert_int_equal(link_qp_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_link_advance(&fixture, NS_PER_SEC);
	assert_int_equal(engine()->stats.ack_timeouts, 0);
	receiver.away = false;
	engine_link_advance(&fixture, NS_PER_SEC);
	link_qp_expect_sent(&a, 1, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(engine()->stats.ack_timeouts, 3);
	close_link();
}

/* A queue without the call replaces one with it: timeouts are as usual. */
TEST(queue_is_replaced)
{
	open_link();
	set_queue(true);
	set_queue(false);
	fixture.b.deaf = true;
	assert_int_equal(link_qp_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_link_advance(&fixture, NS_PER_SEC);
	link_qp_expect_sent(&a, 1, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(receiver.asked, 0);
	assert_int_equal(engine()->stats.timeouts_waited, 0);
	close_link();
}

TEST(environment_is_checked)
{
	static const struct {
		const char *text;
		uint64_t seconds;
	} rows[] = {{"0", 0}, {"7", 7}, {"3600", 3600}, {"3601", 60}, {"-1", 60},
		{"", 60}, {" 1", 60}, {"1s", 60}, {"99999999999999999999", 60}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		setenv("ROCADE_PAIR_WAIT", rows[i].text, 1);
		engine_link_init(&fixture, NULL);
		assert_int_equal(
			engine()->shared.answer_wait_ns, rows[i].seconds * NS_PER_SEC);
		engine_link_fini(&fixture);
	}
	unsetenv("ROCADE_PAIR_WAIT");
}
