/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AckReq suppression. A QP sets AckReq on the last packet that it has to send. Where many
 * QPs send to one peer, each one request per poll pass, that makes an acknowledgement for
 * every packet. There a QP sends without AckReq. Its next signaled request sets it, or
 * its next ACK_EVERY-th PSN (req_build.c), or a tail-loss probe after quiet_ns().
 *
 * The peer window holds all the same. Packets sent without AckReq are counted in
 * peer->quiet, and piggybacked on the next packet with AckReq, of any QP: they count as
 * in flight until that packet is acknowledged, as the peer takes packets in in the order
 * in which they were sent. When too many packets have been sent without AckReq, QPs set
 * it again.
 */
#include "qp/internal.h"

#define QUIET_SHARE 4      /* of the peer window may be sent without AckReq: a quarter, */
#define QUIET_MOST 4096u   /* and not more packets than this */
#define QUIET_TURN_NS (4 * NS_PER_US) /* time that a QP takes of a poll pass */

bool
quiet_allowed(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	const struct peer *peer = qp->peer;

	/* Without an ACK timeout nothing would request an acknowledgement in the end. A
	 * resend and a draining queue set AckReq. While an acknowledgement is outstanding
	 * the timers are in use for its packet. */
	return qp->timeout != 0 && qp->state == IBV_QPS_RTS && req->unacked == 0 &&
	       req->next_psn == req->sent_psn && req->tlp_state == TLP_OFF &&
	       peer->quiet < RTE_MIN(peer->window / QUIET_SHARE, QUIET_MOST);
}

void
quiet_sent(struct qp *qp, uint64_t now)
{
	assert(qp_peer_crowded(qp));
	qp->peer->quiet += req_charge(qp);
	qp->req.quiet_psn = qp->req.next_psn;
	tlp_sent_suppressed(qp, now);
}

void
quiet_carry(struct qp *qp)
{
	struct requester *req = &qp->req;
	struct peer *peer = qp->peer;

	if (req->carried != 0)
		return; /* another QP will take them */
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
