/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC, shared by the files of lib/verbs. */
#ifndef ROCADE_VERBS_VERBS_XRC_H
#define ROCADE_VERBS_VERBS_XRC_H

#include "verbs/objects.h"

struct ibv_xrcd *verbs_open_xrcd(
	struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int verbs_close_xrcd(struct ibv_xrcd *xrcd);
/* Returns the number of the XRC domain. */
uint32_t xrcd_number(const struct verbs_xrcd *xrcd);

/* ibv_create_qp_ex(3) for an XRC target. */
struct ibv_qp *verbs_create_xrc_target(
	struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
/* ibv_destroy_qp(3) for a handle. The last handle takes the QP with it. */
void verbs_close_xrc_target(struct verbs_qp *vqp);

struct ibv_srq *verbs_create_srq_ex(
	struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);

#endif
