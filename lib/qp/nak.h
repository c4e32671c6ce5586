/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Loss recovery of the requester: what NAKs, implied NAKs and the ACK timeout make it send
 * again (docs/protocol.md 7.5). Called by completer.c. */
#ifndef ROCADE_QP_NAK_H
#define ROCADE_QP_NAK_H

#include "qp/read_gap.h"

/* Resends from una_psn, charged to retry_cnt. fault: when no retry is left. */
enum verdict nak_resend(struct qp *qp, enum verdict fault);
/* A packet behind missing responses has shown that: una_psn is one of them. Returns
 * VERDICT_DROP, or a fault. */
enum verdict nak_behind_missing(struct qp *qp, enum read_gap_found found, uint64_t now);
/* A NAK has come, and all before its PSN is complete. rnr_waits: the QP was in an RNR wait
 * when it came. */
enum verdict nak_apply(
	struct qp *qp, uint32_t psn, unsigned syndrome, bool rnr_waits, uint64_t now);

#endif
