/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data path. For whom a frame is that arrived at a port which Rocade shares with the
 * application. Pure functions of the frame and the addresses.
 *
 * | frame | owner |
 * |---|---|
 * | UDP 4791 to an address of Rocade | Rocade |
 * | UDP 4791 to a group | both, if Rocade is in the group |
 * | ARP, neighbour solicitation, echo request for an address of Rocade | Rocade |
 * | an answer to Rocade's own ARP or ND requests | Rocade |
 * | announcements (ARP, ND), IGMP and MLD | both |
 * | all others, of another VLAN or to another unicast MAC too | the application |
 *
 * If another network stack, in the application, has the same addresses and answers for them
 * (other_stack), it gets everything but UDP 4791. Answers and announcements of neighbours then are
 * for both.
 */
#ifndef ROCADE_ETHDEV_FRAME_OWNER_H
#define ROCADE_ETHDEV_FRAME_OWNER_H

#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "port/net.h"
#include "wire/hdr.h"

enum frame_owner {
	FRAME_APP,
	FRAME_ROCADE,
	FRAME_BOTH,
	FRAME_GROUP, /* for both if Rocade is in the group of its destination MAC, else APP */
};

/* Longest message of ARP, ND, IGMP or MLD that is copied for Rocade, in bytes of the frame. */
#define FRAME_MESSAGE_MAX 512

struct frame_addrs {
	uint8_t gid[NET_MAX_ADDRS][16];
	/* The one that everybody derives from the MAC: the application may have it too. Then
	 * both may answer for it, with the same MAC. All zero: none. */
	uint8_t link_local[16];
	uint32_t ipv4[NET_MAX_ADDRS]; /* those of gid that are IPv4, in network order */
	uint8_t mac[6];
	uint16_t vlan; /* 0: untagged */
	uint8_t count, ipv4_count;
	bool other_stack;
	uint8_t unused[5];
};

/* Returns whether it is a RoCEv2 packet over IPv4 for Rocade, without a tag and options: a quick
 * answer for most frames. False: frame_owner() tells. */
static inline bool
frame_is_roce_ipv4(const struct frame_addrs *addrs, const uint8_t *data, uint32_t len)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)data;
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	uint32_t mine = 0;

	if (len < sizeof(*eth) + sizeof(*ip) + sizeof(*udp) || addrs->vlan != 0 ||
		eth->ether_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
		ip->version_ihl != RTE_IPV4_VHL_DEF || ip->next_proto_id != IPPROTO_UDP ||
		(ip->fragment_offset & rte_cpu_to_be_16(RTE_IPV4_HDR_OFFSET_MASK)) != 0 ||
		udp->dst_port != rte_cpu_to_be_16(ROCE_UDP_PORT) ||
		memcmp(data, addrs->mac, sizeof(addrs->mac)) != 0)
		return false;
	for (unsigned i = 0; i < addrs->ipv4_count; i++)
		mine |= addrs->ipv4[i] == ip->dst_addr;
	return mine != 0;
}

/* Fills in the addresses of a port. */
void frame_addrs_fill(struct frame_addrs *out, const struct net_conf *conf);

/* data: from the Ethernet header on. tci: the VLAN tag that the port has stripped, -1: it has
 * stripped none. */
enum frame_owner frame_owner(
	const struct frame_addrs *addrs, const uint8_t *data, uint32_t len, int tci);

#endif
