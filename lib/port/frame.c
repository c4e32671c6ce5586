/* SPDX-License-Identifier: BSD-3-Clause */
/* Ethernet and IPv6 headers of the port's own messages, and the Internet checksum. */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "port/frame.h"

#define VLAN_VID_MASK 0x0FFF

bool
mac_is_station(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return (mac[0] & 1) == 0 && memcmp(mac, zero, sizeof(zero)) != 0;
}

bool
mac_is_other(const struct net_conf *conf, const uint8_t mac[6])
{
	return mac_is_station(mac) && memcmp(mac, conf->mac, 6) != 0;
}

bool
frame_split(const struct net_conf *conf, const struct pkt *pkt, struct rx_frame *frame)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)pkt->data;
	const struct rte_vlan_hdr *tag = (const struct rte_vlan_hdr *)(eth + 1);
	uint32_t off = sizeof(*eth);
	uint16_t vid;

	if (pkt->len < sizeof(*eth))
		return false;
	frame->dst_mac = pkt->data;
	frame->src_mac = pkt->data + 6;
	frame->type = rte_be_to_cpu_16(eth->ether_type);
	frame->flags = pkt->flags;
	if (frame->type == RTE_ETHER_TYPE_VLAN) {
		if (pkt->len < sizeof(*eth) + sizeof(*tag))
			return false;
		/* VID 0 counts as untagged, as in pkt_parse(). */
		vid = rte_be_to_cpu_16(tag->vlan_tci) & VLAN_VID_MASK;
		if (vid != conf->vlan)
			return false;
		frame->type = rte_be_to_cpu_16(tag->eth_proto);
		off += (uint32_t)sizeof(*tag);
	} else if (conf->vlan != 0) {
		return false;
	}
	frame->l3 = pkt->data + off;
	frame->l3_len = pkt->len - off;
	/* Accept frames to this port's MAC or to a group, but not our own frames that
	 * came back. */
	if ((frame->dst_mac[0] & 1) == 0 && memcmp(frame->dst_mac, conf->mac, 6) != 0)
		return false;
	return mac_is_other(conf, frame->src_mac);
}

uint8_t *
frame_begin_l2(const struct net_conf *conf, struct pkt *pkt, const uint8_t dst_mac[6],
	uint16_t type, uint32_t l3_len)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)pkt->data;
	struct rte_vlan_hdr *tag = (struct rte_vlan_hdr *)(eth + 1);
	uint32_t off = sizeof(*eth) + (conf->vlan != 0 ? sizeof(*tag) : 0);

	if (off + l3_len > pkt->room)
		return NULL;
	memcpy(&eth->dst_addr, dst_mac, 6);
	memcpy(&eth->src_addr, conf->mac, 6);
	if (conf->vlan != 0) {
		eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);
		tag->vlan_tci = rte_cpu_to_be_16(conf->vlan);
		tag->eth_proto = rte_cpu_to_be_16(type);
	} else {
		eth->ether_type = rte_cpu_to_be_16(type);
	}
	pkt->len = (uint16_t)(off + l3_len);
	pkt->flags = 0;
	return pkt->data + off;
}

uint8_t *
frame_begin_icmp6(const struct net_conf *conf, struct pkt *pkt, const uint8_t dst_mac[6],
	const uint8_t src[16], const uint8_t dst[16], uint8_t hop_limit, uint32_t len)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)frame_begin_l2(
		conf, pkt, dst_mac, RTE_ETHER_TYPE_IPV6, (uint32_t)sizeof(*ip) + len);

	if (ip == NULL)
		return NULL;
	ip->vtc_flow = rte_cpu_to_be_32(UINT32_C(6) << 28);
	ip->payload_len = rte_cpu_to_be_16((uint16_t)len);
	ip->proto = IPPROTO_ICMPV6;
	ip->hop_limits = hop_limit;
	memcpy(&ip->src_addr, src, 16);
	memcpy(&ip->dst_addr, dst, 16);
	return (uint8_t *)(ip + 1);
}

void
frame_end_icmp6(uint8_t *msg, uint32_t len)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)msg - 1;
	uint16_t sum;

	memset(msg + 2, 0, 2);
	sum = sum_fold(sum_add(sum_icmp6(&ip->src_addr, &ip->dst_addr, len), msg, len));
	memcpy(msg + 2, &sum, 2);
}

/* Words are added in memory order: the checksum does not depend on byte order (RFC 1071
 * 2B). */
uint32_t
sum_add(uint32_t sum, const void *data, uint32_t len)
{
	const uint8_t *bytes = data;
	uint64_t total = sum;
	uint16_t word;

	for (; len >= 2; len -= 2, bytes += 2) {
		memcpy(&word, bytes, 2);
		total += word;
	}
	if (len > 0) {
		word = 0;
		memcpy(&word, bytes, 1);
		total += word;
	}
	return (uint32_t)((total & 0xffff) + (total >> 16));
}

uint16_t
sum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

uint32_t
sum_icmp6(const void *src, const void *dst, uint32_t len)
{
	uint32_t words[2] = {rte_cpu_to_be_32(len), rte_cpu_to_be_32(IPPROTO_ICMPV6)};

	return sum_add(sum_add(sum_add(0, src, 16), dst, 16), words, sizeof(words));
}
