/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * With manual progress, a thread that waits for a completion event does the work of the
 * progress thread meanwhile: the other end of the port wakes this thread, which runs the
 * pass and returns with the event. One thread of a device does so at a time, the waiter.
 * The progress thread sleeps on: it runs timers, and takes over when the waiter leaves.
 */
#ifndef ROCADE_ENGINE_EVENT_WAIT_H
#define ROCADE_ENGINE_EVENT_WAIT_H

#include "engine/engine.h"
#include "queue/event_queue.h"

/* Waits for an event of the queue, whose CQs are the engine's. Returns 0; -EINTR as
 * event_next(); or -EAGAIN: the caller cannot be the waiter and is to call event_next(). A
 * cancellation point. */
int engine_event_wait(
	struct engine *e, struct event_queue *q, struct event_record *record);
#endif
