/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Receives of an SRQ that several engines use, taken together: one atomic operation for all messages
 * of a burst that begin one behind the other on one QP.
 *
 * The messages are counted before the take, and only those that are going to take a receive: packets
 * in sequence of an RC QP, which admits them, holds no packets, and whose SRQ has no mbufs. Such a message takes its receive
 * unless a message before it moves the QP to ERR. So receives of a claim are used by the messages
 * that they were taken for, in order, within the burst, or are flushed with the QP. None goes back,
 * and none is kept from other engines: they have been taken, as by an engine that was faster.
 */
#ifndef ROCADE_QP_CLAIM_H
#define ROCADE_QP_CLAIM_H

#include "qp/rx_burst.h"
#include "queue/srq.h"

struct qp;

/* Of an engine; used with the engine lock held. */
struct qp_claim {
	bool off; /* ROCADE_OFF=srq-claim */
	struct qp
		*qp; /* whose messages take the rest of the claim; NULL: it is used up */
	struct recv_claim claim;
};

/* As srq_take(), for the message that begins with this packet, of a QP with a shared SRQ. */
int claim_take(struct qp *qp, const struct pkt_view *v);

/* The QP enters ERR: completes in error what is left of its claim. */
void claim_flush(struct qp *qp);

/* The QP leaves the engine, or is reset. */
void claim_forget(struct qp *qp);

#endif
