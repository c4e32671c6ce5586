/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/internal.h"

static struct cm_listeners *
bucket_of(struct cm *cm, uint64_t service_id)
{
	return &cm->listeners[(service_id ^ service_id >> 16) % CM_BUCKETS];
}

/* The one of that very address, else the one of all addresses. */
struct cm_listener *
listener_find(struct cm *cm, uint64_t service_id, bool sidr, const uint8_t addr[16])
{
	struct cm_listener *listener, *any = NULL;

	LIST_FOREACH(listener, bucket_of(cm, service_id), link)
	{
		if (listener->service_id != service_id || listener->sidr != sidr)
			continue;
		if (listener->any)
			any = listener;
		else if (addr != NULL && memcmp(listener->addr, addr, 16) == 0)
			return listener;
	}
	return any;
}

static int
listener_add(struct cm *cm, uint64_t service_id, bool sidr, const uint8_t addr[16],
	uint32_t backlog, void *user, struct cm_listener **out)
{
	struct cm_listener *listener = listener_find(cm, service_id, sidr, addr);

	if (backlog == 0)
		return -EINVAL;
	if (listener != NULL && listener->any == (addr == NULL))
		return -EADDRINUSE;
	if (cm->listener_count == CM_MAX_LISTENERS)
		return -ENOSPC;
	listener = malloc(sizeof(*listener));
	if (listener == NULL)
		return -ENOMEM;
	*listener = (struct cm_listener){
		.cm = cm,
		.user = user,
		.service_id = service_id,
		.backlog = backlog,
		.sidr = sidr,
		.any = addr == NULL,
	};
	if (addr != NULL)
		memcpy(listener->addr, addr, 16);
	LIST_INSERT_HEAD(bucket_of(cm, service_id), listener, link);
	cm->listener_count++;
	*out = listener;
	return 0;
}

int
cm_listen(struct cm *cm, uint64_t service_id, const uint8_t addr[16], uint32_t backlog,
	void *user, struct cm_listener **out)
{
	return listener_add(cm, service_id, false, addr, backlog, user, out);
}

int
cm_sidr_listen(struct cm *cm, uint64_t service_id, const uint8_t addr[16],
	uint32_t backlog, void *user, struct cm_listener **out)
{
	return listener_add(cm, service_id, true, addr, backlog, user, out);
}

struct cm_conn *
listener_conn(struct cm_listener *listener, enum cm_state state)
{
	struct cm_conn *conn = NULL;

	if (listener->pending < listener->backlog)
		conn = conn_alloc(listener->cm);
	if (conn == NULL)
		return NULL;
	conn_enter(conn, state);
	conn->listener = listener;
	conn->user = listener->user;
	listener->pending++;
	LIST_INSERT_HEAD(&listener->conns, conn, pend_link);
	return conn;
}

static void
pend_remove(struct cm_conn *conn)
{
	LIST_REMOVE(conn, pend_link);
	conn->listener->pending--;
	conn->listener = NULL;
}

void
conn_unpend(struct cm_conn *conn)
{
	bool open = conn->state == CM_REQ_RCVD || conn->state == CM_SIDR_RCVD;

	if (conn->listener != NULL && !open && !conn_is_news(conn))
		pend_remove(conn);
}

void
cm_unlisten(struct cm_listener *listener, uint64_t now)
{
	struct cm *cm = listener->cm;
	struct cm_conn *conn;

	while ((conn = LIST_FIRST(&listener->conns)) != NULL) {
		pend_remove(conn);
		if (conn_is_news(conn))
			cm_release(conn, now); /* nobody else knows it */
	}
	LIST_REMOVE(listener, link);
	cm->listener_count--;
	free(listener);
}
