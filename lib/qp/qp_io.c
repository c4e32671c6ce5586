/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls by which the engine drives a QP. */
#include "qp/qp_internal.h"

/* Counts a packet that was not admitted. A congestion notification (CNP) is counted and
 * has no effect: there is no rate control (docs/protocol.md 17). */
static void
count_refused(struct qp *qp, enum drop_reason why)
{
	if (why != DROP_cnp) {
		qp->shared->stats->drop[why]++;
		return;
	}
	qp->shared->stats->cnp_received++;
	qp->stats.cnp_received++;
}

static enum verdict
rx_other(struct qp *qp, const struct pkt_view *view, uint64_t now)
{
	if (qp->type == IBV_QPT_UD)
		return ud_rx(qp, view);
	if (qp->type == IBV_QPT_UC)
		return uc_rx(qp, view);
	if (qp->type == IBV_QPT_XRC_RECV)
		return xrc_rx(qp, view);
	comp_rx(qp, view, now);
	return VERDICT_GO;
}

void
qp_rx(struct qp *qp, const struct pkt_view *view, uint64_t now)
{
	enum drop_reason why = qp_admit(qp, view);
	enum verdict verdict = VERDICT_GO;

	if (unlikely(why != DROP_none)) {
		count_refused(qp, why);
		return;
	}
	if (unlikely((view->tclass & ECN_CE) == ECN_CE))
		qp->shared->stats->ecn_marked++;
	qp->stats.rx_packets++;
	qp->shared->stats->rx_roce++;
	if (unlikely(qp->type != IBV_QPT_RC))
		verdict = rx_other(qp, view, now);
	else if (op_is_response(view->op))
		comp_rx(qp, view, now);
	else
		verdict = resp_rx(qp, view);
	if (unlikely(verdict != VERDICT_GO))
		verdict_apply(qp, view->psn, verdict);
}

static bool
req_wants_tx(const struct qp *qp)
{
	const struct requester *req = &qp->req;

	if (qp->type == IBV_QPT_UD)
		return ud_wants_tx(qp);
	if (unlikely(qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE))
		return qp_has_flush(qp);
	if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) ||
		req->rnr_deadline != TIME_NEVER)
		return false;
	if (unlikely(req->tlp_state == TLP_DUE))
		return true;
	return req_below_max_unacked(qp) && req_has_next(qp);
}

/* Builds responses in PSN order: those of READs and atomics, and the pending
 * acknowledgement. */
static unsigned
resp_tx(struct qp *qp, struct pkt *pkts, unsigned n)
{
	struct burst burst = {0, VERDICT_GO};

	assert(qp->res_pending == resp_res_pending(qp));
	if (unlikely(qp->res_pending))
		burst = resp_res_tx(qp, pkts, n);
	if (unlikely(burst.verdict != VERDICT_GO))
		verdict_apply(qp, qp->resp.ack_psn, burst.verdict);
	/* A pending acknowledgement comes after the responses of all READs before it. */
	if (qp->aeth_pending != 0 && burst.built < n && !qp->res_pending)
		resp_ack_build(qp, &pkts[burst.built++]);
	return burst.built;
}

unsigned
qp_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	unsigned built = 0;

	/* Responses first: READ responses and the pending acknowledgement. Requests get
	 * at least half of n, if there are any and n is not 1. */
	if (qp_has_response_pending(qp) && n != 0)
		built = resp_tx(qp, pkts, req_wants_tx(qp) ? RTE_MAX(n / 2, 1u) : n);
	if (unlikely(qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE))
		qp_flush(qp);
	else if (qp->type == IBV_QPT_UD)
		built = ud_tx(qp, pkts, n);
	else if (built < n)
		built += req_tx(qp, pkts + built, n - built, now);
	qp->stats.tx_packets += built;
	return built;
}

bool
qp_wants_tx(const struct qp *qp)
{
	return qp_has_response_pending(qp) || req_wants_tx(qp);
}

void
qp_timeout(struct qp *qp, uint64_t now)
{
	if (qp->req.rnr_deadline <= now)
		qp->req.rnr_deadline = TIME_NEVER;
	if (qp->req.tlp_deadline <= now)
		tlp_timeout(qp, now);
	if (qp->req.ack_deadline <= now)
		comp_ack_timeout(qp);
}
