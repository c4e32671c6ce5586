/* SPDX-License-Identifier: BSD-3-Clause */
/* State transitions of a connection (IBA 12.9.7), and the messages sent with them. */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>

#include "cm/backlog.h"
#include "cm/cm_tx.h"
#include "cm/half_open.h"
#include "cm/state.h"
#include "cm/table.h"

const char *
cm_state_name(const struct cm_conn *conn)
{
	static const char *const names[] = {
#define CM_STATE_NAME(name) #name,
		CM_STATES(CM_STATE_NAME)
#undef CM_STATE_NAME
	};

	return names[conn->state];
}

void
conn_ending(struct cm_conn *conn)
{
	if (!conn->ending)
		TAILQ_INSERT_TAIL(&conn->cm->ending, conn, link);
	conn->ending = true;
}

void
conn_enter(struct cm_conn *conn, enum cm_state state)
{
	if (conn->ending)
		TAILQ_REMOVE(&conn->cm->ending, conn, link);
	conn->ending = false;
	wheel_cancel(&conn->cm->wheel, &conn->timer);
	conn->mra_received = false;
	conn->state = (uint8_t)state;
	conn_leave_backlog(conn);
	if (state != CM_REP_SENT)
		half_open_remove(conn);
	if (state == CM_ESTABLISHED)
		conn->unconfirmed = false;
	if (conn->released &&
		(state == CM_ANSWERED || state == CM_DREQ_SENT || state == CM_TIMEWAIT))
		conn_ending(conn);
}

void
conn_event(struct cm_conn *conn, enum cm_event_type type)
{
	if (conn->released || conn->raised & 1u << type)
		return;
	if (conn->events == 0)
		TAILQ_INSERT_TAIL(&conn->cm->conns_with_events, conn, event_link);
	conn->events |= 1u << type;
	conn->raised |= 1u << type;
}

/* Each connection's timer is a tick later than that of the one before it in the table. So
 * connections that were opened or ended all at once do not expire all at once: cm_run()
 * handles some at a time. */
static void
conn_timer_set(struct cm_conn *conn, uint64_t when)
{
	struct cm *cm = conn->cm;

	wheel_set(&cm->wheel, &conn->timer,
		when + (uint64_t)(conn - cm->conns) * WHEEL_TICK_NS);
}

void
conn_send_with_retry(struct cm_conn *conn, uint64_t now)
{
	cm_send(conn->cm, &conn->path, &conn->out);
	conn_timer_set(conn, now + conn->wait_ns);
}

/* As conn_send_with_retry(), for a repetition or a DREQ, which answer no message.
 * Their number is limited while the peer's address may be false. */
static void
conn_resend(struct cm_conn *conn, uint64_t now)
{
	if (conn->unconfirmed)
		cm_answer(conn->cm, &conn->path, &conn->out, now);
	else
		cm_send(conn->cm, &conn->path, &conn->out);
	conn_timer_set(conn, now + conn->wait_ns);
}

void
conn_end(struct cm_conn *conn)
{
	conn_enter(conn, CM_CLOSED);
	conn_unhash(conn);
	if (conn->released)
		conn_free(conn);
}

void
conn_evict(struct cm_conn *conn, uint64_t now)
{
	struct cm *cm = conn->cm;
	bool decided = conn->state != CM_REQ_RCVD;

	cm->stats.evicted++;
	if (!conn->sidr) {
		conn->status = decided ? -ETIMEDOUT : CM_REJ_NO_RESOURCES;
		conn_rej_build(
			conn, decided ? CM_REJ_TIMEOUT : CM_REJ_NO_RESOURCES, NULL, 0);
		cm_answer(cm, &conn->path, &conn->out, now);
		conn_event(conn, decided ? CM_EVENT_UNREACHABLE : CM_EVENT_REJECTED);
	}
	conn_end(conn);
}

/* Part of all connections that other hosts cannot take. */
#define RESERVE_PART 8

/* Makes room in a full table: frees the oldest connection that is ending, else ends the
 * oldest one that its peer has not confirmed. In the second case the user frees it when
 * it has read the event. Until then, the new one is in the reserve. */
static bool
conn_make_room(struct cm *cm, uint32_t *reserve, uint64_t now)
{
	struct cm_conn *conn = TAILQ_FIRST(&cm->ending);

	if (conn != NULL) {
		conn_end(conn);
	} else if ((conn = half_open_oldest(cm)) != NULL) {
		conn_evict(conn, now);
		*reserve /= 2;
	}
	return cm->in_use < cm->conf.max_conns - *reserve;
}

struct cm_conn *
conn_new(struct cm *cm, enum cm_state state, bool remote, uint64_t now)
{
	uint32_t reserve = remote ? cm->conf.max_conns / RESERVE_PART : 0;
	struct cm_conn *conn;

	if (cm->in_use >= cm->conf.max_conns - reserve &&
		!conn_make_room(cm, &reserve, now))
		return NULL;
	conn = conn_alloc(cm);
	if (conn != NULL)
		conn_enter(conn, state);
	return conn;
}

void
conn_timewait(struct cm_conn *conn, uint64_t now)
{
	conn_enter(conn, CM_TIMEWAIT);
	conn_timer_set(conn, now + code_ns(conn->ack_timeout));
}

void
conn_send_final(struct cm_conn *conn, uint64_t now)
{
	struct cm *cm = conn->cm;

	cm_send(cm, &conn->path, &conn->out);
	conn_enter(conn, CM_ANSWERED);
	conn_unhash_qpn(conn); /* the peer may use its QP in another request */
	/* If the response is lost, the peer retries within its timeout. */
	conn_timer_set(conn, now + 2 * conn->wait_ns);
}

void
conn_mad_init(
	const struct cm_conn *conn, struct mad *mad, enum mad_attr attr, uint64_t tid)
{
	uint32_t ids[2] = {
		rte_cpu_to_be_32(conn->local_id), rte_cpu_to_be_32(conn->remote_id)};

	mad_init(mad, attr, tid);
	memcpy(mad->data, ids, sizeof(ids));
}

void
conn_rej_build(
	struct cm_conn *conn, enum cm_reason reason, const void *private, size_t len)
{
	struct mad *rej = &conn->out;
	unsigned message = conn->state == CM_REQ_RCVD   ? CM_MSG_REQ
			   : conn->state == CM_REP_RCVD ? CM_MSG_REP
							: CM_MSG_OTHER;

	conn_mad_init(conn, rej, MAD_REJ, conn->tid);
	mad_put(rej, MAD_REJ_message, message);
	mad_put(rej, MAD_REJ_reason, reason);
	mad_put_private(rej, 0, private, len);
	/* The peer may not know our communication ID: it finds the connection by our
	 * GUID. */
	if (reason == CM_REJ_TIMEOUT) {
		uint64_t guid = rte_cpu_to_be_64(conn->ca_guid);
		uint8_t info[72] = {0};

		memcpy(info, &guid, sizeof(guid));
		mad_put(rej, MAD_REJ_info_len, sizeof(guid));
		mad_put_bytes(rej, MAD_REJ_info, info);
	}
	conn->cm->stats.rejects_sent++;
}

void
conn_dreq_send(struct cm_conn *conn, const void *private, size_t len, uint64_t now)
{
	const struct cm_conf *conf = &conn->cm->conf;

	conn_enter(conn, CM_DREQ_SENT);
	conn_mad_init(conn, &conn->out, MAD_DREQ, conn->tid);
	mad_put(&conn->out, MAD_DREQ_remote_qpn, conn->remote_qpn);
	mad_put_private(&conn->out, 0, private, len);
	conn->retries_left = conf->max_retries;
	if (conn->unconfirmed)
		conn->retries_left = RTE_MIN(conn->retries_left, CM_REP_RETRIES);
	conn->wait_ns = code_ns(conf->response_timeout) + 2 * code_ns(conf->packet_life);
	conn_resend(conn, now);
}

/* A DREQ gets a DREP, also for an unknown connection: otherwise the peer retries the
 * DREQ. */
void
drep_build(struct mad *drep, const struct mad *dreq)
{
	mad_init(drep, MAD_DREP, dreq->tid);
	mad_put(drep, MAD_DREP_local_id, mad_remote_id(dreq));
	mad_put(drep, MAD_DREP_remote_id, mad_local_id(dreq));
}

void
conn_drep_send(struct cm_conn *conn, uint64_t now)
{
	struct mad drep;

	drep_build(&drep, &conn->last);
	cm_send(conn->cm, &conn->path, &drep);
	conn_timewait(conn, now);
}

void
conn_stale(struct cm_conn *conn, uint64_t now)
{
	if (conn->state == CM_DREQ_RCVD) {
		conn_drep_send(conn, now);
		return;
	}
	if (conn->state != CM_ESTABLISHED && conn->state != CM_REP_SENT &&
		conn->state != CM_REP_RCVD)
		return;
	conn->cm->stats.disconnected += conn->state == CM_ESTABLISHED;
	conn_event(conn, CM_EVENT_DISCONNECTED);
	conn_dreq_send(conn, NULL, 0, now);
}

/* No response after all retries. */
static void
retries_exhausted(struct cm_conn *conn, uint64_t now)
{
	struct cm *cm = conn->cm;

	cm->stats.unanswered++;
	conn->status = -ETIMEDOUT;
	switch (conn->state) {
	case CM_DREQ_SENT:
		conn_event(conn, CM_EVENT_DISCONNECTED);
		conn_timewait(conn, now);
		return;
	case CM_REP_SENT:
		conn_rej_build(conn, CM_REJ_TIMEOUT, NULL, 0);
		cm_send(cm, &conn->path, &conn->out);
		conn_event(conn, CM_EVENT_UNREACHABLE);
		conn_timewait(conn, now);
		return;
	case CM_REQ_SENT:
		conn_rej_build(conn, CM_REJ_TIMEOUT, NULL, 0);
		cm_send(cm, &conn->path, &conn->out);
		break;
	default: /* SIDR_SENT */
		break;
	}
	conn_event(conn, CM_EVENT_UNREACHABLE);
	conn_end(conn);
}

void
conn_timeout(struct cm_conn *conn, uint64_t now)
{
	if (conn->state == CM_ANSWERED) {
		conn_end(conn);
	} else if (conn->state == CM_TIMEWAIT) {
		conn_event(conn, CM_EVENT_TIMEWAIT_EXIT);
		conn_end(conn);
	} else if (conn->retries_left == 0) {
		retries_exhausted(conn, now);
	} else {
		conn->retries_left--;
		conn->cm->stats.resent++;
		conn_resend(conn, now);
	}
}
