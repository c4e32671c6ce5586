/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to status requests, defined in server_status.c and server_report.c. Only
 * server_conn.c calls them. */
#ifndef ROCADE_SERVER_QUERY_H
#define ROCADE_SERVER_QUERY_H

#include <unistd.h>

#include "server/server.h"

/* Root and the daemon's user see the clients of all, may bind to ports below 1024, and may use controlled
 * Q_Keys. Linux asks for CAP_NET_BIND_SERVICE and CAP_NET_RAW, but a socket does not tell those. To refuse the
 * daemon's user would not help: it can start a daemon of its own. */
static inline bool
conn_is_privileged(const struct conn *conn)
{
	return conn->uid == 0 || (conn->uid == geteuid() && !conn->shares_uid);
}

/* Returns whether the connection may see what belongs to a user. Every connection may see
 * totals of all users. */
static inline bool
conn_may_see(const struct conn *asker, uid_t uid)
{
	return (asker->uid == uid && !asker->shares_uid) || conn_is_privileged(asker);
}

/* Returns the first client that the asker may see with an id of at least `from`, or
 * NULL. */
static inline const struct conn *
conn_from(const struct conn *asker, uint32_t from)
{
	const struct sw_client *c;

	TAILQ_FOREACH (c, &asker->daemon->sw->clients, link) { /* in the order of ids */
		const struct conn *conn = c->owner;

		if (c->id >= from && conn_may_see(asker, conn->uid))
			return conn;
	}
	return NULL;
}

/* Requests whose replies are data. */
static inline bool
query_is_data(uint32_t type)
{
	return type == SW_STATUS || type == SW_REPORT || type == SW_FLIGHT;
}

/* The calls below answer the asker, with what it may see. */

/* server_status.c: prints a part of the state as JSON into the reply. Returns 0, -ENOENT
 * (no such client or user), -EINVAL (no such part) or -ENOMEM. */
int status_part(const struct conn *asker, enum sw_status_part part, uint32_t from,
	struct sw_data_reply *reply);

/* server_report.c: requests statistics from the clients, unless that was just done. */
void report_request(const struct conn *asker);
/* Returns how many of the clients asked have not written their statistics. */
uint32_t report_missing(const struct conn *asker);
/* Copies statistics of the first client with an id of at least `from` into the reply:
 * from byte `at` on. Returns 0, -ENOENT (no such client) or -EINVAL (no piece begins
 * there). */
int report_part(const struct conn *asker, uint32_t from, uint32_t at,
	struct sw_data_reply *reply);

/* server_report.c: copies the answer of the client req->qpn to the request of generation
 * req->dest_qpn into the reply. Returns 0, -ENOENT (no such client), -EAGAIN (no answer yet) or
 * -ECANCELED (another request has followed). */
int flight_part(const struct conn *asker, const struct sw_request *req,
	struct sw_data_reply *reply);

/* server_report.c: SW_DUMP and SW_FLIGHT_REQUEST (switch/proto.h) of clients that the asker may
 * see. *qpn: as in the reply. Returns 0, also for every other request, or an error as there,
 * negative. */
int query_request(const struct conn *asker, const struct sw_request *req, uint32_t *qpn);

#endif
