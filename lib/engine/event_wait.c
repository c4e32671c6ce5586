/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <pthread.h>

#include "base/asleep.h"
#include "base/futex.h"
#include "base/usdt.h"
#include "engine/engine_state.h"
#include "engine/event_wait.h"
#include "engine/manual_progress.h"

/* A wait, for the handler of pthread_cancel(3). */
struct event_wait {
	struct engine *e;
	struct event_queue *q;
	/* That of the progress thread: it does not end while the device has a channel. */
	const struct engine_progress_thread *progress_thread;
	int cancel_state; /* of the application */
	struct futex_word words[FUTEX_WORDS_MAX];
};

static void
waiter_end(struct engine *e)
{
	/* Pairs with the acquire in waiter_begin(). */
	__atomic_store_n(&e->has_waiter, false, __ATOMIC_RELEASE);
}

static bool
waiter_begin(struct engine *e, struct event_queue *q)
{
	/* The exchange pairs with the release in waiter_end(), for e->taker. */
	if (__atomic_load_n(&e->event_wait_off, __ATOMIC_RELAXED) ||
		__atomic_exchange_n(&e->has_waiter, true, __ATOMIC_ACQUIRE)) {
		event_sleep_note(q);
		return false;
	}
	if (event_take_begin(q, &e->taker))
		return true;
	waiter_end(e);
	return false;
}

/* Tells the other end of the port how to wake this process, then looks for what it has
 * published before. */
static void
sleeper_change(const struct event_wait *w, uint32_t how)
{
	engine_asleep_set(w->progress_thread, how);
	engine_take_all(w->e);
}

/* Sleeps until a word changes, as a cancellation point: the only one, because a thread
 * cancelled in a pass would keep the engine lock. */
static int
words_await(const struct event_wait *w, unsigned count)
{
	int rc, type, ignored;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	pthread_setcancelstate(w->cancel_state, &ignored);
	rc = futex_wait_any(w->words, count);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ignored);
	pthread_setcanceltype(type, &ignored);
	return rc;
}

/* One sleep. Returns 0, or -errno of the wait, and whether there are events. */
static int
waiter_sleep(struct event_wait *w, bool *events)
{
	const struct engine_progress_thread *t = w->progress_thread;
	const uint32_t *published = t->published;
	struct futex_word *words = w->words;
	unsigned n = 1;
	uint32_t wakes;
	int rc = 0;

	/* Before the passes that take what was published up to here. */
	words[0] =
		futex_word(published, __atomic_load_n(published, __ATOMIC_RELAXED), true);
	if (t->more_published != NULL)
		n += t->more_published(t->arg, words + n, FUTEX_WORDS_MAX - 2);
	sleeper_change(w, ASLEEP_FUTEX);
	if (event_take_sleep(w->q, &wakes)) {
		words[n++] = futex_word(&w->e->taker.wakes, wakes, false);
		rc = words_await(w, n);
		USDT(wake_up, 1u, (uint32_t)(rc == 0));
		if (rc == 0)
			engine_woke(w->e);
		event_take_awake(w->q);
	}
	/* The progress thread takes over in time: the waiter may leave after this. */
	sleeper_change(w, 0);
	*events = event_take_ready(w->q);
	return rc;
}

/* Sleeps until there are events. Returns 0, or -errno of the wait. */
static int
waiter_run(struct event_wait *w)
{
	bool events = false;
	int rc = 0;

	while (rc == 0 && !events)
		rc = waiter_sleep(w, &events);
	return rc;
}

/* Of a thread that was cancelled. */
static void
event_wait_abandon(void *arg)
{
	const struct event_wait *w = arg;

	sleeper_change(w, 0);
	(void)event_take_end(w->q, NULL);
	waiter_end(w->e);
}

int
engine_event_wait(struct engine *e, struct event_queue *q, struct event_record *record)
{
	struct event_wait w;
	int rc, ignored;
	bool taken;

	w.e = e;
	w.q = q;
	w.progress_thread = e->progress_thread;
	if (w.progress_thread == NULL || w.progress_thread->published == NULL ||
		!waiter_begin(e, q))
		return -EAGAIN;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &w.cancel_state);
	pthread_cleanup_push(event_wait_abandon, &w);
	rc = waiter_run(&w);
	pthread_cleanup_pop(0);
	taken = event_take_end(q, record);
	waiter_end(e);
	pthread_setcancelstate(w.cancel_state, &ignored);
	engine_stat_add(
		taken ? &e->stats.events_waited : &e->stats.events_waited_missed, 1);
	if (taken)
		return 0;
	if (rc != 0 && rc != -EINTR) /* the system call is not offered */
		__atomic_store_n(&e->event_wait_off, true, __ATOMIC_RELAXED);
	return rc == -EINTR ? rc : -EAGAIN;
}
