/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * AckReq suppression. A QP sets AckReq on the last packet that it has to send. Where many
 * QPs send to one peer, each one request per poll pass, that makes an acknowledgement for
 * every packet. There a QP sends without AckReq. Its next signaled request sets it, or
 * its next ACK_EVERY-th PSN (req_build.c), or a tail-loss probe after ackreq_delay_ns().
 *
 * The peer window limits these packets, too. Packets sent without AckReq are counted in
 * peer->suppressed, and piggybacked on the next packet with AckReq, of any QP:
 * they count as in flight until that packet is acknowledged, because the peer receives
 * packets in the order in which they were sent. When too many packets have been sent
 * without AckReq, QPs set it again.
 */
#include "qp/loss.h"

/* assumed time for which one QP occupies a poll pass */
#define ACKREQ_NS_PER_QP (4 * NS_PER_US)

bool
ackreq_can_suppress(const struct qp *qp)
{
	const struct requester *req = &qp->req;

	/* Without an ACK timeout nothing would request an acknowledgement in the end. A
	 * resend and a draining queue set AckReq. While an acknowledgement is outstanding
	 * the timers are in use for its packet. */
	return qp->params.timeout != 0 && qp->state == IBV_QPS_RTS && req->unacked == 0 &&
	       req->next_psn == req->sent_psn && req->tlp_state == TLP_OFF &&
	       peer_may_suppress(qp->peer);
}

void
ackreq_suppress(struct qp *qp)
{
	assert(qp_peer_has_many_qps(qp));
	peer_suppress(qp->peer, req_charge(qp));
	qp->req.suppressed_psn = qp->req.next_psn;
	qp->shared->stats->ackreq_suppressed++;
}

void
ackreq_piggyback(struct qp *qp)
{
	struct requester *req = &qp->req;

	if (req->piggybacked != 0)
		return; /* the next packet with AckReq of another QP takes them */
	req->piggybacked = (uint16_t)peer_piggyback(qp->peer);
	req->piggyback_psn = req->next_psn;
}

void
ackreq_release(struct qp *qp)
{
	peer_charge(qp->peer, qp->req.piggybacked, 0);
	qp->req.piggybacked = 0;
}

void
ackreq_count_all(struct qp *qp)
{
	if (qp->req.piggybacked != 0)
		ackreq_release(qp);
	qp->req.suppressed_psn = qp->req.una_psn;
}

uint64_t
ackreq_delay_ns(const struct qp *qp)
{
	uint64_t pass_ns = qp->peer->qps * ACKREQ_NS_PER_QP;

	return RTE_MIN(RTE_MAX(pass_ns, NS_PER_MS), req_timeout_ns(qp) / 4);
}
