/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The error states (flush.c). Called from above the handlers of packets only:
 * verdict.c, qp_io.c, modify.c and qp_init.c. */
#ifndef ROCADE_QP_QP_ERROR_H
#define ROCADE_QP_QP_ERROR_H

#include "qp/qp.h"

/* Moves the QP to ERR: everything outstanding completes with WR_FLUSH_ERR, in order. */
void qp_error(struct qp *qp);
/* Moves the QP to SQE: the send queue completes with WR_FLUSH_ERR, in order. */
void qp_sq_error(struct qp *qp);
/* In ERR and SQE: flushes requests posted since the QP entered the state. */
void qp_flush(struct qp *qp);
/* Resets the attributes that ibv_modify_qp(3) sets (IBA 10.3.1.1). */
void qp_attr_default(struct qp *qp);

#endif
