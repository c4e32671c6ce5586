/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections a second of lib/cm: two managers in one process, whose messages arrive at once.
 *
 *   cm_rate OPEN COUNT
 *
 * Establishes OPEN connections that stay, then COUNT one after another, which end again:
 * REQ, REP, RTU, DREQ, DREP. Prints how many of these are made in a second of CPU time, of which
 * both ends take their part.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cm/cm_core.h"
#include "port/gid.h"

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "cm_rate: line %d: not true: %s\n", __LINE__,    \
				#condition);                                             \
			exit(1);                                                         \
		}                                                                        \
	} while (0)
#define SERVICE 1
#define QPNS 0x800000u

static struct cm *cm[2];
static uint64_t now = NS_PER_SEC;

/* A message of one side arrives at the other. */
static void
carry(unsigned from, enum mad_attr attr)
{
	struct cm_path path, back = {.local = false};
	struct mad mad;

	CHECK(cm_tx(cm[from], &mad, &path));
	CHECK(mad_attr_of(&mad) == attr);
	memcpy(back.sgid, path.dgid, 16);
	memcpy(back.dgid, path.sgid, 16);
	CHECK(cm_rx(cm[!from], (const uint8_t *)&mad, sizeof(mad), &back, now) ==
		CM_DROP_none);
}

static struct cm_conn *
event_of(unsigned side, enum cm_event_type type)
{
	struct cm_event event;

	CHECK(cm_next_event(cm[side], &event) && event.type == type);
	return event.conn;
}

static void
connect_one(uint32_t i, struct cm_conn *conns[2])
{
	struct cm_request req = {.service_id = SERVICE,
		.sport = 40000,
		.qp = {.qpn = 2 + i % QPNS, .path_mtu = 3}};
	struct cm_qp qp = {.qpn = 2 + i % QPNS};

	CHECK(gid_parse("192.0.2.1", req.path.sgid, NULL) == 0);
	CHECK(gid_parse("192.0.2.2", req.path.dgid, NULL) == 0);
	CHECK(cm_connect(cm[0], &req, NULL, now, &conns[0]) == 0);
	carry(0, MAD_REQ);
	conns[1] = event_of(1, CM_EVENT_REQUEST);
	CHECK(cm_accept(conns[1], &qp, NULL, 0, now) == 0);
	carry(1, MAD_REP);
	CHECK(event_of(0, CM_EVENT_REPLY) == conns[0]);
	CHECK(cm_confirm(conns[0], NULL, 0, now) == 0);
	carry(0, MAD_RTU);
	CHECK(event_of(1, CM_EVENT_ESTABLISHED) == conns[1]);
}

static void
disconnect_one(struct cm_conn *conns[2])
{
	CHECK(cm_disconnect(conns[0], NULL, 0, now) == 0);
	carry(0, MAD_DREQ);
	CHECK(event_of(1, CM_EVENT_DISCONNECTED) == conns[1]);
	CHECK(cm_disconnect(conns[1], NULL, 0, now) == 0);
	carry(1, MAD_DREP);
	CHECK(event_of(0, CM_EVENT_DISCONNECTED) == conns[0]);
	for (unsigned i = 0; i < 2; i++)
		cm_release(conns[i], now);
}

static double
seconds(void)
{
	struct timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

int
main(int argc, char **argv)
{
	uint32_t open = argc == 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	uint32_t count = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	struct cm_listener *listener;
	struct cm_conn *conns[2];
	struct cm_conf conf;
	double start;

	if (count == 0) {
		fprintf(stderr, "Usage: cm_rate OPEN COUNT\n");
		return 2;
	}
	cm_conf_default(&conf);
	conf.max_conns = CM_CONNS_MAX;
	for (unsigned i = 0; i < 2; i++) {
		conf.ca_guid = i + 1;
		conf.random.word[0] = i + 1;
		CHECK(cm_create(&conf, now, &cm[i]) == 0);
	}
	CHECK(cm_listen(cm[1], SERVICE, NULL, 8, NULL, &listener) == 0);
	for (uint32_t i = 0; i < open; i++)
		connect_one(i, conns);
	start = seconds();
	/* Time passes, so that time waits end: 20 us for each connection. */
	for (uint32_t i = 0; i < count; i++) {
		now += 20 * NS_PER_US;
		for (unsigned side = 0; side < 2; side++)
			cm_run(cm[side], now);
		connect_one(open + i, conns);
		disconnect_one(conns);
	}
	printf("%u connections open, %u made and ended: %.0f a second\n", open, count,
		count / (seconds() - start));
	CHECK(cm_stats_of(cm[1])->established == (uint64_t)open + count);
	for (unsigned i = 0; i < 2; i++)
		cm_destroy(cm[i]);
	return 0;
}
