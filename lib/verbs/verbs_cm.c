/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade/cm.h: a device's connection manager, and the QPs of its connections. */
#include <rocade/cm.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/verbs_cm.h"

EXPORT int
rocade_cm_open(struct ibv_context *context, struct rocade_cm **out)
{
	struct rocade_cm *cm;
	struct cm_conf conf;
	int rc;

	if (arg_missing("context", context) || arg_missing("cm", out))
		return EINVAL;
	if (!context_is_ours(context))
		return rocade_fail(EINVAL, "the context is not of a Rocade device");
	if (to_ctx(context)->dev == NULL)
		return rocade_fail(ENODEV, "the port of the context is closed");
	cm = calloc(1, sizeof(*cm));
	if (cm == NULL)
		return rocade_fail(ENOMEM, "no memory for a connection manager");
	cm_conf_default(&conf);
	cm->ctx = to_ctx(context);
	conf.max_conns = net_neighs(cm->ctx->dev->net);
	rc = random_key_draw(&conf.random);
	if (rc == 0) {
		cm->sport = (uint16_t)(0x8000 | random_once(&conf.random, RANDOM_PORTS));
		rc = event_queue_init(&cm->events);
	}
	if (rc == 0) {
		(void)fcntl(cm->events.fd, F_SETFL, O_NONBLOCK);
		async_event_init(&cm->wakeup, &cm->events, NULL);
		rc = cm_port_open(cm->ctx->dev, &conf, engine_clock(), &cm->port);
		if (rc != 0)
			event_queue_fini(&cm->events);
	}
	if (rc != 0) {
		free(cm);
		return rocade_fail(-rc,
			rc == -EBUSY        ? "the port has a connection manager already"
			: rc == -EOPNOTSUPP ? "the daemon manages the port's connections"
					    : "cannot create a connection manager: no "
					      "memory or no descriptor");
	}
	count_up(&cm->ctx->objects);
	*out = cm;
	return 0;
}

EXPORT void
rocade_cm_close(struct rocade_cm *cm)
{
	if (arg_missing("cm", cm))
		return;
	cm_port_close(cm->port);
	(void)event_purge(&cm->wakeup);
	event_queue_fini(&cm->events);
	count_down(&cm->ctx->objects);
	free(cm);
}

int
cm_listener_open(struct rocade_cm *cm, bool ud, uint16_t port, uint32_t backlog,
	void *user, struct rocade_cm_listener **out)
{
	uint64_t service = cma_service_id(ud ? CMA_PS_UDP : CMA_PS_TCP, port);
	struct rocade_cm_listener *l;
	int rc;

	if (arg_missing("cm", cm) || arg_missing("listener", out))
		return EINVAL;
	if (port == 0 || backlog == 0)
		return rocade_fail(EINVAL, "invalid %s 0: expected at least 1",
			port == 0 ? "port" : "backlog");
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return rocade_fail(ENOMEM, "no memory for a listener");
	l->cm = cm;
	l->user = user;
	rc = (ud ? cm_sidr_listen : cm_listen)(
		cm_port_lock(cm->port), service, NULL, backlog, l, &l->listener);
	cm_port_unlock(cm->port);
	if (rc != 0) {
		free(l);
		return rocade_fail(-rc, "port %u: %s", port, strerror(-rc));
	}
	*out = l;
	return 0;
}

EXPORT int
rocade_cm_listen(struct rocade_cm *cm, uint16_t port, uint32_t backlog, void *user,
	struct rocade_cm_listener **listener)
{
	return cm_listener_open(cm, false, port, backlog, user, listener);
}

EXPORT void
rocade_cm_unlisten(struct rocade_cm_listener *listener)
{
	if (arg_missing("listener", listener))
		return;
	cm_port_lock(listener->cm->port);
	cm_unlisten(listener->listener, engine_clock());
	cm_port_unlock(listener->cm->port);
	free(listener);
}

int
cm_private_check(const void *data, size_t len, size_t max)
{
	if (len > max)
		return rocade_fail(EINVAL,
			"private_len: invalid value %zu: expected at most %zu", len, max);
	return len != 0 && arg_missing("private_data", data) ? EINVAL : 0;
}

static int
conn_param_read(const struct rocade_cm_param *param, size_t private_max,
	struct rocade_cm_param *out)
{
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (param != NULL)
		rc = conf_take(
			CONF_KIND(struct rocade_cm_param, psn), out, param, param->size);
	if (rc == 0)
		rc = cm_private_check(out->private_data, out->private_len, private_max);
	if (rc != 0)
		return rc;
	if (out->retry_count > 7 || out->rnr_retry_count > 7 || out->timeout > 31 ||
		out->min_rnr_timer > 31 || out->psn > 0xFFFFFF ||
		out->path_mtu > IBV_MTU_4096)
		return rocade_fail(EINVAL,
			"param: a member is out of range: retry_count 0..7, "
			"rnr_retry_count 0..7, min_rnr_timer 0..31, "
			"timeout 0..31, path_mtu 0..5, psn 24 bits");
	return 0;
}

static int
conn_qp_check(const struct rocade_cm *cm, const struct ibv_qp *qp)
{
	if (!cm_has_qp(cm, qp) || qp->qp_type != IBV_QPT_RC || qp->state != IBV_QPS_INIT)
		return rocade_fail(
			EINVAL, "the QP is not an RC QP of this device in INIT");
	return 0;
}

static struct cm_qp
conn_qp_fill(const struct ibv_qp *qp, const struct rocade_cm_param *p)
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

/* Keeps the parameters but the private data, which is valid only during the call. */
static void
conn_param_keep(struct rocade_cm_id *id, const struct rocade_cm_param *param)
{
	id->param = *param;
	id->param.private_data = NULL;
	id->param.private_len = 0;
}

int
cm_request_begin(struct rocade_cm *cm, const union ibv_gid *peer, uint8_t ps,
	uint16_t port, unsigned sgid_index, struct cm_request *req)
{
	const struct dev *dev = cm->ctx->dev;

	if (port == 0 || sgid_index >= DEV_GIDS || gid_is_multicast(peer->raw) ||
		gid_is_ipv4(peer->raw) != gid_is_ipv4(dev->gids[sgid_index]))
		return rocade_fail(EINVAL, "invalid %s",
			port == 0
				? "port 0: expected at least 1"
				: "address: expected a unicast address of the family of "
				  "sgid_index");
	*req = (struct cm_request){
		.service_id = cma_service_id(ps, port), .sport = cm->sport++};
	memcpy(req->path.sgid, dev->gids[sgid_index], 16);
	memcpy(req->path.dgid, peer->raw, 16);
	return 0;
}

/* Keeps the request: it may be repeated without options. */
static void
request_fill(struct rocade_cm_id *id, const struct cm_request *begun,
	const struct rocade_cm_param *p)
{
	struct cm_request *req = &id->asked;

	*req = *begun;
	req->qp = conn_qp_fill(id->qp, p);
	req->qp.ece = cm_qp_ece(id->qp);
	if (p->private_len != 0)
		memcpy(id->private, p->private_data, p->private_len);
	req->private = id->private;
	req->private_len = p->private_len;
}

EXPORT int
rocade_cm_connect(struct rocade_cm *cm, struct ibv_qp *qp, const union ibv_gid *peer,
	uint16_t port, const struct rocade_cm_param *param, void *user,
	struct rocade_cm_id **out)
{
	struct rocade_cm_param p;
	struct cm_request req;
	struct rocade_cm_id *id;
	int rc;

	if (arg_missing("cm", cm) || arg_missing("qp", qp) || arg_missing("peer", peer) ||
		arg_missing("id", out))
		return EINVAL;
	rc = conn_param_read(param, CMA_REQ_PRIVATE, &p);
	if (rc == 0)
		rc = conn_qp_check(cm, qp);
	if (rc == 0)
		rc = cm_request_begin(cm, peer, CMA_PS_TCP, port, p.sgid_index, &req);
	if (rc != 0)
		return rc;
	id = cm_id_new(cm, user);
	if (id == NULL)
		return ENOMEM;
	if (p.path_mtu == 0)
		p.path_mtu = cm->ctx->dev->active_mtu;
	id->qp = qp;
	request_fill(id, &req, &p);
	conn_param_keep(id, &p);
	rc = cm_id_ask(id);
	if (rc != 0) {
		free(id);
		return rocade_fail(-rc, "cannot connect: %s", strerror(-rc));
	}
	*out = id;
	return 0;
}

EXPORT int
rocade_cm_accept(struct rocade_cm_id *id, struct ibv_qp *qp,
	const struct rocade_cm_param *param, void *user)
{
	const struct cm_event *r;
	struct rocade_cm_param p;
	struct cm_qp local;
	struct cm_ece own;
	int rc;

	if (arg_missing("id", id) || arg_missing("qp", qp))
		return EINVAL;
	r = &id->request;
	rc = conn_param_read(param, mad_private_max(MAD_REP), &p);
	if (rc == 0)
		rc = conn_qp_check(id->cm, qp);
	if (rc != 0)
		return rc;
	if (r->type != CM_EVENT_REQUEST || r->conn == NULL)
		return rocade_fail(ENOTCONN, "the id is not of a connection request");
	if (id->accepted) /* its QP is in use, with the listener of the id */
		return rocade_fail(ENOTCONN, "the request was accepted already");
	conn_param_keep(id, &p);
	id->qp = qp;
	id->user = user;
	local = conn_qp_fill(qp, &p);
	own = cm_qp_ece(qp);
	local.ece = cm_qp_agree(qp, &own, &r->qp.ece);
	/* Before the REP is sent: the peer may answer it with data (IBA 12.9.7.2). */
	rc = cm_qp_rtr(id, r, r->qp.path_mtu);
	if (rc != 0)
		return rocade_fail(rc, "cannot move the QP to RTR: %s", strerror(rc));
	cm_qp_listener_add(id);
	cm_port_lock(id->cm->port);
	rc = cm_accept(id->conn, &local, p.private_data, p.private_len, engine_clock());
	cm_port_unlock(id->cm->port);
	id->accepted = rc == 0;
	if (rc != 0)
		cm_qp_listener_remove(id);
	return rc == 0 ? 0 : rocade_fail(-rc, "the request is no longer pending");
}

EXPORT int
rocade_cm_reject(struct rocade_cm_id *id, const void *private_data, size_t private_len)
{
	int rc;

	if (arg_missing("id", id) ||
		(private_len != 0 && arg_missing("private_data", private_data)))
		return EINVAL;
	cm_port_lock(id->cm->port);
	rc = cm_reject(
		id->conn, CM_REJ_CONSUMER, private_data, private_len, engine_clock());
	cm_port_unlock(id->cm->port);
	return rc == 0 ? 0 : rocade_fail(-rc, "cannot reject: %s", strerror(-rc));
}

EXPORT int
rocade_cm_disconnect(struct rocade_cm_id *id)
{
	int rc;

	if (arg_missing("id", id))
		return EINVAL;
	cm_port_lock(id->cm->port);
	rc = cm_disconnect(id->conn, NULL, 0, engine_clock());
	cm_port_unlock(id->cm->port);
	return rc == 0 ? 0 : rocade_fail(-rc, "the id is not connected");
}

EXPORT void
rocade_cm_release(struct rocade_cm_id *id)
{
	if (arg_missing("id", id))
		return;
	cm_qp_listener_remove(id);
	cm_port_lock(id->cm->port);
	cm_release(id->conn, engine_clock());
	cm_port_unlock(id->cm->port);
	free(id);
}
