/* SPDX-License-Identifier: BSD-3-Clause */
/* The send_ops_flags of ibv_create_qp_ex(3). */
#include <rocade/flush.h>

#include "verbs/forward.h"
#include "verbs/wqe.h"

static const struct wr_op {
	uint32_t flag; /* IBV_QP_EX_WITH_* */
	uint8_t opcode;
} wr_ops[] = {
	{IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE},
	{IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM},
	{IBV_QP_EX_WITH_SEND, IBV_WR_SEND},
	{IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM},
	{IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ},
	{IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP},
	{IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD},
	{IBV_QP_EX_WITH_LOCAL_INV, IBV_WR_LOCAL_INV},
	{IBV_QP_EX_WITH_BIND_MW, IBV_WR_BIND_MW},
	{IBV_QP_EX_WITH_SEND_WITH_INV, IBV_WR_SEND_WITH_INV},
	{IBV_QP_EX_WITH_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE},
	{ROCADE_QP_EX_WITH_FLUSH, WR_OPCODE_FLUSH},
};

/* Returns a bit for each IBV_WR_* of these flags that the type supports; *known: their
 * flags. */
static uint32_t
wr_opcodes(enum ibv_qp_type type, uint64_t flags, uint64_t *known)
{
	uint32_t opcodes = 0;

	*known = 0;
	for (unsigned i = 0; i < RTE_DIM(wr_ops); i++) {
		if ((flags & wr_ops[i].flag) == 0 ||
			!wr_of_type(&wr_rows[wr_ops[i].opcode], type))
			continue;
		opcodes |= UINT32_C(1) << wr_ops[i].opcode;
		*known |= wr_ops[i].flag;
	}
	return opcodes;
}

int
wr_ops_check(enum ibv_qp_type type, uint64_t send_ops_flags)
{
	uint64_t known;

	wr_opcodes(type, send_ops_flags, &known);
	return known == send_ops_flags ? 0 : EOPNOTSUPP;
}

void
wr_ops_fill(struct verbs_qp *vqp, uint64_t send_ops_flags)
{
	bool ud = vqp->qp->type == IBV_QPT_UD;
	uint64_t known;

	vqp->wr.addressed = ud || vqp->qp->type == IBV_QPT_XRC_SEND;
	vqp->wr.dest_max =
		ud ? mtu_bytes(to_ctx(vqp->ibv.context)->dev->active_mtu) : UINT32_MAX;
	vqp->wr.offset = ud ? sizeof(struct ud_dest) : 0;
	vqp->wr.always = vqp->qp->sq.always;
	vqp->wr.opcodes = wr_opcodes(vqp->qp->type, send_ops_flags, &known);
	wr_builders_fill(&vqp->ex);
	wr_setters_fill(&vqp->ex);
}

EXPORT struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	if (!context_is_ours(qp->context))
		return forward(NULL, ibv_qp_to_qp_ex, qp);
	return to_qp(qp)->extended ? &to_qp(qp)->ex : NULL;
}
