/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that Rocade's objects do not support (docs/verbs.md lists them). For other
 * objects they are forwarded to the real library. */
#include <endian.h>
#include <string.h>

#include "verbs/forward.h"
#include "verbs/newer.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

EXPORT struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
	int fd, int access)
{
	if (!context_is_ours(pd->context))
		return forward(
			NULL, ibv_reg_dmabuf_mr, pd, offset, length, iova, fd, access);
	return null_errno(refusal_note(EOPNOTSUPP, "ibv_reg_dmabuf_mr", NULL));
}

EXPORT int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	if (!context_is_ours(qp->context))
		return forward(0, ibv_query_qp_data_in_order, qp, op, flags);
	return 0; /* order not guaranteed */
}

EXPORT int
ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	if (!context_is_ours(dm->context))
		return forward(-1, ibv_dm_export_dmabuf_fd, dm);
	return minus_errno(refusal_note(EOPNOTSUPP, "ibv_dm_export_dmabuf_fd", NULL));
}

EXPORT int
ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
{
	if (!context_is_ours(context))
		return forward(
			ENOSYS, ibv_query_port_speed, context, port_num, port_speed);
	return refusal_note(EOPNOTSUPP, "ibv_query_port_speed", NULL);
}

EXPORT struct ibv_dmah *
ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr)
{
	if (!context_is_ours(context))
		return forward(NULL, ibv_alloc_dmah, context, attr);
	return null_errno(refusal_note(EOPNOTSUPP, "ibv_alloc_dmah", NULL));
}

EXPORT int
_ibv_query_comp_cntr_caps(
	struct ibv_context *context, struct ibv_comp_cntr_caps *caps, size_t caps_size)
{
	if (!context_is_ours(context))
		return forward(
			ENOSYS, _ibv_query_comp_cntr_caps, context, caps, caps_size);
	memset(caps, 0, caps_size);
	return refusal_note(EOPNOTSUPP, "ibv_query_comp_cntr_caps", NULL);
}

EXPORT struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *attr)
{
	if (!context_is_ours(context))
		return forward(NULL, ibv_create_comp_cntr, context, attr);
	return null_errno(refusal_note(EOPNOTSUPP, "ibv_create_comp_cntr", NULL));
}

EXPORT int
ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *counter,
	struct ibv_qp_attach_comp_cntr_attr *attr)
{
	if (!context_is_ours(qp->context))
		return forward(ENOSYS, ibv_qp_attach_comp_cntr, qp, counter, attr);
	return refusal_note(EOPNOTSUPP, "ibv_qp_attach_comp_cntr", NULL);
}

/* Rocade creates no object of these kinds. So the calls are for objects of others. */
#define FORWARD_ONLY(call, declared, ...)                                                \
	EXPORT int call declared                                                         \
	{                                                                                \
		return forward(ENOSYS, call, __VA_ARGS__);                               \
	}

FORWARD_ONLY(ibv_dealloc_dmah, (struct ibv_dmah * dmah), dmah)
FORWARD_ONLY(ibv_destroy_comp_cntr, (struct ibv_comp_cntr * counter), counter)
FORWARD_ONLY(ibv_set_comp_cntr, (struct ibv_comp_cntr * counter, uint64_t value), counter,
	value)
FORWARD_ONLY(ibv_set_err_comp_cntr, (struct ibv_comp_cntr * counter, uint64_t value),
	counter, value)
FORWARD_ONLY(ibv_inc_comp_cntr, (struct ibv_comp_cntr * counter, uint64_t amount),
	counter, amount)
FORWARD_ONLY(ibv_inc_err_comp_cntr, (struct ibv_comp_cntr * counter, uint64_t amount),
	counter, amount)
FORWARD_ONLY(ibv_read_comp_cntr, (struct ibv_comp_cntr * counter, uint64_t *value),
	counter, value)
FORWARD_ONLY(ibv_read_err_comp_cntr, (struct ibv_comp_cntr * counter, uint64_t *value),
	counter, value)
