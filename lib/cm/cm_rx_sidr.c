/* SPDX-License-Identifier: BSD-3-Clause */
/* Service ID resolution for datagrams, SIDR (IBA 12.11). */
#include <string.h>

#include "cm/cm_rx.h"
#include "cm/cm_tx.h"
#include "cm/listen.h"
#include "cm/state.h"
#include "cm/table.h"

static void
sidr_refuse(struct cm *cm, const struct mad *req, const struct cm_path *path,
	enum cm_sidr_status status, uint64_t now)
{
	struct mad rep;

	mad_init(&rep, MAD_SIDR_REP, req->tid);
	mad_put(&rep, MAD_SIDR_REP_request_id, mad_get(req, MAD_SIDR_REQ_request_id));
	mad_put(&rep, MAD_SIDR_REP_status, status);
	mad_put(&rep, MAD_SIDR_REP_service_id, mad_get(req, MAD_SIDR_REQ_service_id));
	cm->stats.rejects_sent++;
	cm_answer(cm, path, &rep, now);
}

static enum cm_drop
sidr_req_duplicate(struct cm_conn *conn, const struct mad *req, uint64_t now)
{
	struct cm *cm = conn->cm;

	if (conn->state != CM_ANSWERED || memcmp(&conn->open, req, sizeof(*req)) != 0)
		return CM_DROP_duplicate;
	cm->stats.duplicates++;
	cm_answer(cm, &conn->path, &conn->out, now);
	return CM_DROP_none;
}

enum cm_drop
sidr_req_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now)
{
	uint32_t id = (uint32_t)mad_get(mad, MAD_SIDR_REQ_request_id);
	struct cm_peer peer = peer_of(path, 0);
	struct cm_conn *conn = conn_find_id(cm, &peer, id, true);
	struct cm_listener *listener;
	struct cma_hdr hdr;

	if (conn != NULL)
		return sidr_req_duplicate(conn, mad, now);
	if (cma_get(mad, &hdr) != 0) {
		sidr_refuse(cm, mad, path, CM_SIDR_VERSION, now);
		return CM_DROP_none;
	}
	listener = listener_find(
		cm, mad_get(mad, MAD_SIDR_REQ_service_id), true, path->sgid);
	if (listener == NULL || memcmp(hdr.dst, path->sgid, 16) != 0) {
		sidr_refuse(cm, mad, path, CM_SIDR_NO_SERVICE, now);
		return CM_DROP_none;
	}
	conn = listener_conn(listener, CM_SIDR_RCVD, path, now);
	if (conn == NULL) {
		sidr_refuse(cm, mad, path, CM_SIDR_REJECTED, now);
		return CM_DROP_none;
	}
	conn->sidr = true;
	conn->path = *path;
	conn->tid = mad->tid;
	conn->peer = peer;
	conn->remote_id = id;
	conn->open = *mad;
	conn->wait_ns =
		code_ns(cm->conf.response_timeout) + 2 * code_ns(cm->conf.packet_life);
	conn_hash_id(conn);
	conn_event(conn, CM_EVENT_SIDR_REQUEST);
	return CM_DROP_none;
}

bool
sidr_req_claims(struct cm *cm, const struct mad *mad, const struct cm_path *path)
{
	uint32_t id = (uint32_t)mad_get(mad, MAD_SIDR_REQ_request_id);
	uint64_t service_id = mad_get(mad, MAD_SIDR_REQ_service_id);
	struct cm_peer peer = peer_of(path, 0);

	return conn_find_id(cm, &peer, id, true) != NULL ||
	       listener_find(cm, service_id, true, path->sgid) != NULL;
}

/* Returns NULL if the reply is for no request of this manager. */
static struct cm_conn *
sidr_conn_of(struct cm *cm, const struct mad *rep)
{
	struct cm_conn *conn =
		conn_find(cm, (uint32_t)mad_get(rep, MAD_SIDR_REP_request_id));

	return conn != NULL && conn->sidr ? conn : NULL;
}

bool
sidr_rep_claims(struct cm *cm, const struct mad *mad)
{
	return sidr_conn_of(cm, mad) != NULL;
}

enum cm_drop
sidr_rep_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now)
{
	struct cm_conn *conn = sidr_conn_of(cm, mad);

	(void)now;
	if (conn == NULL)
		return CM_DROP_ids;
	if (memcmp(path->dgid, conn->path.dgid, 16) != 0)
		return CM_DROP_address;
	if (conn->state != CM_SIDR_SENT)
		return CM_DROP_state;
	cm->stats.rejects_received += mad_get(mad, MAD_SIDR_REP_status) != CM_SIDR_VALID;
	conn->open = *mad;
	conn_event(conn, CM_EVENT_SIDR_REPLY);
	conn_end(conn);
	return CM_DROP_none;
}
