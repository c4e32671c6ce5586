/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Applies the fault of a packet to its QP: a NAK, a completion in error or an event, and an
 * error state. */
#include "qp/flight.h"
#include "qp/mbuf_receive.h"
#include "qp/mbuf_send.h"
#include "qp/qp_state.h"
#include "qp/request_fault.h"
#include "qp/transport.h"

struct fault_row {
	uint8_t syndrome; /* of the AETH; 0: the fault is the requester's */
	uint8_t status;   /* enum ibv_wc_status */
	uint8_t vendor;   /* enum qp_vendor_err */
};

static const struct fault_row fault_rows[] = {
#define FAULT(name, syndrome, status, vendor) [FAULT_##name] = {syndrome, status, vendor},
#define SEND_FAULT(name, status, vendor) [FAULT_##name] = {0, status, vendor},
#include "qp/fault.def"
};

/* The current receive reports the fault to the application. Without one an event does
 * (IBA 9.9.3.1, table 58). */
static void
recv_fail(struct qp *qp, const struct fault_row *fault)
{
	mbuf_receive_drop(qp);
	if (qp->resp.wqe_held) {
		qp->resp.wqe_held = false;
		qp_complete_recv_error(qp, qp->wqe->wr_id,
			(enum ibv_wc_status)fault->status, fault->vendor);
	} else if (qp->state == IBV_QPS_ERR) {
		; /* an event or a completion has reported why the QP is in ERR */
	} else if (fault->syndrome == AETH_NAK_INV_REQ) {
		qp_event(qp, IBV_EVENT_QP_REQ_ERR);
	} else if (fault->syndrome == AETH_NAK_ACCESS) {
		qp_event(qp, IBV_EVENT_QP_ACCESS_ERR);
	}
}

/* Moves the QP to ERR because of a fault. */
static void
error_enter(struct qp *qp)
{
	bool first = qp->state != IBV_QPS_ERR;

	qp_error(qp);
	if (unlikely(qp->shared->flight_on) && first)
		flight_error(qp);
}

static void
request_refuse(struct qp *qp, uint32_t psn, const struct fault_row *fault)
{
	/* UC sends no NAK: discard the message. Only a local error moves the QP to ERR. */
	if (qp->type == IBV_QPT_UC && fault->syndrome != AETH_NAK_REM_OP) {
		if (uc_discard(qp, (enum ibv_wc_status)fault->status, fault->vendor) !=
			VERDICT_GO)
			error_enter(qp);
		return;
	}
	if (qp_reliable(qp)) {
		qp->aeth_pending = AETH_PENDING(fault->syndrome);
		qp->resp.ack_psn = psn;
	}
	recv_fail(qp, fault);
	error_enter(qp);
}

/* An error always makes a completion, signaled or not (ibv_post_send(3)). */
static void
send_fail(struct qp *qp, const struct fault_row *fault)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, qp->req.una_idx);
	bool injected = request_is_to_fail(wqe);

	if (fault->status == IBV_WC_RETRY_EXC_ERR)
		qp->shared->stats->retries_exceeded++;
	else if (fault->status == IBV_WC_RNR_RETRY_EXC_ERR)
		qp->shared->stats->rnr_retries_exceeded++;
	mbuf_send_done(qp, qp->req.una_idx);
	qp_complete_send(qp, qp->req.una_idx++,
		(enum ibv_wc_status)(injected ? wqe->status : fault->status),
		injected ? wqe->rkey : fault->vendor);
	if (qp_reliable(qp))
		error_enter(qp);
	else
		qp_sq_error(qp);
}

static void
fault_note(struct qp *qp, uint32_t psn, enum verdict verdict, bool refused)
{
	if (refused)
		flight_note(qp, FLIGHT_REFUSED, psn, verdict);
	else
		flight_note(qp, FLIGHT_REQUEST_FAILED, qp->req.una_psn, verdict);
}

void RARE
verdict_apply(struct qp *qp, uint32_t psn, enum verdict verdict)
{
	const struct fault_row *fault;

	if (verdict <= VERDICT_LOCAL)
		return;
	if (verdict == FAULT_RECV_CQ_FULL || verdict == FAULT_SEND_CQ_FULL)
		qp_raise_fatal(qp);
	fault = &fault_rows[verdict == FAULT_SEND_CQ_FULL ? 0 : verdict];
	fault_note(qp, psn, verdict, fault->syndrome != 0);
	if (verdict == FAULT_SEND_CQ_FULL) {
		error_enter(qp);
		return;
	}
	if (fault->syndrome != 0)
		request_refuse(qp, psn, fault);
	else
		send_fail(qp, fault);
}

void RARE
qp_completion_lost(struct qp *qp, bool receive)
{
	/* A NAK of the last packet: the one of the lost completion is not known any more. */
	verdict_apply(qp, psn_add(qp->resp.epsn, (uint32_t)-1),
		receive ? FAULT_RECV_CQ_FULL : FAULT_SEND_CQ_FULL);
}
