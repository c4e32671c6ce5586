/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of lib/port: hosts, and frames in heap blocks of exactly their
 * size, so that the address sanitizer reports a read beyond the end. */
#ifndef ROCADE_TEST_PORT_FIXTURE_H
#define ROCADE_TEST_PORT_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "port/net_proto.h"

#define FRAME_ROOM 2048

static inline const uint8_t *
gid_of(const char *text)
{
	static _Thread_local uint8_t gids[8][16];
	static _Thread_local unsigned turn;
	uint8_t *gid = gids[turn++ % 8];

	assert_int_equal(gid_parse(text, gid, NULL), 0);
	return gid;
}

/* Host number n of 2001:db8::/64. */
static inline const uint8_t *
host_gid(uint32_t n)
{
	static uint8_t gid[16];

	memcpy(gid, gid_of("2001:db8::1:0:0"), 16);
	for (unsigned i = 0; i < 4; i++)
		gid[12 + i] = (uint8_t)(n >> (24 - 8 * i));
	return gid;
}

static inline const uint8_t *
host_mac(uint32_t n)
{
	static uint8_t mac[6];

	memcpy(mac,
		(uint8_t[]){2, 1, 0, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n},
		6);
	return mac;
}

static inline void
conf_add(struct net_conf *conf, const char *text)
{
	struct net_addr *addr = &conf->addr[conf->addr_count++];

	assert_int_equal(gid_parse(text, addr->gid, &addr->prefix_len), 0);
}

/* Host n: 192.0.2.n/24, 2001:db8::n/64, its link-local address, and gateways n = 254. */
static inline struct net_conf
conf_of(uint8_t n, uint16_t vlan)
{
	struct net_conf conf = {.mac = {0x02, 0, 0, 0, 0, n}, .vlan = vlan};
	struct net_addr local = {.prefix_len = 64};

	conf_add(&conf, "192.0.2.0/24");
	conf.addr[0].gid[15] = n;
	conf_add(&conf, "2001:db8::/64");
	conf.addr[1].gid[15] = n;
	gid_link_local(conf.mac, local.gid);
	conf.addr[conf.addr_count++] = local;
	memcpy(conf.gateway4, gid_of("192.0.2.254"), 16);
	memcpy(conf.gateway6, gid_of("2001:db8::fe"), 16);
	return conf;
}

static inline struct net *
net_of_conf(const struct net_conf *conf)
{
	struct net *net = NULL;

	assert_int_equal(net_create(conf, &net), 0);
	return net;
}

/* Sends the announcements, so that a test sees none. */
static inline void
net_announcements_take(struct net *net)
{
	struct pkt pkt = {.data = malloc(FRAME_ROOM), .room = FRAME_ROOM};

	for (unsigned i = 0; i < NET_ANNOUNCEMENTS; i++)
		while (net_tx(net, &pkt, 1, i * (NET_ANNOUNCE_NS + WHEEL_TICK_NS)) > 0)
			;
	assert_int_equal(net_deadline(net), TIME_NEVER);
	free(pkt.data);
}

/* Tests start after the announcements of net_announcements_take(). */
#define T0 (10 * NS_PER_SEC)

static inline struct net *
net_of(uint8_t n, uint16_t vlan)
{
	struct net_conf conf = conf_of(n, vlan);
	struct net *net = net_of_conf(&conf);

	net_announcements_take(net);
	return net;
}

/* A received frame on the heap, exactly len bytes long. */
static inline struct pkt
frame_exact(const void *bytes, size_t len)
{
	struct pkt pkt = {.data = malloc(len > 0 ? len : 1),
		.len = (uint16_t)len,
		.room = (uint16_t)len};

	assert_non_null(pkt.data);
	if (len > 0)
		memcpy(pkt.data, bytes, len);
	return pkt;
}

static inline struct pkt
frame_empty(size_t room)
{
	return (struct pkt){.data = malloc(room > 0 ? room : 1), .room = (uint16_t)room};
}

/* Returns the reply to a frame, with an exact length, for the caller to free; data is
 * NULL if there is none. */
static inline struct pkt
net_ask(struct net *net, const struct pkt *frame, uint64_t now)
{
	struct pkt in = frame_exact(frame->data, frame->len);
	struct pkt room = frame_empty(FRAME_ROOM), out = {.data = NULL};
	enum drop_reason why;

	in.flags = frame->flags;
	if (net_rx(net, &in, &room, &why, now))
		out = frame_exact(room.data, room.len);
	free(room.data);
	free(in.data);
	return out;
}

/* Returns the next frame to send, as net_ask(). */
static inline struct pkt
net_send(struct net *net, uint64_t now)
{
	struct pkt room = frame_empty(FRAME_ROOM), out = {.data = NULL};

	if (net_tx(net, &room, 1, now) == 1)
		out = frame_exact(room.data, room.len);
	free(room.data);
	return out;
}

/* A membership report: IGMP, or MLD behind its hop-by-hop header. */
static inline bool
is_report(const struct pkt *frame)
{
	unsigned l3 = frame->data[12] == 0x81 && frame->data[13] == 0 ? 18 : 14;
	bool ipv6 = frame->data[l3 - 2] == 0x86;

	return ipv6 ? frame->data[l3 + 6] == 0
		    : frame->data[l3 - 1] == 0 && frame->data[l3 + 9] == 2;
}

/* As net_send(), but skips membership reports. */
static inline struct pkt
net_send_no_report(struct net *net, uint64_t now)
{
	struct pkt frame = net_send(net, now);

	while (frame.data != NULL && is_report(&frame)) {
		free(frame.data);
		frame = net_send(net, now);
	}
	return frame;
}

static inline bool
mac_is(const uint8_t mac[6], uint8_t n)
{
	const uint8_t want[6] = {0x02, 0, 0, 0, 0, n};

	return memcmp(mac, want, 6) == 0;
}

struct neigh_count {
	unsigned all, reachable, failed, incomplete;
};

static inline void
neigh_count_fn(const struct neigh_info *info, void *arg)
{
	struct neigh_count *count = arg;

	count->all++;
	count->reachable += strcmp(info->state, "reachable") == 0;
	count->failed += strcmp(info->state, "failed") == 0;
	count->incomplete += strcmp(info->state, "incomplete") == 0;
}

static inline struct neigh_count
neigh_count(struct net *net, uint64_t now)
{
	struct neigh_count count = {0};

	net_each(net, now, neigh_count_fn, &count);
	return count;
}

/* Whether net knows gid. Unlike a lookup for sending, this does not request
 * resolution. */
static inline bool
net_knows(struct net *net, const char *text)
{
	const struct neigh *e = neigh_find(net, gid_of(text));

	return e != NULL && e->state == NEIGH_REACHABLE;
}

/* Whether a packet is answered. Frees both. */
static inline bool
answered(struct net *net, struct pkt pkt)
{
	struct pkt out = net_ask(net, &pkt, T0);

	free(out.data);
	free(pkt.data);
	return out.data != NULL;
}

#endif
