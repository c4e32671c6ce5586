/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of client processes. Only server.c, server_events.c and server_own.c call these. */
#ifndef ROCADE_SERVER_CONN_H
#define ROCADE_SERVER_CONN_H

#include "server/server.h"

#define FDS_PER_CONN 2 /* its socket, and the pidfd of its process */

/* The listening socket is readable: accepts a connection. Returns the account of the
 * user who has connected, to which the time is charged, or NULL. If the connection was
 * refused, the account is valid only until the next account_open(). */
struct account *conn_accept(struct rocade_daemon *d);
/* The same for a connection that is there already. Takes ownership of fd. */
struct account *conn_take(struct rocade_daemon *d, int fd);
/* Stops listening. */
void conn_listen_end(struct rocade_daemon *d);
/* Handles a readable socket: a request, or the end of the connection. */
void conn_ready(struct conn *conn);
/* Removes the client from the switch at once. conn_reap() frees it later: the current
 * batch of events may still refer to it. */
void conn_close(struct conn *conn);
void conn_reap(struct rocade_daemon *d);
/* Disconnects clients whose rings have an invalid index. */
void conn_close_corrupt(struct rocade_daemon *d);

#endif
