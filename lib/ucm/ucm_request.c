/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection requests. One to a port of this host that has no listener yet is deferred.
 * Some programs tell their peer the port first, and then bind to it and listen. They rely
 * on the time that address resolution takes with other RDMA stacks. Such a request would
 * be rejected. It is deferred for UCM_DEFER_SHORT_NS, or for UCM_DEFER_NS if the port is
 * bound already, and sent as soon as an ID listens on the port, UCM_DEFERRED_BATCH at a
 * time.
 */
#include <errno.h>
#include <string.h>

#include "port/net_addr.h"
#include "ucm/queue.h"
#include "ucm/ucm_addr.h"
#include "ucm/ucm_request.h"

static bool
id_serves(const struct ucm_id *id, const struct ucm_id *asker)
{
	return id->ps == asker->ps && id->port == ucm_addr_port(&asker->dst) &&
	       ucm_addr_serves(id, asker->dst.gid);
}

/* Returns for how long to defer the request of id. 0: the port has a listener, or the
 * destination is not local. */
static uint64_t
defer_time_ns(struct ucm *ucm, const struct ucm_id *id)
{
	uint64_t ns = UCM_DEFER_SHORT_NS;
	const struct ucm_id *other;

	if (!ucm_is_local(ucm, id->src.gid, id->dst.gid))
		return 0;
	LIST_FOREACH(other, ucm_port_bucket(ucm, ucm_addr_port(&id->dst)), port_link)
	{
		if (!id_serves(other, id))
			continue;
		if (other->state == UCM_LISTEN)
			return 0;
		if (other->state == UCM_BOUND)
			ns = UCM_DEFER_NS;
	}
	return ns;
}

/* Keeps the list sorted by deadline. */
static void
deferred_insert(struct ucm *ucm, struct ucm_id *id)
{
	struct ucm_id *other;

	TAILQ_FOREACH_REVERSE(other, &ucm->deferred, ucm_deferred, deferred_link)
	{
		if (other->deferred_until_ns <= id->deferred_until_ns)
			break;
	}
	if (other != NULL)
		TAILQ_INSERT_AFTER(&ucm->deferred, other, id, deferred_link);
	else
		TAILQ_INSERT_HEAD(&ucm->deferred, id, deferred_link);
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
	return rc == -ENOSPC ? -ENOMEM : rc;
}

int
ucm_request_send(struct ucm *ucm, struct ucm_id *id, uint64_t now)
{
	uint64_t ns = defer_time_ns(ucm, id);

	if (ns == 0)
		return request_send(ucm, id, now);
	id->deferred = true;
	id->deferred_until_ns = now + ns;
	deferred_insert(ucm, id);
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
	if (id->deferred)
		TAILQ_REMOVE(&ucm->deferred, id, deferred_link);
	id->deferred = false;
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

void
ucm_request_run(struct ucm *ucm, uint64_t now)
{
	struct ucm_id *id;

	for (unsigned i = 0; i < UCM_DEFERRED_BATCH; i++) {
		id = TAILQ_FIRST(&ucm->deferred);
		if (id == NULL || id->deferred_until_ns > now)
			return;
		deferred_send(ucm, id, now);
	}
}

void
ucm_request_on_listen(struct ucm *ucm, const struct ucm_id *listener, uint64_t now)
{
	struct ucm_id *id, *next, *last = NULL;

	for (id = TAILQ_FIRST(&ucm->deferred); id != NULL; id = next) {
		next = TAILQ_NEXT(id, deferred_link);
		if (!id_serves(listener, id))
			continue;
		TAILQ_REMOVE(&ucm->deferred, id, deferred_link);
		id->deferred_until_ns = now;
		if (last != NULL)
			TAILQ_INSERT_AFTER(&ucm->deferred, last, id, deferred_link);
		else
			TAILQ_INSERT_HEAD(&ucm->deferred, id, deferred_link);
		last = id;
	}
	ucm_request_run(ucm, now);
}
