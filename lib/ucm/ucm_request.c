/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection requests. One to a port of this host that has no listener yet is deferred.
 * Some programs tell their peer the port first, and then bind to it and listen. They rely
 * on the time that address resolution takes with other RDMA stacks. Such a request would
 * be rejected. It is deferred for UCM_DEFER_SHORT_NS, or for UCM_DEFER_NS if the port is
 * bound already, and sent as soon as an ID listens on the port, UCM_DEFERRED_BATCH at a
 * time.
 *
 * The requests to ports of one bucket are looked at in turn when one of these ports gets a
 * listener, and the buckets in turn. So a program that listens again and again delays the
 * requests to other ports by few looks.
 */
#include <errno.h>
#include <string.h>

#include "port/net_addr.h"
#include "ucm/queue.h"
#include "ucm/ucm_addr.h"
#include "ucm/ucm_fault.h"
#include "ucm/ucm_request.h"

static bool
id_serves(const struct ucm_id *id, const struct ucm_id *asker)
{
	return id->ps == asker->ps && id->port == ucm_addr_port(&asker->dst) &&
	       ucm_addr_serves(id, asker->dst.gid);
}

/* Returns for how long to defer the request of id. 0: the port has a listener, or the
 * destination is not local. Adds to *visits how many IDs it visits. */
static uint64_t
defer_time_ns(struct ucm *ucm, const struct ucm_id *id, unsigned *visits)
{
	uint64_t ns = UCM_DEFER_SHORT_NS;
	const struct ucm_id *other;

	if (!ucm_is_local(ucm, id->src.gid, id->dst.gid))
		return 0;
	LIST_FOREACH(other, ucm_port_bucket(ucm, ucm_addr_port(&id->dst)), port_link)
	{
		(*visits)++;
		if (!id_serves(other, id))
			continue;
		if (other->state == UCM_LISTEN)
			return 0;
		if (other->state == UCM_BOUND)
			ns = UCM_DEFER_NS;
	}
	return ns;
}

static struct ucm_deferred_port *
deferred_port(struct ucm *ucm, uint16_t port)
{
	return &ucm->deferred_ports[port % UCM_DEFER_BUCKETS];
}

void
ucm_request_init(struct ucm *ucm)
{
	for (unsigned i = 0; i < RTE_DIM(ucm->deferred); i++)
		TAILQ_INIT(&ucm->deferred[i]);
	for (unsigned i = 0; i < UCM_DEFER_BUCKETS; i++)
		TAILQ_INIT(&ucm->deferred_ports[i].ids);
	TAILQ_INIT(&ucm->woken);
}

/* id: the next request to look at; NULL: there is none. */
static void
port_look_at(struct ucm *ucm, struct ucm_deferred_port *port, struct ucm_id *id)
{
	if (port->next == NULL && id != NULL)
		TAILQ_INSERT_TAIL(&ucm->woken, port, link);
	else if (port->next != NULL && id == NULL)
		TAILQ_REMOVE(&ucm->woken, port, link);
	port->next = id;
}

/* Goes on after a request of the port, or with the first one if another listener has come since
 * the last start. gone: the request leaves the list. */
static void
port_look_on(
	struct ucm *ucm, struct ucm_deferred_port *port, struct ucm_id *id, bool gone)
{
	struct ucm_id *next = TAILQ_NEXT(id, deferred_port_link);

	if (gone)
		TAILQ_REMOVE(&port->ids, id, deferred_port_link);
	if (next == NULL && port->again) {
		port->again = false;
		next = TAILQ_FIRST(&port->ids);
	}
	port_look_at(ucm, port, next);
}

/* Each list is sorted by deadline: all of it are deferred for the same time. */
static void
deferred_insert(struct ucm *ucm, struct ucm_id *id, uint64_t ns, uint64_t now)
{
	struct ucm_deferred_port *port = deferred_port(ucm, ucm_addr_port(&id->dst));

	id->deferred_until_ns = now + ns;
	id->deferred = &ucm->deferred[ns == UCM_DEFER_NS];
	TAILQ_INSERT_TAIL(id->deferred, id, deferred_link);
	TAILQ_INSERT_TAIL(&port->ids, id, deferred_port_link);
}

static int
request_send(struct ucm *ucm, struct ucm_id *id, uint64_t now)
{
	struct cm_request req = {.private = id->private, .private_len = id->private_len};
	struct account *account = id->channel->session->account;
	int rc;

	if (id->device == NULL || !net_is_ours(&id->device->conf.net, id->src.gid))
		return -EADDRNOTAVAIL;
	if (!account_take(account, ACCOUNT_cm_connections, 1))
		return -ENOMEM;
	memcpy(req.path.sgid, id->src.gid, 16);
	memcpy(req.path.dgid, id->dst.gid, 16);
	req.service_id = ucm_service_id(id->ps, ucm_addr_port(&id->dst));
	req.sport = id->port;
	req.qp = id->local;
	req.ack_timeout = id->ack_timeout;
	rc = ucm_id_is_ud(id) ? cm_sidr_request(ucm->cm, &req, id, now, &id->conn)
			      : cm_connect(ucm->cm, &req, id, now, &id->conn);
	if (rc != 0)
		account_give(account, ACCOUNT_cm_connections, 1);
	else
		ucm_fault_lose(id, UCM_FAULT_LOSE_REQ, MAD_REQ);
	return rc == -ENOSPC ? -ENOMEM : rc;
}

int
ucm_request_send(struct ucm *ucm, struct ucm_id *id, uint64_t now)
{
	unsigned visits = 0;
	uint64_t ns = defer_time_ns(ucm, id, &visits);

	if (ns == 0)
		return request_send(ucm, id, now);
	deferred_insert(ucm, id, ns, now);
	return 0;
}

bool
ucm_request_again(struct ucm *ucm, struct ucm_id *id, uint8_t path_mtu, uint64_t now)
{
	struct cm_conn *rejected = id->conn;

	id->local.path_mtu = path_mtu;
	if (request_send(ucm, id, now) != 0)
		return false;
	id->path_mtu = path_mtu;
	cm_release(rejected, now);
	account_give(id->channel->session->account, ACCOUNT_cm_connections, 1);
	return true;
}

void
ucm_request_cancel(struct ucm *ucm, struct ucm_id *id)
{
	struct ucm_deferred_port *port = deferred_port(ucm, ucm_addr_port(&id->dst));

	if (id->deferred == NULL)
		return;
	if (port->next == id)
		port_look_on(ucm, port, id, true);
	else
		TAILQ_REMOVE(&port->ids, id, deferred_port_link);
	TAILQ_REMOVE(id->deferred, id, deferred_link);
	id->deferred = NULL;
}

static void
deferred_send(struct ucm *ucm, struct ucm_id *id, uint64_t now)
{
	struct ucm_event *event;
	int rc;

	ucm_request_cancel(ucm, id);
	rc = request_send(ucm, id, now);
	if (rc == 0)
		return;
	event = ucm_event_new(id, UCM_EVENT_CONNECT_ERROR, rc);
	if (event != NULL)
		ucm_event_put(event);
}

/* Returns the request whose deadline is the first, or NULL. */
static struct ucm_id *
deferred_first(const struct ucm *ucm)
{
	struct ucm_id *a = TAILQ_FIRST(&ucm->deferred[0]);
	struct ucm_id *b = TAILQ_FIRST(&ucm->deferred[1]);

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	return a->deferred_until_ns <= b->deferred_until_ns ? a : b;
}

uint64_t
ucm_request_deadline(const struct ucm *ucm)
{
	const struct ucm_id *first = deferred_first(ucm);

	if (!TAILQ_EMPTY(&ucm->woken))
		return ucm->woken_ns;
	return first != NULL ? first->deferred_until_ns : TIME_NEVER;
}

void
ucm_request_run(struct ucm *ucm, uint64_t now)
{
	struct ucm_deferred_port *port;
	unsigned sent = 0, looks = 0, visits = 0;
	struct ucm_id *id;

	while (sent < UCM_DEFERRED_BATCH && looks < UCM_DEFERRED_LOOKS &&
		visits < UCM_DEFERRED_VISITS &&
		(port = TAILQ_FIRST(&ucm->woken)) != NULL) {
		id = port->next;
		looks++;
		if (defer_time_ns(ucm, id, &visits) == 0) {
			deferred_send(ucm, id, now);
			sent++;
		} else {
			port_look_on(ucm, port, id, false);
		}
		if (port->next != NULL) {
			TAILQ_REMOVE(&ucm->woken, port, link);
			TAILQ_INSERT_TAIL(&ucm->woken, port, link);
		}
	}
	for (; sent < UCM_DEFERRED_BATCH; sent++) {
		id = deferred_first(ucm);
		if (id == NULL || id->deferred_until_ns > now)
			return;
		deferred_send(ucm, id, now);
	}
}

void
ucm_request_on_listen(struct ucm *ucm, const struct ucm_id *listener, uint64_t now)
{
	struct ucm_deferred_port *port = deferred_port(ucm, listener->port);

	if (port->next != NULL) {
		port->again = true;
	} else if (!TAILQ_EMPTY(&port->ids)) {
		port_look_at(ucm, port, TAILQ_FIRST(&port->ids));
		ucm->woken_ns = now;
	}
	ucm_request_run(ucm, now);
}
