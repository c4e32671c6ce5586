/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The responder (IBA 9.7.4, 9.9.3): checks requests in the order of IBA 9.7.4.1 and
 * executes them. */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>

#include "qp/flight.h"
#include "qp/hold.h"
#include "qp/counting.h"
#include "qp/mbuf_receive.h"
#include "qp/qp_state.h"
#include "qp/resp.h"

void
resp_reset(struct qp *qp, uint32_t psn)
{
	struct resp_res *res = qp->resp.res;
	uint32_t max = qp->resp.res_max;

	qp->resp = (struct responder){
		.epsn = psn, .res = res, .res_max = max, .counts = qp_counts(qp)};
	qp->aeth_pending = 0;
	resp_due_changed(qp);
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

static enum verdict RARE
rnr_nak_queue(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;

	if (qp->type == IBV_QPT_UC) { /* drop the message, even at its LAST packet */
		resp->msg = OP_UNKNOWN;
		qp->shared->stats->drop[DROP_no_receive]++;
		return VERDICT_DROP;
	}
	hold_drop(qp); /* the peer sends all packets from here on again */
	resp->wait = RESP_RNR;
	qp->aeth_pending = AETH_PENDING(AETH_RNR_NAK | qp->params.min_rnr_timer);
	resp->ack_psn = v->psn;
	qp->stats.rnr_nak_sent++;
	qp->shared->stats->rnr_nak_sent++;
	flight_note(
		qp, FLIGHT_RNR_NAK_DUE, v->psn, rnr_timer_ns[qp->params.min_rnr_timer]);
	return VERDICT_DROP;
}

/* Takes the next receive, if the QP holds none. -EAGAIN: there is none; -EIO. */
static inline int
hold_receive(struct qp *qp, const struct pkt_view *v)
{
	int rc = 0;

	/* UC: the receive of a discarded message serves the next. */
	if (likely(!qp->resp.wqe_held)) {
		if (qp->srq == NULL)
			rc = recv_ring_take(qp->rq, qp->wqe);
		else if (likely(!qp->srq->shared))
			rc = srq_take_alone(qp->srq, qp->wqe);
		else
			rc = claim_take(qp, v);
	}
	if (likely(rc == 0))
		qp->resp.wqe_held = true;
	return rc;
}

/* Takes the receive for a new message. Inlined: the call shows in the instructions of a message. */
static __rte_always_inline enum verdict
take_receive(struct qp *qp, const struct pkt_view *v)
{
	int rc = hold_receive(qp, v);

	if (unlikely(rc == -EAGAIN))
		return rnr_nak_queue(qp, v);
	if (unlikely(rc < 0))
		return FAULT_SRQ_ERROR;
	if (v->op->kind == OP_SEND) {
		qp->resp.received = 0;
		qp->resp.pos = (struct sge_pos){0};
	}
	return VERDICT_GO;
}

/* The receive has no room for the payload: its SRQ may want it in mbufs. */
static enum verdict RARE
recv_payload_take(struct qp *qp, const struct pkt_view *v)
{
	int rc = srq_has_mbufs(qp->srq) ? mbuf_receive(qp, v) : -EMSGSIZE;

	if (rc == -ENOBUFS)
		return rnr_nak_queue(qp, v);
	return rc == 0 ? VERDICT_GO : FAULT_RECV_SHORT;
}

/* Copies the payload to where the receive says. */
static enum verdict
recv_payload_copy(struct qp *qp, const struct pkt_view *v)
{
	int rc = 0;

	if (unlikely(qp->resp.received + v->payload_len > MSG_MAX)) {
		rc = -EMSGSIZE;
	} else if (v->payload_placed) {
		qp->resp.pos.offset += v->payload_len;
	} else if (v->payload_len != 0) {
		struct sge_cursor c = receive_cursor(qp, &qp->resp.pos);

		rc = sge_scatter(&c, v->payload, v->payload_len);
	}
	if (likely(rc == 0))
		return VERDICT_GO;
	return rc == -EMSGSIZE ? recv_payload_take(qp, v) : FAULT_RECV_SGE;
}

/* Row 19 of docs/protocol.md 8.2, IBA 9.9.6.3 class J. Checked before the data is
 * written: a SEND with an rkey that this QP may not invalidate must write none. */
static enum verdict RARE
may_invalidate(const struct qp *qp, const struct pkt_view *v)
{
	return mw_may_invalidate(
		       qp->shared->keys, qp->qpn, rte_be_to_cpu_32(view_imm_be(v)))
		       ? VERDICT_GO
		       : FAULT_MEMORY_WINDOW;
}

/* Invalidates the rkey that the completion is going to report. Returns the rkey. */
static uint32_t RARE
rkey_invalidate(struct qp *qp, const struct pkt_view *v)
{
	uint32_t rkey = rte_be_to_cpu_32(view_imm_be(v));

	mw_invalidate(qp->shared->keys, qp->qpn, rkey);
	return rkey;
}

static inline enum verdict
receive_cqe_put(struct qp *qp, const struct cqe *cqe)
{
	qp->resp.wqe_held = false;
	return likely(cq_complete(
		       &qp->shared->gather, qp->recv_cq, cqe, &qp->shared->now))
		       ? VERDICT_GO
		       : FAULT_RECV_CQ_FULL;
}

/* The message is in mbufs, which become the application's, or is counted, or both. */
static __rte_noinline enum verdict
complete_special(struct qp *qp, struct cqe *cqe)
{
	enum verdict verdict;

	if (qp->resp.chained)
		cqe->wc_flags |= CQE_WC_MBUF;
	/* Counted also if the completion finds no room: the operation has completed. */
	if (qp->resp.counts)
		qp_count_recv(qp, qp->resp.received, false);
	if (qp->resp.counts && cqe->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		qp_count_remote(qp, COUNTED_REMOTE_WRITE, qp->resp.received);
	verdict = receive_cqe_put(qp, cqe);
	if (verdict == VERDICT_GO)
		qp->resp.chained = false;
	return verdict;
}

static inline enum verdict
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
	if (unlikely(qp->resp.chained || qp->resp.counts))
		return complete_special(qp, &cqe);
	return receive_cqe_put(qp, &cqe);
}

/* A packet of a SEND or WRITE was executed: acknowledges it if AckReq was set. */
static enum verdict
resp_executed(struct qp *qp, const struct pkt_view *v)
{
	bool answer = v->ack_req && qp->type != IBV_QPT_UC;
	/* A pending NAK would also have acknowledged the packets before it. If this
	 * packet makes the NAK obsolete, an ACK takes its place, even if AckReq is
	 * clear. */
	bool waited = qp->resp.wait != RESP_OPEN;
	bool nak = unlikely(waited) && qp->aeth_pending != 0 &&
		   qp->aeth_pending != AETH_PENDING_ACK;
	enum verdict verdict = resp_advance(qp, psn_add(v->psn, 1));

	if ((answer || unlikely(nak)) && likely(qp->resp.wait == RESP_OPEN)) {
		qp->aeth_pending = AETH_PENDING_ACK;
		qp->resp.ack_psn = v->psn;
	}
	if (unlikely(qp->resp.epsn % RES_EXPIRE_EVERY == 0))
		resp_res_expire(qp);
	return verdict;
}

/* The payload of a SEND or WRITE packet is in place. The last packet of a message ends it,
 * and completes its receive if the message took one. */
static __rte_always_inline enum verdict
data_executed(struct qp *qp, const struct pkt_view *v, enum op_kind kind, bool receive)
{
	enum verdict verdict = VERDICT_GO;

	qp->resp.msg = op_is_last(v->op) ? OP_UNKNOWN : kind;
	qp->resp.plain_write = !receive;
	if (op_is_last(v->op)) {
		if (receive)
			verdict = complete_receive(qp, v);
		if (unlikely(verdict != VERDICT_GO))
			return verdict;
		resp_message_done(qp);
		if (!receive && unlikely(qp->resp.counts))
			qp_count_remote(qp, COUNTED_REMOTE_WRITE, qp->resp.received);
	}
	return resp_executed(qp, v);
}

static enum verdict
resp_send(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;
	enum verdict verdict = VERDICT_GO;

	/* The length is checked before a receive is taken: an invalid packet must not
	 * consume one. */
	if (unlikely(!length_fits(qp, v)))
		return FAULT_PACKET_LENGTH;
	if (op_is_first(v->op))
		verdict = take_receive(qp, v);
	if (unlikely(v->op->hdrs & HDR_IETH) && verdict == VERDICT_GO)
		verdict = may_invalidate(qp, v);
	if (likely(verdict == VERDICT_GO))
		verdict = recv_payload_copy(qp, v);
	if (unlikely(verdict != VERDICT_GO))
		return verdict;
	/* Point of no return: only the completion can still fail. */
	resp->received += v->payload_len;
	return data_executed(qp, v, OP_SEND, true);
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

/* The receive of a WRITE with immediate completes with a local access error (IBA 11.6.2). Without a
 * receive the NAK is the same. UC discards the message, which takes none. */
static enum verdict RARE
write_refuse(struct qp *qp, const struct pkt_view *v, bool imm)
{
	return imm && qp_reliable(qp) && hold_receive(qp, v) == 0 ? FAULT_IMM_RKEY
								  : FAULT_RKEY;
}

static enum verdict
resp_write(struct qp *qp, const struct pkt_view *v)
{
	struct responder *resp = &qp->resp;
	struct write_state w = write_state(qp, v);
	bool imm = (v->op->hdrs & HDR_IMM) != 0;
	enum verdict verdict = VERDICT_GO;
	uint8_t *to = NULL;

	if (unlikely(!length_fits(qp, v) || !write_length_fits(v, w.left)))
		return FAULT_PACKET_LENGTH;
	/* All bytes still to come must be writable (C9-88). A DMA length of 0 names no
	 * memory. */
	if (w.left != 0) {
		to = key_check_remote(qp->shared->keys, w.rkey, qp->pd, qp->qpn, w.va,
			w.left, v->payload_len, IBV_ACCESS_REMOTE_WRITE);
		if (unlikely(to == NULL))
			return write_refuse(qp, v, imm);
	}
	if (imm)
		verdict = take_receive(qp, v);
	if (unlikely(verdict != VERDICT_GO))
		return verdict;
	/* Point of no return: only the completion can still fail. */
	if (v->payload_len != 0 && !v->payload_placed) {
		/* For applications that poll memory for the bytes of a WRITE: they see those of
		 * the packets before this one first. No instruction on x86-64. */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		if (op_is_last(v->op))
			payload_copy_end(to, v->payload, v->payload_len);
		else
			payload_copy(to, v->payload, v->payload_len);
	}
	if (op_is_first(v->op))
		resp->received = 0;
	resp->received += v->payload_len;
	resp->va = w.va + v->payload_len;
	resp->rkey = w.rkey;
	resp->left = w.left - v->payload_len;
	return data_executed(qp, v, OP_WRITE, imm);
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
		return (qp->access & ACCESS_FLUSH_GLOBAL) != 0;
	default:
		return false; /* not an operation of this QP type */
	}
}

enum verdict
resp_request(struct qp *qp, const struct pkt_view *v)
{
	if (unlikely(!opcode_follows(&qp->resp, v->op)))
		return FAULT_OPCODE_ORDER;
	if (unlikely(!operation_enabled(qp, v->op)))
		return FAULT_OPERATION;
	switch (v->op->kind) {
	case OP_SEND:
		return resp_send(qp, v);
	case OP_WRITE:
		return resp_write(qp, v);
	case OP_READ:
		return resp_read(qp, v);
	case OP_ATOMIC_WRITE:
		return resp_atomic_write(qp, v);
	case OP_FLUSH:
		return resp_flush(qp, v);
	default:
		return resp_atomic(qp, v);
	}
}

/* IBA 11.6.3.5: the first packet in RTR tells a passive side that the connection is
 * established. */
void
resp_established(struct qp *qp)
{
	if (qp->state == IBV_QPS_RTR && !qp->comm_est_raised) {
		qp->comm_est_raised = true;
		qp_event(qp, IBV_EVENT_COMM_EST);
	}
}

enum verdict
resp_rx(struct qp *qp, const struct pkt_view *v)
{
	int32_t ahead = psn_diff(v->psn, qp->resp.epsn);

	resp_established(qp);
	if (likely(ahead == 0))
		return resp_request(qp, v);
	if (ahead > 0)
		resp_out_of_sequence(qp, v);
	else if (v->op->kind == OP_SEND || v->op->kind == OP_WRITE)
		resp_duplicate(qp, v->psn);
	else
		resp_res_replay(qp, v);
	return VERDICT_DROP;
}
