/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA-CM: `listen` and `connect`. Each QP is a connection. The private data of a request
 * names the index of its QP, so that QP i of one end is connected to QP i of the other,
 * as without RDMA-CM (testpmd_connect.c). A request without such data gets the next free
 * QP.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rocade/cm.h>

#include "host.h"
#include "testpmd_parse.h"

#define CM_CONNS_MAX 1000 /* the connection manager allows 1024 */
#define CLOSE_NS NS_PER_SECOND
#define TIMEWAIT_NS (4 * NS_PER_SECOND) /* the connection manager's time wait is 2.1 s */

/* Private data of a request. */
struct conn_request {
	char magic[4];
	uint8_t index[4]; /* big-endian */
};
static const char request_magic[4] = {'R', 'T', 'P', 'D'};

static struct rocade_cm_param
param_of(const struct host *host)
{
	const struct conf *conf = host->conf;

	return (struct rocade_cm_param){.size = sizeof(struct rocade_cm_param),
		.sgid_index = host->path.sgid_index,
		.responder_resources = (uint8_t)host->verbs.attr.max_qp_rd_atom,
		.initiator_depth = (uint8_t)host->verbs.attr.max_qp_init_rd_atom,
		.retry_count = (uint8_t)conf->retry_cnt,
		.rnr_retry_count = (uint8_t)conf->rnr_retry,
		.min_rnr_timer = (uint8_t)conf->min_rnr_timer,
		.timeout = (uint8_t)conf->timeout,
		.path_mtu = (uint8_t)host->path.mtu,
		.psn = (uint32_t)conf->psn};
}

static bool
conn_is_lost(const struct conn *conn)
{
	return conn->failed || conn->id == NULL;
}

/* Polls the hosts of all ports: the peer may be one of them. Its end of a connection has to disconnect, too,
 * before this one's does. */
static void
hosts_poll(struct host *host)
{
	struct host *first = host - host->index;

	for (unsigned i = 0; i < host->conf->n_ports; i++) {
		host_poll_all(&first[i]);
		if (&first[i] != host)
			host_cm_tick(&first[i]);
	}
}

/* Disconnects all connections, and waits until the peers have confirmed; with again, until the QPs can
 * be connected with the same peers again. */
static void
conns_disconnect(struct host *host, bool again)
{
	enum rocade_cm_event_type last =
		again ? ROCADE_CM_TIMEWAIT_EXIT : ROCADE_CM_DISCONNECTED;
	uint64_t until = clock_ns() + (again ? TIMEWAIT_NS : CLOSE_NS);
	unsigned open = 0;

	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];

		if (conn->id != NULL && rocade_cm_disconnect(conn->id) == 0) {
			open++;
		} else if (conn->id != NULL) {
			rocade_cm_release(conn->id);
			conn->id = NULL;
		}
		conn->established = false;
	}
	while (open != 0 && clock_ns() < until) {
		struct rocade_cm_event event;

		hosts_poll(host);
		while (rocade_cm_next_event(host->cm, &event) == 0) {
			if (event.type == ROCADE_CM_REQUEST)
				rocade_cm_release(event.id);
			open -= event.type == last;
		}
	}
	for (unsigned i = 0; i < host->n_conns; i++) {
		if (host->conns[i].id != NULL)
			rocade_cm_release(host->conns[i].id);
		host->conns[i].id = NULL;
	}
}

static int
host_cm_open(struct host *host, char err[ERR_MAX])
{
	if (host->conf->type != TYPE_RC)
		return error_set(err, "RDMA-CM connects RC QPs: expected --type rc");
	if (conf_cores(host->conf) > 1)
		return error_set(err,
			"RDMA-CM connects the QPs of one core: expected --nb-cores 1, not %u",
			conf_cores(host->conf));
	if (port_peers(host->pc) > 1)
		return error_set(err,
			"RDMA-CM connects the QPs of one peer: expected one address for "
			"--peer, not %u",
			port_peers(host->pc));
	if (host->n_conns > CM_CONNS_MAX)
		return error_set(err,
			"invalid value '%u' for --qps: expected at most "
			"%u with RDMA-CM",
			host->n_conns, CM_CONNS_MAX);
	if (host->cm == NULL && rocade_cm_open(host->verbs.ctx, &host->cm) != 0)
		return error_set(err, "%s", rocade_error());
	return 0;
}

int
host_cm_listen(struct host *host, uint16_t port, char err[ERR_MAX])
{
	if (host_cm_open(host, err) != 0)
		return -1;
	if (host->listener != NULL)
		rocade_cm_unlisten(host->listener);
	host->listener = NULL;
	if (rocade_cm_listen(host->cm, port, host->n_conns, host, &host->listener) != 0)
		return error_set(err, "%s", rocade_error());
	host->by_cm = true;
	host->reconnect = false;
	if (host_to_init(host, conn_is_lost) != 0)
		return error_set(err, "%s", host->reason);
	host_log(host, "listening on port %u, %u QPs from 0x%x", port, host->n_conns,
		host->conns[0].qpn);
	return 0;
}

/* Sets the peer and the path to it. On an error the peer stays. */
static int
peer_replace(struct host *host, const char *peer, char err[ERR_MAX])
{
	char before[PEER_TEXT_MAX];
	bool is_v6;

	if (!parse_host_address(peer, strlen(peer), &is_v6))
		return error_set(err,
			"invalid value '%s': expected an IPv4 or IPv6 address that a host can "
			"have",
			peer);
	snprintf(before, sizeof(before), "%s", host_peer(host));
	peers_replace(host->pc, peer);
	if (host_set_path(host, err) == 0)
		return 0;
	peers_replace(host->pc, before);
	return -1;
}

/* Connects all QPs anew. */
int
host_cm_connect(struct host *host, const char *peer, uint16_t port, char err[ERR_MAX])
{
	struct rocade_cm_param param;
	struct conn_request conn_request;

	if (host_cm_open(host, err) != 0 || peer_replace(host, peer, err) != 0)
		return -1;
	conns_disconnect(host, true);
	host->by_cm = true;
	host->reconnect = false;
	host->reason[0] = '\0';
	host->teller = NULL;
	host->state = HOST_IDLE;
	if (host_to_init(host, NULL) != 0)
		return error_set(err, "%s", host->reason);
	param = param_of(host);
	param.private_data = &conn_request;
	param.private_len = sizeof(conn_request);
	memcpy(conn_request.magic, request_magic, sizeof(conn_request.magic));
	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];

		for (unsigned k = 0; k < 4; k++)
			conn_request.index[k] = (uint8_t)(i >> (24 - 8 * k));
		if (rocade_cm_connect(host->cm, conn->qp, &host->path.peer, port, &param,
			    conn, &conn->id) != 0)
			return error_set(err, "%s", rocade_error());
	}
	return 0;
}

unsigned
host_cm_established(const struct host *host)
{
	unsigned up = 0;

	for (unsigned i = 0; i < host->n_conns; i++)
		up += host->conns[i].established;
	return up;
}

/* ---- Events ---- */

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
	return host_to_init(host, conn_is_lost) == 0;
}

static struct conn *
conn_of_request(struct host *host, const struct rocade_cm_event *event)
{
	const struct conn_request *conn_request = event->private_data;
	uint32_t i = 0;

	if (event->private_len >= sizeof(*conn_request) &&
		memcmp(conn_request->magic, request_magic, sizeof(conn_request->magic)) ==
			0) {
		for (unsigned k = 0; k < 4; k++)
			i = i << 8 | conn_request->index[k];
		if (i < host->n_conns && host->conns[i].id != NULL &&
			!conn_drop_old(host, &host->conns[i], &event->peer))
			return NULL;
	} else {
		while (i < host->n_conns && host->conns[i].id != NULL)
			i++;
	}
	return i < host->n_conns ? &host->conns[i] : NULL;
}

static void
on_cm_request(struct host *host, const struct rocade_cm_event *event)
{
	struct conn *conn = conn_of_request(host, event);
	struct rocade_cm_param param = param_of(host);
	char peer[PEER_TEXT_MAX];
	int rc;

	if (conn == NULL) {
		rocade_cm_release(event->id); /* rejects it */
		return;
	}
	rocade_gid_format(&event->peer, peer, sizeof(peer));
	peers_replace(host->pc, peer);
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
	(void)host_to_init(host, conn_is_lost);
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
	bool was_established = conn->established;

	conn->established = false;
	conn->id = NULL;
	rocade_cm_release(event->id);
	if (host->listener == NULL && event->type == ROCADE_CM_REJECTED)
		report_rejected(host, event->status);
	else if (host->listener == NULL && event->type == ROCADE_CM_UNREACHABLE)
		host_fail(host, "%s does not answer", host_peer(host));
	else if (host->listener == NULL)
		host_fail(host, "%s has disconnected", host_peer(host));
	else if (host_to_init(host, conn_is_lost) == 0 && was_established &&
		 host_cm_established(host) == 0)
		host_log(host, "%s has disconnected", host_peer(host));
}

static void
on_cm_established(struct host *host, struct conn *conn)
{
	conn->established = conn->connected = true;
	if (host_cm_established(host) == host->n_conns)
		host_log(
			host, "%u QPs connected with %s", host->n_conns, host_peer(host));
}

void
host_cm_tick(struct host *host)
{
	struct rocade_cm_event event;

	while (host->cm != NULL && rocade_cm_next_event(host->cm, &event) == 0) {
		if (event.type == ROCADE_CM_REQUEST)
			on_cm_request(host, &event);
		else if (event.type == ROCADE_CM_ESTABLISHED)
			on_cm_established(host, event.user);
		else if (event.type != ROCADE_CM_TIMEWAIT_EXIT)
			on_cm_end(host, event.user, &event);
	}
}

void
host_cm_outdate(struct host *host)
{
	for (unsigned i = 0; i < host->n_conns; i++)
		host->conns[i].outdated = host->conns[i].id != NULL;
}

int
host_cm_renew(struct host *host, char err[ERR_MAX])
{
	bool outdated = false, lost = false;

	for (unsigned i = 0; i < host->n_conns; i++) {
		outdated |= host->conns[i].outdated;
		lost |= host->conns[i].id == NULL;
	}
	if (!outdated && lost && host->listener == NULL)
		return error_set(err,
			"connections to %s are lost (`connect` makes new ones)",
			host_peer(host));
	if (!outdated)
		return 0;
	if (host->listener == NULL)
		return error_set(err,
			"options of the connections have changed: enter `connect` again");
	conns_disconnect(host, false);
	if (host_to_init(host, NULL) != 0)
		return error_set(err, "%s", host->reason);
	host_log(host,
		"options of the connections have changed: waiting for new connections");
	return 0;
}

void
host_cm_close(struct host *host)
{
	if (host->cm == NULL)
		return;
	if (host->listener != NULL)
		rocade_cm_unlisten(host->listener);
	conns_disconnect(host, false);
	rocade_cm_close(host->cm);
	host->cm = NULL;
}
