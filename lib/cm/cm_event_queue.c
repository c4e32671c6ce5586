/* SPDX-License-Identifier: BSD-3-Clause */
/* Events for the user, built when they are fetched. */
#include "cm/backlog.h"

static void
event_from_req(const struct mad *req, struct cm_event *event)
{
	struct cma_hdr hdr;

	event->qp = (struct cm_qp){
		.qpn = (uint32_t)mad_get(req, MAD_REQ_local_qpn),
		.psn = (uint32_t)mad_get(req, MAD_REQ_starting_psn),
		.responder_resources = (uint8_t)mad_get(req, MAD_REQ_initiator_depth),
		.initiator_depth = (uint8_t)mad_get(req, MAD_REQ_responder_resources),
		.rnr_retry = (uint8_t)mad_get(req, MAD_REQ_rnr_retry_count),
		.srq = mad_get(req, MAD_REQ_srq) != 0,
		.flow_control = mad_get(req, MAD_REQ_flow_control) != 0,
		.ece = mad_get_ece(req),
		.retry_count = (uint8_t)mad_get(req, MAD_REQ_retry_count),
		.path_mtu = (uint8_t)mad_get(req, MAD_REQ_path_mtu),
		.transport = (uint8_t)mad_get(req, MAD_REQ_transport),
	};
	event->ack_timeout = (uint8_t)mad_get(req, MAD_REQ_primary_ack_timeout);
	event->service_id = mad_get(req, MAD_REQ_service_id);
	(void)cma_get(req, &hdr); /* checked on receipt */
	event->sport = hdr.sport;
	event->private += CMA_HDR_LEN;
	event->private_len -= CMA_HDR_LEN;
}

static void
event_from_rep(const struct mad *rep, struct cm_event *event)
{
	event->qp = (struct cm_qp){
		.qpn = event->conn->remote_qpn,
		.psn = (uint32_t)mad_get(rep, MAD_REP_starting_psn),
		.responder_resources = (uint8_t)mad_get(rep, MAD_REP_initiator_depth),
		.initiator_depth = (uint8_t)mad_get(rep, MAD_REP_responder_resources),
		.rnr_retry = (uint8_t)mad_get(rep, MAD_REP_rnr_retry_count),
		.srq = mad_get(rep, MAD_REP_srq) != 0,
		.flow_control = mad_get(rep, MAD_REP_flow_control) != 0,
		.ece = mad_get_ece(rep),
	};
}

static void
event_from_rej(const struct mad *rej, struct cm_event *event)
{
	if (mad_get(rej, MAD_REJ_reason) == CM_REJ_MTU &&
		mad_get(rej, MAD_REJ_info_len) >= sizeof(event->path_mtu))
		event->path_mtu = *mad_bytes(rej, MAD_REJ_info);
}

static void
event_from_sidr_req(const struct mad *req, struct cm_event *event)
{
	struct cma_hdr hdr;

	event->service_id = mad_get(req, MAD_SIDR_REQ_service_id);
	(void)cma_get(req, &hdr);
	event->sport = hdr.sport;
	event->private += CMA_HDR_LEN;
	event->private_len -= CMA_HDR_LEN;
}

static void
event_from_sidr_rep(const struct mad *rep, struct cm_event *event)
{
	event->status = (int)mad_get(rep, MAD_SIDR_REP_status);
	event->qp.qpn = (uint32_t)mad_get(rep, MAD_SIDR_REP_qpn);
	event->qkey = (uint32_t)mad_get(rep, MAD_SIDR_REP_qkey);
	event->service_id = mad_get(rep, MAD_SIDR_REP_service_id);
}

static void
cm_event_fill(struct cm_event *event)
{
	struct cm_conn *conn = event->conn;
	const struct mad *mad = NULL;

	if (event->type == CM_EVENT_REJECTED || event->type == CM_EVENT_DISCONNECTED)
		mad = &conn->last;
	else if (event->type == CM_EVENT_REQUEST || event->type == CM_EVENT_REPLY ||
		 event->type == CM_EVENT_SIDR_REQUEST ||
		 event->type == CM_EVENT_SIDR_REPLY)
		mad = &conn->open;
	if (mad == NULL || mad->mgmt_class == 0)
		return; /* no message from the peer */
	event->private = mad_private(mad, &event->private_len);
	if (event->type == CM_EVENT_REQUEST)
		event_from_req(mad, event);
	else if (event->type == CM_EVENT_REPLY)
		event_from_rep(mad, event);
	else if (event->type == CM_EVENT_REJECTED)
		event_from_rej(mad, event);
	else if (event->type == CM_EVENT_SIDR_REQUEST)
		event_from_sidr_req(mad, event);
	else if (event->type == CM_EVENT_SIDR_REPLY)
		event_from_sidr_rep(mad, event);
}

bool
cm_has_event(const struct cm *cm)
{
	return !TAILQ_EMPTY(&cm->conns_with_events);
}

/* Returns the events of a connection in the order of enum cm_event_type, which is the
 * order in which they can happen. */
bool
cm_next_event(struct cm *cm, struct cm_event *event)
{
	struct cm_conn *conn = TAILQ_FIRST(&cm->conns_with_events);
	unsigned type;

	if (conn == NULL)
		return false;
	type = (unsigned)__builtin_ctz(conn->events);
	TAILQ_REMOVE(&cm->conns_with_events, conn, event_link);
	conn->events &= conn->events - 1;
	conn_leave_backlog(conn);
	if (conn->events != 0)
		TAILQ_INSERT_TAIL(&cm->conns_with_events, conn, event_link);
	*event = (struct cm_event){
		.type = type,
		.conn = conn,
		.user = conn->user,
		.path = conn->path,
		.status = type == CM_EVENT_REJECTED || type == CM_EVENT_UNREACHABLE
				  ? conn->status
				  : 0,
	};
	cm_event_fill(event);
	return true;
}
