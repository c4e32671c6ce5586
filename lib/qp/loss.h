/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The loss of SENDs and WRITEs (sack.c) and that of READ responses (read_gap.c) have one
 * record (recovery/txmap.h) and one rule: a packet is lost if one that was sent after it
 * has arrived; only on several paths it takes more (multipath.h). A QP takes a record
 * when a packet is missing, and gives it back when una_psn has reached the record's end.
 *
 * Called by sack.c, read_gap.c, completer.c, requester.c, tlp.c and flush.c, with the
 * engine lock held.
 */
#ifndef ROCADE_QP_LOSS_H
#define ROCADE_QP_LOSS_H

#include "qp/req.h"

/* A packet is sent again at most twice in a round trip, or once in QP_SRTT_UNKNOWN_NS
 * while that is not known, even if the peer lies or answers in another order. An answer
 * that takes note of the copy takes a whole round trip. */
static inline bool
loss_sent_lately(const struct qp *qp, uint32_t psn, uint64_t now)
{
	const struct txmap_again *again = txmap_again_of(missing_of(qp), psn);
	uint32_t srtt_ns = qp_srtt_ns(qp);
	uint32_t least = srtt_ns != 0 ? srtt_ns / 2 : (uint32_t)QP_SRTT_UNKNOWN_NS;

	return again != NULL && (uint32_t)now - again->ns < least;
}

/* Returns the QP's record, which it takes if it has none; NULL: none is free. */
struct txmap *loss_begin(struct qp *qp, bool reads);
/* una_psn has advanced from `before`. The QP has a record. */
void loss_advanced(struct qp *qp, uint32_t before);
/* After a change of the record of SENDs and WRITEs: copies of what it says is lost are due,
 * and no others. A probe stays due. Without such a record nothing changes. */
void loss_update(struct qp *qp);
/* Packet `echo` has arrived. Those before `end` that are missing are lost if they were
 * sent before it; on several paths, see multipath.h. Returns the number of new losses.
 * The QP has a record. */
unsigned loss_find(struct qp *qp, uint32_t end, uint32_t echo, uint64_t now);
/* The peer has executed the requests of READ responses before `end`: the first
 * transmission of the last one has come to it. */
unsigned loss_find_executed(struct qp *qp, uint32_t end, uint64_t now);
/* Packets of the record were sent again. The caller notes what else follows from that. */
void loss_sent_again(
	struct qp *qp, uint32_t psn, uint32_t packets, uint32_t next_psn, uint64_t now);
/* Gives the record back: all packets will be sent again, or none. */
void loss_end(struct qp *qp);

#endif
