/* SPDX-License-Identifier: BSD-3-Clause */
/* What ibv_create_cq(3) and ibv_create_cq_ex(3) share. */
#ifndef ROCADE_VERBS_CQ_H
#define ROCADE_VERBS_CQ_H

#include "verbs/objects.h"

#define CQ_STAMP_FLAGS                                                                   \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                           \
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* NULL and errno: EINVAL, ENOMEM. What attr may ask for has been checked. */
struct verbs_cq *cq_create(
	struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr);

/* Under the CQ's lock: a completion of a send has been polled. A live CQE names a live QP: reset
 * and destroy mark the QP's CQEs dead under this lock before they touch its SQ. */
static inline void
cq_free_slots(const struct dev *dev, uint32_t qpn, uint32_t end)
{
	struct qp *qp = qp_table_get(&dev->qps, qpn);

	if (likely(qp != NULL))
		sq_free(&qp->sq, end);
}

#endif
