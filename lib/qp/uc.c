/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Unreliable connections (IBA 9.8.2): the messages of RC without acknowledgements. A send
 * completes when its last packet has been built. A receiver that misses a packet discards
 * the message and resumes with the next FIRST or ONLY, whatever its PSN. A request that
 * fails a check does the same, except that local errors move the QP to ERR. The receive
 * of a discarded message serves the next one. A receive from an SRQ is not kept, because
 * other QPs share the SRQ: it completes in error, and the QP goes on (IBA 9.9.3.1.5,
 * class E). Bytes already written by a WRITE stay.
 */
#include "qp/qp_state.h"
#include "qp/req.h"
#include "qp/resp.h"
#include "qp/transport.h"

enum verdict
uc_discard(struct qp *qp, enum ibv_wc_status status, uint32_t vendor)
{
	struct responder *resp = &qp->resp;

	resp->msg = OP_UNKNOWN;
	qp->shared->stats->drop[DROP_discarded]++;
	if (qp->srq == NULL || !resp->wqe_held)
		return VERDICT_GO;
	resp->wqe_held = false;
	return qp_complete_recv_error(qp, qp->wqe->wr_id, status, vendor)
		       ? VERDICT_GO
		       : FAULT_RECV_CQ_FULL;
}

enum verdict
uc_rx(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;
	bool first = op_is_first(v->op);
	enum verdict verdict = VERDICT_GO;

	resp_established(qp);
	if (resp->msg != OP_UNKNOWN && (first || v->psn != resp->epsn))
		verdict = uc_discard(qp, IBV_WC_REM_INV_REQ_ERR, VENDOR_OPCODE_ORDER);
	if (unlikely(verdict != VERDICT_GO))
		return verdict;
	resp->epsn = psn_add(v->psn, 1);
	if (first || resp->msg != OP_UNKNOWN)
		return resp_request(qp, v);
	qp->shared->stats->drop[DROP_psn_gap]++;
	return VERDICT_DROP;
}

struct burst
uc_sent(struct qp *qp, struct burst burst)
{
	struct requester *req = &qp->req;

	while (req->una_idx != req->next_idx) {
		uint32_t end = psn_range_end(sq_psn_range(&qp->sq, req->una_idx));

		if (unlikely(!qp_complete_oldest(qp))) {
			burst.built -= (req->next_psn - end) & PSN_MASK;
			return (struct burst){burst.built, FAULT_SEND_CQ_FULL};
		}
	}
	req->una_psn = req->next_psn;
	req_check_drained(qp);
	if (burst.verdict == VERDICT_GO)
		burst.verdict = req_oldest_fault(req);
	return burst;
}
