/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager: messages of all kinds, time, and users that call anything at
 * any time. A step is an operation byte and its arguments. The manager may talk to
 * itself, which makes whole connections.
 */
#include "cm/cm_types.h"
#include "fuzz.h"
#include "port/net.h"

#define STEPS 300
#define CONNS 8
#define HANDLES 16
/* Longer than the manager keeps any state. */
#define QUIET_NS                                                                         \
	(17 * (code_ns(CM_TIMEOUT_MAX) + 2 * code_ns(18) + code_ns(CM_MRA_MAX)) * 2)

struct bench {
	struct cm *cm;
	struct cm_listener *listeners[3];
	struct cm_conn *held[HANDLES];
	struct cm_path path; /* path of an arriving message */
	uint64_t now;
};

static const uint64_t services[3] = {0x1061d2f, 0x1111d2f, 0x1061d30};
#define DATAGRAMS 1 /* index of the service of datagrams (SIDR) */

static void
listen_at(struct bench *b, unsigned which, const uint8_t *addr, uint32_t backlog)
{
	struct cm_listener **l = &b->listeners[which];

	FUZZ_CHECK((which == DATAGRAMS ? cm_sidr_listen : cm_listen)(
			   b->cm, services[which], addr, backlog, b, l) == 0);
}

static void
bench_init(struct bench *b, unsigned how)
{
	struct cm_conf conf;

	*b = (struct bench){.now = NS_PER_SEC};
	cm_conf_default(&conf);
	conf.ca_guid = 0x1111;
	conf.random.word[0] = how;
	conf.max_conns = CONNS;
	conf.max_retries = how & 15;
	FUZZ_CHECK(cm_create(&conf, b->now, &b->cm) == 0);
	FUZZ_CHECK(gid_parse(how & 16 ? "192.0.2.1" : "2001:db8::1", b->path.sgid,
			   NULL) == 0);
	FUZZ_CHECK(gid_parse(how & 16 ? "192.0.2.2" : "2001:db8::2", b->path.dgid,
			   NULL) == 0);
	if (how & 32) /* to this manager itself */
		memcpy(b->path.dgid, b->path.sgid, 16);
	for (unsigned i = 0; i < 2; i++)
		listen_at(b, i, i ? b->path.sgid : NULL, 3);
}

static void
conn_note(struct bench *b, struct cm_conn *conn)
{
	for (unsigned i = 0; i < HANDLES; i++) {
		if (b->held[i] == NULL) {
			b->held[i] = conn;
			return;
		}
	}
	cm_release(conn, b->now);
}

static void
events_check(struct bench *b)
{
	struct cm_event e;

	while (cm_next_event(b->cm, &e)) {
		bool ours = false;

		for (unsigned i = 0; i < HANDLES; i++)
			ours |= b->held[i] == e.conn;
		/* A user gets no events of connections that it does not own. */
		FUZZ_CHECK(ours != (e.type == CM_EVENT_REQUEST ||
					   e.type == CM_EVENT_SIDR_REQUEST));
		FUZZ_CHECK(e.private_len <= 232);
		for (size_t i = 0; i < e.private_len; i++)
			/* reads every byte: the data must be mapped */
			(void)*(const volatile uint8_t *)&e.private[i];
		if (!ours)
			conn_note(b, e.conn);
	}
}

/* Delivers a message that may belong to a connection: its header and ids are correct
 * except for the corrupted fields. */
static void
rx_built(struct bench *b, struct input *in)
{
	enum mad_attr attr =
		MAD_ATTR_FIRST + take8(in) % (MAD_ATTR_LAST - MAD_ATTR_FIRST + 1);
	const struct cm_conn *conn = &b->cm->conns[take8(in) % CONNS];
	unsigned bends = take8(in) % 8;
	struct cma_hdr hdr = {.sport = 1};
	struct mad mad;

	mad_init(&mad, attr, take8(in));
	if (attr == MAD_REQ) {
		mad_put(&mad, MAD_REQ_local_id, take8(in));
		mad_put(&mad, MAD_REQ_service_id, services[take8(in) % 3]);
		mad_put(&mad, MAD_REQ_local_qpn, take8(in));
		mad_put(&mad, MAD_REQ_path_mtu, 3);
		mad_put(&mad, MAD_REQ_local_timeout, take8(in));
		mad_put(&mad, MAD_REQ_max_cm_retries, take8(in));
		mad_put_bytes(&mad, MAD_REQ_primary_local_gid, b->path.dgid);
		mad_put_bytes(&mad, MAD_REQ_primary_remote_gid, b->path.sgid);
	} else if (attr == MAD_SIDR_REQ) {
		mad_put(&mad, MAD_SIDR_REQ_request_id, take8(in));
		mad_put(&mad, MAD_SIDR_REQ_service_id, services[take8(in) % 3]);
	} else if (attr == MAD_SIDR_REP) {
		mad_put(&mad, MAD_SIDR_REP_request_id, conn->local_id);
	} else {
		for (unsigned i = 0; i < 4; i++) {
			mad.data[i] = (uint8_t)(conn->remote_id >> (24 - 8 * i));
			mad.data[4 + i] = (uint8_t)(conn->local_id >> (24 - 8 * i));
		}
	}
	if (attr == MAD_DREQ)
		mad_put(&mad, MAD_DREQ_remote_qpn, conn->local_qpn);
	if (attr == MAD_REP) {
		mad_put(&mad, MAD_REP_local_id, 1 + take8(in));
		mad_put(&mad, MAD_REP_local_qpn, 2 + take8(in));
	}
	if (attr == MAD_REQ || attr == MAD_SIDR_REQ) {
		memcpy(hdr.src, b->path.dgid, 16);
		memcpy(hdr.dst, b->path.sgid, 16);
		cma_put(&mad, &hdr);
	}
	while (bends-- > 4) {
		unsigned at = take8(in);

		((uint8_t *)&mad)[at] = take8(in);
	}
	cm_rx(b->cm, (const uint8_t *)&mad, MAD_LEN, &b->path, b->now);
}

static void
rx_raw(struct bench *b, struct input *in)
{
	size_t len = take16(in) % (MAD_LEN + 8);
	const uint8_t *bytes = take_bytes(in, &len);
	uint8_t *copy = malloc(len + (len == 0));

	FUZZ_CHECK(copy != NULL);
	if (len != 0)
		memcpy(copy, bytes, len);
	cm_rx(b->cm, copy, len, &b->path, b->now);
	free(copy);
}

/* Checks every message sent. Some are delivered to the manager itself. */
static void
messages_check(struct bench *b, unsigned how)
{
	struct cm_path path;
	struct mad mad;

	while (cm_tx(b->cm, &mad, &path)) {
		FUZZ_CHECK(mad_check((const uint8_t *)&mad, MAD_LEN) == CM_DROP_none);
		FUZZ_CHECK(memcmp(&path, &b->path, sizeof(path)) == 0);
		if (how & 1 && memcmp(path.sgid, path.dgid, 16) == 0)
			cm_rx(b->cm, (const uint8_t *)&mad, MAD_LEN, &path, b->now);
		if (how & 2)
			break;
	}
}

static void
user_call(struct bench *b, struct input *in)
{
	unsigned which = take8(in) % HANDLES, what = take8(in);
	struct cm_conn *conn = b->held[which];
	struct cm_qp qp = {.qpn = 2u + take8(in), .psn = 5};

	if (conn == NULL)
		return;
	switch (what % 7) {
	case 0:
		(void)cm_accept(conn, &qp, "yes", 3, b->now);
		break;
	case 1:
		(void)cm_reject(conn, CM_REJ_CONSUMER, "no", 2, b->now);
		break;
	case 2:
		(void)cm_confirm(conn, NULL, 0, b->now);
		break;
	case 3:
		(void)cm_disconnect(conn, NULL, 0, b->now);
		break;
	case 4:
		(void)cm_established(conn, b->now);
		break;
	case 5:
		(void)cm_sidr_reply(conn, what / 7 % 6, qp.qpn, 7, NULL, 0, b->now);
		break;
	default:
		cm_release(conn, b->now);
		b->held[which] = NULL;
		break;
	}
}

static void
sidr_or_connect(struct bench *b, struct input *in)
{
	unsigned how = take8(in);
	struct cm_request r = {
		.path = b->path,
		.service_id = services[how % 3],
		.qp = {.qpn = 2u + take8(in), .path_mtu = 1 + how % 5},
	};
	struct cm_conn *conn;
	int rc = how & 0x80 ? cm_sidr_request(b->cm, &r, b, b->now, &conn)
			    : cm_connect(b->cm, &r, b, b->now, &conn);

	FUZZ_CHECK(rc == 0 || rc == -28 /* ENOSPC */);
	if (rc == 0)
		conn_note(b, conn);
}

static void
listener_toggle(struct bench *b, unsigned which)
{
	struct cm_listener **l = &b->listeners[which % 3];

	if (*l != NULL) {
		cm_unlisten(*l, b->now);
		*l = NULL;
	} else {
		listen_at(b, which % 3, NULL, 2);
	}
}

static void
step_run(struct bench *b, struct input *in)
{
	unsigned op = take8(in);

	switch (op % 8) {
	case 0:
		rx_raw(b, in);
		break;
	case 1:
	case 2:
		rx_built(b, in);
		break;
	case 3:
		messages_check(b, op / 8);
		break;
	case 4:
		b->now += (uint64_t)take8(in) << (op / 8);
		cm_run(b->cm, b->now);
		break;
	case 5:
		events_check(b);
		user_call(b, in);
		break;
	case 6:
		sidr_or_connect(b, in);
		break;
	default:
		if (op / 8 == 0)
			listener_toggle(b, take8(in));
		else if (cm_deadline(b->cm) != TIME_NEVER)
			b->now = RTE_MAX(b->now, cm_deadline(b->cm));
		cm_run(b->cm, b->now);
		break;
	}
	FUZZ_CHECK(cm_in_use(b->cm) <= CONNS);
}

static void
bench_fini(struct bench *b)
{
	events_check(b);
	for (unsigned i = 0; i < 3; i++)
		if (b->listeners[i] != NULL) {
			FUZZ_CHECK(b->listeners[i]->pending <= 3);
			cm_unlisten(b->listeners[i], b->now);
		}
	for (unsigned i = 0; i < HANDLES; i++)
		if (b->held[i] != NULL)
			cm_release(b->held[i], b->now);
	for (uint64_t end = b->now + QUIET_NS; cm_deadline(b->cm) < end;) {
		b->now = RTE_MAX(b->now + WHEEL_TICK_NS, cm_deadline(b->cm));
		cm_run(b->cm, b->now);
		messages_check(b, 0);
	}
	FUZZ_CHECK(cm_deadline(b->cm) == TIME_NEVER);
	FUZZ_CHECK(cm_in_use(b->cm) == 0);
	for (unsigned i = 0; i < CM_BUCKETS; i++)
		FUZZ_CHECK(LIST_EMPTY(&b->cm->by_id[i]) && LIST_EMPTY(&b->cm->by_qpn[i]));
	cm_destroy(b->cm);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct bench b;

	bench_init(&b, take8(&in));
	for (unsigned i = 0; i < STEPS && in.left != 0; i++)
		step_run(&b, &in);
	bench_fini(&b);
	return 0;
}
