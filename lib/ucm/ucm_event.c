/* SPDX-License-Identifier: BSD-3-Clause */
/* Translates events of the connection manager into events of IDs. */
#include <errno.h>
#include <string.h>

#include "port/net_addr.h"
#include "ucm/id.h"
#include "ucm/queue.h"
#include "ucm/ucm_addr.h"
#include "ucm/ucm_event.h"
#include "ucm/ucm_request.h"

static void
conn_fill(struct rdma_ucm_event_resp *resp, const struct cm_event *event)
{
	struct rdma_ucm_conn_param *p = &resp->param.conn;
	size_t len = RTE_MIN(event->private_len, (size_t)UINT8_MAX);

	p->qp_num = event->qp.qpn;
	p->responder_resources = event->qp.responder_resources;
	p->initiator_depth = event->qp.initiator_depth;
	p->flow_control = event->qp.flow_control;
	p->retry_count = event->qp.retry_count;
	p->rnr_retry_count = event->qp.rnr_retry;
	p->srq = event->qp.srq;
	/* librdmacm reads it in CONNECT_REQUEST and CONNECT_RESPONSE. */
	resp->ece.vendor_id = event->qp.ece.vendor_id;
	resp->ece.attr_mod = event->qp.ece.options;
	if (len != 0)
		memcpy(p->private_data, event->private, len);
	p->private_data_len = (uint8_t)len;
}

static void
ud_fill(const struct ucm_id *id, struct rdma_ucm_ud_param *p,
	const struct cm_event *event)
{
	size_t len = RTE_MIN(event->private_len, (size_t)UINT8_MAX);

	if (event->type == CM_EVENT_SIDR_REPLY) {
		p->qp_num = event->qp.qpn;
		p->qkey = event->qkey;
		/* cannot fail: on_sidr_reply() has checked the address of the device */
		(void)ucm_ah_fill(id, &p->ah_attr);
	}
	if (len != 0)
		memcpy(p->private_data, event->private, len);
	p->private_data_len = (uint8_t)len;
}

/* Returns the event, to be put; NULL: there is none for the program. */
static struct ucm_event *
event_make(struct ucm_id *id, enum ucm_event_type type, const struct cm_event *event,
	int status)
{
	struct ucm_event *e;

	/* The program has not accepted the request of this ID, so the ID has no uid to
	 * put into an event. The program learns of the failure when its accept fails. */
	if (!id->uid_set)
		return NULL;
	e = ucm_event_new(id, type, status);
	if (e == NULL)
		return NULL;
	if (ucm_id_is_ud(id))
		ud_fill(id, &e->resp.param.ud, event);
	else
		conn_fill(&e->resp, event);
	return e;
}

static void
ucm_event_raise(struct ucm_id *id, enum ucm_event_type type, const struct cm_event *event,
	int status)
{
	struct ucm_event *e = event_make(id, type, event, status);

	if (e != NULL)
		ucm_event_put(e);
}

/* Creates the ID for a request to a listener, and charges the connection. Returns NULL at
 * the session's limit of IDs, at its user's of connections, or without memory. */
static struct ucm_id *
request_id(struct ucm_id *listener, const struct cm_event *event)
{
	struct account *account = listener->channel->session->account;
	struct ucm_id *id;

	if (!account_take(account, ACCOUNT_cm_connections, 1))
		return NULL;
	if (ucm_id_create(listener->channel, listener->ps, &id) != 0) {
		account_give(account, ACCOUNT_cm_connections, 1);
		return NULL;
	}
	ucm_addr_make(&id->src, event->path.sgid, listener->port);
	ucm_addr_make(&id->dst, event->path.dgid, event->sport);
	ucm_id_set_device(
		id, ucm_device_of(listener->channel->session->ucm, event->path.sgid));
	id->port = listener->port;
	id->tos = listener->tos;
	/* The REQ has the timeout for this end's QP (IBA 12.7.34). 0 is none: the program would
	 * never notice that its peer has gone. */
	if (listener->ack_timeout_set)
		id->ack_timeout = listener->ack_timeout;
	else if (event->ack_timeout != 0)
		id->ack_timeout = event->ack_timeout;
	id->qp_type = listener->qp_type;
	id->remote = event->qp;
	id->path_mtu = event->qp.path_mtu;
	id->has_remote = true;
	id->state = UCM_CONNECT;
	return id;
}

static void
request_reject(const struct cm_event *event, enum cm_reason reason, uint64_t now)
{
	if (event->type == CM_EVENT_REQUEST)
		(void)cm_reject(event->conn, reason, NULL, 0, now);
	cm_release(event->conn, now);
}

/* Rejects a request that no QP of the listener can serve. Returns false if one can. */
static bool
listener_refuses(
	const struct ucm_id *listener, const struct cm_event *event, uint64_t now)
{
	const struct ucm_device *device =
		ucm_device_of(listener->channel->session->ucm, event->path.sgid);

	if (listener->channel->closed) {
		request_reject(event, CM_REJ_NO_SERVICE, now);
		return true;
	}
	if (event->type != CM_EVENT_REQUEST)
		return false;
	/* A QP of the listener's type could not talk to the peer's QP. */
	if (event->qp.transport != ucm_id_transport(listener)) {
		request_reject(event, CM_REJ_TRANSPORT, now);
		return true;
	}
	/* A REP has no path MTU: the peer's QP would keep the larger one. */
	if (device != NULL && event->qp.path_mtu > device->conf.path_mtu) {
		(void)cm_reject_mtu(event->conn, device->conf.path_mtu, now);
		cm_release(event->conn, now);
		return true;
	}
	return false;
}

static void
on_connect_request(struct ucm_id *listener, const struct cm_event *event, uint64_t now)
{
	struct ucm_event *e;
	struct ucm_id *id;

	if (listener_refuses(listener, event, now))
		return;
	id = request_id(listener, event);
	e = id != NULL ? ucm_event_new(listener, UCM_EVENT_CONNECT_REQUEST, 0) : NULL;
	if (e == NULL) {
		request_reject(event, CM_REJ_NO_RESOURCES, now);
		if (id != NULL) {
			account_give(listener->channel->session->account,
				ACCOUNT_cm_connections, 1);
			ucm_id_destroy(id, now);
		}
		return;
	}
	id->conn = event->conn;
	cm_set_user(event->conn, id);
	e->new_id = id;
	id->request = e;
	e->resp.id = id->number;
	if (event->type == CM_EVENT_REQUEST)
		conn_fill(&e->resp, event);
	else
		ud_fill(id, &e->resp.param.ud, event);
	ucm_event_put(e);
}

static void
on_reply(struct ucm_id *id, const struct cm_event *event)
{
	id->remote = event->qp;
	id->has_remote = true;
	ucm_event_raise(id, UCM_EVENT_CONNECT_RESPONSE, event, 0);
}

/* A peer that rejects the REQ for its path MTU names a smaller one. The ID asks again with
 * it: the program learns the path MTU when the peer has accepted. */
static void
on_rejected(struct ucm_id *id, const struct cm_event *event, uint64_t now)
{
	struct ucm *ucm = id->channel->session->ucm;

	if (!id->has_remote && event->path_mtu != 0 && event->path_mtu < id->path_mtu &&
		ucm_request_again(ucm, id, event->path_mtu, now))
		return;
	ucm_event_raise(id, UCM_EVENT_REJECTED, event, event->status);
}

static void
on_sidr_reply(struct ucm_id *id, const struct cm_event *event)
{
	if (event->status != CM_SIDR_VALID)
		ucm_event_raise(id, UCM_EVENT_UNREACHABLE, event, event->status);
	else if (id->device == NULL || !net_is_ours(&id->device->conf.net, id->src.gid))
		ucm_event_raise(id, UCM_EVENT_UNREACHABLE, event, -EADDRNOTAVAIL);
	else
		ucm_event_raise(id, UCM_EVENT_ESTABLISHED, event, 0);
}

static void
on_disconnected(struct ucm_id *id, const struct cm_event *event, uint64_t now)
{
	const struct ucm_session *session = id->channel->session;
	const struct ucm_ops *ops = &session->ucm->conf.ops;
	struct ucm_taker *taker = NULL;
	struct ucm_event *e;

	if (ops->qp_ended != NULL && !session->ended)
		taker = ops->qp_ended(session->owner, id->local.qpn, !id->disconnects);
	e = event_make(id, UCM_EVENT_DISCONNECTED, event, 0);
	if (e == NULL)
		return;
	if (taker != NULL)
		ucm_event_hold(e, taker, now);
	ucm_event_put(e);
}

/* Frees the connection of the ID if it has ended. The ID may live on for long. */
static void
conn_release_ended(struct ucm_id *id, const struct cm_event *event, uint64_t now)
{
	if (id->conn == event->conn && cm_has_ended(event->conn))
		ucm_id_release_conn(id, now);
}

static void
event_translate(const struct cm_event *event, uint64_t now)
{
	struct ucm_id *id = event->user;

	switch (event->type) {
	case CM_EVENT_REQUEST:
	case CM_EVENT_SIDR_REQUEST:
		on_connect_request(id, event, now);
		break;
	case CM_EVENT_REPLY:
		on_reply(id, event);
		break;
	case CM_EVENT_ESTABLISHED:
		ucm_event_raise(id, UCM_EVENT_ESTABLISHED, event, 0);
		break;
	case CM_EVENT_REJECTED:
		on_rejected(id, event, now);
		break;
	case CM_EVENT_UNREACHABLE:
		ucm_event_raise(id, UCM_EVENT_UNREACHABLE, event, -ETIMEDOUT);
		break;
	case CM_EVENT_DISCONNECTED:
		on_disconnected(id, event, now);
		break;
	case CM_EVENT_SIDR_REPLY:
		on_sidr_reply(id, event);
		break;
	case CM_EVENT_TIMEWAIT_EXIT:
		ucm_event_raise(id, UCM_EVENT_TIMEWAIT_EXIT, event, 0);
		break;
	case CM_EVENT_COUNT:
		break;
	}
}

static void
on_event(const struct cm_event *event, uint64_t now)
{
	event_translate(event, now);
	if (event->type != CM_EVENT_REQUEST && event->type != CM_EVENT_SIDR_REQUEST)
		conn_release_ended(event->user, event, now);
}

/* Sends a message. One to a local address is received at once. */
static void
message_send(
	struct ucm *ucm, const struct mad *mad, const struct cm_path *path, uint64_t now)
{
	struct cm_path back = {.local = true};

	if (!ucm_is_local(ucm, path->sgid, path->dgid)) {
		if (ucm->conf.ops.send != NULL)
			(void)ucm->conf.ops.send(ucm->conf.ops.arg, mad, path);
		return;
	}
	memcpy(back.sgid, path->dgid, 16);
	memcpy(back.dgid, path->sgid, 16);
	(void)cm_rx(ucm->cm, (const uint8_t *)mad, sizeof(*mad), &back, now);
}

void
ucm_pump(struct ucm *ucm, uint64_t now)
{
	struct cm_event event;
	struct cm_path path;
	struct mad mad;
	bool moved;

	do {
		moved = false;
		while (cm_tx(ucm->cm, &mad, &path)) {
			message_send(ucm, &mad, &path, now);
			moved = true;
		}
		while (cm_next_event(ucm->cm, &event)) {
			on_event(&event, now);
			moved = true;
		}
	} while (moved);
}
