/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC, for verbs_qp.c (targets) and verbs_srq.c (number of the domain). */
#ifndef ROCADE_VERBS_VERBS_XRC_H
#define ROCADE_VERBS_VERBS_XRC_H

#include "verbs/objects.h"

/* Returns the number of the XRC domain. */
uint32_t xrcd_number(const struct verbs_xrcd *xrcd);

/* ibv_create_qp_ex(3) for an XRC target. */
struct ibv_qp *verbs_create_xrc_target(
	struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* ibv_destroy_qp(3) for a handle. The last handle takes the QP with it. */
void verbs_close_xrc_target(struct verbs_qp *vqp);

#endif
