/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_post(3): what its files tell each other, and what ibv_create_qp_ex(3) needs. */
#ifndef ROCADE_VERBS_WR_H
#define ROCADE_VERBS_WR_H

#include "verbs/objects.h"

/* 0, or EOPNOTSUPP: an operation that is not here, or that the type does not have. */
int wr_ops_check(enum ibv_qp_type type, uint64_t send_ops_flags);

/* The QP's functions; the flags passed the check. */
void wr_ops_fill(struct verbs_qp *vqp, uint64_t send_ops_flags);

void wr_builders_fill(struct ibv_qp_ex *ex);
void wr_setters_fill(struct ibv_qp_ex *ex);

/* The first error stands; there is no request to set anything of any more. */
void wr_fail(struct verbs_wr *wr, int err);

static inline struct verbs_qp *
ex_to_qp(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct verbs_qp, ex);
}

#endif
