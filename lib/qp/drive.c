/* SPDX-License-Identifier: BSD-3-Clause */
/* The four calls that drive a QP. */
#include "qp/internal.h"

void
qp_rx(struct qp *qp, const struct pkt_view *view, uint64_t now)
{
	enum drop_reason why = qp_admit(qp, view);

	if (unlikely(why != DROP_none)) {
		qp->env->stats->drop[why]++;
		return;
	}
	qp->stats.rx_packets++;
	qp->env->stats->rx_roce++;
	if (op_is_response(view->op))
		comp_rx(qp, view, now);
	else
		resp_rx(qp, view);
}

unsigned
qp_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	unsigned built = 0;

	if (qp->resp.owed != 0 && n != 0)
		resp_tx(qp, &pkts[built++]);
	if (unlikely(qp->state == IBV_QPS_ERR))
		qp_flush(qp);
	else if (built < n)
		built += req_tx(qp, pkts + built, n - built, now);
	qp->stats.tx_packets += built;
	return built;
}

bool
qp_wants_tx(const struct qp *qp)
{
	const struct requester *req = &qp->req;

	if (qp->resp.owed != 0)
		return true;
	if (unlikely(qp->state == IBV_QPS_ERR))
		return qp_has_flush(qp);
	if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) ||
		req->rnr_deadline != TIME_NEVER)
		return false;
	return ((req->next_psn - req->una_psn) & PSN_MASK) < QP_WINDOW &&
	       req_has_next(qp);
}

void
qp_timeout(struct qp *qp, uint64_t now)
{
	if (qp->req.rnr_deadline <= now)
		qp->req.rnr_deadline = TIME_NEVER;
	if (qp->req.ack_deadline <= now)
		comp_ack_timeout(qp, now);
}
