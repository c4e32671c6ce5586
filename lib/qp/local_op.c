/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Work requests without packets: bind and invalidate of a memory window, and those that a
 * script of faults makes fail (request_fault.h). They are
 * executed in queue order, and the requests after them start when they are done (IBA
 * 10.8.3.3). An invalidate needs no local invalidate fence: earlier requests of the
 * queue cannot use the key, because only a peer can use a memory window.
 */
#include "qp/req.h"

enum verdict
local_execute(struct qp *qp, const struct send_wqe *wqe)
{
	struct mw_bind bind = {
		.rkey = wqe->rkey,
		.parent = wqe->bind.parent,
		.va = wqe->remote_va,
		.len = wqe->bind.len,
		.access = wqe->bind.access,
	};
	int rc;

	if (unlikely(wr_row(wqe)->kind == WR_FAULT))
		return FAULT_INJECTED;
	if (wr_row(wqe)->kind == WR_LOCAL_INV)
		rc = mw_invalidate(qp->shared->keys, qp->qpn, wqe->rkey);
	else
		rc = mw_bind(qp->shared->keys, qp->pd, qp->qpn, &qp->sq.bound_mws, &bind);
	return rc == 0 ? VERDICT_GO : FAULT_MW_BIND;
}
