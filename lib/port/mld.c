/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6 group membership: MLDv2 (RFC 3810), and v1 for an older querier (RFC 2710). */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "port/net_proto.h"

#define QUERY 130
#define REPORT_V1 131
#define DONE_V1 132
#define REPORT_V2 143
/* record types of a v2 report: as those of IGMPv3, see igmp.c */
#define IS_EXCLUDE 2
#define TO_INCLUDE 3
#define TO_EXCLUDE 4
#define QUERY_V2_LEN 28
#define HOP_LIMIT 1

/* Hop-by-hop options header with the router alert option (RFC 2711), padded. */
static const uint8_t alert[8] = {IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0};

struct mld_v1 {
	uint8_t type;
	uint8_t code;
	uint16_t checksum;
	uint16_t max_ms;
	uint16_t reserved;
	uint8_t group[16];
};
static_assert(sizeof(struct mld_v1) == 24, "RFC 2710 3");

struct mld_v2 {
	uint8_t type;
	uint8_t reserved;
	uint16_t checksum;
	uint16_t reserved2;
	uint16_t records;
	uint8_t record_type;
	uint8_t aux_len;
	uint16_t sources;
	uint8_t group[16];
};
static_assert(sizeof(struct mld_v2) == 28, "RFC 3810 5.2, one record");

/* Returns the port's link-local address (RFC 3810 5.2.13), NULL if it has none. */
static const uint8_t *
mld_source(const struct net_conf *conf)
{
	for (unsigned i = 0; i < conf->addr_count; i++) {
		if (gid_is_link_local(conf->addr[i].gid))
			return conf->addr[i].gid;
	}
	return NULL;
}

static bool
mld_frame_write(const struct net_conf *conf, const uint8_t dst[16], const void *msg,
	uint32_t len, struct pkt *frame)
{
	const uint8_t *src = mld_source(conf);
	struct rte_ipv6_hdr *ip;
	uint8_t mac[6], *at;
	uint16_t sum;

	if (src == NULL)
		return false;
	gid_multicast_mac(dst, mac);
	ip = (struct rte_ipv6_hdr *)frame_begin_l2(conf, frame, mac, RTE_ETHER_TYPE_IPV6,
		(uint32_t)(sizeof(*ip) + sizeof(alert)) + len);
	if (ip == NULL)
		return false;
	ip->vtc_flow = rte_cpu_to_be_32(UINT32_C(6) << 28);
	ip->payload_len = rte_cpu_to_be_16((uint16_t)(sizeof(alert) + len));
	ip->proto = IPPROTO_HOPOPTS;
	ip->hop_limits = HOP_LIMIT;
	memcpy(&ip->src_addr, src, 16);
	memcpy(&ip->dst_addr, dst, 16);
	at = (uint8_t *)(ip + 1);
	memcpy(at, alert, sizeof(alert));
	at += sizeof(alert);
	memcpy(at, msg, len);
	sum = sum_fold(sum_add(sum_icmp6(src, dst, len), at, len));
	memcpy(at + 2, &sum, 2);
	return true;
}

bool
mld_write(const struct net_conf *conf, const uint8_t gid[16], enum group_report_type what,
	uint8_t version, struct pkt *frame)
{
	static const uint8_t all_routers[16] = {0xff, 0x02, [15] = 2},
			     all_v2[16] = {0xff, 0x02, [15] = 0x16};
	static const uint8_t types[] = {[GROUP_CURRENT_STATE] = IS_EXCLUDE,
		[GROUP_JOINS] = TO_EXCLUDE,
		[GROUP_LEAVES] = TO_INCLUDE};
	struct mld_v1 v1 = {.type = what == GROUP_LEAVES ? DONE_V1 : REPORT_V1};
	struct mld_v2 v2 = {
		.type = REPORT_V2, .records = RTE_BE16(1), .record_type = types[what]};

	memcpy(v1.group, gid, 16);
	memcpy(v2.group, gid, 16);
	if (version == 0)
		return mld_frame_write(conf, all_v2, &v2, sizeof(v2), frame);
	return mld_frame_write(
		conf, what == GROUP_LEAVES ? all_routers : gid, &v1, sizeof(v1), frame);
}

/* Decodes the Maximum Response Code. In v2, values above 32767 have a mantissa and an
 * exponent (RFC 3810 5.1.3). */
static uint64_t
mld_max_response_ns(uint16_t code, bool v2)
{
	uint64_t ms = code;

	if (v2 && code >= 0x8000)
		ms = (uint64_t)((code & 0xfff) | 0x1000) << ((code >> 12 & 7) + 3);
	return ms * NS_PER_MS;
}

static enum drop_reason
mld_query_rx(struct net *net, const struct mld_v1 *msg, uint32_t len, uint64_t now)
{
	bool v2 = len >= QUERY_V2_LEN;
	bool general = gid_is_zero(msg->group);

	if (!general && (gid_is_ipv4(msg->group) || !gid_is_multicast(msg->group)))
		return DROP_membership;
	return group_query_rx(net, general ? NULL : msg->group, false, v2 ? 0 : 1,
		mld_max_response_ns(rte_be_to_cpu_16(msg->max_ms), v2), now);
}

enum drop_reason
mld_rx(struct net *net, const struct rx_frame *frame, uint64_t now)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)frame->l3;
	const uint8_t *hop = (const uint8_t *)(ip + 1);
	const struct mld_v1 *msg;
	uint32_t len, head;

	if (frame->l3_len < sizeof(*ip) + sizeof(alert) || frame->l3[0] >> 4 != 6)
		return DROP_membership;
	len = rte_be_to_cpu_16(ip->payload_len);
	head = 8 + hop[1] * 8u;
	if (len > frame->l3_len - sizeof(*ip) || len < head + sizeof(*msg) ||
		hop[0] != IPPROTO_ICMPV6)
		return DROP_membership;
	len -= head;
	msg = (const struct mld_v1 *)(hop + head);
	/* Only from a neighbour on this link, with the right checksum (RFC 3810 6.2). */
	if (ip->hop_limits != HOP_LIMIT ||
		!gid_is_link_local((const uint8_t *)&ip->src_addr) ||
		sum_fold(sum_add(
			sum_icmp6(&ip->src_addr, &ip->dst_addr, len), msg, len)) != 0)
		return DROP_membership;
	if (msg->type == QUERY)
		return mld_query_rx(net, msg, len, now);
	if (msg->type != REPORT_V1)
		return DROP_none; /* for routers */
	/* Members send a report to its group (RFC 2710 8), where the other members get it. */
	if (gid_is_ipv4(msg->group) || memcmp(&ip->dst_addr, msg->group, 16) != 0)
		return DROP_membership;
	group_report_rx(net, msg->group, now);
	return DROP_none;
}
