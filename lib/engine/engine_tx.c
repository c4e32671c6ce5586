/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmit path: ready QPs in round robin, each with a budget; one exit for all
 * packets. */
#include <errno.h>
#include <string.h>

#include "engine/clock_cycles.h"
#include "engine/engine_internal.h"

/* ---- The port's own frames, next hops ---- */

static void
control_tx(struct engine *e, uint64_t now)
{
	if (unlikely(port_io_link_due(&e->io, now)))
		dev_link_poll(e->dev);
	if (unlikely(e->dev->gsi != NULL))
		engine_gsi_tx(e, now);
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
		TAILQ_INSERT_TAIL(&e->ready, qp, sched.ready_link);
	}
}

/* Each UD request has its own destination: updates the path and the headers for the next
 * one. */
static void
ud_path_update(struct engine *e, struct qp *qp)
{
	const struct ud_dest *dest = qp_next_dest(qp);
	struct qp_path path;

	if (dest == NULL)
		return;
	path = (struct qp_path){
		.flow_label = dest->flow_label,
		.sgid_index = dest->sgid_index,
		.hop_limit = dest->hop_limit,
		.tclass = dest->tclass,
		.sl = dest->sl,
	};
	memcpy(path.sgid, e->dev->gids[dest->sgid_index], sizeof(path.sgid));
	memcpy(path.dgid, dest->dgid, sizeof(path.dgid));
	if (likely(memcmp(&path, &qp->path, sizeof(path)) == 0))
		return;
	qp->path = path;
	qp->sched.resolved = false;
	engine_headers_build(e->dev, qp);
}

/* Chooses the route by the MAC: the port's own, a group's, or another host's. */
static int
route_set(const struct engine *e, struct qp *qp, const uint8_t mac[6])
{
	if (memcmp(mac, e->dev->port.mac, 6) == 0)
		qp->sched.route = ROUTE_SELF;
	else
		qp->sched.route = mac[0] & 1 ? ROUTE_GROUP : ROUTE_PEER;
	/* Packets that stay in the host pass no NIC that could fill in the checksum. */
	if (qp->sched.route != ROUTE_PEER)
		path_hdr_no_offload(&qp->hdr);
	return qp->sched.route;
}

static int
next_hop_mac(struct engine *e, const struct qp *qp, uint8_t mac[6], uint64_t now)
{
	if (likely(e->dev->conf.hooks == NULL || gid_is_multicast(qp->path.dgid)))
		return net_resolve(e->dev->net, qp->path.dgid, mac, now);
	/* With hooks the daemon writes the Ethernet header. It may deliver to other
	 * clients even if the address is one of this port. */
	memset(mac, 0, 6);
	return 0;
}

/* Fills the next hop's MAC into the header template. Returns enum qp_route, -EAGAIN while
 * the MAC is being resolved, or why there is none. */
static int
next_hop_resolve(struct engine *e, struct qp *qp, uint64_t now)
{
	uint8_t mac[6];
	int rc;

	if (qp->type == IBV_QPT_UD)
		ud_path_update(e, qp);
	if (likely(qp->sched.resolved && qp->sched.net_generation == e->net_generation))
		return qp->sched.route;
	rc = next_hop_mac(e, qp, mac, now);
	if (rc == 0) {
		path_hdr_set_dst(&qp->hdr, mac);
		qp->sched.resolved = true;
		qp->sched.net_generation = e->net_generation;
		rc = route_set(e, qp, mac);
	} else if (qp->sched.resolved && rc == -EAGAIN) {
		return qp->sched.route; /* the old MAC serves until another is known */
	}
	return rc;
}

/* ---- QPs ---- */

/* After a QP was served: puts it back on the ready list, blocks it on the peer's window,
 * or neither. */
static void
qp_requeue(struct engine *e, struct qp *qp)
{
	bool more = qp_wants_tx(qp);

	engine_timer_set(e, qp);
	if (more && qp_peer_full(qp) && qp->state != IBV_QPS_ERR)
		peer_block(&e->peers, qp);
	else
		peer_unblock(&e->peers, qp);
	if (more && !qp_window_blocked(qp))
		engine_ready(e, qp);
}

/* Unblocks QPs whose peer window has opened, first come first served. No more than the
 * next burst can take, because what a QP sends may close the window again. */
static void
peer_windows_unblock(struct engine *e)
{
	struct peer *peer, *next;

	for (peer = TAILQ_FIRST(&e->peers.blocked); peer != NULL; peer = next) {
		uint32_t room = RTE_MIN(peer_room(peer), PKT_BURST + 0u);
		struct qp *qp;

		next = TAILQ_NEXT(peer, blocked_link);
		for (; room != 0 && (qp = TAILQ_FIRST(&peer->blocked)) != NULL; room--) {
			peer_unblock(&e->peers, qp);
			engine_ready(e, qp);
		}
	}
}

/* Puts the QP on the unresolved list, if it has anything to send. */
static void
unresolved_add(struct engine *e, struct qp *qp, uint64_t now)
{
	qp_tx(qp, NULL, 0, now); /* in ERR: flushes */
	if (!qp_wants_tx(qp))
		return;
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

/* Prefetches for the next QP to be served, and the one after it. */
static inline void
ready_qps_prefetch(const struct qp *qp)
{
	const struct qp *after = TAILQ_NEXT(qp, sched.ready_link);

	qp_prefetch_requests(qp);
	if (after != NULL)
		qp_prefetch_tx(after);
}

/* Fills frames of the tx cache from ready QPs, each within its budget. Returns the number
 * of frames, from the first on, that the port is to send. Packets that a QP builds for an
 * unreachable next hop are not sent: its retries run out and report that. */
static unsigned
ready_qps_tx(struct engine *e, uint64_t now)
{
	struct pkt *frames = e->io.cache + e->io.cache_first;
	unsigned used = 0;
	struct qp *qp;

	while (used < e->io.cache_count && (qp = TAILQ_FIRST(&e->ready)) != NULL) {
		struct qp *next = TAILQ_NEXT(qp, sched.ready_link);
		unsigned built;
		int rc;

		if (next != NULL)
			ready_qps_prefetch(next);
		rc = next_hop_resolve(e, qp, now);
		TAILQ_REMOVE(&e->ready, qp, sched.ready_link);
		qp->sched.on_ready = false;
		if (unlikely(rc == -EAGAIN)) {
			unresolved_add(e, qp, now);
			continue;
		}
		built = qp_tx(qp, frames + used,
			RTE_MIN(e->io.cache_count - used, ENGINE_BUDGET + 0u), now);
		if (likely(rc == ROUTE_PEER))
			used += built;
		else
			used += frames_divert(e, qp, rc, frames + used, built, now);
		qp_requeue(e, qp);
	}
	return used;
}

bool
engine_tx_qp(struct engine *e, struct qp *qp, uint64_t now)
{
	unsigned built;

	if (qp->state != IBV_QPS_RTS || qp->req.una_idx != qp->req.next_idx ||
		qp->sched.on_ready || qp->sched.on_blocked ||
		!port_io_flush(&e->io, now) || port_io_cache_fill(&e->io, 1) == 0 ||
		next_hop_resolve(e, qp, now) != ROUTE_PEER)
		return false;
	built = qp_tx(qp, e->io.cache + e->io.cache_first,
		RTE_MIN(e->io.cache_count, ENGINE_BUDGET + 0u), now);
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
	if (e->is_control)
		control_tx(e, now);
	while (moved < ENGINE_TX_PASS && port_io_flush(&e->io, now)) {
		unsigned used;

		peer_windows_unblock(e);
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
		peer_windows_unblock(e);
	return moved;
}
