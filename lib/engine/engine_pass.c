/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* A pass of the poll loop, the engine lock that it takes, and when the next is due. */
#include "engine/ack_coalesce.h"
#include "engine/delayed_ack.h"
#include "engine/engine_lock.h"
#include "engine/mr_fault.h"
#include "engine/pass.h"
#include "engine/sched.h"
#include "qp/send_age.h"

#define FINAL_PASSES 4

static void
timer_fired(struct wheel_timer *timer, uint64_t now, void *arg)
{
	struct engine *e = arg;
	struct qp *qp = container_of(timer, struct qp, sched.timer);

	/* Each acknowledgement moves the deadline to a later time, but not the timer, so
	 * the timer may fire before the deadline. engine_schedule() sets it again. */
	if (qp_deadline(qp) <= now)
		qp_timeout(qp, now);
	send_age_timer(qp, now);
	engine_schedule(e, qp);
}

static void RARE
cq_events_raise(struct engine *e, uint64_t now)
{
	struct cq_moderator *m = &e->dev->cq_moderator;

	cq_moderator_run(m, now);
	e->earliest_ns = RTE_MIN(e->earliest_ns, cq_moderator_due(m));
}

/* Lets the ACK of a stream wait for more packets, or ends its wait. */
static __rte_noinline void
ack_stream_look(struct engine *e, unsigned moved, bool none_ready, uint64_t now)
{
	if (!e->ack_coalesce.off && (moved < COALESCE_PACKETS || ack_coalesce_waits(e)))
		ack_coalesce_look(e, moved, none_ready, now);
}

unsigned
engine_pass(struct engine *e, uint64_t now)
{
	uint64_t ack_since;
	unsigned moved;
	bool none_ready;

	mr_fault_enter(&e->dev->keys);
	/* engine_poll() reads the clock before it takes the engine lock. While it waits
	 * for the lock, another thread may run a pass with a later time. */
	if (unlikely(now < e->shared.now))
		now = e->shared.now;
	e->shared.now = now;
	e->times.pass_ns = now;
	if (unlikely(e->delayed_ack.qp != NULL) && e->progress_thread == NULL)
		delayed_ack_end(e, 0);
	none_ready = TAILQ_EMPTY(&e->ready);
	/* Receive first: the responses to what arrived now, and the requests that the
	 * application has posted in reply to what arrived in the last pass, leave in one
	 * burst. */
	moved = engine_rx(e, now);
	wheel_advance(&e->wheel, now, timer_fired, e);
	engine_doorbells_drain(e);
	if (unlikely(!TAILQ_EMPTY(&e->peers.asking)))
		engine_ext_ask(e, now);
	ack_since =
		unlikely(e->delayed_ack.qp != NULL) ? delayed_ack_look(e, moved) : now;
	if (none_ready && moved != 0 && moved <= DELAYED_ACK_BURST)
		delayed_ack_begin(e, ack_since);
	if ((none_ready && !TAILQ_EMPTY(&e->ready)) || ack_coalesce_waits(e))
		ack_stream_look(e, moved, none_ready, now);
	moved += engine_tx(e, now);
	if (e->taken_srqs != NULL)
		srq_settle(&e->taken_srqs);
	/* Behind what writes completions. */
	if (unlikely(cq_moderator_due(&e->dev->cq_moderator) <= now))
		cq_events_raise(e, now);
	engine_answered(e, now);
	mr_fault_leave();
	return moved;
}

void
engine_ack_wait_end(struct engine *e, const struct qp *qp)
{
	if (e->delayed_ack.qp == qp)
		delayed_ack_end(e, 0);
	stream_forget(&e->ack_coalesce.stream, qp);
	if (e->ack_coalesce.qp == qp)
		ack_coalesce_end(e);
	/* Its peer takes what leaves after the QP has ended for lost: the daemon drops that. */
	port_queue_held_send(&e->io.queue);
}

void
engine_forget(struct engine *e, struct qp *qp)
{
	engine_doorbells_drain(e);
	peer_unblock(&e->peers, qp);
	if (qp->sched.on_ready)
		engine_unready(e, qp);
	/* engine_ack_wait_end() comes before. */
	assert(e->delayed_ack.qp != qp && e->ack_coalesce.qp != qp);
	wheel_cancel(&e->wheel, &qp->sched.timer);
	claim_forget(qp);
	if (qp->peer != NULL) {
		assert(qp->req.unacked == 0 && qp->req.reading == 0);
		peer_put(&e->peers, qp->peer);
		qp->peer = NULL;
	}
}

void
engine_finish_qp(struct engine *e, const struct qp *qp, uint64_t now)
{
	for (unsigned n = 0;; n++) {
		/* The last pass may have delayed an ACK or NAK of the QP. */
		engine_ack_wait_end(e, qp);
		/* In ERR a pass without a NAK to send would only flush the requests. qp_reset()
		 * then cleans their CQEs. */
		if (n == FINAL_PASSES || !qp_wants_tx(qp) ||
			(qp->state == IBV_QPS_ERR && qp->aeth_pending == 0))
			return;
		engine_pass(e, now);
	}
}

unsigned
engine_run(struct engine *e, uint64_t now)
{
	uint32_t owner = engine_enter(e);
	unsigned moved;

	e->times.before_ns = e->times.pass_ns;
	moved = engine_pass(e, now);
	engine_leave(e, owner);
	return moved;
}

/* Returns when the next peer window has room for QPs that are blocked on it. 0: one has
 * room already, because a control call has ended the requests that filled it. */
static uint64_t
peer_windows_open(const struct engine *e)
{
	struct peer_window *w;
	uint64_t when = TIME_NEVER;

	TAILQ_FOREACH (w, &e->peers.blocked, blocked_link) {
		/* A control call blocks a QP on a window whose time has come since it was
		 * closed: the passes since then had no QP to open it for. */
		peer_window_set(w, e->shared.now);
		if (!peer_full(w))
			return 0;
		when = RTE_MIN(when, peer_opens_at(w, e->shared.now));
	}
	return when;
}

uint64_t
engine_next_time(const struct engine *e)
{
	uint64_t gsi = e->gsi != NULL ? gsi_due(e->gsi) : TIME_NEVER;
	uint64_t events = cq_moderator_due(&e->dev->cq_moderator);

	return RTE_MIN(RTE_MIN(wheel_next(&e->wheel), peer_windows_open(e)),
		RTE_MIN(gsi, events));
}

/* True if there is work without a deadline, for the next pass. */
static bool
engine_busy(const struct engine *e)
{
	if (!TAILQ_EMPTY(&e->ready) || e->posted_count != 0 ||
		((e->delayed_ack.delayed || ack_coalesce_waits(e)) &&
			!delayed_ack_is_manual(e)) ||
		e->io.backlog_count != 0 || doorbells_pending(&e->doorbells) ||
		port_queue_holds(&e->io.queue))
		return true;
	if (!TAILQ_EMPTY(&e->peers.asking) && !TAILQ_FIRST(&e->peers.asking)->ext_asked)
		return true;
	if (!TAILQ_EMPTY(&e->unresolved) &&
		net_generation(e->dev->net) != e->net_generation)
		return true;
	for (unsigned i = 0; i < e->dev->engine_count; i++) {
		if (e->handoff[i] != NULL && !rte_ring_empty(e->handoff[i]))
			return true;
	}
	return false;
}

uint64_t
engine_deadline(struct engine *e)
{
	uint64_t when, net;

	engine_lock(e);
	when = engine_busy(e) ? 0 : engine_next_time(e);
	engine_lock_release(e);
	net = e->is_control ? net_deadline(e->dev->net) : TIME_NEVER;
	return RTE_MIN(when, net);
}
