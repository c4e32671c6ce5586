/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* A QP's completions of send requests, and in error; its asynchronous events. */
#include "qp/counting.h"
#include "qp/mbuf_send.h"
#include "qp/qp_state.h"
#include "qp/req.h"

void RARE
qp_event(struct qp *qp, enum ibv_event_type event)
{
	struct qp_listener *listener;

	/* The application that handles the event finds the completions that precede it. */
	cq_gather_flush(&qp->shared->gather);
	event_raise(&qp->events, event);
	LIST_FOREACH(listener, &qp->listeners, link)
	event_raise(&listener->events, event);
}

/* No completion can report that the CQ has overflowed, so an event does. The QP then goes
 * to ERR. */
void
qp_raise_fatal(struct qp *qp)
{
	if (qp->fatal_raised || qp->state == IBV_QPS_ERR)
		return;
	qp->fatal_raised = true;
	qp_event(qp, IBV_EVENT_QP_FATAL);
}

static bool
cqe_put(struct qp *qp, struct cq *cq, struct cqe *cqe)
{
	if (likely(cq_complete(&qp->shared->gather, cq, cqe, &qp->shared->now)))
		return true;
	qp_raise_fatal(qp);
	return false;
}

bool
qp_complete_send(struct qp *qp, uint32_t idx, enum ibv_wc_status status, uint32_t vendor)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, idx);
	struct cqe cqe = {
		.wr_id = wqe->wr_id,
		.byte_len = status == IBV_WC_SUCCESS ? wqe->len : vendor,
		.qpn = qp->qpn,
		.sq_end = idx + 1,
		.opcode = wr_row(wqe)->wc,
		.status = (uint8_t)status,
	};

	if (unlikely(status != IBV_WC_SUCCESS) && (wqe->flags & WQE_COUNTED) != 0)
		qp_count_send(qp, idx, true);
	return cqe_put(qp, qp->send_cq, &cqe);
}

bool
qp_complete_recv_error(
	struct qp *qp, uint64_t wr_id, enum ibv_wc_status status, uint32_t vendor)
{
	struct cqe cqe = {
		.wr_id = wr_id,
		.byte_len = vendor,
		.qpn = qp->qpn,
		.opcode = IBV_WC_RECV,
		.status = (uint8_t)status,
	};

	if (unlikely(qp->resp.counts))
		qp_count_recv(qp, 0, true);
	return cqe_put(qp, qp->recv_cq, &cqe);
}

/* The oldest request is measured, or has an mbuf, or is counted, or is signaled. */
static __rte_noinline bool
complete_marked(struct qp *qp, uint32_t marks)
{
	if (marks & PSN_RANGE_TIMED)
		req_time_end(qp);
	if (marks & PSN_RANGE_MBUF)
		mbuf_send_done(qp, qp->req.una_idx);
	if (marks & PSN_RANGE_COUNTED)
		qp_count_send(qp, qp->req.una_idx, false);
	if (marks & PSN_RANGE_SIGNALED)
		return qp_complete_send(qp, qp->req.una_idx, IBV_WC_SUCCESS, VENDOR_NONE);
	qp->shared->stats->cqe_saved++;
	return true;
}

bool
qp_complete_oldest(struct qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t marks = sq_psn_range(&qp->sq, req->una_idx)->end & PSN_RANGE_MARKS;

	qp->stats.tx_msgs++;
	if (likely(marks == 0))
		qp->shared->stats->cqe_saved++;
	else if (!complete_marked(qp, marks))
		return false;
	req->una_idx++;
	return true;
}
