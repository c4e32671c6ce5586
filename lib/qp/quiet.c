/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking less often. A QP asks for an acknowledgement with its last packet for the time
 * being. Where many QPs send to one peer, each a request in its turn, that makes a packet
 * back for every packet. There a QP does not ask: its next signaled request will, or its
 * packet number 32, or the probe when it has been quiet for too long.
 *
 * The window towards the peer holds all the same. Packets that nobody has asked for are
 * counted in peer->quiet, and the next packet that asks, of whichever QP, carries them:
 * they are in flight until that one is acknowledged, as the peer takes packets in in the
 * order in which they were sent. When too many have been sent quietly QPs ask again.
 */
#include "qp/internal.h"

#define QUIET_SHARE 4      /* of the window may be quiet: a quarter, */
#define QUIET_MOST 4096u   /* and not more */
#define QUIET_TURN_NS (4 * NS_PER_US) /* a QP's share of the time in which all have a turn */

bool
quiet_allowed(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	const struct peer *peer = qp->peer;

	/* Without an ACK timeout nothing would ask in the end; what is sent again, and what
	 * a draining queue waits for, is asked for. While an answer is waited for the
	 * timers are that packet's. */
	return qp->timeout != 0 && qp->state == IBV_QPS_RTS && req->unacked == 0 &&
	       req->next_psn == req->sent_psn && req->probe == PROBE_OFF &&
	       peer->quiet < RTE_MIN(peer->window / QUIET_SHARE, QUIET_MOST);
}

void
quiet_sent(struct qp *qp, uint64_t now)
{
	assert(qp_peer_crowded(qp));
	qp->peer->quiet += req_charge(qp);
	qp->req.quiet_psn = qp->req.next_psn;
	probe_quiet(qp, now);
}

void
quiet_carry(struct qp *qp)
{
	struct requester *req = &qp->req;
	struct peer *peer = qp->peer;

	if (req->carried != 0)
		return; /* another QP will */
	req->carried = (uint16_t)peer->quiet;
	req->carry_psn = req->next_psn;
	peer->inflight += req->carried;
	peer->quiet = 0;
}

void
quiet_put_down(struct qp *qp)
{
	qp->peer->inflight -= qp->req.carried;
	qp->req.carried = 0;
}

void
quiet_end(struct qp *qp)
{
	if (qp->req.carried != 0)
		quiet_put_down(qp);
	qp->req.quiet_psn = qp->req.una_psn;
}

uint64_t
quiet_ns(const struct qp *qp)
{
	uint64_t turns = qp->peer->qps * QUIET_TURN_NS;

	return RTE_MIN(RTE_MAX(turns, NS_PER_MS), req_timeout_ns(qp) / 4);
}
