/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The signals of a QP for the congestion control of its peer (cc.h). Called by tlp.c,
 * requester.c, completer.c and cnp.c. */
#ifndef ROCADE_QP_CONGESTION_H
#define ROCADE_QP_CONGESTION_H

#include "qp/qp.h"

/* True if the first packet of the next burst is to ask for an acknowledgement, because its
 * round trip will be measured: what follows it in the burst does not delay that. */
static inline bool
congestion_wants_ack(const struct qp *qp)
{
	return qp->req.rtt_start == TIME_NEVER && qp->peer != NULL &&
	       cc_is_on(&qp->peer->cc);
}

/* The QP begins to measure a round trip. To be called only if congestion control is on. */
void congestion_sampled(struct qp *qp, uint64_t now);
/* The QP has sent packets. To be called only if congestion control is on, and after
 * congestion_sampled(). */
void congestion_sent(struct qp *qp, uint64_t now);
/* The measurement has ended: the round trip took rtt_ns. To be called only if
 * req.rtt_counts is set. */
void congestion_sample(struct qp *qp, uint32_t rtt_ns, uint64_t now);
/* A packet was lost. */
void congestion_loss(struct qp *qp, uint64_t now);
/* A tail-loss probe is due, after this wait. */
void congestion_probe(struct qp *qp, uint64_t wait_ns, uint64_t now);
/* una_psn has advanced after probes. late: nothing was lost. */
void congestion_answer(struct qp *qp, bool late, uint64_t now);
/* A CNP has come. */
void congestion_cnp(struct qp *qp, uint64_t now);

/* ---- Packets that are not counted ---- */

void congestion_read_count(struct qp *qp, uint32_t packets);
/* The QP has sent a READ, an atomic or the like, of this many packets. */
static inline void
congestion_read(struct qp *qp, uint32_t packets)
{
	if (qp->peer != NULL && unlikely(cc_is_on(&qp->peer->cc)))
		congestion_read_count(qp, packets);
}
/* A packet of them was answered. */
static inline void
congestion_read_answered(struct qp *qp)
{
	if (unlikely(qp->req.uncounted))
		qp->cc_reading -= qp->cc_reading != 0;
}

/* Brings the QP's part of peer->uncounted, and req.uncounted, up to date. To be called
 * when req.unacked, req.stalled or qp->cc_reading has changed. */
void congestion_account(struct qp *qp);
/* The QP leaves its peer: nothing of it is in flight to it. */
void congestion_leave(struct qp *qp);

#endif
