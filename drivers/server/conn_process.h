/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections are of one process: those that have shown the same key. The thread that serves
 * connections calls these functions. */
#ifndef ROCADE_CONN_PROCESS_H
#define ROCADE_CONN_PROCESS_H

#include <stdbool.h>

#include "server/server.h"
#include "switch/proto.h"

/* The user may differ: a process may change its user between two connections. */
bool conn_process_is_same(const struct conn *a, const struct conn *b);

/* Takes the key of the process from SW_ATTACH or SW_CM_OPEN. The first one counts: a connection stays
 * that of its process. */
void conn_process_take(struct conn *conn, const struct sw_request *req);

/* The connection ends. */
void conn_process_forget(struct conn *conn);

/* Calls fn for each connection of the process, conn included. Looks at the connections of one bucket,
 * not at those of all processes. fn neither adds nor ends connections. */
void conn_process_each(const struct conn *conn, void (*fn)(const struct conn *conn));

#endif
