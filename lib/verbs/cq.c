/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_create_cq(3). */
#include "verbs/forward.h"
#include "verbs/objects.h"

EXPORT struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	struct verbs_ctx *ctx;
	struct verbs_cq *cq;
	int err;

	if (!ours(context))
		return forward(NULL, ibv_create_cq, context, cqe, cq_context, channel,
			comp_vector);
	if (channel != NULL && channel->context != context)
		return null_errno(EINVAL);
	if (cqe < 1 || comp_vector < 0 || comp_vector >= context->num_comp_vectors)
		return null_errno(EINVAL);
	cq = alloc_get(&alloc_plain, "verbs_cq", sizeof(*cq));
	if (cq == NULL)
		return null_errno(ENOMEM);
	ctx = to_ctx(context);
	err = -cq_init(&cq->cq, &ctx->dev->mem, (uint32_t)cqe, &ctx->events, cq);
	if (err != 0) {
		alloc_put(&alloc_plain, cq, sizeof(*cq));
		return null_errno(err);
	}
	cq->dev = ctx->dev;
	cq->ibv.context = context;
	cq->ibv.cq_context = cq_context;
	if (channel != NULL) {
		cq_set_channel(&cq->cq, &to_channel(channel)->events, cq);
		__atomic_fetch_add(&channel->refcnt, 1, __ATOMIC_RELAXED);
		cq->ibv.channel = channel;
	}
	cq->ibv.cqe = (int)cq->cq.size;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	count_up(&ctx->objects);
	return &cq->ibv;
}

EXPORT int
ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if (!ours(cq->context))
		return forward(ENOSYS, ibv_resize_cq, cq, cqe);
	return EOPNOTSUPP;
}

EXPORT int
ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct verbs_cq *cq;
	bool busy;

	if (!ours(ibv->context))
		return forward(ENOSYS, ibv_destroy_cq, ibv);
	cq = to_cq(ibv);
	pthread_mutex_lock(&cq->dev->lock);
	busy = cq->cq.qps != 0;
	pthread_mutex_unlock(&cq->dev->lock);
	if (busy)
		return EBUSY;
	events_wait(&ibv->mutex, &ibv->cond, &ibv->async_events_completed,
		event_purge(&cq->cq.error_event));
	if (ibv->channel != NULL) {
		events_wait(&ibv->mutex, &ibv->cond, &ibv->comp_events_completed,
			event_purge(&cq->cq.comp_event));
		__atomic_fetch_sub(&ibv->channel->refcnt, 1, __ATOMIC_RELEASE);
	}
	cq_fini(&cq->cq);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	count_down(&to_ctx(ibv->context)->objects);
	alloc_put(&alloc_plain, cq, sizeof(*cq));
	return 0;
}

EXPORT int
rocade_cq_info(struct ibv_cq *ibv, struct rocade_cq_info *info)
{
	const struct cq *cq;

	if (!ours(ibv->context))
		return rocade_fail(EINVAL, "the CQ is not of a Rocade device");
	cq = &to_cq(ibv)->cq;
	info->size = cq->size;
	info->outstanding = __atomic_load_n(&cq->head, __ATOMIC_RELAXED) -
			    __atomic_load_n(&cq->tail, __ATOMIC_RELAXED);
	info->error = __atomic_load_n(&cq->error, __ATOMIC_RELAXED);
	return 0;
}
