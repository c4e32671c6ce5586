/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by ibv_create_cq(3) and ibv_create_cq_ex(3). */
#ifndef ROCADE_VERBS_VERBS_CQ_H
#define ROCADE_VERBS_VERBS_CQ_H

#include "verbs/objects.h"

#define CQ_STAMP_FLAGS                                                                   \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                           \
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* Creates a CQ from attr, whose flags the caller has checked. Returns NULL and sets
 * errno: EINVAL, ENOMEM. */
struct verbs_cq *verbs_cq_create(
	struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr);

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
