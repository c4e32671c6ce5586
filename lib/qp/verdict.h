/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
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
	 * connection, or packets are resent. */
	VERDICT_DROP,
	VERDICT_LOCAL, /* requester: executed a request without packets */
#define FAULT(name, syndrome, status, vendor) FAULT_##name,
#define SEND_FAULT(name, status, vendor) FAULT_##name,
#include "qp/fault.def"
	FAULT_SEND_CQ_FULL, /* the event says so; what is outstanding is flushed */
};

/* Packets built, and a fault found with them, or VERDICT_GO. Returned in a register. */
struct burst {
	uint32_t built;
	enum verdict verdict;
};

/* Applies any verdict. A fault of the request packet psn sends the NAK, and completes the
 * current receive in error or raises an event. Another one completes the oldest send
 * request in error. Then the QP goes to ERR, or to SQE. */
void verdict_apply(struct qp *qp, uint32_t psn, enum verdict verdict);

#endif
