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
 *
 * With manual progress a post that finds a delayed acknowledgement runs a pass. There only RDMA WRITEs
 * without immediate data are acknowledged late. No completion tells the application of them: it looks
 * at memory, and its engine runs only when a progress thread is woken, or while it polls for the
 * completion of its answer. If the
 * acknowledgement and the answer come together, the peer still polls when the answer comes, and no
 * thread need be woken, at neither end. The answer is later than one from a poll, because a progress
 * thread has written the bytes. If there is none, the next pass behind that time acknowledges: the
 * progress thread sees to it that there is one.
 *
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
/* With manual progress: the same, and how many of DELAYED_ACK_ANSWERS one answer counts for. Before
 * acknowledgements wait, an answer takes as long as it takes to wake progress threads: in an emulated
 * machine 30 to 200 us. */
#define DELAYED_ACK_MANUAL_NS (300 * NS_PER_US)
#define DELAYED_ACK_MANUAL_STEP 4

static inline void
delayed_ack_count(struct delayed_ack *d, unsigned answers)
{
	/* The progress thread reads it without the lock. */
	__atomic_store_n(&d->answers, (uint8_t)RTE_MIN(answers, DELAYED_ACK_ANSWERS + 0u),
		__ATOMIC_RELAXED);
}

/* There is such a QP: what was delayed will be sent. answers: how many count if this one did not come. */
static inline void
delayed_ack_end(struct engine *e, unsigned answers)
{
	struct delayed_ack *d = &e->delayed_ack;

	if (!d->answered)
		delayed_ack_count(d, answers);
	if (d->delayed) {
		engine_ready(e, d->qp);
		e->stats.ack_delayed_missed += !d->answered;
	}
	d->qp = NULL;
	__atomic_store_n(&d->delayed, false, __ATOMIC_RELAXED);
}

static inline bool
delayed_ack_is_manual(const struct engine *e)
{
	return __atomic_load_n(&e->delayed_ack.manual, __ATOMIC_RELAXED);
}

/* After a receive burst of at most DELAYED_ACK_BURST packets, in a pass that began with
 * no QP ready. Delays an acknowledgement or NAK if nothing else is to be sent. since_ns: as
 * delayed_ack_look() returned it, or the time of the pass. */
static inline void
delayed_ack_begin(struct engine *e, uint64_t since_ns)
{
	struct delayed_ack *d = &e->delayed_ack;
	struct qp *qp = TAILQ_FIRST(&e->ready);

	if (qp == NULL || TAILQ_NEXT(qp, sched.ready_link) != NULL ||
		qp->aeth_pending == 0 || qp->resp_due ||
		qp->req.next_idx != sq_posted(&qp->sq) ||
		(e->progress_thread != NULL &&
			!(qp->resp.plain_write && delayed_ack_is_manual(e))))
		return;
	d->qp = qp;
	d->since_ns = since_ns;
	d->answered = false;
	if (unlikely(d->answers == DELAYED_ACK_ANSWERS)) {
		engine_unready(e, qp);
		__atomic_store_n(&d->delayed, true, __ATOMIC_RELAXED);
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
		delayed_ack_count(d, d->answers + 1u);
}

/* Manual progress: in a pass behind the packets that have come and the requests that were posted. An
 * acknowledgement was delayed, or would have been. Returns since when the QP's next acknowledgement waits,
 * should this pass delay one: packets that come instead of the answer do not prolong the wait. */
static inline uint64_t
delayed_ack_look(struct engine *e, unsigned moved)
{
	struct delayed_ack *d = &e->delayed_ack;
	bool in_time = e->shared.now - d->since_ns < DELAYED_ACK_MANUAL_NS;
	bool posted = d->qp->req.next_idx != sq_posted(&d->qp->sq);
	uint64_t since_ns = in_time && d->delayed ? d->since_ns : e->shared.now;

	if (in_time && !posted && moved == 0 && (!d->delayed || delayed_ack_is_manual(e)))
		return since_ns;
	/* Packets that come before the answer are no fault of the application. */
	d->answered = in_time;
	if (in_time && posted)
		delayed_ack_count(d, d->answers + DELAYED_ACK_MANUAL_STEP);
	/* A thread that was preempted answers late now and then. */
	delayed_ack_end(e, d->answers / 2u);
	return since_ns;
}

#endif
