/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls by which the user opens, accepts, rejects, ends and releases connections. */
#include <errno.h>
#include <string.h>

#include "cm/backlog.h"
#include "cm/cm_tx.h"
#include "cm/state.h"
#include "cm/table.h"
#include "port/net.h"

#define LID_ROCE 0xFFFF
#define HOP_LIMIT 64
#define PKEY 0xFFFF

static bool
path_valid(const struct cm_path *path)
{
	static const uint8_t none[16];

	return memcmp(path->sgid, none, 16) != 0 && memcmp(path->dgid, none, 16) != 0 &&
	       !gid_is_multicast(path->dgid);
}

static void
path_put(struct mad *req, const struct cm_request *r, const struct cm_conf *conf)
{
	uint16_t dport = (uint16_t)r->service_id;

	mad_put(req, MAD_REQ_primary_local_lid, LID_ROCE);
	mad_put(req, MAD_REQ_primary_remote_lid, LID_ROCE);
	mad_put_bytes(req, MAD_REQ_primary_local_gid, r->path.sgid);
	mad_put_bytes(req, MAD_REQ_primary_remote_gid, r->path.dgid);
	mad_put(req, MAD_REQ_primary_flow_label, (r->sport * 31u + dport) & 0xFFFFF);
	mad_put(req, MAD_REQ_primary_hop_limit, HOP_LIMIT);
	mad_put(req, MAD_REQ_primary_ack_timeout,
		r->ack_timeout != 0 ? r->ack_timeout : conf->ack_timeout);
}

static void
cma_put_request(struct mad *mad, const struct cm_request *r)
{
	struct cma_hdr hdr = {.sport = r->sport};

	memcpy(hdr.src, r->path.sgid, 16);
	memcpy(hdr.dst, r->path.dgid, 16);
	cma_put(mad, &hdr);
	mad_put_private(mad, CMA_HDR_LEN, r->private, r->private_len);
}

static void
req_make(struct cm_conn *conn, const struct cm_request *r)
{
	const struct cm_conf *conf = &conn->cm->conf;
	const struct cm_qp *qp = &r->qp;
	struct mad *req = &conn->out;

	mad_init(req, MAD_REQ, conn->tid);
	mad_put(req, MAD_REQ_local_id, conn->local_id);
	mad_put(req, MAD_REQ_service_id, r->service_id);
	mad_put(req, MAD_REQ_ca_guid, conn->ca_guid);
	mad_put(req, MAD_REQ_local_qpn, qp->qpn);
	mad_put(req, MAD_REQ_responder_resources, qp->responder_resources);
	mad_put(req, MAD_REQ_initiator_depth, qp->initiator_depth);
	mad_put(req, MAD_REQ_remote_timeout, conf->response_timeout);
	mad_put(req, MAD_REQ_local_timeout, conf->response_timeout);
	/* XRC is the extended transport (annex A14). */
	mad_put(req, MAD_REQ_transport, qp->transport);
	mad_put(req, MAD_REQ_extended_transport, qp->transport == CM_XRC);
	mad_put(req, MAD_REQ_flow_control, qp->flow_control);
	mad_put(req, MAD_REQ_starting_psn, qp->psn);
	mad_put(req, MAD_REQ_retry_count, qp->retry_count);
	mad_put(req, MAD_REQ_pkey, PKEY);
	mad_put(req, MAD_REQ_path_mtu, qp->path_mtu);
	mad_put(req, MAD_REQ_rnr_retry_count, qp->rnr_retry);
	mad_put(req, MAD_REQ_max_cm_retries, conf->max_retries);
	mad_put(req, MAD_REQ_srq, qp->srq);
	mad_put_ece(req, &qp->ece);
	path_put(req, r, conf);
	cma_put_request(req, r);
}

/* Creates a connection of the active side. */
static struct cm_conn *
conn_open(struct cm *cm, const struct cm_request *req, enum cm_state state, void *user,
	uint64_t now)
{
	struct cm_conn *conn = conn_new(cm, state, false, now);

	if (conn == NULL)
		return NULL;
	conn->user = user;
	conn->path = req->path;
	conn->local_qpn = req->qp.qpn;
	if (req->qp.ca_guid != 0)
		conn->ca_guid = req->qp.ca_guid;
	conn->tid = random_next(&cm->tids);
	conn->retries_left = cm->conf.max_retries;
	conn->wait_ns =
		code_ns(cm->conf.response_timeout) + 2 * code_ns(cm->conf.packet_life);
	return conn;
}

int
cm_connect(struct cm *cm, const struct cm_request *req, void *user, uint64_t now,
	struct cm_conn **out)
{
	const struct cm_qp *qp = &req->qp;
	struct cm_conn *conn;

	if (!path_valid(&req->path) || !qpn_is_ordinary(qp->qpn) || qp->path_mtu < 1 ||
		qp->path_mtu > 5 || qp->retry_count > 7 || qp->rnr_retry > 7 ||
		qp->transport > CM_XRC || qp->transport == CM_RD ||
		qp->ece.vendor_id > CM_VENDOR_ID_MAX ||
		req->private_len > CMA_REQ_PRIVATE)
		return -EINVAL;
	conn = conn_open(cm, req, CM_REQ_SENT, user, now);
	if (conn == NULL)
		return -ENOSPC;
	conn->xrc = qp->transport == CM_XRC;
	req_make(conn, req);
	conn_send_with_retry(conn, now);
	*out = conn;
	return 0;
}

int
cm_sidr_request(struct cm *cm, const struct cm_request *req, void *user, uint64_t now,
	struct cm_conn **out)
{
	struct cm_conn *conn;

	if (!path_valid(&req->path) || req->private_len > CMA_SIDR_PRIVATE)
		return -EINVAL;
	conn = conn_open(cm, req, CM_SIDR_SENT, user, now);
	if (conn == NULL)
		return -ENOSPC;
	conn->sidr = true;
	mad_init(&conn->out, MAD_SIDR_REQ, conn->tid);
	mad_put(&conn->out, MAD_SIDR_REQ_request_id, conn->local_id);
	mad_put(&conn->out, MAD_SIDR_REQ_pkey, PKEY);
	mad_put(&conn->out, MAD_SIDR_REQ_service_id, req->service_id);
	cma_put_request(&conn->out, req);
	conn_send_with_retry(conn, now);
	*out = conn;
	return 0;
}

int
cm_accept(struct cm_conn *conn, const struct cm_qp *qp, const void *private, size_t len,
	uint64_t now)
{
	struct mad *rep = &conn->out;

	if (!cm_sends(conn, MAD_REP))
		return -ENOTCONN;
	if (!qpn_is_ordinary(qp->qpn) || qp->rnr_retry > 7 ||
		qp->ece.vendor_id > CM_VENDOR_ID_MAX || len > mad_private_max(MAD_REP))
		return -EINVAL;
	conn->local_qpn = qp->qpn;
	if (qp->ca_guid != 0)
		conn->ca_guid = qp->ca_guid;
	conn_mad_init(conn, rep, MAD_REP, conn->tid);
	mad_put(rep, MAD_REP_local_qpn, qp->qpn);
	mad_put(rep, MAD_REP_starting_psn, qp->psn);
	mad_put(rep, MAD_REP_responder_resources, qp->responder_resources);
	mad_put(rep, MAD_REP_initiator_depth, qp->initiator_depth);
	mad_put(rep, MAD_REP_flow_control, qp->flow_control);
	mad_put(rep, MAD_REP_rnr_retry_count, qp->rnr_retry);
	mad_put(rep, MAD_REP_srq, qp->srq || conn->xrc);
	/* An XRC target has its QPN where RD has the EE context (annex A14). Earlier versions
	 * of Rocade read the field above. */
	if (conn->xrc)
		mad_put(rep, MAD_REP_local_eecn, qp->qpn);
	mad_put_ece(rep, &qp->ece);
	mad_put(rep, MAD_REP_ca_guid, conn->ca_guid);
	mad_put_private(rep, 0, private, len);
	conn_enter(conn, CM_REP_SENT);
	conn_send_with_retry(conn, now);
	return 0;
}

int
cm_reject(struct cm_conn *conn, enum cm_reason reason, const void *private, size_t len,
	uint64_t now)
{
	if (conn->state != CM_REQ_RCVD && conn->state != CM_REP_RCVD)
		return -ENOTCONN;
	if (len > mad_private_max(MAD_REJ))
		return -EINVAL;
	conn_rej_build(conn, reason, private, len);
	if (conn->state == CM_REQ_RCVD) {
		conn_send_final(conn, now);
	} else {
		cm_send(conn->cm, &conn->path, &conn->out);
		conn_timewait(conn, now);
	}
	return 0;
}

int
cm_reject_mtu(struct cm_conn *conn, uint8_t path_mtu, uint64_t now)
{
	uint8_t info[72] = {path_mtu};

	if (conn->state != CM_REQ_RCVD)
		return -ENOTCONN;
	conn_rej_build(conn, CM_REJ_MTU, NULL, 0);
	mad_put(&conn->out, MAD_REJ_info_len, sizeof(path_mtu));
	mad_put_bytes(&conn->out, MAD_REJ_info, info);
	conn_send_final(conn, now);
	return 0;
}

int
cm_confirm(struct cm_conn *conn, const void *private, size_t len, uint64_t now)
{
	(void)now;
	if (conn->state != CM_REP_RCVD)
		return -ENOTCONN;
	if (len > mad_private_max(MAD_RTU))
		return -EINVAL;
	conn_mad_init(conn, &conn->out, MAD_RTU, conn->tid);
	mad_put_private(&conn->out, 0, private, len);
	cm_send(conn->cm, &conn->path, &conn->out);
	conn_enter(conn, CM_ESTABLISHED);
	conn->cm->stats.established++;
	return 0;
}

int
cm_established(struct cm_conn *conn, uint64_t now)
{
	(void)now;
	if (conn->state != CM_REP_SENT)
		return -ENOTCONN;
	conn_enter(conn, CM_ESTABLISHED);
	conn->cm->stats.established++;
	conn_event(conn, CM_EVENT_ESTABLISHED);
	return 0;
}

int
cm_disconnect(struct cm_conn *conn, const void *private, size_t len, uint64_t now)
{
	if (!cm_sends(conn, MAD_DREQ) && conn->state != CM_DREQ_RCVD)
		return -ENOTCONN;
	if (len > mad_private_max(MAD_DREQ))
		return -EINVAL;
	if (conn->state == CM_DREQ_RCVD) {
		conn_drep_send(conn, now);
		return 0;
	}
	conn->cm->stats.disconnected += conn->state == CM_ESTABLISHED;
	conn_dreq_send(conn, private, len, now);
	return 0;
}

bool
cm_sends(const struct cm_conn *conn, enum mad_attr attr)
{
	if (attr == MAD_REP)
		return conn->state == CM_REQ_RCVD;
	return conn->state == CM_ESTABLISHED || conn->state == CM_REP_SENT;
}

bool
cm_is_established(const struct cm_conn *conn)
{
	return conn->state == CM_ESTABLISHED;
}

void
cm_break(struct cm_conn *conn, uint64_t now)
{
	conn->cm->stats.faults++;
	conn_stale(conn, now);
}

void *
cm_awaited_user(const struct cm_conn *conn)
{
	const struct cm_conn *peer = conn_find(conn->cm, conn->remote_id);

	/* The ID of another host may be that of a connection here. */
	if (conn->state != CM_DREQ_SENT || peer == NULL || peer->state != CM_DREQ_RCVD ||
		peer->remote_id != conn->local_id ||
		memcmp(peer->path.dgid, conn->path.sgid, 16) != 0)
		return NULL;
	return peer->user;
}

int
cm_sidr_reply(struct cm_conn *conn, enum cm_sidr_status status, uint32_t qpn,
	uint32_t qkey, const void *private, size_t len, uint64_t now)
{
	struct mad *rep = &conn->out;

	if (conn->state != CM_SIDR_RCVD)
		return -ENOTCONN;
	if (len > mad_private_max(MAD_SIDR_REP) ||
		(status == CM_SIDR_VALID && !qpn_is_ordinary(qpn)))
		return -EINVAL;
	mad_init(rep, MAD_SIDR_REP, conn->tid);
	mad_put(rep, MAD_SIDR_REP_request_id, conn->remote_id);
	mad_put(rep, MAD_SIDR_REP_status, status);
	mad_put(rep, MAD_SIDR_REP_service_id,
		mad_get(&conn->open, MAD_SIDR_REQ_service_id));
	if (status == CM_SIDR_VALID) {
		mad_put(rep, MAD_SIDR_REP_qpn, qpn);
		mad_put(rep, MAD_SIDR_REP_qkey, qkey);
	} else {
		conn->cm->stats.rejects_sent++;
	}
	mad_put_private(rep, 0, private, len);
	conn_send_final(conn, now);
	return 0;
}

static void
events_forget(struct cm_conn *conn)
{
	if (conn->events != 0)
		TAILQ_REMOVE(&conn->cm->conns_with_events, conn, event_link);
	conn->events = 0;
	conn_leave_backlog(conn);
}

void
cm_release(struct cm_conn *conn, uint64_t now)
{
	events_forget(conn);
	conn->released = true;
	switch (conn->state) {
	case CM_REQ_SENT: /* a REP that arrives later finds no connection */
		conn_rej_build(conn, CM_REJ_TIMEOUT, NULL, 0);
		cm_send(conn->cm, &conn->path, &conn->out);
		conn_end(conn);
		break;
	case CM_REQ_RCVD:
	case CM_REP_RCVD:
		(void)cm_reject(conn, CM_REJ_CONSUMER, NULL, 0, now);
		break;
	case CM_ESTABLISHED:
	case CM_DREQ_RCVD:
	case CM_REP_SENT: /* the RTU of the peer may be on its way */
		(void)cm_disconnect(conn, NULL, 0, now);
		break;
	case CM_SIDR_RCVD:
		(void)cm_sidr_reply(conn, CM_SIDR_REJECTED, 0, 0, NULL, 0, now);
		break;
	case CM_SIDR_SENT:
	case CM_CLOSED:
		conn_end(conn);
		break;
	default: /* freed by their timers: DREQ_SENT, TIMEWAIT, ANSWERED */
		conn_ending(conn);
		break;
	}
}

bool
cm_has_ended(const struct cm_conn *conn)
{
	return (conn->state == CM_CLOSED || conn->state == CM_ANSWERED) &&
	       conn->events == 0;
}

void
cm_set_user(struct cm_conn *conn, void *user)
{
	conn->user = user;
}
