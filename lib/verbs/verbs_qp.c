/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_create_qp(3). */
#include "verbs/verbs_qp.h"
#include "verbs/context_ops.h"
#include "verbs/forward.h"
#include "verbs/queue_mem.h"
#include "verbs/refusal.h"
#include "verbs/wqe.h"

static int
qp_init_attr_check(const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		/* it has an XRC domain instead of a PD: ibv_create_qp_ex(3) */
		return EINVAL;
	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC &&
		attr->qp_type != IBV_QPT_UD && attr->qp_type != IBV_QPT_XRC_SEND)
		return EOPNOTSUPP;
	if (attr->send_cq == NULL || attr->send_cq->context != pd->context)
		return EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		return 0; /* it receives nothing: the other attributes are ignored */
	if (attr->recv_cq == NULL || attr->recv_cq->context != pd->context)
		return EINVAL;
	if (attr->srq != NULL &&
		(attr->srq->context != pd->context || to_srq(attr->srq)->xrcd != NULL))
		return EINVAL;
	return 0;
}

static int
qp_core_create(struct verbs_qp *vqp, const struct ibv_qp_init_attr *attr)
{
	struct verbs_ctx *ctx = to_ctx(vqp->ibv.context);
	struct qp_conf conf = {
		.type = attr->qp_type,
		.send_cq = &to_cq(attr->send_cq)->cq,
		.recv_cq = vqp->ibv.recv_cq != NULL ? &to_cq(vqp->ibv.recv_cq)->cq : NULL,
		.srq = vqp->ibv.srq != NULL ? &to_srq(vqp->ibv.srq)->srq : NULL,
		.pd = to_pd(vqp->ibv.pd)->number,
		.max_send_wr = attr->cap.max_send_wr,
		.max_send_sge = attr->cap.max_send_sge,
		.max_inline = attr->cap.max_inline_data,
		.max_recv_wr = attr->cap.max_recv_wr,
		.max_recv_sge = attr->cap.max_recv_sge,
		.sq_sig_all = attr->sq_sig_all != 0,
		.unlocked = pd_unlocked(vqp->ibv.pd),
	};
	const struct alloc *mem =
		queue_mem_new(to_pd(vqp->ibv.pd), &ctx->dev->mem, ROCADE_RESOURCE_QP);
	int rc;

	if (mem == NULL)
		return ENOMEM;
	if (mem != &ctx->dev->mem)
		conf.mem = mem;
	vqp->qp = sender_qp(vqp);
	rc = dev_qp_init(ctx->dev, vqp->qp, &conf,
		__atomic_load_n(&ctx->engine, __ATOMIC_RELAXED), &ctx->events, &vqp->ibv);
	if (rc == 0)
		queue_mem_created(mem);
	else
		queue_mem_free(mem);
	return -rc;
}

static void
qp_caps_fill(const struct qp *qp, struct ibv_qp_cap *cap)
{
	bool sends = qp->type != IBV_QPT_XRC_RECV;

	cap->max_send_wr = sends ? qp->sq.max_wr : 0;
	cap->max_send_sge = sends ? qp->sq.max_sge : 0;
	cap->max_inline_data = sends ? qp->sq.max_inline : 0;
	cap->max_recv_wr = qp->rq != NULL ? qp->rq->max_wr : 0;
	cap->max_recv_sge = qp->rq != NULL ? qp->rq->max_sge : 0;
}

static struct ibv_qp *
verbs_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, bool extended)
{
	struct verbs_qp *vqp;
	int err = qp_init_attr_check(pd, attr);

	if (err != 0)
		return null_errno(refusal_note(err, "ibv_create_qp", NULL));
	vqp = verbs_qp_alloc(pd->context, extended, true);
	if (vqp == NULL)
		return null_errno(ENOMEM);
	vqp->ibv.qp_context = attr->qp_context;
	vqp->ibv.pd = pd;
	vqp->ibv.send_cq = attr->send_cq;
	vqp->ibv.qp_type = attr->qp_type;
	if (attr->qp_type != IBV_QPT_XRC_SEND) {
		vqp->ibv.recv_cq = attr->recv_cq;
		vqp->ibv.srq = attr->srq;
	}
	err = qp_core_create(vqp, attr);
	if (err != 0) {
		verbs_qp_free(vqp);
		return null_errno(refusal_note(err, "ibv_create_qp",
			"a size is above max_qp_wr or max_sge (ibv_devinfo -v)"));
	}
	refusal_note(0, "ibv_create_qp", NULL);
	verbs_qp_publish(vqp);
	pd_use(to_pd(pd));
	qp_caps_fill(vqp->qp, &attr->cap);
	return &vqp->ibv;
}

EXPORT struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (!context_is_ours(pd->context))
		return forward(NULL, ibv_create_qp, pd, attr);
	return verbs_qp_create(pd, attr, false);
}

#define INIT_ATTR_KNOWN                                                                  \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |                           \
		IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/* <infiniband/verbs.h> calls this function if attr has more than a PD. */
struct ibv_qp *
verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;
	bool ops = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return verbs_create_xrc_target(context, attr);
	if ((attr->comp_mask & ~(uint32_t)INIT_ATTR_KNOWN) != 0)
		return null_errno(refusal_note(EOPNOTSUPP, "ibv_create_qp_ex", NULL));
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == NULL ||
		attr->pd->context != context)
		return null_errno(EINVAL);
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 &&
		attr->create_flags != 0)
		return null_errno(refusal_note(EOPNOTSUPP, "ibv_create_qp_ex", NULL));
	if (ops && wr_ops_check(attr->qp_type, attr->send_ops_flags) != 0)
		return null_errno(refusal_note(EOPNOTSUPP, "ibv_create_qp_ex", NULL));
	/* The extended structure begins with the plain one. */
	qp = verbs_qp_create(attr->pd, (struct ibv_qp_init_attr *)attr, ops);
	if (qp != NULL && ops)
		wr_ops_fill(to_qp(qp), attr->send_ops_flags);
	return qp;
}

EXPORT int
ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct verbs_qp *vqp;
	const struct alloc *mem;
	struct verbs_pd *pd;
	struct dev *dev;

	if (!context_is_ours(ibv->context))
		return forward(ENOSYS, ibv_destroy_qp, ibv);
	vqp = to_qp(ibv);
	pd = to_pd(ibv->pd);
	if (vqp->qp_listener != NULL) {
		verbs_close_xrc_target(vqp);
		return 0;
	}
	dev = to_ctx(ibv->context)->dev;
	if (dev_qp_attached(dev, vqp->qp))
		return errno_set(EBUSY);
	dev_qp_stop(dev, vqp->qp, engine_clock());
	events_wait_acked_stopped(&ibv->mutex, &ibv->cond, &ibv->events_completed,
		event_purge(&vqp->qp->events));
	mem = vqp->qp->sq.mem;
	dev_qp_fini(dev, vqp->qp);
	queue_mem_free(mem);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	verbs_qp_free(vqp);
	pd_unuse(pd);
	return 0;
}

static void
qp_init_attr_fill(const struct verbs_qp *vqp, struct ibv_qp_init_attr *attr)
{
	*attr = (struct ibv_qp_init_attr){
		.qp_context = vqp->ibv.qp_context,
		.send_cq = vqp->ibv.send_cq,
		.recv_cq = vqp->ibv.recv_cq,
		.srq = vqp->ibv.srq,
		.qp_type = vqp->ibv.qp_type,
		.sq_sig_all = (vqp->qp->sq.always & IBV_SEND_SIGNALED) != 0,
	};
	qp_caps_fill(vqp->qp, &attr->cap);
}

EXPORT int
ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
	struct ibv_qp_init_attr *init_attr)
{
	struct verbs_qp *vqp;
	struct qp_attr core;

	if (!context_is_ours(ibv->context))
		return forward(ENOSYS, ibv_query_qp, ibv, attr, attr_mask, init_attr);
	vqp = to_qp(ibv);
	dev_qp_query(vqp->qp, &core);
	qp_attr_write(&core, attr);
	qp_caps_fill(vqp->qp, &attr->cap);
	if (attr_mask & IBV_QP_STATE)
		ibv->state = core.state;
	if (init_attr != NULL)
		qp_init_attr_fill(vqp, init_attr);
	return 0;
}

/* Drops attributes that only the other type of XRC QP has: programs set them, and devices
 * ignore them. */
static int
xrc_mask_drop(enum ibv_qp_type type, int mask)
{
	if (type == IBV_QPT_XRC_SEND)
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (type == IBV_QPT_XRC_RECV)
		return mask &
		       ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	return mask;
}

EXPORT int
ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask)
{
	struct verbs_qp *vqp;
	struct qp_attr core;
	struct dev *dev;
	int err;

	if (!context_is_ours(ibv->context))
		return forward(ENOSYS, ibv_modify_qp, ibv, attr, attr_mask);
	vqp = to_qp(ibv);
	dev = to_ctx(ibv->context)->dev;
	attr_mask = xrc_mask_drop(ibv->qp_type, attr_mask);
	err = qp_attr_read(dev, attr, attr_mask, &core);
	if (err == 0)
		err = -dev_qp_modify(dev, vqp->qp, &core, attr_mask);
	if (err != 0)
		return refusal_note(
			err, "ibv_modify_qp", refusal_of_modify(dev, attr, attr_mask));
	if ((attr_mask & IBV_QP_STATE) == 0)
		return 0;
	ibv->state = attr->qp_state;
	if (attr->qp_state == IBV_QPS_RESET) {
		sq_lock(&vqp->qp->sq);
		vqp->any_signaled = false;
		sq_unlock(&vqp->qp->sq);
	}
	return 0;
}
