/* SPDX-License-Identifier: BSD-3-Clause */
/* The first post of a thread after its poll of the engine is sent from within the post. */
#include <pthread.h>
#include <stdlib.h>

#include "engine/sched.h"

#include "poll_fixture.h"

#define PMTU 1024

static void
begin(uint32_t peer_window)
{
	static const struct link_qp_conf plain = {.wr = 64};
	struct engine_link_conf conf = {.peer_window = peer_window};

	link_open(&conf, &plain);
	/* The neighbours get to know each other. */
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(post(i, 8), 0);
		engine_link_drain(&fixture);
		link_qp_expect_sent(&a[i], i, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[i], i, 1);
	}
}

/* A message of any length leaves at once, up to the budget of a QP. The poll sends the
 * rest. */
TEST(first_post_after_a_poll_is_sent)
{
	static const uint32_t lens[] = {0, 1, 64, PMTU, 5 * PMTU, 20 * PMTU};

	begin(0);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		unsigned packets = RTE_MAX((lens[i] + PMTU - 1) / PMTU, 1u);
		unsigned first = RTE_MIN(packets, ENGINE_BUDGET + 0u);

		assert_int_equal(poll(), 0);
		assert_int_equal(post(0, lens[i]), first);
		assert_int_equal(poll(), packets - first);
		engine_link_drain(&fixture);
		link_qp_expect_sent(&a[0], wr - 1, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[0], wr - 1, 1);
	}
	expect_posts(6, 0);
	link_close();
}

/* Later posts, of whatever QP, leave in one burst with the next poll. */
TEST(only_one_post_after_each_poll)
{
	begin(0);
	poll();
	assert_int_equal(post(0, 8), 1);
	assert_int_equal(post(0, 8), 0);
	assert_int_equal(post(1, 8), 0);
	assert_int_equal(poll(), 2);
	expect_posts(1, 0);
	link_close();
}

/* A QP with two requests in flight, or on the ready list, waits for the next poll. */
TEST(busy_qp_waits_for_the_poll)
{
	begin(0);
	poll();
	fixture.a.deaf = true;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(post(0, 8), 1);
		poll();
	}
	assert_int_equal(post(0, 8), 0);
	expect_posts(2, 1);
	assert_int_equal(poll(), 1);
	engine_lock(engine());
	engine_ready(engine(), a[1].qp);
	engine_unlock(engine());
	assert_int_equal(post(1, 8), 0);
	expect_posts(2, 2);
	assert_int_equal(poll(), 1);
	link_close();
}

/* The peer window limits what a post sends, and blocks the QP. */
TEST(peer_window_limits_the_post)
{
	begin(4);
	poll();
	assert_int_equal(post(0, 7 * PMTU), 4);
	assert_true(a[0].qp->sched.on_blocked);
	poll();
	assert_int_equal(post(1, 8), 0);
	assert_true(a[1].qp->sched.on_blocked);
	link_close();
}

/* Frames that the port refused go first: no post overtakes them. */
TEST(backlog_goes_first)
{
	begin(0);
	fixture.a.port.q[0].tx_take = 0;
	poll();
	assert_int_equal(post(0, 8), 0);
	expect_posts(1, 0);
	assert_int_equal(engine()->io.backlog_count, 1);
	poll();
	assert_int_equal(post(1, 8), 0);
	expect_posts(1, 1);
	assert_int_equal(engine()->io.backlog_count, 1);
	fixture.a.port.q[0].tx_take = UINT32_MAX;
	assert_int_equal(poll(), 2);
	link_close();
}

/* A QP that may not send, or whose next hop is unknown, is left to the pass. */
TEST(stopped_qp_waits)
{
	begin(0);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_SQD), 0);
	poll();
	assert_int_equal(post(0, 8), 0);
	expect_posts(0, 1);
	assert_int_equal(link_qp_modify(&a[0], IBV_QPS_RTS), 0);
	assert_int_equal(poll(), 1);
	link_close();
}

static void *
post_from_thread(void *arg)
{
	*(unsigned *)arg = post(0, 8);
	return NULL;
}

/* Only the thread that polled sends: another one would keep the poller waiting. */
TEST(other_thread_rings_the_doorbell)
{
	pthread_t thread;
	unsigned sent;

	begin(0);
	poll();
	assert_int_equal(pthread_create(&thread, NULL, post_from_thread, &sent), 0);
	pthread_join(thread, NULL);
	assert_int_equal(sent, 0);
	expect_posts(0, 0);
	assert_int_equal(poll(), 1);
	link_close();
}

/* While another thread holds the engine lock, a post only rings the doorbell. */
TEST(taken_lock_is_not_waited_for)
{
	begin(0);
	poll();
	engine_lock(engine());
	assert_int_equal(post(0, 8), 0);
	engine_unlock(engine());
	assert_int_equal(poll(), 1);
	expect_posts(0, 0);
	link_close();
}

TEST(environment_turns_it_off)
{
	setenv("ROCADE_OFF", "tx-from-post", 1);
	begin(0);
	unsetenv("ROCADE_OFF");
	poll();
	assert_int_equal(post(0, 8), 0);
	expect_posts(0, 0);
	assert_int_equal(poll(), 1);
	link_close();
}
