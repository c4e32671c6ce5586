/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA-CM: what the peers do. All who wait for events call host_cm_tick(), which finds the connection of
 * each: they look at what it has left in the connections. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "run.h"
#include "testpmd_cm.h"

/* While a peer closes the old connections of the QPs, it rejects requests for them (IBA 12.6.7.2: 10, Stale
 * Connection), and does not say when it has done so. */
#define STALE_CONNECTION 10
#define ASK_AGAIN_NS (NS_PER_SECOND / 4)
#define ASKS_NS (30 * NS_PER_SECOND)

/* A peer that asks again for a connected QP was restarted: its old connection is dropped.
 * Returns false if the QP is connected to another peer, or this end is asking for it. */
static bool
conn_drop_old(struct host *host, struct conn *conn, const union ibv_gid *peer)
{
	if (memcmp(&conn->cm_peer, peer, sizeof(*peer)) != 0 ||
		(conn->asked && !conn->established))
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

/* The only peer is the one that was accepted last. */
static void
peer_accepted(struct host *head, const union ibv_gid *gid)
{
	char text[PEER_TEXT_MAX];

	if (cm_peer_find(head->pc, gid) >= 0)
		return;
	rocade_gid_format(gid, text, sizeof(text));
	peers_replace(head->pc, text);
}

/* The peer that asks: one of several, or the only one, which another one may replace. -1: none of several, or
 * one whose connections this end disconnects. */
static int
peer_of_request(struct host *head, const struct rocade_cm_event *event)
{
	int peer = cm_peer_find(head->pc, &event->peer);

	if (peer < 0 && port_peers(head->pc) == 1)
		peer = 0;
	return peer >= 0 && host_of_peer(head, peer)->closing != CLOSING_NOT ? -1 : peer;
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
	peer_accepted(head, &event->peer);
	param = cm_param(host);
	conn->id = event->id;
	conn->asked = false;
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

/* status: of the event REJECTED (rocade/cm.h). IBA 12.6.7.2: 8 is Invalid Service ID, 28 Consumer Reject. */
static void
report_rejected(struct host *host, int status)
{
	if (status == 8)
		host_fail(host, "no listener on this port of %s", host_peer(host));
	else if (status == STALE_CONNECTION)
		host_fail(host, "%s still has old connections of these QPs after %u s",
			host_peer(host), (unsigned)(ASKS_NS / NS_PER_SECOND));
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

/* Has a request sent again that the peer has rejected because it is closing the QP's old connection. Returns false if
 * the event says something else, or the peer has had its time. */
static bool
conn_ask_later(struct host *host, struct conn *conn, const struct rocade_cm_event *event)
{
	uint64_t now = clock_ns();

	if (!conn->asked || event->type != ROCADE_CM_REJECTED ||
		event->status != STALE_CONNECTION)
		return false;
	if (host->asks_end_ns == 0) {
		host->asks_end_ns = now + ASKS_NS;
		host_log(host,
			"%s still has old connections of these QPs: waiting until it has "
			"closed them",
			host_peer(host));
	}
	if (now >= host->asks_end_ns)
		return false;
	conn->ask_ns = now + ASK_AGAIN_NS;
	host->head->asks_later++;
	return true;
}

/* Sends the request of a QP again, unless it has been connected, or given up, meanwhile. */
static void
conn_ask_again(struct host *host, struct conn *conn)
{
	conn->ask_ns = 0;
	host->head->asks_later--;
	if (conn->id == NULL && host->closing == CLOSING_NOT &&
		host->state != HOST_FAILED && cm_conn_request(host, conn) != 0)
		host_fail(host, "cannot connect a QP to %s: %s", host_peer(host),
			rocade_error());
}

static void
conns_ask_again(struct host *head, struct run *run)
{
	uint64_t now = clock_ns();

	for (unsigned h = 0; h < head->n_hosts; h++) {
		struct host *host = host_at(head, h);

		for (unsigned i = 0; i < host->n_conns; i++) {
			if (host->conns[i].ask_ns == 0 || host->conns[i].ask_ns > now)
				continue;
			if (run != NULL)
				cores_hold(run);
			conn_ask_again(host, &host->conns[i]);
		}
	}
}

/* An end that also listens accepts the QP's next connection. It says how its own request has ended, as any
 * other end does. */
static void
on_cm_end(struct host *host, struct conn *conn, const struct rocade_cm_event *event)
{
	bool listens = host->head->listener != NULL;
	bool tells = conn->asked || !listens, was_established = conn->established;

	conn->established = false;
	conn->id = NULL;
	rocade_cm_release(event->id);
	if (conn_ask_later(host, conn, event))
		return;
	if (tells && event->type == ROCADE_CM_REJECTED)
		report_rejected(host, event->status);
	else if (tells && event->type == ROCADE_CM_UNREACHABLE)
		host_fail(host, "%s does not answer", host_peer(host));
	else if (!listens)
		host_fail(host, "%s has disconnected", host_peer(host));
	if (listens && host_to_init(host, cm_conn_is_lost) == 0 && was_established &&
		host_cm_established(host->head, (int)host->peer) == 0)
		host_log(host, "%s has disconnected", host_peer(host));
}

/* Of a connection that this end disconnects (host_disconnect()). */
static void
on_cm_closing(struct host *host, struct conn *conn, const struct rocade_cm_event *event)
{
	bool reuse = host->closing == CLOSING_REUSE;

	if (event->type == ROCADE_CM_ESTABLISHED ||
		(event->type == ROCADE_CM_DISCONNECTED && reuse))
		return;
	conn->id = NULL;
	rocade_cm_release(event->id);
}

static void
on_cm_established(struct host *host, struct conn *conn)
{
	uint32_t of_peer = (uint32_t)conf_qps(host->conf, host->pc);

	conn->established = conn->connected = true;
	if (host_cm_established(host->head, (int)host->peer) == of_peer)
		host_log(host, "%u QPs connected with %s", of_peer, host_peer(host));
}

static void
on_cm_event(struct host *head, const struct rocade_cm_event *event)
{
	struct conn *conn = event->user;
	struct host *host;

	if (event->type == ROCADE_CM_REQUEST) {
		on_cm_request(head, event);
		return;
	}
	host = host_of(head, conn);
	if (host->closing != CLOSING_NOT)
		on_cm_closing(host, conn, event);
	else if (event->type == ROCADE_CM_ESTABLISHED)
		on_cm_established(host, conn);
	else if (event->type != ROCADE_CM_TIMEWAIT_EXIT)
		on_cm_end(host, conn, event);
}

void
host_cm_tick(struct host *head, struct run *run)
{
	struct rocade_cm_event event;

	while (head->cm != NULL && rocade_cm_next_event(head->cm, &event) == 0) {
		if (run != NULL)
			cores_hold(run);
		on_cm_event(head, &event);
	}
	if (head->cm != NULL && head->asks_later != 0)
		conns_ask_again(head, run);
}
