/* SPDX-License-Identifier: BSD-3-Clause */
/* A port on virtual time, for the tests of group memberships: the reports that it sends,
 * and the queries that it receives. */
#ifndef ROCADE_TEST_NET_GROUP_FIXTURE_H
#define ROCADE_TEST_NET_GROUP_FIXTURE_H

#include <netinet/in.h>

#include "port_fixture.h"

#define ETH 14
#define IP4 24 /* with the router alert */
#define IP6 48 /* with the hop-by-hop header */

static struct net *net;
static uint64_t now;

static inline void
net_start(void)
{
	net = net_of(1, 0);
	now = T0;
}

/* Returns the next report up to and including end, and sets its time; data is NULL if
 * there is none. */
static inline struct pkt
next_report(uint64_t end)
{
	while (net_deadline(net) <= end) {
		struct pkt frame;

		now = RTE_MAX(now, net_deadline(net));
		frame = net_send(net, now);
		if (frame.data != NULL && is_report(&frame))
			return frame;
		free(frame.data);
		if (net_deadline(net) <= now)
			now += WHEEL_TICK_NS;
	}
	now = end;
	return (struct pkt){.data = NULL};
}

static inline void
expect_none(uint64_t ns)
{
	struct pkt frame = next_report(now + ns);

	assert_null(frame.data);
}

/* Expects an IGMP message of this type to dst about the group; a v3 report with this
 * record type. */
static inline void
expect_igmp(uint64_t within, unsigned type, const char *dst, const char *group,
	unsigned record)
{
	struct pkt f = next_report(now + within);
	const uint8_t *ip = f.data + ETH, *msg = ip + IP4;
	uint8_t mac[6];

	assert_non_null(f.data);
	gid_multicast_mac(gid_of(dst), mac);
	assert_memory_equal(f.data, mac, 6);
	assert_int_equal(ip[0], 0x46);
	assert_int_equal(ip[8], 1); /* TTL */
	assert_int_equal(ip[9], IPPROTO_IGMP);
	assert_memory_equal(ip + 12, gid_of("192.0.2.1") + 12, 4);
	assert_memory_equal(ip + 16, gid_of(dst) + 12, 4);
	assert_int_equal(ip[20] << 8 | ip[21], 0x9404); /* router alert */
	assert_int_equal(sum_fold(sum_add(0, ip, IP4)), 0);
	assert_int_equal(f.len, ETH + IP4 + (record != 0 ? 16 : 8));
	assert_int_equal(ip[2] << 8 | ip[3], f.len - ETH);
	assert_int_equal(sum_fold(sum_add(0, msg, f.len - ETH - IP4)), 0);
	assert_int_equal(msg[0], type);
	if (record != 0) {
		assert_int_equal(msg[6] << 8 | msg[7], 1);
		assert_int_equal(msg[8], record);
		assert_memory_equal(msg + 12, gid_of(group) + 12, 4);
	} else {
		assert_memory_equal(msg + 4, gid_of(group) + 12, 4);
	}
	free(f.data);
}

static inline void
expect_mld(uint64_t within, unsigned type, const char *dst, const char *group,
	unsigned record)
{
	struct pkt f = next_report(now + within);
	const uint8_t *ip = f.data + ETH, *msg = ip + IP6;
	uint8_t own[16], mac[6];
	uint32_t len;

	assert_non_null(f.data);
	gid_multicast_mac(gid_of(dst), mac);
	assert_memory_equal(f.data, mac, 6);
	gid_link_local(net_conf(net)->mac, own);
	assert_int_equal(ip[7], 1); /* hop limit */
	assert_memory_equal(ip + 8, own, 16);
	assert_memory_equal(ip + 24, gid_of(dst), 16);
	assert_int_equal(ip[40], IPPROTO_ICMPV6);
	assert_int_equal(ip[42] << 8 | ip[43], 0x0502); /* router alert */
	len = f.len - ETH - IP6;
	assert_int_equal(len, record != 0 ? 28 : 24);
	assert_int_equal(ip[4] << 8 | ip[5], len + 8);
	assert_int_equal(sum_fold(sum_add(sum_icmp6(ip + 8, ip + 24, len), msg, len)), 0);
	assert_int_equal(msg[0], type);
	if (record != 0) {
		assert_int_equal(msg[6] << 8 | msg[7], 1);
		assert_int_equal(msg[8], record);
		assert_memory_equal(msg + 12, gid_of(group), 16);
	} else {
		assert_memory_equal(msg + 8, gid_of(group), 16);
	}
	free(f.data);
}

/* ---- Queries ---- */

/* Returns why it was dropped. */
static inline enum drop_reason
frame_receive(const uint8_t *bytes, size_t len)
{
	struct pkt in = frame_exact(bytes, len), room = frame_empty(FRAME_ROOM);
	enum drop_reason why;

	assert_false(net_rx(net, &in, &room, &why, now));
	free(room.data);
	free(in.data);
	return why;
}

static inline void
router_ether(uint8_t *frame, size_t room, const char *dst, unsigned type)
{
	memset(frame, 0, room);
	gid_multicast_mac(gid_of(dst), frame);
	frame[6] = 0x02;
	frame[11] = 0xFE;
	frame[12] = (uint8_t)(type >> 8);
	frame[13] = (uint8_t)type;
}

/* An IGMP frame with this source and TTL. */
static inline size_t
igmp_frame_from(uint8_t frame[64], const char *src, unsigned ttl, unsigned type,
	unsigned code, const char *dst, const char *group, size_t len)
{
	uint8_t *ip = frame + ETH, *msg = ip + IP4;
	uint16_t sum;

	router_ether(frame, 64, dst, 0x0800);
	ip[0] = 0x46;
	ip[3] = (uint8_t)(IP4 + len);
	ip[8] = (uint8_t)ttl;
	ip[9] = IPPROTO_IGMP;
	memcpy(ip + 12, gid_of(src) + 12, 4);
	memcpy(ip + 16, gid_of(dst) + 12, 4);
	ip[20] = 0x94;
	ip[21] = 4;
	sum = sum_fold(sum_add(0, ip, IP4));
	memcpy(ip + 10, &sum, 2);
	msg[0] = (uint8_t)type;
	msg[1] = (uint8_t)code;
	if (group != NULL)
		memcpy(msg + 4, gid_of(group) + 12, 4);
	sum = sum_fold(sum_add(0, msg, (uint32_t)len));
	memcpy(msg + 2, &sum, 2);
	return ETH + IP4 + len;
}

/* An IGMP frame from the router 192.0.2.254. */
static inline size_t
igmp_frame(uint8_t frame[64], unsigned type, unsigned code, const char *dst,
	const char *group, size_t len)
{
	return igmp_frame_from(frame, "192.0.2.254", 1, type, code, dst, group, len);
}

static inline enum drop_reason
igmp_query(unsigned code, const char *group, size_t len)
{
	uint8_t frame[64];

	return frame_receive(
		frame, igmp_frame(frame, 0x11, code, group != NULL ? group : "224.0.0.1",
			       group, len));
}

static inline size_t
mld_frame(uint8_t frame[128], unsigned type, unsigned code, const char *dst,
	const char *group, size_t len)
{
	uint8_t *ip = frame + ETH, *msg = ip + IP6;
	uint16_t sum;

	router_ether(frame, 128, dst, 0x86DD);
	ip[0] = 0x60;
	ip[5] = (uint8_t)(8 + len);
	ip[7] = 1;
	memcpy(ip + 8, gid_of("fe80::fe"), 16);
	memcpy(ip + 24, gid_of(dst), 16);
	ip[40] = IPPROTO_ICMPV6;
	ip[42] = 5;
	ip[43] = 2;
	msg[0] = (uint8_t)type;
	msg[4] = (uint8_t)(code >> 8);
	msg[5] = (uint8_t)code;
	if (group != NULL)
		memcpy(msg + 8, gid_of(group), 16);
	sum = sum_fold(
		sum_add(sum_icmp6(ip + 8, ip + 24, (uint32_t)len), msg, (uint32_t)len));
	memcpy(msg + 2, &sum, 2);
	return ETH + IP6 + len;
}

static inline enum drop_reason
mld_query(unsigned code, const char *group, size_t len)
{
	uint8_t frame[128];

	return frame_receive(
		frame, mld_frame(frame, 130, code, group != NULL ? group : "ff02::1",
			       group, len));
}

#endif
