/* SPDX-License-Identifier: BSD-3-Clause */
/* Backlogs of listeners. */
#include "cm/backlog.h"

void
backlog_add(struct cm_listener *listener, struct cm_conn *conn)
{
	conn->listener = listener;
	listener->pending++;
	LIST_INSERT_HEAD(&listener->conns, conn, backlog_link);
}

void
backlog_remove(struct cm_conn *conn)
{
	LIST_REMOVE(conn, backlog_link);
	conn->listener->pending--;
	conn->listener = NULL;
}

bool
conn_request_unread(const struct cm_conn *conn)
{
	return (conn->events & (1u << CM_EVENT_REQUEST | 1u << CM_EVENT_SIDR_REQUEST)) !=
	       0;
}

void
conn_leave_backlog(struct cm_conn *conn)
{
	bool open = conn->state == CM_REQ_RCVD || conn->state == CM_SIDR_RCVD;

	if (conn->listener != NULL && !open && !conn_request_unread(conn))
		backlog_remove(conn);
}
