/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For net_af_xdp on an interface that the kernel goes on using. Frames for the addresses of Rocade
 * go to the AF_XDP socket of their queue, all others to the kernel. docs/ports.md has the use;
 * tools/xdp/build.sh compiles this file with ADDRESSES, a list of addresses in 16 bytes each, an
 * IPv4 address as ::ffff:a.b.c.d.
 */
#include <stdbool.h>
#include <stddef.h>

#include <linux/bpf.h>
#include <linux/icmpv6.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ROCE_PORT 4791
#define QUEUES_MAX 64
#define NEIGHBOR_SOLICITATION 135

struct address {
	__u32 word[4];
};

/* ARP (RFC 826) for IPv4 over Ethernet */
struct arp {
	__be16 hardware, protocol;
	__u8 hardware_len, protocol_len;
	__be16 operation;
	__u8 sender_mac[6], sender_ip[4], target_mac[6], target_ip[4];
} __attribute__((packed));

/* net_af_xdp puts its sockets into the map of this name. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} xsks_map SEC(".maps");

static const union {
	__u8 bytes[sizeof(struct address)];
	struct address address;
} addresses[] = {ADDRESSES};

static __always_inline bool
is_rocade6(const struct in6_addr *address)
{
	const __u32 *word = address->s6_addr32;

#pragma unroll
	for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		const __u32 *own = addresses[i].address.word;

		if (word[0] == own[0] && word[1] == own[1] && word[2] == own[2] &&
			word[3] == own[3])
			return true;
	}
	return false;
}

static __always_inline bool
is_rocade4(__u32 address)
{
	struct in6_addr mapped = {};

	mapped.s6_addr32[2] = bpf_htonl(0xFFFF);
	mapped.s6_addr32[3] = address;
	return is_rocade6(&mapped);
}

static __always_inline bool
is_roce(const struct udphdr *udp, const void *end)
{
	return (const void *)(udp + 1) <= end && udp->dest == bpf_htons(ROCE_PORT);
}

static __always_inline bool
arp_for_rocade(const struct arp *arp, const void *end)
{
	__u32 target;

	if ((const void *)(arp + 1) > end || arp->protocol != bpf_htons(ETH_P_IP))
		return false;
	__builtin_memcpy(&target, arp->target_ip, sizeof(target));
	return is_rocade4(target);
}

/* A fragment of a UDP datagram has no header that could be read, and RoCEv2 has none. */
static __always_inline bool
ipv4_for_rocade(const struct iphdr *ip, const void *end)
{
	if ((const void *)(ip + 1) > end || ip->ihl != 5 || !is_rocade4(ip->daddr))
		return false;
	if (ip->protocol == IPPROTO_ICMP)
		return true;
	return ip->protocol == IPPROTO_UDP && (ip->frag_off & bpf_htons(0x1FFF)) == 0 &&
	       is_roce((const struct udphdr *)(ip + 1), end);
}

/* A solicitation goes to a multicast address, and names the address that is asked for. */
static __always_inline bool
icmpv6_for_rocade(const struct ipv6hdr *ip, const void *end)
{
	const struct icmp6hdr *icmp = (const struct icmp6hdr *)(ip + 1);
	const struct in6_addr *target = (const struct in6_addr *)(icmp + 1);

	if ((const void *)(icmp + 1) > end)
		return false;
	if (icmp->icmp6_type == NEIGHBOR_SOLICITATION)
		return (const void *)(target + 1) <= end && is_rocade6(target);
	return is_rocade6(&ip->daddr);
}

static __always_inline bool
ipv6_for_rocade(const struct ipv6hdr *ip, const void *end)
{
	if ((const void *)(ip + 1) > end)
		return false;
	if (ip->nexthdr == IPPROTO_ICMPV6)
		return icmpv6_for_rocade(ip, end);
	return ip->nexthdr == IPPROTO_UDP && is_rocade6(&ip->daddr) &&
	       is_roce((const struct udphdr *)(ip + 1), end);
}

SEC("xdp")
int
rocade_xdp(struct xdp_md *context)
{
	const void *data = (const void *)(long)context->data;
	const void *end = (const void *)(long)context->data_end;
	const struct ethhdr *eth = data;
	const void *next = eth + 1;
	bool ours = false;

	if (next > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		ours = ipv4_for_rocade(next, end);
	else if (eth->h_proto == bpf_htons(ETH_P_ARP))
		ours = arp_for_rocade(next, end);
	else if (eth->h_proto == bpf_htons(ETH_P_IPV6))
		ours = ipv6_for_rocade(next, end);
	/* A queue without a socket: to the kernel. */
	return ours ? (int)bpf_redirect_map(&xsks_map, context->rx_queue_index, XDP_PASS)
		    : XDP_PASS;
}

char rocade_license[] SEC("license") = "BSD-3-Clause";
