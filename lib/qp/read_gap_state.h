/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The gap records of an engine, see read_gap.h, and what the files below read_gap.c read of
 * them. */
#ifndef ROCADE_QP_READ_GAP_STATE_H
#define ROCADE_QP_READ_GAP_STATE_H

#include <sys/queue.h>

#include "qp/qp.h"

#define READ_GAPS 64    /* of an engine; qp->read_gap has 8 bits */
#define READ_REPEATS 16 /* of a QP: repeats under way at once */

/* A missing range of a READ that was requested again. */
struct read_repeat {
	uint32_t psn, end; /* what has not been answered yet; equal: the entry is free */
	uint32_t
		sent_psn; /* req.next_psn at that time: later requests were sent after it */
	uint32_t number;  /* counts the repeats of a record */
	uint32_t sent_ns; /* low 32 bits of that time */
};

struct read_gap {
	TAILQ_ENTRY(read_gap) link; /* among the free ones */
	/* A bit for each PSN from una_psn up to end: */
	struct psn_bits placed; /* the response has come and is in memory */
	struct psn_bits lost;   /* it is lost: to be requested again */
	uint32_t end;   /* after the last packet that is placed, lost or acknowledged */
	uint32_t acked; /* the peer has executed what lies before */
	uint32_t
		vain; /* end of a READ during which a repeat of a later one was in vain */
	uint32_t repeats;
	uint16_t placed_count, lost_count;
	struct read_repeat repeat[READ_REPEATS];
};
TAILQ_HEAD(read_gap_list, read_gap);

struct read_gaps {
	struct read_gap_list free;
	struct read_gap gap[READ_GAPS];
};

/* The record of a QP that has one (qp->read_gap). */
static inline struct read_gap *
read_gap_of(const struct qp *qp)
{
	return &qp->shared->read_gaps->gap[qp->read_gap - 1];
}

/* New PSNs have no repeats. */
static inline void
read_gap_bits_clear(const struct qp *qp, uint32_t psn, uint32_t packets)
{
	psn_bits_clear(&qp->sq.read_bits->repeat_first, psn, packets);
	psn_bits_clear(&qp->sq.read_bits->repeat_last, psn, packets);
}

/* Responses that have come behind a missing one, of such a QP. */
static inline uint32_t
read_gap_placed(const struct qp *qp)
{
	return read_gap_of(qp)->placed_count;
}

#endif
