/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of a context for what Rocade does not have (docs/verbs.md): they fail as the
 * inline functions of <infiniband/verbs.h> do where a device has none, and log the call. No
 * call makes an object of these kinds, so that those which take one need no function. */
#include "verbs/context_ops.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

#define ABSENT_NULL(type, call, ...)                                                     \
	static type *absent_##call(__VA_ARGS__)                                          \
	{                                                                                \
		return null_errno(refusal_note(EOPNOTSUPP, "ibv_" #call, NULL));         \
	}
#define ABSENT_INT(call, ...)                                                            \
	static int absent_##call(__VA_ARGS__)                                            \
	{                                                                                \
		return refusal_note(EOPNOTSUPP, "ibv_" #call, NULL);                     \
	}

/* The arguments are not used. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

ABSENT_NULL(struct ibv_mr, alloc_null_mr, struct ibv_pd *pd)
ABSENT_NULL(struct ibv_counters, create_counters, struct ibv_context *context,
	struct ibv_counters_init_attr *attr)
ABSENT_NULL(struct ibv_flow, create_flow, struct ibv_qp *qp, struct ibv_flow_attr *attr)
ABSENT_NULL(struct ibv_flow_action, create_flow_action_esp, struct ibv_context *context,
	struct ibv_flow_action_esp_attr *attr)
ABSENT_NULL(struct ibv_wq, create_wq, struct ibv_context *context,
	struct ibv_wq_init_attr *attr)
ABSENT_NULL(struct ibv_rwq_ind_table, create_rwq_ind_table, struct ibv_context *context,
	struct ibv_rwq_ind_table_init_attr *attr)
ABSENT_INT(modify_qp_rate_limit, struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)

static int
absent_post_srq_ops(
	struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
	*bad_op = op;
	return refusal_note(EOPNOTSUPP, "ibv_post_srq_ops", NULL);
}

void
absent_ops_fill(struct verbs_context *base)
{
	base->alloc_null_mr = absent_alloc_null_mr;
	base->create_counters = absent_create_counters;
	base->ibv_create_flow = absent_create_flow;
	base->create_flow_action_esp = absent_create_flow_action_esp;
	base->create_wq = absent_create_wq;
	base->create_rwq_ind_table = absent_create_rwq_ind_table;
	base->modify_qp_rate_limit = absent_modify_qp_rate_limit;
	base->post_srq_ops = absent_post_srq_ops;
}
