/* SPDX-License-Identifier: BSD-3-Clause */
/* Backlogs: the requests of a listener that are not yet fetched and decided. Internal to
 * lib/cm: for state.c, listen.c, and the files that take events away. */
#ifndef ROCADE_CM_BACKLOG_H
#define ROCADE_CM_BACKLOG_H

#include "cm/cm_types.h"

void backlog_add(struct cm_listener *listener, struct cm_conn *conn);
void backlog_remove(struct cm_conn *conn);
/* Returns whether the event of the connection's request was not fetched yet. */
bool conn_request_unread(const struct cm_conn *conn);
/* Leaves the backlog once the request was fetched and decided. */
void conn_leave_backlog(struct cm_conn *conn);

#endif
