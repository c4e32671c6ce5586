/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bed.h"
#include "port/neigh.h"

#include <cmocka.h>

#define START_NS (100 * SEC_NS)

const struct cm_qp bed_qp = {.qpn = 0x222,
	.psn = 0xb00,
	.responder_resources = 4,
	.initiator_depth = 5,
	.rnr_retry = 6};

void
bed_init(struct bed *bed, uint32_t max_conns)
{
	memset(bed, 0, sizeof(*bed));
	bed->now = START_NS;
	for (unsigned i = 0; i < 2; i++) {
		struct cm_conf conf;

		cm_conf_default(&conf);
		conf.ca_guid = 0x1111 * (i + 1);
		conf.seed = 17 + i;
		conf.max_conns = max_conns;
		assert_int_equal(cm_create(&conf, bed->now, &bed->cm[i]), 0);
	}
	assert_int_equal(
		cm_listen(bed->cm[B], SERVICE, NULL, 8, "listener", &bed->listener), 0);
}

void
bed_fini(struct bed *bed)
{
	bed_run(bed, 10 * SEC_NS);
	bed_settle(bed);
	if (bed->listener != NULL)
		cm_unlisten(bed->listener, bed->now);
	for (unsigned i = 0; i < 2; i++) {
		bed_quiet(bed, i);
		assert_int_equal(cm_in_use(bed->cm[i]), 0);
		assert_true(cm_deadline(bed->cm[i]) == TIME_NEVER);
		assert_int_equal(bed->cm[i]->stats.tx_full, 0);
		for (unsigned k = 0; k < CM_BUCKETS; k++) {
			assert_true(LIST_EMPTY(&bed->cm[i]->by_id[k]));
			assert_true(LIST_EMPTY(&bed->cm[i]->by_qpn[k]));
		}
		cm_destroy(bed->cm[i]);
	}
}

struct cm_path
bed_path(unsigned from)
{
	struct cm_path path;

	gid_parse(from == A ? "192.0.2.1" : "192.0.2.2", path.sgid, NULL);
	gid_parse(from == A ? "192.0.2.2" : "192.0.2.1", path.dgid, NULL);
	return path;
}

static void
pump(struct bed *bed)
{
	for (unsigned from = 0; from < 2; from++) {
		struct flight f = {.to = !from, .at = bed->now + WIRE_NS};
		struct cm_path path;

		while (cm_tx(bed->cm[from], &f.mad, &path)) {
			enum mad_attr attr = mad_attr_of(&f.mad);
			bool lost = bed->lose[attr] != 0;
			size_t len = strlen(bed->wire);

			snprintf(bed->wire + len, sizeof(bed->wire) - len, "%s%s%c:%s%s",
				len ? " " : "", lost ? "(" : "", "ab"[from],
				mad_attr_name(attr), lost ? ")" : "");
			bed->lose[attr] -= lost;
			memcpy(f.path.sgid, path.dgid, 16);
			memcpy(f.path.dgid, path.sgid, 16);
			assert_true(bed->flight_count < RTE_DIM(bed->flights));
			if (!lost)
				bed->flights[bed->flight_count++] = f;
		}
	}
}

static void
arrive(struct bed *bed)
{
	while (bed->flight_count != 0 && bed->flights[0].at <= bed->now) {
		struct flight f = bed->flights[0];

		memmove(bed->flights, bed->flights + 1,
			--bed->flight_count * sizeof(bed->flights[0]));
		cm_rx(bed->cm[f.to], (const uint8_t *)&f.mad, MAD_LEN, &f.path, bed->now);
		pump(bed);
	}
}

void
bed_run(struct bed *bed, uint64_t ns)
{
	uint64_t end = bed->now + ns;

	for (;;) {
		uint64_t next = end;

		pump(bed);
		if (bed->flight_count != 0)
			next = RTE_MIN(next, bed->flights[0].at);
		for (unsigned i = 0; i < 2; i++)
			next = RTE_MIN(next, cm_deadline(bed->cm[i]));
		if (next >= end)
			break;
		bed->now = RTE_MAX(bed->now + 1, next);
		for (unsigned i = 0; i < 2; i++)
			cm_run(bed->cm[i], bed->now);
		arrive(bed);
	}
	bed->now = end;
	for (unsigned i = 0; i < 2; i++)
		cm_run(bed->cm[i], bed->now);
	arrive(bed);
	pump(bed);
}

void
bed_settle(struct bed *bed)
{
	pump(bed);
	while (bed->flight_count != 0)
		bed_run(bed, WIRE_NS);
}

void
bed_wire(struct bed *bed, const char *want)
{
	assert_string_equal(bed->wire, want);
	bed->wire[0] = '\0';
}

struct cm_request
bed_request(unsigned from, uint32_t qpn)
{
	return (struct cm_request){
		.path = bed_path(from),
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
bed_event(struct bed *bed, unsigned side, enum cm_event_type type)
{
	struct cm_event event;

	if (!cm_next_event(bed->cm[side], &event))
		fail_msg("no event of %c, %d expected", "ab"[side], type);
	assert_int_equal(event.type, type);
	return event;
}

void
bed_quiet(struct bed *bed, unsigned side)
{
	struct cm_event event;

	if (cm_next_event(bed->cm[side], &event))
		fail_msg("event %d of %c", event.type, "ab"[side]);
}

struct cm_conn *
bed_connect(struct bed *bed)
{
	struct cm_request req = bed_request(A, 0x111);
	struct cm_conn *conn;

	assert_int_equal(cm_connect(bed->cm[A], &req, "a", bed->now, &conn), 0);
	return conn;
}

struct cm_conn *
bed_requested(struct bed *bed, struct cm_conn **passive)
{
	struct cm_conn *conn = bed_connect(bed);
	struct cm_event event;

	bed_settle(bed);
	event = bed_event(bed, B, CM_EVENT_REQUEST);
	*passive = event.conn;
	cm_set_user(*passive, "b");
	return conn;
}

struct cm_conn *
bed_replied(struct bed *bed, struct cm_conn **passive)
{
	struct cm_conn *conn = bed_requested(bed, passive);

	assert_int_equal(cm_accept(*passive, &bed_qp, "hi", 2, bed->now), 0);
	bed_settle(bed);
	bed_event(bed, A, CM_EVENT_REPLY);
	return conn;
}

struct cm_conn *
bed_established(struct bed *bed, struct cm_conn **passive)
{
	struct cm_conn *conn = bed_replied(bed, passive);

	assert_int_equal(cm_confirm(conn, NULL, 0, bed->now), 0);
	bed_settle(bed);
	bed_event(bed, B, CM_EVENT_ESTABLISHED);
	bed_wire(bed, "a:REQ b:REP a:RTU");
	return conn;
}

enum cm_drop
bed_give(struct bed *bed, unsigned to, const struct mad *mad)
{
	struct cm_path path = bed_path(to);
	uint8_t *exact = malloc(MAD_LEN);
	enum cm_drop why;

	memcpy(exact, mad, MAD_LEN);
	why = cm_rx(bed->cm[to], exact, MAD_LEN, &path, bed->now);
	free(exact);
	return why;
}

struct mad
bed_take(struct bed *bed, unsigned from)
{
	struct cm_path path;
	struct mad mad;

	assert_true(cm_tx(bed->cm[from], &mad, &path));
	return mad;
}
