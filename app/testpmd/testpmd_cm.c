/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA-CM: `listen` and `connect`. Each QP is a connection. The private data of a request
 * names the index of its QP among those for this peer, so that QP i of one end is connected
 * to QP i of the other, as without RDMA-CM (testpmd_connect.c). A request without such data
 * gets the next free QP.
 *
 * A port has one connection manager, that of its head. Only the main thread uses it: while
 * cores run the traffic, it holds them for each event.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "testpmd_cm.h"
#include "testpmd_parse.h"

#define CM_CONNS_MAX 1000 /* the connection manager allows 1024 */
#define CLOSE_NS NS_PER_SECOND
#define TIMEWAIT_NS (4 * NS_PER_SECOND) /* the connection manager's time wait is 2.1 s */

struct rocade_cm_param
cm_param(const struct host *host)
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

bool
cm_conn_is_lost(const struct conn *conn)
{
	return conn->failed || conn->id == NULL;
}

/* Polls the hosts of all ports: the peer may be one of them. Its end of a connection has to disconnect, too,
 * before this one's does. */
static void
hosts_poll(struct host *head)
{
	struct host *first = head - head->index;

	for (unsigned i = 0; i < head->conf->n_ports; i++) {
		host_poll_all(&first[i]);
		host_cm_tick(&first[i], NULL);
	}
}

/* Whether the host has QPs of this peer, or (ALL_HOSTS) of any. */
static bool
host_is_of(const struct host *host, int peer)
{
	return peer == ALL_HOSTS || host->peer == (unsigned)peer;
}

/* Begins to disconnect the connections of a host. Those that are not connected end at once. */
static void
host_disconnect(struct host *host, enum closing closing)
{
	host->closing = closing;
	for (unsigned i = 0; i < host->n_conns; i++) {
		struct conn *conn = &host->conns[i];

		if (conn->id != NULL && rocade_cm_disconnect(conn->id) != 0) {
			rocade_cm_release(conn->id);
			conn->id = NULL;
		}
		conn->established = false;
	}
}

/* Ends what host_disconnect() has begun. */
static void
host_close_ids(struct host *host)
{
	for (unsigned i = 0; i < host->n_conns; i++) {
		if (host->conns[i].id != NULL)
			rocade_cm_release(host->conns[i].id);
		host->conns[i].id = NULL;
	}
	host->closing = CLOSING_NOT;
}

/* Whether the peer, or any, has connections that have not ended. */
static bool
conns_are_open(struct host *head, int peer)
{
	bool open = false;

	for (unsigned h = 0; h < head->n_hosts; h++) {
		const struct host *host = host_at(head, h);

		for (unsigned i = 0; i < host->n_conns && host_is_of(host, peer); i++)
			open |= host->conns[i].id != NULL;
	}
	return open;
}

/* Disconnects the connections with a peer, and waits. Meanwhile host_cm_tick() handles the events of all
 * connections: only those of this peer end here. */
static void
conns_disconnect(struct host *head, int peer, enum closing closing)
{
	uint64_t until = clock_ns() + (closing == CLOSING_REUSE ? TIMEWAIT_NS : CLOSE_NS);

	for (unsigned h = 0; h < head->n_hosts; h++) {
		if (host_is_of(host_at(head, h), peer))
			host_disconnect(host_at(head, h), closing);
	}
	while (conns_are_open(head, peer) && clock_ns() < until)
		hosts_poll(head);
	for (unsigned h = 0; h < head->n_hosts; h++) {
		if (host_is_of(host_at(head, h), peer))
			host_close_ids(host_at(head, h));
	}
}

static int
host_cm_open(struct host *head, char err[ERR_MAX])
{
	const struct conf *conf = head->conf;

	if (conf->type != TYPE_RC)
		return error_set(err, "RDMA-CM connects RC QPs: expected --type rc");
	if (conf->qps > CM_CONNS_MAX)
		return error_set(err,
			"invalid value '%" PRIu64 "' for --qps: expected at most "
			"%u with RDMA-CM",
			conf->qps, CM_CONNS_MAX);
	if (head->cm == NULL && rocade_cm_open(head->verbs.ctx, &head->cm) != 0)
		return error_set(err, "%s", rocade_error());
	return 0;
}

/* All hosts of the port are connected by RDMA-CM from now on. */
static void
hosts_by_cm(struct host *head)
{
	for (unsigned i = 0; i < head->n_hosts; i++) {
		host_at(head, i)->by_cm = true;
		host_at(head, i)->reconnect = false;
	}
}

/* Prepares the QPs of a peer, or (ALL_HOSTS) of all. Returns 0, or -1 with a message in err. */
static int
hosts_to_init(struct host *head, int peer, bool (*which)(const struct conn *conn),
	char err[ERR_MAX])
{
	for (unsigned i = 0; i < head->n_hosts; i++) {
		struct host *host = host_at(head, i);

		if (host_is_of(host, peer) && host_to_init(host, which) != 0)
			return error_set(err, "%s", host->reason);
	}
	return 0;
}

int
host_cm_listen(struct host *head, uint16_t port, char err[ERR_MAX])
{
	uint32_t qps = (uint32_t)head->conf->qps;

	if (host_cm_open(head, err) != 0)
		return -1;
	if (head->listener != NULL)
		rocade_cm_unlisten(head->listener);
	head->listener = NULL;
	if (rocade_cm_listen(head->cm, port, qps, head, &head->listener) != 0)
		return error_set(err, "%s", rocade_error());
	hosts_by_cm(head);
	if (hosts_to_init(head, ALL_HOSTS, cm_conn_is_lost, err) != 0)
		return -1;
	host_log(head, "listening on port %u, %u QPs from 0x%x", port, qps,
		head->conns[0].qpn);
	return 0;
}

/* The paths of the hosts of this peer. */
static int
hosts_set_path(struct host *head, unsigned peer, char err[ERR_MAX])
{
	for (unsigned i = 0; i < head->n_hosts; i++) {
		struct host *host = host_at(head, i);

		if (host->peer == peer && host_set_path(host, err) != 0)
			return -1;
	}
	return 0;
}

int
cm_peer_find(const struct port_conf *pc, const union ibv_gid *gid)
{
	for (unsigned p = 0; p < pc->n_peers; p++) {
		union ibv_gid other;

		if (rocade_gid_parse(pc->peers[p].addr, &other) == 0 &&
			memcmp(&other, gid, sizeof(other)) == 0)
			return (int)p;
	}
	return -1;
}

/* Sets the only peer, or finds it among several ones, and sets the path to it. Returns its number, or -1 with
 * a message in err: the peer stays as it was. */
static int
peer_choose(struct host *head, const char *peer, char err[ERR_MAX])
{
	struct port_conf *pc = head->pc, before = *pc;
	union ibv_gid gid;
	bool is_v6;
	int found;

	if (!parse_host_address(peer, strlen(peer), &is_v6) ||
		rocade_gid_parse(peer, &gid) != 0)
		return error_set(err,
			"invalid value '%s': expected an IPv4 or IPv6 address that a host can "
			"have",
			peer);
	found = cm_peer_find(pc, &gid);
	if (found < 0 && port_peers(pc) > 1)
		return error_set(err, "invalid value '%s': expected one of --peer: %s",
			peer, pc->peer);
	if (found < 0) {
		peers_replace(pc, peer);
		found = 0;
	}
	if (hosts_set_path(head, (unsigned)found, err) == 0)
		return found;
	*pc = before;
	return -1;
}

int
cm_conn_request(struct host *host, struct conn *conn)
{
	uint32_t of_peer = (uint32_t)conf_qps(host->conf, host->pc);
	uint32_t index = (host->first_conn + (uint32_t)(conn - host->conns)) % of_peer;
	struct rocade_cm_param param = cm_param(host);
	struct conn_request conn_request;
	int rc;

	param.private_data = &conn_request;
	param.private_len = sizeof(conn_request);
	memcpy(conn_request.magic, CM_REQUEST_MAGIC, sizeof(conn_request.magic));
	for (unsigned k = 0; k < 4; k++)
		conn_request.index[k] = (uint8_t)(index >> (24 - 8 * k));
	rc = rocade_cm_connect(host->head->cm, conn->qp, &host->path.peer, host->cm_port,
		&param, conn, &conn->id);
	if (rc != 0)
		return rc;
	conn->asked = true;
	conn->cm_peer = host->path.peer;
	return 0;
}

/* No request of a host is sent again. */
static void
host_asks_end(struct host *host)
{
	for (unsigned i = 0; i < host->n_conns; i++) {
		host->head->asks_later -= host->conns[i].ask_ns != 0;
		host->conns[i].ask_ns = 0;
	}
}

/* Requests the connections of a host. */
static int
host_request(struct host *host, uint16_t port, char err[ERR_MAX])
{
	host->cm_port = port;
	host->asks_end_ns = 0;
	for (unsigned i = 0; i < host->n_conns; i++) {
		if (cm_conn_request(host, &host->conns[i]) != 0)
			return error_set(err, "%s", rocade_error());
	}
	return 0;
}

/* Connects all QPs of the peer anew. */
int
host_cm_connect(struct host *head, const char *address, uint16_t port, char err[ERR_MAX])
{
	int peer;

	if (host_cm_open(head, err) != 0 || (peer = peer_choose(head, address, err)) < 0)
		return -1;
	conns_disconnect(head, peer, CLOSING_REUSE);
	hosts_by_cm(head);
	head->teller = NULL;
	for (unsigned i = 0; i < head->n_hosts; i++) {
		struct host *host = host_at(head, i);

		/* A `connect` that has failed asks for nothing any more. */
		if (host_is_of(host, peer) || host->state == HOST_FAILED)
			host_asks_end(host);
		host->reason[0] = '\0';
		host->state = HOST_IDLE;
	}
	if (hosts_to_init(head, peer, NULL, err) != 0)
		return -1;
	for (unsigned i = 0; i < head->n_hosts; i++) {
		if (host_is_of(host_at(head, i), peer) &&
			host_request(host_at(head, i), port, err) != 0)
			return -1;
	}
	return peer;
}

unsigned
host_cm_established(struct host *head, int peer)
{
	unsigned up = 0;

	for (unsigned h = 0; h < head->n_hosts; h++) {
		const struct host *host = host_at(head, h);

		for (unsigned i = 0; i < host->n_conns && host_is_of(host, peer); i++)
			up += host->conns[i].established;
	}
	return up;
}

void
host_cm_outdate(struct host *head)
{
	for (unsigned h = 0; h < head->n_hosts; h++) {
		struct host *host = host_at(head, h);

		for (unsigned i = 0; i < host->n_conns; i++)
			host->conns[i].outdated = host->conns[i].id != NULL;
	}
}

int
host_cm_renew(struct host *head, char err[ERR_MAX])
{
	const char *lost = NULL;
	bool outdated = false;

	for (unsigned h = 0; h < head->n_hosts; h++) {
		struct host *host = host_at(head, h);

		for (unsigned i = 0; i < host->n_conns; i++) {
			outdated |= host->conns[i].outdated;
			if (host->conns[i].id == NULL && lost == NULL)
				lost = host_peer(host);
		}
	}
	if (!outdated && lost != NULL && head->listener == NULL)
		return error_set(err,
			"connections to %s are lost (`connect` makes new ones)", lost);
	if (!outdated)
		return 0;
	if (head->listener == NULL)
		return error_set(err,
			"options of the connections have changed: enter `connect` again");
	conns_disconnect(head, ALL_HOSTS, CLOSING_CONFIRM);
	if (hosts_to_init(head, ALL_HOSTS, NULL, err) != 0)
		return -1;
	host_log(head,
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
	conns_disconnect(host, ALL_HOSTS, CLOSING_CONFIRM);
	rocade_cm_close(host->cm);
	host->cm = NULL;
}
