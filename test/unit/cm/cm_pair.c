/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "cm_pair.h"
#include "port/net.h"

#define START_NS (100 * NS_PER_SEC)

const struct cm_qp passive_qp = {.qpn = 0x222,
	.psn = 0xb00,
	.responder_resources = 4,
	.initiator_depth = 5,
	.rnr_retry = 6};

void
cm_pair_init(struct cm_pair *pair, uint32_t max_conns)
{
	memset(pair, 0, sizeof(*pair));
	pair->now = START_NS;
	for (unsigned i = 0; i < 2; i++) {
		struct cm_conf conf;

		cm_conf_default(&conf);
		conf.ca_guid = 0x1111 * (i + 1);
		conf.random.word[0] = 17 + i;
		conf.max_conns = max_conns;
		assert_int_equal(cm_create(&conf, pair->now, &pair->cm[i]), 0);
	}
	assert_int_equal(
		cm_listen(pair->cm[B], SERVICE, NULL, 8, "listener", &pair->listener), 0);
}

void
cm_pair_fini(struct cm_pair *pair)
{
	cm_pair_advance(pair, 10 * NS_PER_SEC);
	cm_pair_drain(pair);
	if (pair->listener != NULL)
		cm_unlisten(pair->listener, pair->now);
	for (unsigned i = 0; i < 2; i++) {
		expect_no_event(pair, i);
		assert_int_equal(cm_in_use(pair->cm[i]), 0);
		assert_true(cm_deadline(pair->cm[i]) == TIME_NEVER);
		assert_int_equal(pair->cm[i]->stats.tx_full, 0);
		assert_true(TAILQ_EMPTY(&pair->cm[i]->ending));
		assert_int_equal(pair->cm[i]->half_open.count, 0);
		for (unsigned k = 0; k < CM_BUCKETS; k++) {
			assert_int_equal(pair->cm[i]->half_open_by_source[k].count, 0);
			assert_true(LIST_EMPTY(&pair->cm[i]->by_id[k]));
			assert_true(LIST_EMPTY(&pair->cm[i]->by_qpn[k]));
		}
		cm_destroy(pair->cm[i]);
	}
}

struct cm_path
path_from(unsigned from)
{
	struct cm_path path = {.local = false};

	gid_parse(from == A ? "192.0.2.1" : "192.0.2.2", path.sgid, NULL);
	gid_parse(from == A ? "192.0.2.2" : "192.0.2.1", path.dgid, NULL);
	return path;
}

static void
send_pending(struct cm_pair *pair)
{
	for (unsigned from = 0; from < 2; from++) {
		struct flight f = {.to = !from, .at = pair->now + WIRE_NS};
		struct cm_path path;

		while (cm_tx(pair->cm[from], &f.mad, &path)) {
			enum mad_attr attr = mad_attr_of(&f.mad);
			bool lost = pair->lose[attr] != 0;
			size_t len = strlen(pair->wire);

			snprintf(pair->wire + len, sizeof(pair->wire) - len,
				"%s%s%c:%s%s", len ? " " : "", lost ? "(" : "",
				"ab"[from], mad_attr_name(attr), lost ? ")" : "");
			pair->lose[attr] -= lost;
			memcpy(f.path.sgid, path.dgid, 16);
			memcpy(f.path.dgid, path.sgid, 16);
			assert_true(pair->flight_count < RTE_DIM(pair->flights));
			if (!lost)
				pair->flights[pair->flight_count++] = f;
		}
	}
}

static void
deliver_due(struct cm_pair *pair)
{
	while (pair->flight_count != 0 && pair->flights[0].at <= pair->now) {
		struct flight f = pair->flights[0];

		memmove(pair->flights, pair->flights + 1,
			--pair->flight_count * sizeof(pair->flights[0]));
		cm_rx(pair->cm[f.to], (const uint8_t *)&f.mad, MAD_LEN, &f.path,
			pair->now);
		send_pending(pair);
	}
}

void
cm_pair_advance(struct cm_pair *pair, uint64_t ns)
{
	uint64_t end = pair->now + ns;

	for (;;) {
		uint64_t next = end;

		send_pending(pair);
		if (pair->flight_count != 0)
			next = RTE_MIN(next, pair->flights[0].at);
		for (unsigned i = 0; i < 2; i++)
			next = RTE_MIN(next, cm_deadline(pair->cm[i]));
		if (next >= end)
			break;
		pair->now = RTE_MAX(pair->now + 1, next);
		for (unsigned i = 0; i < 2; i++)
			cm_run(pair->cm[i], pair->now);
		deliver_due(pair);
	}
	pair->now = end;
	for (unsigned i = 0; i < 2; i++)
		cm_run(pair->cm[i], pair->now);
	deliver_due(pair);
	send_pending(pair);
}

void
cm_pair_drain(struct cm_pair *pair)
{
	send_pending(pair);
	while (pair->flight_count != 0)
		cm_pair_advance(pair, WIRE_NS);
}

void
expect_wire(struct cm_pair *pair, const char *want)
{
	assert_string_equal(pair->wire, want);
	pair->wire[0] = '\0';
}

struct cm_request
request_from(unsigned from, uint32_t qpn)
{
	return (struct cm_request){
		.path = path_from(from),
		.service_id = SERVICE,
		.sport = 40000,
		.qp = {.qpn = qpn,
			.psn = 0xa00,
			.responder_resources = 2,
			.initiator_depth = 3,
			.rnr_retry = 5,
			.retry_count = 7,
			.path_mtu = 3},
		.private = "hello",
		.private_len = 5,
	};
}

struct cm_event
expect_event(struct cm_pair *pair, unsigned side, enum cm_event_type type)
{
	struct cm_event event;

	if (!cm_next_event(pair->cm[side], &event))
		fail_msg("no event of %c, %d expected", "ab"[side], type);
	assert_int_equal(event.type, type);
	return event;
}

void
expect_no_event(struct cm_pair *pair, unsigned side)
{
	struct cm_event event;

	if (cm_next_event(pair->cm[side], &event))
		fail_msg("event %d of %c", event.type, "ab"[side]);
}

struct cm_conn *
active_connect(struct cm_pair *pair)
{
	struct cm_request req = request_from(A, 0x111);
	struct cm_conn *conn;

	assert_int_equal(cm_connect(pair->cm[A], &req, "a", pair->now, &conn), 0);
	return conn;
}

struct cm_conn *
reach_req_rcvd(struct cm_pair *pair, struct cm_conn **passive)
{
	struct cm_conn *conn = active_connect(pair);
	struct cm_event event;

	cm_pair_drain(pair);
	event = expect_event(pair, B, CM_EVENT_REQUEST);
	*passive = event.conn;
	cm_set_user(*passive, "b");
	return conn;
}

struct cm_conn *
reach_rep_rcvd(struct cm_pair *pair, struct cm_conn **passive)
{
	struct cm_conn *conn = reach_req_rcvd(pair, passive);

	assert_int_equal(cm_accept(*passive, &passive_qp, "hi", 2, pair->now), 0);
	cm_pair_drain(pair);
	expect_event(pair, A, CM_EVENT_REPLY);
	return conn;
}

struct cm_conn *
reach_established(struct cm_pair *pair, struct cm_conn **passive)
{
	struct cm_conn *conn = reach_rep_rcvd(pair, passive);

	assert_int_equal(cm_confirm(conn, NULL, 0, pair->now), 0);
	cm_pair_drain(pair);
	expect_event(pair, B, CM_EVENT_ESTABLISHED);
	expect_wire(pair, "a:REQ b:REP a:RTU");
	return conn;
}

enum cm_drop
mad_deliver(struct cm_pair *pair, unsigned to, const struct mad *mad)
{
	struct cm_path path = path_from(to);
	uint8_t *exact = malloc(MAD_LEN);
	enum cm_drop why;

	memcpy(exact, mad, MAD_LEN);
	why = cm_rx(pair->cm[to], exact, MAD_LEN, &path, pair->now);
	free(exact);
	return why;
}

struct mad
mad_take(struct cm_pair *pair, unsigned from)
{
	struct cm_path path;
	struct mad mad;

	assert_true(cm_tx(pair->cm[from], &mad, &path));
	return mad;
}
