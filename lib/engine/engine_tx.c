/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Transmit path: ready QPs in round robin, each with a budget; one exit for all
 * packets. */
#include <errno.h>
#include <string.h>

#include <rte_prefetch.h>

#include "engine/clock_cycles.h"
#include "engine/next_hop.h"
#include "engine/pass.h"
#include "engine/sched.h"
#include "qp/send_age.h"
#include "qp/window.h"

/* ---- The port's own frames ---- */

static void
control_tx(struct engine *e, uint64_t now)
{
	if (unlikely(port_io_link_due(&e->io, now)))
		dev_link_poll(e->dev);
	port_io_net_tx(&e->io, now);
}

/* A neighbour or an address has changed: unresolved QPs try again. */
static void
unresolved_retry(struct engine *e)
{
	uint32_t generation = net_generation(e->dev->net);
	struct qp *qp;

	if (likely(generation == e->net_generation))
		return;
	e->net_generation = generation;
	while ((qp = TAILQ_FIRST(&e->unresolved)) != NULL) {
		TAILQ_REMOVE(&e->unresolved, qp, sched.ready_link);
		qp->sched.on_unresolved = false;
		req_time_over(qp, SLOW_neighbour);
		TAILQ_INSERT_TAIL(&e->ready, qp, sched.ready_link);
	}
}

/* ---- QPs ---- */

/* Puts a QP that was just served on the lists where it belongs: on the ready list, if it
 * has something to send that the peer window does not block; on the peer's list of
 * blocked QPs, if it has something to send and the window is full. psn: its next_psn
 * before it was served. A blocked QP that has sent no request since keeps its place in
 * that list. */
static void
qp_requeue(struct engine *e, struct qp *qp, uint32_t psn)
{
	bool more = qp_wants_tx(qp);
	bool block = more && qp_peer_full(qp) && qp->state != IBV_QPS_ERR;

	engine_timer_set(e, qp);
	if (unlikely(qp->sched.on_blocked) && (qp->req.next_psn != psn || !block))
		peer_unblock(&e->peers, qp);
	if (block)
		peer_block(&e->peers, qp, qp_next_window(qp));
	if (more && !qp_window_blocked(qp))
		engine_ready(e, qp);
}

/* Makes QPs ready whose peer window has opened, first come first served. No more than the
 * next burst can take, because what a QP sends may close the window again. Each keeps its
 * place among the blocked ones until it has sent. */
static void RARE
blocked_windows_unblock(struct engine *e, uint64_t now)
{
	struct peer_window *w, *next;

	for (w = TAILQ_FIRST(&e->peers.blocked); w != NULL; w = next) {
		uint32_t room;
		struct qp *qp;

		if (unlikely(cc_is_on(w->cc))) {
			peer_window_set(w, now);
			e->earliest_ns = RTE_MIN(e->earliest_ns, peer_opens_at(w, now));
		}
		room = RTE_MIN(peer_room(w), PKT_BURST + 0u);
		next = TAILQ_NEXT(w, blocked_link);
		TAILQ_FOREACH (qp, &w->blocked, blocked_link) {
			if (room-- == 0)
				break;
			engine_ready(e, qp);
		}
	}
}

static inline void
peer_windows_unblock(struct engine *e, uint64_t now)
{
	if (unlikely(!TAILQ_EMPTY(&e->peers.blocked)))
		blocked_windows_unblock(e, now);
}

/* Puts the QP on the unresolved list, if it has anything to send. It leaves the peer's queue:
 * there it would take room of the window that other QPs can use. */
static void RARE
unresolved_add(struct engine *e, struct qp *qp, uint64_t now)
{
	peer_unblock(&e->peers, qp);
	qp_tx(qp, NULL, 0, now); /* in ERR: flushes */
	if (!qp_wants_tx(qp))
		return;
	send_age_mark(qp, now);
	req_time_wait(qp, SLOW_neighbour);
	qp->sched.on_ready = qp->sched.on_unresolved = true;
	TAILQ_INSERT_TAIL(&e->unresolved, qp, sched.ready_link);
}

/* Moves n frames from the cache to the loopback queue. The unused frames behind them move
 * up. */
static void
loopback_add(struct engine *e, struct pkt *frames, unsigned n)
{
	const struct pkt *end = e->io.cache + e->io.cache_first + e->io.cache_count;

	for (unsigned i = 0; i < n; i++)
		e->loopback[e->loopback_count++] = frames[i];
	e->stats.tx_loopback += n;
	memmove(frames, frames + n, (size_t)(end - (frames + n)) * sizeof(*frames));
	e->io.cache_count -= n;
}

/* Handles packets whose route is not ROUTE_PEER. rc: as returned by next_hop_resolve().
 * Returns how many of them also leave the port. */
static unsigned
frames_divert(struct engine *e, struct qp *qp, int rc, struct pkt *frames, unsigned n,
	uint64_t now)
{
	switch (rc) {
	case ROUTE_SELF:
		loopback_add(e, frames, n);
		return 0;
	case ROUTE_GROUP:
		engine_group_tx(e, qp, frames, n, now);
		return n;
	default:
		e->stats.tx_no_neighbour += n;
		return 0;
	}
}

/* Prefetches what sending from the QP reads. */
static inline void
qp_prefetch_tx(const struct qp *qp)
{
	rte_prefetch0(qp);
	rte_prefetch0(&qp->sched.ready_link);
	rte_prefetch0(&qp->req);
	rte_prefetch0((const uint8_t *)&qp->req + LINE_SIZE);
	rte_prefetch0(&qp->hdr);
	rte_prefetch0(&qp->hdr.len);
	rte_prefetch0(&qp->sq);
	rte_prefetch0(&qp->sq.lock);
}

/* Prefetches the WQEs and PSN ranges of the QP's next requests, which have left the cache
 * if they were posted long ago. Reads the QP, which must be in the cache already. */
static inline void
qp_prefetch_requests(const struct qp *qp)
{
	uint32_t first = qp->req.next_idx;
	uint32_t n = RTE_MIN(sq_posted(&qp->sq) - first, (uint32_t)ENGINE_BUDGET);

	if (n == 0)
		return; /* an XRC target has no send queue at all */
	rte_prefetch0(sq_psn_range(&qp->sq, first));
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(sq_slot(&qp->sq, first + i));
}

/* Prefetches for the next QP to be served, and the one after it. */
static inline void
ready_qps_prefetch(const struct qp *qp)
{
	const struct qp *after = TAILQ_NEXT(qp, sched.ready_link);

	qp_prefetch_requests(qp);
	if (after != NULL)
		qp_prefetch_tx(after);
}

typedef unsigned (*frames_builder)(
	struct qp *qp, struct pkt *frames, unsigned n, uint64_t now);

/* Has a QP fill frames. *placed: whether some are for its packets only, because the port has memory for
 * them that needs no copy. */
static __rte_always_inline unsigned
frames_fill(struct engine *e, struct qp *qp, struct pkt *frames, unsigned n, bool *placed,
	frames_builder build, uint64_t now)
{
	const struct port_queue *q = &e->io.queue;
	unsigned count, built;

	if (likely(!*placed))
		return build(qp, frames, n, now);
	count = q->ops->tx_place(q->queue, qp->qpn, frames, n);
	built = build(qp, frames, n, now);
	*placed = count != 0 && built != 0;
	if (unlikely(count > built))
		q->ops->tx_unplace(q->queue, frames + built, count - built);
	return built;
}

/* Fills frames of the tx cache from ready QPs, each within its budget. Returns the number
 * of frames, from the first on, that the port is to send. Packets that a QP builds for an
 * unreachable next hop are not sent: its retries run out and report that. */
static unsigned
ready_qps_tx(struct engine *e, uint64_t now)
{
	struct pkt *frames = e->io.cache + e->io.cache_first;
	bool placed = false;
	unsigned used = 0;
	struct qp *qp;

	/* Frames that are placed leave before another QP fills any. */
	while (!placed && used < e->io.cache_count &&
		(qp = TAILQ_FIRST(&e->ready)) != NULL) {
		struct qp *next = TAILQ_NEXT(qp, sched.ready_link);
		unsigned built;
		uint32_t psn;
		int rc;

		if (next != NULL)
			ready_qps_prefetch(next);
		rc = next_hop_resolve(e, qp, now);
		TAILQ_REMOVE(&e->ready, qp, sched.ready_link);
		qp->sched.on_ready = false;
		/* Nothing is posted to this UD QP: it goes on no list. A thread that
		 * posts now then rings the doorbell, which makes the QP ready. A QP on
		 * the unresolved list would stay there until a neighbour changes. */
		if (unlikely(rc == -ENOMSG))
			continue;
		if (unlikely(rc == -EAGAIN)) {
			unresolved_add(e, qp, now);
			continue;
		}
		psn = qp->req.next_psn;
		placed = e->io.queue.ops->tx_place != NULL && used == 0 &&
			 rc == ROUTE_PEER;
		built = frames_fill(e, qp, frames + used,
			RTE_MIN(e->io.cache_count - used, ENGINE_BUDGET + 0u), &placed,
			qp_tx, now);
		if (likely(rc == ROUTE_PEER))
			used += built;
		else
			used += frames_divert(e, qp, rc, frames + used, built, now);
		qp_requeue(e, qp, psn);
	}
	return used;
}

/* True if this QP, or others that it must not overtake, wait for the peer window. */
static inline bool
peer_has_blocked(const struct engine *e, const struct qp *qp)
{
	return unlikely(!TAILQ_EMPTY(&e->peers.blocked)) && qp_peer_awaited(qp);
}

/* Pending responses of the QP wait for the next pass. */
bool
engine_tx_qp(struct engine *e, struct qp *qp, uint64_t now)
{
	bool placed = e->io.queue.ops->tx_place != NULL;
	unsigned built;

	if (peer_has_blocked(e, qp)) {
		engine_schedule(e, qp);
		return true;
	}
	if (qp->state != IBV_QPS_RTS || qp->sched.on_ready ||
		!port_io_flush(&e->io, now) || port_io_cache_fill(&e->io, 1) == 0 ||
		next_hop_resolve(e, qp, now) != ROUTE_PEER)
		return false;
	built = frames_fill(e, qp, e->io.cache + e->io.cache_first,
		RTE_MIN(e->io.cache_count, ENGINE_BUDGET + 0u), &placed, qp_tx_requests,
		now);
	if (likely(built != 0))
		port_io_cache_send(&e->io, built, now);
	engine_schedule(e, qp);
	return true;
}

static unsigned
loopback_process(struct engine *e, uint64_t now)
{
	unsigned n = e->loopback_count;

	e->loopback_count = 0;
	engine_rx_process(e, e->loopback, n, now);
	return n;
}

unsigned
engine_tx(struct engine *e, uint64_t now)
{
	unsigned moved = 0;

	unresolved_retry(e);
	if (e->gsi != NULL && unlikely(gsi_due(e->gsi) <= now))
		engine_gsi_tx(e, now);
	if (e->is_control)
		control_tx(e, now);
	while (moved < ENGINE_TX_PASS && port_io_flush(&e->io, now)) {
		unsigned used;

		peer_windows_unblock(e, now);
		if (TAILQ_EMPTY(&e->ready))
			break;
		CYCLES_START(since);
		if (port_io_cache_fill(&e->io, ENGINE_BUDGET) == 0) {
			e->stats.tx_no_buffer++;
			break;
		}
		CYCLES_LAP(e, tx_alloc, since);
		used = ready_qps_tx(e, now);
		CYCLES_LAP(e, build, since);
		if (unlikely(e->loopback_count != 0))
			moved += loopback_process(e, now);
		else if (used == 0)
			break;
		port_io_cache_send(&e->io, used, now);
		CYCLES_LAP(e, tx_burst, since);
		moved += used;
	}
	/* QPs whose peer window has opened go on the ready list. The engine is then busy
	 * and does not go to sleep before the next pass. */
	if (TAILQ_EMPTY(&e->ready))
		peer_windows_unblock(e, now);
	return moved;
}
