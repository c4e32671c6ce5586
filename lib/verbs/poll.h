/* SPDX-License-Identifier: BSD-3-Clause */
/* What a poll of a send completion frees, for poll.c and verbs_cq_ex.c. */
#ifndef ROCADE_VERBS_POLL_H
#define ROCADE_VERBS_POLL_H

#include "verbs/objects.h"

/* Frees SQ slots up to end: a send completion was polled. Called with the CQ's lock held.
 * A live CQE names a live QP, because reset and destroy clean the QP's CQEs under this
 * lock before they change its SQ. */
static inline void
cq_free_slots(const struct dev *dev, uint32_t qpn, uint32_t end)
{
	struct qp *qp = qp_table_get(&dev->qps, qpn);

	if (likely(qp != NULL))
		sq_free(&qp->sq, end);
}

#endif
