/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The error states, RESET, and the completions that they cause (IBA 10.3.1.7,
 * 10.8.3.1). */
#include <string.h>

#include "qp/flight.h"
#include "qp/hold.h"
#include "qp/loss.h"
#include "qp/mbuf_receive.h"
#include "qp/mbuf_send.h"
#include "qp/qp_state.h"
#include "qp/req.h"
#include "qp/resp.h"
#include "qp/tlp.h"
#include "qp/transport.h"

void
qp_fail(struct qp *qp)
{
	qp_raise_fatal(qp);
	qp_error(qp);
}

void
qp_flush(struct qp *qp)
{
	uint32_t end = sq_posted(&qp->sq);

	while (qp->req.una_idx != end) {
		mbuf_send_done(qp, qp->req.una_idx);
		qp_complete_send(
			qp, qp->req.una_idx++, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	}
	for (uint32_t i = qp->req.started_idx; (int32_t)(end - i) > 0; i++)
		*sq_psn_range(&qp->sq, i) = (struct psn_range){.first_psn = PSN_NONE};
	qp->req.next_idx = qp->req.started_idx = end;
	/* A completion found no room in the CQ: the QP goes to ERR, also from SQE. */
	if (unlikely(qp->fatal_raised))
		qp_error(qp);
	if (qp->rq == NULL || qp->state != IBV_QPS_ERR)
		return;
	while (recv_ring_take(qp->rq, qp->wqe) == 0)
		qp_complete_recv_error(
			qp, qp->wqe->wr_id, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
}

void
qp_attr_default(struct qp *qp)
{
	qp->path = (struct qp_path){.port_num = 0};
	qp->params = (struct qp_params){.path_mtu = IBV_MTU_256};
	qp->pmtu_shift = 7 + IBV_MTU_256;
	qp->dest_qpn = 0;
	qp->access = 0;
	qp->extensions = 0;
	qp->ece_set = false;
}

static void
stop_requester(struct qp *qp)
{
	struct requester *req = &qp->req;

	if (req->missing)
		loss_end(qp);
	req_time_drop(qp);
	req->next_psn = req->una_psn;
	req->reads = 0;
	req->ack_deadline = TIME_NEVER;
	req->rnr_deadline = TIME_NEVER;
	tlp_cancel(qp);
	req->fail_verdict = VERDICT_GO;
	req_account(qp);
	qp->req.draining = false;
}

/* IBA 10.3.1.6: the send queue of an unreliable QP stops, and receiving goes on. */
void
qp_sq_error(struct qp *qp)
{
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	flight_note(qp, FLIGHT_STATE, 0, flight_pair(qp->state, IBV_QPS_SQE));
	__atomic_store_n(&qp->state, IBV_QPS_SQE, __ATOMIC_RELEASE);
	stop_requester(qp);
	qp_flush(qp);
}

void
qp_error(struct qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	flight_note(qp, FLIGHT_STATE, 0, flight_pair(qp->state, IBV_QPS_ERR));
	__atomic_store_n(&qp->state, IBV_QPS_ERR, __ATOMIC_RELEASE);
	/* A thread in post_recv that still saw the old state has published its WQE before
	 * the ring is read below, or it sees the new state and rings the doorbell. Pairs
	 * with the fence in verbs_post_recv(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	stop_requester(qp);
	hold_drop(qp);
	qp->resp.cnp_due = false;
	resp_due_changed(qp);
	mbuf_receive_drop(qp);
	if (qp->resp.wqe_held) {
		qp->resp.wqe_held = false;
		qp_complete_recv_error(
			qp, qp->wqe->wr_id, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	}
	claim_flush(qp);
	qp_flush(qp);
	/* o11-5.2.5: once, after the last receive completion. */
	if ((qp->srq != NULL || qp->type == IBV_QPT_XRC_RECV) && !qp->last_wqe_raised) {
		qp->last_wqe_raised = true;
		qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}

/* Cleans the QP's CQEs. Those of an XRC target's receives stay: they are the SRQ's and
 * free nothing of the QP. */
static void
cqes_clean(struct qp *qp)
{
	if (qp->type == IBV_QPT_XRC_RECV)
		return;
	mbuf_cqes_drop(qp);
	cq_clean(qp->send_cq, qp->qpn);
	if (qp->recv_cq != NULL && qp->recv_cq != qp->send_cq)
		cq_clean(qp->recv_cq, qp->qpn);
}

void
qp_reset_locks(struct qp *qp, struct app_locks *set)
{
	if (qp->type == IBV_QPT_XRC_RECV)
		return;
	cq_add_lock(qp->send_cq, set);
	if (qp->recv_cq != NULL)
		cq_add_lock(qp->recv_cq, set);
	if (!qp->sq.unlocked)
		app_locks_add(set, &qp->sq.lock);
}

void
qp_reset(struct qp *qp)
{
	if (qp->sq.flight != NULL)
		flight_write(qp, FLIGHT_STATE, 0, flight_pair(qp->state, IBV_QPS_RESET));
	__atomic_store_n(&qp->state, IBV_QPS_RESET, __ATOMIC_RELEASE);
	stop_requester(qp);
	/* Before sq_clear(): a CQE polled after it would free slots of new requests. */
	cqes_clean(qp);
	mbuf_send_drop(qp);
	sq_clear(&qp->sq);
	if (qp->rq != NULL) {
		recv_ring_lock(qp->rq);
		recv_ring_clear(qp->rq);
		recv_ring_unlock(qp->rq);
	}
	/* IBA 10.6.7.2.6: memory windows that the QP has bound are invalidated with
	 * it. */
	if (!LIST_EMPTY(&qp->sq.bound_mws))
		mw_invalidate_all(qp->shared->keys, &qp->sq.bound_mws);
	qp_attr_default(qp);
	req_reset(qp, 0);
	resp_set_depth(qp, 0);
	hold_drop(qp);
	mbuf_receive_drop(qp);
	claim_forget(qp);
	resp_reset(qp, 0);
	if (qp->type == IBV_QPT_XRC_RECV)
		xrc_reset(qp);
	qp->sched.resolved = false;
	qp->last_wqe_raised = false;
	qp->fatal_raised = false;
	qp->comm_est_raised = false;
	qp->cnp_timed = false;
}
