/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with clients. The test plays the clients' side of the rings. */
#ifndef ROCADE_TEST_SWITCH_BED_H
#define ROCADE_TEST_SWITCH_BED_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mem/sge.h"
#include "switch/proto.h"
#include "switch/sw.h"
#include "wire/build.h"
#include "wire/icrc.h"
#include "wire/pkt_parse.h"
#include "wire/psn.h"
#include "../rand.h"

#include <cmocka.h>

#define BED_CLIENTS 3
#define BED_SLOTS 16
#define BED_BUFS 20
#define BED_BUF_SIZE 512
#define BED_BASE 0x1000
#define BED_QPNS 16
#define BED_QPS 4 /* per client */

struct bed_client {
	struct sw_client *client;
	struct region region;
	struct ring_prod tx;
	struct ring_cons rx;
	void *mem;
	uint32_t qpn;
	unsigned woken;
};

struct bed {
	struct sw *sw;
	struct sw_device device;
	struct bed_client c[BED_CLIENTS];
	uint64_t now;
	uint8_t addr[16];  /* the switch's */
	uint8_t other[16]; /* not of this switch */
};

static inline void
bed_wake(void *owner)
{
	((struct bed_client *)owner)->woken++;
}

static inline void
bed_request(struct bed *b, struct bed_client *c, struct sw_request *req,
	struct sw_reply *reply)
{
	req->magic = SW_PROTO_MAGIC;
	req->version = SW_PROTO_VERSION;
	assert_true(sw_serve(b->sw, &b->device, c != NULL ? c->client : NULL, req,
		sizeof(*req), reply));
}

static inline uint32_t
bed_qpn(struct bed *b, struct bed_client *c)
{
	struct sw_request req = {.type = SW_QPN_TAKE};
	struct sw_reply reply;

	bed_request(b, c, &req, &reply);
	assert_int_equal(reply.error, 0);
	return reply.qpn;
}

static inline int
bed_peer(struct bed *b, struct bed_client *c, uint32_t qpn, const uint8_t dgid[16],
	uint32_t dest_qpn)
{
	struct sw_request req = {.type = SW_PEER_SET, .qpn = qpn, .dest_qpn = dest_qpn};
	struct sw_reply reply;

	memcpy(req.sgid, b->addr, 16);
	memcpy(req.dgid, dgid, 16);
	bed_request(b, c, &req, &reply);
	return reply.error;
}

static inline void
bed_attach(struct bed *b, struct bed_client *c)
{
	const struct region_geom *geom = &b->sw->conf.limits.geom;

	c->mem = aligned_alloc(4096, region_size(geom));
	memset(c->mem, 0, region_size(geom));
	assert_int_equal(sw_client_add(b->sw, geom, c->mem, c, &c->client), 0);
	region_init(&c->region, c->mem, geom);
	ring_prod_init(&c->tx, &c->region.head->tx, c->region.tx_desc, geom->tx_slots);
	ring_cons_init(&c->rx, &c->region.head->rx, c->region.rx_desc, geom->rx_slots);
	c->qpn = bed_qpn(b, c);
}

static inline void
bed_open(struct bed *b)
{
	struct sw_conf conf = {.mtu = 4180,
		.qpn_base = BED_BASE,
		.qpn_count = BED_QPNS,
		.max_clients = BED_CLIENTS,
		.limits = {.qps = BED_QPS,
			.geom = {.tx_slots = BED_SLOTS,
				.rx_slots = BED_SLOTS,
				.tx_bufs = BED_BUFS,
				.buf_size = BED_BUF_SIZE}}};
	uint8_t prefix;

	memset(b, 0, sizeof(*b));
	memcpy(conf.net.mac, "\x02\x00\x00\x00\x00\x07", 6);
	assert_int_equal(gid_parse("192.0.2.1/24", b->addr, &prefix), 0);
	assert_int_equal(gid_parse("192.0.2.9", b->other, NULL), 0);
	memcpy(conf.net.addr[0].gid, b->addr, 16);
	conf.net.addr[0].prefix_len = prefix;
	conf.net.addr_count = 1;
	assert_int_equal(sw_create(&conf, bed_wake, &b->sw), 0);
	snprintf(b->device.name, sizeof(b->device.name), "rocade0");
	for (unsigned i = 0; i < BED_CLIENTS; i++)
		bed_attach(b, &b->c[i]);
	/* Clients 0 and 1 are connected to each other. */
	assert_int_equal(bed_peer(b, &b->c[0], b->c[0].qpn, b->addr, b->c[1].qpn), 0);
	assert_int_equal(bed_peer(b, &b->c[1], b->c[1].qpn, b->addr, b->c[0].qpn), 0);
}

static inline void
bed_detach(struct bed_client *c)
{
	if (c->client != NULL)
		sw_client_remove(c->client);
	c->client = NULL;
	free(c->mem);
	c->mem = NULL;
}

/* Proves that all QPNs and groups are free again. */
static inline void
bed_close(struct bed *b)
{
	for (unsigned i = 0; i < BED_CLIENTS; i++)
		bed_detach(&b->c[i]);
	assert_int_equal(b->sw->qpns.free_tail - b->sw->qpns.free_head, BED_QPNS);
	for (unsigned i = 0; i < SW_GROUPS; i++)
		assert_int_equal(b->sw->groups[i].count, 0);
	sw_destroy(b->sw);
}

/* Fields of a frame. */
struct bed_frame {
	uint8_t opcode;
	uint32_t dest_qpn;
	uint32_t deth_qpn;
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint32_t payload;
};

/* Builds a RoCEv2 frame at to; returns its length. */
static inline uint16_t
bed_build(uint8_t *to, const struct bed_frame *f)
{
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	struct bth_fields bth = {
		.dest_qpn = f->dest_qpn, .pkey = PKEY_DEFAULT, .opcode = f->opcode};
	struct pkt pkt = {.data = to, .room = BED_BUF_SIZE};
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
static inline struct bed_frame
bed_good(const struct bed *b)
{
	struct bed_frame f = {
		.opcode = OPCODE_RC_SEND_ONLY, .dest_qpn = b->c[1].qpn, .payload = 100};

	memcpy(f.sgid, b->addr, 16);
	memcpy(f.dgid, b->addr, 16);
	return f;
}

static inline void
bed_post(struct bed_client *c, uint32_t buf, uint32_t qpn, uint16_t len)
{
	struct ring_desc desc = {.buf = buf, .qpn = qpn, .len = len};

	assert_true(ring_prod_refresh(&c->tx));
	assert_true(ring_room(&c->tx) != 0);
	ring_put(&c->tx, &desc);
	ring_publish(&c->tx);
}

static inline void
bed_send(struct bed *b, struct bed_client *c, uint32_t qpn, const struct bed_frame *f)
{
	bed_post(c, 0, qpn, bed_build(region_tx_buf(&c->region, 0), f));
	sw_run(b->sw, b->now);
}

/* Takes the next received packet and compares it with want, unless that is NULL. Returns
 * whether there was one. */
static inline bool
bed_got(struct bed_client *c, const struct bed_frame *want)
{
	uint8_t frame[BED_BUF_SIZE];
	struct ring_desc desc;
	const uint8_t *got;

	assert_true(ring_cons_refresh(&c->rx));
	if (ring_count(&c->rx) == 0)
		return false;
	desc = ring_peek(&c->rx, 0);
	got = region_rx_buf(&c->region, c->rx.cons & c->rx.mask);
	if (want != NULL) {
		assert_int_equal(desc.len, bed_build(frame, want));
		/* The Ethernet addresses are the switch's. */
		assert_memory_equal(got, c->client->sw->conf.net.mac, 6);
		assert_memory_equal(got + 6, c->client->sw->conf.net.mac, 6);
		assert_memory_equal(got + 12, frame + 12, desc.len - 12u);
	}
	ring_release(&c->rx, 1);
	return true;
}

#endif
