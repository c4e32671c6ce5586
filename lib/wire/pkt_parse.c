/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/icrc.h"
#include "wire/pkt_parse.h"

#define IPV4_VERSION_IHL 0x45 /* no options */
#define IPV4_FRAGMENT (RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK)
#define VLAN_VID_MASK 0x0FFF

/* The L4 header and its data. */
struct l4 {
	const uint8_t *data;
	uint32_t len; /* by the IP header, within the frame */
};

/* The one's complement sum of the header is 0xFFFF (RFC 1071): 0 modulo 0xFFFF, and not
 * 0, because the version is not. Byte order does not matter. The modulo compiles to a
 * multiplication. */
static inline bool
ipv4_sum_ok(const struct rte_ipv4_hdr *ip)
{
	uint64_t pairs[2], sum;
	uint32_t last;

	__builtin_memcpy(pairs, ip, sizeof(pairs));
	__builtin_memcpy(&last, (const uint8_t *)ip + sizeof(pairs), sizeof(last));
	sum = (uint32_t)pairs[0] + (pairs[0] >> 32) + (uint32_t)pairs[1] +
	      (pairs[1] >> 32);
	return (sum + last) % 0xFFFF == 0;
}

/* IGMP is the one protocol accepted with IP options: the router alert (RFC 2236 2). */
static bool
ipv4_is_igmp(const struct rte_ipv4_hdr *ip)
{
	return ip->version_ihl >> 4 == 4 && ip->version_ihl >= IPV4_VERSION_IHL &&
	       ip->next_proto_id == IPPROTO_IGMP;
}

/* MLD has the router alert in a hop-by-hop header before ICMPv6 (RFC 2710 3). */
static bool
ipv6_is_mld(const struct rte_ipv6_hdr *ip, uint32_t len)
{
	return ip->proto == IPPROTO_HOPOPTS && len >= 8 &&
	       *(const uint8_t *)(ip + 1) == IPPROTO_ICMPV6;
}

static inline unsigned
parse_ipv4(const uint8_t *data, uint32_t room, uint32_t flags, struct pkt_view *view,
	struct l4 *l4)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)data;
	uint32_t total;

	if (unlikely(room < sizeof(*ip)))
		return DROP_runt;
	total = rte_be_to_cpu_16(ip->total_length);
	if (unlikely(ip->version_ihl != IPV4_VERSION_IHL || total < sizeof(*ip)))
		return ipv4_is_igmp(ip) ? PARSE_OTHER : DROP_ip_header;
	if (unlikely(total > room))
		return DROP_runt;
	if (unlikely(flags & PKT_RX_IPV4_CKSUM_BAD))
		return DROP_ip_checksum;
	if (unlikely(!(flags & PKT_RX_IPV4_CKSUM_OK) && !ipv4_sum_ok(ip)))
		return DROP_ip_checksum;
	if (unlikely(ip->fragment_offset & rte_cpu_to_be_16(IPV4_FRAGMENT)))
		return DROP_fragment;
	if (unlikely(ip->next_proto_id != IPPROTO_UDP))
		return ip->next_proto_id == IPPROTO_ICMP ||
				       ip->next_proto_id == IPPROTO_IGMP
			       ? PARSE_OTHER
			       : DROP_ip_header;
	view->ip_version = 4;
	view->tclass = ip->type_of_service;
	l4->data = data + sizeof(*ip);
	l4->len = total - (uint32_t)sizeof(*ip);
	return DROP_none;
}

/* No IPv6 packet may have an IPv4-mapped address (RFC 6890 2.2.3). In a GID it stands for
 * an IPv4 address: such a packet would be taken for IPv4 although no IPv4 filter of the
 * network has seen it. A datagram to an IPv6 group may come from one: a UD QP whose only GID
 * is that of an IPv4 address sends to any MGID, and no packet to a group matches a
 * connection. */
static inline bool
ipv6_has_mapped(const struct rte_ipv6_hdr *ip)
{
	const uint8_t *src = (const uint8_t *)&ip->src_addr;
	const uint8_t *dst = (const uint8_t *)&ip->dst_addr;
	uint64_t src_high, dst_high;

	__builtin_memcpy(&src_high, src, sizeof(src_high));
	__builtin_memcpy(&dst_high, dst, sizeof(dst_high));
	if (likely(src_high != 0 && dst_high != 0))
		return false;
	return gid_is_mapped(dst) || (gid_is_mapped(src) && dst[0] != IPV6_MULTICAST);
}

static inline unsigned
parse_ipv6(const uint8_t *data, uint32_t room, struct pkt_view *view, struct l4 *l4)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)data;
	uint32_t vtc_flow;

	if (unlikely(room < sizeof(*ip)))
		return DROP_runt;
	vtc_flow = rte_be_to_cpu_32(ip->vtc_flow);
	if (unlikely(vtc_flow >> 28 != 6))
		return DROP_ip_header;
	l4->len = rte_be_to_cpu_16(ip->payload_len);
	if (unlikely(l4->len > room - sizeof(*ip)))
		return DROP_runt;
	if (unlikely(ipv6_has_mapped(ip)))
		return DROP_mapped_address;
	if (unlikely(ip->proto != IPPROTO_UDP)) {
		if (ip->proto == IPPROTO_ICMPV6 || ipv6_is_mld(ip, l4->len))
			return PARSE_OTHER;
		return ip->proto == IPPROTO_FRAGMENT ? DROP_fragment : DROP_ip_header;
	}
	view->ip_version = 6;
	view->tclass = (uint8_t)(vtc_flow >> 20);
	l4->data = data + sizeof(*ip);
	return DROP_none;
}

static inline void
parse_bth(const struct bth *bth, struct pkt_view *view)
{
	uint32_t words[3];

	/* Three loads instead of twelve. */
	__builtin_memcpy(words, bth, sizeof(words));
	words[0] = rte_be_to_cpu_32(words[0]);
	words[2] = rte_be_to_cpu_32(words[2]);
	view->bth = bth;
	view->payload_placed = false;
	view->payload_apart = false;
	view->opcode = (uint8_t)(words[0] >> 24);
	view->solicited = (words[0] & (uint32_t)BTH_SE << 16) != 0;
	view->pad = (uint8_t)(words[0] >> (16 + BTH_PAD_SHIFT) & 3);
	view->pkey = (uint16_t)words[0];
	view->dest_qpn = rte_be_to_cpu_32(words[1]) & 0xFFFFFF;
	view->ack_req = (words[2] & (uint32_t)BTH_ACKREQ << 24) != 0;
	view->psn = words[2] & 0xFFFFFF;
}

/* UDP and its data: row 1 of docs/protocol.md 8.2 (IBA 9.6.1, C9-5). */
static inline unsigned
parse_udp(const struct l4 *l4, struct pkt_view *view)
{
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)l4->data;
	const struct bth *bth = (const struct bth *)(l4->data + sizeof(*udp));
	uint32_t len, fixed;

	if (unlikely(l4->len < sizeof(*udp)))
		return DROP_udp_length;
	if (unlikely(udp->dst_port != rte_cpu_to_be_16(ROCE_UDP_PORT)))
		return DROP_udp_port;
	len = rte_be_to_cpu_16(udp->dgram_len);
	if (unlikely(len < sizeof(*udp) || len > l4->len))
		return DROP_udp_length;
	/* With its pad the payload is a multiple of 4 bytes, and so is each header. */
	len -= (uint32_t)sizeof(*udp);
	if (unlikely(len < sizeof(*bth) + ICRC_LEN || len % 4 != 0))
		return DROP_length;
	parse_bth(bth, view);
	if (unlikely(bth->flags & BTH_TVER_MASK))
		return DROP_tver;
	view->op = &op_rows[view->opcode];
	if (unlikely(view->op->kind == OP_UNKNOWN))
		return DROP_opcode;
	fixed = (uint32_t)sizeof(*bth) + view->op->ext_len + view->pad + ICRC_LEN;
	if (unlikely(len < fixed))
		return DROP_length;
	view->ext = (const uint8_t *)(bth + 1);
	view->payload = view->ext + view->op->ext_len;
	view->payload_len = len - fixed;
	return DROP_none;
}

/* Finds the EtherType, in network order, and the offset of the L3 header. Returns
 * DROP_none, DROP_vlan or DROP_runt. */
static inline unsigned
parse_ether(const struct pkt *pkt, uint16_t vlan, uint16_t *type, uint32_t *off)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)pkt->data;
	const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)(eth + 1);
	uint16_t vid;

	if (unlikely(pkt->len < sizeof(*eth)))
		return DROP_runt;
	*type = eth->ether_type;
	*off = sizeof(*eth);
	if (likely(*type != rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN)))
		return likely(vlan == 0) ? DROP_none : DROP_vlan;
	if (unlikely(pkt->len < sizeof(*eth) + sizeof(*tag)))
		return DROP_runt;
	/* VID 0 is a priority without a VLAN, so the frame counts as untagged (IEEE
	 * 802.1Q). On a trunk it belongs to the native VLAN. */
	vid = rte_be_to_cpu_16(tag->vlan_tci) & VLAN_VID_MASK;
	if (unlikely(vid != vlan))
		return DROP_vlan;
	*type = tag->eth_proto;
	*off = sizeof(*eth) + sizeof(*tag);
	return DROP_none;
}

static inline unsigned
parse_frame(const struct pkt *pkt, uint16_t vlan, struct pkt_view *view)
{
	unsigned reason;
	uint16_t type;
	uint32_t off;
	struct l4 l4;

	reason = parse_ether(pkt, vlan, &type, &off);
	if (unlikely(reason != DROP_none))
		return reason;
	view->ip = pkt->data + off;
	if (likely(type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)))
		reason = parse_ipv4(view->ip, pkt->len - off, pkt->flags, view, &l4);
	else if (likely(type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)))
		reason = parse_ipv6(view->ip, pkt->len - off, view, &l4);
	else
		return type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP) ? PARSE_OTHER
								    : DROP_ethertype;
	if (unlikely(reason != DROP_none))
		return reason;
	return parse_udp(&l4, view);
}

/* Of a packet with PKT_RX_HEADERS. */
static unsigned __rte_noinline
parse_apart(const struct pkt *pkt, uint16_t vlan, struct pkt_view *view)
{
	const struct pkt_headers *headers = (const struct pkt_headers *)pkt->data;
	unsigned reason = parse_frame(pkt, vlan, view);

	if (unlikely(reason != DROP_none))
		return reason;
	view->payload = headers->frame + (view->payload - headers->bytes);
	view->payload_apart = true;
	return DROP_none;
}

unsigned
pkt_parse(const struct pkt *pkt, uint16_t vlan, struct pkt_view *view)
{
	unsigned reason = unlikely(pkt->flags & PKT_RX_HEADERS)
				  ? parse_apart(pkt, vlan, view)
				  : parse_frame(pkt, vlan, view);

	if (unlikely(reason != DROP_none))
		return reason;
	return likely(icrc_check(view)) ? DROP_none : DROP_icrc;
}

unsigned
pkt_parse_headers(const struct pkt *pkt, uint16_t vlan, struct pkt_view *view)
{
	if (unlikely(pkt->flags & PKT_RX_HEADERS))
		return parse_apart(pkt, vlan, view);
	return parse_frame(pkt, vlan, view);
}

static void
gid_map_ipv4(uint8_t gid[16], const uint8_t *ipv4)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, ipv4, 4);
}

void
view_gids(const struct pkt_view *v, uint8_t src[16], uint8_t dst[16])
{
	if (v->ip_version == 4) {
		gid_map_ipv4(src, v->ip + offsetof(struct rte_ipv4_hdr, src_addr));
		gid_map_ipv4(dst, v->ip + offsetof(struct rte_ipv4_hdr, dst_addr));
	} else {
		memcpy(src, v->ip + offsetof(struct rte_ipv6_hdr, src_addr), 16);
		memcpy(dst, v->ip + offsetof(struct rte_ipv6_hdr, dst_addr), 16);
	}
}
