/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_create_srq(3), ibv_modify_srq(3), ibv_query_srq(3). */
#include "verbs/context_ops.h"
#include "verbs/forward.h"
#include "verbs/objects.h"
#include "verbs/queue_mem.h"
#include "verbs/refusal.h"
#include "verbs/verbs_qp.h"

static struct verbs_srq *
verbs_srq_alloc(struct verbs_ctx *ctx)
{
	struct verbs_srq *srq = NULL;

	if (count_up_to(&ctx->port->srqs, VERBS_MAX_SRQ)) {
		srq = alloc_get(&alloc_plain, "verbs_srq", sizeof(*srq));
		if (srq == NULL)
			count_down(&ctx->port->srqs);
	}
	return srq;
}

static void
verbs_srq_free(struct verbs_ctx *ctx, struct verbs_srq *srq)
{
	alloc_put(&alloc_plain, srq, sizeof(*srq));
	count_down(&ctx->port->srqs);
}

static int
verbs_srq_create(
	struct ibv_pd *pd, const struct ibv_srq_attr *attr, struct verbs_srq **out)
{
	struct verbs_ctx *ctx = to_ctx(pd->context);
	struct verbs_srq *srq = verbs_srq_alloc(ctx);
	const struct alloc *mem;
	int err = ENOMEM;

	if (srq == NULL)
		return ENOMEM;
	mem = queue_mem_new(to_pd(pd), &ctx->dev->mem, ROCADE_RESOURCE_SRQ);
	if (mem != NULL) {
		err = -srq_init(&srq->srq, mem, to_pd(pd)->number, attr->max_wr,
			attr->max_sge, &ctx->events, srq);
		if (err != 0)
			queue_mem_free(mem);
	}
	if (err != 0) {
		verbs_srq_free(ctx, srq);
		return err;
	}
	queue_mem_created(mem);
	srq->srq.ring.unlocked = pd_unlocked(pd);
	srq->ibv.context = pd->context;
	srq->ibv.pd = pd;
	*out = srq;
	return 0;
}

static struct ibv_srq *
verbs_srq_publish(struct verbs_srq *srq, void *srq_context, struct ibv_srq_attr *attr)
{
	srq->ibv.srq_context = srq_context;
	srq->ibv.handle = srq->srq.srqn;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	pd_use(to_pd(srq->ibv.pd));
	dev_srq_add(to_ctx(srq->ibv.context)->dev, &srq->srq);
	attr->max_wr = srq->srq.ring.max_wr;
	attr->max_sge = srq->srq.ring.max_sge;
	return &srq->ibv;
}

EXPORT struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct verbs_srq *srq;
	int err;

	if (!context_is_ours(pd->context))
		return forward(NULL, ibv_create_srq, pd, attr);
	err = verbs_srq_create(pd, &attr->attr, &srq);
	if (err != 0)
		return null_errno(refusal_note(err, "ibv_create_srq",
			"a size is 0, or above max_srq_wr or max_srq_sge (ibv_devinfo -v)"));
	refusal_note(0, "ibv_create_srq", NULL);
	srq->srq.srqn = dev_srq_number(to_ctx(pd->context)->dev);
	return verbs_srq_publish(srq, attr->srq_context, &attr->attr);
}

static int
srq_ex_check(const struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED)
		return refusal_note(EOPNOTSUPP, "ibv_create_srq_ex", NULL);
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == NULL ||
		attr->pd->context != context)
		return EINVAL;
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 ||
		attr->srq_type == IBV_SRQT_BASIC)
		return 0;
	if (attr->srq_type == IBV_SRQT_TM)
		return refusal_note(EOPNOTSUPP, "ibv_create_srq_ex", NULL);
	if (attr->srq_type != IBV_SRQT_XRC || (attr->comp_mask & xrc) != xrc ||
		attr->xrcd == NULL || attr->cq == NULL)
		return EINVAL;
	return attr->xrcd->context == context && attr->cq->context == context ? 0
									      : EINVAL;
}

static void
srq_discard(struct verbs_srq *srq)
{
	struct verbs_ctx *ctx = to_ctx(srq->ibv.context);
	const struct alloc *mem = srq->srq.ring.mem;

	srq_fini(&srq->srq);
	queue_mem_free(mem);
	verbs_srq_free(ctx, srq);
}

/* Gives the SRQ a number by which packets name it. */
static int
srq_make_xrc(struct verbs_srq *srq, const struct ibv_srq_init_attr_ex *attr)
{
	int err;

	srq->srq.xrcd = xrcd_number(to_xrcd(attr->xrcd));
	srq->srq.cq = &to_cq(attr->cq)->cq;
	err = -dev_srq_publish(to_ctx(srq->ibv.context)->dev, &srq->srq);
	if (err != 0)
		return err;
	srq->xrcd = to_xrcd(attr->xrcd);
	count_up(&srq->xrcd->objects);
	return 0;
}

struct ibv_srq *
verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	bool xrc = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 &&
		   attr->srq_type == IBV_SRQT_XRC;
	struct verbs_srq *srq;
	int err = srq_ex_check(context, attr);

	if (err == 0)
		err = verbs_srq_create(attr->pd, &attr->attr, &srq);
	if (err != 0)
		return null_errno(err);
	if (xrc)
		err = srq_make_xrc(srq, attr);
	else
		srq->srq.srqn = dev_srq_number(to_ctx(context)->dev);
	if (err != 0) {
		srq_discard(srq);
		return null_errno(err);
	}
	return verbs_srq_publish(srq, attr->srq_context, &attr->attr);
}

int
verbs_get_srq_num(struct ibv_srq *ibv, uint32_t *srq_num)
{
	*srq_num = to_srq(ibv)->srq.srqn;
	return 0;
}

EXPORT int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct srq_attr core;
	int err;

	if (!context_is_ours(srq->context))
		return forward(ENOSYS, ibv_modify_srq, srq, attr, mask);
	core = (struct srq_attr){.max_wr = attr->max_wr,
		.max_sge = attr->max_sge,
		.limit = attr->srq_limit};
	err = -dev_srq_modify(to_ctx(srq->context)->dev, &to_srq(srq)->srq, &core, mask);
	if (err == 0 && (mask & IBV_SRQ_MAX_WR) != 0) {
		attr->max_wr = core.max_wr;
		attr->max_sge = core.max_sge;
	}
	return errno_set(err);
}

EXPORT int
ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct dev *dev;
	struct srq_attr core;
	int err;

	if (!context_is_ours(srq->context))
		return forward(ENOSYS, ibv_query_srq, srq, attr);
	dev = to_ctx(srq->context)->dev;
	pthread_mutex_lock(&dev->lock); /* excludes a resize */
	err = -srq_query(&to_srq(srq)->srq, &core);
	pthread_mutex_unlock(&dev->lock);
	if (err != 0)
		return errno_set(err);
	*attr = (struct ibv_srq_attr){
		.max_wr = core.max_wr, .max_sge = core.max_sge, .srq_limit = core.limit};
	return 0;
}

EXPORT int
ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct verbs_srq *srq;
	struct verbs_pd *pd;
	struct dev *dev;
	uint32_t delivered;
	bool busy;

	if (!context_is_ours(ibv->context))
		return forward(ENOSYS, ibv_destroy_srq, ibv);
	srq = to_srq(ibv);
	dev = to_ctx(ibv->context)->dev;
	pthread_mutex_lock(&dev->lock);
	busy = srq->srq.qps != 0;
	pthread_mutex_unlock(&dev->lock);
	if (busy)
		return errno_set(EBUSY);
	dev_srq_remove(dev, &srq->srq);
	if (srq->xrcd != NULL)
		dev_srq_withdraw(dev, &srq->srq);
	delivered = event_purge(&srq->srq.events);
	events_wait_acked_stopped(
		&ibv->mutex, &ibv->cond, &ibv->events_completed, delivered);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	if (srq->xrcd != NULL)
		count_down(&srq->xrcd->objects);
	pd = to_pd(ibv->pd);
	srq_discard(srq);
	pd_unuse(pd);
	return 0;
}

EXPORT int
rocade_srq_info_sized(struct ibv_srq *ibv, struct rocade_srq_info *info, size_t size)
{
	struct rocade_srq_info got = {0};
	struct srq *srq;
	struct dev *dev;

	if (arg_missing("srq", ibv) || arg_missing("info", info))
		return EINVAL;
	if (!context_is_ours(ibv->context))
		return rocade_fail(EINVAL, "the SRQ is not of a Rocade device");
	srq = &to_srq(ibv)->srq;
	dev = to_ctx(ibv->context)->dev;
	pthread_mutex_lock(&dev->lock);
	got.max_wr = srq->ring.max_wr;
	got.max_sge = srq->ring.max_sge;
	got.outstanding = recv_ring_outstanding(&srq->ring);
	got.limit = srq_limit(srq);
	got.limit_events = __atomic_load_n(&srq->limit_fired, __ATOMIC_RELAXED);
	got.error = __atomic_load_n(&srq->error, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&dev->lock);
	out_give(info, size, &got, sizeof(got));
	return 0;
}
