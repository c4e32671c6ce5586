/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving half of the requester (IBA 9.7.5.2, 9.9.2): takes in acknowledgements and
 * NAKs, handles the local ACK timeout, and completes requests in order. */
#include <string.h>

#include <rte_byteorder.h>

#include "qp/qp_internal.h"

void
comp_check_drained(struct qp *qp)
{
	if (!qp->req.draining || qp->req.una_idx != qp->req.started_idx)
		return;
	qp->req.draining = false;
	if (qp->params.sqd_notify)
		qp_event(qp, QP_EVENT_SQ_DRAINED);
}

void
comp_fail(struct qp *qp, enum ibv_wc_status status, enum qp_vendor_err vendor)
{
	uint32_t idx = qp->req.una_idx++;

	/* An error always makes a completion, signaled or not (ibv_post_send(3)). */
	qp_complete_send(qp, idx, status, vendor);
	if (qp_reliable(qp))
		qp_error(qp);
	else
		qp_sq_error(qp);
}

bool
comp_oldest(struct qp *qp)
{
	struct requester *req = &qp->req;

	qp->stats.tx_msgs++;
	if (!(sq_psn_range(&qp->sq, req->una_idx)->end & PSN_RANGE_SIGNALED))
		qp->shared->stats->cqe_saved++;
	else if (!qp_complete_send(qp, req->una_idx, IBV_WC_SUCCESS, VENDOR_NONE))
		return false;
	req->una_idx++;
	return true;
}

/* Completes the requests whose packets all lie before *end. Stops at a request that needs
 * a response of its own (READ, atomic, ...) and sets *end to its first packet without
 * one. Returns false if the CQ overflowed. */
static bool
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
		if (!comp_oldest(qp))
			return false;
	}
	return true;
}

/* Advances una_psn to end and restarts the retry counters and the timers. Returns false
 * if the QP went into an error state. */
static bool
una_advance(struct qp *qp, uint32_t end, uint64_t now)
{
	struct requester *req = &qp->req;
	bool one = end == psn_add(req->una_psn, 1);

	req->una_psn = end;
	/* An acknowledgement of the first transmission can overtake the resend. */
	if (psn_diff(req->next_psn, end) < 0)
		req_rollback(qp, end);
	else
		req_account(qp);
	req->retry_left = qp->params.retry_cnt;
	req->rnr_left = qp->params.rnr_retry;
	req->in_recovery = false;
	req->read_restart = req->next_psn == end && req->sent_psn != end;
	req->rnr_deadline = TIME_NEVER;
	req->ack_deadline = req->unacked != 0 && qp->params.timeout != 0
				    ? now + req_timeout_ns(qp)
				    : TIME_NEVER;
	tlp_progress(qp, one, now);
	if (req->fail_status != 0 && req->una_idx == req->fail_idx) {
		comp_fail(qp, (enum ibv_wc_status)req->fail_status,
			(enum qp_vendor_err)req->fail_vendor);
		return false;
	}
	comp_check_drained(qp);
	return true;
}

enum acked {
	ACKED_ALL,
	ACKED_PART, /* up to a request whose own response is missing */
	ACKED_FAILED,
};

/* Acknowledges every packet before end, up to the first READ, atomic or the like whose
 * response is missing. */
static enum acked
ack_until(struct qp *qp, uint32_t end, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t reached = end;

	if (psn_diff(end, req->una_psn) <= 0)
		return ACKED_ALL;
	if (!complete_until(qp, &reached)) {
		qp_error(qp);
		return ACKED_FAILED;
	}
	if (psn_diff(reached, req->una_psn) > 0 && !una_advance(qp, reached, now))
		return ACKED_FAILED;
	return reached == end ? ACKED_ALL : ACKED_PART;
}

/* Resends from una_psn, charged to retry_cnt. vendor: for the error when no retry is
 * left. */
static void
resend_oldest(struct qp *qp, enum qp_vendor_err vendor)
{
	struct requester *req = &qp->req;

	if (req->retry_left == 0) {
		comp_fail(qp, IBV_WC_RETRY_EXC_ERR, vendor);
		return;
	}
	req->retry_left--;
	req_rollback(qp, req->una_psn);
	req->ack_deadline = TIME_NEVER;
	tlp_cancel(qp);
}

/* A later response shows that the one to una_psn is lost (C9-137). Each loss is resent
 * once; in_recovery marks it. */
static void
implied_nak(struct qp *qp)
{
	if (qp->req.in_recovery || qp->req.rnr_deadline != TIME_NEVER)
		return;
	qp->req.in_recovery = true;
	resend_oldest(qp, VENDOR_RESPONSE);
}

/* A NAK acknowledges what lies before it. Returns false if there is nothing more to
 * do. */
static bool
ack_before_nak(struct qp *qp, uint32_t psn, uint64_t now)
{
	enum acked acked = ack_until(qp, psn, now);

	if (unlikely(acked == ACKED_PART))
		implied_nak(qp);
	return acked == ACKED_ALL;
}

static void
rnr_nak_rx(struct qp *qp, uint32_t psn, unsigned timer, uint64_t now)
{
	struct requester *req = &qp->req;

	/* A duplicate of the NAK that the QP already waits for. */
	if (req->rnr_deadline != TIME_NEVER && psn == req->una_psn)
		return;
	if (!ack_before_nak(qp, psn, now))
		return;
	qp->stats.rnr_nak_received++;
	qp->shared->stats->rnr_nak_received++;
	if (req->rnr_left == 0) {
		comp_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR, VENDOR_RNR_RETRIES);
		return;
	}
	if (qp->params.rnr_retry != 7) /* 7: without end (C9-146) */
		req->rnr_left--;
	/* The peer did receive the request: a long wait for a receive must not use up the
	 * retries for lost packets. */
	req->retry_left = qp->params.retry_cnt;
	req_rollback(qp, psn);
	req->ack_deadline = TIME_NEVER;
	req->rnr_deadline = now + rnr_timer_ns[timer];
	tlp_cancel(qp);
}

static void
seq_nak_rx(struct qp *qp, uint32_t psn, uint64_t now)
{
	struct requester *req = &qp->req;
	bool waits = req->rnr_deadline != TIME_NEVER;

	if (!ack_before_nak(qp, psn, now))
		return;
	qp->stats.seq_nak_received++;
	qp->shared->stats->seq_nak_received++;
	/* During an RNR wait the peer may NAK packets that were in flight after the
	 * refused one (rxe does). One loss is resent once. */
	if ((waits && req->rnr_deadline != TIME_NEVER) || req->in_recovery)
		return;
	req->in_recovery = true;
	resend_oldest(qp, VENDOR_SEQ_RETRIES);
}

static void
fatal_nak_rx(struct qp *qp, uint32_t psn, unsigned syndrome, uint64_t now)
{
	enum ibv_wc_status status = IBV_WC_BAD_RESP_ERR;

	if (!ack_before_nak(qp, psn, now))
		return;
	if (syndrome == AETH_NAK_INV_REQ)
		status = IBV_WC_REM_INV_REQ_ERR;
	else if (syndrome == AETH_NAK_ACCESS)
		status = IBV_WC_REM_ACCESS_ERR;
	else if (syndrome == AETH_NAK_REM_OP)
		status = IBV_WC_REM_OP_ERR;
	comp_fail(qp, status,
		status == IBV_WC_BAD_RESP_ERR ? VENDOR_BAD_SYNDROME : VENDOR_REMOTE_NAK);
}

static void
aeth_rx(struct qp *qp, uint32_t psn, unsigned syndrome, uint64_t now)
{
	switch (syndrome & AETH_TYPE_MASK) {
	case AETH_TYPE_ACK:
		if (unlikely(ack_until(qp, psn_add(psn, 1), now) == ACKED_PART))
			implied_nak(qp);
		break;
	case AETH_TYPE_RNR:
		rnr_nak_rx(qp, psn, syndrome & AETH_VALUE_MASK, now);
		break;
	default:
		if (syndrome == AETH_NAK_SEQ)
			seq_nak_rx(qp, psn, now);
		else
			fatal_nak_rx(qp, psn, syndrome, now);
		break;
	}
}

/* ---- Responses of READs and atomics ---- */

static void
fail_bad_response(struct qp *qp)
{
	comp_fail(qp, IBV_WC_BAD_RESP_ERR, VENDOR_RESPONSE);
}

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
	uint32_t chunk = req_read_chunk(qp);
	uint32_t index = (psn - range->first_psn) & PSN_MASK;
	uint64_t offset = (uint64_t)index << qp->pmtu_shift;

	return (struct read_segment){
		.offset = offset,
		.len = (uint32_t)RTE_MIN(wqe->len - offset, (uint64_t)qp_pmtu(qp)),
		.first = (index & (chunk - 1)) == 0,
		.last = psn_add(psn, 1) == psn_range_end(range) ||
			((index + 1) & (chunk - 1)) == 0,
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

	if (p->offset == 0)
		req->read_pos = (struct sge_pos){0};
	else if (req->read_pos_psn != v->psn)
		req->read_pos = sge_seek(wqe->sge, wqe->num_sge, p->offset);
	req->read_pos_psn = psn_add(v->psn, 1);
	if (likely(v->payload_placed)) {
		req->read_pos.offset += v->payload_len;
		return 0;
	}
	return sge_scatter(qp->shared->keys, qp->pd, wqe->sge, wqe->num_sge,
		&req->read_pos, v->payload, v->payload_len);
}

/* Completes the oldest request and the local operations that waited for it. */
static bool
complete_answered(struct qp *qp)
{
	struct requester *req = &qp->req;

	do {
		if (!comp_oldest(qp))
			return false;
	} while (req->una_idx != req->started_idx &&
		 psn_range_is_local(sq_psn_range(&qp->sq, req->una_idx)));
	return true;
}

/* A response packet has been processed. request_done: it was the last one of a READ
 * request, or the only one. */
static void
response_done(
	struct qp *qp, const struct psn_range *range, bool request_done, uint64_t now)
{
	struct requester *req = &qp->req;
	uint32_t end = psn_add(req->una_psn, 1);

	if (request_done && req->reads != 0)
		req->reads--;
	if (end == psn_range_end(range) && !complete_answered(qp)) {
		qp_error(qp);
		return;
	}
	una_advance(qp, end, now);
}

static void
read_response_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, qp->req.una_idx);
	const struct psn_range *range = sq_psn_range(&qp->sq, qp->req.una_idx);
	unsigned kind = wr_row(wqe)->kind;
	struct read_segment p;

	/* Annex A19: an empty READ response reports completion. */
	if (kind == WR_ATOMIC_WRITE || kind == WR_FLUSH) {
		if (v->op->pos == POS_O && v->payload_len == 0)
			response_done(qp, range, true, now);
		else
			fail_bad_response(qp);
		return;
	}
	p = read_segment(qp, wqe, range, v->psn);
	if (wqe->opcode != IBV_WR_RDMA_READ || !read_opcode_fits(qp, v, &p)) {
		fail_bad_response(qp);
		return;
	}
	if (p.len != 0 && read_copy(qp, v, wqe, &p) != 0) {
		comp_fail(qp, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
		return;
	}
	response_done(qp, range, p.last, now);
}

static void
atomic_response_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, qp->req.una_idx);
	struct sge_pos start = {0};
	uint64_t value;

	if (wqe->opcode != IBV_WR_ATOMIC_CMP_AND_SWP &&
		wqe->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD) {
		fail_bad_response(qp);
		return;
	}
	memcpy(&value, v->ext + sizeof(struct aeth), sizeof(value));
	value = rte_be_to_cpu_64(value);
	if (sge_scatter(qp->shared->keys, qp->pd, wqe->sge, wqe->num_sge, &start,
		    (const uint8_t *)&value, sizeof(value)) != 0) {
		comp_fail(qp, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
		return;
	}
	response_done(qp, sq_psn_range(&qp->sq, qp->req.una_idx), true, now);
}

static bool
syndrome_fits(const struct pkt_view *v)
{
	return (v->op->hdrs & HDR_AETH) == 0 ||
	       (view_aeth(v)->syndrome & AETH_TYPE_MASK) == AETH_TYPE_ACK;
}

/* A READ response or atomic acknowledgement; it acknowledges everything before it. */
static void
response_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	const struct requester *req = &qp->req;
	enum acked acked;

	acked = ack_until(qp, v->psn, now);
	if (unlikely(acked != ACKED_ALL)) {
		if (acked == ACKED_PART)
			implied_nak(qp);
		return;
	}
	if (!syndrome_fits(v) || req->una_idx == req->started_idx ||
		!psn_range_needs_response(sq_psn_range(&qp->sq, req->una_idx)))
		fail_bad_response(qp); /* C9-121: the request has no such response */
	else if (v->op->kind == OP_READ_RESP)
		read_response_rx(qp, v, now);
	else
		atomic_response_rx(qp, v, now);
}

void
comp_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	const struct requester *req = &qp->req;

	if (unlikely(psn_diff(v->psn, req->una_psn) < 0)) {
		qp->shared->stats->drop[DROP_stale_response]++;
		return;
	}
	if (unlikely(psn_diff(v->psn, req->sent_psn) >= 0)) {
		qp->shared->stats->drop[DROP_ghost]++;
		return;
	}
	if (likely(v->op->kind == OP_ACK))
		aeth_rx(qp, v->psn, view_aeth(v)->syndrome, now);
	else
		response_rx(qp, v, now);
}

void
comp_ack_timeout(struct qp *qp)
{
	qp->stats.timeouts++;
	qp->shared->stats->ack_timeouts++;
	qp->req.in_recovery = false;
	qp->req.ack_deadline = TIME_NEVER;
	resend_oldest(qp, VENDOR_ACK_TIMEOUT);
}
