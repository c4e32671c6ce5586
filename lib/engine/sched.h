/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Which QPs of an engine have work. The parts of a pass (pass.h) call these for the QPs
 * that they touch, and control calls for the QPs that they change. With the engine lock
 * held.
 */
#ifndef ROCADE_ENGINE_SCHED_H
#define ROCADE_ENGINE_SCHED_H

#include "engine/engine_state.h"

/* Sets the QP's timer. If the QP has something to send, puts it on the ready list, or
 * blocks it on the peer window. */
void engine_schedule(struct engine *e, struct qp *qp);
/* As engine_schedule(), but leaves the timer alone. */
void engine_schedule_untimed(struct engine *e, struct qp *qp);
/* For a QP that has only received a request. Most packets of a burst find it on the ready list,
 * or need no response. */
static inline void
engine_schedule_responder(struct engine *e, struct qp *qp)
{
	if (qp_has_response_pending(qp) &&
		(!qp->sched.on_ready || qp->sched.on_unresolved))
		engine_schedule_untimed(e, qp);
}
void engine_timer_set(struct engine *e, struct qp *qp);
/* Puts the QP on the ready list, unless it is on that or on the unresolved list. */
void engine_ready(struct engine *e, struct qp *qp);
/* Takes the QP off the ready list or the unresolved list, on which it is. */
void engine_unready(struct engine *e, struct qp *qp);
/* Schedules every QP that the owner has posted to, or whose doorbell is pending. */
void engine_doorbells_drain(struct engine *e);
/* For a post of the owner: the next pass schedules the QP. */
void engine_posted_add(struct engine *e, struct qp *qp);

#endif
