/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_get_async_event(3). ibv_ack_async_event() is the real library's: it counts in the
 * public part of the object, under its mutex. */
#include "base/no_cancel.h"
#include "verbs/forward.h"
#include "verbs/objects.h"

static void
event_element_set(struct ibv_async_event *event, void *object)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		event->element.cq = object;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		event->element.srq = object;
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_GID_CHANGE:
		event->element.port_num = 1;
		break;
	default:
		/* all other events that are raised belong to a QP */
		event->element.qp = object;
		break;
	}
}

EXPORT int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct event_record record;
	int err;

	if (!context_is_ours(context))
		return forward(-1, ibv_get_async_event, context, event);
	err = -event_next(&to_ctx(context)->events, &record);
	if (err != 0)
		return minus_errno(err);
	/* Done here and not by the engine that found the error, because QPs of other
	 * engines may use the CQ. The CQ exists until the event is acknowledged. */
	if (record.type == IBV_EVENT_CQ_ERR)
		dev_cq_fail(to_ctx(context)->dev, &to_cq(record.object)->cq);
	event->event_type = record.type;
	event_element_set(event, record.object);
	return 0;
}

static void
mutex_give(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

/* A cancellation point, as in libibverbs: the application may never acknowledge the events. */
void
events_wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
	uint32_t delivered)
{
	pthread_mutex_lock(mutex);
	pthread_cleanup_push(mutex_give, mutex);
	while (*completed != delivered)
		pthread_cond_wait(cond, mutex);
	pthread_cleanup_pop(1);
}

void
events_wait_acked_stopped(pthread_mutex_t *mutex, pthread_cond_t *cond,
	const uint32_t *completed, uint32_t delivered)
{
	int state = no_cancel_begin();

	events_wait_acked(mutex, cond, completed, delivered);
	no_cancel_end(state);
}
