/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <netinet/in.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "ethdev/frame_owner.h"
#include "wire/hdr.h"

#define VLAN_VID_MASK 0x0FFF
#define IPV4_FRAGMENT (RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)
#define IPV4_NO_OPTIONS 0x45
#define ICMP_LEN 8
#define ICMP_ECHO_REQUEST 8
#define ICMP6_ECHO_REQUEST 128
#define ICMP6_SOLICITATION 135
#define ICMP6_ADVERTISEMENT 136
#define ICMP6_TARGET_END                                                                 \
	24 /* bytes of a solicitation or advertisement up to its target's end */

/* A packet behind the Ethernet header. */
struct l3 {
	const uint8_t *data;
	uint32_t len; /* to the end of the frame */
};

static void
frame_addr_add(struct frame_addrs *out, unsigned i, const uint8_t gid[16])
{
	memcpy(out->gid[i], gid, 16);
	if (gid_is_ipv4(gid))
		memcpy(&out->ipv4[out->ipv4_count++], gid + 12, 4);
}

void
frame_addrs_fill(struct frame_addrs *out, const struct net_conf *conf)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->mac, conf->mac, 6);
	out->vlan = conf->vlan;
	out->other_stack = conf->other_stack;
	out->count = (uint8_t)conf->addr_count;
	for (unsigned i = 0; i < conf->addr_count; i++)
		frame_addr_add(out, i, conf->addr[i].gid);
	gid_link_local(conf->mac, out->link_local);
}

static bool
is_rocades(const struct frame_addrs *a, const uint8_t gid[16])
{
	for (unsigned i = 0; i < a->count; i++) {
		if (memcmp(a->gid[i], gid, 16) == 0)
			return true;
	}
	return false;
}

static inline bool
is_rocades_ipv4(const struct frame_addrs *a, uint32_t addr)
{
	uint8_t gid[16];

	gid_from_ipv4(&addr, gid);
	return is_rocades(a, gid);
}

/* A message for an address of Rocade that is no RoCEv2 packet. */
static enum frame_owner
message_owner(const struct frame_addrs *a, const uint8_t gid[16])
{
	if (a->other_stack || !is_rocades(a, gid))
		return FRAME_APP;
	return memcmp(gid, a->link_local, 16) == 0 ? FRAME_BOTH : FRAME_ROCADE;
}

/* A neighbour's message about itself: a unicast answer to Rocade, or an announcement to all. */
static enum frame_owner
neighbour_owner(const struct frame_addrs *a, const uint8_t to[16], bool to_all)
{
	if (to_all)
		return FRAME_BOTH;
	if (!is_rocades(a, to))
		return FRAME_APP;
	return a->other_stack ? FRAME_BOTH : message_owner(a, to);
}

static enum frame_owner
arp_owner(const struct frame_addrs *a, const struct l3 *l3)
{
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)l3->data;
	uint8_t target[16];
	bool announcement;

	if (l3->len < sizeof(*arp))
		return FRAME_APP;
	gid_from_ipv4(&arp->arp_data.arp_tip, target);
	announcement = memcmp(&arp->arp_data.arp_sip, &arp->arp_data.arp_tip, 4) == 0;
	if (announcement || arp->arp_opcode == rte_cpu_to_be_16(RTE_ARP_OP_REPLY))
		return neighbour_owner(a, target, announcement);
	return message_owner(a, target);
}

static inline bool
is_roce(const uint8_t *l4, uint32_t len)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)l4;

	return len >= sizeof(*udp) && udp->dst_port == rte_cpu_to_be_16(ROCE_UDP_PORT);
}

static inline enum frame_owner
roce_owner(bool group, bool ours)
{
	if (group)
		return FRAME_GROUP;
	return ours ? FRAME_ROCADE : FRAME_APP;
}

/* Only echo requests that Rocade answers: other messages are for a protocol of the application,
 * which may have the address, too. */
static enum frame_owner
icmp4_owner(const struct frame_addrs *a, const struct l3 *l3)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)l3->data;
	uint8_t gid[16];

	if (ip->version_ihl != IPV4_NO_OPTIONS || l3->len < sizeof(*ip) + ICMP_LEN ||
		(ip->fragment_offset & rte_cpu_to_be_16(IPV4_FRAGMENT)) != 0 ||
		*(const uint8_t *)(ip + 1) != ICMP_ECHO_REQUEST)
		return FRAME_APP;
	gid_from_ipv4(&ip->dst_addr, gid);
	return message_owner(a, gid);
}

static enum frame_owner
ipv4_owner(const struct frame_addrs *a, const struct l3 *l3)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)l3->data;
	uint32_t header;
	bool group;

	if (l3->len < sizeof(*ip))
		return FRAME_APP;
	header = (ip->version_ihl & 0xFu) * 4;
	group = (ip->dst_addr & rte_cpu_to_be_32(0xF0000000)) ==
		rte_cpu_to_be_32(0xE0000000);
	if (ip->next_proto_id == IPPROTO_UDP && header >= sizeof(*ip) &&
		header < l3->len &&
		(ip->fragment_offset & rte_cpu_to_be_16(RTE_IPV4_HDR_OFFSET_MASK)) == 0 &&
		is_roce(l3->data + header, l3->len - header))
		return roce_owner(group, is_rocades_ipv4(a, ip->dst_addr));
	if (ip->next_proto_id == IPPROTO_IGMP)
		return a->other_stack ? FRAME_APP : FRAME_BOTH;
	return ip->next_proto_id == IPPROTO_ICMP ? icmp4_owner(a, l3) : FRAME_APP;
}

static enum frame_owner
icmp6_owner(
	const struct frame_addrs *a, const uint8_t *dst, const uint8_t *msg, uint32_t len)
{
	bool neighbour;

	if (len == 0)
		return FRAME_APP;
	neighbour = msg[0] == ICMP6_SOLICITATION || msg[0] == ICMP6_ADVERTISEMENT;
	if (neighbour && len < ICMP6_TARGET_END)
		return FRAME_APP;
	if (msg[0] == ICMP6_ADVERTISEMENT)
		return neighbour_owner(a, dst, gid_is_multicast(dst));
	if (neighbour)
		return message_owner(a, msg + ICMP6_TARGET_END - 16);
	return msg[0] == ICMP6_ECHO_REQUEST ? message_owner(a, dst) : FRAME_APP;
}

static enum frame_owner
ipv6_owner(const struct frame_addrs *a, const struct l3 *l3)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)l3->data;
	const uint8_t *l4 = l3->data + sizeof(*ip);
	const uint8_t *dst = (const uint8_t *)&ip->dst_addr;
	uint32_t len;

	if (l3->len < sizeof(*ip))
		return FRAME_APP;
	len = l3->len - (uint32_t)sizeof(*ip);
	switch (ip->proto) {
	case IPPROTO_UDP:
		return is_roce(l4, len)
			       ? roce_owner(gid_is_multicast(dst), is_rocades(a, dst))
			       : FRAME_APP;
	case IPPROTO_ICMPV6:
		return icmp6_owner(a, dst, l4, len);
	case IPPROTO_HOPOPTS: /* MLD */
		return !a->other_stack && len >= 8 && l4[0] == IPPROTO_ICMPV6 ? FRAME_BOTH
									      : FRAME_APP;
	default:
		return FRAME_APP;
	}
}

static enum frame_owner
any_length_owner(const struct frame_addrs *a, const uint8_t *data, uint32_t len, int tci)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)data;
	struct l3 l3 = {data + sizeof(*eth), len - (uint32_t)sizeof(*eth)};
	uint16_t type;

	if (len < sizeof(*eth) ||
		((data[0] & 1) == 0 && memcmp(data, a->mac, sizeof(a->mac)) != 0))
		return FRAME_APP;
	type = eth->ether_type;
	if (tci < 0 && type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN)) {
		const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)l3.data;

		if (l3.len < sizeof(*tag))
			return FRAME_APP;
		tci = rte_be_to_cpu_16(tag->vlan_tci);
		type = tag->eth_proto;
		l3.data += sizeof(*tag);
		l3.len -= (uint32_t)sizeof(*tag);
	}
	/* A priority tag (VLAN 0) counts as none. */
	if ((tci < 0 ? 0 : tci & VLAN_VID_MASK) != a->vlan)
		return FRAME_APP;
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return ipv4_owner(a, &l3);
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6))
		return ipv6_owner(a, &l3);
	return type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP) ? arp_owner(a, &l3)
							    : FRAME_APP;
}

enum frame_owner
frame_owner(const struct frame_addrs *a, const uint8_t *data, uint32_t len, int tci)
{
	enum frame_owner owner = any_length_owner(a, data, len, tci);

	/* Other hosts can make Rocade copy short frames only. */
	return unlikely(owner == FRAME_BOTH && len > FRAME_MESSAGE_MAX) ? FRAME_APP
									: owner;
}
