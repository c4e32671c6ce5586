/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Which window of its peer a QP needs room in (peer.h), and whether it has that. For the
 * engine and the requester, with the engine lock held. */
#ifndef ROCADE_QP_WINDOW_H
#define ROCADE_QP_WINDOW_H

#include "qp/qp.h"
#include "qp/wr_row.h"

/* True if the request at next_idx gets a response of its own. There is one. */
static inline bool
qp_next_needs_response(const struct qp *qp)
{
	return wr_has_response(wr_row(sq_slot(&qp->sq, qp->req.next_idx))->kind);
}

/* The window that the next request needs room in. The QP has a peer. */
static inline struct peer_window *
qp_next_window(const struct qp *qp)
{
	uint32_t next = qp->req.next_idx;
	bool any = next != qp->req.started_idx || next != sq_posted(&qp->sq);

	return any && qp_next_needs_response(qp) ? &qp->peer->read : &qp->peer->send;
}

/* True if that window is full. */
static inline bool
qp_peer_full(const struct qp *qp)
{
	const struct peer *peer = qp->peer;

	return peer != NULL &&
	       unlikely(peer_full(&peer->send) || peer_full(&peer->read)) &&
	       peer_full(qp_next_window(qp));
}

/* True if other QPs wait for that window already. */
static inline bool
qp_peer_awaited(const struct qp *qp)
{
	const struct peer *peer = qp->peer;

	return peer != NULL &&
	       unlikely(!TAILQ_EMPTY(&peer->send.blocked) ||
			!TAILQ_EMPTY(&peer->read.blocked)) &&
	       !TAILQ_EMPTY(&qp_next_window(qp)->blocked);
}

/* True if the QP has nothing to send but requests that a window can block: no responses,
 * no copy of the oldest packet, and none that an error flushes. */
static inline bool
qp_has_only_requests(const struct qp *qp)
{
	return !qp_has_response_pending(qp) && qp->state != IBV_QPS_ERR &&
	       !qp_copy_due(qp);
}

static inline bool
qp_window_blocked(const struct qp *qp)
{
	return qp_peer_full(qp) && qp_has_only_requests(qp);
}

/* True if the QP has to wait behind others for its window. */
static inline bool
qp_must_queue(const struct qp *qp)
{
	return qp_peer_awaited(qp) && qp_has_only_requests(qp);
}

#endif
