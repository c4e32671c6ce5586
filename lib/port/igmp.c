/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4 group membership: IGMPv3 (RFC 3376), and v1 and v2 for older queriers (RFC 1112,
 * RFC 2236). */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "port/net_proto.h"

#define QUERY 0x11
#define REPORT_V1 0x12
#define REPORT_V2 0x16
#define LEAVE_V2 0x17
#define REPORT_V3 0x22
/* record types of a v3 report; no sources are listed, so EXCLUDE means all sources */
#define IS_EXCLUDE 2
#define TO_INCLUDE 3
#define TO_EXCLUDE 4
#define TOS 0xC0 /* internetwork control (RFC 3376 4) */
#define V1_MAX_NS (10 * NS_PER_SEC)
#define UNIT_NS (100 * NS_PER_MS)

struct igmp {
	uint8_t type;
	uint8_t code;
	uint16_t checksum;
	uint8_t group[4]; /* v3 report: two reserved bytes, then the number of records */
};

struct igmp_record {
	uint8_t type;
	uint8_t aux_len;
	uint16_t sources;
	uint8_t group[4];
};

/* An IPv4 header with the router alert option. */
struct alert {
	struct rte_ipv4_hdr ip;
	uint8_t option[4];
};
static_assert(sizeof(struct alert) == 24, "RFC 2113");

/* Returns the port's first IPv4 address, or 0.0.0.0 if it has none (RFC 3376 4.2.13). */
static void
igmp_source(const struct net_conf *conf, void *out)
{
	memset(out, 0, 4);
	for (unsigned i = 0; i < conf->addr_count; i++) {
		if (gid_is_ipv4(conf->addr[i].gid)) {
			memcpy(out, conf->addr[i].gid + 12, 4);
			return;
		}
	}
}

/* Writes the headers of a frame to dst. Returns the place of its message of len bytes,
 * zeroed, or NULL if it does not fit. */
static uint8_t *
igmp_begin(const struct net_conf *conf, const uint8_t dst[4], uint32_t len,
	struct pkt *frame)
{
	static const uint8_t router_alert[4] = {0x94, 4, 0, 0};
	uint8_t gid[16], mac[6];
	struct alert *head;

	gid_from_ipv4(dst, gid);
	gid_multicast_mac(gid, mac);
	head = (struct alert *)frame_begin_l2(
		conf, frame, mac, RTE_ETHER_TYPE_IPV4, (uint32_t)sizeof(*head) + len);
	if (head == NULL)
		return NULL;
	memset(head, 0, sizeof(*head) + len);
	head->ip.version_ihl = 0x46;
	head->ip.type_of_service = TOS;
	head->ip.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*head) + len));
	head->ip.time_to_live = 1;
	head->ip.next_proto_id = IPPROTO_IGMP;
	igmp_source(conf, (uint8_t *)head + offsetof(struct rte_ipv4_hdr, src_addr));
	memcpy(&head->ip.dst_addr, dst, 4);
	memcpy(head->option, router_alert, 4);
	head->ip.hdr_checksum = sum_fold(sum_add(0, head, sizeof(*head)));
	return (uint8_t *)(head + 1);
}

bool
igmp_write(const struct net_conf *conf, const uint8_t gid[16],
	enum group_report_type what, uint8_t version, struct pkt *frame)
{
	static const uint8_t all_routers[4] = {224, 0, 0, 2}, all_v3[4] = {224, 0, 0, 22};
	static const uint8_t types[] = {[GROUP_CURRENT_STATE] = IS_EXCLUDE,
		[GROUP_JOINS] = TO_EXCLUDE,
		[GROUP_LEAVES] = TO_INCLUDE};
	const uint8_t *group = gid + 12;
	bool leaves = what == GROUP_LEAVES;
	uint32_t len = sizeof(struct igmp);
	struct igmp *msg;

	if (version == 1 && leaves)
		return false;
	if (version == 0)
		len += (uint32_t)sizeof(struct igmp_record);
	msg = (struct igmp *)igmp_begin(conf,
		version == 0 ? all_v3
		: leaves     ? all_routers
			     : group,
		len, frame);
	if (msg == NULL)
		return false;
	if (version == 0) {
		struct igmp_record *record = (struct igmp_record *)(msg + 1);

		msg->type = REPORT_V3;
		msg->group[3] = 1;
		record->type = types[what];
		memcpy(record->group, group, 4);
	} else {
		msg->type = version == 1 ? REPORT_V1 : leaves ? LEAVE_V2 : REPORT_V2;
		memcpy(msg->group, group, 4);
	}
	msg->checksum = sum_fold(sum_add(0, msg, len));
	return true;
}

/* Decodes the Max Resp Code. In v3, values above 127 have a mantissa and an exponent (RFC
 * 3376 4.1.1). */
static uint64_t
igmp_max_response_ns(uint8_t code, bool v3)
{
	if (!v3 || code < 128)
		return code * UNIT_NS;
	return ((uint64_t)((code & 0xf) | 0x10) << ((code >> 4 & 7) + 3)) * UNIT_NS;
}

static bool
igmp_is_general(const struct igmp *msg)
{
	static const uint8_t none[4];

	return memcmp(msg->group, none, 4) == 0;
}

/* Routers forward no packet with TTL 1, but a host beyond them can choose the TTL that is 1 here. Routers
 * forward no packet to 224.0.0.1, and few have a route to other groups. But they have one to our addresses:
 * a query to those (RFC 3376 4.1.12) counts only if it comes from our subnet. */
static bool
igmp_query_is_local(
	const struct net *net, const struct rte_ipv4_hdr *ip, const struct igmp *msg)
{
	static const uint8_t all_systems[4] = {224, 0, 0, 1};
	const uint8_t *group = igmp_is_general(msg) ? all_systems : msg->group;
	uint8_t src[16], dst[16];

	gid_from_ipv4(&ip->src_addr, src);
	gid_from_ipv4(&ip->dst_addr, dst);
	return memcmp(&ip->dst_addr, group, 4) == 0 ||
	       (net_is_ours(&net->conf, dst) && net_is_onlink(&net->conf, src));
}

static enum drop_reason
igmp_query_rx(struct net *net, const struct igmp *msg, uint32_t len, uint64_t now)
{
	bool v3 = len >= 12, general = igmp_is_general(msg);
	uint8_t gid[16], version = v3 ? 0 : msg->code == 0 ? 1 : 2;

	gid_from_ipv4(msg->group, gid);
	if (!general && !gid_is_multicast(gid))
		return DROP_membership;
	return group_query_rx(net, general ? NULL : gid, true, version,
		version == 1 ? V1_MAX_NS : igmp_max_response_ns(msg->code, v3), now);
}

enum drop_reason
igmp_rx(struct net *net, const struct rx_frame *frame, uint64_t now)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)frame->l3;
	const struct igmp *msg;
	uint32_t head, total;
	uint8_t gid[16];

	if (frame->l3_len < sizeof(*ip))
		return DROP_membership;
	head = (ip->version_ihl & 0xf) * 4u;
	total = rte_be_to_cpu_16(ip->total_length);
	if (ip->version_ihl >> 4 != 4 || head < sizeof(*ip) || total > frame->l3_len ||
		total < head + sizeof(*msg) || ip->time_to_live != 1 ||
		sum_fold(sum_add(0, ip, head)) != 0)
		return DROP_membership;
	msg = (const struct igmp *)(frame->l3 + head);
	if (sum_fold(sum_add(0, msg, total - head)) != 0)
		return DROP_membership;
	if (msg->type == QUERY)
		return igmp_query_is_local(net, ip, msg)
			       ? igmp_query_rx(net, msg, total - head, now)
			       : DROP_membership;
	if (msg->type != REPORT_V1 && msg->type != REPORT_V2)
		return DROP_none; /* for routers */
	/* Members send a report to its group (RFC 2236 9), where the other members get it. */
	if (memcmp(&ip->dst_addr, msg->group, 4) != 0)
		return DROP_membership;
	gid_from_ipv4(msg->group, gid);
	group_report_rx(net, gid, now);
	return DROP_none;
}
