/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA-CM: `listen` and `connect`. Each QP is a connection. The private data of a request
 * names the index of its QP, so that QP i of one end is connected to QP i of the other,
 * as without RDMA-CM (testpmd_connect.c). A request without such data gets the next free QP.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rocade/cm.h>

#include "host.h"

#define CM_FLOWS_MAX 1000 /* a little below the 1024 of the connection manager */
#define CLOSE_NS NS_PER_SECOND

/* Private data of a request. */
struct hello {
	char magic[4];
	uint8_t flow[4]; /* big-endian */
};
static const char hello_magic[4] = {'R', 'T', 'P', 'D'};

static struct rocade_cm_param
param_of(const struct host *host)
{
	const struct conf *conf = host->conf;

	return (struct rocade_cm_param){.size = sizeof(struct rocade_cm_param),
		.sgid_index = host->sgid_index,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = (uint8_t)conf->retry_cnt,
		.rnr_retry_count = (uint8_t)conf->rnr_retry,
		.min_rnr_timer = (uint8_t)conf->min_rnr_timer,
		.timeout = (uint8_t)conf->timeout,
		.path_mtu = (uint8_t)host->mtu,
		.psn = (uint32_t)conf->psn};
}

static bool
flow_lost(const struct flow *flow)
{
	return flow->failed || flow->id == NULL;
}

static int
cm_begin(struct host *host, char err[ERR_MAX])
{
	if (host->n_flows > CM_FLOWS_MAX) {
		snprintf(err, ERR_MAX,
			"invalid value '%u' for --qps: expected at most "
			"%u with RDMA-CM",
			host->n_flows, CM_FLOWS_MAX);
		return -1;
	}
	if (host->cm == NULL && rocade_cm_open(host->ctx, &host->cm) != 0) {
		snprintf(err, ERR_MAX, "%s", rocade_error());
		return -1;
	}
	return 0;
}

int
host_listen(struct host *host, uint16_t port, char err[ERR_MAX])
{
	if (cm_begin(host, err) != 0)
		return -1;
	if (host->listener != NULL)
		rocade_cm_unlisten(host->listener);
	host->listener = NULL;
	if (rocade_cm_listen(host->cm, port, host->n_flows, host, &host->listener) != 0) {
		snprintf(err, ERR_MAX, "%s", rocade_error());
		return -1;
	}
	host->by_cm = true;
	host->reconnect = false;
	if (host_ready(host, flow_lost) != 0) {
		snprintf(err, ERR_MAX, "%s", host->reason);
		return -1;
	}
	host_say(host, "listening on port %u, %u QPs from 0x%x", port, host->n_flows,
		host->flows[0].qpn);
	return 0;
}

/* Connects all QPs anew. */
int
host_dial(struct host *host, const char *peer, uint16_t port, char err[ERR_MAX])
{
	struct rocade_cm_param param;
	struct hello hello;

	snprintf(host->pc->peer, sizeof(host->pc->peer), "%s", peer);
	if (cm_begin(host, err) != 0 || host_set_path(host, err) != 0)
		return -1;
	host_hang_up(host);
	host->by_cm = true;
	host->reconnect = false;
	host->reason[0] = '\0';
	host->state = HOST_IDLE;
	if (host_ready(host, NULL) != 0) {
		snprintf(err, ERR_MAX, "%s", host->reason);
		return -1;
	}
	param = param_of(host);
	param.private_data = &hello;
	param.private_len = sizeof(hello);
	memcpy(hello.magic, hello_magic, sizeof(hello.magic));
	for (unsigned i = 0; i < host->n_flows; i++) {
		struct flow *flow = &host->flows[i];

		for (unsigned k = 0; k < 4; k++)
			hello.flow[k] = (uint8_t)(i >> (24 - 8 * k));
		if (rocade_cm_connect(host->cm, flow->qp, &host->peer, port, &param, flow,
			    &flow->id) != 0) {
			snprintf(err, ERR_MAX, "%s", rocade_error());
			return -1;
		}
	}
	return 0;
}

unsigned
host_cm_up(const struct host *host)
{
	unsigned up = 0;

	for (unsigned i = 0; i < host->n_flows; i++)
		up += host->flows[i].up;
	return up;
}

/* ---- Events ---- */

/* A peer that asks again for a connected QP was restarted: its old connection is dropped.
 * Returns false if the QP is connected to another peer. */
static bool
flow_give_up(struct host *host, struct flow *flow, const union ibv_gid *peer)
{
	if (memcmp(&flow->cm_peer, peer, sizeof(*peer)) != 0)
		return false;
	rocade_cm_release(flow->id);
	flow->id = NULL;
	flow->up = false;
	return host_ready(host, flow_lost) == 0;
}

static struct flow *
flow_asked_for(struct host *host, const struct rocade_cm_event *event)
{
	const struct hello *hello = event->private_data;
	uint32_t i = 0;

	if (event->private_len >= sizeof(*hello) &&
		memcmp(hello->magic, hello_magic, sizeof(hello->magic)) == 0) {
		for (unsigned k = 0; k < 4; k++)
			i = i << 8 | hello->flow[k];
		if (i < host->n_flows && host->flows[i].id != NULL &&
			!flow_give_up(host, &host->flows[i], &event->peer))
			return NULL;
	} else {
		while (i < host->n_flows && host->flows[i].id != NULL)
			i++;
	}
	return i < host->n_flows ? &host->flows[i] : NULL;
}

static void
on_request(struct host *host, const struct rocade_cm_event *event)
{
	struct flow *flow = flow_asked_for(host, event);
	struct rocade_cm_param param = param_of(host);
	int rc;

	if (flow == NULL) {
		rocade_cm_release(event->id); /* rejects it */
		return;
	}
	rocade_gid_format(&event->peer, host->pc->peer, sizeof(host->pc->peer));
	flow->id = event->id;
	flow->cm_peer = event->peer;
	rc = rocade_cm_accept(event->id, flow->qp, &param, flow);
	if (rc == 0) {
		flow->connected = true;
		return;
	}
	host_say(host, "cannot accept a connection: %s", rocade_error());
	flow->id = NULL;
	rocade_cm_release(event->id);
	(void)host_ready(host, flow_lost);
}

static void
say_rejected(struct host *host, int status)
{
	if (status == 8)
		host_fail(host, "no listener on this port of %s", host->pc->peer);
	else if (status == 10)
		host_fail(host,
			"%s still has old connections of these QPs and is closing "
			"them; try again in a few seconds",
			host->pc->peer);
	else if (status < 0)
		host_fail(host, "cannot connect a QP to %s: %s", host->pc->peer,
			strerror(-status));
	else
		host_fail(host, "%s rejected a connection (reason %d)%s", host->pc->peer,
			status,
			status == 28 ? ": all its QPs are connected, or the "
				       "application refused"
				     : "");
}

static void
on_end(struct host *host, struct flow *flow, const struct rocade_cm_event *event)
{
	bool was_up = flow->up;

	flow->up = false;
	flow->id = NULL;
	rocade_cm_release(event->id);
	if (host->listener == NULL && event->type == ROCADE_CM_REJECTED)
		say_rejected(host, event->status);
	else if (host->listener == NULL && event->type == ROCADE_CM_UNREACHABLE)
		host_fail(host, "%s does not answer", host->pc->peer);
	else if (host->listener == NULL)
		host_fail(host, "%s has disconnected", host->pc->peer);
	else if (host_ready(host, flow_lost) == 0 && was_up && host_cm_up(host) == 0)
		host_say(host, "%s has disconnected", host->pc->peer);
}

static void
on_up(struct host *host, struct flow *flow)
{
	flow->up = flow->connected = true;
	if (host_cm_up(host) == host->n_flows)
		host_say(host, "%u QPs connected with %s", host->n_flows, host->pc->peer);
}

void
host_cm_tick(struct host *host)
{
	struct rocade_cm_event event;

	while (host->cm != NULL && rocade_cm_next_event(host->cm, &event) == 0) {
		if (event.type == ROCADE_CM_REQUEST)
			on_request(host, &event);
		else if (event.type == ROCADE_CM_ESTABLISHED)
			on_up(host, event.user);
		else if (event.type != ROCADE_CM_TIMEWAIT_EXIT)
			on_end(host, event.user, &event);
	}
}

/* Disconnects all connections, and waits up to CLOSE_NS for the peers to confirm. */
void
host_hang_up(struct host *host)
{
	uint64_t until = clock_ns() + CLOSE_NS;
	unsigned open = 0;

	for (unsigned i = 0; i < host->n_flows; i++) {
		struct flow *flow = &host->flows[i];

		if (flow->id != NULL && rocade_cm_disconnect(flow->id) == 0) {
			open++;
		} else if (flow->id != NULL) {
			rocade_cm_release(flow->id);
			flow->id = NULL;
		}
		flow->up = false;
	}
	while (open != 0 && clock_ns() < until) {
		struct rocade_cm_event event;

		host_poll_engines(host);
		while (rocade_cm_next_event(host->cm, &event) == 0) {
			if (event.type == ROCADE_CM_REQUEST)
				rocade_cm_release(event.id);
			open -= event.type == ROCADE_CM_DISCONNECTED;
		}
	}
	for (unsigned i = 0; i < host->n_flows; i++) {
		if (host->flows[i].id != NULL)
			rocade_cm_release(host->flows[i].id);
		host->flows[i].id = NULL;
	}
}

void
host_cm_close(struct host *host)
{
	if (host->cm == NULL)
		return;
	if (host->listener != NULL)
		rocade_cm_unlisten(host->listener);
	host_hang_up(host);
	rocade_cm_close(host->cm);
}
