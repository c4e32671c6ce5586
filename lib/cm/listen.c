/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners: registration, lookup for a request, backlog. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/backlog.h"
#include "cm/half_open.h"
#include "cm/listen.h"
#include "cm/state.h"
#include "port/net.h"

static struct cm_listeners *
listener_bucket(struct cm *cm, uint64_t service_id)
{
	return &cm->listeners[(service_id ^ service_id >> 16) % CM_BUCKETS];
}

static enum cm_any
any_of(const uint8_t addr[16])
{
	static const uint8_t none[16], none_mapped[16] = {[10] = 0xff, 0xff};

	if (addr == NULL)
		return CM_ANY;
	if (memcmp(addr, none_mapped, 16) == 0)
		return CM_ANY_IPV4;
	return memcmp(addr, none, 16) == 0 ? CM_ANY_IPV6 : CM_ANY_NOT;
}

static bool
listener_serves(const struct cm_listener *listener, const uint8_t addr[16])
{
	switch (listener->any) {
	case CM_ANY:
		return true;
	case CM_ANY_NOT:
		return memcmp(listener->addr, addr, 16) == 0;
	default:
		return gid_is_ipv4(addr) == (listener->any == CM_ANY_IPV4);
	}
}

struct cm_listener *
listener_find(struct cm *cm, uint64_t service_id, bool sidr, const uint8_t addr[16])
{
	struct cm_listener *listener, *best = NULL;

	LIST_FOREACH(listener, listener_bucket(cm, service_id), link)
	{
		if (listener->service_id != service_id || listener->sidr != sidr ||
			!listener_serves(listener, addr))
			continue;
		if (best == NULL || listener->any > best->any)
			best = listener;
	}
	return best;
}

static bool
is_taken(struct cm *cm, uint64_t service_id, bool sidr, const uint8_t addr[16])
{
	enum cm_any any = any_of(addr);
	const struct cm_listener *listener;

	LIST_FOREACH(listener, listener_bucket(cm, service_id), link)
	{
		if (listener->service_id == service_id && listener->sidr == sidr &&
			listener->any == any &&
			(any != CM_ANY_NOT || memcmp(listener->addr, addr, 16) == 0))
			return true;
	}
	return false;
}

static int
listener_add(struct cm *cm, uint64_t service_id, bool sidr, const uint8_t addr[16],
	uint32_t backlog, void *user, struct cm_listener **out)
{
	struct cm_listener *listener;

	if (backlog == 0)
		return -EINVAL;
	if (is_taken(cm, service_id, sidr, addr))
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
		.any = any_of(addr),
	};
	if (addr != NULL)
		memcpy(listener->addr, addr, 16);
	TAILQ_INIT(&listener->half_open.conns);
	LIST_INSERT_HEAD(listener_bucket(cm, service_id), listener, link);
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
listener_conn(struct cm_listener *listener, enum cm_state state,
	const struct cm_path *path, uint64_t now)
{
	struct cm *cm = listener->cm;
	struct cm_conn *conn;

	if (listener->pending >= listener->backlog)
		return NULL;
	while (!path->local && (conn = half_open_excess(cm, listener, path)) != NULL)
		conn_evict(conn, now);
	conn = conn_new(cm, state, !path->local, now);
	if (conn == NULL)
		return NULL;
	conn->user = listener->user;
	backlog_add(listener, conn);
	conn->unconfirmed = !path->local;
	if (conn->unconfirmed)
		half_open_add(conn, listener, path);
	return conn;
}

void
cm_unlisten(struct cm_listener *listener, uint64_t now)
{
	struct cm *cm = listener->cm;
	struct cm_conn *conn;

	while ((conn = LIST_FIRST(&listener->conns)) != NULL) {
		backlog_remove(conn);
		if (conn_request_unread(conn))
			cm_release(conn, now); /* the user has not seen it */
	}
	LIST_REMOVE(listener, link);
	cm->listener_count--;
	half_open_forget_listener(listener);
}
