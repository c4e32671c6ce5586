/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_alloc_mw(3), ibv_bind_mw(3): memory windows of type 1 and 2 (2B of the IBA). */
#include <stdlib.h>

#include "verbs/context_ops.h"
#include "verbs/wqe.h"

struct ibv_mw *
verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct dev *dev = to_ctx(pd->context)->dev;
	struct verbs_mw *mw;
	int err;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return null_errno(EINVAL);
	mw = calloc(1, sizeof(*mw));
	if (mw == NULL)
		return null_errno(ENOMEM);
	err = -mw_create(&dev->keys, to_pd(pd)->number, type == IBV_MW_TYPE_2, &mw->mw);
	if (err != 0) {
		free(mw);
		return null_errno(err);
	}
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.type = type;
	mw->ibv.rkey = mw->mw->rkey;
	mw->ibv.handle = mw->ibv.rkey;
	mw->index = mw->ibv.rkey >> 8;
	mw->mw->shown = &mw->ibv.rkey;
	pd_use(to_pd(pd));
	return &mw->ibv;
}

/* Returns when no engine copies through the window any more. */
int
verbs_dealloc_mw(struct ibv_mw *mw)
{
	struct dev *dev = to_ctx(mw->context)->dev;

	dev_engines_lock(dev);
	mw_destroy(&dev->keys, to_mw(mw)->mw);
	dev_engines_unlock(dev);
	pd_unuse(to_pd(mw->pd));
	free(to_mw(mw));
	return 0;
}

/* With the SQ's lock held. */
static int
verbs_mw_bind_post(
	struct verbs_qp *vqp, struct ibv_mw *mw, const struct ibv_mw_bind *bind)
{
	struct sq *sq = &vqp->qp->sq;
	unsigned always = vqp->qp->sq.always;
	struct send_wqe *wqe;

	if (qp_state(vqp->qp) < IBV_QPS_RTS)
		return EINVAL;
	wqe = sq_next(sq, sq->prod);
	if (wqe == NULL) {
		send_count_full(vqp, "ibv_bind_mw");
		return ENOMEM;
	}
	wqe->wr_id = bind->wr_id;
	wqe->opcode = IBV_WR_BIND_MW;
	wqe->flags = (uint8_t)(bind->send_flags | always);
	wqe->num_sge = 0;
	wqe_bind_write(wqe, mw, ibv_inc_rkey(mw->rkey), &bind->bind_info);
	mw->rkey = wqe->rkey;
	if (wqe->flags & IBV_SEND_SIGNALED) {
		vqp->last_signaled = sq->prod + 1;
		vqp->any_signaled = true;
	}
	USDT_IN_MEMORY(post, vqp->ibv.qp_num, wqe->wr_id, wqe->opcode, wqe->len);
	sq_publish(sq, sq->prod + 1);
	return 0;
}

/* The inline function of <infiniband/verbs.h> has checked that the window is of type 1
 * and in the PD of the region. */
int
verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct verbs_qp *vqp = to_qp(qp);
	int err;

	if (qp->qp_type != IBV_QPT_RC && qp->qp_type != IBV_QPT_UC &&
		qp->qp_type != IBV_QPT_XRC_SEND)
		return errno_set(EINVAL);
	if ((bind->send_flags & ~(unsigned)LOCAL_FLAGS) != 0 ||
		!wqe_bind_info_check(&bind->bind_info))
		return errno_set(EINVAL);
	sq_lock(&vqp->qp->sq);
	err = verbs_mw_bind_post(vqp, mw, bind);
	sq_unlock(&vqp->qp->sq);
	if (err == 0)
		engine_doorbell(vqp->qp);
	return errno_set(err);
}
