/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that waits for a completion event runs the engine: it is woken by the other end of
 * the port and by events of other threads, and leaves for signals and cancellation. The test
 * plays the other end. It runs in real time: each wait is for a condition. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/asleep.h"
#include "base/futex.h"
#include "engine/engine_lock.h"
#include "engine/engine_state.h"
#include "engine/event_wait.h"
#include "engine/manual_progress.h"
#include "await.h"
#include "engine_link.h"
#include "../../lib/emulated.h"

#define MESSAGES 2000

static struct engine_link fixture;
static struct link_qp a, b;
static struct engine *e, *eb;
static struct event_queue channel;
static uint32_t asleep, peer_asleep, published, woken;
static unsigned wakes;

static void
count_wake(void *arg)
{
	(void)arg;
	__atomic_fetch_add(&wakes, 1, __ATOMIC_RELAXED);
}

static uint32_t partner_word; /* a partner changes it when it has published packets */
static uint32_t asleep_told;  /* what partners were shown of `asleep` last */

static unsigned
partner_words(void *arg, struct futex_word *words, unsigned max)
{
	(void)arg;
	if (max != FUTEX_WORDS_MAX - 2)
		return 0;
	words[0] = futex_word(
		&partner_word, __atomic_load_n(&partner_word, __ATOMIC_RELAXED), false);
	return 1;
}

static void
asleep_show(void *arg)
{
	(void)arg;
	__atomic_store_n(&asleep_told, __atomic_load_n(&asleep, __ATOMIC_RELAXED),
		__ATOMIC_RELAXED);
}

static const struct engine_progress_thread progress_thread = {.wake = count_wake,
	.asleep = &asleep,
	.published = &published,
	.asleep_shown = asleep_show,
	.more_published = partner_words};

static const struct engine_progress_thread peer_thread = {
	.wake = count_wake, .asleep = &peer_asleep};

/* Both ends take what is under way until the message has completed. */
static void
message_finish(uint64_t wr_id)
{
	do {
		engine_try_pass(e);
		engine_try_pass(eb);
	} while (engine_link_deliver(&fixture) != 0);
	link_qp_expect_message(&b, &a, wr_id);
}

static int
setup(void **state)
{
	static const struct link_qp_conf plain = {.wr = 64, .no_timeout = true};

	engine_link_init(&fixture, NULL);
	link_qp_create(&fixture.a, &a, &plain);
	link_qp_create(&fixture.b, &b, &plain);
	link_qp_connect(&a, &b, &plain);
	e = fixture.a.dev->engines[0];
	eb = fixture.b.dev->engines[0];
	engine_set_progress_thread(e, &progress_thread);
	engine_set_progress_thread(eb, &peer_thread);
	link_qp_message(&b, &a, 1); /* resolves the neighbours */
	message_finish(1);
	assert_int_equal(event_queue_init(&channel), 0);
	cq_set_channel(&a.recv_cq, &channel, &a.recv_cq);
	asleep = published = woken = wakes = partner_word = asleep_told = 0;
	return 0;
}

static int
teardown(void **state)
{
	assert_false(e->has_waiter);
	event_purge(&a.recv_cq.comp_event);
	cq_set_channel(&a.recv_cq, NULL, NULL);
	event_queue_fini(&channel);
	link_qp_destroy(&a);
	link_qp_destroy(&b);
	engine_link_fini(&fixture);
	return 0;
}

static bool
readable(void)
{
	struct pollfd p = {.fd = channel.fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

struct waiter {
	pthread_t thread;
	pid_t tid;
	struct event_record record;
	int rc;
};

static void *
waiter_main(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->rc = engine_event_wait(e, &channel, &w->record);
	return NULL;
}

static bool
waiter_says_it_sleeps(void)
{
	bool said;

	rte_spinlock_lock(&channel.lock);
	said = channel.taker != NULL && channel.taker->asleep;
	rte_spinlock_unlock(&channel.lock);
	return said;
}

static void
waiter_start(struct waiter *w)
{
	memset(w, 0, sizeof(*w));
	assert_int_equal(pthread_create(&w->thread, NULL, waiter_main, w), 0);
	await(waiter_says_it_sleeps());
	await(thread_sleeps(__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE)));
}

static void
waiter_expect(struct waiter *w, int rc)
{
	await(pthread_tryjoin_np(w->thread, NULL) == 0);
	assert_int_equal(w->rc, rc);
	if (rc == 0)
		assert_ptr_equal(w->record.object, &a.recv_cq);
	assert_null(channel.taker);
}

/* Peer B sends a message, whose frames it puts into the port of A. */
static void
message_put(uint64_t wr_id)
{
	engine_lock(e);
	assert_int_equal(link_qp_send(&b, wr_id, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_try_pass(eb);
	engine_link_deliver(&fixture);
	engine_lock_release(e);
}

static void
message_publish(uint64_t wr_id)
{
	message_put(wr_id);
	__atomic_store_n(&published, published + 1, __ATOMIC_RELEASE);
}

/* Returns whether this end has to be woken by the futex; false: by its descriptor. */
static bool
expect_woken_by_futex(void)
{
	assert_true(asleep_wake_wanted(&asleep, &woken));
	return asleep_by_futex(woken);
}

TEST_WITH(waiter_makes_its_event, setup, teardown)
{
	struct waiter w;

	SKIP_IF_EMULATED();
	cq_arm(&a.recv_cq, false);
	assert_int_equal(link_qp_recv(&a, 2, 0, 8), 0);
	waiter_start(&w);
	message_publish(2);
	assert_true(expect_woken_by_futex());
	futex_wake(&published, true);
	waiter_expect(&w, 0);
	assert_false(readable());
	assert_int_equal(e->stats.events_waited, 1);
	assert_int_equal(e->stats.events_waited_missed, 0);
	/* From now on the progress thread is to be woken. */
	assert_false(expect_woken_by_futex());
	message_finish(2);
}

/* A partner sees how this end sleeps, and changes a word of its own. */
TEST_WITH(waiter_is_woken_by_a_partner, setup, teardown)
{
	struct waiter w;

	SKIP_IF_EMULATED();
	cq_arm(&a.recv_cq, false);
	assert_int_equal(link_qp_recv(&a, 2, 0, 8), 0);
	waiter_start(&w);
	assert_true(asleep_is_set_by_futex(&asleep_told));
	message_put(2);
	__atomic_store_n(&partner_word, 1, __ATOMIC_RELEASE);
	futex_wake(&partner_word, false);
	waiter_expect(&w, 0);
	assert_int_equal(published, 0);
	assert_true(asleep_is_set(&asleep_told));
	assert_false(asleep_is_set_by_futex(&asleep_told));
	engine_progress(e);
	message_finish(2);
}

/* The progress thread wakes, and clears the flag only if it is its own. */
TEST_WITH(progress_thread_leaves_the_waiters_flag, setup, teardown)
{
	uint32_t number = engine_asleep_set(&progress_thread, 0);

	assert_true(asleep_is_set(&asleep_told));
	engine_asleep_leave(&progress_thread, number);
	assert_false(asleep_is_set(&asleep));
	assert_false(asleep_is_set(&asleep_told));
	number = engine_asleep_set(&progress_thread, 0);
	engine_asleep_set(&progress_thread, ASLEEP_FUTEX);
	engine_asleep_leave(&progress_thread, number);
	assert_true(asleep_is_set_by_futex(&asleep));
	assert_true(asleep_is_set_by_futex(&asleep_told));
}

/* Packets that were published before the wait. */
TEST_WITH(packets_before_the_sleep_are_taken, setup, teardown)
{
	struct waiter w;

	SKIP_IF_EMULATED();
	assert_int_equal(link_qp_recv(&a, 2, 0, 8), 0);
	cq_arm(&a.recv_cq, false);
	message_publish(2);
	assert_int_equal(pthread_create(&w.thread, NULL, waiter_main, &w), 0);
	waiter_expect(&w, 0);
	assert_false(expect_woken_by_futex());
	message_finish(2);
}

TEST_WITH(event_of_another_thread_wakes_the_waiter, setup, teardown)
{
	struct waiter w;

	SKIP_IF_EMULATED();
	waiter_start(&w);
	event_raise(&a.recv_cq.comp_event, 0);
	waiter_expect(&w, 0);
	assert_false(readable());
}

/* All events but the first are for the next calls, and for poll(2). */
TEST_WITH(further_events_are_counted, setup, teardown)
{
	struct event_record record;
	struct waiter w;

	SKIP_IF_EMULATED();
	waiter_start(&w);
	rte_spinlock_lock(&channel.lock);
	channel.taker->asleep = false; /* it does not wake for these */
	rte_spinlock_unlock(&channel.lock);
	for (unsigned i = 0; i < 3; i++)
		event_raise(&a.recv_cq.comp_event, 0);
	assert_false(readable());
	__atomic_store_n(&published, published + 1, __ATOMIC_RELEASE);
	assert_true(expect_woken_by_futex());
	futex_wake(&published, true);
	waiter_expect(&w, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(readable());
		assert_int_equal(event_next(&channel, &record), 0);
	}
	assert_false(readable());
}

static void
on_signal(int number)
{
	(void)number;
}

TEST_WITH(signal_ends_the_wait, setup, teardown)
{
	struct sigaction restart = {.sa_handler = on_signal, .sa_flags = SA_RESTART},
			 plain = {.sa_handler = on_signal}, old;
	struct waiter w;

	SKIP_IF_EMULATED();
	assert_int_equal(sigaction(SIGUSR1, &restart, &old), 0);
	waiter_start(&w);
	for (unsigned i = 0; i < 20; i++) {
		pthread_kill(w.thread, SIGUSR1);
		/* The signal has ended its sleep: it sleeps anew. */
		await(thread_sleeps(w.tid));
	}
	assert_int_equal(pthread_tryjoin_np(w.thread, NULL), EBUSY);
	assert_int_equal(sigaction(SIGUSR1, &plain, NULL), 0);
	pthread_kill(w.thread, SIGUSR1);
	waiter_expect(&w, -EINTR);
	assert_int_equal(e->stats.events_waited_missed, 1);
	assert_false(expect_woken_by_futex());
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

TEST_WITH(cancelled_waiter_leaves_all_in_order, setup, teardown)
{
	struct waiter w;
	void *rc;

	SKIP_IF_EMULATED();
	waiter_start(&w);
	assert_int_equal(pthread_cancel(w.thread), 0);
	assert_int_equal(pthread_join(w.thread, &rc), 0);
	assert_ptr_equal(rc, PTHREAD_CANCELED);
	assert_null(channel.taker);
	assert_false(e->has_waiter);
	assert_false(expect_woken_by_futex());
	event_raise(&a.recv_cq.comp_event, 0);
	assert_true(readable());
}

/* Another queue, a second waiter, O_NONBLOCK, events that wait, no progress thread: the
 * caller reads the descriptor. */
TEST_WITH(others_do_not_wait_here, setup, teardown)
{
	struct event_queue other;
	struct event_record record;
	struct waiter w;

	assert_int_equal(event_queue_init(&other), 0);
	event_raise(&a.recv_cq.comp_event, 0);
	assert_int_equal(engine_event_wait(e, &channel, &record), -EAGAIN);
	assert_int_equal(event_next(&channel, &record), 0);
	assert_int_equal(fcntl(channel.fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
	assert_int_equal(engine_event_wait(e, &channel, &record), -EAGAIN);
	assert_int_equal(fcntl(channel.fd, F_SETFL, O_RDWR), 0);
	e->event_wait_off = true; /* ROCADE_OFF=event-wait */
	channel.unwaited = 0;
	assert_int_equal(engine_event_wait(e, &channel, &record), -EAGAIN);
	assert_true(event_is_slept_for(&channel));
	e->event_wait_off = false;
	engine_set_progress_thread(e, NULL);
	assert_int_equal(engine_event_wait(e, &channel, &record), -EAGAIN);
	engine_set_progress_thread(e, &progress_thread);
	if (!emulated()) {
		waiter_start(&w);
		assert_false(event_is_slept_for(&channel));
		other.unwaited = 0; /* its thread was the waiter before */
		assert_int_equal(engine_event_wait(e, &other, &record), -EAGAIN);
		assert_true(event_is_slept_for(&other));
		assert_int_equal(engine_event_wait(e, &channel, &record), -EAGAIN);
		event_raise(&a.recv_cq.comp_event, 0);
		waiter_expect(&w, 0);
	}
	assert_int_equal(e->stats.events_waited_missed, 0);
	event_queue_fini(&other);
}

/* ---- Another process publishes messages, and wakes as the daemon does ---- */

static uint32_t taken;

static void *
consumer_main(void *arg)
{
	struct event_record record;
	struct cqe cqe;

	(void)arg;
	for (uint64_t n = 0; n < MESSAGES; n++) {
		int rc = engine_event_wait(e, &channel, &record);

		if (rc == -EAGAIN)
			rc = event_next(&channel, &record);
		if (rc != 0 || !link_qp_poll_recv(&a, &cqe) || cqe.wr_id != n + 2)
			return (void *)1;
		cq_arm(&a.recv_cq, false);
		__atomic_store_n(&taken, (uint32_t)n + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

TEST_WITH(no_wake_up_is_lost, setup, teardown)
{
	pthread_t thread;
	struct cqe cqe;
	void *rc;

	SKIP_IF_EMULATED();
	taken = 0;
	cq_arm(&a.recv_cq, false);
	assert_int_equal(link_qp_recv(&a, 2, 0, 8), 0);
	assert_int_equal(pthread_create(&thread, NULL, consumer_main, NULL), 0);
	for (uint64_t n = 0; n < MESSAGES; n++) {
		message_publish(n + 2);
		if (asleep_wake_wanted(&asleep, &woken) && asleep_by_futex(woken))
			futex_wake(&published, true);
		else /* plays the progress thread */
			engine_request_pass(e);
		await(__atomic_load_n(&taken, __ATOMIC_ACQUIRE) == n + 1);
		assert_int_equal(link_qp_recv(&a, n + 3, 0, 8), 0);
		engine_lock(e);
		engine_link_deliver(&fixture);
		engine_try_pass(eb);
		engine_lock_release(e);
		assert_true(link_qp_poll_send(&b, &cqe));
		assert_int_equal(cqe.wr_id, n + 2);
	}
	assert_int_equal(pthread_join(thread, &rc), 0);
	assert_null(rc);
	assert_true(e->stats.events_waited != 0);
}
