/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder (IBA 9.7.4, 9.9.3): checks requests in the order of IBA 9.7.4.1 and
 * executes them. */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>

#include "qp/qp_internal.h"

/* Bytes of the longest message (IBA 9.4.1), whatever the length of the receive. */
#define MSG_MAX (UINT32_C(1) << 31)

void
resp_reset(struct qp *qp, uint32_t psn)
{
	struct resp_res *res = qp->resp.res;
	uint32_t max = qp->resp.res_max;

	qp->resp = (struct responder){.epsn = psn, .res = res, .res_max = max};
	qp->aeth_pending = 0;
	resp_res_moved(qp);
}

/* A request that is fatal to the connection. The current receive reports it to the
 * application; without one an event does (IBA 9.9.3.1, table 58). */
void
resp_fatal(struct qp *qp, uint32_t psn, uint8_t syndrome, enum ibv_wc_status status,
	enum qp_vendor_err vendor)
{
	struct responder *resp = &qp->resp;

	if (qp->type == IBV_QPT_UC) {
		/* UC sends no NAK: discard the message. Only a local error moves the QP
		 * to ERR. */
		if (syndrome != AETH_NAK_REM_OP) {
			uc_discard(qp, status, vendor);
			return;
		}
	} else {
		qp->aeth_pending = AETH_PENDING(syndrome);
		resp->ack_psn = psn;
	}
	if (resp->wqe_held) {
		resp->wqe_held = false;
		qp_complete_recv_error(qp, qp->wqe->wr_id, status, vendor);
	} else if (qp->state == IBV_QPS_ERR) {
		; /* the QP raised the event of its first failure already */
	} else if (syndrome == AETH_NAK_INV_REQ) {
		qp_event(qp, QP_EVENT_REQ_ERR);
	} else if (syndrome == AETH_NAK_ACCESS) {
		qp_event(qp, QP_EVENT_ACCESS_ERR);
	}
	qp_error(qp);
}

static void RARE
invalid_request(struct qp *qp, const struct pkt_view *v, enum qp_vendor_err vendor)
{
	resp_fatal(qp, v->psn, AETH_NAK_INV_REQ, IBV_WC_REM_INV_REQ_ERR, vendor);
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

static void RARE
rnr_nak_queue(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;

	if (qp->type == IBV_QPT_UC) { /* drop the message, even at its LAST packet */
		resp->msg = OP_UNKNOWN;
		qp->shared->stats->drop[DROP_no_receive]++;
		return;
	}
	resp->wait = RESP_RNR;
	qp->aeth_pending = AETH_PENDING(AETH_RNR_NAK | qp->min_rnr_timer);
	resp->ack_psn = v->psn;
	qp->stats.rnr_nak_sent++;
	qp->shared->stats->rnr_nak_sent++;
}

/* Takes the receive for a new message. Returns false if the packet has been dealt
 * with. */
static bool
take_receive(struct qp *qp, const struct pkt_view *v)
{
	int rc = 0;

	/* UC: the receive of a discarded message serves the next. */
	if (likely(!qp->resp.wqe_held))
		rc = qp->srq != NULL ? srq_take(qp->srq, qp->wqe)
				     : recv_ring_take(qp->rq, qp->wqe);
	if (unlikely(rc == -EAGAIN)) {
		rnr_nak_queue(qp, v);
		return false;
	}
	if (unlikely(rc < 0)) { /* the SRQ is in the error state */
		resp_fatal(qp, v->psn, AETH_NAK_REM_OP, IBV_WC_LOC_QP_OP_ERR,
			VENDOR_SRQ_ERROR);
		return false;
	}
	qp->resp.wqe_held = true;
	if (v->op->kind == OP_SEND) {
		qp->resp.received = 0;
		qp->resp.pos = (struct sge_pos){0};
	}
	return true;
}

/* Copies the payload to where the receive says. Returns false if it does not fit or may
 * not be written. */
static bool
recv_payload_copy(struct qp *qp, const struct pkt_view *v)
{
	int rc = 0;

	if (unlikely(qp->resp.received + v->payload_len > MSG_MAX))
		rc = -EMSGSIZE;
	else if (v->payload_placed)
		qp->resp.pos.offset += v->payload_len;
	else if (v->payload_len != 0)
		rc = sge_scatter(qp->shared->keys, qp->srq != NULL ? qp->srq->pd : qp->pd,
			qp->wqe->sge, qp->wqe->num_sge, &qp->resp.pos, v->payload,
			v->payload_len);
	if (likely(rc == 0))
		return true;
	/* C9-116: a local length error here, an invalid request at the peer */
	if (rc == -EMSGSIZE)
		resp_fatal(qp, v->psn, AETH_NAK_INV_REQ, IBV_WC_LOC_LEN_ERR,
			VENDOR_RECV_SHORT);
	else
		resp_fatal(qp, v->psn, AETH_NAK_REM_OP, IBV_WC_LOC_PROT_ERR,
			VENDOR_RECV_SGE);
	return false;
}

/* Row 19 of docs/protocol.md 8.2, IBA 9.9.6.3 class J. Checked before the data is
 * written: a SEND with an rkey that this QP may not invalidate must write none. */
static bool RARE
may_invalidate(struct qp *qp, const struct pkt_view *v)
{
	if (mw_may_invalidate(
		    qp->shared->keys, qp->qpn, rte_be_to_cpu_32(view_imm_be(v))))
		return true;
	resp_fatal(qp, v->psn, AETH_NAK_ACCESS, IBV_WC_REM_INV_REQ_ERR,
		VENDOR_MEMORY_WINDOW);
	return false;
}

/* Invalidates the rkey that the completion is going to report. Returns the rkey. */
static uint32_t RARE
rkey_invalidate(struct qp *qp, const struct pkt_view *v)
{
	uint32_t rkey = rte_be_to_cpu_32(view_imm_be(v));

	mw_invalidate(qp->shared->keys, qp->qpn, rkey);
	return rkey;
}

static bool
complete_receive(struct qp *qp, const struct pkt_view *v)
{
	struct cqe cqe = {
		.wr_id = qp->wqe->wr_id,
		.byte_len = qp->resp.received,
		.qpn = qp->qpn,
		.src_qpn = qp->dest_qpn,
		.opcode =
			v->op->kind == OP_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.flags = v->solicited ? CQE_SOLICITED : 0,
	};

	if (v->op->hdrs & HDR_IMM) {
		cqe.imm = view_imm_be(v);
		cqe.wc_flags = IBV_WC_WITH_IMM;
	} else if (unlikely(v->op->hdrs & HDR_IETH)) {
		cqe.imm = rkey_invalidate(qp, v);
		cqe.wc_flags = IBV_WC_WITH_INV;
	}
	qp->resp.wqe_held = false;
	if (likely(cq_put(qp->recv_cq, &cqe, &qp->shared->now)))
		return true;
	qp_raise_fatal(qp);
	resp_fatal(qp, v->psn, AETH_NAK_REM_OP, IBV_WC_LOC_QP_OP_ERR, VENDOR_NONE);
	return false;
}

/* A packet was executed: advances ePSN, and acknowledges if AckReq was set. */
static void
resp_executed(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;
	bool answer = v->ack_req && qp->type != IBV_QPT_UC;

	resp->epsn = psn_add(v->psn, 1);
	if (unlikely(resp->epsn % RES_EXPIRE_EVERY == 0))
		resp_res_expire(qp);
	if (unlikely(qp->aeth_pending != 0 && qp->aeth_pending != AETH_PENDING_ACK)) {
		/* A sequence NAK that has not been sent stays pending while a packet
		 * after ePSN was dropped: it then names the new ePSN. */
		if (qp->aeth_pending == AETH_PENDING_SEQ_NAK &&
			psn_diff(resp->epsn, resp->nak_high_psn) <= 0)
			return;
		answer = true; /* the NAK stood for an ACK of what came before it */
	}
	resp->wait = RESP_OPEN;
	if (answer) {
		qp->aeth_pending = AETH_PENDING_ACK;
		resp->ack_psn = v->psn;
	}
}

static void
resp_send(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;

	/* The length is checked before a receive is taken: an invalid packet must not
	 * consume one. */
	if (unlikely(!length_fits(qp, v))) {
		invalid_request(qp, v, VENDOR_PACKET_LENGTH);
		return;
	}
	if (op_is_first(v->op) && !take_receive(qp, v))
		return;
	if (unlikely(v->op->hdrs & HDR_IETH) && !may_invalidate(qp, v))
		return;
	if (!recv_payload_copy(qp, v))
		return;
	/* Point of no return: only the completion can still fail. */
	resp->received += v->payload_len;
	resp->msg = op_is_last(v->op) ? OP_UNKNOWN : OP_SEND;
	if (op_is_last(v->op)) {
		if (!complete_receive(qp, v))
			return;
		resp->msn = psn_add(resp->msn, 1);
		qp->stats.rx_msgs++;
	}
	resp_executed(qp, v);
}

/* The bytes still to come, including this packet's, and their destination: from the RETH
 * of the first packet, or as the packets before left it. */
struct write_state {
	uint64_t va;
	uint32_t rkey;
	uint32_t left;
};

static struct write_state
write_state(const struct qp *qp, const struct pkt_view *v)
{
	const struct reth *reth = view_reth(v);

	if (!op_is_first(v->op))
		return (struct write_state){qp->resp.va, qp->resp.rkey, qp->resp.left};
	return (struct write_state){rte_be_to_cpu_64(reth->va),
		rte_be_to_cpu_32(reth->rkey), rte_be_to_cpu_32(reth->len)};
}

/* C9-115: the packets carry exactly the DMA length. */
static bool
write_length_fits(const struct pkt_view *v, uint32_t left)
{
	if (left > MSG_MAX)
		return false;
	return op_is_last(v->op) ? v->payload_len == left : v->payload_len < left;
}

/* Returns the destination, or NULL unless all bytes still to come may be written (C9-88).
 * Not to be called for a DMA length of 0, which names no memory. */
static uint8_t *
write_target(const struct qp *qp, const struct write_state *w)
{
	return key_check_remote(qp->shared->keys, w->rkey, qp->pd, qp->qpn, w->va,
		w->left, IBV_ACCESS_REMOTE_WRITE);
}

static void
resp_write(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;
	struct write_state w = write_state(qp, v);
	bool imm = (v->op->hdrs & HDR_IMM) != 0;
	uint8_t *to = NULL;

	if (unlikely(!length_fits(qp, v) || !write_length_fits(v, w.left))) {
		invalid_request(qp, v, VENDOR_PACKET_LENGTH);
		return;
	}
	if (w.left != 0) {
		to = write_target(qp, &w);
		if (unlikely(to == NULL)) {
			resp_fatal(qp, v->psn, AETH_NAK_ACCESS, IBV_WC_REM_ACCESS_ERR,
				VENDOR_RKEY);
			return;
		}
	}
	if (imm && !take_receive(qp, v))
		return;
	/* Point of no return: only the completion can still fail. */
	if (v->payload_len != 0 && !v->payload_placed)
		payload_copy(to, v->payload, v->payload_len);
	if (op_is_first(v->op))
		resp->received = 0;
	resp->received += v->payload_len;
	resp->va = w.va + v->payload_len;
	resp->rkey = w.rkey;
	resp->left = w.left - v->payload_len;
	resp->msg = op_is_last(v->op) ? OP_UNKNOWN : OP_WRITE;
	if (op_is_last(v->op)) {
		if (imm && !complete_receive(qp, v))
			return;
		resp->msn = psn_add(resp->msn, 1);
		qp->stats.rx_msgs++;
	}
	resp_executed(qp, v);
}

/* True if the QP's access flags permit a request (IBA 9.7.4.1.4; C9-89). */
static bool
operation_enabled(const struct qp *qp, const struct op_row *op)
{
	switch (op->kind) {
	case OP_SEND:
		return true;
	case OP_WRITE:
	case OP_ATOMIC_WRITE:
		return (qp->access & IBV_ACCESS_REMOTE_WRITE) != 0;
	case OP_READ:
		return (qp->access & IBV_ACCESS_REMOTE_READ) != 0;
	case OP_COMPARE_SWAP:
	case OP_FETCH_ADD:
		return (qp->access & IBV_ACCESS_REMOTE_ATOMIC) != 0;
	case OP_FLUSH:
		return (qp->access & QP_ACCESS_FLUSH_GLOBAL) != 0;
	default:
		return false; /* not an operation of this QP type */
	}
}

void
resp_request(struct qp *qp, const struct pkt_view *v)
{
	if (unlikely(!opcode_follows(&qp->resp, v->op))) {
		invalid_request(qp, v, VENDOR_OPCODE_ORDER);
		return;
	}
	if (unlikely(!operation_enabled(qp, v->op))) {
		invalid_request(qp, v, VENDOR_OPERATION);
		return;
	}
	switch (v->op->kind) {
	case OP_SEND:
		resp_send(qp, v);
		break;
	case OP_WRITE:
		resp_write(qp, v);
		break;
	case OP_READ:
		resp_read(qp, v);
		break;
	case OP_ATOMIC_WRITE:
		resp_atomic_write(qp, v);
		break;
	case OP_FLUSH:
		resp_flush(qp, v);
		break;
	default:
		resp_atomic(qp, v);
		break;
	}
}

/* IBA 11.6.3.5: the first packet in RTR tells a passive side that the connection is
 * established. */
void
resp_established(struct qp *qp)
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

	resp_established(qp);
	if (unlikely(ahead > 0)) {
		resp_out_of_sequence(qp, v->psn);
		return;
	}
	if (likely(ahead == 0))
		resp_request(qp, v);
	else if (v->op->kind == OP_SEND || v->op->kind == OP_WRITE)
		resp_duplicate(qp, v->psn);
	else
		resp_res_replay(qp, v);
}
