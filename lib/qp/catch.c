/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Catches: a message of one packet that has not come yet, but most likely will. Which receive it
 * takes, and that its bytes may go there, is looked up before; what is left to do when it is there
 * are a copy and a completion. Whatever is not as it was takes the way of all requests (qp_io.c,
 * responder.c), which says and does the same.
 */
#include "qp/ball.h"
#include "qp/qp_internal.h"

bool
qp_expects(const struct qp *qp, const struct pkt_view *view)
{
	return view->dest_qpn == qp->qpn && view->opcode == OPCODE_RC_SEND_ONLY &&
	       view->ack_req && !view->solicited && (view->tclass & ECN_CE) != ECN_CE &&
	       view->payload_len != 0 && view->payload_len <= qp_pmtu(qp) &&
	       qp->state == IBV_QPS_RTS && qp_admit(qp, view) == DROP_none;
}

/* Where receives come from, if there is nothing to it but to take one. */
static struct recv_ring *
plain_ring(const struct qp *qp)
{
	struct srq *srq = qp->srq;

	if (srq == NULL)
		return qp->rq;
	return srq->shared || srq_limit(srq) != 0 ? NULL : &srq->ring;
}

bool
qp_catch(const struct qp *qp, struct qp_catch *ball, uint32_t len)
{
	struct recv_ring *ring = plain_ring(qp);
	const struct recv_slot *slot = ring != NULL ? recv_ring_peek(ring) : NULL;
	struct sge sge;

	if (slot == NULL || slot->num_sge != 1)
		return false;
	sge = slot->sge[0];
	ball->proof = key_proof(qp->shared->keys, sge.lkey);
	ball->to = sge_host(qp->shared->keys, qp->srq != NULL ? qp->srq->pd : qp->pd,
		&sge, 0, len, IBV_ACCESS_LOCAL_WRITE);
	if (ball->to == NULL || sge.len < len)
		return false;
	ball->wr_id = slot->wr_id;
	ball->ring = ring;
	ball->cons = ring->cons;
	ball->len = len;
	return true;
}

/* Whether the message is the one that is due, and nothing else is to be said of it. */
static bool
is_due(const struct qp *qp, uint32_t psn)
{
	const struct responder *resp = &qp->resp;

	static_assert(RESP_OPEN == 0 && OP_UNKNOWN == 0, "in one comparison");
	return qp->state == IBV_QPS_RTS && psn == resp->epsn &&
	       (resp->wait | resp->msg | resp->wqe_held) == 0 &&
	       (qp->aeth_pending == 0 || qp->aeth_pending == AETH_PENDING_ACK) &&
	       (psn + 1) % RES_EXPIRE_EVERY != 0;
}

/* Whether its receive is still there, and its completion has room. */
static bool
is_ready(const struct qp *qp, const struct qp_catch *ball)
{
	return ball->ring->cons == ball->cons && key_proved(&ball->proof) &&
	       (qp->srq == NULL || !srq_failed(qp->srq)) && cq_plain(qp->recv_cq);
}

bool
qp_catch_take(
	struct qp *qp, const struct qp_catch *ball, uint32_t psn, const uint8_t *payload)
{
	struct responder *resp = &qp->resp;

	if (unlikely(!is_due(qp, psn) || !is_ready(qp, ball)))
		return false;
	/* The point of no return. */
	recv_ring_pop(ball->ring);
	payload_copy(ball->to, payload, ball->len);
	cq_put_plain(qp->recv_cq, &(struct cqe){
					  .wr_id = ball->wr_id,
					  .byte_len = ball->len,
					  .qpn = qp->qpn,
					  .src_qpn = qp->dest_qpn,
					  .opcode = IBV_WC_RECV,
				  });
	resp->epsn = psn_add(psn, 1);
	resp->msn = psn_add(resp->msn, 1);
	resp->ack_psn = psn;
	qp->aeth_pending = AETH_PENDING_ACK;
	qp->stats.rx_packets++;
	qp->stats.rx_msgs++;
	qp->shared->stats->rx_roce++;
	return true;
}
