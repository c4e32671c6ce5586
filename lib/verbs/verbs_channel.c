/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels: ibv_create_comp_channel(3), ibv_req_notify_cq(3),
 * ibv_get_cq_event(3). */
#include "engine/event_wait.h"
#include "engine/manual_progress.h"
#include "verbs/forward.h"
#include "verbs/objects.h"

EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct verbs_channel *channel;
	int err;

	if (!context_is_ours(context))
		return forward(NULL, ibv_create_comp_channel, context);
	if (to_ctx(context)->dev == NULL)
		return null_errno(ENODEV);
	channel = alloc_get(&alloc_plain, "verbs_channel", sizeof(*channel));
	if (channel == NULL)
		return null_errno(ENOMEM);
	err = -event_queue_init(&channel->events);
	if (err != 0) {
		alloc_put(&alloc_plain, channel, sizeof(*channel));
		return null_errno(err);
	}
	channel->ibv.context = context;
	channel->ibv.fd = channel->events.fd;
	count_up(&to_ctx(context)->objects);
	return &channel->ibv;
}

EXPORT int
ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct verbs_channel *channel;

	if (!context_is_ours(ibv->context))
		return forward(ENOSYS, ibv_destroy_comp_channel, ibv);
	if (__atomic_load_n(&ibv->refcnt, __ATOMIC_ACQUIRE) != 0)
		return errno_set(EBUSY);
	channel = to_channel(ibv);
	count_down(&to_ctx(ibv->context)->objects);
	event_queue_fini(&channel->events);
	alloc_put(&alloc_plain, channel, sizeof(*channel));
	return 0;
}

EXPORT int
ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct event_record record;
	struct event_queue *q;
	struct dev *dev;
	int err = EAGAIN;

	if (!context_is_ours(ibv->context))
		return forward(-1, ibv_get_cq_event, ibv, cq, cq_context);
	q = &to_channel(ibv)->events;
	dev = to_ctx(ibv->context)->dev;
	if (dev != NULL && engine_is_manual(dev->engines[0]))
		err = -engine_event_wait(dev->engines[0], q, &record);
	if (err == EAGAIN)
		err = -event_next(q, &record);
	if (err != 0)
		return minus_errno(err);
	*cq = record.object;
	*cq_context = (*cq)->cq_context;
	return 0;
}

EXPORT void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (!context_is_ours(cq->context)) {
		forward_void(ibv_ack_cq_events, cq, nevents);
		return;
	}
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* EINVAL: the CQ has no channel to raise events on. */
int
verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct engine *e;
	bool manual;

	if (cq->channel == NULL)
		return errno_set(EINVAL);
	e = to_cq(cq)->dev->engines[0];
	manual = engine_is_manual(e);
	if (manual)
		engine_arm_begin(e);
	/* Before the number of the flag that engine_delegate() sets, which orders it: a progress thread that has
	 * read the wake-ups for that number finds the CQ armed, and sets the flag again. */
	cq_arm(&to_cq(cq)->cq, solicited_only != 0);
	if (manual) {
		engine_delegate(e);
		engine_arm_end(e);
	}
	return 0;
}
