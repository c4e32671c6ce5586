/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <sched.h>

#include "base/asleep.h"
#include "engine/ack_coalesce.h"
#include "engine/clock.h"
#include "engine/delayed_ack.h"
#include "engine/engine_lock.h"
#include "engine/manual_progress.h"
#include "engine/mr_fault.h"
#include "engine/pass.h"

#define PASSES_MAX 4 /* in a row, under one lock */
/* before a thread that is about to sleep leaves the rest to the progress thread */
#define TAKE_PASSES 64
/* empty polls after ibv_req_notify_cq() before the application counts as awake */
#define DELEGATED_POLLS 16

void
engine_set_progress_thread(
	struct engine *e, const struct engine_progress_thread *progress_thread)
{
	e->progress_thread = progress_thread;
	e->earliest_ns = TIME_NEVER;
	e->times.before_ns = 0; /* posts run passes */
	__atomic_store_n(&e->delayed_ack.manual, false, __ATOMIC_RELAXED);
	__atomic_store_n(&e->dev->cq_moderator.counts, e->progress_thread != NULL,
		__ATOMIC_RELAXED);
}

bool
engine_is_manual(const struct engine *e)
{
	return e->progress_thread != NULL;
}

bool
engine_runs_in_turns(const struct engine *e)
{
	return idle_polls_in_turns(&e->idle);
}

/* True if another thread rang a doorbell, or asked for a pass, while the lock was
 * taken. */
static bool
pass_is_requested(struct engine *e)
{
	return doorbells_pending(&e->doorbells) ||
	       __atomic_load_n(&e->pass_requested, __ATOMIC_RELAXED);
}

/* True if there is more to send now. With the engine lock held. */
static bool
has_more_to_send(const struct engine *e)
{
	return !TAILQ_EMPTY(&e->ready) || e->io.backlog_count != 0;
}

/* True if the progress thread sleeps past the next deadline, and the caller has to wake
 * it. With the engine lock held. */
static bool
progress_thread_oversleeps(struct engine *e)
{
	if (unlikely(has_more_to_send(e)))
		e->earliest_ns = 0;
	if (likely(e->earliest_ns >= e->sleep_until_ns))
		return false;
	e->sleep_until_ns = 0;
	return true;
}

/* With the engine lock held, before a pass. Pairs with the fence in pass_request(): this
 * pass sees what the thread that asked had seen, or that thread's request stays. A store would
 * not do: it can become visible after the loads of the pass, and so delete a request that the
 * pass came too early for. */
static void
request_clear(struct engine *e)
{
	if (__atomic_load_n(&e->pass_requested, __ATOMIC_RELAXED))
		(void)__atomic_exchange_n(&e->pass_requested, false, __ATOMIC_ACQ_REL);
}

/* Releases the engine lock. Returns whether another thread asked for a pass meanwhile. */
static bool
pass_end(struct engine *e, const struct engine_progress_thread *progress_thread)
{
	bool wake = progress_thread_oversleeps(e);

	engine_lock_release(e);
	if (unlikely(wake))
		progress_thread->wake(progress_thread->arg);
	/* Pairs with the fences in engine_doorbell() and pass_request(): either a
	 * thread that rings a doorbell or asks for a pass finds the lock free, or the request
	 * is seen here. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return pass_is_requested(e);
}

/* With the engine lock held. Returns the packets moved. */
static unsigned
passes_run(struct engine *e)
{
	unsigned moved = 0, passes = 0;

	request_clear(e);
	do {
		moved += engine_pass(e, clock_now());
	} while (unlikely(has_more_to_send(e)) && ++passes < PASSES_MAX);
	return moved;
}

/* With the engine lock held. Adds the events that completions of received packets have raised. */
static unsigned
passes_watch(struct engine *e, uint32_t *events)
{
	const struct cq_moderator *m = &e->dev->cq_moderator;
	uint32_t raised = cq_moderator_raised(m);
	uint64_t packets = e->stats.rx_packets;
	unsigned moved = passes_run(e);

	if (e->stats.rx_packets != packets)
		*events += cq_moderator_raised(m) - raised;
	return moved;
}

/* As engine_try_pass(). events: as in passes_watch(), or NULL. */
static inline unsigned
try_pass(struct engine *e, uint32_t *events)
{
	const struct engine_progress_thread *progress_thread;
	unsigned moved = 0;

	do {
		if (!engine_trylock(e))
			return moved;
		progress_thread = e->progress_thread;
		if (unlikely(progress_thread == NULL)) {
			engine_lock_release(e);
			return moved;
		}
		moved += unlikely(events != NULL) ? passes_watch(e, events)
						  : passes_run(e);
	} while (unlikely(pass_end(e, progress_thread)));
	return moved;
}

unsigned
engine_try_pass(struct engine *e)
{
	return try_pass(e, NULL);
}

/* With the engine lock held. A delayed acknowledgement leaves with this answer, in a pass. */
static bool
try_tx_locked(struct engine *e, struct qp *qp)
{
	uint64_t now;
	bool sent;

	if (e->progress_thread == NULL || !e->tx_from_post || qp_engine_now(qp) != e ||
		!TAILQ_EMPTY(&e->ready) || e->delayed_ack.qp != NULL)
		return false;
	now = clock_now();
	if (now - RTE_MIN(now, e->shared.polled_ns) >= TRY_TX_NS)
		return false;
	mr_fault_enter(&e->dev->keys);
	/* Another thread may have run a pass with a later time. */
	e->shared.now = RTE_MAX(now, e->shared.now);
	sent = engine_tx_qp(e, qp, e->shared.now);
	mr_fault_leave();
	return sent;
}

bool
engine_try_tx(struct engine *e, struct qp *qp)
{
	if (!engine_trylock(e))
		return false;
	if (!try_tx_locked(e, qp)) {
		e->stats.tx_from_post_missed++;
		engine_lock_release(e);
		return false;
	}
	e->stats.tx_from_post++;
	/* A pass knows when the windows open for which QPs wait, and when the events of
	 * requests that are complete already are due. */
	if (unlikely(has_more_to_send(e) || !TAILQ_EMPTY(&e->peers.blocked) ||
		     cq_moderator_due(&e->dev->cq_moderator) <= e->shared.now))
		(void)passes_run(e);
	if (unlikely(pass_end(e, e->progress_thread)))
		(void)engine_try_pass(e);
	return true;
}

static void
pass_request(struct engine *e)
{
	__atomic_store_n(&e->pass_requested, true, __ATOMIC_RELAXED);
	/* Pairs with the fence in pass_end() and with the exchange in request_clear(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

unsigned
engine_request_pass(struct engine *e)
{
	pass_request(e);
	return try_pass(e, NULL);
}

unsigned
engine_look(struct engine *e, uint32_t *events)
{
	*events = 0;
	pass_request(e);
	return try_pass(e, events);
}

void
engine_events_late(struct engine *e, uint32_t events)
{
	engine_stat_add(&e->stats.events_late, events);
}

void
engine_arm_begin(struct engine *e)
{
	/* Visible before the CQ is armed, which orders it (cq_arm()). */
	__atomic_fetch_add(&e->arming, 1, __ATOMIC_RELAXED);
}

void
engine_arm_end(struct engine *e)
{
	/* Pairs with the acquire in engine_is_arming(): the flag is set. */
	__atomic_fetch_sub(&e->arming, 1, __ATOMIC_RELEASE);
}

bool
engine_is_arming(const struct engine *e)
{
	/* Pairs with the release in engine_arm_end(). */
	return __atomic_load_n(&e->arming, __ATOMIC_ACQUIRE) != 0;
}

bool
engine_event_is_awaited(const struct engine *e)
{
	return cq_moderator_armed(&e->dev->cq_moderator) &&
	       __atomic_load_n(&e->delegated_polls, __ATOMIC_RELAXED) != 0;
}

void
engine_take_all(struct engine *e)
{
	const struct engine_progress_thread *t = e->progress_thread;

	for (unsigned n = 0; n < TAKE_PASSES; n++)
		if (engine_request_pass(e) < PKT_BURST)
			return;
	t->wake(t->arg);
}

static void RARE
core_offer(struct engine *e)
{
	uint64_t begin = clock_now();
	bool early = idle_polls_short(&e->idle), taken;

	sched_yield();
	taken = idle_polls_offered(&e->idle, clock_now() - begin);
	engine_stat_add(&e->stats.core_offers, 1);
	engine_stat_add(&e->stats.core_offers_early, early);
	engine_stat_add(&e->stats.core_offers_taken, taken);
}

/* The application has polled, and finds this number set. If it has polled enough since a CQ was armed, it polls in
 * place of the progress thread again. Other threads poll, and arm CQs, at the same time: an arming is neither
 * counted down from the value before it nor is its flag cleared. */
static void RARE
polls_count(struct engine *e, const struct engine_progress_thread *t, uint32_t number)
{
	uint32_t polls;

	/* Pairs with the release in asleep_set_how(): if the number is that of an arming, its polls are seen. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	polls = __atomic_load_n(&e->delegated_polls, __ATOMIC_RELAXED);
	if (polls != 0) {
		(void)__atomic_compare_exchange_n(&e->delegated_polls, &polls, polls - 1,
			false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		return;
	}
	engine_asleep_leave(t, number);
	if (t->relieved != NULL)
		t->relieved(t->arg);
}

void
engine_keep_delegated(struct engine *e, uint64_t now)
{
	delegation_begin(&e->delegation, now);
}

void
engine_thread_moved(struct engine *e)
{
	delegation_taken(&e->delegation);
}

bool
engine_is_delegated(const struct engine *e, uint64_t now)
{
	return delegation_holds(&e->delegation, now);
}

void
engine_progress(struct engine *e)
{
	const struct engine_progress_thread *progress_thread = e->progress_thread;
	uint32_t number;

	if (unlikely(progress_thread == NULL))
		return;
	if (engine_try_pass(e) != 0) {
		idle_polls_end(&e->idle);
		delegation_burst(&e->delegation);
	} else if (unlikely(idle_polls_offer(&e->idle))) {
		core_offer(e);
	}
	__atomic_store_n(&e->progress_calls, e->progress_calls + 1, __ATOMIC_RELAXED);
	number = __atomic_load_n(progress_thread->asleep, __ATOMIC_RELAXED);
	if (likely((number & 1) == 0))
		return;
	if (!engine_is_delegated(e, clock_now()))
		polls_count(e, progress_thread, number);
}

void
engine_delegate(struct engine *e)
{
	const struct engine_progress_thread *progress_thread = e->progress_thread;

	if (progress_thread == NULL)
		return;
	/* Before the number of the flag, whose release orders it (engine_event_is_awaited()). */
	__atomic_store_n(&e->delegated_polls, DELEGATED_POLLS, __ATOMIC_RELAXED);
	/* The application will not answer before it wakes. */
	engine_allow_delayed_acks(e, false);
	engine_asleep_set(progress_thread, 0);
	/* The other end of the port publishes a packet, fences, and reads *asleep. So the
	 * port is polled once more behind a fence here: either this poll finds the
	 * packet, or the other end finds *asleep set. If the lock is taken, its holder
	 * polls. */
	engine_take_all(e);
}

void
engine_allow_delayed_acks(struct engine *e, bool allow)
{
	bool delays = allow && e->tx_from_post;

	if (delays == delayed_ack_is_manual(e))
		return;
	if (!delays)
		engine_lock(e);
	__atomic_store_n(&e->delayed_ack.manual, delays, __ATOMIC_RELAXED);
	if (!delays)
		engine_lock_release(e);
}

bool
engine_delays_acks(const struct engine *e)
{
	return __atomic_load_n(&e->delayed_ack.answers, __ATOMIC_RELAXED) ==
		       DELAYED_ACK_ANSWERS ||
	       ack_coalesce_is_on(e);
}

bool
engine_ack_is_delayed(const struct engine *e)
{
	return __atomic_load_n(&e->delayed_ack.delayed, __ATOMIC_RELAXED) ||
	       ack_coalesce_waits(e);
}

uint32_t
engine_progress_calls(const struct engine *e)
{
	return __atomic_load_n(&e->progress_calls, __ATOMIC_RELAXED);
}

uint64_t
engine_sleep_until(struct engine *e)
{
	uint64_t when = engine_deadline(e);

	engine_lock(e);
	if (has_more_to_send(e) || engine_next_time(e) < when)
		when = 0; /* another thread polled meanwhile */
	e->sleep_until_ns = when;
	e->earliest_ns = TIME_NEVER;
	/* Not engine_unlock(), which would run a pass. */
	engine_lock_release(e);
	/* Pairs with the fences in engine_doorbell() and pass_request(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return pass_is_requested(e) ? 0 : when;
}
