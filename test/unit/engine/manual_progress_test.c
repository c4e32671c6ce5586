/* SPDX-License-Identifier: BSD-3-Clause */
/* Manual progress: posts and polls advance an engine, the lock's holder serves doorbells
 * of other threads, and the progress thread sleeps and is woken. Runs on the system
 * clock, so no case measures time. */
#include <fcntl.h>
#include <string.h>

#include "base/asleep.h"
#include "engine/manual_progress.h"
#include "engine/engine_state.h"
#include "await.h"
#include "engine_link.h"
#include "progress_fixture.h"

static struct engine_link fixture;
static struct link_qp a, b;
static struct engine *ea, *eb;

static const struct link_qp_conf plain = {.engine = 0, .wr = 64};

/* Polls both engines and carries frames until nothing moves. No other thread polls. */
static void
poll_until_idle(void)
{
	unsigned moved;

	do {
		moved = engine_try_pass(ea) + engine_try_pass(eb);
		moved += engine_link_deliver(&fixture);
	} while (moved != 0);
}

/* Connects the QPs; one message resolves the neighbours. */
static void
init(void)
{
	engine_link_init(&fixture, NULL);
	link_qp_create(&fixture.a, &a, &plain);
	link_qp_create(&fixture.b, &b, &plain);
	link_qp_connect(&a, &b, &plain);
	ea = fixture.a.dev->engines[0];
	eb = fixture.b.dev->engines[0];
	engine_set_progress_thread(ea, &progress_thread);
	engine_set_progress_thread(eb, &progress_thread);
	assert_int_equal(link_qp_recv(&b, 100, 0, 64), 0);
	assert_int_equal(link_qp_send(&a, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	poll_until_idle();
	link_qp_expect_sent(&a, 1, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b, 100, 1);
	asleep = 0;
	wakes = 0;
}

static void
fini(void)
{
	link_qp_destroy(&a);
	link_qp_destroy(&b);
	engine_link_fini(&fixture);
}

/* Send 2 completes and arrives in receive 101. */
static void
expect_message(void)
{
	poll_until_idle();
	link_qp_expect_sent(&a, 2, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b, 101, 1);
}

TEST(post_sends_at_once)
{
	init();
	assert_int_equal(link_qp_recv(&b, 101, 0, 64), 0);
	assert_int_equal(link_qp_send(&a, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	assert_true(engine_link_deliver(&fixture) != 0);
	expect_message();
	fini();
}

TEST(lock_holder_drains_doorbell_of_other_thread)
{
	init();
	assert_int_equal(link_qp_recv(&b, 101, 0, 64), 0);
	engine_lock(ea);
	assert_int_equal(link_qp_send(&a, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(engine_link_deliver(&fixture), 0);
	assert_int_equal(engine_try_pass(ea), 0); /* does not wait for the lock */
	engine_unlock(ea);
	assert_true(engine_link_deliver(&fixture) != 0);
	expect_message();
	fini();
}

TEST(earlier_timer_wakes_progress_thread)
{
	init();
	(void)engine_sleep_until(ea);
	ea->sleep_until_ns = TIME_NEVER; /* ignores timers that the first message left */
	wheel_cancel(&ea->wheel, &a.qp->sched.timer);
	assert_int_equal(link_qp_send(&a, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(wakes, 1);
	assert_int_equal(link_qp_send(&a, 3, 0, 64, IBV_SEND_SIGNALED), 0);
	assert_int_equal(wakes, 1); /* woken already: not again */
	assert_true(engine_sleep_until(ea) < TIME_NEVER);
	assert_int_equal(link_qp_recv(&b, 101, 0, 64), 0);
	assert_int_equal(link_qp_recv(&b, 102, 0, 64), 0);
	poll_until_idle();
	link_qp_expect_sent(&a, 2, 2, IBV_WC_SUCCESS);
	link_qp_expect_received(&b, 101, 2);
	fini();
}

static bool holding;

static bool
queue_holds(void *queue)
{
	assert_non_null(queue);
	return holding;
}

/* A frame that the queue holds back (port/impair.h) leaves in later passes, for which the thread is needed. */
TEST(held_frame_wakes_progress_thread)
{
	struct port_queue queue;
	struct port_ops ops;

	init();
	queue = engine_queue(ea);
	ops = *queue.ops;
	ops.holds = queue_holds;
	queue.ops = &ops;
	engine_lock(ea);
	engine_set_queue(ea, &queue);
	engine_unlock(ea);
	wheel_cancel(&ea->wheel, &a.qp->sched.timer);
	assert_true(engine_sleep_until(ea) != 0);
	ea->sleep_until_ns = TIME_NEVER;
	assert_int_equal(engine_try_pass(ea), 0);
	assert_int_equal(wakes, 0);
	holding = true;
	engine_lock(ea);
	engine_frame_held(ea);
	engine_unlock(ea);
	assert_int_equal(wakes, 1);
	assert_int_equal(engine_sleep_until(ea), 0);
	holding = false;
	assert_true(engine_sleep_until(ea) != 0);
	fini();
}

#define PERIOD_US 2000

/* The progress thread sleeps no longer than until the event of a moderated CQ is due, also if
 * another thread's pass has written the completion. */
TEST(moderated_event_ends_the_sleep)
{
	struct event_queue channel;
	struct event_record record;
	struct await polling = {.pauses = 0};
	uint64_t begin;
	struct cq *cq;

	init();
	cq = a.qp->recv_cq;
	assert_int_equal(event_queue_init(&channel), 0);
	assert_int_equal(fcntl(channel.fd, F_SETFL, O_NONBLOCK), 0);
	cq_set_channel(cq, &channel, cq);
	cq->moderator = &fixture.a.dev->cq_moderator;
	dev_cq_moderate(fixture.a.dev, cq, 100, PERIOD_US);
	cq_arm(cq, false);
	assert_int_equal(link_qp_recv(&a, 101, 0, 64), 0);
	assert_int_equal(link_qp_send(&b, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	assert_true(engine_link_deliver(&fixture) != 0);
	wheel_cancel(&ea->wheel, &a.qp->sched.timer);
	ea->earliest_ns = ea->sleep_until_ns = TIME_NEVER;
	wakes = 0;
	begin = engine_clock();
	assert_true(engine_try_pass(ea) != 0);
	assert_int_equal(wakes, 1);
	assert_true(engine_sleep_until(ea) <= engine_clock() + PERIOD_US * NS_PER_US);
	while (event_next(&channel, &record) != 0) {
		assert_true(await_goes_on(&polling));
		engine_try_pass(ea);
	}
	assert_true(engine_clock() - begin >= PERIOD_US * NS_PER_US);
	assert_ptr_equal(record.object, cq);
	poll_until_idle();
	link_qp_expect_sent(&b, 2, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&a, 101, 1);
	event_purge(&cq->comp_event);
	cq_set_channel(cq, NULL, NULL);
	event_queue_fini(&channel);
	fini();
}

/* Packets come as fast as they are taken. */
TEST(flood_does_not_keep_a_thread_from_its_sleep)
{
	uint8_t zeros[64] = {0};
	struct pkt frame = {.data = zeros, .len = sizeof(zeros)};
	uint64_t before;

	init();
	before = ea->stats.rx_packets;
	for (unsigned i = 0; i < FAKE_FRAMES; i++)
		assert_true(fake_arrive(&fixture.a.port, 0, &frame));
	engine_delegate(ea);
	assert_int_equal(wakes, 1);
	assert_in_range(
		ea->stats.rx_packets - before, PKT_BURST, FAKE_FRAMES - PKT_BURST);
	/* The progress thread takes the rest. */
	poll_until_idle();
	assert_int_equal(ea->stats.rx_packets - before, FAKE_FRAMES);
	engine_delegate(ea);
	assert_int_equal(wakes, 1);
	asleep = 0;
	fini();
}

/* ibv_req_notify_cq() and up to a few more polls: the progress thread keeps progress. An
 * application that goes on polling takes it back. */
TEST(delegation_survives_a_few_polls)
{
	init();
	engine_delegate(ea);
	assert_true(asleep_is_set(&asleep));
	for (unsigned i = 0; i < 4; i++)
		engine_progress(ea);
	assert_true(asleep_is_set(&asleep));
	for (unsigned i = 0; i < 64; i++)
		engine_progress(ea);
	assert_false(asleep_is_set(&asleep));
	assert_int_equal(engine_progress_calls(ea), 68);
	fini();
}

/* Only polls in a row count. */
TEST(polls_in_vain_offer_the_core)
{
	const struct port_stats *stats;

	init();
	stats = &ea->stats;
	for (unsigned i = 0; i + 1 < IDLE_POLLS; i++)
		engine_progress(ea);
	assert_int_equal(stats->core_offers, 0);
	assert_int_equal(link_qp_recv(&a, 101, 0, 64), 0);
	assert_int_equal(link_qp_send(&b, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	assert_true(engine_link_deliver(&fixture) != 0);
	engine_progress(ea); /* finds the packet */
	for (unsigned i = 0; i + 1 < IDLE_POLLS; i++)
		engine_progress(ea);
	assert_int_equal(stats->core_offers, 0);
	engine_progress(ea);
	assert_int_equal(stats->core_offers, 1);
	assert_int_equal(stats->core_offers_early, 0);
	ea->idle.limit = IDLE_POLLS_SHORT;
	ea->idle.fixed = true;
	for (unsigned i = 0; i < 3 * IDLE_POLLS_SHORT; i++)
		engine_progress(ea);
	assert_int_equal(stats->core_offers, 4);
	assert_int_equal(stats->core_offers_early, 3);
	assert_true(stats->core_offers_taken <= 4);
	poll_until_idle();
	link_qp_expect_sent(&b, 2, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&a, 101, 1);
	fini();
}

TEST(failed_device_flushes)
{
	struct cqe cqe;

	init();
	assert_int_equal(link_qp_recv(&b, 101, 0, 64), 0);
	dev_fail(fixture.b.dev);
	assert_int_equal(b.qp->state, IBV_QPS_ERR);
	assert_true(link_qp_poll_recv(&b, &cqe));
	assert_int_equal(cqe.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(cqe.wr_id, 101);
	fini();
}

TEST(no_pass_without_progress_thread)
{
	init();
	engine_set_progress_thread(ea, NULL);
	assert_false(engine_is_manual(ea));
	assert_int_equal(link_qp_recv(&b, 101, 0, 64), 0);
	assert_int_equal(link_qp_send(&a, 2, 0, 64, IBV_SEND_SIGNALED), 0);
	engine_progress(ea);
	engine_delegate(ea);
	assert_false(asleep_is_set(&asleep));
	assert_int_equal(engine_link_deliver(&fixture), 0);
	engine_set_progress_thread(ea, &progress_thread);
	expect_message();
	fini();
}
