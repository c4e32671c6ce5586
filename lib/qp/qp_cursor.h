/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Cursors over the SGEs of a QP's requests and receives. For the files of lib/qp that
 * check or copy payload. */
#ifndef ROCADE_QP_QP_CURSOR_H
#define ROCADE_QP_QP_CURSOR_H

#include "qp/qp.h"

/* A request with SGEs. */
static inline struct sge_cursor
request_cursor(const struct qp *qp, const struct send_wqe *wqe, struct sge_pos *pos)
{
	return (struct sge_cursor){qp->shared->keys, wqe->sge, wqe->num_sge, qp->pd, pos};
}

/* The receive that the QP has taken. */
static inline struct sge_cursor
receive_cursor(const struct qp *qp, struct sge_pos *pos)
{
	return (struct sge_cursor){qp->shared->keys, qp->wqe->sge, qp->wqe->num_sge,
		qp->srq != NULL ? qp->srq->pd : qp->pd, pos};
}

#endif
