/* SPDX-License-Identifier: BSD-3-Clause */
/* State transitions of a connection (IBA 12.9.7), and the messages sent with them. Internal
 * to lib/cm: for the calls of the user (cm_conn.c, listen.c), received messages (cm_rx*.c)
 * and timers (cm_core.c). */
#ifndef ROCADE_CM_STATE_H
#define ROCADE_CM_STATE_H

#include "cm/cm_types.h"

/* Returns a connection in this state with a new ID, or NULL if none is left. remote:
 * another host asks for it. */
struct cm_conn *conn_new(struct cm *cm, enum cm_state state, bool remote, uint64_t now);
/* Changes the state and stops the timer. */
void conn_enter(struct cm_conn *conn, enum cm_state state);
/* Queues an event for the user, unless it has released the connection or this type was
 * raised before. */
void conn_event(struct cm_conn *conn, enum cm_event_type type);
/* Sends conn->out, and starts the timer that resends it every wait_ns until a response
 * changes the state. */
void conn_send_with_retry(struct cm_conn *conn, uint64_t now);
void conn_timeout(struct cm_conn *conn, uint64_t now);
/* The user has released the connection, which only waits for its peer or a timer: it is
 * freed early if there is no spare one. */
void conn_ending(struct cm_conn *conn);
/* Ends a connection that its peer has not confirmed, to make room for another one. */
void conn_evict(struct cm_conn *conn, uint64_t now);
/* Closes the connection. Frees it if the user has released it. */
void conn_end(struct cm_conn *conn);
/* Enters TIMEWAIT for the time of the ACK timeout. */
void conn_timewait(struct cm_conn *conn, uint64_t now);
/* Sends conn->out and enters ANSWERED: for a while, a retry of the request gets the same
 * response. */
void conn_send_final(struct cm_conn *conn, uint64_t now);
/* Initialises a message to the peer with both communication IDs. */
void conn_mad_init(
	const struct cm_conn *conn, struct mad *mad, enum mad_attr attr, uint64_t tid);
/* Sends a DREQ, and enters DREQ_SENT. */
void conn_dreq_send(struct cm_conn *conn, const void *private, size_t len, uint64_t now);
/* Initialises the answer to a DREQ. */
void drep_build(struct mad *drep, const struct mad *dreq);
/* In DREQ_RCVD: answers the DREQ, and enters TIMEWAIT. */
void conn_drep_send(struct cm_conn *conn, uint64_t now);
/* The peer has connected anew and lost this connection: disconnects it. */
void conn_stale(struct cm_conn *conn, uint64_t now);
/* Builds a REJ in conn->out; the caller sends it. */
void conn_rej_build(
	struct cm_conn *conn, enum cm_reason reason, const void *private, size_t len);

#endif
