/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to status requests. Only server_conn.c calls these. */
#ifndef ROCADE_SERVER_QUERY_H
#define ROCADE_SERVER_QUERY_H

#include "server/server.h"

/* server_status.c: returns a descriptor with the state as JSON, or -errno. */
int status_fd(const struct rocade_daemon *d);

/* server_report.c: requests statistics from every client, unless that was just done. */
void report_request(struct rocade_daemon *d);
/* Returns how many of the clients asked have not written their statistics. */
uint32_t report_missing(const struct rocade_daemon *d);
/* Finds, for conn, the statistics of the first client with an id of at least `from`. Sets
 * *id to its id and *fd to a descriptor of the statistics. Returns 0, -ENOENT (no such
 * client), -EPERM (it belongs to another user; *id is set) or another -errno. */
int report_fd(const struct conn *conn, uint32_t from, uint32_t *id, int *fd);

#endif
