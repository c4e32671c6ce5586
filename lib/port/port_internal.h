/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to lib/port: what its files share. Functions that take a struct net
 * run under its lock. */
#ifndef ROCADE_PORT_INTERNAL_H
#define ROCADE_PORT_INTERNAL_H

#include <sys/queue.h>

#include <rte_ticketlock.h>

#include "base/wheel.h"
#include "port/net.h"

#define NET_MAX_LEARNED 256 /* entries that were learned, not resolved */
#define NET_ROOM 128        /* frame size; exceeds every frame that net_tx() writes */
#define NET_ANNOUNCEMENTS 3
#define NET_ANNOUNCE_NS NS_PER_SEC
#define NEIGH_BUCKETS NET_MAX_NEIGHS
#define NEIGH_UNICAST_TRIES 3 /* a reachable neighbour is first asked by unicast */
/* a wanted entry that was not resolved for this long may be replaced */
#define NEIGH_IDLE_NS (UINT64_C(300) * NS_PER_SEC)

enum neigh_state { NEIGH_INCOMPLETE, NEIGH_REACHABLE, NEIGH_FAILED };

TAILQ_HEAD(neigh_list, neigh);

struct neigh {
	/* when to send the next request; not used by learned entries */
	struct wheel_timer timer;
	TAILQ_ENTRY(neigh) link;
	/* the list that contains it: due, learned, spare; NULL: none */
	struct neigh_list *list;
	struct neigh *chain;   /* next in the same bucket */
	uint64_t confirmed_ns; /* TIME_NEVER: never */
	uint64_t used_ns;
	uint8_t gid[16];
	uint8_t mac[6];
	uint8_t state;
	uint8_t tries;
	bool wanted; /* net_resolve() has asked for it: it is kept up to date */
};

/* A multicast group that the port has joined, or has left with reports still to send. */
struct net_group {
	struct wheel_timer timer;    /* of the next report */
	TAILQ_ENTRY(net_group) link; /* in groups_due if due */
	uint8_t gid[16];
	uint16_t users;       /* joins less leaves; 0: left */
	uint8_t reports_left; /* reports of a change still to be sent */
	bool due;
	bool in_use;
};
TAILQ_HEAD(net_group_list, net_group);

#define NET_GROUPS (NET_MAX_GROUPS + NET_MAX_ADDRS)
#define GROUP_ROBUSTNESS 2 /* reports per change (RFC 3376 8.1) */
/* longest time between them (RFC 3376 8.11) */
#define GROUP_REPORT_INTERVAL_NS NS_PER_SEC
/* how long an older querier counts as present after a query (RFC 3376 8.12) */
#define GROUP_OLDER_QUERIER_NS (UINT64_C(260) * NS_PER_SEC)

/* State of a family's protocol, IGMP or MLD. */
struct group_proto {
	uint8_t version; /* version of an older querier: IGMP 1 or 2, MLD 1; 0: none */
	uint64_t until_ns;
};

struct net {
	rte_ticketlock_t lock;
	uint32_t generation;
	uint64_t deadline_ns;
	struct net_conf conf;
	struct wheel wheel;
	struct wheel_timer announce_timer;
	uint8_t announce_left[NET_MAX_ADDRS];
	/* index of the next address to announce; addr_count: none in this round */
	unsigned announce_at;
	struct neigh_list due;
	struct neigh_list learned; /* oldest first */
	struct neigh_list spare;
	uint32_t learned_count;
	uint32_t used; /* entries[0..used) are or were in use */
	struct net_group_list groups_due;
	struct group_proto igmp, mld;
	uint32_t rand;
	struct net_group groups[NET_GROUPS];
	struct neigh *buckets[NEIGH_BUCKETS];
	struct neigh entries[NET_MAX_NEIGHS];
};

/* A received frame, parsed up to the Ethernet header. */
struct rx_frame {
	const uint8_t *dst_mac;
	const uint8_t *src_mac;
	const uint8_t *l3;
	uint32_t l3_len; /* to the end of the frame, with any padding */
	uint32_t flags;  /* flags of struct pkt */
	uint16_t type;   /* EtherType */
};

/* gid.c */
bool gid_is_zero(const uint8_t gid[16]);
bool gid_is_link_local(const uint8_t gid[16]); /* fe80::/10 */
/* Returns whether gid can be the address of a single host. */
bool gid_is_host(const uint8_t gid[16]);
bool gid_in_prefix(const uint8_t gid[16], const struct net_addr *addr);
void gid_from_ipv4(const void *ipv4, uint8_t gid[16]);
void gid_multicast_mac(const uint8_t gid[16], uint8_t mac[6]);
/* ff02::1:ffXX:XXXX (RFC 4291 2.7.1). */
void gid_solicited_node(const uint8_t gid[16], uint8_t group[16]);

/* net_addr.c */
int net_conf_check(const struct net_conf *conf);
bool net_is_ours(const struct net_conf *conf, const uint8_t gid[16]);
bool net_is_onlink(const struct net_conf *conf, const uint8_t gid[16]);
/* Returns whether gid is the broadcast address or the network address (host bits 0) of
 * one of our subnets. */
bool net_is_broadcast(const struct net_conf *conf, const uint8_t gid[16]);
/* Returns the source address for requests about target, NULL if there is none of that
 * family. */
const uint8_t *net_source(const struct net_conf *conf, const uint8_t target[16]);
/* Returns 0 or -ENETUNREACH. */
int net_next_hop(const struct net_conf *conf, const uint8_t dst[16], uint8_t hop[16]);

/* neigh.c */
struct neigh *neigh_find(struct net *net, const uint8_t gid[16]);
void neigh_table_init(struct net *net);
/* Drops the entries that are no longer on-link, or all entries. */
void neigh_flush(struct net *net, bool all);
/* Records that gid was seen at mac. learn: also adds an unknown gid, because it sent to
 * us. */
void neigh_seen(struct net *net, const uint8_t gid[16], const uint8_t mac[6], bool learn,
	uint64_t now);
/* Writes the request that the entry has due. Returns false if there is none. */
bool neigh_solicit(struct net *net, struct neigh *e, struct pkt *frame, uint64_t now);
void neigh_mark_due(struct net *net, struct neigh *e);

/* net.c */
void net_generation_bump(struct net *net);
void net_deadline_update(struct net *net);

/* frame.c */
bool frame_split(
	const struct net_conf *conf, const struct pkt *pkt, struct rx_frame *frame);
bool mac_is_station(const uint8_t mac[6]);
/* Returns whether mac can belong to another station than this port, so that a neighbour
 * may claim it. */
bool mac_is_other(const struct net_conf *conf, const uint8_t mac[6]);
/* Writes the Ethernet header, with a VLAN tag if configured, and sets pkt->len. Returns
 * the place of the l3_len bytes behind it, NULL if they do not fit. */
uint8_t *frame_begin_l2(const struct net_conf *conf, struct pkt *pkt,
	const uint8_t dst_mac[6], uint16_t type, uint32_t l3_len);
/* As frame_begin_l2(), and writes the IPv6 header of an ICMPv6 message of len bytes. */
uint8_t *frame_begin_icmp6(const struct net_conf *conf, struct pkt *pkt,
	const uint8_t dst_mac[6], const uint8_t src[16], const uint8_t dst[16],
	uint8_t hop_limit, uint32_t len);
/* Fills in the checksum of the message that frame_begin_icmp6() made room for. */
void frame_end_icmp6(uint8_t *msg, uint32_t len);
/* Internet checksum (RFC 1071). sum_add() continues from sum. sum_fold() returns the
 * checksum; it is 0 if the data contain a correct one. */
uint32_t sum_add(uint32_t sum, const void *data, uint32_t len);
uint16_t sum_fold(uint32_t sum);
/* Sum of the pseudo header of an ICMPv6 message. */
uint32_t sum_icmp6(const void *src, const void *dst, uint32_t len);

/* net_group.c */
void group_table_init(struct net *net);
/* Joins the solicited-node groups of conf's addresses. group_leave_nodes() leaves
 * them. */
void group_join_nodes(struct net *net, const struct net_conf *conf);
void group_leave_nodes(struct net *net, const struct net_conf *conf);
/* Schedules reports of all memberships. */
void group_announce(struct net *net);
void group_mark_due(struct net *net, struct net_group *g);
/* Writes the report that the group has due. Returns false if there is none. */
bool group_report(struct net *net, struct net_group *g, struct pkt *frame, uint64_t now);
/* Handles a query for gid (NULL: all groups of the family), to be answered within max_ns.
 * version: the querier's, 0 if it is the newest. */
void group_query_rx(struct net *net, const uint8_t *gid, bool ipv4, uint8_t version,
	uint64_t max_ns, uint64_t now);
/* Handles another host's report, of an older protocol version. */
void group_report_rx(struct net *net, const uint8_t gid[16], uint64_t now);

enum group_report_type {
	GROUP_CURRENT_STATE, /* current state, the answer to a query */
	GROUP_JOINS,
	GROUP_LEAVES,
};
/* igmp.c, mld.c. _rx() handles a received frame. _write() writes a report in the given
 * version (0: the newest); it returns false if the report cannot or need not be sent. */
void igmp_rx(struct net *net, const struct rx_frame *frame, uint64_t now);
bool igmp_write(const struct net_conf *conf, const uint8_t gid[16],
	enum group_report_type what, uint8_t version, struct pkt *frame);
void mld_rx(struct net *net, const struct rx_frame *frame, uint64_t now);
bool mld_write(const struct net_conf *conf, const uint8_t gid[16],
	enum group_report_type what, uint8_t version, struct pkt *frame);

/* arp.c, icmp.c, nd.c. Each handles a received frame of its protocol and returns true if
 * it wrote an answer to reply. */
bool arp_rx(
	struct net *net, const struct rx_frame *frame, struct pkt *reply, uint64_t now);
bool icmp4_rx(struct net *net, const struct rx_frame *frame, struct pkt *reply);
bool icmp6_rx(
	struct net *net, const struct rx_frame *frame, struct pkt *reply, uint64_t now);

/* An ICMPv6 message with valid lengths and checksum. */
struct icmp6 {
	const uint8_t *src;
	const uint8_t *dst;
	const uint8_t *msg;
	uint32_t len; /* at least 4 */
	uint8_t hop_limit;
};
bool nd_rx(struct net *net, const struct rx_frame *frame, const struct icmp6 *in,
	struct pkt *reply, uint64_t now);

/* Write a request for gid to mac, or to all if mac is NULL, or an announcement of an
 * address. */
bool arp_request(const struct net_conf *conf, const uint8_t gid[16], const uint8_t *mac,
	struct pkt *frame);
bool arp_announce(const struct net_conf *conf, const uint8_t gid[16], struct pkt *frame);
bool nd_solicit(const struct net_conf *conf, const uint8_t gid[16], const uint8_t *mac,
	struct pkt *frame);
bool nd_announce(const struct net_conf *conf, const uint8_t gid[16], struct pkt *frame);

#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136

#endif
