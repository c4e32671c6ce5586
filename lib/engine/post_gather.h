/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Gathered requests of a stream. A program that posts one request before each poll makes each pass send
 * a burst of one packet. On most ports that takes several times as long as a packet of a longer burst:
 * the ring's index moves from core to core each time. So while the stream of posts is on (stream.h), a
 * pass leaves the requests to the next passes until GATHER_REQUESTS are posted, or until a pass finds no
 * further one. At least GATHER_IN_FLIGHT requests have to be in flight, so that the peer has something
 * to do meanwhile: a program that waits for each completion, or keeps few requests in flight, sends each
 * request at once.
 *
 * Only for engines with a poll loop: there a thread that posts polls again.
 *
 * All functions are called with the engine lock held.
 */
#ifndef ROCADE_ENGINE_POST_GATHER_H
#define ROCADE_ENGINE_POST_GATHER_H

#include "engine/sched.h"
#include "qp/qp_state.h"

#define GATHER_REQUESTS 16
#define GATHER_IN_FLIGHT 16

/* The QP that has waited sends in this pass. */
static inline void
post_gather_end(struct engine *e)
{
	struct qp *qp = e->post_gather.qp;

	e->post_gather.qp = NULL;
	engine_schedule_untimed(e, qp); /* the peer window may have filled */
}

/* The QP leaves the engine. Its requests are not sent any more. */
static inline void
post_gather_forget(struct engine *e, const struct qp *qp)
{
	stream_forget(&e->post_gather.stream, qp);
	if (e->post_gather.qp == qp)
		e->post_gather.qp = NULL;
}

/* Returns whether the first ready QP is the only one, and is to send requests and nothing else. */
static inline bool
post_gather_is_plain(const struct qp *qp)
{
	return TAILQ_NEXT(qp, sched.ready_link) == NULL && qp->state == IBV_QPS_RTS &&
	       !qp_has_response_pending(qp);
}

/* Counts the requests that are posted and not sent. Returns whether they are to wait. */
static inline bool
post_gather_waits(struct post_gather *g, const struct qp *qp, uint64_t now)
{
	uint32_t waited = g->qp != NULL ? g->unsent : 0;
	uint32_t unsent = sq_posted(&qp->sq) - qp->req.next_idx;

	g->unsent = unsent;
	if (unsent == waited) /* the pass has made it ready for another reason */
		return false;
	if (!stream_go_on(&g->stream, qp, unsent - waited, now))
		return false;
	if (unsent < GATHER_REQUESTS)
		return qp->req.next_idx - qp->req.una_idx >= GATHER_IN_FLIGHT;
	if (waited != 0)
		stream_succeeded(&g->stream);
	return false;
}

/* In a pass, behind the packets that have come and the requests that were posted. none_ready: no QP was
 * ready when the pass began. */
static inline void
post_gather_look(struct engine *e, bool none_ready, uint64_t now)
{
	struct post_gather *g = &e->post_gather;
	struct qp *qp = TAILQ_FIRST(&e->ready);

	if (g->qp != NULL && stream_has_gap(&g->stream, now)) {
		stream_failed(&g->stream, now);
		e->stats.posts_gathered_missed++;
	}
	if (g->qp != NULL && !g->qp->sched.on_ready) {
		post_gather_end(e);
		return;
	}
	if (!none_ready || qp == NULL || !post_gather_is_plain(qp) ||
		!post_gather_waits(g, qp, now)) {
		g->qp = NULL;
		return;
	}
	engine_unready(e, qp);
	g->qp = qp;
	e->stats.posts_gathered++;
}

#endif
