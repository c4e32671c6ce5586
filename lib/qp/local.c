/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests that are no packets: binding and invalidating a window. They are done
 * where they stand in the queue, and what follows starts behind them (IBA 10.8.3.3). A
 * local invalidate fence would wait for the requests before that use the key: none can,
 * for only a peer can use a window.
 */
#include "qp/internal.h"

enum ibv_wc_status
local_execute(struct qp *qp, const struct send_wqe *wqe)
{
	struct window_bind bind = {
		.rkey = wqe->rkey,
		.parent = (uint32_t)wqe->swap,
		.va = wqe->remote_va,
		.len = wqe->compare_add,
		.access = (unsigned)(wqe->swap >> 32),
	};
	int rc;

	if (wr_row(wqe)->kind == WR_LOCAL_INV)
		rc = window_invalidate(qp->env->keys, qp->qpn, wqe->rkey);
	else
		rc = window_bind(qp->env->keys, qp->pd, qp->qpn, &qp->sq.windows, &bind);
	return rc == 0 ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}
