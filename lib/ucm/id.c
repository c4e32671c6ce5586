/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of numbers; IDs: creation, lookup, migration, destruction. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "ucm/id.h"
#include "ucm/queue.h"
#include "ucm/ucm_addr.h"
#include "ucm/ucm_request.h"

int
ucm_table_init(struct ucm_table *t, uint32_t size)
{
	/* A table of many, of which most processes use few. */
	t->slots = alloc_get(&alloc_demand, "rdma_cm table", size * sizeof(*t->slots));
	t->freed_after =
		alloc_get(&alloc_demand, "rdma_cm table", size * sizeof(*t->freed_after));
	t->size = size;
	t->oldest = UINT32_MAX;
	return t->slots != NULL && t->freed_after != NULL ? 0 : -ENOMEM;
}

void
ucm_table_fini(struct ucm_table *t)
{
	assert(t->used == 0);
	alloc_put(&alloc_demand, t->slots, t->size * sizeof(*t->slots));
	alloc_put(&alloc_demand, t->freed_after, t->size * sizeof(*t->freed_after));
	t->slots = NULL;
	t->freed_after = NULL;
}

int
ucm_table_add(struct ucm_table *t, void *what, uint32_t *number)
{
	uint32_t at = t->fresh;

	if (t->used == t->size)
		return -ENOSPC;
	if (t->fresh < t->size) {
		t->fresh++;
	} else {
		at = t->oldest;
		t->oldest = t->freed_after[at];
	}
	t->slots[at] = what;
	t->used++;
	*number = at + 1;
	return 0;
}

void *
ucm_table_find(const struct ucm_table *t, uint32_t number)
{
	return number - 1 < t->size ? t->slots[number - 1] : NULL;
}

void
ucm_table_remove(struct ucm_table *t, uint32_t number)
{
	uint32_t at = number - 1;

	t->slots[at] = NULL;
	t->freed_after[at] = UINT32_MAX;
	if (t->oldest == UINT32_MAX)
		t->oldest = at;
	else
		t->freed_after[t->newest] = at;
	t->newest = at;
	t->used--;
}

int
ucm_id_create(struct ucm_channel *channel, uint16_t ps, struct ucm_id **out)
{
	struct ucm_session *session = channel->session;
	struct ucm_id *id = alloc_get(&alloc_plain, "rdma_cm id", sizeof(*id));
	int rc;

	if (id == NULL)
		return -ENOMEM;
	rc = account_take(session->account, ACCOUNT_cm_ids, 1) ? 0 : -ENOSPC;
	if (rc == 0) {
		rc = ucm_table_add(&session->ids, id, &id->number);
		if (rc != 0)
			account_give(session->account, ACCOUNT_cm_ids, 1);
	}
	if (rc != 0) {
		alloc_put(&alloc_plain, id, sizeof(*id));
		return rc;
	}
	id->channel = channel;
	id->ps = ps;
	id->qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
	id->ack_timeout = session->ucm->conf.cm.ack_timeout;
	id->psn = (uint32_t)random_next(&session->ucm->psns) & 0xFFFFFF;
	LIST_INIT(&id->mcasts);
	TAILQ_INIT(&id->events);
	LIST_INSERT_HEAD(&channel->ids, id, link);
	session->ucm->id_count++;
	*out = id;
	return 0;
}

static void
id_free(struct ucm_id *id)
{
	struct ucm_session *session = id->channel->session;

	LIST_REMOVE(id, link);
	ucm_id_set_device(id, NULL);
	ucm_table_remove(&session->ids, id->number);
	account_give(session->account, ACCOUNT_cm_ids, 1);
	session->ucm->id_count--;
	alloc_put(&alloc_plain, id, sizeof(*id));
}

/* Drops the unread events of the ID, with the new IDs that they announce, and the event
 * that announces the ID itself. */
static void
events_purge(struct ucm_id *id, uint64_t now)
{
	struct ucm_event *event;

	while ((event = TAILQ_FIRST(&id->events)) != NULL) {
		struct ucm_id *new_id = event->new_id;

		ucm_event_drop(event);
		if (new_id != NULL)
			ucm_id_destroy(new_id, now);
	}
	if (id->request != NULL)
		ucm_event_drop(id->request);
}

void
ucm_id_release_conn(struct ucm_id *id, uint64_t now)
{
	if (id->conn == NULL)
		return;
	cm_release(id->conn, now);
	account_give(id->channel->session->account, ACCOUNT_cm_connections, 1);
	id->conn = NULL;
	id->conn_ended = true;
}

/* Whatever else the ID has: nothing comes to it any more, and its port is free. */
static void
id_close(struct ucm_id *id, uint64_t now)
{
	struct account *account = id->channel->session->account;

	if (id->listener != NULL) {
		cm_unlisten(id->listener, now);
		account_give(account, ACCOUNT_cm_listeners, 1);
	}
	id->listener = NULL;
	ucm_id_release_conn(id, now);
	ucm_request_cancel(id->channel->session->ucm, id);
	ucm_unbind(id, now);
}

void
ucm_id_destroy(struct ucm_id *id, uint64_t now)
{
	struct ucm_id *mcast;

	while ((mcast = LIST_FIRST(&id->mcasts)) != NULL)
		ucm_id_destroy(mcast, now);
	if (id->state == UCM_MCAST) {
		LIST_REMOVE(id, mcast_link);
		LIST_REMOVE(id, join_link);
	}
	/* Stop listening before purging the pending requests: no new one can come
	 * then. */
	id_close(id, now);
	events_purge(id, now);
	id_free(id);
}

/* Returns whether the ID has more groups and events than are destroyed in one call. */
static bool
is_large(const struct ucm_id *id)
{
	const struct ucm_event *event = TAILQ_FIRST(&id->events);
	const struct ucm_id *mcast = LIST_FIRST(&id->mcasts);
	unsigned n = 0;

	for (; event != NULL && n <= UCM_CLOSED_IDS; n++)
		event = TAILQ_NEXT(event, id_link);
	for (; mcast != NULL && n <= UCM_CLOSED_IDS; n++)
		mcast = LIST_NEXT(mcast, mcast_link);
	return n > UCM_CLOSED_IDS;
}

/* Returns a channel that no program knows, as one that is closed; NULL: no memory. */
static struct ucm_channel *
closed_channel_new(struct ucm_session *session)
{
	struct ucm_channel *c = alloc_get(&alloc_plain, "rdma_cm channel", sizeof(*c));

	if (c == NULL)
		return NULL;
	c->session = session;
	c->closed = true;
	TAILQ_INIT(&c->events);
	TAILQ_INIT(&c->waiting);
	LIST_INIT(&c->ids);
	session->channel_count++;
	TAILQ_INSERT_TAIL(&session->ucm->closing, c, link);
	return c;
}

void
ucm_id_end(struct ucm_id *id, uint64_t now)
{
	struct ucm_channel *c =
		is_large(id) ? closed_channel_new(id->channel->session) : NULL;
	struct ucm_id *mcast;

	if (c == NULL) {
		ucm_id_destroy(id, now);
		return;
	}
	id_close(id, now);
	LIST_FOREACH(mcast, &id->mcasts, mcast_link)
	ucm_events_migrate(mcast, c);
	ucm_events_migrate(id, c);
}

struct ucm_id *
ucm_id_find(const struct ucm_call *call, uint32_t number)
{
	struct ucm_id *id = ucm_table_find(&call->session->ids, number);
	bool good = id != NULL && id->channel == call->channel &&
		    id->state != UCM_MCAST && id->request == NULL;

	return good ? id : NULL;
}

enum cm_transport
ucm_id_transport(const struct ucm_id *id)
{
	switch (id->qp_type) {
	case IBV_QPT_UC:
		return CM_UC;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return CM_XRC;
	default:
		return CM_RC;
	}
}

int
ucm_do_create_id(struct ucm_call *call)
{
	const struct rdma_ucm_create_id *cmd = call->in;
	struct rdma_ucm_create_id_resp *resp = call->out;
	struct ucm_id *id;
	int rc;

	if (cmd->ps != RDMA_PS_TCP && cmd->ps != RDMA_PS_UDP && cmd->ps != RDMA_PS_IB)
		return -EPROTONOSUPPORT;
	rc = ucm_id_create(call->channel, cmd->ps, &id);
	if (rc != 0)
		return rc;
	id->uid = cmd->uid;
	id->uid_set = true;
	/* The other port spaces imply the type of the QP. */
	if (cmd->ps == RDMA_PS_IB)
		id->qp_type = cmd->qp_type;
	resp->id = id->number;
	return 0;
}

int
ucm_do_destroy_id(struct ucm_call *call)
{
	const struct rdma_ucm_destroy_id *cmd = call->in;
	struct rdma_ucm_destroy_id_resp *resp = call->out;
	struct ucm_id *id = ucm_id_find(call, cmd->id);

	if (id == NULL)
		return -ENOENT;
	resp->events_reported = id->events_reported;
	ucm_id_end(id, call->now);
	return 0;
}

/* Moves an ID from another channel of the process to this channel. */
int
ucm_do_migrate_id(struct ucm_call *call)
{
	const struct rdma_ucm_migrate_id *cmd = call->in;
	struct rdma_ucm_migrate_resp *resp = call->out;
	struct ucm_channel *from = ucm_table_find(&call->session->channels, cmd->fd);
	struct ucm_id *id = ucm_table_find(&call->session->ids, cmd->id), *mcast;

	if (from == NULL)
		return -EBADF;
	if (id == NULL || id->channel != from || id->state == UCM_MCAST ||
		id->request != NULL)
		return -ENOENT;
	resp->events_reported = id->events_reported;
	LIST_FOREACH(mcast, &id->mcasts, mcast_link)
	ucm_events_migrate(mcast, call->channel);
	ucm_events_migrate(id, call->channel);
	return 0;
}
