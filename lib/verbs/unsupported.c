/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that Rocade's objects do not support (docs/verbs.md lists them). For other
 * objects they are forwarded to the real library. */
#include <endian.h>

#include "verbs/forward.h"
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
