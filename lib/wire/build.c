/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/build.h"
#include "wire/psn.h"

#define IPV4_VERSION_IHL 0x45
#define IP6_VERSION 6u

uint16_t
roce_udp_sport(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn)
{
	flow_label &= 0xFFFFF;
	if (flow_label == 0) {
		uint64_t v = (uint64_t)qpn * dest_qpn;

		v ^= v >> 20;
		v ^= v >> 40;
		flow_label = v & 0xFFFFF;
	}
	return (uint16_t)(0xC000 | ((flow_label & 0x3FFF) ^ (flow_label >> 14)));
}

static uint16_t
ones_sum_fold(uint32_t sum)
{
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)sum;
}

static void
path_cksum_set(struct rte_ipv4_hdr *ip)
{
	uint16_t words[10];
	uint32_t sum = 0;

	ip->hdr_checksum = 0;
	memcpy(words, ip, sizeof(words));
	for (unsigned i = 0; i < 10; i++)
		/* in memory order: the sum is independent of it (RFC 1071) */
		sum += words[i];
	ip->hdr_checksum = (uint16_t)~ones_sum_fold(sum);
}

static void
path_ipv4(struct path_hdr *hdr, const struct path_addr *addr)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(hdr->bytes + hdr->l3_off);

	/* DF and identification 0: an atomic datagram (RFC 6864). So the ICRC over the
	 * headers is the same for all packets of one length. */
	ip->version_ihl = IPV4_VERSION_IHL;
	ip->type_of_service = addr->tclass;
	ip->fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
	ip->time_to_live = addr->hop_limit;
	ip->next_proto_id = IPPROTO_UDP;
	memcpy(&ip->src_addr, addr->src_gid + 12, 4);
	memcpy(&ip->dst_addr, addr->dst_gid + 12, 4);
	if (addr->cksum_offload)
		hdr->pkt_flags |= PKT_TX_IPV4_CKSUM;
}

static void
path_ipv6(struct path_hdr *hdr, const struct path_addr *addr)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(hdr->bytes + hdr->l3_off);

	ip->vtc_flow = rte_cpu_to_be_32(IP6_VERSION << 28 | (uint32_t)addr->tclass << 20 |
					(addr->flow_label & 0xFFFFF));
	ip->proto = IPPROTO_UDP;
	ip->hop_limits = addr->hop_limit;
	memcpy(&ip->src_addr, addr->src_gid, 16);
	memcpy(&ip->dst_addr, addr->dst_gid, 16);
}

void
path_hdr_init(struct path_hdr *hdr, const struct path_addr *addr)
{
	bool ipv4 = gid_is_mapped(addr->dst_gid);
	uint16_t type =
		rte_cpu_to_be_16(ipv4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)hdr->bytes;
	struct rte_vlan_hdr *tag = (struct rte_vlan_hdr *)(eth + 1);
	struct rte_udp_hdr *udp;

	memset(hdr, 0, sizeof(*hdr));
	memcpy(&eth->src_addr, addr->src_mac, sizeof(addr->src_mac));
	path_hdr_set_dst(hdr, addr->dst_mac);
	hdr->l3_off = sizeof(*eth);
	eth->ether_type = type;
	if (addr->vlan != 0) {
		hdr->l3_off += sizeof(*tag);
		eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);
		tag->vlan_tci = rte_cpu_to_be_16(addr->vlan);
		tag->eth_proto = type;
	}
	hdr->ip_version = ipv4 ? 4 : 6;
	hdr->len = hdr->l3_off;
	hdr->pkt_flags = addr->src_qpn << PKT_TX_QPN_SHIFT;
	if (ipv4) {
		path_ipv4(hdr, addr);
		hdr->len += sizeof(struct rte_ipv4_hdr);
	} else {
		path_ipv6(hdr, addr);
		hdr->len += sizeof(struct rte_ipv6_hdr);
	}
	udp = (struct rte_udp_hdr *)(hdr->bytes + hdr->len);
	udp->src_port = rte_cpu_to_be_16(addr->udp_sport);
	udp->dst_port = rte_cpu_to_be_16(ROCE_UDP_PORT);
	hdr->len += sizeof(*udp);
}

void
path_hdr_set_dst(struct path_hdr *hdr, const uint8_t dst_mac[6])
{
	memcpy(hdr->bytes, dst_mac, 6); /* not covered by the ICRC */
}

void
path_hdr_no_offload(struct path_hdr *hdr)
{
	hdr->pkt_flags &= ~(uint32_t)PKT_TX_IPV4_CKSUM;
	hdr->udp_len = hdr->other_udp_len = 0;
}

void
path_hdr_set_class(struct path_hdr *hdr, uint8_t tclass, uint8_t priority)
{
	uint8_t *tag = hdr->bytes + sizeof(struct rte_ether_hdr);
	uint8_t *l3 = hdr->bytes + hdr->l3_off;

	if (tag != l3)
		tag[0] = (uint8_t)((tag[0] & 0x1F) |
				   priority << (VLAN_PRIORITY_SHIFT - 8));
	if (hdr->ip_version == 4) {
		l3[1] = tclass;
	} else {
		l3[0] = (uint8_t)(IP6_VERSION << 4 | tclass >> 4);
		l3[1] = (uint8_t)((tclass & 0xF) << 4 | (l3[1] & 0xF));
	}
	hdr->udp_len = hdr->other_udp_len = 0;
}

/* icrc_path() ends with the source port and the destination port. A CRC is linear: bits
 * inverted there invert the same bits of it, whatever precedes them. */
struct port_flip
port_flip_make(uint16_t port)
{
	const uint8_t none[4] = {0};
	const uint8_t ports[4] = {(uint8_t)(port >> 8), (uint8_t)port};

	return (struct port_flip){
		port, icrc_update(0, ports, 4) ^ icrc_update(0, none, 4)};
}

static void
port_invert(uint8_t *l2, const struct path_hdr *hdr, uint16_t port)
{
	uint8_t *udp = l2 + hdr->len - sizeof(struct rte_udp_hdr);

	udp[0] ^= (uint8_t)(port >> 8);
	udp[1] ^= (uint8_t)port;
}

void
path_hdr_flip_port(struct path_hdr *hdr, const struct port_flip *flip)
{
	port_invert(hdr->bytes, hdr, flip->port);
	hdr->crc ^= flip->crc;
	hdr->other_crc ^= flip->crc;
}

void
frame_flip_port(const struct path_hdr *hdr, struct pkt *pkt, struct icrc_sum *sum,
	const struct port_flip *flip)
{
	port_invert(pkt->data, hdr, flip->port);
	sum->crc ^= flip->crc;
}

/* Recomputes the checksum and the ICRC state, for a length that is not one of the last
 * two. */
static void RARE
len_compute(struct path_hdr *hdr, uint8_t *l3, uint32_t udp_len)
{
	if (hdr->ip_version == 4 && !(hdr->pkt_flags & PKT_TX_IPV4_CKSUM))
		path_cksum_set((struct rte_ipv4_hdr *)l3);
	hdr->crc = icrc_path(l3, hdr->ip_version);
	hdr->udp_len = (uint16_t)udp_len;
}

/* The fields that depend on the length lie in bytes 16 to 31 of the frame, with and
 * without VLAN tag. frame_begin() loads these bytes as one block, so they are stored as
 * one. */
#define LEN_BLOCK 16

/* Replaces 16 bits of a word of the block (value in network order), and returns the old
 * ones. */
static inline uint16_t
block_field_swap(uint64_t *word, unsigned shift, uint16_t value)
{
	uint16_t before = (uint16_t)(*word >> shift);

	*word ^= (uint64_t)(uint16_t)(before ^ value) << shift;
	return before;
}

void
path_hdr_set_len(struct path_hdr *hdr, uint32_t udp_len)
{
	uint8_t *l3 = hdr->bytes + hdr->l3_off, *at = hdr->bytes + LEN_BLOCK;
	unsigned shift = 8u * (hdr->l3_off - (unsigned)sizeof(struct rte_ether_hdr));
	uint64_t word[2];
	frame_block block;

	memcpy(word, at, sizeof(word));
	word[0] = rte_le_to_cpu_64(word[0]);
	word[1] = rte_le_to_cpu_64(word[1]);
	if (likely(hdr->ip_version == 4)) {
		uint16_t total = (uint16_t)(udp_len + sizeof(struct rte_ipv4_hdr));

		block_field_swap(&word[0], shift, rte_bswap16(total));
		hdr->other_cksum = block_field_swap(&word[1], shift, hdr->other_cksum);
	} else {
		block_field_swap(&word[0], shift + 16, rte_bswap16((uint16_t)udp_len));
	}
	block = (frame_block){rte_cpu_to_le_64(word[0]), rte_cpu_to_le_64(word[1])};
	memcpy(at, &block, sizeof(block));
	RTE_SWAP(hdr->udp_len, hdr->other_udp_len);
	RTE_SWAP(hdr->crc, hdr->other_crc);
	if (unlikely(hdr->udp_len != udp_len))
		len_compute(hdr, l3, udp_len);
}
