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

#endif
