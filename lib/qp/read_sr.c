/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/read_sr.h"

/* The bits of sq.read_placed are those of PSNs modulo this. */
#define PLACED_MAX 128
static_assert(PLACED_MAX == 8 * sizeof(((struct qp *)NULL)->sq.read_placed) &&
		      (PSN_MASK + 1) % PLACED_MAX == 0,
	"a bit for each PSN");

static bool
is_placed(const struct qp *qp, uint32_t psn)
{
	return (qp->sq.read_placed[psn / 64 % 2] >> psn % 64 & 1) != 0;
}

static void
placed_flip(struct qp *qp, uint32_t psn)
{
	qp->sq.read_placed[psn / 64 % 2] ^= UINT64_C(1) << psn % 64;
}

/* Returns whether all requests from una_psn to this PSN are READs. *idx: the one that has
 * it. */
static bool
find_read(const struct qp *qp, uint32_t psn, uint32_t *idx)
{
	for (*idx = qp->req.una_idx; *idx != qp->req.started_idx; ++*idx) {
		const struct send_wqe *wqe = sq_slot(&qp->sq, *idx);

		if (wqe->opcode != IBV_WR_RDMA_READ)
			return false;
		if (!psn_range_before(sq_psn_range(&qp->sq, *idx), psn))
			return true;
	}
	return false;
}

/* Copies the payload to its place. Returns false if it does not fit there. */
static bool
response_copy(struct qp *qp, uint32_t idx, const struct pkt_view *v)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, idx);
	struct read_segment p = read_segment(qp, wqe, sq_psn_range(&qp->sq, idx), v->psn);
	struct sge_pos pos = sge_seek(wqe->sge, wqe->num_sge, p.offset);
	struct sge_cursor c = request_cursor(qp, wqe, &pos);

	if (v->payload_len != p.len)
		return false;
	return p.len == 0 || sge_scatter(&c, v->payload, v->payload_len) == 0;
}

/* A response has come behind missing ones. Returns whether it is the last one of all. */
static bool
end_advance(struct requester *req, uint32_t psn)
{
	if (!req->read_gap) {
		req->read_gap = true;
		req->read_asked = req->una_psn;
		req->read_end = req->una_psn;
	}
	if (psn_diff(psn, req->read_end) < 0)
		return false;
	req->read_end = psn_add(psn, 1);
	return true;
}

enum read_sr
read_sr_place(struct qp *qp, const struct pkt_view *v)
{
	uint32_t idx;

	if (qp->shared->hold == NULL || v->op->kind != OP_READ_RESP ||
		!find_read(qp, v->psn, &idx))
		return READ_SR_REFUSED;
	if (psn_diff(v->psn, qp->req.una_psn) >= PLACED_MAX) {
		qp->shared->stats->drop[DROP_psn_gap]++;
		(void)end_advance(&qp->req, v->psn);
		return READ_SR_AHEAD;
	}
	if (is_placed(qp, v->psn))
		return READ_SR_KNOWN;
	if (!response_copy(qp, idx, v))
		return READ_SR_REFUSED;
	placed_flip(qp, v->psn);
	qp->shared->stats->read_placed++;
	return end_advance(&qp->req, v->psn) ? READ_SR_AHEAD : READ_SR_FILLS;
}

bool
read_sr_take(struct qp *qp)
{
	struct requester *req = &qp->req;

	if (psn_diff(req->read_end, req->una_psn) <= 0) {
		req->read_gap = false;
		return false;
	}
	if (!is_placed(qp, req->una_psn))
		return false;
	placed_flip(qp, req->una_psn);
	return true;
}

struct read_part
read_sr_missing(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	uint32_t psn = psn_diff(req->read_asked, req->una_psn) > 0 ? req->read_asked
								   : req->una_psn;
	uint32_t reach = psn_add(req->una_psn, PLACED_MAX);
	struct read_part part = {0};

	/* A response that is too far ahead could not be placed. */
	if (psn_diff(req->read_end, reach) < 0)
		reach = req->read_end;
	while (psn_diff(psn, reach) < 0 && is_placed(qp, psn))
		psn = psn_add(psn, 1);
	part.psn = psn;
	while (psn_diff(psn, reach) < 0 && !is_placed(qp, psn)) {
		part.packets++;
		psn = psn_add(psn, 1);
	}
	if (part.packets != 0 && !find_read(qp, part.psn, &part.idx))
		part.packets = 0;
	return part;
}
