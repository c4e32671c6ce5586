/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Direct placement: checks the ICRC of a long packet in the pass that copies the payload
 * to its destination. So a damaged packet is dropped after it was written there. That is
 * harmless if its PSN is the expected one and the packets before it leave only one
 * possible destination. Either the resent packet overwrites the bytes before the message
 * completes, or the message ends before these bytes, and its completion does not cover
 * them. Until the completion the memory of a WRITE in progress is undefined (IBA 9.5,
 * transaction ordering).
 *
 * Only MIDDLE packets qualify. The destination of a FIRST packet depends on the packet
 * itself, which may be damaged. A LAST packet ends the bytes that an application may poll
 * without waiting for a completion.
 */
#include "qp/qp_state.h"

/* Destination of a MIDDLE packet of a SEND; NULL: none. */
static uint8_t *
send_target(const struct qp *qp, uint32_t len)
{
	const struct responder *resp = &qp->resp;
	struct sge_pos pos = resp->pos;
	struct sge_cursor c;

	if (!resp->wqe_held)
		return NULL;
	c = receive_cursor(qp, &pos);
	return sge_holds(&c, len) ? sge_host(&c, len, IBV_ACCESS_LOCAL_WRITE) : NULL;
}

/* Destination of a MIDDLE packet of a WRITE; NULL: none. */
static uint8_t *
write_rest_target(const struct qp *qp, uint32_t len)
{
	const struct responder *resp = &qp->resp;

	if (len >= resp->left || (qp->access & IBV_ACCESS_REMOTE_WRITE) == 0)
		return NULL;
	return key_check_remote(qp->shared->keys, resp->rkey, qp->pd, qp->qpn, resp->va,
		resp->left, len, IBV_ACCESS_REMOTE_WRITE);
}

static uint8_t *
request_target(const struct qp *qp, const struct pkt_view *v)
{
	if (v->psn != qp->resp.epsn || v->op->kind != qp->resp.msg)
		return NULL;
	return v->op->kind == OP_WRITE ? write_rest_target(qp, v->payload_len)
				       : send_target(qp, v->payload_len);
}

/* Destination in the oldest READ: req->read_pos, where the packet before this one left
 * it. */
static uint8_t *
response_target(const struct qp *qp, const struct pkt_view *v)
{
	const struct requester *req = &qp->req;
	const struct send_wqe *wqe = sq_slot(&qp->sq, req->una_idx);
	struct sge_pos pos = req->read_pos;
	struct sge_cursor c = request_cursor(qp, wqe, &pos);

	if (v->psn != req->una_psn || v->psn != req->read_pos_psn ||
		req->una_idx == req->started_idx ||
		v->psn == sq_psn_range(&qp->sq, req->una_idx)->first_psn ||
		wqe->opcode != IBV_WR_RDMA_READ || !sge_holds(&c, v->payload_len))
		return NULL;
	return sge_host(&c, v->payload_len, IBV_ACCESS_LOCAL_WRITE);
}

static uint8_t *
direct_place_target(const struct qp *qp, const struct pkt_view *v)
{
	if (v->payload_len != qp_pmtu(qp) || qp->type != IBV_QPT_RC ||
		qp_admit(qp, v) != DROP_none)
		return NULL;
	return op_is_response(v->op) ? response_target(qp, v) : request_target(qp, v);
}

bool
qp_icrc_check(const struct qp *qp, struct pkt_view *v)
{
	uint8_t *to;

	if (v->op->pos != POS_M || v->payload_len < icrc_copy_min ||
		qp->shared->direct_place_off)
		return icrc_check(v);
	to = direct_place_target(qp, v);
	if (to == NULL) {
		/* A message in mbufs has no other place than its frames. */
		if (v->op->kind != OP_SEND || !srq_has_mbufs(qp->srq))
			qp->shared->stats->direct_place_missed++;
		return icrc_check(v);
	}
	qp->shared->stats->direct_placed++;
	v->payload_placed = true;
	__atomic_thread_fence(__ATOMIC_RELEASE); /* as in resp_write() */
	return icrc_check_copy(v, to);
}
