/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder (IBA 9.7.4, 9.9.3): takes requests in, in the order of checks of
 * IBA 9.7.4.1, and owes at most one acknowledgement, the newest: it speaks for all before
 * it.
 */
#include <errno.h>

#include "qp/internal.h"

/* Bytes of the longest message (IBA 9.4.1), whatever the receive has room for. */
#define MSG_MAX (UINT32_C(1) << 31)

void
resp_reset(struct qp *qp, uint32_t psn)
{
	qp->resp = (struct responder){.epsn = psn};
}

/* A request that the connection does not survive. The receive in hand tells the
 * application; without one an event does (IBA 9.9.3.1, table 58). */
static void
fatal(struct qp *qp, const struct pkt_view *v, uint8_t syndrome,
	enum ibv_wc_status status, enum qp_vendor_err vendor)
{
	struct responder *resp = &qp->resp;

	resp->owed = OWED(syndrome);
	resp->ack_psn = v->psn;
	if (resp->wqe_held) {
		resp->wqe_held = false;
		qp_complete_recv_error(qp, qp->wqe.wr_id, status, vendor);
	} else if (syndrome == AETH_NAK_INV_REQ) {
		qp_event(qp, QP_EVENT_REQ_ERR);
	} else if (syndrome == AETH_NAK_ACCESS) {
		qp_event(qp, QP_EVENT_ACCESS_ERR);
	}
	qp_error(qp);
}

static void
invalid_request(struct qp *qp, const struct pkt_view *v, enum qp_vendor_err vendor)
{
	fatal(qp, v, AETH_NAK_INV_REQ, IBV_WC_REM_INV_REQ_ERR, vendor);
}

/* PSN behind ePSN + 1 or more: something is missing (C9-108, C9-114). */
static void
gap(struct qp *qp, uint32_t psn)
{
	struct responder *resp = &qp->resp;

	if (resp->wait == RESP_RNR) {
		qp->env->stats->drop[DROP_rnr_wait]++;
		return;
	}
	qp->env->stats->drop[DROP_psn_gap]++;
	if (resp->wait == RESP_GAP) {
		if (psn_diff(psn, resp->gap_high) > 0)
			resp->gap_high = psn;
		return;
	}
	resp->wait = RESP_GAP;
	resp->gap_high = psn;
	resp->owed = OWED_SEQ_NAK;
	qp->stats.seq_nak_sent++;
	qp->env->stats->seq_nak_sent++;
}

/* Not executed again, acknowledged again (C9-105); an owed NAK says as much. */
static void
duplicate(struct qp *qp)
{
	struct responder *resp = &qp->resp;

	qp->stats.duplicates++;
	qp->env->stats->duplicates++;
	if (resp->owed != 0 && resp->owed != OWED_ACK)
		return;
	resp->owed = OWED_ACK;
	resp->ack_psn = psn_add(resp->epsn, PSN_MASK);
}

/* FIRST or ONLY between messages, MIDDLE or LAST of the same kind inside one (C9-109). */
static bool
opcode_follows(const struct responder *resp, const struct op_row *op)
{
	if (resp->msg == OP_UNKNOWN)
		return op_is_first(op);
	return op->kind == resp->msg && !op_is_first(op);
}

/* C9-113: FIRST and MIDDLE are full, LAST has at least a byte, none has more than the
 * MTU. */
static bool
length_fits(const struct qp *qp, const struct pkt_view *v)
{
	if (!op_is_last(v->op))
		return v->payload_len == qp_pmtu(qp);
	if (!op_is_first(v->op) && v->payload_len == 0)
		return false;
	return v->payload_len <= qp_pmtu(qp);
}

static void
rnr(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;

	resp->wait = RESP_RNR;
	resp->owed = OWED(AETH_RNR_NAK | qp->min_rnr_timer);
	resp->ack_psn = v->psn;
	qp->stats.rnr_nak_sent++;
	qp->env->stats->rnr_nak_sent++;
}

/* Takes the receive for a new message; false when the packet is dealt with. */
static bool
take_receive(struct qp *qp, const struct pkt_view *v)
{
	int rc = qp->srq != NULL ? srq_take(qp->srq, &qp->wqe)
				 : recv_ring_take(qp->rq, &qp->wqe);

	if (unlikely(rc == -EAGAIN)) {
		rnr(qp, v);
		return false;
	}
	if (unlikely(rc < 0)) { /* the SRQ is in the error state */
		fatal(qp, v, AETH_NAK_REM_OP, IBV_WC_LOC_QP_OP_ERR, VENDOR_WQE);
		return false;
	}
	qp->resp.wqe_held = true;
	qp->resp.received = 0;
	qp->resp.pos = (struct sge_pos){0};
	return true;
}

/* Payload to where the receive says; false when it does not fit or may not be written. */
static bool
place(struct qp *qp, const struct pkt_view *v)
{
	int rc = 0;

	if (unlikely(qp->resp.received + v->payload_len > MSG_MAX))
		rc = -EMSGSIZE;
	else if (v->payload_len != 0)
		rc = sge_scatter(qp->env->keys, qp->srq != NULL ? qp->srq->pd : qp->pd,
			qp->wqe.sge, qp->wqe.num_sge, &qp->resp.pos, v->payload,
			v->payload_len);
	if (likely(rc == 0))
		return true;
	if (rc == -EMSGSIZE) /* C9-116: here a local length error, there an invalid
				request */
		fatal(qp, v, AETH_NAK_INV_REQ, IBV_WC_LOC_LEN_ERR, VENDOR_RECV_SHORT);
	else
		fatal(qp, v, AETH_NAK_REM_OP, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
	return false;
}

static bool
complete_receive(struct qp *qp, const struct pkt_view *v)
{
	bool imm = (v->op->hdrs & HDR_IMM) != 0;
	struct cqe cqe = {
		.wr_id = qp->wqe.wr_id,
		.byte_len = qp->resp.received,
		.imm = imm ? view_imm_be(v) : 0,
		.qpn = qp->qpn,
		.src_qpn = qp->dest_qpn,
		.opcode = IBV_WC_RECV,
		.wc_flags = imm ? IBV_WC_WITH_IMM : 0,
	};

	qp->resp.wqe_held = false;
	if (likely(cq_put(qp->recv_cq, &cqe)))
		return true;
	qp_event(qp, QP_EVENT_FATAL);
	fatal(qp, v, AETH_NAK_REM_OP, IBV_WC_LOC_QP_OP_ERR, VENDOR_NONE);
	return false;
}

/* Executed: move on, and owe an acknowledgement where one was asked for. */
static void
accept(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;
	bool answer = v->ack_req;

	resp->epsn = psn_add(v->psn, 1);
	if (unlikely(resp->owed != 0 && resp->owed != OWED_ACK)) {
		/* A sequence NAK that has not left yet stays owed while something behind
		 * ePSN was dropped: it then names the new ePSN. */
		if (resp->owed == OWED_SEQ_NAK &&
			psn_diff(resp->epsn, resp->gap_high) <= 0)
			return;
		answer = true; /* as the NAK was one for what came before it */
	}
	resp->wait = RESP_OPEN;
	if (answer) {
		resp->owed = OWED_ACK;
		resp->ack_psn = v->psn;
	}
}

static void
send_packet(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;
	bool first = op_is_first(v->op);

	/* Length before the receive: a packet that cannot be must not cost one. */
	if (unlikely(!length_fits(qp, v))) {
		invalid_request(qp, v, VENDOR_PACKET_LENGTH);
		return;
	}
	if (first && !take_receive(qp, v))
		return;
	if (!place(qp, v))
		return;
	/* The point of no return was the copy. */
	resp->received += v->payload_len;
	resp->msg = op_is_last(v->op) ? OP_UNKNOWN : OP_SEND;
	if (op_is_last(v->op)) {
		if (!complete_receive(qp, v))
			return;
		resp->msn = psn_add(resp->msn, 1);
		qp->stats.rx_msgs++;
	}
	accept(qp, v);
}

/* IBA 11.6.3.5: the first packet in RTR tells a passive side that the connection stands.
 */
static void
established(struct qp *qp)
{
	if (qp->state == IBV_QPS_RTR && !qp->comm_est_raised) {
		qp->comm_est_raised = true;
		qp_event(qp, QP_EVENT_COMM_EST);
	}
}

void
resp_rx(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;
	int32_t ahead = psn_diff(v->psn, resp->epsn);

	established(qp);
	if (unlikely(ahead > 0)) {
		gap(qp, v->psn);
		return;
	}
	if (unlikely(ahead < 0)) {
		duplicate(qp);
		return;
	}
	if (unlikely(!opcode_follows(resp, v->op)))
		invalid_request(qp, v, VENDOR_OPCODE_ORDER);
	else if (unlikely(v->op->kind != OP_SEND || (v->op->hdrs & HDR_IETH) != 0))
		invalid_request(
			qp, v, VENDOR_NONE); /* an operation this QP does not have */
	else
		send_packet(qp, v);
}

void
resp_tx(struct qp *qp, struct pkt *pkt)
{
	struct responder *resp = &qp->resp;
	struct bth_fields bth = {
		.dest_qpn = qp->dest_qpn,
		.psn = resp->owed == OWED_SEQ_NAK ? resp->epsn : resp->ack_psn,
		.pkey = qp->pkey,
		.opcode = OPCODE_RC_ACKNOWLEDGE,
	};
	struct aeth *aeth = (struct aeth *)frame_begin(&qp->hdr, pkt, &bth, 0);

	aeth->syndrome = (uint8_t)(resp->owed - 1);
	be24_put(aeth->msn, resp->msn);
	frame_end(pkt, 0, frame_crc(&qp->hdr, pkt));
	resp->owed = 0;
}
