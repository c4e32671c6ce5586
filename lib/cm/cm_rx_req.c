/* SPDX-License-Identifier: BSD-3-Clause */
/* A received REQ: finds the listener, checks the content, detects retries (IBA
 * 12.9.8.1). */
#include <string.h>

#include "cm/cm_rx.h"
#include "cm/cm_tx.h"
#include "cm/listen.h"
#include "cm/state.h"
#include "cm/table.h"

/* Rejects without a connection: no state is kept, and a retry of the REQ is rejected
 * again. */
static enum cm_drop
req_refuse(struct cm *cm, const struct mad *req, const struct cm_path *path,
	enum cm_reason reason, uint64_t now)
{
	struct mad rej;

	mad_init(&rej, MAD_REJ, req->tid);
	mad_put(&rej, MAD_REJ_remote_id, mad_get(req, MAD_REQ_local_id));
	mad_put(&rej, MAD_REJ_message, CM_MSG_REQ);
	mad_put(&rej, MAD_REJ_reason, reason);
	cm->stats.rejects_sent++;
	cm->stats.stale += reason == CM_REJ_STALE;
	cm_answer(cm, path, &rej, now);
	return CM_DROP_none;
}

/* Returns the reason to reject the REQ for its content, or 0. */
static unsigned
req_check(const struct mad *req, const struct cm_path *path)
{
	unsigned transport = (unsigned)mad_get(req, MAD_REQ_transport);
	unsigned mtu = (unsigned)mad_get(req, MAD_REQ_path_mtu);
	struct cma_hdr hdr;

	if (transport == CM_RD ||
		(transport == CM_XRC && mad_get(req, MAD_REQ_extended_transport) != 1))
		return CM_REJ_TRANSPORT;
	if (memcmp(mad_bytes(req, MAD_REQ_primary_remote_gid), path->sgid, 16) != 0 ||
		memcmp(mad_bytes(req, MAD_REQ_primary_local_gid), path->dgid, 16) != 0)
		return CM_REJ_GID;
	if (mtu < 1 || mtu > 5)
		return CM_REJ_MTU;
	if (cma_get(req, &hdr) != 0 || memcmp(hdr.dst, path->sgid, 16) != 0)
		return CM_REJ_UNSUPPORTED;
	return 0;
}

static void
mra_send(struct cm_conn *conn, uint64_t now)
{
	struct mad mra;

	conn_mad_init(conn, &mra, MAD_MRA, conn->tid);
	mad_put(&mra, MAD_MRA_message, CM_MSG_REQ);
	mad_put(&mra, MAD_MRA_service_timeout, conn->cm->conf.mra_timeout);
	cm_answer(conn->cm, &conn->path, &mra, now);
}

/* A REQ with a communication ID that the peer has used before. */
static enum cm_drop
req_duplicate(struct cm_conn *conn, const struct mad *req, const struct cm_path *path,
	uint64_t now)
{
	struct cm *cm = conn->cm;

	if (conn->state == CM_TIMEWAIT || conn->state == CM_DREQ_SENT ||
		conn->state == CM_DREQ_RCVD)
		return req_refuse(cm, req, path, CM_REJ_STALE, now);
	if (conn->open.attr != req->attr || memcmp(&conn->open, req, sizeof(*req)) != 0)
		return req_refuse(cm, req, path, CM_REJ_DUPLICATE_ID, now);
	if (conn->state == CM_REQ_RCVD) {
		mra_send(conn, now);
	} else if (conn->state == CM_REP_SENT || conn->state == CM_ANSWERED) {
		cm_answer(cm, &conn->path, &conn->out, now);
	} else {
		return CM_DROP_duplicate;
	}
	cm->stats.duplicates++;
	return CM_DROP_none;
}

static void
conn_from_req(struct cm_conn *conn, const struct mad *req, const struct cm_path *path)
{
	const struct cm_conf *conf = &conn->cm->conf;
	unsigned timeout = (unsigned)mad_get(req, MAD_REQ_local_timeout);

	conn->path = *path;
	conn->tid = req->tid;
	conn->peer = peer_of(path, mad_get(req, MAD_REQ_ca_guid));
	conn->remote_id = mad_local_id(req);
	conn->remote_qpn = (uint32_t)mad_get(req, MAD_REQ_local_qpn);
	conn->xrc = mad_get(req, MAD_REQ_transport) == CM_XRC;
	/* Until the RTU has come, the peer has not shown that this is its address. */
	conn->retries_left = (uint8_t)RTE_MIN(
		mad_get(req, MAD_REQ_max_cm_retries), (uint64_t)CM_REP_RETRIES);
	conn->ack_timeout = (uint8_t)RTE_MIN(
		mad_get(req, MAD_REQ_primary_ack_timeout), (uint64_t)CM_MRA_MAX);
	conn->wait_ns = code_ns(RTE_MIN(timeout, (unsigned)conf->response_timeout)) +
			2 * code_ns(conf->packet_life);
	conn->open = *req;
	conn_hash_id(conn);
	conn_hash_qpn(conn);
}

enum cm_drop
req_rx(struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now)
{
	struct cm_peer peer = peer_of(path, mad_get(mad, MAD_REQ_ca_guid));
	uint32_t qpn = (uint32_t)mad_get(mad, MAD_REQ_local_qpn);
	struct cm_conn *conn = conn_find_id(cm, &peer, mad_local_id(mad), false);
	struct cm_listener *listener;
	unsigned reason;

	if (mad_local_id(mad) == 0 || !qpn_is_ordinary(qpn))
		return CM_DROP_field;
	if (conn != NULL)
		return req_duplicate(conn, mad, path, now);
	listener = listener_find(cm, mad_get(mad, MAD_REQ_service_id), false, path->sgid);
	if (listener == NULL)
		return req_refuse(cm, mad, path, CM_REJ_NO_SERVICE, now);
	reason = req_check(mad, path);
	if (reason != 0)
		return req_refuse(cm, mad, path, reason, now);
	conn = conn_find_qpn(cm, &peer, qpn);
	if (conn != NULL) {
		conn_stale(conn, now);
		return req_refuse(cm, mad, path, CM_REJ_STALE, now);
	}
	conn = listener_conn(listener, CM_REQ_RCVD, path, now);
	if (conn == NULL)
		return req_refuse(cm, mad, path, CM_REJ_NO_RESOURCES, now);
	conn_from_req(conn, mad, path);
	conn_event(conn, CM_EVENT_REQUEST);
	return CM_DROP_none;
}

bool
req_claims(struct cm *cm, const struct mad *mad, const struct cm_path *path)
{
	struct cm_peer peer = peer_of(path, mad_get(mad, MAD_REQ_ca_guid));

	return conn_find_id(cm, &peer, mad_local_id(mad), false) != NULL ||
	       listener_find(cm, mad_get(mad, MAD_REQ_service_id), false, path->sgid) !=
		       NULL;
}
