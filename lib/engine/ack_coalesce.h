/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Coalesced acknowledgements of a stream. A peer that posts one request at a time asks for an
 * acknowledgement of each, and its packets come one in a pass. To build an acknowledgement, and for the
 * peer to process it, takes as long as the packet itself. So while the stream is on (stream.h), the
 * acknowledgement waits for more packets, COALESCE_PACKETS at most, because a later one covers those
 * before it (IBA 9.7.5.1.2): for COALESCE_WAIT_NS at most, and only while there is no gap. A QP that
 * sends requests itself has no stream: its acknowledgements leave in the burst of a request.
 *
 * With manual progress acknowledgements wait only while a thread polls, and the progress thread looks in
 * time whether the application still does (engine_allow_delayed_acks()). Where the threads of a core
 * offer it to each other, none wait: the next pass may come a time slice later.
 *
 * All functions are called with the engine lock held, except where they say otherwise.
 */
#ifndef ROCADE_ENGINE_ACK_COALESCE_H
#define ROCADE_ENGINE_ACK_COALESCE_H

#include "base/asleep.h"
#include "engine/delayed_ack.h"
#include "engine/manual_progress.h"

#define COALESCE_PACKETS 16
#define COALESCE_WAIT_NS (4 * NS_PER_US)

/* Without the engine lock, too. */
static inline bool
ack_coalesce_waits(const struct engine *e)
{
	return __atomic_load_n(&e->ack_coalesce.qp, __ATOMIC_RELAXED) != NULL;
}

/* Without the engine lock, too: whether acknowledgements wait as a rule. */
static inline bool
ack_coalesce_is_on(const struct engine *e)
{
	return __atomic_load_n(&e->ack_coalesce.stream.is_on, __ATOMIC_RELAXED);
}

static inline void
ack_coalesce_set(struct ack_coalesce *c, struct qp *qp)
{
	__atomic_store_n(&c->qp, qp, __ATOMIC_RELAXED);
}

/* The QP that has waited sends in this pass. */
static inline void
ack_coalesce_end(struct engine *e)
{
	engine_ready(e, e->ack_coalesce.qp);
	ack_coalesce_set(&e->ack_coalesce, NULL);
}

static inline bool
ack_coalesce_is_allowed(const struct engine *e)
{
	return e->progress_thread == NULL ||
	       (delayed_ack_is_manual(e) && !asleep_is_set(e->progress_thread->asleep) &&
		       !idle_polls_in_turns(&e->idle));
}

/* Returns whether the first ready QP is the only one, and is to send an acknowledgement and nothing
 * else. */
static inline bool
ack_coalesce_is_plain(const struct qp *qp)
{
	return TAILQ_NEXT(qp, sched.ready_link) == NULL &&
	       qp->aeth_pending == AETH_PENDING_ACK && !qp->resp_due &&
	       qp->req.next_idx == sq_posted(&qp->sq);
}

/* A pass has received this many packets. The QP is ready to acknowledge them, and only that. */
static inline void
ack_coalesce_received(struct engine *e, struct qp *qp, unsigned moved, uint64_t now)
{
	struct ack_coalesce *c = &e->ack_coalesce;

	if (qp->req.next_idx != c->next_idx)
		stream_count(&c->stream, NULL, 0);
	c->next_idx = qp->req.next_idx;
	if (!stream_go_on(&c->stream, qp, moved, now) || !ack_coalesce_is_allowed(e)) {
		ack_coalesce_set(c, NULL);
		return;
	}
	if (c->qp == NULL) {
		c->since_ns = now;
		c->packets = 0;
	}
	c->packets += moved;
	if (c->packets >= COALESCE_PACKETS || now - c->since_ns >= COALESCE_WAIT_NS) {
		stream_succeeded(&c->stream);
		ack_coalesce_set(c, NULL);
		return;
	}
	engine_unready(e, qp);
	ack_coalesce_set(c, qp);
	e->stats.ack_coalesced++;
}

/* Returns whether the acknowledgement goes on to wait, although the pass has received nothing. */
static inline bool
ack_coalesce_goes_on(const struct engine *e, uint64_t now)
{
	const struct ack_coalesce *c = &e->ack_coalesce;

	return c->stream.is_on && now - c->since_ns < COALESCE_WAIT_NS &&
	       ack_coalesce_is_allowed(e);
}

/* In a pass, behind the packets that have come and the requests that were posted. none_ready: no QP was
 * ready when the pass began. */
static inline void
ack_coalesce_look(struct engine *e, unsigned moved, bool none_ready, uint64_t now)
{
	struct ack_coalesce *c = &e->ack_coalesce;
	struct qp *qp = TAILQ_FIRST(&e->ready);

	if (c->qp != NULL && stream_has_gap(&c->stream, now)) {
		stream_failed(&c->stream, now);
		e->stats.ack_coalesced_missed++;
	}
	if (c->qp != NULL && !c->qp->sched.on_ready) {
		if (qp != NULL || moved != 0 || !ack_coalesce_goes_on(e, now))
			ack_coalesce_end(e);
	} else if (moved != 0 && none_ready && qp != NULL && ack_coalesce_is_plain(qp)) {
		ack_coalesce_received(e, qp, moved, now);
	} else {
		ack_coalesce_set(c, NULL); /* the QP is ready, and sends more */
	}
}

#endif
