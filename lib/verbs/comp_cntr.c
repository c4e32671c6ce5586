/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3): counters of completed operations, which QPs
 * add to (qp/counting.h). The calls are those of rdma-core 65. */
#include <stddef.h>
#include <string.h>

#include "base/base_alloc.h"
#include "engine/dev.h"
#include "qp/counting.h"
#include "verbs/forward.h"
#include "verbs/newer.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"
#include "verbs/verbs_port.h"

struct verbs_comp_cntr {
	struct comp_cntr_head ibv; /* first: what the application has */
	struct comp_cntr cntr;
};

static struct comp_cntr_head *
to_head(struct ibv_comp_cntr *ibv)
{
	return (struct comp_cntr_head *)ibv;
}

static struct verbs_comp_cntr *
to_comp_cntr(struct ibv_comp_cntr *ibv)
{
	return (struct verbs_comp_cntr *)ibv;
}

static bool
comp_cntr_is_ours(struct ibv_comp_cntr *ibv)
{
	return context_is_ours(to_head(ibv)->context);
}

EXPORT int
_ibv_query_comp_cntr_caps(
	struct ibv_context *context, struct ibv_comp_cntr_caps *caps, size_t caps_size)
{
	const struct comp_cntr_caps full = {.max_value = UINT64_MAX,
		.max_counters = VERBS_MAX_COMP_CNTR,
		.qp_attach_ops = COUNTED_ALL};

	if (!context_is_ours(context))
		return forward(
			ENOSYS, _ibv_query_comp_cntr_caps, context, caps, caps_size);
	memset(caps, 0, caps_size);
	memcpy(caps, &full, RTE_MIN(caps_size, sizeof(full)));
	return 0;
}

static int
comp_cntr_attr_check(const struct comp_cntr_init_attr *attr)
{
	if (attr->comp_mask != 0 || attr->flags != 0)
		return EOPNOTSUPP;
	return attr->type <= COMP_CNTR_BYTES ? 0 : EINVAL;
}

EXPORT struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *ibv)
{
	const struct comp_cntr_init_attr *attr = (const void *)ibv;
	struct verbs_comp_cntr *vc;
	int err;

	if (!context_is_ours(context))
		return forward(NULL, ibv_create_comp_cntr, context, ibv);
	err = comp_cntr_attr_check(attr);
	if (err != 0)
		return null_errno(refusal_note(err, "ibv_create_comp_cntr",
			"the type is unknown, or comp_mask or flags is not 0"));
	if (!count_up_to(&to_ctx(context)->port->comp_cntrs, VERBS_MAX_COMP_CNTR))
		return null_errno(ENOMEM);
	vc = alloc_get(&alloc_plain, "verbs_comp_cntr", sizeof(*vc));
	if (vc == NULL) {
		count_down(&to_ctx(context)->port->comp_cntrs);
		return null_errno(ENOMEM);
	}
	count_up(&to_ctx(context)->objects);
	*vc = (struct verbs_comp_cntr){
		.ibv.context = context, .cntr.bytes = attr->type == COMP_CNTR_BYTES};
	return (struct ibv_comp_cntr *)vc;
}

EXPORT int
ibv_destroy_comp_cntr(struct ibv_comp_cntr *ibv)
{
	struct verbs_comp_cntr *vc = to_comp_cntr(ibv);
	struct verbs_ctx *ctx;

	if (!comp_cntr_is_ours(ibv))
		return forward(ENOSYS, ibv_destroy_comp_cntr, ibv);
	/* Pairs with the release of qp_counting_end(): no engine adds to it any more. */
	if (__atomic_load_n(&vc->cntr.attached, __ATOMIC_ACQUIRE) != 0)
		return errno_set(EBUSY);
	ctx = to_ctx(vc->ibv.context);
	alloc_put(&alloc_plain, vc, sizeof(*vc));
	count_down(&ctx->port->comp_cntrs);
	count_down(&ctx->objects);
	return 0;
}

EXPORT int
ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *ibv,
	struct ibv_qp_attach_comp_cntr_attr *ibv_attr)
{
	const struct comp_cntr_attach_attr *attr = (const void *)ibv_attr;
	struct verbs_qp *vqp;
	int err;

	if (!context_is_ours(qp->context))
		return forward(ENOSYS, ibv_qp_attach_comp_cntr, qp, ibv, ibv_attr);
	if (!comp_cntr_is_ours(ibv) || to_head(ibv)->context != qp->context ||
		attr->comp_mask != 0 || attr->op_mask == 0)
		return errno_set(refusal_note(EINVAL, "ibv_qp_attach_comp_cntr",
			"the counter is of another context, comp_mask is not 0, or op_mask is 0"));
	if ((attr->op_mask & ~COUNTED_ALL) != 0)
		return errno_set(
			refusal_note(EOPNOTSUPP, "ibv_qp_attach_comp_cntr", NULL));
	vqp = to_qp(qp);
	err = -dev_qp_count(vqp->qp, &to_comp_cntr(ibv)->cntr, attr->op_mask);
	if (err == 0 && vqp->extended)
		vqp->wr.always = vqp->qp->sq.always;
	return errno_set(err);
}

/* Pairs with the release of count(): the data of what was counted is there. */
static uint64_t
value_read(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

static void
value_set(uint64_t *value, uint64_t to)
{
	__atomic_store_n(value, to, __ATOMIC_RELAXED);
}

/* Atomic: engines add, too. */
static void
value_add(uint64_t *value, uint64_t amount)
{
	__atomic_fetch_add(value, amount, __ATOMIC_RELAXED);
}

/* The calls for the two values differ in the value only. */
#define COMP_CNTR_CALLS(err_, member)                                                    \
	EXPORT int ibv_set_##err_##comp_cntr(struct ibv_comp_cntr *ibv, uint64_t value)  \
	{                                                                                \
		if (!comp_cntr_is_ours(ibv))                                             \
			return forward(ENOSYS, ibv_set_##err_##comp_cntr, ibv, value);   \
		value_set(&to_comp_cntr(ibv)->cntr.member, value);                       \
		return 0;                                                                \
	}                                                                                \
	EXPORT int ibv_inc_##err_##comp_cntr(struct ibv_comp_cntr *ibv, uint64_t amount) \
	{                                                                                \
		if (!comp_cntr_is_ours(ibv))                                             \
			return forward(ENOSYS, ibv_inc_##err_##comp_cntr, ibv, amount);  \
		value_add(&to_comp_cntr(ibv)->cntr.member, amount);                      \
		return 0;                                                                \
	}                                                                                \
	EXPORT int ibv_read_##err_##comp_cntr(                                           \
		struct ibv_comp_cntr *ibv, uint64_t *value)                              \
	{                                                                                \
		if (!comp_cntr_is_ours(ibv))                                             \
			return forward(ENOSYS, ibv_read_##err_##comp_cntr, ibv, value);  \
		*value = value_read(&to_comp_cntr(ibv)->cntr.member);                    \
		return 0;                                                                \
	}

COMP_CNTR_CALLS(, done)
COMP_CNTR_CALLS(err_, failed)
