/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Completions of send requests, completions in error, and events. Every file of lib/qp may
 * call these; they call nothing of it. */
#ifndef ROCADE_QP_QP_CQE_H
#define ROCADE_QP_QP_CQE_H

#include "qp/qp.h"

/* Raises the event for the QP and for all its event listeners. Out of line: inlined it
 * costs its callers registers even when they raise nothing. */
void qp_event(struct qp *qp, enum ibv_event_type event);
/* Raises QP_FATAL, once: a completion found no room, and the QP is about to fail. */
void qp_raise_fatal(struct qp *qp);

/* Each puts a CQE. They return false if the CQ overflowed; QP_FATAL has been raised. */

/* For send request idx. Polling the CQE frees the SQ slots up to idx. */
bool qp_complete_send(
	struct qp *qp, uint32_t idx, enum ibv_wc_status status, uint32_t vendor);
/* For the oldest send request, which has succeeded: only if it is signaled. */
bool qp_complete_oldest(struct qp *qp);
/* For a receive, with an error. */
bool qp_complete_recv_error(
	struct qp *qp, uint64_t wr_id, enum ibv_wc_status status, uint32_t vendor);

#endif
