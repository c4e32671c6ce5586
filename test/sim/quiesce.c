/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/engine_state.h"

#include "check.h"
#include "quiesce.h"
#include "msg.h"

bool
only_unsignaled_left(struct end *e)
{
	for (uint32_t s = e->done; s != e->posted; s++) {
		if (end_msg(e, s)->signaled)
			return false;
	}
	return true;
}

bool
quiesce_sqd(struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	if (to_qp(e->qp)->qp->req.draining) {
		CHECK(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE) == EINVAL,
			"end %u: RTS from SQD before the queue has drained", e->number);
		return false;
	}
	host_events(e->host);
	CHECK(!e->drain_wanted || e->drained, "end %u: no SQ_DRAINED", e->number);
	e->drain_wanted = false;
	end_modify(e, IBV_QPS_RTS, NULL, 0);
	return true;
}

bool
quiesce_sqe(struct end *e)
{
	struct ibv_qp_attr attr = {.cur_qp_state = IBV_QPS_SQE};

	cq_poll(e->scq, 100000);
	/* Requests posted meanwhile are flushed in the engine's next pass. */
	if (!only_unsignaled_left(e) || host_deadline(e->host) <= sim.now)
		return false;
	end_modify(e, IBV_QPS_RTS, &attr, IBV_QP_CUR_STATE);
	/* The transition to RTS flushes the requests posted meanwhile. */
	cq_poll(e->scq, 100000);
	e->failed = false;
	return true;
}

/* Completions that overflowed a CQ are lost, and the receives of an SRQ with them. */
static bool
host_broken(const struct host *h)
{
	for (unsigned i = 0; i < h->conf.cqs; i++) {
		if (h->cq[i].broken)
			return true;
	}
	return false;
}

static bool
end_is_idle(struct end *e)
{
	/* In SQD too: the peer may need the receive to drain its own send queue. */
	if (e->peer != NULL && e->peer->recv_msgs_arrived != e->peer->recv_msgs_posted &&
		e->state != IBV_QPS_RESET && e->state != IBV_QPS_ERR)
		recv_post(e->recv, 1 + (unsigned)draw(4));
	if (host_broken(e->host) || (e->peer != NULL && host_broken(e->peer->host)))
		return true;
	if (e->state == IBV_QPS_SQD)
		quiesce_sqd(e);
	if (e->state == IBV_QPS_SQE)
		quiesce_sqe(e);
	if (e->state == IBV_QPS_SQD || e->state == IBV_QPS_SQE)
		return false;
	if (e->state == IBV_QPS_RTS && !e->last_posted && e->conn->up)
		e->last_posted = end_post(e, 1, false);
	if (e->state == IBV_QPS_RTS && e->conn->up && !e->last_posted)
		return false;
	if (e->done != e->posted && e->conn->up)
		return e->state == IBV_QPS_ERR && only_unsignaled_left(e);
	return e->type != IBV_QPT_RC || e->recv_msgs_arrived == e->recv_msgs_posted ||
	       !e->conn->up || e->state != IBV_QPS_RTS || e->peer->state != IBV_QPS_RTS;
}

bool
world_quiesce_step(void)
{
	bool rest = true;

	for (unsigned h = 0; h < world.hosts; h++) {
		for (unsigned i = 0; i < world.host[h].conf.cqs; i++)
			cq_poll(&world.host[h].cq[i], 100000);
	}
	for (unsigned i = 0; i < world.conns; i++) {
		struct conn *c = &world.conn[i];

		for (unsigned n = 0; n < c->ends; n++) {
			end_sync(&c->end[n]);
			if (c->end[n].posted - c->end[n].retired > END_MSGS / 2)
				end_retire(&c->end[n]);
			rest = end_is_idle(&c->end[n]) && rest;
		}
	}
	return rest;
}

/* The engine's QPs account for what is in flight to the peer and from it. A QP waits for a
 * window only as long as something opens it. */
static void
peer_check(
	const struct host *h, const struct engine *e, const struct peer *peer, bool opens)
{
	uint32_t sent = 0, reading = 0;

	for (uint32_t i = 0; i <= h->dev->qps.pool.mask; i++) {
		const struct qp *qp = qp_table_at(&h->dev->qps, i);

		if (qp == NULL || qp->peer != peer)
			continue;
		sent += qp->req.unacked;
		reading += qp->req.stalled ? 0 : qp->req.reading;
		CHECK(!qp->sched.on_unresolved || !qp->sched.on_blocked,
			"host %u engine %u: QP 0x%x waits for the window and a next hop",
			h->index, e->index, qp->qpn);
	}
	CHECK(peer->send.inflight == sent && peer->read.inflight == reading,
		"host %u engine %u: %u and %u packets in flight to and from a peer, of "
		"its QPs %u and %u",
		h->index, e->index, peer->send.inflight, peer->read.inflight, sent,
		reading);
	CHECK(opens || (TAILQ_EMPTY(&peer->send.blocked) &&
			       TAILQ_EMPTY(&peer->read.blocked)),
		"host %u engine %u: QPs wait for a window that nothing opens", h->index,
		e->index);
}

void
quiesce_peers_check(void)
{
	for (unsigned i = 0; i < world.hosts * HOST_ENGINES; i++) {
		const struct host *h = &world.host[i / HOST_ENGINES];
		struct engine *e = h->dev->engines[i % HOST_ENGINES];
		const struct peer *peer;
		bool opens;

		if (i % HOST_ENGINES >= h->conf.engines)
			continue;
		opens = engine_deadline(e) != TIME_NEVER;
		for (uint32_t n = 0; n <= e->peers.mask; n++) {
			LIST_FOREACH(peer, &e->peers.buckets[n], link)
			peer_check(h, e, peer, opens);
		}
	}
}
