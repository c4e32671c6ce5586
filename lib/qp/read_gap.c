/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include "qp/read_gap.h"
#include "qp/tlp.h"

/* ---- What is lost ---- */

/* Returns the request that a PSN from una_psn on belongs to. */
static uint32_t
request_of(const struct qp *qp, uint32_t psn)
{
	uint32_t idx = qp->req.una_idx;

	while (psn_range_before(sq_psn_range(&qp->sq, idx), psn))
		idx++;
	return idx;
}

/* The PSN after those of the oldest READ. */
static uint32_t
oldest_end(const struct qp *qp)
{
	return psn_range_end(sq_psn_range(&qp->sq, qp->req.una_idx));
}

/* True if all responses from `from` up to psn are those of READs. */
static bool
only_reads(const struct qp *qp, uint32_t from, uint32_t psn)
{
	for (uint32_t idx = request_of(qp, from); idx != qp->req.started_idx; idx++) {
		const struct psn_range *range = sq_psn_range(&qp->sq, idx);

		if (psn_range_needs_response(range) &&
			wr_row(sq_slot(&qp->sq, idx))->kind != WR_READ)
			return false;
		if (!psn_range_before(range, psn))
			break;
	}
	return true;
}

/* The peer has executed the requests up to psn: the end of the record moves there. The
 * SENDs and WRITEs that it passes are acknowledged. */
static void
end_move(const struct qp *qp, struct txmap *gap, uint32_t psn)
{
	uint32_t idx;

	if (psn_diff(psn, gap->end) <= 0)
		return; /* there may be no request behind gap->end */
	idx = request_of(qp, gap->end);
	while (psn_diff(psn, gap->end) > 0) {
		const struct psn_range *range = sq_psn_range(&qp->sq, idx++);
		uint32_t end = psn_range_before(range, psn) ? psn_range_end(range) : psn;

		for (uint32_t at = gap->end;
			at != end && !psn_range_needs_response(range);
			at = psn_add(at, 1))
			txmap_set_arrived(gap, at);
		gap->end = end;
	}
}

/* The response psn has come, and those before it that are missing may be lost: the
 * network keeps the order of a connection (docs/protocol.md 16), and the peer that of its
 * responses. But it answers a repeat perhaps before what it has still to answer behind
 * it, so those behind psn are not judged. Returns whether more is lost than was known. */
static bool
response_noted(struct qp *qp, struct txmap *gap, uint32_t psn, uint64_t now)
{
	end_move(qp, gap, psn);
	return loss_find(qp, psn, psn, now) != 0;
}

/* Repeats are due if, and only if, the state says so. */
static void
repeats_update(struct qp *qp)
{
	uint32_t psn, packets;

	loss_step(&qp->req.loss_state,
		read_gap_due(qp, &psn, &packets) ? LOSS_EV_FOUND : LOSS_EV_REPEATED);
}

/* ---- Packets behind una_psn ---- */

/* True if the packet with this PSN is under way, and a record may be kept for what is
 * missing before it. */
static bool
gap_allowed(const struct qp *qp, uint32_t psn)
{
	const struct requester *req = &qp->req;
	uint32_t from = req->missing ? missing_of(qp)->end : req->una_psn;

	return !qp->shared->read_gap_off && qp->peer != NULL &&
	       req->rnr_deadline == TIME_NEVER && psn_diff(psn, req->next_psn) < 0 &&
	       (psn_diff(psn, from) < 0 || only_reads(qp, from, psn));
}

/* A response's place in its request, checked as that of one in order is. */
static bool
response_fits(const struct qp *qp, const struct pkt_view *v, const struct send_wqe *wqe,
	uint32_t index)
{
	const struct psn_bits *ends = sq_read_ends(&qp->sq);
	uint64_t offset = (uint64_t)index << qp->pmtu_shift;
	bool first = index == 0 || psn_bit(ends, psn_add(v->psn, PSN_MASK));
	bool last = psn_bit(ends, v->psn);

	if (v->payload_len != RTE_MIN(wqe->len - offset, (uint64_t)qp_pmtu(qp)))
		return false;
	return qp->read_repeated
		       ? read_gap_opcode_fits(qp, v, first, last)
		       : op_is_first(v->op) == first && op_is_last(v->op) == last;
}

/* Copies the payload to its place. */
static bool
response_copy(const struct qp *qp, const struct pkt_view *v, const struct send_wqe *wqe,
	uint32_t index)
{
	struct sge_pos pos =
		sge_seek(wqe->sge, wqe->num_sge, (uint64_t)index << qp->pmtu_shift);
	struct sge_cursor c = request_cursor(qp, wqe, &pos);

	return v->payload_len == 0 || sge_scatter(&c, v->payload, v->payload_len) == 0;
}

/* The response belongs to a READ behind the oldest one. It shows what is lost before it,
 * but is dropped: the peer executes the repeat of the oldest READ after it, and READs are
 * executed in order (IBA 10.8.3.3). So it counts as lost, too, and is requested again
 * behind that repeat. */
static enum read_gap_found
later_read_seen(struct qp *qp, struct txmap *gap, uint32_t psn, uint64_t now)
{
	/* then it has been requested again */
	bool repeated = txmap_is_missing(gap, psn), loss;

	if (repeated && loss_sent_lately(qp, psn, now))
		return READ_GAP_KNOWN; /* the answer to an earlier request for it */
	if (repeated)
		gap->vain = oldest_end(qp);
	loss = response_noted(qp, gap, psn, now);
	txmap_set_lost(gap, psn);
	repeats_update(qp);
	req_account(qp);
	return loss ? READ_GAP_LOSS : READ_GAP_KNOWN;
}

enum read_gap_found RARE
read_gap_place(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	uint32_t idx, index;
	const struct send_wqe *wqe;
	struct txmap *gap;
	bool loss;

	if (!gap_allowed(qp, v->psn))
		return READ_GAP_UNFIT;
	if (qp->req.missing && psn_bit(&missing_of(qp)->arrived, v->psn)) {
		qp->shared->stats->drop[DROP_stale_response]++;
		return READ_GAP_KNOWN;
	}
	idx = request_of(qp, v->psn);
	index = (v->psn - sq_psn_range(&qp->sq, idx)->first_psn) & PSN_MASK;
	wqe = sq_slot(&qp->sq, idx);
	if (wqe->opcode != IBV_WR_RDMA_READ || !response_fits(qp, v, wqe, index))
		return READ_GAP_UNFIT;
	gap = loss_begin(qp, true);
	if (gap == NULL)
		return READ_GAP_UNFIT;
	if (idx != qp->req.una_idx)
		return later_read_seen(qp, gap, v->psn, now);
	if (!response_copy(qp, v, wqe, index))
		return READ_GAP_UNFIT;
	loss = response_noted(qp, gap, v->psn, now);
	txmap_set_arrived(gap, v->psn);
	qp->shared->stats->read_placed++;
	req_response_taken(qp);
	repeats_update(qp);
	req_account(qp);
	tlp_sacked(qp, v->psn == qp->req.rtt_psn, now);
	return loss ? READ_GAP_LOSS : READ_GAP_KNOWN;
}

enum read_gap_found RARE
read_gap_ack(struct qp *qp, uint32_t end, uint64_t now)
{
	uint32_t psn = psn_add(end, PSN_MASK);
	struct txmap *gap;
	unsigned lost;

	if (!gap_allowed(qp, psn))
		return READ_GAP_UNFIT;
	gap = loss_begin(qp, true);
	if (gap == NULL)
		return READ_GAP_UNFIT;
	end_move(qp, gap, end);
	lost = loss_find_executed(qp, end, now);
	repeats_update(qp);
	req_account(qp);
	return lost != 0 ? READ_GAP_LOSS : READ_GAP_KNOWN;
}

/* ---- The response with una_psn ---- */

/* A repeat begins anew with FIRST or ONLY and ends with LAST or ONLY (IBA 9.7.5.1.2), but
 * a peer may go on with MIDDLE or LAST (rxe). The first answer may still come. */
bool RARE
read_gap_opcode_fits(const struct qp *qp, const struct pkt_view *v, bool first, bool last)
{
	const struct read_bits *bits = qp->sq.read_bits;

	return (op_is_first(v->op) == first || psn_bit(&bits->repeat_first, v->psn)) &&
	       (op_is_last(v->op) == last || psn_bit(&bits->repeat_last, v->psn));
}

void RARE
read_gap_advanced(struct qp *qp, uint64_t now)
{
	if (!qp->req.missing)
		return;
	repeats_update(qp);
	tlp_sacked(qp, false, now);
}

/* ---- Requesting again ---- */

/* A peer that sends selective acknowledgements answers any part of a READ again. Another
 * one may forget what lies before a part that it was asked for (rxe): of the oldest READ
 * it is asked for the oldest missing part only, one at a time, and so never for an
 * address before that. */
static bool
repeats_anywhere(const struct qp *qp)
{
	return peer_sacks(qp->peer);
}

/* Every peer is asked for a later READ by whole requests, once it has answered the whole.
 * If that was in vain, because the repeat of the oldest READ was lost, too, later ones
 * wait until the oldest one is complete: in a network that loses most packets they would
 * fill it. */
bool RARE
read_gap_due(const struct qp *qp, uint32_t *psn, uint32_t *packets)
{
	const struct txmap *gap = missing_of(qp);
	const struct psn_bits *ends = sq_read_ends(&qp->sq);
	uint32_t at = qp->req.una_psn, later, n;

	if (!psn_bits_any(&gap->lost))
		return false;
	later = oldest_end(qp);
	if (!psn_bit(&gap->lost, at) && !repeats_anywhere(qp))
		at = later;
	for (; psn_diff(at, gap->end) < 0; at = psn_add(at, n)) {
		n = 1;
		if (!psn_bit(&gap->lost, at))
			continue;
		while (!psn_bit(ends, at + n - 1) && psn_bit(&gap->lost, at + n))
			n++;
		if (psn_diff(at, later) < 0 ||
			(gap->vain != later && psn_bit(ends, at + n - 1))) {
			*psn = at;
			*packets = n;
			return true;
		}
	}
	return false;
}

void RARE
read_gap_repeated(struct qp *qp, uint32_t psn, uint32_t packets, uint64_t now)
{
	struct read_bits *bits = qp->sq.read_bits;
	const struct requester *req = &qp->req;

	loss_sent_again(qp, psn, packets, req->next_psn, now);
	if (!qp->read_repeated)
		memset(&bits->repeat_first, 0, 2 * sizeof(bits->repeat_first));
	qp->read_repeated = true;
	psn_bit_set(&bits->repeat_first, psn);
	psn_bit_set(&bits->repeat_last, psn + packets - 1);
	req_count_resent(qp, psn, packets);
	qp->shared->stats->read_repeated++;
	/* The probe is one for the oldest READ. */
	if (psn_range_before(sq_psn_range(&qp->sq, req->una_idx), psn))
		return;
	tlp_repeated(qp, now);
}

bool RARE
read_gap_probe(struct qp *qp)
{
	struct txmap *gap = missing_of(qp);
	struct psn_bits missing;
	uint32_t psn;

	if (qp->req.tlp_backoff > 1)
		return false;
	missing = txmap_missing(gap);
	for (psn = psn_bits_next(&missing, qp->req.una_psn, gap->end); psn != gap->end;
		psn = psn_bits_next(&missing, psn_add(psn, 1), gap->end))
		txmap_set_lost(gap, psn);
	repeats_update(qp);
	return qp_copy_due(qp);
}
