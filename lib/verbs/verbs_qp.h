/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files that create QPs, and address handles and SRQs for them. */
#ifndef ROCADE_VERBS_VERBS_QP_H
#define ROCADE_VERBS_VERBS_QP_H

#include "verbs/objects.h"

/* ---- attr.c: converts between struct ibv_qp_attr and struct qp_attr of lib/qp ---- */

/* Reads a path and looks up its source address. Returns 0 or EINVAL. */
int qp_path_read(struct dev *dev, const struct ibv_ah_attr *ah, struct qp_path *out);

/* Reads the members that mask names, with the source GID looked up. Returns 0 or
 * EINVAL. */
int qp_attr_read(
	struct dev *dev, const struct ibv_qp_attr *attr, int mask, struct qp_attr *out);

/* Writes all members but the capabilities. */
void qp_attr_write(const struct qp_attr *core, struct ibv_qp_attr *attr);

/* ---- qp_handle.c: handles, a struct verbs_sender or a struct verbs_qp of an XRC target ---- */

/* Allocates a verbs_qp, zeroed but for its context: with ex and wr if extended, as part of
 * a struct verbs_sender if sends. Returns NULL if there is no memory. */
struct verbs_qp *verbs_qp_alloc(struct ibv_context *context, bool extended, bool sends);
void verbs_qp_free(struct verbs_qp *vqp);
/* Fills in the public part from vqp->qp, and initialises its mutex and condition
 * variable. */
void verbs_qp_publish(struct verbs_qp *vqp);

/* ---- verbs_xrc.c ---- */

/* Returns the number of the XRC domain. */
uint32_t xrcd_number(const struct verbs_xrcd *xrcd);

/* ibv_create_qp_ex(3) for an XRC target. */
struct ibv_qp *verbs_create_xrc_target(
	struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* ibv_destroy_qp(3) for a handle. The last handle takes the QP with it. */
void verbs_close_xrc_target(struct verbs_qp *vqp);

#endif
