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
	event->waits = false;
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

/* Returns whether the event can be read. */
static bool
channel_put(struct ucm_channel *channel, struct ucm_event *event)
{
	event->waits = event->taker != NULL || !TAILQ_EMPTY(&channel->waiting);
	if (event->waits)
		TAILQ_INSERT_TAIL(&channel->waiting, event, link);
	else
		channel_append(channel, event);
	return !event->waits;
}

void
ucm_event_put(struct ucm_event *event)
{
	struct ucm_channel *channel = event->owner_id->channel;

	TAILQ_INSERT_TAIL(&event->owner_id->events, event, id_link);
	if (channel_put(channel, event))
		channel_wake(channel);
}

int
ucm_event_write(
	struct ucm_id *id, enum ucm_event_type type, uint32_t status, uint64_t arg)
{
	struct ucm_event *event;
	bool ud = ucm_id_is_ud(id);

	/* The program has not accepted the request of this ID: librdmacm would discard an
	 * event without a uid, and wait for the next one. */
	if (!id->uid_set)
		return -EINVAL;
	event = ucm_event_new(id, type, (int)status);
	if (event == NULL)
		return -ENOMEM;
	memcpy(&event->resp.param, &arg, sizeof(arg));
	/* A librdmacm that does not know the event passes on its private data only. */
	memcpy(ud ? event->resp.param.ud.private_data
		  : event->resp.param.conn.private_data,
		&arg, sizeof(arg));
	*(ud ? &event->resp.param.ud.private_data_len
	     : &event->resp.param.conn.private_data_len) = sizeof(arg);
	ucm_event_put(event);
	return 0;
}

/* ---- Events that wait for the packets that came before them ---- */

void
ucm_taker_init(struct ucm_taker *taker)
{
	TAILQ_INIT(&taker->events);
	taker->asked = 0;
}

void
ucm_event_hold(struct ucm_event *event, struct ucm_taker *taker, uint64_t now)
{
	struct ucm *ucm = event->owner_id->channel->session->ucm;

	event->taker = taker;
	event->taker_asked = taker->asked;
	event->held_until_ns = now + UCM_HELD_NS;
	TAILQ_INSERT_TAIL(&taker->events, event, taker_link);
	TAILQ_INSERT_TAIL(&ucm->held, event, held_link);
}

/* The first event of the channel that waits may have changed. */
static void
channel_look(struct ucm_channel *channel)
{
	const struct ucm_event *first = TAILQ_FIRST(&channel->waiting);

	if (channel->shows || first == NULL || first->taker != NULL)
		return;
	channel->shows = true;
	TAILQ_INSERT_TAIL(&channel->session->ucm->showing, channel, show_link);
}

static void
event_release(struct ucm_event *event)
{
	struct ucm_channel *channel = event->owner_id->channel;

	TAILQ_REMOVE(&event->taker->events, event, taker_link);
	TAILQ_REMOVE(&channel->session->ucm->held, event, held_link);
	event->taker = NULL;
	channel_look(channel);
}

void
ucm_taken(struct ucm *ucm, struct ucm_taker *taker, uint32_t upto, uint64_t now)
{
	struct ucm_event *event;

	while ((event = TAILQ_FIRST(&taker->events)) != NULL &&
		(int32_t)(event->taker_asked - upto) <= 0)
		event_release(event);
	ucm_events_run(ucm, now);
}

void
ucm_events_end(struct ucm_channel *channel)
{
	if (channel->shows)
		TAILQ_REMOVE(&channel->session->ucm->showing, channel, show_link);
	channel->shows = false;
}

static bool
held_is_over(const struct ucm *ucm, uint64_t now)
{
	const struct ucm_event *first = TAILQ_FIRST(&ucm->held);

	return first != NULL && first->held_until_ns <= now;
}

/* A few at a time, of the channels in turn: each event wakes its program, and a command must stay short. */
void
ucm_events_run(struct ucm *ucm, uint64_t now)
{
	struct ucm_channel *channel;
	struct ucm_event *event;
	unsigned released = 0;

	while (released++ < UCM_HELD_BATCH && held_is_over(ucm, now))
		event_release(TAILQ_FIRST(&ucm->held));
	for (unsigned i = 0;
		i < UCM_SHOWN_EVENTS && (channel = TAILQ_FIRST(&ucm->showing)) != NULL;) {
		event = TAILQ_FIRST(&channel->waiting);
		if (event != NULL && event->taker == NULL) {
			TAILQ_REMOVE(&channel->waiting, event, link);
			channel_append(channel, event);
			channel_wake(channel);
			i++;
		}
		ucm_events_end(channel);
		channel_look(channel); /* behind the others */
	}
}

uint64_t
ucm_events_deadline(const struct ucm *ucm)
{
	const struct ucm_event *first = TAILQ_FIRST(&ucm->held);

	if (!TAILQ_EMPTY(&ucm->showing))
		return 0;
	return first != NULL ? first->held_until_ns : TIME_NEVER;
}

/* ---- The end of events, and their move to another channel ---- */

/* Takes the event out of its channel. The events that wait behind it may go on. */
static void
channel_remove(struct ucm_channel *channel, struct ucm_event *event)
{
	TAILQ_REMOVE(event->waits ? &channel->waiting : &channel->events, event, link);
	if (event->waits)
		channel_look(channel);
}

void
ucm_event_drop(struct ucm_event *event)
{
	struct ucm_channel *channel = event->owner_id->channel;

	if (event->taker != NULL)
		event_release(event);
	channel_remove(channel, event);
	TAILQ_REMOVE(&event->owner_id->events, event, id_link);
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
		channel_remove(from, event);
		/* The new ID moves with the event that announces it. */
		if (event->new_id != NULL)
			ucm_events_migrate(event->new_id, to);
		(void)channel_put(to, event);
	}
	/* Once: there may be a thousand, and each call of the system takes time. */
	if (to->wakes != wakes)
		channel_wake(to);
}

/* The only thread of a program has disconnected one end of a connection with itself, and waits for the end of
 * that. No other thread can disconnect the other end before the repeats of the DREQ are over. No packet is
 * lost by it: the first end's command has shown what it had sent, and its QP sends no more. */
static void
own_end_disconnect(const struct ucm_call *call)
{
	const struct ucm_id *id = LIST_FIRST(&call->channel->ids), *other;

	/* At an event of another ID the program would go on. */
	if (id == NULL || LIST_NEXT(id, link) != NULL || id->conn == NULL)
		return;
	other = cm_awaited_user(id->conn);
	if (other != NULL && other->channel->session == call->session)
		(void)cm_disconnect(other->conn, NULL, 0, call->now);
}

int
ucm_do_get_event(struct ucm_call *call)
{
	const struct rdma_ucm_get_event *cmd = call->in;
	struct ucm_event *event = TAILQ_FIRST(&call->channel->events);

	if (event == NULL && cmd->response == UCM_GET_ALONE)
		own_end_disconnect(call);
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
