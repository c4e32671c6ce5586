/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * READ responses behind a missing one (docs/protocol.md 7.10). They are placed by PSN,
 * and only the missing ranges are requested again. una_psn and completions move in order,
 * as without a loss.
 *
 * A QP takes a record (loss.h) when a response or an acknowledgement shows that the
 * response with una_psn is lost, and gives it back when all up to the last one that is
 * placed have come, or when the requester goes back to una_psn. Meanwhile the response
 * with una_psn is one of a READ; it is marked as lost, or a repeat asks for it. If no
 * record is free, the QP goes back, as it does when an atomic or the like is among what
 * is lost.
 *
 * Called by completer.c, requester.c and qp_io.c, with the engine lock held.
 */
#ifndef ROCADE_QP_READ_GAP_H
#define ROCADE_QP_READ_GAP_H

#include "qp/loss.h"

/* Effect of a packet behind una_psn. */
enum read_gap_found {
	READ_GAP_UNFIT, /* go back to una_psn: the packet cannot be taken in so */
	READ_GAP_KNOWN, /* taken in; nothing else is lost */
	READ_GAP_LOSS,  /* taken in, and more is lost than was known */
};

/* Places a READ response with a PSN after una_psn. The one with una_psn is missing, and
 * of a request that needs a response. */
enum read_gap_found read_gap_place(
	struct qp *qp, const struct pkt_view *view, uint64_t now);
/* All before end is acknowledged, but the response with una_psn is missing. */
enum read_gap_found read_gap_ack(struct qp *qp, uint32_t end, uint64_t now);

/* For a QP that has requested a part of a READ again (qp->read_repeated): true if the
 * opcode of the response fits. first, last: of its place in the original request. */
bool read_gap_opcode_fits(
	const struct qp *qp, const struct pkt_view *view, bool first, bool last);

/* True if no new READ is to leave now. A response of a later READ has been dropped, and
 * others are under way that will be, too: all that come before the repeat of the oldest
 * one. Those of a new READ would come before their repeats, so it would be requested
 * again, as would each one after it. */
static inline bool
read_gap_holds_back(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	uint32_t end;

	if (!missing_reads(qp))
		return false;
	end = missing_of(qp)->end;
	return end != req->next_psn &&
	       psn_range_before(
		       sq_psn_range(&qp->sq, req->una_idx), psn_add(end, PSN_MASK));
}

/* For a QP that misses READ responses (missing_reads()): */

/* una_psn has advanced, and the QP may have no record any more. */
void read_gap_advanced(struct qp *qp, uint64_t now);
/* Returns whether a repeat is due, and of which packets. */
bool read_gap_due(const struct qp *qp, uint32_t *psn, uint32_t *packets);
/* That repeat was sent. */
void read_gap_repeated(struct qp *qp, uint32_t psn, uint32_t packets, uint64_t now);
/* A tail-loss probe is due. Returns true if repeats that are under way are sent again
 * instead of all. */
bool read_gap_probe(struct qp *qp);

#endif
