/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that Rocade's objects do not support (docs/verbs.md lists them). For other
 * objects they are forwarded to the real library. */
#include <endian.h>

#include "verbs/forward.h"
#include "verbs/newer.h"
#include "verbs/objects.h"
#include "verbs/refusal.h"

EXPORT int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	if (!context_is_ours(qp->context))
		return forward(0, ibv_query_qp_data_in_order, qp, op, flags);
	return 0; /* order not guaranteed */
}

EXPORT struct ibv_dmah *
ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr)
{
	if (!context_is_ours(context))
		return forward(NULL, ibv_alloc_dmah, context, attr);
	return null_errno(refusal_note(EOPNOTSUPP, "ibv_alloc_dmah", NULL));
}

/* Rocade creates no such object: it is of another device. */
EXPORT int
ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	return forward(ENOSYS, ibv_dealloc_dmah, dmah);
}
