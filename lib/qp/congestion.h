/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The signals of a QP for the congestion control of its peer (cc.h). Called by tlp.c,
 * requester.c, completer.c and cnp.c. */
#ifndef ROCADE_QP_CONGESTION_H
#define ROCADE_QP_CONGESTION_H

#include "qp/qp.h"

/* A round trip is measured from now on. There is control. */
void congestion_sent(struct qp *qp, uint64_t now);
/* It is over, and rtt_counts. */
void congestion_sample(struct qp *qp, uint64_t now);
/* A packet was lost. */
void congestion_loss(struct qp *qp, uint64_t now);
/* A tail-loss probe is due, the nth since the last progress. */
void congestion_probe(struct qp *qp, unsigned nth, uint64_t now);
/* A CNP has come. */
void congestion_cnp(struct qp *qp, uint64_t now);
/* Packets were sent, and peer_is_slow(): below one packet closes the window for a
 * while. */
void congestion_pace(struct qp *qp, uint64_t now);

/* ---- READs and atomics ---- */

/* The QP has sent one. */
void congestion_read(struct qp *qp);
/* Such a QP had `before` packets in flight, and now has `after`. */
void congestion_reading(struct qp *qp, uint32_t before, uint32_t after);

#endif
