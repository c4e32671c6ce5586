/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handler of packets returns a verdict: what it found. The calls of the engine
 * (qp_io.c) apply it; no handler moves the QP to an error state.
 */
#ifndef ROCADE_QP_VERDICT_H
#define ROCADE_QP_VERDICT_H

#include "qp/qp.h"

enum verdict {
	VERDICT_GO, /* no fault so far; at the end: executed */
	/* Not executed: dropped and counted, or a NAK is pending that keeps the
	 * connection. */
	VERDICT_DROP,
#define FAULT(name, syndrome, status, vendor) FAULT_##name,
#include "qp/fault.def"
#undef FAULT
};

/* Packets built, and why no more: a fault, or VERDICT_GO. Returned in a register. */
struct burst {
	uint32_t built;
	enum verdict verdict;
};

/* Applies any verdict on the request packet psn: sends the NAK, completes the current
 * receive in error or raises an event, and moves the QP to ERR. */
void verdict_apply(struct qp *qp, uint32_t psn, enum verdict verdict);

#endif
