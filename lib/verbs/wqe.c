/* SPDX-License-Identifier: BSD-3-Clause */
/* The rare checks of a send request: memory windows, atomics, a full queue. */
#include "verbs/refusal.h"
#include "verbs/wqe.h"

#define MW_ACCESS                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |     \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

bool
wqe_bind_info_check(const struct ibv_mw_bind_info *info)
{
	if ((info->mw_access_flags & ~(unsigned)MW_ACCESS) != 0)
		return false;
	return info->mr != NULL || (info->length == 0 && info->addr == 0);
}

bool
wqe_bind_check(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	return mw != NULL && mw->type == IBV_MW_TYPE_2 && wqe_bind_info_check(info);
}

/* IBA 10.6.7.2.2: the consumer owns the low 8 bits of a key, the device the others. */
void
wqe_bind_write(struct send_wqe *wqe, const struct ibv_mw *mw, uint32_t key,
	const struct ibv_mw_bind_info *info)
{
	wqe->len = 0;
	wqe->rkey = ((const struct verbs_mw *)mw)->index << 8 | (key & 0xFF);
	wqe->remote_va = info->addr;
	wqe->bind.len = info->length;
	wqe->bind.parent = info->mr != NULL ? info->mr->lkey : 0;
	wqe->bind.access = info->mw_access_flags;
}

bool RARE
send_check_more(const struct ibv_send_wr *wr, uint64_t total)
{
	if (wr_rows[wr->opcode].form == POST_BIND)
		return wqe_bind_check(wr->bind_mw.mw, &wr->bind_mw.bind_info);
	if (wr->opcode == IBV_WR_ATOMIC_WRITE)
		return total == 8 && wr->wr.rdma.remote_addr % 8 == 0;
	/* C9-91: an atomic is on an aligned word of 8 bytes. */
	return wr_rows[wr->opcode].form == POST_ATOMIC && total == 8 &&
	       wr->wr.atomic.remote_addr % 8 == 0;
}

/* Called when the queue is full. Counts the request if the queue can never recover,
 * because no request in it is signaled. */
void RARE
send_count_full(struct verbs_qp *vqp, const char *call)
{
	struct qp *qp = vqp->qp;
	uint32_t freed = __atomic_load_n(&qp->sq.freed, __ATOMIC_RELAXED);
	bool signaled = vqp->any_signaled && (int32_t)(vqp->last_signaled - freed) > 0;

	if (signaled || qp_state(qp) != IBV_QPS_RTS)
		return;
	qp->sq.full_unsignaled++;
	refusal_note_full(call);
}
