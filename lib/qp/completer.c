/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The receiving half of the requester (IBA 9.7.5.2, 9.9.2): takes in acknowledgements and
 * NAKs, handles the local ACK timeout, and completes requests in order. */
#include <string.h>

#include <rte_byteorder.h>

#include "qp/flight.h"
#include "qp/multipath.h"
#include "qp/nak.h"
#include "qp/qp_state.h"
#include "qp/read_gap.h"
#include "qp/req.h"
#include "qp/send_age.h"
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
	if (unlikely(req->missing))
		loss_advanced(qp, before);
	/* An acknowledgement of the first transmission can overtake the resend. */
	if (psn_diff(req->next_psn, end) < 0)
		resend_overtaken(qp);
	else
		req_account(qp);
	req->retry_left = qp->params.retry_cnt;
	req->rnr_left = qp->params.rnr_retry;
	req->in_recovery = false;
	req->read_restart = req->next_psn == end && req->sent_psn != end;
	if (unlikely(req->rnr_deadline != TIME_NEVER)) {
		req->rnr_deadline = TIME_NEVER;
		req_time_over(qp, SLOW_rnr);
	}
	req->ack_deadline = TIME_NEVER;
	if (req->next_psn != end)
		req_timer_start(qp, now);
	if (tlp_progress(qp, packets, now)) {
		req_lost(qp, SLOW_nak);
		req_rollback(qp, end);
	}
	if (unlikely(req_oldest_fault(req) != VERDICT_GO))
		return req_oldest_fault(req);
	req_check_drained(qp);
	return VERDICT_GO;
}

/* Acknowledges every packet before *end, or up to a READ, an atomic or the like whose
 * response is missing, and sets *end to that. */
static enum verdict
ack_reach(struct qp *qp, uint32_t *end, uint64_t now)
{
	struct requester *req = &qp->req;
	enum verdict verdict;

	if (psn_diff(*end, req->una_psn) <= 0)
		return VERDICT_GO;
	verdict = complete_until(qp, end);
	if (likely(verdict == VERDICT_GO) && psn_diff(*end, req->una_psn) > 0)
		verdict = una_advance(qp, *end, now);
	return verdict;
}

/* The same for a NAK. VERDICT_DROP: a response is missing. */
static enum verdict
ack_until(struct qp *qp, uint32_t end, uint64_t now)
{
	uint32_t reached = end;
	enum verdict verdict = ack_reach(qp, &reached, now);

	if (unlikely(reached != end) && verdict == VERDICT_GO)
		verdict = nak_behind_missing(qp, READ_GAP_UNFIT, now);
	return verdict;
}

static enum verdict
ack_rx(struct qp *qp, uint32_t end, uint64_t now)
{
	uint32_t reached = end;
	enum verdict verdict = ack_reach(qp, &reached, now);

	if (unlikely(reached != end) && verdict == VERDICT_GO)
		verdict = nak_behind_missing(qp, read_gap_ack(qp, end, now), now);
	return verdict;
}

/* A NAK acknowledges the packets before it, as do READ responses. */
static enum verdict RARE
nak_rx(struct qp *qp, uint32_t psn, unsigned syndrome, uint64_t now)
{
	bool rnr_waits = qp->req.rnr_deadline != TIME_NEVER;
	enum verdict verdict;

	/* A duplicate of the NAK that the QP already waits for. */
	if (rnr_waits && psn == qp->req.una_psn &&
		(syndrome & AETH_TYPE_MASK) == AETH_TYPE_RNR)
		return VERDICT_DROP;
	verdict = ack_until(qp, psn, now);
	return verdict == VERDICT_GO ? nak_apply(qp, psn, syndrome, rnr_waits, now)
				     : verdict;
}

static enum verdict
aeth_rx(struct qp *qp, uint32_t psn, unsigned syndrome, uint64_t now)
{
	return likely((syndrome & AETH_TYPE_MASK) == AETH_TYPE_ACK)
		       ? ack_rx(qp, psn_add(psn, 1), now)
		       : nak_rx(qp, psn, syndrome, now);
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
	if (unlikely(qp->read_repeated) && v->payload_len == p->len &&
		read_gap_opcode_fits(qp, v, p->first, p->last))
		return true;
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

/* una_psn may advance to *end, and perhaps over responses that are placed already and what
 * they acknowledge: moves *end there and completes requests. */
static enum verdict RARE
placed_take(struct qp *qp, uint32_t *end)
{
	struct requester *req = &qp->req;
	const struct txmap *map = missing_of(qp);

	while (req->una_idx != req->started_idx && psn_bit(&map->arrived, *end)) {
		const struct psn_range *range = sq_psn_range(&qp->sq, req->una_idx);

		if (psn_range_needs_response(range))
			req->reads -= psn_bit(sq_read_ends(&qp->sq), *end);
		*end = psn_add(*end, 1);
		if (*end == psn_range_end(range) && !complete_answered(qp))
			return FAULT_SEND_CQ_FULL;
	}
	return VERDICT_GO;
}

/* The response with una_psn has come while later ones are placed already. end: the PSN after
 * it. */
static enum verdict RARE
gap_filled(struct qp *qp, uint32_t end, uint64_t now)
{
	enum verdict verdict = placed_take(qp, &end);

	if (verdict != VERDICT_GO)
		return verdict;
	verdict = una_advance(qp, end, now);
	read_gap_advanced(qp, now);
	return verdict;
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
	if (unlikely(req->missing))
		return gap_filled(qp, end, now);
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
	uint32_t reached = v->psn;
	enum verdict verdict = ack_reach(qp, &reached, now);

	if (unlikely(verdict != VERDICT_GO))
		return verdict;
	if (unlikely(reached != v->psn))
		return nak_behind_missing(qp,
			v->op->kind == OP_READ_RESP && syndrome_fits(v)
				? read_gap_place(qp, v, now)
				: READ_GAP_UNFIT,
			now);
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
	flight_note(qp, FLIGHT_ACK_TIMEOUT, qp->req.una_psn, 0);
	qp->req.in_recovery = false;
	req_lost(qp, SLOW_timer);
	send_age_keep(qp);
	qp->req.ack_deadline = TIME_NEVER;
	if (unlikely(qp->multipath != 0))
		multipath_timeout(qp);
	return nak_resend(qp, FAULT_ACK_TIMEOUT);
}
