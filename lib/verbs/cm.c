/* SPDX-License-Identifier: BSD-3-Clause */
/* cm.h: a device's connection manager, and the QPs of its connections. */
#include <rocade/cm.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cm/port.h"
#include "verbs/objects.h"

#define ACK_TIMEOUT 19 /* 2 s */
#define HOP_LIMIT 64

struct rocade_cm {
	struct verbs_ctx *ctx;
	struct cm_port *port;
	uint16_t sport; /* the next one; it means nothing */
};

struct rocade_cm_listener {
	struct rocade_cm *cm;
	struct cm_listener *listener;
	void *user;
};

struct rocade_cm_id {
	struct rocade_cm *cm;
	struct cm_conn *conn;
	struct ibv_qp *qp;
	void *user;
	struct rocade_cm_param param;
	struct cm_event request; /* passive: what was asked */
};

EXPORT int
rocade_cm_open(struct ibv_context *context, struct rocade_cm **out)
{
	struct rocade_cm *cm;
	struct cm_conf conf;
	int rc;

	if (!ours(context))
		return rocade_fail(EINVAL, "the context is not one of Rocade's");
	cm = calloc(1, sizeof(*cm));
	if (cm == NULL)
		return rocade_fail(ENOMEM, "no memory for a connection manager");
	cm_conf_default(&conf);
	if (getrandom(&conf.seed, sizeof(conf.seed), 0) != sizeof(conf.seed))
		conf.seed = engine_clock_wall(engine_clock());
	cm->ctx = to_ctx(context);
	cm->sport = (uint16_t)(0x8000 | conf.seed);
	rc = cm_port_open(cm->ctx->dev, &conf, engine_clock(), &cm->port);
	if (rc != 0) {
		free(cm);
		return rocade_fail(-rc,
			rc == -EBUSY        ? "the port has a connection manager already"
			: rc == -EOPNOTSUPP ? "the port's connections are the daemon's"
					    : "no memory for a connection manager");
	}
	count_up(&cm->ctx->objects);
	*out = cm;
	return 0;
}

EXPORT void
rocade_cm_close(struct rocade_cm *cm)
{
	cm_port_close(cm->port);
	count_down(&cm->ctx->objects);
	free(cm);
}

EXPORT int
rocade_cm_listen(struct rocade_cm *cm, uint16_t port, uint32_t backlog, void *user,
	struct rocade_cm_listener **out)
{
	struct rocade_cm_listener *l;
	int rc;

	if (port == 0 || backlog == 0)
		return rocade_fail(EINVAL, "a %s of 0", port == 0 ? "port" : "backlog");
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return rocade_fail(ENOMEM, "no memory for a listener");
	l->cm = cm;
	l->user = user;
	rc = cm_listen(cm_port_lock(cm->port), cma_service_id(CMA_PS_TCP, port), NULL,
		backlog, l, &l->listener);
	cm_port_unlock(cm->port);
	if (rc != 0) {
		free(l);
		return rocade_fail(-rc, "port %u: %s", port, strerror(-rc));
	}
	*out = l;
	return 0;
}

EXPORT void
rocade_cm_unlisten(struct rocade_cm_listener *listener)
{
	cm_port_lock(listener->cm->port);
	cm_unlisten(listener->listener, engine_clock());
	cm_port_unlock(listener->cm->port);
	free(listener);
}

static int
param_read(const struct rocade_cm_param *param, size_t private_max,
	struct rocade_cm_param *out)
{
	*out = (struct rocade_cm_param){.size = sizeof(*out)};
	if (param == NULL)
		return 0;
	if (param->size < offsetof(struct rocade_cm_param, psn) + sizeof(param->psn) ||
		param->size > 4096)
		return rocade_fail(
			EINVAL, "param: the size is not that of the structure");
	memcpy(out, param, RTE_MIN(param->size, sizeof(*out)));
	if (out->private_len > private_max)
		return rocade_fail(EINVAL, "private_len: %zu, at most %zu fit",
			out->private_len, private_max);
	if (out->retry_count > 7 || out->rnr_retry_count > 7 || out->timeout > 31 ||
		out->min_rnr_timer > 31 || out->psn > 0xFFFFFF ||
		out->path_mtu > IBV_MTU_4096)
		return rocade_fail(EINVAL, "param: a value is out of range");
	return 0;
}

static int
qp_check(const struct rocade_cm *cm, const struct ibv_qp *qp)
{
	if (qp->context != &cm->ctx->base.context || qp->qp_type != IBV_QPT_RC ||
		qp->state != IBV_QPS_INIT)
		return rocade_fail(
			EINVAL, "the QP is not an RC QP of this context in INIT");
	return 0;
}

static struct cm_qp
qp_said(const struct ibv_qp *qp, const struct rocade_cm_param *p)
{
	return (struct cm_qp){
		.qpn = qp->qp_num,
		.psn = p->psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.rnr_retry = p->rnr_retry_count,
		.retry_count = p->retry_count,
		.path_mtu = p->path_mtu,
		.srq = qp->srq != NULL,
	};
}

/* Where private data is given, a copy of what is said of it here would hang. */
static void
param_keep(struct rocade_cm_id *id, const struct rocade_cm_param *param)
{
	id->param = *param;
	id->param.private_data = NULL;
	id->param.private_len = 0;
}

EXPORT int
rocade_cm_connect(struct rocade_cm *cm, struct ibv_qp *qp, const union ibv_gid *peer,
	uint16_t port, const struct rocade_cm_param *param, void *user,
	struct rocade_cm_id **out)
{
	const struct dev *dev = cm->ctx->dev;
	struct rocade_cm_param p;
	struct cm_request req;
	struct rocade_cm_id *id;
	int rc = param_read(param, CMA_REQ_PRIVATE, &p);

	if (rc == 0)
		rc = qp_check(cm, qp);
	if (rc != 0)
		return rc;
	if (port == 0 || p.sgid_index >= DEV_GIDS || gid_is_multicast(peer->raw) ||
		gid_is_ipv4(peer->raw) != gid_is_ipv4(dev->gids[p.sgid_index]))
		return rocade_fail(EINVAL, "the port, or an address: %s",
			port == 0 ? "0" : "one family, and a host's");
	if (p.path_mtu == 0)
		p.path_mtu = dev->active_mtu;
	req = (struct cm_request){
		.service_id = cma_service_id(CMA_PS_TCP, port),
		.sport = cm->sport++,
		.qp = qp_said(qp, &p),
		.private = p.private_data,
		.private_len = p.private_len,
	};
	memcpy(req.path.sgid, dev->gids[p.sgid_index], 16);
	memcpy(req.path.dgid, peer->raw, 16);
	id = calloc(1, sizeof(*id));
	if (id == NULL)
		return rocade_fail(ENOMEM, "no memory for a connection");
	id->cm = cm;
	id->qp = qp;
	id->user = user;
	param_keep(id, &p);
	rc = cm_connect(cm_port_lock(cm->port), &req, id, engine_clock(), &id->conn);
	cm_port_unlock(cm->port);
	if (rc != 0) {
		free(id);
		return rocade_fail(-rc, "no connection: %s", strerror(-rc));
	}
	*out = id;
	return 0;
}

static int
gid_index(const struct dev *dev, const uint8_t gid[16])
{
	for (int i = 0; i < DEV_GIDS; i++)
		if (memcmp(dev->gids[i], gid, 16) == 0)
			return i;
	return -1;
}

/* INIT to RTS, towards what the peer said of its QP. No lock is held: the gates are
 * taken. */
static int
qp_up(const struct rocade_cm_id *id, const struct cm_event *peer, unsigned mtu,
	unsigned timeout, unsigned retry_count)
{
	const struct rocade_cm_param *p = &id->param;
	int index = gid_index(id->cm->ctx->dev, peer->path.sgid);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)mtu,
		.dest_qp_num = peer->qp.qpn,
		.rq_psn = p->psn,
		.max_dest_rd_atomic =
			RTE_MIN(p->responder_resources, peer->qp.responder_resources),
		.min_rnr_timer = p->min_rnr_timer,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.sgid_index = (uint8_t)index, .hop_limit = HOP_LIMIT}},
	};
	int rc;

	if (index < 0)
		return EADDRNOTAVAIL; /* an address that we no longer have */
	memcpy(attr.ah_attr.grh.dgid.raw, peer->path.dgid, 16);
	rc = ibv_modify_qp(id->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc != 0)
		return rc;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)timeout,
		.retry_cnt = (uint8_t)retry_count,
		.rnr_retry = peer->qp.rnr_retry,
		.sq_psn = peer->qp.psn,
		.max_rd_atomic = RTE_MIN(p->initiator_depth, peer->qp.initiator_depth),
	};
	return ibv_modify_qp(id->qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

EXPORT int
rocade_cm_accept(struct rocade_cm_id *id, struct ibv_qp *qp,
	const struct rocade_cm_param *param, void *user)
{
	const struct cm_event *r = &id->request;
	struct rocade_cm_param p;
	struct cm_qp said;
	int rc = param_read(param, mad_private_max(MAD_REP), &p);

	if (rc == 0)
		rc = qp_check(id->cm, qp);
	if (rc != 0)
		return rc;
	if (r->conn == NULL)
		return rocade_fail(ENOTCONN, "this end has not been asked");
	param_keep(id, &p);
	id->qp = qp;
	id->user = user;
	/* Before the REP: its answer may be data. */
	rc = qp_up(id, r, r->qp.path_mtu, p.timeout != 0 ? p.timeout : r->ack_timeout,
		r->qp.retry_count);
	if (rc != 0)
		return rocade_fail(rc, "the QP cannot be connected: %s", strerror(rc));
	said = qp_said(qp, &p);
	cm_port_lock(id->cm->port);
	rc = cm_accept(id->conn, &said, p.private_data, p.private_len, engine_clock());
	cm_port_unlock(id->cm->port);
	return rc == 0 ? 0 : rocade_fail(-rc, "the request waits no longer");
}

EXPORT int
rocade_cm_reject(struct rocade_cm_id *id, const void *private_data, size_t private_len)
{
	int rc;

	cm_port_lock(id->cm->port);
	rc = cm_reject(
		id->conn, CM_REJ_CONSUMER, private_data, private_len, engine_clock());
	cm_port_unlock(id->cm->port);
	return rc == 0 ? 0 : rocade_fail(-rc, "no rejection: %s", strerror(-rc));
}

EXPORT int
rocade_cm_disconnect(struct rocade_cm_id *id)
{
	int rc;

	cm_port_lock(id->cm->port);
	rc = cm_disconnect(id->conn, NULL, 0, engine_clock());
	cm_port_unlock(id->cm->port);
	return rc == 0 ? 0 : rocade_fail(-rc, "it is not connected");
}

EXPORT void
rocade_cm_release(struct rocade_cm_id *id)
{
	cm_port_lock(id->cm->port);
	cm_release(id->conn, engine_clock());
	cm_port_unlock(id->cm->port);
	free(id);
}

/* ---- Events ---- */

/* A request has no id yet; the lock is held. False: it is not for a QP that accept() takes, or
 * there is no memory. */
static bool
request_take(struct cm_event *e)
{
	struct rocade_cm_listener *l = e->user;
	struct rocade_cm_id *id;

	if (e->qp.transport != CM_RC) {
		(void)cm_reject(e->conn, CM_REJ_TRANSPORT, NULL, 0, engine_clock());
		cm_release(e->conn, engine_clock());
		return false;
	}
	id = calloc(1, sizeof(*id));
	if (id == NULL) {
		cm_release(e->conn, engine_clock());
		return false;
	}
	id->cm = l->cm;
	id->conn = e->conn;
	id->user = l->user;
	id->request = *e;
	cm_set_user(e->conn, id);
	e->user = id;
	return true;
}

/* The peer has accepted. False: it has gone meanwhile, of which another event tells. */
static bool
reply_take(struct cm_event *e)
{
	struct rocade_cm_id *id = e->user;
	const struct rocade_cm_param *p = &id->param;
	int rc = qp_up(id, e, p->path_mtu, p->timeout != 0 ? p->timeout : ACK_TIMEOUT,
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

static const struct {
	enum rocade_cm_event_type type;
	const char *name;
} event_rows[CM_EVENT_COUNT] = {
	[CM_EVENT_REQUEST] = {ROCADE_CM_REQUEST, "request"},
	[CM_EVENT_ESTABLISHED] = {ROCADE_CM_ESTABLISHED, "established"},
	[CM_EVENT_REJECTED] = {ROCADE_CM_REJECTED, "rejected"},
	[CM_EVENT_UNREACHABLE] = {ROCADE_CM_UNREACHABLE, "unreachable"},
	[CM_EVENT_DISCONNECTED] = {ROCADE_CM_DISCONNECTED, "disconnected"},
	[CM_EVENT_GONE] = {ROCADE_CM_GONE, "gone"},
};

EXPORT const char *
rocade_cm_event_name(enum rocade_cm_event_type type)
{
	for (unsigned i = 0; i < CM_EVENT_COUNT; i++)
		if (event_rows[i].name != NULL && event_rows[i].type == type)
			return event_rows[i].name;
	return "unknown";
}

EXPORT int
rocade_cm_next_event(struct rocade_cm *cm, struct rocade_cm_event *event)
{
	struct rocade_cm_id *id;
	struct cm_event e;
	bool good;

	do {
		good = cm_next_event(cm_port_lock(cm->port), &e);
		if (!good) {
			cm_port_unlock(cm->port);
			return EAGAIN;
		}
		if (e.type == CM_EVENT_REQUEST)
			good = request_take(&e);
		cm_port_unlock(cm->port);
		if (e.type == CM_EVENT_REPLY)
			good = reply_take(&e);
	} while (!good);
	id = e.user;
	*event = (struct rocade_cm_event){
		.type = event_rows[e.type].type,
		.status = e.status,
		.id = id,
		.user = id->user,
		.port = e.sport,
		.private_data = e.private,
		.private_len = e.private_len,
		.responder_resources = e.qp.responder_resources,
		.initiator_depth = e.qp.initiator_depth,
	};
	memcpy(event->peer.raw, e.path.dgid, 16);
	return 0;
}

EXPORT unsigned
rocade_cm_stats(struct rocade_cm *cm, struct rocade_stat *rows, unsigned n)
{
	const uint64_t *values = (const uint64_t *)cm_stats_of(cm_port_lock(cm->port));

	for (unsigned i = 0; i < n && i < CM_STAT_COUNT; i++)
		rows[i] = (struct rocade_stat){
			cm_stat_rows[i].name, cm_stat_rows[i].text, values[i]};
	cm_port_unlock(cm->port);
	return CM_STAT_COUNT;
}
