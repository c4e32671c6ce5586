/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port's addresses and neighbours: which next hop a destination has, its MAC by ARP
 * or ND (RFC 826, RFC 4861), answers to ARP, neighbour solicitations and echo requests
 * (RFC 792, RFC 4443). Like a QP it does no I/O: frames come in by net_rx(), what it owes
 * is fetched with net_tx(). Addresses are GIDs: IPv4 a.b.c.d is ::ffff:a.b.c.d.
 *
 * Shared by a port's engines: one lock inside, never taken on the data path -- an engine
 * resolves again only when the generation has moved.
 */
#ifndef ROCADE_PORT_NEIGH_H
#define ROCADE_PORT_NEIGH_H

#include "wire/pkt.h"

#define NET_MAX_ADDRS 8
#define NET_MAX_NEIGHS 4096
#define NET_MAX_GROUPS 1024

#define NEIGH_RETRY_NS (200 * NS_PER_MS) /* between two requests */
#define NEIGH_TRIES 5                    /* requests without an answer: unreachable */
#define NEIGH_FAILED_NS SEC_NS         /* an unreachable one is asked again this often */
#define NEIGH_REFRESH_NS (30 * SEC_NS) /* a known one is confirmed this often */

struct net_addr {
	uint8_t gid[16];
	uint8_t prefix_len; /* IPv4: 0..32 */
};

struct net_conf {
	uint8_t mac[6];
	uint16_t vlan; /* 0: untagged */
	uint16_t addr_count;
	struct net_addr addr[NET_MAX_ADDRS]; /* give the link-local one too */
	uint8_t gateway4[16];                /* all zero: none */
	uint8_t gateway6[16];
};

struct net;

/* Control path. -EINVAL for an address that cannot be a host's (0.0.0.0, multicast,
 * broadcast, that of the subnet itself ...), one given twice, a gateway that is on no
 * link of ours, a MAC that is no station's, a VLAN above 4094; -ENOMEM. Announces the
 * addresses (RFC 5227 2.3, RFC 4861 7.2.6) with the first net_tx(). */
int net_create(const struct net_conf *conf, struct net **out);
void net_destroy(struct net *net);
const struct net_conf *net_conf(const struct net *net);

/* -EINVAL, or 0: replaces the addresses and gateways; bumps the generation. */
int net_set_conf(struct net *net, const struct net_conf *conf);

static inline bool
gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return __builtin_memcmp(gid, mapped, sizeof(mapped)) == 0;
}

/* 224.0.0.0/4 or ff00::/8. */
bool gid_is_multicast(const uint8_t gid[16]);

/*
 * Multicast groups (IGMPv3, RFC 3376; MLDv2, RFC 3810; older versions for older queriers):
 * joining tells the routers and switches of the link, and their queries are answered. A
 * group that is joined several times is left as often. -EINVAL: no group; -ENOSPC. Our
 * solicited-node groups (RFC 4291 2.7.1) are joined by themselves.
 */
int net_join(struct net *net, const uint8_t gid[16]);
/* -EINVAL: it was not joined. */
int net_leave(struct net *net, const uint8_t gid[16]);
/* The MACs of what the port has to receive beside its own and broadcast: up to n, each
 * once; how many there are. */
#define NET_MAX_MACS (NET_MAX_GROUPS + NET_MAX_ADDRS + 2)
unsigned net_group_macs(struct net *net, uint8_t (*macs)[6], unsigned n);

/* Announces all addresses and groups, as after net_create(): the link has come up. */
void net_announce(struct net *net);

/* Moves whenever a neighbour's MAC or reachability, or an address, changed. Pairs with
 * the release where it is bumped. */
uint32_t net_generation(const struct net *net);

/*
 * The MAC for packets from one of our addresses to dst: 0; -EAGAIN while it is being
 * asked for (call again when the generation moved); -EHOSTUNREACH when nobody answers
 * (asked again from time to time, the generation moves when it does); -ENETUNREACH when
 * dst is neither on a link of ours nor is there a gateway; -ENOSPC when the table is full
 * of live entries. A multicast dst has the MAC of its group, an address of ours our own.
 */
int net_resolve(struct net *net, const uint8_t dst[16], uint8_t mac[6], uint64_t now);

/* A received frame that is not RoCEv2 (PARSE_OTHER). Learns from it; when it wants an
 * answer, writes that into reply (allocated by the caller) and returns true. */
bool net_rx(struct net *net, const struct pkt *frame, struct pkt *reply, uint64_t now);

/* Fills up to n frames that are due: requests and confirmations. */
unsigned net_tx(struct net *net, struct pkt *frames, unsigned n, uint64_t now);

/* When net_tx() will next have something; TIME_NEVER. Cheap (one relaxed load). */
uint64_t net_deadline(const struct net *net);

/* For `show neigh`: calls back for every entry, under the lock. */
struct neigh_info {
	uint8_t gid[16];
	uint8_t mac[6];
	const char *state; /* "incomplete", "reachable", "failed" */
	uint64_t age_ns;   /* since the last answer; TIME_NEVER: there was none */
};
void net_each(struct net *net, uint64_t now, void (*fn)(const struct neigh_info *, void *),
	void *arg);

/* Text <-> GID, IPv4 dotted or IPv6: 0 or -EINVAL. "192.0.2.1/24" with a prefix; without
 * one 32 or 128; prefix_len NULL: a prefix is -EINVAL. buf of at least 46 bytes. */
int gid_parse(const char *text, uint8_t gid[16], uint8_t *prefix_len);
const char *gid_format(const uint8_t gid[16], char *buf, size_t size);

/* fe80::/64 with the EUI-64 of the MAC (RFC 4291, appendix A). */
void gid_link_local(const uint8_t mac[6], uint8_t gid[16]);

#endif
