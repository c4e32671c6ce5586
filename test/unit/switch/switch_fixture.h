/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with clients. The test plays the clients' side of the rings. */
#ifndef ROCADE_TEST_SWITCH_FIXTURE_H
#define ROCADE_TEST_SWITCH_FIXTURE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "case.h"
#include "mem/sge.h"
#include "switch/proto.h"
#include "switch/sw_client.h"
#include "switch/sw_group.h"
#include "switch/sw_wait.h"
#include "wire/build.h"
#include "wire/icrc.h"
#include "wire/pkt_parse.h"
#include "wire/psn.h"
#include "../rand.h"

#include "../../lib/pages.h"

#define CLIENTS 3
#define CLIENT_SLOTS 16
#define CLIENT_BUFS 20
#define CLIENT_BUF_SIZE 512
#define FIRST_QPN 0x1000
#define QPN_COUNT 16
#define CLIENT_QPS 4 /* per client */

struct fixture_client {
	struct sw_client *client;
	struct region region;
	struct ring_prod tx;
	struct ring_cons rx;
	uint32_t daemon_woken;
	uint32_t uid;
	uint32_t qpn;
	unsigned woken;
};

struct switch_fixture {
	struct sw *sw;
	struct sw_device device;
	struct fixture_client c[CLIENTS];
	uint64_t now;
	uint8_t addr[16];  /* the switch's */
	uint8_t other[16]; /* not of this switch */
};

static inline void
client_wake(void *owner, const uint32_t *futex)
{
	if (futex != NULL)
		futex_wake(futex, true);
	else
		((struct fixture_client *)owner)->woken++;
}

static inline void
client_request(struct switch_fixture *b, struct fixture_client *c, struct sw_request *req,
	struct sw_reply *reply)
{
	req->magic = SW_PROTO_MAGIC;
	req->version = SW_PROTO_VERSION;
	assert_true(sw_serve(b->sw, &b->device, c != NULL ? c->client : NULL, req,
		sizeof(*req), reply));
}

static inline uint32_t
client_take_qpn(struct switch_fixture *b, struct fixture_client *c)
{
	struct sw_request req = {.type = SW_QPN_TAKE};
	struct sw_reply reply;

	client_request(b, c, &req, &reply);
	assert_int_equal(reply.error, 0);
	return reply.qpn;
}

static inline int
client_set_peer(struct switch_fixture *b, struct fixture_client *c, uint32_t qpn,
	const uint8_t dgid[16], uint32_t dest_qpn)
{
	struct sw_request req = {.type = SW_PEER_SET, .qpn = qpn, .dest_qpn = dest_qpn};
	struct sw_reply reply;

	memcpy(req.sgid, b->addr, 16);
	memcpy(req.dgid, dgid, 16);
	client_request(b, c, &req, &reply);
	return reply.error;
}

/* The user that pays for all clients; 0: each user pays for its own. */
static uint32_t fixture_payer;

static inline void
client_attach(struct switch_fixture *b, struct fixture_client *c)
{
	const struct region_geom *geom = &b->sw->conf.limits.geom;

	region_init(&c->region, pages_make(region_client_size(geom)),
		pages_make(region_daemon_size(geom)), geom);
	assert_int_equal(
		sw_client_add(b->sw, &c->region, c->uid,
			fixture_payer != 0 ? fixture_payer : c->uid, c, &c->client),
		0);
	region_client_rings(&c->region, &c->tx, &c->rx);
	c->qpn = client_take_qpn(b, c);
}

/* All threads run: clients 0 and 2 belong to thread 0, client 1 to thread 1 if there is one. */
static inline void
fixture_open_threads(
	struct switch_fixture *b, const uint32_t uids[CLIENTS], uint32_t threads)
{
	struct sw_conf conf = {.mtu = 4184,
		.threads = threads,
		.qpn_base = FIRST_QPN,
		.qpn_count = QPN_COUNT,
		.max_clients = CLIENTS,
		.limits = {.qps = CLIENT_QPS,
			.geom = {.tx_slots = CLIENT_SLOTS,
				.rx_slots = CLIENT_SLOTS,
				.tx_bufs = CLIENT_BUFS,
				.buf_size = CLIENT_BUF_SIZE}}};
	uint8_t prefix;

	memset(b, 0, sizeof(*b));
	memcpy(conf.net.mac, "\x02\x00\x00\x00\x00\x07", 6);
	assert_int_equal(gid_parse("192.0.2.1/24", b->addr, &prefix), 0);
	assert_int_equal(gid_parse("192.0.2.9", b->other, NULL), 0);
	memcpy(conf.net.addr[0].gid, b->addr, 16);
	conf.net.addr[0].prefix_len = prefix;
	conf.net.addr_count = 1;
	assert_int_equal(sw_create(&conf, client_wake, &b->sw), 0);
	for (uint32_t i = 0; i < b->sw->thread_count; i++)
		b->sw->threads[i]->running = true;
	snprintf(b->device.name, sizeof(b->device.name), "rocade0");
	for (unsigned i = 0; i < CLIENTS; i++) {
		b->c[i].uid = uids[i];
		client_attach(b, &b->c[i]);
	}
	/* Clients 0 and 1 are connected to each other. */
	assert_int_equal(
		client_set_peer(b, &b->c[0], b->c[0].qpn, b->addr, b->c[1].qpn), 0);
	assert_int_equal(
		client_set_peer(b, &b->c[1], b->c[1].qpn, b->addr, b->c[0].qpn), 0);
}

static inline void
fixture_open_users(struct switch_fixture *b, const uint32_t uids[CLIENTS])
{
	fixture_open_threads(b, uids, 1);
}

/* All clients belong to one user. */
static inline void
fixture_open(struct switch_fixture *b)
{
	fixture_open_users(b, (const uint32_t[CLIENTS]){0});
}

static inline void
client_detach(struct fixture_client *c)
{
	if (c->client != NULL)
		sw_client_remove(c->client);
	c->client = NULL;
	free(c->region.client);
	free(c->region.daemon);
	c->region.client = NULL;
	c->region.daemon = NULL;
}

/* Proves that all QPNs and groups are free again, and that no packet waits. */
static inline void
fixture_close(struct switch_fixture *b)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		client_detach(&b->c[i]);
	sw_ended_free(b->sw);
	assert_int_equal(qpns_free_count(&b->sw->qpns), QPN_COUNT);
	for (unsigned i = 0; i < SW_GROUPS; i++)
		assert_int_equal(b->sw->groups[i].count, 0);
	for (uint32_t i = 0; i < b->sw->thread_count; i++)
		assert_int_equal(b->sw->threads[i]->wait->packets.used, 0);
	sw_destroy(b->sw);
}

/* Fields of a frame. */
struct frame_spec {
	uint8_t opcode;
	uint32_t dest_qpn;
	uint32_t deth_qpn;
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint32_t payload;
	uint32_t psn;
};

/* Builds a RoCEv2 frame at to; returns its length. */
static inline uint16_t
frame_spec_build(uint8_t *to, const struct frame_spec *f)
{
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	struct bth_fields bth = {.dest_qpn = f->dest_qpn,
		.psn = f->psn,
		.pkey = PKEY_DEFAULT,
		.opcode = f->opcode};
	struct pkt pkt = {.data = to, .room = CLIENT_BUF_SIZE};
	struct path_hdr hdr;
	uint8_t *ext;

	memcpy(addr.src_gid, f->sgid, 16);
	memcpy(addr.dst_gid, f->dgid, 16);
	path_hdr_init(&hdr, &addr);
	ext = frame_begin(&hdr, &pkt, &bth, f->payload);
	memset(ext, 0, op_rows[f->opcode].ext_len);
	if (op_rows[f->opcode].service == SERVICE_UD)
		be24_put(((struct deth *)ext)->src_qpn, f->deth_qpn);
	for (uint32_t i = 0; i < f->payload; i++)
		frame_payload(&hdr, &pkt, f->opcode)[i] = (uint8_t)(i * 7);
	frame_end(&hdr, &pkt, f->payload);
	return pkt.len;
}

/* A frame from client 0 to client 1. */
static inline struct frame_spec
frame_spec_valid(const struct switch_fixture *b)
{
	struct frame_spec f = {
		.opcode = OPCODE_RC_SEND_ONLY, .dest_qpn = b->c[1].qpn, .payload = 100};

	memcpy(f.sgid, b->addr, 16);
	memcpy(f.dgid, b->addr, 16);
	return f;
}

static inline void
client_post(struct fixture_client *c, uint32_t buf, uint32_t qpn, uint16_t len)
{
	struct ring_desc desc = {.buf = buf, .qpn = qpn, .len = len};

	assert_true(ring_prod_refresh(&c->tx));
	assert_true(ring_room(&c->tx) != 0);
	ring_put(&c->tx, &desc);
	ring_publish(&c->tx);
}

static inline void
client_send(struct switch_fixture *b, struct fixture_client *c, uint32_t qpn,
	const struct frame_spec *f)
{
	client_post(c, 0, qpn, frame_spec_build(region_tx_buf(&c->region, 0), f));
	sw_run(b->sw, b->now);
}

/* Takes the next received packet and compares it with want, unless that is NULL. Returns
 * whether there was one. */
static inline bool
client_received(struct fixture_client *c, const struct frame_spec *want)
{
	uint8_t frame[CLIENT_BUF_SIZE];
	struct ring_desc desc;
	const uint8_t *got;

	assert_true(ring_cons_refresh(&c->rx));
	if (ring_count(&c->rx) == 0)
		return false;
	desc = ring_peek(&c->rx, 0);
	got = region_rx_buf(&c->region, c->rx.cons & c->rx.mask);
	if (want != NULL) {
		assert_int_equal(desc.len, frame_spec_build(frame, want));
		/* The Ethernet addresses are the switch's. */
		assert_memory_equal(got, c->client->sw->conf.net.mac, 6);
		assert_memory_equal(got + 6, c->client->sw->conf.net.mac, 6);
		assert_memory_equal(got + 12, frame + 12, desc.len - 12u);
	}
	ring_release(&c->rx, 1);
	return true;
}

#endif
