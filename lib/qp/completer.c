/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving half of the requester (IBA 9.7.5.2, 9.9.2): acknowledgements, NAKs and
 * the local ACK timeout; completes requests in order.
 */
#include "qp/internal.h"

void
comp_check_drained(struct qp *qp)
{
	if (!qp->draining || qp->req.una_idx != qp->req.started_idx)
		return;
	qp->draining = false;
	if (qp->sqd_notify)
		qp_event(qp, QP_EVENT_SQ_DRAINED);
}

void
comp_fail(struct qp *qp, enum ibv_wc_status status, enum qp_vendor_err vendor)
{
	uint32_t idx = qp->req.una_idx++;

	/* An error always makes a completion, signaled or not (ibv_post_send(3)). */
	qp_complete_send(qp, idx, status, vendor);
	qp_error(qp);
}

/* Completes the requests whose packets all lie before end; false when the CQ overflowed.
 */
static bool
complete_until(struct qp *qp, uint32_t end)
{
	struct requester *req = &qp->req;

	while (req->una_idx != req->started_idx) {
		const struct sq_note *note = sq_note(&qp->sq, req->una_idx);

		if (!note_before(note, end))
			break;
		qp->stats.tx_msgs++;
		if (!note->signaled)
			qp->env->stats->cqe_saved++;
		else if (!qp_complete_send(qp, req->una_idx, IBV_WC_SUCCESS, VENDOR_NONE))
			return false;
		req->una_idx++;
	}
	return true;
}

/* Every packet before end is acknowledged. False when that ended in the error state. */
static bool
advance(struct qp *qp, uint32_t end, uint64_t now)
{
	struct requester *req = &qp->req;

	if (psn_diff(end, req->una_psn) <= 0)
		return true;
	if (!complete_until(qp, end)) {
		qp_error(qp);
		return false;
	}
	req->una_psn = end;
	/* An acknowledgement of a first transmission can overtake the resending. */
	if (psn_diff(req->next_psn, end) < 0)
		req_rollback(qp, end);
	else
		req_account(qp);
	req->retry_left = qp->retry_cnt;
	req->rnr_left = qp->rnr_retry;
	req->nak_handled = false;
	req->rnr_deadline = TIME_NEVER;
	req->ack_deadline = req->next_psn != end && qp->timeout != 0
				    ? now + req_timeout_ns(qp)
				    : TIME_NEVER;
	if (req->fail_status != 0 && req->una_idx == req->fail_idx) {
		comp_fail(qp, (enum ibv_wc_status)req->fail_status,
			(enum qp_vendor_err)req->fail_vendor);
		return false;
	}
	comp_check_drained(qp);
	return true;
}

static void
rnr_nak(struct qp *qp, uint32_t psn, unsigned timer, uint64_t now)
{
	struct requester *req = &qp->req;

	/* An echo of the NAK that we already wait for. */
	if (req->rnr_deadline != TIME_NEVER && psn == req->una_psn)
		return;
	if (!advance(qp, psn, now))
		return;
	qp->stats.rnr_nak_received++;
	qp->env->stats->rnr_nak_received++;
	if (req->rnr_left == 0) {
		comp_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR, VENDOR_RNR_RETRIES);
		return;
	}
	if (qp->rnr_retry != 7) /* 7: without end (C9-146) */
		req->rnr_left--;
	/* The request did arrive: a long wait for a receive shall not use up the retries
	 * for what gets lost now and then. */
	req->retry_left = qp->retry_cnt;
	req_rollback(qp, psn);
	req->ack_deadline = TIME_NEVER;
	req->rnr_deadline = now + rnr_timer_ns[timer];
}

static void
seq_nak(struct qp *qp, uint32_t psn, uint64_t now)
{
	struct requester *req = &qp->req;
	bool waits = req->rnr_deadline != TIME_NEVER;

	if (!advance(qp, psn, now))
		return;
	qp->stats.seq_nak_received++;
	qp->env->stats->seq_nak_received++;
	/* During an RNR wait the peer may NAK what was in flight behind (rxe does); and
	 * one loss is resent for once. */
	if ((waits && req->rnr_deadline != TIME_NEVER) || req->nak_handled)
		return;
	if (req->retry_left == 0) {
		comp_fail(qp, IBV_WC_RETRY_EXC_ERR, VENDOR_SEQ_RETRIES);
		return;
	}
	req->retry_left--;
	req->nak_handled = true;
	req_rollback(qp, psn);
	req->ack_deadline = TIME_NEVER;
}

static void
fatal_nak(struct qp *qp, uint32_t psn, unsigned syndrome, uint64_t now)
{
	enum ibv_wc_status status = IBV_WC_BAD_RESP_ERR;

	if (!advance(qp, psn, now))
		return;
	if (syndrome == AETH_NAK_INV_REQ)
		status = IBV_WC_REM_INV_REQ_ERR;
	else if (syndrome == AETH_NAK_ACCESS)
		status = IBV_WC_REM_ACCESS_ERR;
	else if (syndrome == AETH_NAK_REM_OP)
		status = IBV_WC_REM_OP_ERR;
	comp_fail(qp, status,
		status == IBV_WC_BAD_RESP_ERR ? VENDOR_BAD_SYNDROME : VENDOR_REMOTE_NAK);
}

static void
acknowledge(struct qp *qp, uint32_t psn, unsigned syndrome, uint64_t now)
{
	switch (syndrome & AETH_TYPE_MASK) {
	case AETH_TYPE_ACK:
		advance(qp, psn_add(psn, 1), now);
		break;
	case AETH_TYPE_RNR:
		rnr_nak(qp, psn, syndrome & AETH_VALUE_MASK, now);
		break;
	default:
		if (syndrome == AETH_NAK_SEQ)
			seq_nak(qp, psn, now);
		else
			fatal_nak(qp, psn, syndrome, now);
		break;
	}
}

void
comp_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	const struct requester *req = &qp->req;

	if (unlikely(psn_diff(v->psn, req->una_psn) < 0)) {
		qp->env->stats->drop[DROP_stale_response]++;
		return;
	}
	if (unlikely(psn_diff(v->psn, req->sent_psn) >= 0)) {
		qp->env->stats->drop[DROP_ghost]++;
		return;
	}
	if (likely(v->op->kind == OP_ACK))
		acknowledge(qp, v->psn, view_aeth(v)->syndrome, now);
	else /* C9-121: nothing outstanding is answered by READ or ATOMIC responses */
		comp_fail(qp, IBV_WC_BAD_RESP_ERR, VENDOR_OPCODE_ORDER);
}

void
comp_ack_timeout(struct qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	(void)now;
	req->ack_deadline = TIME_NEVER;
	qp->stats.timeouts++;
	qp->env->stats->ack_timeouts++;
	if (req->retry_left == 0) {
		comp_fail(qp, IBV_WC_RETRY_EXC_ERR, VENDOR_ACK_TIMEOUT);
		return;
	}
	req->retry_left--;
	req->nak_handled = false;
	req_rollback(qp, req->una_psn);
}
