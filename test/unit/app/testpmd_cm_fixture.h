/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of `listen` and `connect`: stands for the connection manager, the clock and the QPs. */
#ifndef ROCADE_TEST_TESTPMD_CM_FIXTURE_H
#define ROCADE_TEST_TESTPMD_CM_FIXTURE_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "run.h"
#include "testpmd_cm.h"

#define PASS_NS (NS_PER_SECOND / 10)
#define EVENTS 16
#define ASKS 8
#define A 0 /* 192.0.2.2 */
#define B 1 /* 192.0.2.3 */

struct rocade_cm {
	int unused;
};
struct rocade_cm_listener {
	int unused;
};
struct rocade_cm_id {
	unsigned released, disconnected, asked, accepted;
};

static struct rocade_cm cm;
static struct rocade_cm_listener listener;
static struct rocade_cm_id ids[4],
	asks[ASKS];                       /* that there are, and that connect makes */
static unsigned n_asks, asks_most = ASKS; /* further ones fail */
static struct rocade_cm_event events[EVENTS];
static unsigned n_events, next_event;
static unsigned passes;
static void (*in_pass)(void); /* what comes meanwhile */
static uint64_t now_ns;
static struct conf conf;
static struct port_conf *pc = &conf.ports[0];
static struct host host, other; /* of A and B */
static struct conn conns[2][2];

/* ---- The connection manager ---- */

int
rocade_cm_open(struct ibv_context *context, struct rocade_cm **made)
{
	(void)context;
	*made = &cm;
	return 0;
}

void
rocade_cm_close(struct rocade_cm *closed)
{
	(void)closed;
}

int
rocade_cm_listen(struct rocade_cm *of, uint16_t port, uint32_t backlog, void *user,
	struct rocade_cm_listener **made)
{
	(void)of;
	(void)port;
	(void)backlog;
	(void)user;
	*made = &listener;
	return 0;
}

void
rocade_cm_unlisten(struct rocade_cm_listener *closed)
{
	(void)closed;
}

int
rocade_cm_connect(struct rocade_cm *of, struct ibv_qp *qp, const union ibv_gid *peer,
	uint16_t port, const struct rocade_cm_param *param, void *user,
	struct rocade_cm_id **id)
{
	(void)of;
	(void)qp;
	(void)peer;
	(void)port;
	(void)param;
	(void)user;
	assert_true(n_asks < ASKS);
	if (n_asks == asks_most)
		return EINVAL;
	*id = &asks[n_asks++];
	(*id)->asked++;
	return 0;
}

int
rocade_cm_accept(struct rocade_cm_id *id, struct ibv_qp *qp,
	const struct rocade_cm_param *param, void *user)
{
	(void)qp;
	(void)param;
	(void)user;
	id->accepted++;
	return 0;
}

int
rocade_cm_disconnect(struct rocade_cm_id *id)
{
	id->disconnected++;
	return 0;
}

void
rocade_cm_release(struct rocade_cm_id *id)
{
	id->released++;
}

int
rocade_cm_next_event_sized(
	struct rocade_cm *of, struct rocade_cm_event *event, size_t size)
{
	(void)size;
	(void)of;
	if (next_event == n_events)
		return EAGAIN;
	*event = events[next_event++];
	return 0;
}

/* The event comes. */
static void
comes(enum rocade_cm_event_type type, struct conn *conn, struct rocade_cm_id *id)
{
	assert_true(n_events < EVENTS);
	events[n_events++] =
		(struct rocade_cm_event){.type = type, .user = conn, .id = id};
}

/* A request of the host 192.0.2.LAST for QP 0 comes. */
static void
request_comes(uint8_t last, struct rocade_cm_id *id)
{
	static const struct conn_request qp_0 = {.magic = {'R', 'T', 'P', 'D'}};
	struct rocade_cm_event *event;

	comes(ROCADE_CM_REQUEST, NULL, id);
	event = &events[n_events - 1];
	event->private_data = &qp_0;
	event->private_len = sizeof(qp_0);
	event->peer = (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, last}};
}

/* ---- The rest of the program ---- */

int
rocade_gid_parse(const char *text, union ibv_gid *gid)
{
	*gid = (union ibv_gid){.raw = {[10] = 0xff,
				       [11] = 0xff,
				       192,
				       0,
				       2,
				       (uint8_t)atoi(strrchr(text, '.') + 1)}};
	return 0;
}

const char *
rocade_gid_format(const union ibv_gid *gid, char *text, size_t size)
{
	snprintf(text, size, "192.0.2.%u", gid->raw[15]);
	return text;
}

const char *
rocade_error(void)
{
	return "";
}

uint64_t
clock_ns(void)
{
	return now_ns;
}

unsigned
host_poll_all(struct host *h)
{
	(void)h;
	now_ns += PASS_NS;
	if (++passes == 3 && in_pass != NULL)
		in_pass();
	return 0;
}

void
cores_hold(struct run *run)
{
	(void)run;
}

int
host_set_path(struct host *h, char err[ERR_MAX])
{
	(void)err;
	return rocade_gid_parse(host_peer(h), &h->path.peer);
}

int
host_to_init(struct host *h, bool (*which)(const struct conn *conn))
{
	(void)h;
	(void)which;
	return 0;
}

void
host_log(const struct host *h, const char *format, ...)
{
	(void)h;
	(void)format;
}

void
host_fail(struct host *h, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (h->reason[0] == '\0')
		vsnprintf(h->reason, sizeof(h->reason), format, args);
	va_end(args);
	h->state = HOST_FAILED;
}

static void
host_begin(struct host *h, unsigned peer, bool connected)
{
	*h = (struct host){.conf = &conf,
		.pc = pc,
		.head = &host,
		.peer = peer,
		.first_conn = 2 * peer,
		.conns = conns[peer],
		.n_conns = 2,
		.by_cm = true,
		.cm = &cm};
	for (unsigned i = 0; i < 2; i++)
		conns[peer][i] = (struct conn){.asked = true,
			.established = connected,
			.id = connected ? &ids[2 * peer + i] : NULL};
	assert_int_equal(host_set_path(h, h->reason), 0);
}

/* An end that is connected with two peers, two QPs each, and listens or not. */
static void
begin(bool listens, bool connected)
{
	memset(ids, 0, sizeof(ids));
	memset(asks, 0, sizeof(asks));
	n_asks = n_events = next_event = passes = 0;
	in_pass = NULL;
	now_ns = NS_PER_SECOND;
	conf = (struct conf){.n_ports = 1, .qps = 4};
	strcpy(pc->addr, "192.0.2.1/24");
	assert_true(peers_add(pc, "192.0.2.2,192.0.2.3"));
	host_begin(&host, A, connected);
	host_begin(&other, B, connected);
	host.others = &other;
	host.n_hosts = 2;
	host.listener = listens ? &listener : NULL;
}

#endif
