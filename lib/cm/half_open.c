/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that another host has asked for and not confirmed. Their source addresses
 * may be false. */
#include <stdlib.h>

#include "cm/half_open.h"
#include "cm/table.h"

/* Limits of the lists, as parts of all connections, and at least LIMIT_MIN. */
static const unsigned parts[HALF_OPEN_LISTS] = {
	[HALF_OPEN_ALL] = 2, [HALF_OPEN_LISTENER] = 4, [HALF_OPEN_SOURCE] = 8};
#define LIMIT_MIN 64

void
half_open_init(struct cm *cm)
{
	TAILQ_INIT(&cm->half_open.conns);
	for (unsigned i = 0; i < CM_BUCKETS; i++)
		TAILQ_INIT(&cm->half_open_by_source[i].conns);
}

/* Addresses with the same hash share a list. The key of the hash is secret: a host cannot
 * choose whose list it shares. */
static struct half_open_list *
source_list(struct cm *cm, const struct cm_path *path)
{
	return &cm->half_open_by_source[source_bucket(cm, path)];
}

void
half_open_add(
	struct cm_conn *conn, struct cm_listener *listener, const struct cm_path *path)
{
	conn->half_open[HALF_OPEN_ALL] = &conn->cm->half_open;
	conn->half_open[HALF_OPEN_LISTENER] = &listener->half_open;
	conn->half_open[HALF_OPEN_SOURCE] = source_list(conn->cm, path);
	for (unsigned i = 0; i < HALF_OPEN_LISTS; i++) {
		struct half_open_list *list = conn->half_open[i];

		TAILQ_INSERT_TAIL(&list->conns, conn, half_open_link[i]);
		list->count++;
	}
}

/* A listener that has ended is kept for the list alone. */
static void
closed_free(struct half_open_list *list)
{
	struct cm_listener *listener = container_of(list, struct cm_listener, half_open);

	if (!listener->closed || list->count != 0)
		return;
	LIST_REMOVE(listener, link);
	free(listener);
}

static void
list_leave(struct cm_conn *conn, unsigned which)
{
	struct half_open_list *list = conn->half_open[which];

	if (list == NULL)
		return;
	TAILQ_REMOVE(&list->conns, conn, half_open_link[which]);
	list->count--;
	conn->half_open[which] = NULL;
	if (which == HALF_OPEN_LISTENER)
		closed_free(list);
}

void
half_open_remove(struct cm_conn *conn)
{
	for (unsigned i = 0; i < HALF_OPEN_LISTS; i++)
		list_leave(conn, i);
}

void
half_open_forget_listener(struct cm_listener *listener)
{
	listener->closed = true;
	LIST_INSERT_HEAD(&listener->cm->closed, listener, link);
	closed_free(&listener->half_open);
}

struct cm_conn *
half_open_excess(struct cm *cm, struct cm_listener *listener, const struct cm_path *path)
{
	const struct half_open_list *lists[HALF_OPEN_LISTS] = {
		[HALF_OPEN_ALL] = &cm->half_open,
		[HALF_OPEN_LISTENER] = &listener->half_open,
		[HALF_OPEN_SOURCE] = source_list(cm, path),
	};

	/* The narrowest limit first: a source loses its own connection, not another's. */
	for (unsigned i = HALF_OPEN_LISTS; i-- != 0;) {
		if (lists[i]->count >= RTE_MAX(cm->conf.max_conns / parts[i], LIMIT_MIN))
			return TAILQ_FIRST(&lists[i]->conns);
	}
	return NULL;
}

struct cm_conn *
half_open_oldest(const struct cm *cm)
{
	return TAILQ_FIRST(&cm->half_open.conns);
}
