/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for programs that are no clients: rocade_status() (the daemon's view of its
 * clients, and the clients' own statistics) and rocade_device_name(). */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include <rocade/status.h>

#include "base/json_out.h"
#include "port/gid.h"
#include "shm/session.h"
#include "switch/socket.h"
#include "verbs/export.h"

#define REPORT_TIMEOUT_MS 200 /* for clients whose process is not running just now */
#define REPORT_POLL_MS 2

static const char *
type_name(uint8_t type)
{
	switch (type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	case IBV_QPT_XRC_SEND:
		return "XRC_SEND";
	case IBV_QPT_XRC_RECV:
		return "XRC_RECV";
	default:
		return "?";
	}
}

static const char *
state_name(uint8_t state)
{
	static const char *const names[] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state < RTE_DIM(names) ? names[state] : "?";
}

static void
qp_print(struct json_out *j, const struct report_qp *qp)
{
	const uint32_t *stats = (const uint32_t *)&qp->stats;

	json_out_object(j, NULL);
	json_out_uint(j, "qpn", qp->qpn);
	json_out_text(j, "type", type_name(qp->type));
	json_out_text(j, "state", state_name(qp->state));
	json_out_uint(j, "dest_qpn", qp->dest_qpn);
	json_out_uint(j, "srqn", qp->srqn);
	json_out_uint(j, "sq_fill", qp->sq_fill);
	json_out_uint(j, "sq_size", qp->sq_size);
	json_out_uint(j, "sq_unacked_ns", qp->sq_unacked_ns);
	json_out_uint(j, "sq_unsignaled_ns", qp->sq_unsignaled_ns);
	json_out_uint(j, "rq_fill", qp->rq_fill);
	json_out_uint(j, "rq_size", qp->rq_size);
	for (size_t i = 0; i < QP_STAT_COUNT; i++)
		json_out_uint(j, qp_stat_rows[i].name, stats[i]);
	json_out_end(j);
}

static void
srq_print(struct json_out *j, const struct report_srq *srq)
{
	json_out_object(j, NULL);
	json_out_uint(j, "srqn", srq->srqn);
	json_out_bool(j, "xrc", srq->xrc);
	json_out_uint(j, "fill", srq->fill);
	json_out_uint(j, "size", srq->size);
	json_out_uint(j, "limit", srq->limit);
	json_out_uint(j, "limit_events", srq->limit_events);
	json_out_uint(j, "qps", srq->qps);
	json_out_bool(j, "error", srq->error);
	json_out_end(j);
}

/* Congestion control has members only where it is on. */
static void
peer_window_print(struct json_out *j, const char *name, const struct peer_window_info *w)
{
	json_out_object(j, name);
	json_out_uint(j, "qps_blocked", w->qps_blocked);
	json_out_uint(j, "inflight", w->inflight);
	json_out_uint(j, "window", w->window);
	if (w->cc_window != 0) {
		json_out_bool(j, "cc_paced", peer_info_is_paced(w));
		json_out_raw(j, "cc_window"); /* packets, with two decimals */
		fprintf(j->to, "%" PRIu32 ".%02" PRIu32, w->cc_window >> CC_SHIFT,
			w->cc_window % CC_ONE * 100 / CC_ONE);
		if (w->cc_delay_ns != UINT32_MAX)
			json_out_uint(j, "cc_delay_ns", w->cc_delay_ns);
		json_out_uint(j, "cc_target_ns", w->cc_target_ns);
	}
	json_out_end(j);
}

static void
peer_print(struct json_out *j, const struct peer_info *peer)
{
	char text[64];

	json_out_object(j, NULL);
	json_out_text(j, "address", gid_format(peer->gid, text, sizeof(text)));
	json_out_uint(j, "qps", peer->qps);
	json_out_uint(j, "cap", peer->cap);
	json_out_uint(j, "srtt_ns", peer->srtt_ns);
	json_out_bool(j, "cc", peer_info_cc_is_on(peer));
	peer_window_print(j, "send", &peer->send);
	peer_window_print(j, "read", &peer->read);
	json_out_end(j);
}

static void
report_print(struct json_out *j, uint32_t id, const struct report *r, uint32_t rows)
{
	const uint64_t *stats = (const uint64_t *)&r->stats;

	json_out_object(j, NULL);
	json_out_uint(j, "id", id);
	json_out_bool(j, "answered",
		r->requested_gen != 0 && r->written_gen == r->requested_gen);
	json_out_object(j, "engine");
	for (size_t i = 0; i < PORT_STAT_COUNT; i++) {
		if (strcmp(port_stat_rows[i].name, "drop_none") != 0)
			json_out_uint(j, port_stat_rows[i].name, stats[i]);
	}
	json_out_end(j);
	json_out_uint(j, "srq_count", r->srq_count);
	json_out_array(j, "srqs");
	for (uint32_t i = 0; i < RTE_MIN(r->srq_count, (uint32_t)REPORT_SRQS); i++)
		srq_print(j, &r->srqs[i]);
	json_out_end(j);
	json_out_uint(j, "peer_count", r->peer_count);
	json_out_array(j, "peers");
	for (uint32_t i = 0; i < RTE_MIN(r->peer_count, (uint32_t)REPORT_PEERS); i++)
		peer_print(j, &r->peers[i]);
	json_out_end(j);
	json_out_array(j, "qps");
	for (uint32_t i = 0; i < RTE_MIN(r->qp_count, rows); i++)
		qp_print(j, &r->qps[i]);
	json_out_end(j);
	json_out_end(j);
}

/* Fetches the statistics of the first client with an id of at least `from` into r, piece by
 * piece, without the rows of QPs if those are not wanted. Sets *id, and *len to their length in
 * bytes. */
static int
report_fetch(struct session *s, uint32_t from, bool qps, struct report *r, uint32_t *id,
	size_t *len)
{
	const size_t most = qps ? sizeof(*r) : offsetof(struct report, qps);
	struct sw_request req = {.type = SW_REPORT, .qpn = from};
	struct sw_data_reply reply;
	int rc;

	memset(r, 0, sizeof(*r));
	*len = 0;
	do {
		req.dest_qpn = (uint32_t)*len;
		rc = session_fetch(s, &req, &reply);
		if (rc != 0)
			return rc;
		/* The client has gone: the next piece is another one's. */
		if (*len != 0 && reply.id != *id)
			return 0;
		*id = reply.id;
		if (reply.len > sizeof(*r) - *len)
			return -EPROTO;
		memcpy((char *)r + *len, reply.bytes, reply.len);
		*len += reply.len;
	} while (reply.len != 0 && *len < most);
	return 0;
}

static int
reports_print(struct json_out *j, struct session *s, bool qps)
{
	struct report *r = malloc(sizeof(*r));
	int rc = r != NULL ? 0 : -ENOMEM;
	uint32_t id = 0, from = 0;
	size_t len;

	while (rc == 0) {
		rc = report_fetch(s, from, qps, r, &id, &len);
		from = id + 1;
		if (rc == 0 && len >= offsetof(struct report, qps))
			report_print(j, id, r,
				qps ? (uint32_t)((len - offsetof(struct report, qps)) /
						 sizeof(r->qps[0]))
				    : 0);
	}
	free(r);
	return rc == -ENOENT ? 0 : rc;
}

/* Waits until all clients have written their statistics, or the timeout has passed. */
static int
reports_request(struct session *s)
{
	const struct timespec pause = {.tv_nsec = REPORT_POLL_MS * NS_PER_MS};
	struct sw_request req = {.type = SW_REPORT_REQUEST};
	struct sw_reply reply;
	int rc = session_call(s, &req, &reply, NULL, 0);

	req.qpn = 1;
	for (unsigned ms = 0; rc == 0 && reply.qpn != 0 && ms < REPORT_TIMEOUT_MS;
		ms += REPORT_POLL_MS) {
		nanosleep(&pause, NULL);
		rc = session_call(s, &req, &reply, NULL, 0);
	}
	return rc;
}

/* Prints the daemon's rows of one kind as an array. */
static int
rows_print(
	struct json_out *j, struct session *s, const char *key, enum sw_status_part part)
{
	struct sw_request req = {.type = SW_STATUS, .qpn = part};
	struct sw_data_reply reply;
	int rc;

	json_out_array(j, key);
	while ((rc = session_fetch(s, &req, &reply)) == 0) {
		json_out_raw(j, NULL);
		fwrite(reply.bytes, 1, reply.len, j->to);
		req.dest_qpn = reply.id + 1;
		if (req.dest_qpn == 0) /* it was the highest */
			break;
	}
	json_out_end(j);
	return rc == -ENOENT ? 0 : rc;
}

static int
daemon_print(struct json_out *j, struct session *s)
{
	struct sw_request req = {.type = SW_STATUS, .qpn = SW_STATUS_DEVICE};
	struct sw_data_reply reply;
	int rc;

	json_out_object(j, "daemon");
	rc = session_fetch(s, &req, &reply);
	if (rc == 0) {
		json_out_raw(j, NULL);
		fwrite(reply.bytes, 1, reply.len, j->to);
		rc = rows_print(j, s, "users", SW_STATUS_USER);
		if (rc == 0)
			rc = rows_print(j, s, "clients", SW_STATUS_CLIENT);
		if (rc == 0)
			rc = rows_print(j, s, "latencies", SW_STATUS_LATENCIES);
		if (rc == 0)
			rc = rows_print(j, s, "slowest", SW_STATUS_SLOWEST);
	}
	json_out_end(j);
	return rc;
}

static int
status_print(FILE *to, struct session *s, const char *path, bool qps)
{
	struct json_out j = {.to = to};
	int rc = reports_request(s);

	json_out_object(&j, NULL);
	json_out_text(&j, "socket", path);
	if (rc == 0)
		rc = daemon_print(&j, s);
	json_out_array(&j, "reports");
	if (rc == 0)
		rc = reports_print(&j, s, qps);
	json_out_end(&j);
	json_out_end(&j);
	fputc('\n', to);
	return rc;
}

/* Sets the error text for the failure rc of a session at this socket; returns the errno
 * value. */
static int
session_fail(const struct session *s, const char *socket, int rc)
{
	char text[SESSION_TEXT];

	session_error_text(s, socket, rc, text, sizeof(text));
	return rocade_fail(-rc, "%s", text);
}

/* Ends the session. Returns as rocade_status(). */
static int
session_status(struct session *s, const char *socket, bool qps, char **json)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	FILE *to;
	size_t size;
	char *text = NULL;
	int rc;

	(void)sw_socket_path(
		socket, true, &addr); /* there is a session, so it is valid */
	to = open_memstream(&text, &size);
	if (to == NULL)
		rc = -ENOMEM;
	else
		rc = status_print(to, s, addr.sun_path, qps);
	session_close(s);
	if (to != NULL && fclose(to) != 0 && rc == 0)
		rc = -ENOMEM;
	if (rc == 0) {
		*json = text;
		return 0;
	}
	free(text);
	if (rc == -EPROTONOSUPPORT || rc == -ENODEV || rc == -s->refused)
		return session_fail(s, socket, rc);
	return rocade_fail(
		-rc, "cannot query the daemon at %s: %s", addr.sun_path, strerror(-rc));
}

int
rocade_status(const char *socket, char **json)
{
	struct session s;
	int rc = session_open(&s, socket);

	return rc != 0 ? session_fail(&s, socket, rc)
		       : session_status(&s, socket, true, json);
}

int
rocade_status_over(int fd, const char *socket, bool qps, char **json)
{
	struct session s;

	session_adopt(&s, fd);
	return session_status(&s, socket, qps, json);
}

int
rocade_device_name(const char *socket, char name[ROCADE_NAME_MAX])
{
	struct sw_device device;
	struct session s;
	int rc = session_open(&s, socket);

	if (rc == 0) {
		rc = session_device(&s, &device);
		session_close(&s);
	}
	if (rc != 0)
		return session_fail(&s, socket, rc);
	memcpy(name, device.name, ROCADE_NAME_MAX);
	return 0;
}
