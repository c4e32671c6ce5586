/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The receiving half of the requester (IBA 9.7.5.2, 9.9.2): takes in acknowledgements and
 * NAKs, handles the local ACK timeout, and completes requests in order. */
#include <string.h>

#include <rte_byteorder.h>

#include "qp/congestion.h"
#include "qp/multipath.h"
#include "qp/qp_state.h"
#include "qp/req.h"
#include "qp/sack.h"
#include "qp/tlp.h"

/* Completes the requests whose packets all lie before *end. Stops at a request that needs
 * a response of its own (READ, atomic, ...) and sets *end to its first packet without
 * one. */
static enum verdict
complete_until(struct qp *qp, uint32_t *end)
{
	struct requester *req = &qp->req;

	while (req->una_idx != req->started_idx) {
		const struct psn_range *range = sq_psn_range(&qp->sq, req->una_idx);

		if (unlikely(psn_range_needs_response(range))) {
			uint32_t missing = psn_diff(req->una_psn, range->first_psn) > 0
						   ? req->una_psn
						   : range->first_psn;

			if (psn_diff(missing, *end) < 0)
				*end = missing;
			break;
		}
		if (!psn_range_before(range, *end))
			break;
		if (!qp_complete_oldest(qp))
			return FAULT_SEND_CQ_FULL;
	}
	return VERDICT_GO;
}

/* More is acknowledged than was sent since the requester went back. After a NAK, only a peer
 * that holds packets can do that. */
static void RARE
resend_overtaken(struct qp *qp)
{
	if (qp->req.in_recovery && qp->peer != NULL)
		qp->peer->resend_shift = 0;
	req_rollback(qp, qp->req.una_psn);
}

/* Advances una_psn to end and restarts the retry counters and the timers. */
static enum verdict
una_advance(struct qp *qp, uint32_t end, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t before = req->una_psn, packets = (end - before) & PSN_MASK;

	req->una_psn = end;
	if (unlikely(qp->multipath != 0))
		multipath_acknowledged(qp, before);
	if (unlikely(req->sacked))
		sack_advanced(qp, before);
	/* An acknowledgement of the first transmission can overtake the resend. */
	if (psn_diff(req->next_psn, end) < 0)
		resend_overtaken(qp);
	else
		req_account(qp);
	req->retry_left = qp->params.retry_cnt;
	req->rnr_left = qp->params.rnr_retry;
	req->in_recovery = false;
	req->read_restart = req->next_psn == end && req->sent_psn != end;
	req->rnr_deadline = TIME_NEVER;
	req->ack_deadline = req->next_psn != end && qp->params.timeout != 0
				    ? now + req_timeout_ns(qp)
				    : TIME_NEVER;
	if (tlp_progress(qp, packets, now))
		req_rollback(qp, end);
	if (unlikely(req_oldest_fault(req) != VERDICT_GO))
		return req_oldest_fault(req);
	req_check_drained(qp);
	return VERDICT_GO;
}

/* Charges a retry to retry_cnt. Returns true if none is left. */
static bool
retry_spent(struct qp *qp)
{
	struct requester *req = &qp->req;

	if (req->retry_left == 0)
		return true;
	req->retry_left--;
	return false;
}

/* Resends from una_psn, charged to retry_cnt. fault: when no retry is left. */
static enum verdict
resend_oldest(struct qp *qp, enum verdict fault)
{
	struct requester *req = &qp->req;

	if (retry_spent(qp))
		return fault;
	req_rollback(qp, req->una_psn);
	req->ack_deadline = TIME_NEVER;
	tlp_cancel(qp);
	return VERDICT_DROP;
}

/* A later response shows that the one to una_psn is lost (C9-137). Each loss is resent
 * once; in_recovery marks it. */
static enum verdict RARE
implied_nak(struct qp *qp, uint64_t now)
{
	if (qp->req.in_recovery || qp->req.rnr_deadline != TIME_NEVER)
		return VERDICT_DROP;
	qp->req.in_recovery = true;
	congestion_loss(qp, &qp->peer->read, now);
	return resend_oldest(qp, FAULT_NO_RESPONSE);
}

/* Acknowledges every packet before end. VERDICT_DROP: only up to a READ, an atomic or the
 * like whose response is missing. */
static enum verdict
ack_until(struct qp *qp, uint32_t end, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t reached = end;
	enum verdict verdict;

	if (psn_diff(end, req->una_psn) <= 0)
		return VERDICT_GO;
	verdict = complete_until(qp, &reached);
	if (likely(verdict == VERDICT_GO) && psn_diff(reached, req->una_psn) > 0)
		verdict = una_advance(qp, reached, now);
	if (unlikely(reached != end) && verdict == VERDICT_GO)
		verdict = implied_nak(qp, now);
	return verdict;
}

/* A NAK acknowledges the packets before it, as do READ responses. */
static enum verdict
rnr_nak_rx(struct qp *qp, uint32_t psn, unsigned timer, uint64_t now)
{
	struct requester *req = &qp->req;
	enum verdict verdict;

	/* A duplicate of the NAK that the QP already waits for. */
	if (req->rnr_deadline != TIME_NEVER && psn == req->una_psn)
		return VERDICT_DROP;
	verdict = ack_until(qp, psn, now);
	if (verdict != VERDICT_GO)
		return verdict;
	qp->stats.rnr_nak_received++;
	qp->shared->stats->rnr_nak_received++;
	if (req->rnr_left == 0)
		return FAULT_RNR_RETRIES;
	if (qp->params.rnr_retry != 7) /* 7: without end (C9-146) */
		req->rnr_left--;
	/* The peer did receive the request: a long wait for a receive must not use up the
	 * retries for lost packets. */
	req->retry_left = qp->params.retry_cnt;
	req_rollback(qp, psn);
	req->ack_deadline = TIME_NEVER;
	req->rnr_deadline = now + rnr_timer_ns[timer];
	tlp_cancel(qp);
	return VERDICT_DROP;
}

/* Resends packet una_psn and maybe a few after it, charged to retry_cnt. */
static enum verdict
resend_few(struct qp *qp)
{
	if (retry_spent(qp))
		return FAULT_SEQ_RETRIES;
	tlp_cancel(qp);
	qp->req.tlp_state = TLP_HOLE_DUE;
	return VERDICT_DROP;
}

/* True if not all packets from una_psn on are to be sent again for a NAK. una_psn has to be
 * of a SEND or WRITE, and sent since the requester last went back. */
static bool
resends_few(struct qp *qp)
{
	const struct requester *req = &qp->req;
	unsigned shift;

	if (req->next_psn == req->una_psn || qp->peer == NULL ||
		qp->shared->hold == NULL || req_oldest_needs_response(qp))
		return false;
	shift = peer_resend_shift(qp->peer);
	qp->resend_shift = shift & 3;
	return shift < RESEND_ALL_SHIFT;
}

/* Returns whether the scoreboard decides what is sent again for a NAK, as it does for a peer
 * that sends selective acknowledgements. una_psn then is one of those packets. */
static bool
resends_lost(struct qp *qp, uint64_t now, enum verdict *verdict)
{
	struct requester *req = &qp->req;
	bool lost;

	if (req->next_psn == req->una_psn || req_oldest_needs_response(qp) ||
		!sack_nak(qp, &lost))
		return false;
	*verdict = VERDICT_DROP;
	if (!lost)
		return true;
	congestion_loss(qp, &qp->peer->send, now);
	if (retry_spent(qp))
		*verdict = FAULT_SEQ_RETRIES;
	else
		req->tlp_state = TLP_HOLE_DUE;
	return true;
}

static enum verdict
seq_nak_rx(struct qp *qp, uint32_t psn, uint64_t now)
{
	struct requester *req = &qp->req;
	bool waits = req->rnr_deadline != TIME_NEVER;
	enum verdict verdict = ack_until(qp, psn, now);

	if (verdict != VERDICT_GO)
		return verdict;
	qp->stats.seq_nak_received++;
	qp->shared->stats->seq_nak_received++;
	/* During an RNR wait the peer may NAK packets that were in flight after the
	 * refused one (rxe does). One loss is resent once. */
	if ((waits && req->rnr_deadline != TIME_NEVER) || req->in_recovery)
		return VERDICT_DROP;
	req->in_recovery = true;
	qp_ext_ask(qp);
	if (resends_lost(qp, now, &verdict))
		return verdict;
	/* A lost READ request does not count: it takes another way than its response. */
	if (!req_oldest_needs_response(qp))
		congestion_loss(qp, &qp->peer->send, now);
	return resends_few(qp) ? resend_few(qp) : resend_oldest(qp, FAULT_SEQ_RETRIES);
}

static enum verdict
fatal_nak_rx(struct qp *qp, uint32_t psn, unsigned syndrome, uint64_t now)
{
	enum verdict verdict = ack_until(qp, psn, now);

	if (verdict != VERDICT_GO)
		return verdict;
	switch (syndrome) {
	case AETH_NAK_INV_REQ:
		return FAULT_NAK_INV_REQ;
	case AETH_NAK_ACCESS:
		return FAULT_NAK_ACCESS;
	case AETH_NAK_REM_OP:
		return FAULT_NAK_REM_OP;
	default:
		return FAULT_BAD_SYNDROME;
	}
}

static enum verdict
aeth_rx(struct qp *qp, uint32_t psn, unsigned syndrome, uint64_t now)
{
	switch (syndrome & AETH_TYPE_MASK) {
	case AETH_TYPE_ACK:
		return ack_until(qp, psn_add(psn, 1), now);
	case AETH_TYPE_RNR:
		return rnr_nak_rx(qp, psn, syndrome & AETH_VALUE_MASK, now);
	default:
		return syndrome == AETH_NAK_SEQ ? seq_nak_rx(qp, psn, now)
						: fatal_nak_rx(qp, psn, syndrome, now);
	}
}

/* ---- Responses of READs and atomics ---- */

/* Position of a READ response packet in its message. */
struct read_segment {
	uint64_t offset;
	uint32_t len; /* expected length */
	bool first;   /* first packet of a READ request; a long READ is several */
	bool last;
};

static struct read_segment
read_segment(const struct qp *qp, const struct send_wqe *wqe,
	const struct psn_range *range, uint32_t psn)
{
	const struct psn_bits *ends = sq_read_ends(&qp->sq);
	uint32_t index = (psn - range->first_psn) & PSN_MASK;
	uint64_t offset = (uint64_t)index << qp->pmtu_shift;

	return (struct read_segment){
		.offset = offset,
		.len = (uint32_t)RTE_MIN(wqe->len - offset, (uint64_t)qp_pmtu(qp)),
		.first = index == 0 || psn_bit(ends, psn_add(psn, PSN_MASK)),
		.last = psn_bit(ends, psn),
	};
}

/* FIRST and ONLY begin a READ request, LAST and ONLY end it (C9-121). When the rest is
 * requested again, a peer may start anew or continue as before (rxe). */
static bool
read_opcode_fits(
	const struct qp *qp, const struct pkt_view *v, const struct read_segment *p)
{
	if (op_is_last(v->op) != p->last || v->payload_len != p->len)
		return false;
	return qp->req.read_restart || op_is_first(v->op) == p->first;
}

static int
read_copy(struct qp *qp, const struct pkt_view *v, const struct send_wqe *wqe,
	const struct read_segment *p)
{
	struct requester *req = &qp->req;
	struct sge_cursor c = request_cursor(qp, wqe, &req->read_pos);

	if (p->offset == 0)
		req->read_pos = (struct sge_pos){0};
	else if (req->read_pos_psn != v->psn)
		req->read_pos = sge_seek(wqe->sge, wqe->num_sge, p->offset);
	req->read_pos_psn = psn_add(v->psn, 1);
	if (likely(v->payload_placed)) {
		req->read_pos.offset += v->payload_len;
		return 0;
	}
	return sge_scatter(&c, v->payload, v->payload_len);
}

/* Completes the oldest request and the local operations that waited for it. */
static bool
complete_answered(struct qp *qp)
{
	struct requester *req = &qp->req;

	do {
		if (!qp_complete_oldest(qp))
			return false;
	} while (req->una_idx != req->started_idx &&
		 psn_range_is_local(sq_psn_range(&qp->sq, req->una_idx)));
	return true;
}

/* A response packet has been processed. request_done: it was the last one of a READ
 * request, or the only one. */
static enum verdict
response_done(
	struct qp *qp, const struct psn_range *range, bool request_done, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t end = psn_add(req->una_psn, 1);

	req_response_taken(qp);
	if (request_done && req->reads != 0)
		req->reads--;
	if (end == psn_range_end(range) && !complete_answered(qp))
		return FAULT_SEND_CQ_FULL;
	return una_advance(qp, end, now);
}

static enum verdict
read_response_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, qp->req.una_idx);
	const struct psn_range *range = sq_psn_range(&qp->sq, qp->req.una_idx);
	unsigned kind = wr_row(wqe)->kind;
	struct read_segment p;

	/* Annex A19: an empty READ response reports completion. */
	if (kind == WR_ATOMIC_WRITE || kind == WR_FLUSH)
		return v->op->pos == POS_O && v->payload_len == 0
			       ? response_done(qp, range, true, now)
			       : FAULT_BAD_RESPONSE;
	p = read_segment(qp, wqe, range, v->psn);
	if (wqe->opcode != IBV_WR_RDMA_READ || !read_opcode_fits(qp, v, &p))
		return FAULT_BAD_RESPONSE;
	if (p.len != 0 && read_copy(qp, v, wqe, &p) != 0)
		return FAULT_SEND_SGE;
	return response_done(qp, range, p.last, now);
}

static enum verdict
atomic_response_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, qp->req.una_idx);
	struct sge_pos start = {0};
	struct sge_cursor c = request_cursor(qp, wqe, &start);
	uint64_t value;

	if (wqe->opcode != IBV_WR_ATOMIC_CMP_AND_SWP &&
		wqe->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD)
		return FAULT_BAD_RESPONSE;
	memcpy(&value, v->ext + sizeof(struct aeth), sizeof(value));
	value = rte_be_to_cpu_64(value);
	if (sge_scatter(&c, (const uint8_t *)&value, sizeof(value)) != 0)
		return FAULT_SEND_SGE;
	return response_done(qp, sq_psn_range(&qp->sq, qp->req.una_idx), true, now);
}

static bool
syndrome_fits(const struct pkt_view *v)
{
	return (v->op->hdrs & HDR_AETH) == 0 ||
	       (view_aeth(v)->syndrome & AETH_TYPE_MASK) == AETH_TYPE_ACK;
}

/* A READ response or atomic acknowledgement; it acknowledges everything before it. */
static enum verdict
response_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	const struct requester *req = &qp->req;
	enum verdict verdict = ack_until(qp, v->psn, now);

	if (unlikely(verdict != VERDICT_GO))
		return verdict;
	if (!syndrome_fits(v) || req->una_idx == req->started_idx ||
		!req_oldest_needs_response(qp))
		return FAULT_BAD_RESPONSE; /* C9-121: the request has no such response */
	if (v->op->kind == OP_READ_RESP)
		return read_response_rx(qp, v, now);
	return atomic_response_rx(qp, v, now);
}

enum verdict
comp_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	const struct requester *req = &qp->req;

	if (unlikely(psn_diff(v->psn, req->una_psn) < 0)) {
		qp->shared->stats->drop[DROP_stale_response]++;
		return VERDICT_DROP;
	}
	if (unlikely(psn_diff(v->psn, req->sent_psn) >= 0)) {
		qp->shared->stats->drop[DROP_ghost]++;
		return VERDICT_DROP;
	}
	if (likely(v->op->kind == OP_ACK))
		return aeth_rx(qp, v->psn, view_aeth(v)->syndrome, now);
	return response_rx(qp, v, now);
}

enum verdict
comp_ack_timeout(struct qp *qp)
{
	qp->stats.timeouts++;
	qp->shared->stats->ack_timeouts++;
	qp->req.in_recovery = false;
	qp->req.ack_deadline = TIME_NEVER;
	if (unlikely(qp->multipath != 0))
		multipath_timeout(qp);
	return resend_oldest(qp, FAULT_ACK_TIMEOUT);
}
