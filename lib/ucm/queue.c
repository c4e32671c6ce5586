/* SPDX-License-Identifier: BSD-3-Clause */
/* Unread events of channels. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "ucm/queue.h"
#include "ucm/ucm_call.h"

struct ucm_event *
ucm_event_new(struct ucm_id *id, enum ucm_event_type type, int status)
{
	struct ucm_session *session = id->channel->session;
	struct ucm_event *event;

	if (session->events >= session->ids.size * UCM_EVENTS_PER_ID ||
		!account_take(session->account, ACCOUNT_cm_events, 1))
		return NULL;
	event = alloc_get(&alloc_plain, "rdma_cm event", sizeof(*event));
	if (event == NULL) {
		account_give(session->account, ACCOUNT_cm_events, 1);
		return NULL;
	}
	session->events++;
	event->owner_id = id;
	event->resp.uid = id->uid;
	event->resp.id = id->number;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	return event;
}

static void
channel_append(struct ucm_channel *channel, struct ucm_event *event)
{
	TAILQ_INSERT_TAIL(&channel->events, event, link);
	event->wake = ++channel->wakes;
}

/* The channel has events that it has not announced. */
static void
channel_wake(const struct ucm_channel *channel)
{
	if (!channel->closed)
		channel->session->ucm->conf.ops.wake(channel->owner, channel->wakes);
}

static void
channel_put(struct ucm_channel *channel, struct ucm_event *event)
{
	channel_append(channel, event);
	channel_wake(channel);
}

void
ucm_event_put(struct ucm_event *event)
{
	struct ucm_id *id = event->owner_id;

	TAILQ_INSERT_TAIL(&id->events, event, id_link);
	event->waits = id->held;
	if (event->waits)
		TAILQ_INSERT_TAIL(&id->waiting, event, link);
	else
		channel_put(id->channel, event);
}

void
ucm_events_show(struct ucm_id *id)
{
	struct ucm_event *event;

	while ((event = TAILQ_FIRST(&id->waiting)) != NULL) {
		TAILQ_REMOVE(&id->waiting, event, link);
		event->waits = false;
		channel_put(id->channel, event);
	}
}

void
ucm_event_drop(struct ucm_event *event)
{
	struct ucm_id *id = event->owner_id;
	struct ucm_channel *channel = id->channel;

	TAILQ_REMOVE(event->waits ? &id->waiting : &channel->events, event, link);
	TAILQ_REMOVE(&id->events, event, id_link);
	if (event->new_id != NULL)
		event->new_id->request = NULL;
	channel->session->events--;
	account_give(channel->session->account, ACCOUNT_cm_events, 1);
	alloc_put(&alloc_plain, event, sizeof(*event));
}

void
ucm_events_migrate(struct ucm_id *id, struct ucm_channel *to)
{
	struct ucm_channel *from = id->channel;
	uint32_t wakes = to->wakes;
	struct ucm_event *event;

	if (from == to)
		return;
	LIST_REMOVE(id, link);
	LIST_INSERT_HEAD(&to->ids, id, link);
	id->channel = to;
	TAILQ_FOREACH (event, &id->events, id_link) {
		if (event->waits)
			continue;
		TAILQ_REMOVE(&from->events, event, link);
		/* The new ID moves with the event that announces it. */
		if (event->new_id != NULL)
			ucm_events_migrate(event->new_id, to);
		channel_append(to, event);
	}
	/* Once: there may be a thousand, and each call of the system takes time. */
	if (to->wakes != wakes)
		channel_wake(to);
}

int
ucm_do_get_event(struct ucm_call *call)
{
	struct ucm_event *event = TAILQ_FIRST(&call->channel->events);

	if (event == NULL)
		return -EAGAIN;
	memcpy(call->out, &event->resp, sizeof(event->resp));
	event->owner_id->events_reported++;
	/* librdmacm counts the acknowledgement of a group's event for the member, too. */
	if (event->owner_id->member != NULL)
		event->owner_id->member->events_reported++;
	ucm_event_drop(event);
	return 0;
}
