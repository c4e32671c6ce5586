/* SPDX-License-Identifier: BSD-3-Clause */
/* Events on their way to the program. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "ucm/internal.h"

struct ucm_event *
ucm_event_new(struct ucm_id *id, enum ucm_event_type type, int status)
{
	struct ucm_session *session = id->channel->session;
	struct ucm_event *event;

	if (session->events >= session->ids.size * UCM_EVENTS_PER_ID)
		return NULL;
	event = alloc_get(&alloc_plain, "rdma_cm event", sizeof(*event));
	if (event == NULL)
		return NULL;
	session->events++;
	event->counted = id;
	event->resp.uid = id->uid;
	event->resp.id = id->number;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	return event;
}

static void
channel_put(struct ucm_channel *channel, struct ucm_event *event)
{
	bool first = TAILQ_EMPTY(&channel->events);

	TAILQ_INSERT_TAIL(&channel->events, event, link);
	if (!first)
		return;
	channel->wakes++;
	channel->session->ucm->conf.ops.wake(channel->owner, channel->wakes);
}

void
ucm_event_put(struct ucm_event *event)
{
	channel_put(event->counted->channel, event);
}

static void
event_free(struct ucm_channel *channel, struct ucm_event *event)
{
	TAILQ_REMOVE(&channel->events, event, link);
	channel->session->events--;
	alloc_put(&alloc_plain, event, sizeof(*event));
}

static struct ucm_event *
event_of(const struct ucm_id *id)
{
	struct ucm_event *event;

	TAILQ_FOREACH (event, &id->channel->events, link) {
		if (event->counted == id || event->fresh == id)
			return event;
	}
	return NULL;
}

void
ucm_events_purge(struct ucm_id *id, uint64_t now)
{
	struct ucm_event *event;

	/* From the beginning each time: an id that goes takes events of its own with it.
	 */
	while ((event = event_of(id)) != NULL) {
		struct ucm_id *fresh = event->fresh;

		event_free(id->channel, event);
		if (fresh != NULL && fresh != id)
			ucm_id_destroy(fresh, now);
	}
}

void
ucm_events_migrate(struct ucm_id *id, struct ucm_channel *to)
{
	struct ucm_channel *from = id->channel;
	struct ucm_event *event, *next;

	if (from == to)
		return;
	LIST_REMOVE(id, link);
	LIST_INSERT_HEAD(&to->ids, id, link);
	id->channel = to;
	for (event = TAILQ_FIRST(&from->events); event != NULL; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->counted != id)
			continue;
		TAILQ_REMOVE(&from->events, event, link);
		/* What it brings is where it is read. */
		if (event->fresh != NULL)
			ucm_events_migrate(event->fresh, to);
		channel_put(to, event);
	}
}

int
ucm_do_get_event(struct ucm_call *call)
{
	struct ucm_event *event = TAILQ_FIRST(&call->channel->events);

	if (event == NULL)
		return -EAGAIN;
	memcpy(call->out, &event->resp, sizeof(event->resp));
	event->counted->events_reported++;
	if (event->fresh != NULL)
		event->fresh->seen = true;
	event_free(call->channel, event);
	return 0;
}
