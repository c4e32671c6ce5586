/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_post(3): the setters of data and of the destination. */
#include "verbs/wqe.h"

/* Returns the request that is being built; NULL: there is none, or an error occurred. */
static inline struct send_wqe *
wr_current(struct verbs_wr *wr)
{
	if (unlikely(wr->wqe == NULL))
		wr_fail(wr, EINVAL);
	return wr->wqe;
}

static void
wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct verbs_qp *vqp = ex_to_qp(ex);
	struct send_wqe *wqe = wr_current(&vqp->wr);
	uint64_t total = 0;

	if (unlikely(wqe == NULL))
		return;
	if (unlikely(num_sge > vqp->qp->sq.max_sge)) {
		wr_fail(&vqp->wr, EINVAL);
		return;
	}
	sges_write(wqe->inline_data + vqp->wr.offset, list, (uint32_t)num_sge);
	for (size_t i = 0; i < num_sge; i++)
		total += list[i].length;
	if (unlikely(total > MSG_MAX)) {
		wr_fail(&vqp->wr, EINVAL);
		return;
	}
	wqe->len = (uint32_t)total;
	wqe->num_sge = (uint8_t)num_sge;
	wqe->flags &= (uint8_t)~IBV_SEND_INLINE;
}

static void
wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};

	wr_set_sge_list(ex, 1, &sge);
}

static void
wr_set_inline_data_list(
	struct ibv_qp_ex *ex, size_t num_buf, const struct ibv_data_buf *list)
{
	struct verbs_qp *vqp = ex_to_qp(ex);
	struct send_wqe *wqe = wr_current(&vqp->wr);
	size_t total = 0;

	if (unlikely(wqe == NULL))
		return;
	if (unlikely((wr_rows[wqe->opcode].flags & IBV_SEND_INLINE) == 0)) {
		wr_fail(&vqp->wr, EINVAL);
		return;
	}
	for (size_t i = 0; i < num_buf; i++) {
		/* Read once: another thread may be changing the list. */
		size_t length = __atomic_load_n(&list[i].length, __ATOMIC_RELAXED);

		if (unlikely(length > vqp->qp->sq.max_inline - total)) {
			wr_fail(&vqp->wr, EINVAL);
			return;
		}
		if (length != 0)
			memcpy(wqe->inline_data + vqp->wr.offset + total, list[i].addr,
				length);
		total += length;
	}
	wqe->len = (uint32_t)total;
	wqe->num_sge = 0;
	wqe->flags |= IBV_SEND_INLINE;
}

static void
wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

static void
wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
	uint32_t remote_qkey)
{
	struct verbs_qp *vqp = ex_to_qp(ex);
	struct send_wqe *wqe = wr_current(&vqp->wr);

	if (unlikely(wqe == NULL))
		return;
	if (unlikely(vqp->qp->type != IBV_QPT_UD || !dest_allowed(vqp, ah, remote_qpn))) {
		wr_fail(&vqp->wr, EINVAL);
		return;
	}
	dest_write(wqe, ah, remote_qpn, remote_qkey);
	vqp->wr.dest = true;
}

static void
wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct verbs_qp *vqp = ex_to_qp(ex);
	struct send_wqe *wqe = wr_current(&vqp->wr);

	if (unlikely(wqe == NULL))
		return;
	if (unlikely(vqp->qp->type != IBV_QPT_XRC_SEND || remote_srqn > 0xFFFFFF)) {
		wr_fail(&vqp->wr, EINVAL);
		return;
	}
	wqe->srqn = remote_srqn;
	vqp->wr.dest = true;
}

void
wr_setters_fill(struct ibv_qp_ex *ex)
{
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
}
