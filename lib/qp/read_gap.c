/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include "qp/read_gap.h"
#include "qp/tlp.h"

/* Control path. */

void
read_gaps_init(struct read_gaps *gaps)
{
	TAILQ_INIT(&gaps->free);
	for (unsigned i = READ_GAPS; i-- != 0;)
		TAILQ_INSERT_HEAD(&gaps->free, &gaps->gap[i], link);
}

void
read_gaps_fini(const struct read_gaps *gaps)
{
	const struct read_gap *gap;
	unsigned free = 0;

	TAILQ_FOREACH (gap, &gaps->free, link)
		free++;
	assert(free == READ_GAPS);
}

/* Data path. */

/* Returns the QP's record, which it takes if it has none; NULL: none is free. */
static struct read_gap *
gap_get(struct qp *qp)
{
	struct read_gaps *gaps = qp->shared->read_gaps;
	struct read_gap *gap;

	if (qp->read_gap != 0)
		return read_gap_of(qp);
	gap = gaps != NULL ? TAILQ_FIRST(&gaps->free) : NULL;
	if (gap == NULL)
		return NULL;
	TAILQ_REMOVE(&gaps->free, gap, link);
	memset(gap, 0, sizeof(*gap));
	gap->end = gap->acked = gap->vain = qp->req.una_psn;
	qp->read_gap = (uint8_t)(gap - gaps->gap + 1);
	return gap;
}

void RARE
read_gap_drop(struct qp *qp)
{
	TAILQ_INSERT_HEAD(&qp->shared->read_gaps->free, read_gap_of(qp), link);
	qp->read_gap = 0;
	qp->req.tlp_state = TLP_OFF;
}

/* ---- What is lost ---- */

static void
lost_set(struct read_gap *gap, uint32_t psn)
{
	if (psn_bit(&gap->placed, psn) || psn_bit(&gap->lost, psn))
		return;
	psn_bit_set(&gap->lost, psn);
	gap->lost_count++;
}

static void
lost_set_range(struct read_gap *gap, uint32_t psn, uint32_t end)
{
	for (; psn != end; psn = psn_add(psn, 1))
		lost_set(gap, psn);
}

static void
lost_clear(struct read_gap *gap, uint32_t psn)
{
	gap->lost_count -= psn_bit(&gap->lost, psn);
	psn_bits_clear(&gap->lost, psn, 1);
}

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

/* True if all responses from gap->end (or una_psn) up to psn are those of READs. */
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

/* The responses that have not come from gap->end up to psn are lost, for the network keeps
 * the order of a connection (docs/protocol.md 16), and the peer that of its responses. */
static void
originals_lost(const struct qp *qp, struct read_gap *gap, uint32_t psn)
{
	uint32_t idx;

	if (psn_diff(psn, gap->end) <= 0)
		return; /* there may be no request behind gap->end */
	idx = request_of(qp, gap->end);
	while (psn_diff(psn, gap->end) > 0) {
		const struct psn_range *range = sq_psn_range(&qp->sq, idx++);
		uint32_t end = psn_range_before(range, psn) ? psn_range_end(range) : psn;

		if (psn_range_needs_response(range))
			lost_set_range(gap, gap->end, end);
		gap->end = end;
	}
}

/* ---- Repeats ---- */

static bool
repeat_covers(const struct read_repeat *r, uint32_t psn)
{
	return ((psn - r->psn) & PSN_MASK) < ((r->end - r->psn) & PSN_MASK);
}

static struct read_repeat *
repeat_of(struct read_gap *gap, uint32_t psn)
{
	for (unsigned i = 0; i < READ_REPEATS; i++) {
		if (repeat_covers(&gap->repeat[i], psn))
			return &gap->repeat[i];
	}
	return NULL;
}

static void
repeat_lost(struct read_gap *gap, struct read_repeat *r)
{
	lost_set_range(gap, r->psn, r->end);
	r->psn = r->end;
}

/* Whatever the order in which a peer answers, a range is requested again at most twice in a
 * round trip. */
static bool
repeated_lately(const struct qp *qp, const struct read_repeat *r, uint64_t now)
{
	uint32_t srtt_ns = qp_srtt_ns(qp);

	return (uint32_t)now - r->sent_ns <
	       (srtt_ns != 0 ? srtt_ns / 2 : (uint32_t)QP_SRTT_UNKNOWN_NS);
}

/* The response psn has come, as the answer to repeat `of`, or, if that is NULL, to the
 * original request; or the peer has executed the requests up to it. Finds the repeats whose
 * answers would have come before it. A peer answers requests in the order in which they
 * come, but a repeat perhaps before what it has still to answer behind it. So the later
 * answer has to be that of a higher PSN, too. */
static void
repeats_lost(const struct qp *qp, struct read_gap *gap, const struct read_repeat *of,
	uint32_t psn, uint64_t now)
{
	for (unsigned i = 0; i < READ_REPEATS; i++) {
		struct read_repeat *r = &gap->repeat[i];
		bool later = of == NULL ? psn_diff(psn, r->sent_psn) >= 0
					: of->number > r->number &&
						  psn_diff(of->psn, r->psn) > 0;

		if (r->psn != r->end && r != of && later && !repeated_lately(qp, r, now))
			repeat_lost(gap, r);
	}
}

/* The response psn has come: what does that show of those before it? Returns whether more is
 * lost than was known. */
static bool
response_noted(struct qp *qp, struct read_gap *gap, uint32_t psn, uint64_t now)
{
	struct read_repeat *of = repeat_of(gap, psn);
	uint16_t lost;

	lost_clear(gap, psn);
	lost = gap->lost_count;
	repeats_lost(qp, gap, of, psn, now);
	if (of != NULL) {
		lost_set_range(gap, of->psn, psn);
		of->psn = psn_add(psn, 1);
	}
	if (psn_diff(psn, gap->end) >= 0)
		originals_lost(qp, gap, psn);
	return gap->lost_count > lost;
}

/* Repeats are due if, and only if, the state says so. */
static void
repeats_update(struct qp *qp)
{
	uint32_t psn, packets;

	qp->req.tlp_state =
		read_gap_due(qp, &psn, &packets) ? TLP_HOLE_DUE : TLP_HOLE_SENT;
}

/* ---- Packets behind una_psn ---- */

/* True if the packet with this PSN is under way, and a record may be kept for what is
 * missing before it. */
static bool
gap_allowed(const struct qp *qp, uint32_t psn)
{
	const struct requester *req = &qp->req;
	uint32_t from = qp->read_gap != 0 ? read_gap_of(qp)->end : req->una_psn;

	return qp->peer != NULL && req->rnr_deadline == TIME_NEVER &&
	       psn_diff(psn, req->next_psn) < 0 &&
	       (psn_diff(psn, from) < 0 || only_reads(qp, from, psn));
}

static void
acked_note(struct read_gap *gap, uint32_t end)
{
	if (psn_diff(end, gap->acked) > 0)
		gap->acked = end;
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

/* The response belongs to a READ behind the oldest one. It shows what is lost before it, but
 * is dropped: the peer executes the repeat of the oldest READ after it, and READs are
 * executed in order (IBA 10.8.3.3). So it counts as lost, too, and is requested again behind
 * that repeat. */
static enum read_gap_found
later_read_seen(struct qp *qp, struct read_gap *gap, uint32_t psn, uint64_t now)
{
	const struct read_repeat *of = repeat_of(gap, psn);
	bool loss;

	acked_note(gap, psn);
	if (of != NULL && repeated_lately(qp, of, now))
		return READ_GAP_KNOWN; /* the answer to an earlier request for it */
	if (of != NULL)
		gap->vain = oldest_end(qp);
	loss = response_noted(qp, gap, psn, now);
	if (psn_diff(psn, gap->end) >= 0)
		gap->end = psn_add(psn, 1);
	lost_set(gap, psn);
	repeats_update(qp);
	return loss ? READ_GAP_LOSS : READ_GAP_KNOWN;
}

enum read_gap_found RARE
read_gap_place(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	uint32_t idx, index;
	const struct send_wqe *wqe;
	struct read_gap *gap;
	bool loss;

	if (!gap_allowed(qp, v->psn))
		return READ_GAP_UNFIT;
	if (qp->read_gap != 0 && psn_bit(&read_gap_of(qp)->placed, v->psn)) {
		qp->shared->stats->drop[DROP_stale_response]++;
		return READ_GAP_KNOWN;
	}
	idx = request_of(qp, v->psn);
	index = (v->psn - sq_psn_range(&qp->sq, idx)->first_psn) & PSN_MASK;
	wqe = sq_slot(&qp->sq, idx);
	if (wqe->opcode != IBV_WR_RDMA_READ || !response_fits(qp, v, wqe, index))
		return READ_GAP_UNFIT;
	gap = gap_get(qp);
	if (gap == NULL)
		return READ_GAP_UNFIT;
	if (idx != qp->req.una_idx)
		return later_read_seen(qp, gap, v->psn, now);
	if (!response_copy(qp, v, wqe, index))
		return READ_GAP_UNFIT;
	acked_note(gap, v->psn);
	loss = response_noted(qp, gap, v->psn, now);
	psn_bit_set(&gap->placed, v->psn);
	gap->placed_count++;
	if (psn_diff(v->psn, gap->end) >= 0)
		gap->end = psn_add(v->psn, 1);
	qp->shared->stats->read_placed++;
	req_response_taken(qp);
	repeats_update(qp);
	tlp_sacked(qp, v->psn == qp->req.rtt_psn, now);
	return loss ? READ_GAP_LOSS : READ_GAP_KNOWN;
}

enum read_gap_found RARE
read_gap_ack(struct qp *qp, uint32_t end, uint64_t now)
{
	uint32_t psn = psn_add(end, PSN_MASK);
	struct read_gap *gap;
	uint16_t lost;

	if (!gap_allowed(qp, psn))
		return READ_GAP_UNFIT;
	gap = gap_get(qp);
	if (gap == NULL)
		return READ_GAP_UNFIT;
	lost = gap->lost_count;
	acked_note(gap, end);
	repeats_lost(qp, gap, NULL, psn, now);
	if (psn_diff(end, gap->end) > 0)
		originals_lost(qp, gap, end);
	repeats_update(qp);
	return gap->lost_count > lost ? READ_GAP_LOSS : READ_GAP_KNOWN;
}

/* ---- The response with una_psn ---- */

/* A repeat begins anew with FIRST or ONLY and ends with LAST or ONLY (IBA 9.7.5.1.2), but a
 * peer may go on with MIDDLE or LAST (rxe). The first answer may still come. */
bool RARE
read_gap_opcode_fits(const struct qp *qp, const struct pkt_view *v, bool first, bool last)
{
	const struct read_bits *bits = qp->sq.read_bits;

	return (op_is_first(v->op) == first || psn_bit(&bits->repeat_first, v->psn)) &&
	       (op_is_last(v->op) == last || psn_bit(&bits->repeat_last, v->psn));
}

bool RARE
read_gap_filled(struct qp *qp, uint64_t now)
{
	return response_noted(qp, read_gap_of(qp), qp->req.una_psn, now);
}

bool RARE
read_gap_take(struct qp *qp, uint32_t psn)
{
	struct read_gap *gap = read_gap_of(qp);

	if (!psn_bit(&gap->placed, psn))
		return false;
	psn_bits_clear(&gap->placed, psn, 1);
	gap->placed_count--;
	return true;
}

void RARE
read_gap_advanced(struct qp *qp, uint64_t now)
{
	struct read_gap *gap = read_gap_of(qp);

	if (psn_diff(qp->req.una_psn, gap->end) >= 0) {
		assert(gap->placed_count == 0 && gap->lost_count == 0);
		read_gap_drop(qp);
		return;
	}
	repeats_update(qp);
	tlp_sacked(qp, false, now);
}

/* ---- Requesting again ---- */

/* A peer that sends selective acknowledgements answers any part of a READ again. Another one
 * may forget what lies before a part that it was asked for (rxe): of the oldest READ it is
 * asked for the oldest missing part only, one at a time, and so never for an address before
 * that. */
static bool
repeats_anywhere(const struct qp *qp)
{
	return peer_sacks(qp->peer);
}

/* Every peer is asked for a later READ by whole requests, once it has answered the whole. If
 * that was in vain, because the repeat of the oldest READ was lost, too, later ones wait until
 * the oldest one is complete: in a network that loses most packets they would fill it. */
bool RARE
read_gap_due(const struct qp *qp, uint32_t *psn, uint32_t *packets)
{
	const struct read_gap *gap = read_gap_of(qp);
	const struct psn_bits *ends = sq_read_ends(&qp->sq);
	uint32_t at = qp->req.una_psn, later, n;
	bool free = false;

	if (gap->lost_count == 0)
		return false;
	for (unsigned i = 0; i < READ_REPEATS; i++)
		free |= gap->repeat[i].psn == gap->repeat[i].end;
	if (!free)
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
	struct read_gap *gap = read_gap_of(qp);
	struct requester *req = &qp->req;
	struct read_repeat *r = gap->repeat;

	while (r->psn != r->end)
		r++;
	*r = (struct read_repeat){
		.psn = psn,
		.end = psn_add(psn, packets),
		.sent_psn = req->next_psn,
		.number = ++gap->repeats,
		.sent_ns = (uint32_t)now,
	};
	for (uint32_t i = 0; i < packets; i++)
		lost_clear(gap, psn + i);
	if (!qp->read_repeated)
		memset(&bits->repeat_first, 0, 2 * sizeof(bits->repeat_first));
	qp->read_repeated = true;
	psn_bit_set(&bits->repeat_first, psn);
	psn_bit_set(&bits->repeat_last, psn + packets - 1);
	/* An answer would not tell which of both has arrived (Karn). */
	if (((req->rtt_psn - psn) & PSN_MASK) < packets) {
		req->rtt_start = TIME_NEVER;
		req->rtt_counts = false;
	}
	req_count_resent(qp, psn, packets);
	qp->shared->stats->read_repeated++;
	repeats_update(qp);
	/* The probe is one for the oldest READ. */
	if (psn_range_before(sq_psn_range(&qp->sq, req->una_idx), psn))
		return;
	tlp_repeated(qp, now);
}

bool RARE
read_gap_probe(struct qp *qp)
{
	struct read_gap *gap = read_gap_of(qp);

	if (qp->req.tlp_backoff > 1)
		return false;
	for (unsigned i = 0; i < READ_REPEATS; i++)
		repeat_lost(gap, &gap->repeat[i]);
	repeats_update(qp);
	return qp->req.tlp_state == TLP_HOLE_DUE;
}
