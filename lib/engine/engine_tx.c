/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmit path: ready QPs in round robin, each with a budget; one exit for all
 * packets. */
#include <errno.h>
#include <string.h>

#include "engine/clock_cycles.h"
#include "engine/engine_internal.h"

/* ---- Tx frame cache ---- */

/* Refills the cache if it holds fewer than want frames. Returns how many it then holds,
 * which may be fewer. */
static uint32_t
tx_cache_fill(struct engine *e, uint32_t want)
{
	uint32_t got;

	if (likely(e->tx_cache_count >= want))
		return e->tx_cache_count;
	memmove(e->tx_cache, e->tx_cache + e->tx_cache_first,
		e->tx_cache_count * sizeof(e->tx_cache[0]));
	e->tx_cache_first = 0;
	got = e->queue.ops->tx_alloc(e->queue.queue, e->tx_cache + e->tx_cache_count,
		PKT_BURST - e->tx_cache_count);
	e->tx_cache_count += got;
	return e->tx_cache_count;
}

bool
engine_frame_get(struct engine *e, struct pkt *frame)
{
	if (tx_cache_fill(e, 1) == 0) {
		e->stats.tx_no_buffer++;
		return false;
	}
	*frame = e->tx_cache[e->tx_cache_first + --e->tx_cache_count];
	return true;
}

void
engine_frame_put(struct engine *e, const struct pkt *frame)
{
	e->tx_cache[e->tx_cache_first + e->tx_cache_count++] = *frame;
}

void
engine_tx_fini(struct engine *e)
{
	e->queue.ops->tx_release(
		e->queue.queue, e->backlog + e->backlog_first, e->backlog_count);
	e->queue.ops->tx_release(
		e->queue.queue, e->tx_cache + e->tx_cache_first, e->tx_cache_count);
}

/* ---- The port ---- */

/* Sends what the port takes. The rest becomes the backlog, which must be empty. */
static void
burst_send(struct engine *e, struct pkt *pkts, unsigned n, uint64_t now)
{
	uint64_t bytes = 0;
	unsigned sent = e->queue.ops->tx_burst(e->queue.queue, pkts, n);

	for (unsigned i = 0; i < n; i++)
		bytes += pkts[i].len;
	e->stats.tx_packets += n;
	e->stats.tx_bytes += bytes;
	if (likely(sent == n))
		return;
	e->stats.tx_stalled++;
	memcpy(e->backlog, pkts + sent, (n - sent) * sizeof(pkts[0]));
	e->backlog_first = 0;
	e->backlog_count = n - sent;
	e->backlog_ns = now;
}

/* Sends the first n frames of the cache, which are filled. */
static void
tx_cache_send(struct engine *e, unsigned n, uint64_t now)
{
	burst_send(e, e->tx_cache + e->tx_cache_first, n, now);
	e->tx_cache_first += n;
	e->tx_cache_count -= n;
}

/* A port that is down, or takes nothing for long, may never take anything again. Its
 * packets are lost then, as on any link: QPs retransmit them, and run out of retries in
 * the end. */
static void
backlog_drop(struct engine *e)
{
	e->stats.tx_given_up += e->backlog_count;
	e->queue.ops->tx_release(
		e->queue.queue, e->backlog + e->backlog_first, e->backlog_count);
	e->backlog_count = 0;
}

static bool
backlog_flush(struct engine *e, uint64_t now)
{
	unsigned sent;

	if (likely(e->backlog_count == 0))
		return true;
	sent = e->queue.ops->tx_burst(e->queue.queue, e->backlog + e->backlog_first,
		RTE_MIN(e->backlog_count, PKT_BURST + 0u));
	e->backlog_first += sent;
	e->backlog_count -= sent;
	if (sent != 0)
		e->backlog_ns = now;
	else if (now - e->backlog_ns >= ENGINE_STALL_NS ||
		 !__atomic_load_n(&e->dev->link_up, __ATOMIC_RELAXED))
		backlog_drop(e);
	return e->backlog_count == 0;
}

void
engine_send_own(struct engine *e, struct pkt *frame, uint64_t now)
{
	if (backlog_flush(e, now))
		burst_send(e, frame, 1, now);
	else
		/* Lost, as it might be on the wire. ARP and ND requests are repeated by
		 * their sender. */
		engine_frame_put(e, frame);
}

/* ---- The port's own frames, next hops ---- */

static void
control_tx(struct engine *e, uint64_t now)
{
	struct pkt frame;

	if (unlikely(now >= e->link_poll_ns)) {
		dev_link_poll(e->dev);
		e->link_poll_ns = now + ENGINE_LINK_POLL_NS;
	}
	if (unlikely(e->dev->gsi != NULL))
		engine_gsi_tx(e, now);
	while (net_deadline(e->dev->net) <= now && backlog_flush(e, now) &&
		engine_frame_get(e, &frame)) {
		if (net_tx(e->dev->net, &frame, 1, now) == 0) {
			engine_frame_put(e, &frame);
			return;
		}
		burst_send(e, &frame, 1, now);
	}
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
	const struct pkt *end = e->tx_cache + e->tx_cache_first + e->tx_cache_count;

	for (unsigned i = 0; i < n; i++)
		e->loopback[e->loopback_count++] = frames[i];
	e->stats.tx_loopback += n;
	memmove(frames, frames + n, (size_t)(end - (frames + n)) * sizeof(*frames));
	e->tx_cache_count -= n;
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
	struct pkt *frames = e->tx_cache + e->tx_cache_first;
	unsigned used = 0;
	struct qp *qp;

	while (used < e->tx_cache_count && (qp = TAILQ_FIRST(&e->ready)) != NULL) {
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
			RTE_MIN(e->tx_cache_count - used, ENGINE_BUDGET + 0u), now);
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
		qp->sched.on_ready || qp->sched.on_blocked || !backlog_flush(e, now) ||
		tx_cache_fill(e, 1) == 0 || next_hop_resolve(e, qp, now) != ROUTE_PEER)
		return false;
	built = qp_tx(qp, e->tx_cache + e->tx_cache_first,
		RTE_MIN(e->tx_cache_count, ENGINE_BUDGET + 0u), now);
	if (likely(built != 0))
		tx_cache_send(e, built, now);
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
	while (moved < ENGINE_TX_PASS && backlog_flush(e, now)) {
		unsigned used;

		peer_windows_unblock(e);
		if (TAILQ_EMPTY(&e->ready))
			break;
		CYCLES_START(since);
		if (tx_cache_fill(e, ENGINE_BUDGET) == 0) {
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
		tx_cache_send(e, used, now);
		CYCLES_LAP(e, tx_burst, since);
		moved += used;
	}
	/* QPs whose peer window has opened go on the ready list. The engine is then busy
	 * and does not go to sleep before the next pass. */
	if (TAILQ_EMPTY(&e->ready))
		peer_windows_unblock(e);
	return moved;
}
