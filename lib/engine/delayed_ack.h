/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Delayed acknowledgements. An answer that a thread posts right after its poll is sent
 * from within the post (engine.c). The pass that received the request has sent the
 * acknowledgement by then, in a burst of its own: that delays the answer, and the peer has
 * to process the acknowledgement first. So after DELAYED_ACK_ANSWERS answers in time, one
 * after the other, the acknowledgement waits for the next pass, which comes after the
 * answer. When there was no answer, or a late one, the count begins anew: the
 * acknowledgements to an application that computes between two polls must not wait for it.
 * All functions are called with the engine lock held.
 */
#ifndef ROCADE_ENGINE_DELAYED_ACK_H
#define ROCADE_ENGINE_DELAYED_ACK_H

#include "engine/sched.h"

#define DELAYED_ACK_ANSWERS 32
#define DELAYED_ACK_BURST 2 /* a request, and the acknowledgement of the last answer */
/* An answer is in time if it is posted less than this after the start of the pass that
 * received the request. */
#define DELAYED_ACK_NS (4 * NS_PER_US)

/* At the start of a pass: what was delayed in the last one will be sent. */
static inline void
delayed_ack_end(struct engine *e)
{
	struct delayed_ack *d = &e->delayed_ack;

	if (likely(d->qp == NULL))
		return;
	if (!d->answered)
		d->answers = 0;
	if (d->delayed) {
		engine_ready(e, d->qp);
		e->stats.ack_delayed_missed += !d->answered;
	}
	d->qp = NULL;
	d->delayed = false;
}

/* After a receive burst of at most DELAYED_ACK_BURST packets, in a pass that began with
 * no QP ready. Delays an acknowledgement or NAK if nothing else is to be sent. */
static inline void
delayed_ack_begin(struct engine *e)
{
	struct delayed_ack *d = &e->delayed_ack;
	struct qp *qp = TAILQ_FIRST(&e->ready);

	if (qp == NULL || TAILQ_NEXT(qp, sched.ready_link) != NULL ||
		qp->aeth_pending == 0 || qp->resp_due ||
		qp->req.next_idx != sq_posted(&qp->sq))
		return;
	d->qp = qp;
	d->answered = false;
	if (unlikely(d->answers == DELAYED_ACK_ANSWERS)) {
		engine_unready(e, qp);
		d->delayed = true;
		e->stats.ack_delayed++;
	}
}

/* A post of the thread that ran the last pass, that many nanoseconds ago, was sent. */
static inline void
delayed_ack_answered(struct engine *e, const struct qp *qp, uint64_t ns)
{
	struct delayed_ack *d = &e->delayed_ack;

	if (d->qp != qp || ns >= DELAYED_ACK_NS)
		return; /* the next pass finds no answer */
	d->answered = true;
	if (d->answers < DELAYED_ACK_ANSWERS)
		d->answers++;
}

#endif
