/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to status requests. Only server_conn.c calls what server_status.c and
 * server_report.c have. */
#ifndef ROCADE_SERVER_QUERY_H
#define ROCADE_SERVER_QUERY_H

#include "server/server.h"

/* Returns the first client with an id of at least `from`, or NULL. */
static inline const struct conn *
conn_from(const struct rocade_daemon *d, uint32_t from)
{
	const struct sw_client *c;

	TAILQ_FOREACH (c, &d->sw->clients, link) { /* in the order of ids */
		if (c->id >= from)
			return c->owner;
	}
	return NULL;
}

/* server_status.c: prints a part of the state as JSON into the reply. Returns 0, -ENOENT
 * (no such client or user), -EINVAL (no such part) or -ENOMEM. */
int status_part(const struct rocade_daemon *d, enum sw_status_part part, uint32_t from,
	struct sw_data_reply *reply);

/* server_report.c: requests statistics from every client, unless that was just done. */
void report_request(struct rocade_daemon *d);
/* Returns how many of the clients asked have not written their statistics. */
uint32_t report_missing(const struct rocade_daemon *d);
/* Copies, for conn, statistics of the first client with an id of at least `from` into the
 * reply: from byte `at` on. Returns 0, -ENOENT (no such client) or -EPERM (it belongs to
 * another user; reply->id is set). */
int report_part(
	const struct conn *conn, uint32_t from, uint32_t at, struct sw_data_reply *reply);

#endif
