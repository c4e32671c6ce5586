/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade/cm.h: events of connections, and how a thread sleeps until there is one. */
#include <rocade/cm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/verbs_cm.h"

#define ACK_TIMEOUT 19 /* 2 s (4.096 us * 2^19) */

static bool
is_request(const struct cm_event *e)
{
	return e->type == CM_EVENT_REQUEST || e->type == CM_EVENT_SIDR_REQUEST;
}

/* Creates the id of a request. Called with the lock held. Returns false if the request
 * was dropped: it is not for an RC QP, its path MTU is above the port's, or there is no
 * memory. */
static bool
request_handle(struct cm_event *e)
{
	struct rocade_cm_listener *l = e->user;
	enum ibv_mtu mtu = l->cm->ctx->dev->active_mtu;
	struct rocade_cm_id *id;

	if (e->type == CM_EVENT_REQUEST && e->qp.transport != CM_RC) {
		(void)cm_reject(e->conn, CM_REJ_TRANSPORT, NULL, 0, engine_clock());
		cm_release(e->conn, engine_clock());
		return false;
	}
	/* A REP has no path MTU: the peer's QP would keep the larger one. */
	if (e->type == CM_EVENT_REQUEST && e->qp.path_mtu > mtu) {
		(void)cm_reject_mtu(e->conn, (uint8_t)mtu, engine_clock());
		cm_release(e->conn, engine_clock());
		return false;
	}
	id = cm_id_new(l->cm, l->user);
	if (id == NULL) {
		cm_release(e->conn, engine_clock());
		return false;
	}
	id->conn = e->conn;
	id->request = *e;
	cm_set_user(e->conn, id);
	e->user = id;
	return true;
}

/* Brings the QP to RTS: the peer has accepted. Returns false if the peer has left
 * meanwhile, which another event reports. */
static bool
reply_handle(struct cm_event *e)
{
	struct rocade_cm_id *id = e->user;
	const struct rocade_cm_param *p = &id->param;
	int rc;

	(void)cm_qp_agree(id->qp, &id->asked.qp.ece, &e->qp.ece);
	rc = cm_qp_rtr(id, e, p->path_mtu);
	if (rc == 0)
		rc = cm_qp_rts(id, e, p->timeout != 0 ? p->timeout : ACK_TIMEOUT,
			p->retry_count);
	cm_port_lock(id->cm->port);
	e->type = CM_EVENT_ESTABLISHED;
	if (rc == 0) {
		rc = cm_confirm(id->conn, NULL, 0, engine_clock());
		cm_port_unlock(id->cm->port);
		return rc == 0;
	}
	(void)cm_reject(id->conn, CM_REJ_NO_QP, NULL, 0, engine_clock());
	cm_port_unlock(id->cm->port);
	e->type = CM_EVENT_REJECTED;
	e->status = -rc;
	return true;
}

/* Changes a rejected request to what the peer can do: without options, or with a smaller
 * path MTU. Returns false if that is not why it was rejected. */
static bool
request_adapt(struct rocade_cm_id *id, const struct cm_event *e)
{
	struct cm_qp *asked = &id->asked.qp;

	if (e->status == CM_REJ_VENDOR_OPTION && asked->ece.vendor_id != 0) {
		asked->ece = (struct cm_ece){.vendor_id = 0};
		return true;
	}
	if (e->path_mtu == 0 || e->path_mtu >= asked->path_mtu)
		return false;
	asked->path_mtu = e->path_mtu;
	id->param.path_mtu = e->path_mtu;
	return true;
}

/* Sends the request once more if the peer can serve another one. Returns false if the
 * event is for the user. */
static bool
rejected_handle(const struct cm_event *e)
{
	struct rocade_cm_id *id = e->user;

	if (!request_adapt(id, e) || id->qp->state != IBV_QPS_INIT || cm_id_ask(id) != 0)
		return false;
	cm_port_lock(id->cm->port);
	cm_release(e->conn, engine_clock());
	cm_port_unlock(id->cm->port);
	return true;
}

/* Brings the QP to RTS: the peer has confirmed. */
static void
established_handle(struct cm_event *e)
{
	struct rocade_cm_id *id = e->user;
	const struct rocade_cm_param *p = &id->param;
	const struct cm_event *r = &id->request;
	int rc = cm_qp_rts(
		id, r, p->timeout != 0 ? p->timeout : r->ack_timeout, r->qp.retry_count);

	if (rc == 0)
		return;
	cm_port_lock(id->cm->port);
	(void)cm_disconnect(id->conn, NULL, 0, engine_clock());
	cm_port_unlock(id->cm->port);
	e->type = CM_EVENT_REJECTED;
	e->status = -rc;
}

/* Makes a reply an event REJECTED unless datagrams can be sent to its QP. */
static void
sidr_reply_handle(struct cm_event *e)
{
	const struct rocade_cm_id *id = e->user;

	if (e->status == CM_SIDR_VALID && !qpn_is_ordinary(e->qp.qpn))
		e->status = CM_SIDR_NO_QP;
	else if (e->status == CM_SIDR_VALID &&
		 gid_find(id->cm->ctx->dev->gids, DEV_GIDS, e->path.sgid) < 0)
		e->status = -EADDRNOTAVAIL;
	if (e->status != CM_SIDR_VALID)
		e->type = CM_EVENT_REJECTED;
}

/* ---- Wake-ups ---- */

static void
wakeup_raise(void *arg)
{
	struct rocade_cm *cm = arg;

	event_raise(&cm->wakeup, IBV_EVENT_COMM_EST); /* any type will do */
}

EXPORT int
rocade_cm_fd(struct rocade_cm *cm)
{
	if (arg_missing("cm", cm))
		return -1;
	cm_port_set_wake(cm->port, wakeup_raise, cm);
	return cm->events.fd;
}

/* Handles the events of the queue. Returns whether wakeup_raise() raised one of them,
 * after which cm_port_rearm() is due. Cheap without events, for loops that call it in
 * each pass. */
static bool
wakeups_drain(struct rocade_cm *cm)
{
	struct event_record record;
	bool woken = false;

	/* Relaxed: an event raised now is found in the next call. */
	while (__atomic_load_n(&cm->events.raised.stqh_first, __ATOMIC_RELAXED) != NULL &&
		event_next(&cm->events, &record) == 0) {
		struct rocade_cm_id *id = record.object;

		woken |= id == NULL;
		if (id == NULL || record.type != IBV_EVENT_COMM_EST)
			continue;
		cm_port_lock(cm->port);
		(void)cm_established(id->conn, engine_clock());
		cm_port_unlock(cm->port);
	}
	return woken;
}

static const struct {
	enum rocade_cm_event_type type;
	const char *name;
} event_rows[CM_EVENT_COUNT] = {
	[CM_EVENT_REQUEST] = {ROCADE_CM_REQUEST, "request"},
	[CM_EVENT_ESTABLISHED] = {ROCADE_CM_ESTABLISHED, "established"},
	[CM_EVENT_REJECTED] = {ROCADE_CM_REJECTED, "rejected"},
	[CM_EVENT_UNREACHABLE] = {ROCADE_CM_UNREACHABLE, "unreachable"},
	[CM_EVENT_DISCONNECTED] = {ROCADE_CM_DISCONNECTED, "disconnected"},
	[CM_EVENT_SIDR_REQUEST] = {ROCADE_CM_REQUEST, "request"},
	[CM_EVENT_SIDR_REPLY] = {ROCADE_CM_RESOLVED, "resolved"},
	[CM_EVENT_TIMEWAIT_EXIT] = {ROCADE_CM_TIMEWAIT_EXIT, "time wait ended"},
};

EXPORT const char *
rocade_cm_event_name(enum rocade_cm_event_type type)
{
	for (unsigned i = 0; i < CM_EVENT_COUNT; i++)
		if (event_rows[i].name != NULL && event_rows[i].type == type)
			return event_rows[i].name;
	return "unknown";
}

static void
user_event_fill(const struct cm_event *e, struct rocade_cm_event *event)
{
	struct rocade_cm_id *id = e->user;

	*event = (struct rocade_cm_event){
		.type = event_rows[e->type].type,
		.status = e->status,
		.id = id,
		.user = id->user,
		.port = e->sport,
		.private_data = e->private,
		.private_len = e->private_len,
		.responder_resources = e->qp.responder_resources,
		.initiator_depth = e->qp.initiator_depth,
		/* -1 becomes 255, which is not a valid GID index */
		.sgid_index =
			(uint8_t)gid_find(id->cm->ctx->dev->gids, DEV_GIDS, e->path.sgid),
	};
	memcpy(event->peer.raw, e->path.dgid, 16);
	if (event->type == ROCADE_CM_RESOLVED) {
		event->qpn = e->qp.qpn;
		event->qkey = e->qkey;
	}
}

static int
event_fetch(struct rocade_cm *cm, struct rocade_cm_event *event)
{
	struct cm_event e;
	bool good;

	do {
		good = cm_next_event(cm_port_lock(cm->port), &e);
		if (!good) {
			cm_port_unlock(cm->port);
			return EAGAIN;
		}
		if (is_request(&e))
			good = request_handle(&e);
		cm_port_unlock(cm->port);
		if (!is_request(&e))
			cm_qp_listener_remove(e.user);
		if (e.type == CM_EVENT_REPLY)
			good = reply_handle(&e);
		else if (e.type == CM_EVENT_REJECTED)
			good = !rejected_handle(&e);
		else if (e.type == CM_EVENT_ESTABLISHED)
			established_handle(&e);
		else if (e.type == CM_EVENT_SIDR_REPLY)
			sidr_reply_handle(&e);
	} while (!good);
	user_event_fill(&e, event);
	return 0;
}

EXPORT int
rocade_cm_next_event_sized(
	struct rocade_cm *cm, struct rocade_cm_event *event, size_t size)
{
	struct rocade_cm_event got;
	bool woken;
	int rc;

	if (arg_missing("cm", cm) || arg_missing("event", event))
		return EINVAL;
	woken = wakeups_drain(cm);
	rc = event_fetch(cm, &got);
	if (rc == 0)
		out_give(event, size, &got, sizeof(got));
	if (woken)
		cm_port_rearm(cm->port); /* raises an event again if there are more */
	return rc;
}

EXPORT unsigned
rocade_cm_stats_sized(
	struct rocade_cm *cm, struct rocade_stat *rows, unsigned n, size_t row_size)
{
	const uint64_t *values;

	if (arg_missing("cm", cm))
		return 0;
	n = rows_of(rows, n);
	values = (const uint64_t *)cm_stats_of(cm_port_lock(cm->port));
	for (unsigned i = 0; i < n && i < CM_STAT_COUNT; i++)
		stat_give(rows, i, row_size,
			&(struct rocade_stat){.name = cm_stat_rows[i].name,
				.text = cm_stat_rows[i].text,
				.value = values[i]});
	cm_port_unlock(cm->port);
	return CM_STAT_COUNT;
}
