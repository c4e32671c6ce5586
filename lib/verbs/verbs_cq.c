/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_create_cq(3), ibv_resize_cq(3), ibv_modify_cq(3). */
#include "verbs/verbs_cq.h"
#include "verbs/forward.h"
#include "verbs/queue_mem.h"
#include "verbs/refusal.h"

static int
cq_attr_check(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->channel != NULL && attr->channel->context != context)
		return EINVAL;
	if (attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		return EINVAL;
	return 0;
}

/* The ring, and the time stamps if the application wants any. */
static int
cq_core_create(struct verbs_ctx *ctx, struct verbs_cq *cq,
	const struct ibv_cq_init_attr_ex *attr)
{
	bool domain = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
	const struct alloc *mem =
		queue_mem_new(domain ? to_pd(attr->parent_domain) : NULL, &ctx->dev->mem,
			ROCADE_RESOURCE_CQ);
	int err;

	if (mem == NULL)
		return ENOMEM;
	err = -cq_init(&cq->cq, mem, attr->cqe, &ctx->events, cq);
	if (err == 0 && (attr->wc_flags & CQ_STAMP_FLAGS) != 0)
		err = -cq_enable_stamps(&cq->cq);
	if (err == 0)
		queue_mem_created(mem);
	else
		queue_mem_free(mem);
	return err;
}

static struct verbs_cq *
verbs_cq_alloc(struct verbs_ctx *ctx)
{
	struct verbs_cq *cq = NULL;

	if (count_up_to(&ctx->port->cqs, VERBS_MAX_CQ)) {
		cq = alloc_get(&alloc_plain, "verbs_cq", sizeof(*cq));
		if (cq == NULL)
			count_down(&ctx->port->cqs);
	}
	return cq;
}

static void
verbs_cq_free(struct verbs_ctx *ctx, struct verbs_cq *cq)
{
	alloc_put(&alloc_plain, cq, sizeof(*cq));
	count_down(&ctx->port->cqs);
}

struct verbs_cq *
verbs_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	struct verbs_ctx *ctx = to_ctx(context);
	struct verbs_cq *cq;
	int err = ctx->dev != NULL ? cq_attr_check(context, attr) : ENODEV;

	if (err != 0)
		return null_errno(refusal_note(err, "ibv_create_cq", NULL));
	cq = verbs_cq_alloc(ctx);
	if (cq == NULL)
		return null_errno(ENOMEM);
	err = cq_core_create(ctx, cq, attr);
	if (err != 0) {
		verbs_cq_free(ctx, cq);
		return null_errno(refusal_note(err, "ibv_create_cq",
			"the size is above max_cqe (ibv_devinfo -v)"));
	}
	refusal_note(0, "ibv_create_cq", NULL);
	cq->dev = ctx->dev;
	cq->cq.moderator = &ctx->dev->cq_moderator;
	cq->ibv.context = context;
	cq->ibv.cq_context = attr->cq_context;
	if (attr->channel != NULL) {
		cq_set_channel(&cq->cq, &to_channel(attr->channel)->events, cq);
		__atomic_fetch_add(&attr->channel->refcnt, 1, __ATOMIC_RELAXED);
		cq->ibv.channel = attr->channel;
	}
	cq->ibv.cqe = (int)cq->cq.size;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	count_up(&ctx->objects);
	return cq;
}

EXPORT struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	struct verbs_cq *cq;

	if (!context_is_ours(context))
		return forward(NULL, ibv_create_cq, context, cqe, cq_context, channel,
			comp_vector);
	if (cqe < 1 || comp_vector < 0)
		return null_errno(EINVAL);
	cq = verbs_cq_create(context, &(struct ibv_cq_init_attr_ex){
					      .cqe = (uint32_t)cqe,
					      .cq_context = cq_context,
					      .channel = channel,
					      .comp_vector = (uint32_t)comp_vector,
				      });
	return cq != NULL ? &cq->ibv : NULL;
}

EXPORT int
ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct verbs_cq *cq;
	int err;

	if (!context_is_ours(ibv->context))
		return forward(ENOSYS, ibv_resize_cq, ibv, cqe);
	cq = to_cq(ibv);
	if (cqe < 1)
		return errno_set(EINVAL);
	err = -dev_cq_resize(cq->dev, &cq->cq, (uint32_t)cqe, engine_clock());
	if (err == 0)
		ibv->cqe = (int)rte_align32pow2((uint32_t)cqe);
	return errno_set(err);
}

/* The errors are those of the kernel's ib_uverbs_ex_modify_cq(). */
int
verbs_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	struct verbs_cq *cq = to_cq(ibv);

	if (attr->attr_mask == 0)
		return refusal_note(EINVAL, "ibv_modify_cq", "attr_mask is 0");
	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return refusal_note(EOPNOTSUPP, "ibv_modify_cq", NULL);
	dev_cq_moderate(
		cq->dev, &cq->cq, attr->moderate.cq_count, attr->moderate.cq_period);
	return refusal_note(0, "ibv_modify_cq", NULL);
}

EXPORT int
ibv_destroy_cq(struct ibv_cq *ibv)
{
	const struct alloc *mem;
	struct verbs_cq *cq;
	bool busy;

	if (!context_is_ours(ibv->context))
		return forward(ENOSYS, ibv_destroy_cq, ibv);
	cq = to_cq(ibv);
	pthread_mutex_lock(&cq->dev->lock);
	busy = cq->cq.engines != 0;
	pthread_mutex_unlock(&cq->dev->lock);
	if (busy)
		return errno_set(EBUSY);
	if (cq->cq.moderation.period_ns != 0)
		dev_cq_moderate(cq->dev, &cq->cq, 0, 0);
	events_wait_acked(&ibv->mutex, &ibv->cond, &ibv->async_events_completed,
		event_purge(&cq->cq.error_event));
	if (ibv->channel != NULL) {
		events_wait_acked(&ibv->mutex, &ibv->cond, &ibv->comp_events_completed,
			event_purge(&cq->cq.comp_event));
		__atomic_fetch_sub(&ibv->channel->refcnt, 1, __ATOMIC_RELEASE);
	}
	mem = cq->cq.mem;
	cq_fini(&cq->cq);
	queue_mem_free(mem);
	if (cq->domain != NULL)
		pd_unuse(cq->domain);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	count_down(&to_ctx(ibv->context)->objects);
	verbs_cq_free(to_ctx(ibv->context), cq);
	return 0;
}

EXPORT int
rocade_cq_info_sized(struct ibv_cq *ibv, struct rocade_cq_info *info, size_t size)
{
	struct rocade_cq_info got = {0};
	const struct cq *cq;

	if (arg_missing("cq", ibv) || arg_missing("info", info))
		return EINVAL;
	if (!context_is_ours(ibv->context))
		return rocade_fail(EINVAL, "the CQ is not of a Rocade device");
	cq = &to_cq(ibv)->cq;
	pthread_mutex_lock(&to_cq(ibv)->dev->lock); /* excludes a resize */
	got.size = cq->size;
	got.outstanding = __atomic_load_n(&cq->head, __ATOMIC_RELAXED) -
			  __atomic_load_n(&cq->tail, __ATOMIC_RELAXED);
	got.error = __atomic_load_n(&cq->error, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&to_cq(ibv)->dev->lock);
	out_give(info, size, &got, sizeof(got));
	return 0;
}
