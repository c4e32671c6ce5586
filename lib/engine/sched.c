/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Which QPs of an engine have work: ready list, timers, doorbells. */
#include <rte_prefetch.h>

#include "engine/engine_wake.h"
#include "engine/sched.h"
#include "qp/window.h"

void
engine_timer_set(struct engine *e, struct qp *qp)
{
	uint64_t when = qp_deadline(qp);

	/* A timer is only moved to an earlier time. One that fires before the deadline is
	 * set again then. It is set for the time at which the wheel would first cascade
	 * it. Most deadlines have moved to a later time by then, so such timers never go
	 * through all levels of the wheel. */
	if (when < qp->sched.timer.when_ns) {
		when = wheel_cascade_time(&e->wheel, when);
		wheel_set(&e->wheel, &qp->sched.timer, when);
		e->earliest_ns = RTE_MIN(e->earliest_ns, when);
	}
}

void
engine_unready(struct engine *e, struct qp *qp)
{
	TAILQ_REMOVE(qp->sched.on_unresolved ? &e->unresolved : &e->ready, qp,
		sched.ready_link);
	qp->sched.on_ready = qp->sched.on_unresolved = false;
}

void
engine_ready(struct engine *e, struct qp *qp)
{
	if (qp->sched.on_ready)
		return;
	qp->sched.on_ready = true;
	TAILQ_INSERT_TAIL(&e->ready, qp, sched.ready_link);
}

void
engine_schedule_untimed(struct engine *e, struct qp *qp)
{
	if (qp->sched.on_ready) {
		if (likely(!qp->sched.on_unresolved || qp->state != IBV_QPS_ERR))
			return;
		engine_unready(e, qp); /* flushing needs no MAC */
	}
	if (!qp_wants_tx(qp))
		return;
	if (qp_window_blocked(qp) || qp_must_queue(qp))
		peer_block(&e->peers, qp, qp_next_window(qp));
	else
		engine_ready(e, qp);
}

void
engine_schedule(struct engine *e, struct qp *qp)
{
	engine_timer_set(e, qp);
	engine_schedule_untimed(e, qp);
}

/* Schedules a QP that was posted to. Rarely, its requests have been sent already. That is
 * tested only when the QP is served, which is the first time that all its cache lines are
 * needed. */
static inline void
doorbell_schedule(struct engine *e, struct qp *qp)
{
	if (likely(qp->state == IBV_QPS_RTS && !qp_peer_full(qp) &&
		    TAILQ_EMPTY(&e->peers.blocked)))
		engine_ready(e, qp);
	else
		engine_schedule_untimed(e, qp);
}

/* The thread that rang has seen the engine that the QP had before it moved. */
static void RARE
doorbell_pass_on(const struct qp *qp)
{
	struct engine *owner = qp_engine_now(qp);

	doorbells_ring(&owner->doorbells, qp->sq.doorbell);
	engine_wake_if_asleep(owner);
}

/* Schedules n QPs, except those that are on the ready list already. */
static void
posted_schedule(struct engine *e, struct qp **qps, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		if (qps[i]->sched.on_ready && !qps[i]->sched.on_unresolved)
			continue;
		rte_prefetch0(&qps[i]->sched.ready_link);
		qps[kept++] = qps[i];
	}
	for (unsigned i = 0; i < kept; i++)
		doorbell_schedule(e, qps[i]);
}

static void
posted_drain(struct engine *e)
{
	unsigned n = e->posted_count;

	e->posted_count = 0;
	posted_schedule(e, e->posted, n);
}

void
engine_posted_add(struct engine *e, struct qp *qp)
{
	if (e->posted_count != 0 && e->posted[e->posted_count - 1] == qp)
		return;
	if (unlikely(e->posted_count == ENGINE_POSTED))
		posted_drain(e);
	e->posted[e->posted_count++] = qp;
}

static void
doorbells_schedule(struct engine *e)
{
	uint32_t at = 0, indices[DOORBELLS_GROUP];
	struct qp *qps[DOORBELLS_GROUP];
	unsigned n;

	while ((n = doorbells_drain(&e->doorbells, &at, indices)) != 0) {
		unsigned kept = 0;

		for (unsigned i = 0; i < n; i++) {
			struct qp *qp = qp_table_at(&e->dev->qps, indices[i]);

			if (unlikely(qp == NULL))
				continue; /* destroyed */
			if (unlikely(qp_engine_now(qp) != e))
				doorbell_pass_on(qp);
			else
				qps[kept++] = qp;
		}
		posted_schedule(e, qps, kept);
	}
}

void
engine_doorbells_drain(struct engine *e)
{
	if (e->posted_count != 0)
		posted_drain(e);
	if (unlikely(doorbells_pending(&e->doorbells)))
		doorbells_schedule(e);
}
