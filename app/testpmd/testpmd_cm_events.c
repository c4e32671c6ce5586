/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA-CM: what the peers do. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "run.h"
#include "testpmd_cm.h"

/* A peer that asks again for a connected QP was restarted: its old connection is dropped.
 * Returns false if the QP is connected to another peer. */
static bool
conn_drop_old(struct host *host, struct conn *conn, const union ibv_gid *peer)
{
	if (memcmp(&conn->cm_peer, peer, sizeof(*peer)) != 0)
		return false;
	rocade_cm_release(conn->id);
	conn->id = NULL;
	conn->established = false;
	return host_to_init(host, cm_conn_is_lost) == 0;
}

/* The QP with this index among those of a peer, or NULL. */
static struct conn *
conn_of_index(struct host *head, unsigned peer, uint32_t index, struct host **host)
{
	uint32_t n = (uint32_t)conf_qps(head->conf, head->pc), i = peer * n + index;

	for (unsigned h = 0; h < head->n_hosts && index < n; h++) {
		*host = host_at(head, h);
		if (i >= (*host)->first_conn &&
			i < (*host)->first_conn + (*host)->n_conns)
			return &(*host)->conns[i - (*host)->first_conn];
	}
	return NULL;
}

/* The QP for a request, whose host has then no connection for it any more; NULL: there is none. */
static struct conn *
conn_of_request(struct host *head, unsigned peer, const struct rocade_cm_event *event,
	struct host **host)
{
	const struct conn_request *conn_request = event->private_data;
	struct conn *conn;
	uint32_t i = 0;

	if (event->private_len >= sizeof(*conn_request) &&
		memcmp(conn_request->magic, CM_REQUEST_MAGIC,
			sizeof(conn_request->magic)) == 0) {
		for (unsigned k = 0; k < 4; k++)
			i = i << 8 | conn_request->index[k];
		conn = conn_of_index(head, peer, i, host);
		return conn != NULL && conn->id != NULL &&
				       !conn_drop_old(*host, conn, &event->peer)
			       ? NULL
			       : conn;
	}
	do
		conn = conn_of_index(head, peer, i++, host);
	while (conn != NULL && conn->id != NULL);
	return conn;
}

/* The host of a connection. */
static struct host *
host_of(struct host *head, const struct conn *conn)
{
	for (unsigned i = 1; i < head->n_hosts; i++) {
		struct host *host = host_at(head, i);

		if (conn >= host->conns && conn < host->conns + host->n_conns)
			return host;
	}
	return head;
}

/* The peer that asks: one of several, or the only one, which another one may replace. -1: none of several. */
static int
peer_of_request(struct host *head, const struct rocade_cm_event *event)
{
	char text[PEER_TEXT_MAX];
	int peer = cm_peer_find(head->pc, &event->peer);

	if (peer >= 0 || port_peers(head->pc) > 1)
		return peer;
	rocade_gid_format(&event->peer, text, sizeof(text));
	peers_replace(head->pc, text);
	return 0;
}

static void
on_cm_request(struct host *head, const struct rocade_cm_event *event)
{
	int peer = peer_of_request(head, event);
	struct host *host = head;
	struct conn *conn =
		peer >= 0 ? conn_of_request(head, (unsigned)peer, event, &host) : NULL;
	struct rocade_cm_param param;
	int rc;

	if (conn == NULL) {
		rocade_cm_release(event->id); /* rejects it */
		return;
	}
	param = cm_param(host);
	conn->id = event->id;
	conn->cm_peer = event->peer;
	rc = rocade_cm_accept(event->id, conn->qp, &param, conn);
	if (rc == 0) {
		conn->connected = true;
		return;
	}
	host_log(host, "cannot accept a connection: %s", rocade_error());
	conn->id = NULL;
	rocade_cm_release(event->id);
	(void)host_to_init(host, cm_conn_is_lost);
}

/* status: of the event REJECTED (rocade/cm.h). IBA 12.6.7.2: 8 is Invalid Service ID, 10
 * Stale Connection, 28 Consumer Reject. */
static void
report_rejected(struct host *host, int status)
{
	if (status == 8)
		host_fail(host, "no listener on this port of %s", host_peer(host));
	else if (status == 10)
		host_fail(host,
			"%s still has old connections of these QPs and is closing "
			"them; try again in a few seconds",
			host_peer(host));
	else if (status < 0)
		host_fail(host, "cannot connect a QP to %s: %s", host_peer(host),
			strerror(-status));
	else
		host_fail(host, "%s rejected a connection (reason %d)%s", host_peer(host),
			status,
			status == 28 ? ": all its QPs are connected, or the "
				       "application refused"
				     : "");
}

static void
on_cm_end(struct host *host, struct conn *conn, const struct rocade_cm_event *event)
{
	const struct rocade_cm_listener *listener = host->head->listener;
	bool was_established = conn->established;

	conn->established = false;
	conn->id = NULL;
	rocade_cm_release(event->id);
	if (listener == NULL && event->type == ROCADE_CM_REJECTED)
		report_rejected(host, event->status);
	else if (listener == NULL && event->type == ROCADE_CM_UNREACHABLE)
		host_fail(host, "%s does not answer", host_peer(host));
	else if (listener == NULL)
		host_fail(host, "%s has disconnected", host_peer(host));
	else if (host_to_init(host, cm_conn_is_lost) == 0 && was_established &&
		 host_cm_established(host->head, (int)host->peer) == 0)
		host_log(host, "%s has disconnected", host_peer(host));
}

static void
on_cm_established(struct host *host, struct conn *conn)
{
	uint32_t of_peer = (uint32_t)conf_qps(host->conf, host->pc);

	conn->established = conn->connected = true;
	if (host_cm_established(host->head, (int)host->peer) == of_peer)
		host_log(host, "%u QPs connected with %s", of_peer, host_peer(host));
}

void
host_cm_tick(struct host *head, struct run *run)
{
	struct rocade_cm_event event;

	while (head->cm != NULL && rocade_cm_next_event(head->cm, &event) == 0) {
		if (run != NULL)
			cores_hold(run);
		if (event.type == ROCADE_CM_REQUEST)
			on_cm_request(head, &event);
		else if (event.type == ROCADE_CM_ESTABLISHED)
			on_cm_established(host_of(head, event.user), event.user);
		else if (event.type != ROCADE_CM_TIMEWAIT_EXIT)
			on_cm_end(host_of(head, event.user), event.user, &event);
	}
}
