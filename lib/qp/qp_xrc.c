/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The extended reliable connection (IBA annex A14): RC with separate receive queues. Each
 * request names an SRQ of the target's XRC domain. That SRQ determines where receives
 * come from, which CQ they complete in, and, as the target has no PD, the PD of all keys,
 * rkeys included. A message sets these in the QP, and the responder of RC does the rest.
 */
#include "qp/resp.h"
#include "qp/transport.h"

void
xrc_reset(struct qp *qp)
{
	qp->srq = NULL;
	qp->recv_cq = NULL;
	qp->resp.srqn = 0;
}

/* Returns false if the domain has no such SRQ, or the message in progress is for another
 * one. */
static bool
srq_select(struct qp *qp, uint32_t srqn)
{
	struct srq *srq;

	if (likely(srqn == qp->resp.srqn && qp->srq != NULL))
		return true;
	if (qp->resp.msg != OP_UNKNOWN)
		return false;
	srq = srq_table_get(qp->shared->srqs, srqn);
	if (srq == NULL || srq->xrcd != qp->xrcd)
		return false;
	qp->srq = srq;
	qp->recv_cq = srq->cq;
	qp->pd = srq->pd;
	qp->resp.srqn = srqn;
	return true;
}

enum verdict
xrc_rx(struct qp *qp, const struct pkt_view *v)
{
	/* Only a packet in sequence selects an SRQ. For a duplicate, responder resources
	 * know the SRQ of the original. */
	if (likely(v->psn == qp->resp.epsn) && unlikely(!srq_select(qp, view_srqn(v)))) {
		resp_established(qp);
		return FAULT_SRQN;
	}
	return resp_rx(qp, v);
}

void
qp_forget_srq(struct qp *qp, const struct srq *srq)
{
	if (qp->type != IBV_QPT_XRC_RECV)
		return;
	resp_res_revoke(qp, srq->srqn);
	if (qp->srq != srq)
		return;
	qp->resp.wqe_held = false;
	xrc_reset(qp);
}
