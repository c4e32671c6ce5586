/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Manual progress: an engine without a poll loop. The threads that poll CQs or post run
 * its passes, and a progress thread does when the application does neither. Only control
 * calls wait for the engine lock. A thread that finds it taken leaves a doorbell or a
 * request for a pass, and the holder looks for these after it has released the lock.
 */
#ifndef ROCADE_ENGINE_MANUAL_PROGRESS_H
#define ROCADE_ENGINE_MANUAL_PROGRESS_H

#include "base/asleep.h"
#include "base/futex.h"
#include "engine/engine.h"

/* Posts send without a pass if the last pass is less than this ago: a thread that never polls
 * receives, too. */
#define TRY_TX_NS (10 * NS_PER_US)

struct engine_progress_thread {
	/* Wakes the progress thread: a timer is due before the end of its sleep. */
	void (*wake)(void *arg);
	void *arg;
	/* Set by the progress thread for the other end of the port: it sleeps, and has to
	 * be woken for a packet (base/asleep.h). Cleared when the application polls. */
	uint32_t *asleep;
	/* Changes when the other end of the port has published packets: a thread can sleep on
	 * it as a futex (event_wait.h). NULL: there is none. */
	const uint32_t *published;
	/* Called after *asleep was set, before the port is looked at once more, and after it was
	 * cleared: the driver shows it to others that may wake this process. May be NULL. */
	void (*asleep_shown)(void *arg);
	/* The application polls again, so that others need not wake this process. May be NULL. */
	void (*relieved)(void *arg);
	/* Fills in further words that change when others have published packets. Returns how many,
	 * up to max. May be NULL. */
	unsigned (*more_published)(void *arg, struct futex_word *words, unsigned max);
};

/* Sets *asleep, as asleep_set_how(), and shows it. */
static inline uint32_t
engine_asleep_set(const struct engine_progress_thread *t, uint32_t how)
{
	uint32_t number = asleep_set_how(t->asleep, how);

	if (t->asleep_shown != NULL)
		t->asleep_shown(t->arg);
	return number;
}

/* The thread that has set this number is awake, or the application that had it set: clears the flag, but leaves that
 * of a thread that has set it since: one that waits for an event (event_wait.h), or has armed a CQ and is about to
 * sleep. */
static inline void
engine_asleep_leave(const struct engine_progress_thread *t, uint32_t number)
{
	if (asleep_clear_number(t->asleep, number) && t->asleep_shown != NULL)
		t->asleep_shown(t->arg);
}

/* Switches the engine to manual progress for good; NULL: ends that. With the engine lock
 * held, or before other threads know the engine. */
void engine_set_progress_thread(
	struct engine *e, const struct engine_progress_thread *progress_thread);
bool engine_is_manual(const struct engine *e);
/* Returns whether the threads that use the core of the polling thread offer it to each other. */
bool engine_runs_in_turns(const struct engine *e);

/* Runs a pass if the lock is free. Otherwise its holder runs one for what the caller
 * posted. Returns the packets moved. */
unsigned engine_try_pass(struct engine *e);

/* For a post: sends the QP's requests without a pass, if one has looked for packets less than
 * TRY_TX_NS ago. Returns false, and sends none of them, if another thread holds the lock, as
 * engine_tx_qp(), or if something else is to be sent: the caller rings the doorbell and runs a pass. */
bool engine_try_tx(struct engine *e, struct qp *qp);

/* As engine_try_pass(), and if the lock is taken, its holder runs one more pass. */
unsigned engine_request_pass(struct engine *e);

/* As engine_request_pass(). events: how many completions of received packets have raised. */
unsigned engine_look(struct engine *e, uint32_t *events);
/* Counts such events of the progress thread that no wake-up has announced. */
void engine_events_late(struct engine *e, uint32_t events);
/* Returns whether a CQ is armed for a program that sleeps on a descriptor, or may be about to: since the last arming
 * it has polled too little to count as awake. */
bool engine_event_is_awaited(const struct engine *e);

/* A thread is about to sleep: runs passes until one has taken less than a full burst. A sender that is as
 * fast as this engine cannot keep the thread: after TAKE_PASSES of them the progress thread goes on. */
void engine_take_all(struct engine *e);

/* The application polled and found nothing: runs a pass, and records that the application
 * is awake. */
void engine_progress(struct engine *e);

/* The application goes to sleep until an event: the progress thread takes over at
 * once. */
void engine_delegate(struct engine *e);
/* Around the arming of a CQ and engine_delegate(): an event that is raised meanwhile is not late, although the flag
 * may not be set yet. */
void engine_arm_begin(struct engine *e);
void engine_arm_end(struct engine *e);
bool engine_is_arming(const struct engine *e);

/* For the progress thread. It has found packets that an application that polls did not take: for a while
 * it has to be woken for packets, whether the application polls or not (delegation.h). */
void engine_keep_delegated(struct engine *e, uint64_t now);
/* It has taken packets. */
void engine_thread_moved(struct engine *e);
/* Returns whether it has to be woken, as above. */
bool engine_is_delegated(const struct engine *e, uint64_t now);

/* For the progress thread: whether acknowledgements may wait for the answer (delayed_ack.h) or for more
 * packets (ack_coalesce.h), because it runs, or will look before long whether the application polls. To
 * forbid that takes the engine lock. */
void engine_allow_delayed_acks(struct engine *e, bool allow);
/* Whether answers, or further packets, are so prompt that acknowledgements wait for them. */
bool engine_delays_acks(const struct engine *e);
/* An acknowledgement waits now: the progress thread may not sleep. */
bool engine_ack_is_delayed(const struct engine *e);

/* For the progress thread: the number of engine_progress() calls so far, and the time
 * until which it may sleep, in nanoseconds. 0: it must not sleep; TIME_NEVER: until it is
 * woken. */
uint32_t engine_progress_calls(const struct engine *e);
uint64_t engine_sleep_until(struct engine *e);

#endif
