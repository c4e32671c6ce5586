/* SPDX-License-Identifier: BSD-3-Clause */
/* Echo for IPv4 and IPv6 (RFC 792, RFC 4443 4), and the receive path of ICMPv6. */
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "port/net_proto.h"

#define ECHO_REPLY 0
#define ECHO_REQUEST 8
#define ECHO6_REQUEST 128
#define ECHO6_REPLY 129
#define ECHO_MIN_LEN 8
#define IPV4_VERSION_IHL 0x45 /* no options */
#define IPV4_DF 0x4000
#define IPV4_FRAGMENT 0x3FFF /* more fragments, or an offset */
#define HOP_LIMIT 64

/* Checks that the IPv4 header is intact and the packet is not a fragment. Returns its
 * payload in *msg and *len. */
static bool
ipv4_ok(const struct rx_frame *frame, const uint8_t **msg, uint32_t *len)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)frame->l3;
	uint32_t total;

	if (frame->l3_len < sizeof(*ip) || ip->version_ihl != IPV4_VERSION_IHL)
		return false;
	total = rte_be_to_cpu_16(ip->total_length);
	if (total < sizeof(*ip) || total > frame->l3_len)
		return false;
	if (frame->flags & PKT_RX_IPV4_CKSUM_BAD)
		return false;
	if (!(frame->flags & PKT_RX_IPV4_CKSUM_OK) &&
		sum_fold(sum_add(0, ip, sizeof(*ip))) != 0)
		return false;
	if (ip->fragment_offset & rte_cpu_to_be_16(IPV4_FRAGMENT))
		return false;
	*msg = frame->l3 + sizeof(*ip);
	*len = total - (uint32_t)sizeof(*ip);
	return true;
}

/* Only unicast requests to this port are answered: replies to a broadcast would let one
 * frame cause many. */
static bool
echo_for_us(const struct net_conf *conf, const struct rx_frame *frame,
	const uint8_t src[16], const uint8_t dst[16])
{
	return memcmp(frame->dst_mac, conf->mac, 6) == 0 && net_is_ours(conf, dst) &&
	       gid_is_host(src) && !net_is_ours(conf, src) &&
	       !net_is_broadcast(conf, src);
}

static bool
echo4_reply(const struct net_conf *conf, const struct rx_frame *frame, const uint8_t *msg,
	uint32_t len, struct pkt *reply)
{
	const struct rte_ipv4_hdr *in = (const struct rte_ipv4_hdr *)frame->l3;
	struct rte_ipv4_hdr *ip;
	uint8_t *out;
	uint16_t sum;

	ip = (struct rte_ipv4_hdr *)frame_begin_l2(conf, reply, frame->src_mac,
		RTE_ETHER_TYPE_IPV4, (uint32_t)sizeof(*ip) + len);
	if (ip == NULL)
		return false;
	memset(ip, 0, sizeof(*ip));
	ip->version_ihl = IPV4_VERSION_IHL;
	ip->type_of_service = in->type_of_service;
	ip->total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + len));
	ip->fragment_offset = rte_cpu_to_be_16(IPV4_DF);
	ip->time_to_live = HOP_LIMIT;
	ip->next_proto_id = IPPROTO_ICMP;
	ip->src_addr = in->dst_addr;
	ip->dst_addr = in->src_addr;
	ip->hdr_checksum = sum_fold(sum_add(0, ip, sizeof(*ip)));
	out = (uint8_t *)(ip + 1);
	memcpy(out, msg, len);
	out[0] = ECHO_REPLY;
	memset(out + 2, 0, 2);
	sum = sum_fold(sum_add(0, out, len));
	memcpy(out + 2, &sum, 2);
	return true;
}

bool
icmp4_rx(struct net *net, const struct rx_frame *frame, struct pkt *reply)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)frame->l3;
	uint8_t src[16], dst[16];
	const uint8_t *msg;
	uint32_t len;

	if (!ipv4_ok(frame, &msg, &len) || ip->next_proto_id != IPPROTO_ICMP)
		return false;
	if (len < ECHO_MIN_LEN || msg[0] != ECHO_REQUEST || msg[1] != 0 ||
		sum_fold(sum_add(0, msg, len)) != 0)
		return false;
	gid_from_ipv4(&ip->src_addr, src);
	gid_from_ipv4(&ip->dst_addr, dst);
	if (!echo_for_us(&net->conf, frame, src, dst))
		return false;
	return echo4_reply(&net->conf, frame, msg, len, reply);
}

static bool
echo6_rx(struct net *net, const struct rx_frame *frame, const struct icmp6 *in,
	struct pkt *reply)
{
	uint8_t *out;

	if (in->len < ECHO_MIN_LEN || in->msg[1] != 0 ||
		!echo_for_us(&net->conf, frame, in->src, in->dst))
		return false;
	out = frame_begin_icmp6(
		&net->conf, reply, frame->src_mac, in->dst, in->src, HOP_LIMIT, in->len);
	if (out == NULL)
		return false;
	memcpy(out, in->msg, in->len);
	out[0] = ECHO6_REPLY;
	frame_end_icmp6(out, in->len);
	return true;
}

bool
icmp6_rx(struct net *net, const struct rx_frame *frame, struct pkt *reply, uint64_t now)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)frame->l3;
	struct icmp6 in;

	if (frame->l3_len < sizeof(*ip) || frame->l3[0] >> 4 != 6 ||
		ip->proto != IPPROTO_ICMPV6)
		return false;
	in.src = (const uint8_t *)&ip->src_addr;
	in.dst = (const uint8_t *)&ip->dst_addr;
	in.msg = frame->l3 + sizeof(*ip);
	in.len = rte_be_to_cpu_16(ip->payload_len);
	in.hop_limit = ip->hop_limits;
	if (in.len < 4 || in.len > frame->l3_len - sizeof(*ip))
		return false;
	if (sum_fold(sum_add(sum_icmp6(in.src, in.dst, in.len), in.msg, in.len)) != 0)
		return false;
	switch (in.msg[0]) {
	case ECHO6_REQUEST:
		return echo6_rx(net, frame, &in, reply);
	case ND_SOLICITATION:
	case ND_ADVERTISEMENT:
		return nd_rx(net, frame, &in, reply, now);
	default:
		return false;
	}
}
