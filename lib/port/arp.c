/* SPDX-License-Identifier: BSD-3-Clause */
/* Address resolution of IPv4 (RFC 826, RFC 5227). */
#include <string.h>

#include <rte_arp.h>
#include <rte_byteorder.h>
#include <rte_ether.h>

#include "port/net_proto.h"

#define ARP_ROOM 46 /* the shortest Ethernet payload */

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t unknown_mac[6];

static bool
arp_write(const struct net_conf *conf, struct pkt *frame, const uint8_t eth_dst[6],
	uint16_t op, const uint8_t src_ip[4], const uint8_t dst_mac[6],
	const uint8_t dst_ip[4])
{
	struct rte_arp_hdr *arp;

	arp = (struct rte_arp_hdr *)frame_begin_l2(
		conf, frame, eth_dst, RTE_ETHER_TYPE_ARP, ARP_ROOM);
	if (arp == NULL)
		return false;
	memset(arp, 0, ARP_ROOM);
	arp->arp_hardware = rte_cpu_to_be_16(RTE_ARP_HRD_ETHER);
	arp->arp_protocol = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	arp->arp_hlen = 6;
	arp->arp_plen = 4;
	arp->arp_opcode = rte_cpu_to_be_16(op);
	memcpy(&arp->arp_data.arp_sha, conf->mac, 6);
	memcpy(&arp->arp_data.arp_sip, src_ip, 4);
	memcpy(&arp->arp_data.arp_tha, dst_mac, 6);
	memcpy(&arp->arp_data.arp_tip, dst_ip, 4);
	return true;
}

bool
arp_request(const struct net_conf *conf, const uint8_t gid[16], const uint8_t *mac,
	struct pkt *frame)
{
	const uint8_t *src = net_source(conf, gid);

	if (src == NULL)
		return false;
	return arp_write(conf, frame, mac != NULL ? mac : broadcast, RTE_ARP_OP_REQUEST,
		src + 12, unknown_mac, gid + 12);
}

bool
arp_announce(const struct net_conf *conf, const uint8_t gid[16], struct pkt *frame)
{
	return arp_write(conf, frame, broadcast, RTE_ARP_OP_REQUEST, gid + 12,
		unknown_mac, gid + 12);
}

static bool
arp_ok(const struct rte_arp_hdr *arp, uint32_t len)
{
	return len >= sizeof(*arp) &&
	       arp->arp_hardware == rte_cpu_to_be_16(RTE_ARP_HRD_ETHER) &&
	       arp->arp_protocol == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) &&
	       arp->arp_hlen == 6 && arp->arp_plen == 4;
}

/* Whether a message may change or add its sender's entry. One whose sender is not the
 * source of the frame may not, unless it can be the answer to a request of ours: a
 * redundant router may answer for the MAC of another one. */
static bool
arp_sender_ok(struct net *net, const struct rx_frame *frame, const uint8_t sender[16],
	const uint8_t sender_mac[6])
{
	const struct neigh *e;

	if (memcmp(frame->src_mac, sender_mac, 6) == 0)
		return true;
	e = neigh_find(net, sender);
	return e != NULL && neigh_is_asked(e);
}

bool
arp_rx(struct net *net, const struct rx_frame *frame, struct pkt *reply, uint64_t now)
{
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)frame->l3;
	uint8_t sender_mac[6], sender[16], target[16];
	bool request, ours;

	if (!arp_ok(arp, frame->l3_len))
		return false;
	request = arp->arp_opcode == rte_cpu_to_be_16(RTE_ARP_OP_REQUEST);
	if (!request && arp->arp_opcode != rte_cpu_to_be_16(RTE_ARP_OP_REPLY))
		return false;
	memcpy(sender_mac, &arp->arp_data.arp_sha, 6);
	gid_from_ipv4(&arp->arp_data.arp_sip, sender);
	gid_from_ipv4(&arp->arp_data.arp_tip, target);
	if (!mac_is_other(&net->conf, sender_mac))
		return false;
	ours = net_is_ours(&net->conf, target);
	/* A request to one of our addresses adds its sender to the table. Every other
	 * message only updates an entry that exists. A probe (RFC 5227 1.1) has no sender
	 * address and is not learned. */
	if (gid_is_host(sender) && !net_is_ours(&net->conf, sender) &&
		arp_sender_ok(net, frame, sender, sender_mac))
		neigh_seen(net, sender, sender_mac, request && ours, now);
	if (!request || !ours)
		return false;
	return arp_write(&net->conf, reply, sender_mac, RTE_ARP_OP_REPLY, target + 12,
		sender_mac, sender + 12);
}
