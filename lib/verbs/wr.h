/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of ibv_wr_post(3), shared by wr.c, wr_ops.c, wr_set.c and
 * ibv_create_qp_ex(3). */
#ifndef ROCADE_VERBS_WR_H
#define ROCADE_VERBS_WR_H

#include "verbs/objects.h"

/* Returns 0, or EOPNOTSUPP: an operation is not supported, or not by this QP type. */
int wr_ops_check(enum ibv_qp_type type, uint64_t send_ops_flags);

/* Sets the QP's functions. send_ops_flags passed wr_ops_check(). */
void wr_ops_fill(struct verbs_qp *vqp, uint64_t send_ops_flags);

/* Sets the functions that begin a request. */
void wr_builders_fill(struct ibv_qp_ex *ex);
/* Sets the functions that fill in data and destination of a request. */
void wr_setters_fill(struct ibv_qp_ex *ex);

/* Records the first error of the batch, and drops the request being built. Setters fail
 * from then on. */
void wr_fail(struct verbs_wr *wr, int err);

static inline struct verbs_qp *
ex_to_qp(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct verbs_qp, ex);
}

#endif
