/* SPDX-License-Identifier: BSD-3-Clause */
/* Manual progress: a post sends its requests without a pass, if there was one just now and nothing else
 * is to be done. */
#include "engine/engine_lock.h"
#include "engine/manual_progress.h"
#include "engine/sched.h"

#include "poll_fixture.h"
#include "progress_fixture.h"

#define PMTU 1024

static void
begin(uint32_t peer_window, bool timeouts)
{
	struct link_qp_conf plain = {.wr = 64, .no_timeout = !timeouts};
	struct engine_link_conf conf = {.peer_window = peer_window};

	link_open(&conf, &plain);
	/* The neighbours get to know each other. */
	for (unsigned i = 0; i < QPS; i++) {
		(void)post(i, 8);
		engine_link_drain(&fixture);
	}
	engine_set_progress_thread(engine(), &progress_thread);
	engine_try_pass(engine());
	wakes = 0;
}

static void
end(void)
{
	engine_set_progress_thread(engine(), NULL);
	engine_link_advance(&fixture, NS_PER_SEC);
	assert_int_equal(engine()->stats.retransmitted, 0);
	link_close();
}

TEST(posts_send_without_a_pass)
{
	uint64_t polled_ns;

	begin(0, false);
	polled_ns = engine()->shared.polled_ns;
	for (unsigned i = 0; i < 5; i++) {
		fixture.now += 100;
		assert_int_equal(post(0, 8), 1);
		assert_int_equal(post(1, 3 * PMTU), 3);
		assert_int_equal(engine()->shared.now, fixture.now);
	}
	expect_posts(10, 0);
	assert_int_equal(engine()->shared.polled_ns, polled_ns);
	assert_int_equal(wakes, 0);
	end();
}

/* A request that is complete when it is sent has written a completion. The pass starts the period of its
 * event, and the progress thread is woken for the end of that. */
TEST(moderated_event_runs_a_pass)
{
	struct cqe cqe = {.opcode = IBV_WC_SEND};
	struct event_queue channel;
	struct cq *cq;

	begin(0, false);
	cq = a[0].qp->recv_cq;
	assert_int_equal(event_queue_init(&channel), 0);
	cq_set_channel(cq, &channel, cq);
	cq->moderator = &fixture.a.dev->cq_moderator;
	dev_cq_moderate(fixture.a.dev, cq, 100, 10);
	cq_arm(cq, false);
	engine()->earliest_ns = engine()->sleep_until_ns = TIME_NEVER;
	assert_true(
		cq_complete(&engine()->shared.gather, cq, &cqe, &engine()->shared.now));
	assert_int_equal(wakes, 0);
	assert_int_equal(post(0, 8), 1);
	assert_int_equal(wakes, 1);
	assert_true(engine()->earliest_ns <= fixture.now + 10 * NS_PER_US);
	assert_true(link_qp_poll_recv(&a[0], &cqe));
	event_purge(&cq->comp_event);
	cq_set_channel(cq, NULL, NULL);
	event_queue_fini(&channel);
	end();
}

/* A thread that never polls receives, too. */
TEST(post_receives_now_and_then)
{
	begin(0, false);
	fixture.now += TRY_TX_NS - 1;
	assert_int_equal(post(0, 8), 1);
	expect_posts(1, 0);
	fixture.now++;
	assert_int_equal(post(0, 8), 1);
	expect_posts(1, 1);
	assert_int_equal(engine()->shared.polled_ns, fixture.now);
	fixture.now += TRY_TX_NS - 1;
	assert_int_equal(post(0, 8), 1);
	expect_posts(2, 1);
	end();
}

TEST(other_qps_go_first)
{
	begin(0, false);
	engine_lock(engine());
	engine_ready(engine(), a[1].qp);
	engine_lock_release(engine());
	assert_int_equal(post(0, 8), 1);
	expect_posts(0, 1);
	assert_int_equal(engine()->shared.polled_ns, fixture.now);
	end();
}

/* Without waking the progress thread. */
TEST(pass_sends_what_is_left_of_a_long_message)
{
	begin(0, false);
	engine()->sleep_until_ns = TIME_NEVER;
	assert_int_equal(post(0, 20 * PMTU), 20);
	expect_posts(1, 0);
	assert_int_equal(wakes, 0);
	end();
}

TEST(timer_of_the_request_wakes_the_progress_thread)
{
	begin(0, true);
	(void)engine_sleep_until(engine());
	wheel_cancel(&engine()->wheel, &a[0].qp->sched.timer);
	engine()->earliest_ns = engine()->sleep_until_ns = TIME_NEVER;
	assert_int_equal(post(0, 8), 1);
	assert_int_equal(wakes, 1);
	expect_posts(1, 0);
	assert_int_equal(post(0, 8), 1);
	assert_int_equal(wakes, 1);
	end();
}

/* Another thread found the lock taken. */
TEST(doorbell_that_rings_meanwhile_is_drained)
{
	struct send_req req = {.opcode = IBV_WR_SEND, .flags = IBV_SEND_SIGNALED};

	begin(0, false);
	assert_int_equal(link_qp_recv(&b[1], wr, 0, 8), 0);
	assert_int_equal(sq_post(&a[1].qp->sq, &req), 0);
	doorbells_ring(&engine()->doorbells, a[1].qp->sq.doorbell);
	assert_int_equal(post(0, 8), 2);
	expect_posts(1, 0);
	assert_int_equal(engine()->shared.polled_ns, fixture.now);
	end();
}

TEST(pass_looks_after_windows_that_are_full)
{
	begin(4, false);
	fixture.now += 100;
	assert_int_equal(post(0, 7 * PMTU), 4);
	expect_posts(1, 0);
	assert_true(a[0].qp->sched.on_blocked);
	assert_int_equal(engine()->shared.polled_ns, fixture.now);
	assert_int_equal(post(1, 8), 0);
	assert_true(a[1].qp->sched.on_blocked);
	end();
}

TEST(environment_turns_it_off)
{
	begin(0, false);
	engine()->tx_from_post = false; /* ROCADE_OFF=tx-from-post */
	assert_int_equal(post(0, 8), 1);
	expect_posts(0, 1);
	engine()->tx_from_post = true;
	assert_int_equal(post(0, 8), 1);
	expect_posts(1, 1);
	end();
}
