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
listener_find(struct cm *cm, uint64_t service_id, const uint8_t addr[16])
{
	struct cm_listener *listener, *any = NULL;

	LIST_FOREACH(listener, bucket_of(cm, service_id), link)
	{
		if (listener->service_id != service_id)
			continue;
		if (listener->any)
			any = listener;
		else if (addr != NULL && memcmp(listener->addr, addr, 16) == 0)
			return listener;
	}
	return any;
}

int
cm_listen(struct cm *cm, uint64_t service_id, const uint8_t addr[16], uint32_t backlog,
	void *user, struct cm_listener **out)
{
	struct cm_listener *listener = listener_find(cm, service_id, addr);

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
		.any = addr == NULL,
	};
	if (addr != NULL)
		memcpy(listener->addr, addr, 16);
	LIST_INSERT_HEAD(bucket_of(cm, service_id), listener, link);
	cm->listener_count++;
	*out = listener;
	return 0;
}

void
cm_unlisten(struct cm_listener *listener, uint64_t now)
{
	struct cm *cm = listener->cm;

	for (uint32_t i = 0; i < cm->conf.max_conns; i++) {
		struct cm_conn *conn = &cm->conns[i];

		if (conn->state == CM_FREE)
			continue;
		if (conn->listener == listener)
			conn->listener = NULL;
		if (conn->from == listener)
			cm_release(conn, now); /* nobody else knows it */
	}
	LIST_REMOVE(listener, link);
	cm->listener_count--;
	free(listener);
}
