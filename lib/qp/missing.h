/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The files below loss.c read here what is missing of a QP's packets
 * (recovery/txmap.h). */
#ifndef ROCADE_QP_MISSING_H
#define ROCADE_QP_MISSING_H

#include "qp/qp_state.h"
#include "recovery/txmap.h"

/* The record of a QP that has one (req.missing). */
static inline struct txmap *
missing_of(const struct qp *qp)
{
	return &qp->shared->txmaps->all[qp->txmap];
}

/* True if READ responses are missing: una_psn is that of one. */
static inline bool
missing_reads(const struct qp *qp)
{
	return unlikely(qp->req.missing) && missing_of(qp)->reads;
}

/* Packets that have arrived behind a missing one, of a QP that has a record. */
static inline uint32_t
missing_arrived(const struct qp *qp)
{
	return psn_bits_count(&missing_of(qp)->arrived);
}

#endif
