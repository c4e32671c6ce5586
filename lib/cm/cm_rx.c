/* SPDX-License-Identifier: BSD-3-Clause */
/* Received messages: finds the connection, and handles the message in the connection's
 * state (IBA 12.9.8). */
#include <string.h>

#include <rte_byteorder.h>

#include "cm/cm_rx.h"
#include "cm/cm_tx.h"
#include "cm/state.h"
#include "cm/table.h"
#include "port/net.h"

typedef enum cm_drop (*conn_rx_fn)(
	struct cm_conn *conn, const struct mad *mad, uint64_t now);

static enum cm_drop
response_resend(struct cm_conn *conn)
{
	conn->cm->stats.duplicates++;
	cm_send(conn->cm, &conn->path, &conn->out);
	return CM_DROP_none;
}

static void
mra_rep(struct cm_conn *conn)
{
	conn_mad_init(conn, &conn->out, MAD_MRA, conn->tid);
	mad_put(&conn->out, MAD_MRA_message, CM_MSG_REP);
	mad_put(&conn->out, MAD_MRA_service_timeout, conn->cm->conf.mra_timeout);
}

/* The peer's communication ID or QP belongs to another connection with it already:
 * rejects the REP as stale, and disconnects the old connection. */
static enum cm_drop
rep_stale(struct cm_conn *conn, struct cm_conn *old, uint64_t now)
{
	conn_stale(old, now);
	conn->cm->stats.stale++;
	conn_rej_build(conn, CM_REJ_STALE, NULL, 0);
	mad_put(&conn->out, MAD_REJ_message, CM_MSG_REP);
	cm_send(conn->cm, &conn->path, &conn->out);
	conn->status = CM_REJ_STALE;
	conn_event(conn, CM_EVENT_REJECTED);
	conn_timewait(conn, now);
	return CM_DROP_none;
}

/* An XRC target has its QPN where RD has the EE context (annex A14). Earlier versions of
 * Rocade have it in the field of the other transports alone. */
static uint32_t
rep_qpn(const struct cm_conn *conn, const struct mad *rep)
{
	uint32_t qpn = conn->xrc ? (uint32_t)mad_get(rep, MAD_REP_local_eecn) : 0;

	return qpn != 0 ? qpn : (uint32_t)mad_get(rep, MAD_REP_local_qpn);
}

static enum cm_drop
rep_rx(struct cm_conn *conn, const struct mad *mad, uint64_t now)
{
	uint32_t qpn = rep_qpn(conn, mad);
	struct cm_conn *old;

	if (conn->state == CM_REP_RCVD || conn->state == CM_ESTABLISHED) {
		if (mad_attr_of(&conn->open) != MAD_REP)
			return CM_DROP_state; /* passive side: the REP was ours */
		if (conn->remote_qpn != qpn)
			return CM_DROP_field;
		if (conn->state == CM_REP_RCVD)
			mra_rep(conn);
		return response_resend(conn);
	}
	if (conn->state != CM_REQ_SENT)
		return CM_DROP_state;
	if (mad_local_id(mad) == 0 || !qpn_is_ordinary(qpn))
		return CM_DROP_field;
	conn->remote_id = mad_local_id(mad);
	conn->remote_qpn = qpn;
	conn->peer = peer_of(&conn->path, mad_get(mad, MAD_REP_ca_guid));
	old = conn_find_id(conn->cm, &conn->peer, conn->remote_id, false);
	if (old == NULL)
		old = conn_find_qpn(conn->cm, &conn->peer, qpn);
	if (old != NULL)
		return rep_stale(conn, old, now);
	conn->open = *mad;
	conn_hash_id(conn);
	conn_hash_qpn(conn);
	conn_enter(conn, CM_REP_RCVD);
	conn_event(conn, CM_EVENT_REPLY);
	return CM_DROP_none;
}

static enum cm_drop
rtu_rx(struct cm_conn *conn, const struct mad *mad, uint64_t now)
{
	(void)mad;
	if (conn->state == CM_ESTABLISHED)
		return CM_DROP_duplicate;
	return cm_established(conn, now) == 0 ? CM_DROP_none : CM_DROP_state;
}

/* Extends the timer of the REQ or REP that the MRA names. Only the first MRA counts:
 * otherwise a peer could delay for ever. */
static enum cm_drop
mra_rx(struct cm_conn *conn, const struct mad *mad, uint64_t now)
{
	unsigned code = (unsigned)mad_get(mad, MAD_MRA_service_timeout);
	unsigned message = (unsigned)mad_get(mad, MAD_MRA_message);
	struct cm *cm = conn->cm;

	if (!(conn->state == CM_REQ_SENT && message == CM_MSG_REQ) &&
		!(conn->state == CM_REP_SENT && message == CM_MSG_REP))
		return CM_DROP_state;
	if (conn->mra_received)
		return CM_DROP_duplicate;
	conn->mra_received = true;
	wheel_set(&cm->wheel, &conn->timer,
		now + code_ns(RTE_MIN(code, (unsigned)CM_MRA_MAX)) +
			code_ns(cm->conf.packet_life));
	return CM_DROP_none;
}

static enum cm_drop
rej_rx(struct cm_conn *conn, const struct mad *mad, uint64_t now)
{
	unsigned reason = (unsigned)mad_get(mad, MAD_REJ_reason);
	struct cm *cm = conn->cm;

	switch (conn->state) {
	case CM_REQ_SENT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		conn->last = *mad;
		conn->status = (int)reason;
		conn_event(conn, CM_EVENT_REJECTED);
		if (conn->state == CM_REQ_SENT || conn->state == CM_REQ_RCVD)
			conn_end(conn);
		else
			conn_timewait(conn, now);
		break;
	/* On the passive side: the peer's user rejected the REP after data had
	 * established the connection. On the active side: the peer gave up waiting for
	 * the RTU. */
	case CM_ESTABLISHED:
		cm->stats.disconnected++;
		/* fall through */
	case CM_DREQ_SENT:
		conn->last = *mad;
		conn_event(conn, CM_EVENT_DISCONNECTED);
		conn_timewait(conn, now);
		break;
	default:
		return CM_DROP_state;
	}
	cm->stats.rejects_received++;
	return CM_DROP_none;
}

/* The user has a QP that may still have packets of the peer to handle, and answer: the DREP, at which the
 * peer destroys its own QP, goes out when the user has disconnected, too, or releases the connection. */
static enum cm_drop
dreq_wait_for_user(struct cm_conn *conn, const struct mad *dreq)
{
	conn->cm->stats.disconnected += conn->state == CM_ESTABLISHED;
	conn->last = *dreq;
	conn_event(conn, CM_EVENT_DISCONNECTED);
	conn_enter(conn, CM_DREQ_RCVD);
	return CM_DROP_none;
}

static enum cm_drop
dreq_rx(struct cm_conn *conn, const struct mad *mad, uint64_t now)
{
	struct cm *cm = conn->cm;
	struct mad drep;

	drep_build(&drep, mad);
	if (conn->state == CM_REQ_SENT) {
		/* The peer accepted and gave up before its REP came here. The next retry
		 * of the REQ shows that. */
		cm_send(cm, &conn->path, &drep);
		return CM_DROP_state;
	}
	if (conn->state != CM_REQ_RCVD &&
		mad_get(mad, MAD_DREQ_remote_qpn) != conn->local_qpn)
		return CM_DROP_field;
	switch (conn->state) {
	case CM_TIMEWAIT:
	case CM_ANSWERED:
		cm_send(cm, &conn->path, &drep);
		cm->stats.duplicates++;
		return CM_DROP_none;
	case CM_DREQ_RCVD:
		cm->stats.duplicates++;
		return CM_DROP_none;
	case CM_ESTABLISHED:
	case CM_REP_SENT: /* the RTU was lost */
		return dreq_wait_for_user(conn, mad);
	default:
		break;
	}
	cm_send(cm, &conn->path, &drep);
	conn->last = *mad;
	conn_event(conn, CM_EVENT_DISCONNECTED);
	conn_timewait(conn, now);
	return CM_DROP_none;
}

static enum cm_drop
drep_rx(struct cm_conn *conn, const struct mad *mad, uint64_t now)
{
	(void)mad;
	if (conn->state != CM_DREQ_SENT)
		return CM_DROP_state;
	conn_event(conn, CM_EVENT_DISCONNECTED);
	conn_timewait(conn, now);
	return CM_DROP_none;
}

/* The answer to a LAP. Alternate paths are not supported (IBA 12.8). */
static void
apr_build(struct mad *apr, const struct mad *lap, unsigned status)
{
	mad_init(apr, MAD_APR, lap->tid);
	mad_put(apr, MAD_APR_local_id, mad_remote_id(lap));
	mad_put(apr, MAD_APR_remote_id, mad_local_id(lap));
	mad_put(apr, MAD_APR_status, status);
}

#define APR_INVALID_ID 1
#define APR_UNSUPPORTED 2

static enum cm_drop
lap_rx(struct cm_conn *conn, const struct mad *mad, uint64_t now)
{
	struct mad apr;

	(void)now;
	apr_build(&apr, mad, APR_UNSUPPORTED);
	cm_send(conn->cm, &conn->path, &apr);
	return CM_DROP_none;
}

static enum cm_drop
apr_rx(struct cm_conn *conn, const struct mad *mad, uint64_t now)
{
	(void)conn;
	(void)mad;
	(void)now;
	return CM_DROP_state; /* no LAP was sent */
}

/* Handles a message whose communication IDs name no connection. A DREQ, REP or LAP gets a
 * response, because its sender would retry it. Other messages are dropped. */
static enum cm_drop
unknown_id_rx(
	struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now)
{
	struct mad answer;

	switch (mad_attr_of(mad)) {
	case MAD_DREQ:
		drep_build(&answer, mad);
		break;
	case MAD_REP:
		mad_init(&answer, MAD_REJ, mad->tid);
		mad_put(&answer, MAD_REJ_local_id, mad_remote_id(mad));
		mad_put(&answer, MAD_REJ_remote_id, mad_local_id(mad));
		mad_put(&answer, MAD_REJ_message, CM_MSG_REP);
		mad_put(&answer, MAD_REJ_reason, CM_REJ_INVALID_ID);
		cm->stats.rejects_sent++;
		break;
	case MAD_LAP:
		apr_build(&answer, mad, APR_INVALID_ID);
		break;
	default:
		return CM_DROP_ids;
	}
	cm_answer(cm, path, &answer, now);
	return CM_DROP_ids;
}

/* Finds the connection that a message names by both IDs. The sender of a REJ for a
 * timeout may not know this side's ID, and names itself by its GUID. */
static struct cm_conn *
conn_of(struct cm *cm, const struct mad *mad, const struct cm_path *path)
{
	struct cm_conn *conn = conn_find(cm, mad_remote_id(mad));
	struct cm_peer peer;
	uint64_t guid;

	if (conn == NULL && mad_attr_of(mad) == MAD_REJ &&
		mad_get(mad, MAD_REJ_reason) == CM_REJ_TIMEOUT &&
		mad_get(mad, MAD_REJ_info_len) >= sizeof(guid)) {
		memcpy(&guid, mad_bytes(mad, MAD_REJ_info), sizeof(guid));
		peer = peer_of(path, rte_be_to_cpu_64(guid));
		return conn_find_id(cm, &peer, mad_local_id(mad), false);
	}
	if (conn == NULL || conn->sidr || conn->state == CM_CLOSED)
		return NULL;
	/* The peer's ID is unknown until its REP. */
	return conn->state == CM_REQ_SENT || conn->remote_id == mad_local_id(mad) ? conn
										  : NULL;
}

static enum cm_drop
conn_rx(struct cm *cm, const struct mad *mad, const struct cm_path *path, uint64_t now)
{
	static const conn_rx_fn handlers[MAD_ATTR_LAST + 1] = {
		[MAD_MRA] = mra_rx,
		[MAD_REJ] = rej_rx,
		[MAD_REP] = rep_rx,
		[MAD_RTU] = rtu_rx,
		[MAD_DREQ] = dreq_rx,
		[MAD_DREP] = drep_rx,
		[MAD_LAP] = lap_rx,
		[MAD_APR] = apr_rx,
	};
	struct cm_conn *conn = conn_of(cm, mad, path);

	if (conn == NULL)
		return unknown_id_rx(cm, mad, path, now);
	if (memcmp(path->dgid, conn->path.dgid, 16) != 0)
		return CM_DROP_address;
	return handlers[mad_attr_of(mad)](conn, mad, now);
}

enum cm_drop
cm_rx(struct cm *cm, const uint8_t *bytes, size_t len, const struct cm_path *path,
	uint64_t now)
{
	enum cm_drop why = mad_check(bytes, len);
	struct mad mad;

	cm_run(cm, now); /* first end what has expired */
	cm->stats.rx++;
	/* A response would go to all members of the group. */
	if (why == CM_DROP_none && gid_is_multicast(path->dgid))
		why = CM_DROP_address;
	if (why == CM_DROP_none) {
		memcpy(&mad, bytes, sizeof(mad));
		switch (mad_attr_of(&mad)) {
		case MAD_REQ:
			why = req_rx(cm, &mad, path, now);
			break;
		case MAD_SIDR_REQ:
			why = sidr_req_rx(cm, &mad, path, now);
			break;
		case MAD_SIDR_REP:
			why = sidr_rep_rx(cm, &mad, path, now);
			break;
		default:
			why = conn_rx(cm, &mad, path, now);
			break;
		}
	}
	cm->stats.drop[why]++;
	return why;
}

bool
cm_claims(struct cm *cm, const uint8_t *bytes, size_t len, const struct cm_path *path)
{
	struct mad mad;

	if (mad_check(bytes, len) != CM_DROP_none)
		return false;
	memcpy(&mad, bytes, sizeof(mad));
	switch (mad_attr_of(&mad)) {
	case MAD_REQ:
		return req_claims(cm, &mad, path);
	case MAD_SIDR_REQ:
		return sidr_req_claims(cm, &mad, path);
	case MAD_SIDR_REP:
		return sidr_rep_claims(cm, &mad);
	default:
		return conn_of(cm, &mad, path) != NULL;
	}
}
