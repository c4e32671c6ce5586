/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Selective repeat of READ responses (docs/protocol.md 7.10). A response that comes before
 * a missing one is placed in memory by its PSN, and only the missing ones are requested
 * again. They complete in order: una_psn moves when the missing ones have come.
 *
 * req.read_gap: a response has come behind missing ones. Then req.read_end is the PSN after
 * the last one that has come, and req.read_asked the PSN before which all missing ones were
 * requested again. sq.read_placed has a bit for each PSN that is placed. Called by
 * completer.c and requester.c, with the engine lock held.
 */
#ifndef ROCADE_QP_READ_SR_H
#define ROCADE_QP_READ_SR_H

#include "qp/req.h"

/* Position of a READ response packet in its message. */
struct read_segment {
	uint64_t offset;
	uint32_t len; /* expected length */
	bool first;   /* first packet of a READ request; a long READ is several */
	bool last;
};

static inline struct read_segment
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

enum read_sr {
	READ_SR_REFUSED, /* requests of another kind lie before it, or it is wrong */
	READ_SR_KNOWN,   /* was placed before */
	READ_SR_AHEAD,   /* placed, or too far ahead: dropped, and missing from now on */
	READ_SR_FILLS,   /* placed before others that have come: it was requested again */
};

/* Takes in a response with a PSN after una_psn. */
enum read_sr read_sr_place(struct qp *qp, const struct pkt_view *view);
/* Returns whether response una_psn is placed, and forgets that: the caller moves una_psn
 * on. To be called while req.read_gap is set, and for each una_psn. */
bool read_sr_take(struct qp *qp);

/* A part of a READ request: packets that are missing in a row. */
struct read_part {
	uint32_t idx; /* of the request */
	uint32_t psn;
	uint32_t packets; /* 0: none is missing */
};

/* Returns the first part that was not requested again yet. */
struct read_part read_sr_missing(const struct qp *qp);

#endif
