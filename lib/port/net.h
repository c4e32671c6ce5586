/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to lib/port: what its files share. All of it runs under the net's lock. */
#ifndef ROCADE_PORT_NET_H
#define ROCADE_PORT_NET_H

#include <sys/queue.h>

#include <rte_ticketlock.h>

#include "base/wheel.h"
#include "port/neigh.h"

#define NET_MAX_STRANGERS 256 /* entries that only answered or asked us */
#define NET_ROOM 128          /* more than any frame that is not an echo */
#define NET_ANNOUNCEMENTS 3
#define NET_ANNOUNCE_NS SEC_NS
#define NEIGH_BUCKETS NET_MAX_NEIGHS
#define NEIGH_UNICAST_TRIES 3                    /* a known one is asked directly first */
#define NEIGH_IDLE_NS (UINT64_C(300) * SEC_NS) /* may make room for another */

enum neigh_state { NEIGH_INCOMPLETE, NEIGH_REACHABLE, NEIGH_FAILED };

TAILQ_HEAD(neigh_list, neigh);

struct neigh {
	struct wheel_timer timer; /* when to ask (again); never for a stranger */
	TAILQ_ENTRY(neigh) link;
	struct neigh_list *list; /* the one it is in: due, strangers, spare or NULL */
	struct neigh *chain;     /* next of the same bucket */
	uint64_t confirmed_ns;   /* TIME_NEVER: never */
	uint64_t used_ns;
	uint8_t gid[16];
	uint8_t mac[6];
	uint8_t state;
	uint8_t tries;
	bool wanted; /* somebody resolved it: it is kept fresh */
};

/* A multicast group that the port has joined, or has left and not said so yet. */
struct net_group {
	struct wheel_timer timer; /* of the next report */
	TAILQ_ENTRY(net_group) link; /* due for one */
	uint8_t gid[16];
	uint16_t users; /* 0: left */
	uint8_t left;   /* reports of a change still to be sent */
	bool due;
	bool in_use;
};
TAILQ_HEAD(net_group_list, net_group);

#define NET_GROUPS (NET_MAX_GROUPS + NET_MAX_ADDRS)
#define GROUP_ROBUSTNESS 2               /* how often a change is said (RFC 3376 8.1) */
#define GROUP_AGAIN_NS SEC_NS            /* within so much time (RFC 3376 8.11) */
#define GROUP_OLD_NS (UINT64_C(260) * SEC_NS) /* an older querier is there (RFC 3376 8.12) */

/* A family's protocol: IGMP or MLD. */
struct group_proto {
	uint8_t version; /* of the querier: 1, 2 or 3; for MLD one less; 0: none is older */
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
	unsigned announce_at; /* address that is announced next; addr_count: none now */
	struct neigh_list due;
	struct neigh_list strangers; /* oldest first */
	struct neigh_list spare;
	uint32_t stranger_count;
	uint32_t used; /* entries[0..used) have been in use */
	struct net_group_list groups_due;
	struct group_proto igmp, mld;
	uint32_t rand;
	struct net_group groups[NET_GROUPS];
	struct neigh *buckets[NEIGH_BUCKETS];
	struct neigh entries[NET_MAX_NEIGHS];
};

/* A received frame taken apart as far as Ethernet goes. */
struct frame {
	const uint8_t *dst_mac;
	const uint8_t *src_mac;
	const uint8_t *l3;
	uint32_t l3_len; /* to the end of the frame */
	uint32_t flags;  /* the packet's */
	uint16_t type;   /* EtherType */
};

/* gid.c */
bool gid_is_zero(const uint8_t gid[16]);
bool gid_is_link_local(const uint8_t gid[16]); /* fe80::/10 */
/* Whether it may be that of one machine on a network. */
bool gid_is_host(const uint8_t gid[16]);
bool gid_in_prefix(const uint8_t gid[16], const struct net_addr *addr);
void gid_from_ipv4(const void *ipv4, uint8_t gid[16]);
void gid_multicast_mac(const uint8_t gid[16], uint8_t mac[6]);
/* ff02::1:ffXX:XXXX (RFC 4291 2.7.1). */
void gid_solicited_node(const uint8_t gid[16], uint8_t group[16]);

/* addr.c */
int net_conf_check(const struct net_conf *conf);
bool net_is_ours(const struct net_conf *conf, const uint8_t gid[16]);
bool net_is_onlink(const struct net_conf *conf, const uint8_t gid[16]);
/* The broadcast address of a subnet of ours. */
bool net_is_broadcast(const struct net_conf *conf, const uint8_t gid[16]);
/* Our address that a question about target is asked from; NULL: none of that family. */
const uint8_t *net_source(const struct net_conf *conf, const uint8_t target[16]);
/* 0 or -ENETUNREACH. */
int net_next_hop(const struct net_conf *conf, const uint8_t dst[16], uint8_t hop[16]);

/* neigh.c */
struct neigh *neigh_find(struct net *net, const uint8_t gid[16]);
void neigh_table_init(struct net *net);
/* Forgets whom we can no longer reach directly, or everybody. */
void neigh_flush(struct net *net, bool all);
/* gid has been heard to be at mac. learn: also when it was not known, since it talked to
 * us. */
void neigh_seen(struct net *net, const uint8_t gid[16], const uint8_t mac[6], bool learn,
	uint64_t now);
/* The neighbour's turn: writes the request it needs, false when it needs none. */
bool neigh_ask(struct net *net, struct neigh *e, struct pkt *frame, uint64_t now);
void neigh_mark_due(struct net *net, struct neigh *e);

/* net.c */
void net_generation_bump(struct net *net);
void net_deadline_update(struct net *net);

/* frame.c */
bool frame_split(const struct net_conf *conf, const struct pkt *pkt, struct frame *frame);
bool mac_is_station(const uint8_t mac[6]);
/* That of a station other than this port: what a neighbour may claim as its own. */
bool mac_is_other(const struct net_conf *conf, const uint8_t mac[6]);
/* Ethernet header, with the VLAN tag when there is one: the place of the l3_len bytes
 * behind it, NULL when they do not fit. Sets pkt->len. */
uint8_t *frame_begin_l2(const struct net_conf *conf, struct pkt *pkt, const uint8_t dst_mac[6],
	uint16_t type, uint32_t l3_len);
/* The same up to the IPv6 header of an ICMPv6 message of len bytes. */
uint8_t *frame_begin_icmp6(const struct net_conf *conf, struct pkt *pkt, const uint8_t dst_mac[6],
	const uint8_t src[16], const uint8_t dst[16], uint8_t hop_limit, uint32_t len);
/* Fills the checksum of the message that frame_begin_icmp6() made room for. */
void frame_end_icmp6(uint8_t *msg, uint32_t len);
/* Internet checksum (RFC 1071) over data, continued from sum; folded: 0 when a checksum
 * in the data is right. */
uint32_t sum_add(uint32_t sum, const void *data, uint32_t len);
uint16_t sum_fold(uint32_t sum);
/* Sum of the pseudo header of an ICMPv6 message. */
uint32_t sum_icmp6(const void *src, const void *dst, uint32_t len);

/* group.c */
void group_table_init(struct net *net);
/* Joins the solicited-node groups of the addresses of conf, or leaves those of old. */
void group_join_nodes(struct net *net, const struct net_conf *conf);
void group_leave_nodes(struct net *net, const struct net_conf *conf);
/* Says all memberships again. */
void group_announce(struct net *net);
void group_mark_due(struct net *net, struct net_group *g);
/* Its turn: writes the report it needs, false when it needs none. */
bool group_report(struct net *net, struct net_group *g, struct pkt *frame, uint64_t now);
/* A query for gid (NULL: for all of a family), to be answered within max_ns. version: the
 * querier's, 0 when it is the newest. */
void group_query_rx(struct net *net, const uint8_t *gid, bool ipv4, uint8_t version,
	uint64_t max_ns, uint64_t now);
/* Another host's report of the older protocols. */
void group_report_rx(struct net *net, const uint8_t gid[16], uint64_t now);

enum group_say {
	GROUP_IS,    /* the answer to a query */
	GROUP_JOINS,
	GROUP_LEAVES,
};
/* igmp.c, mld.c: a frame of their kind taken in; one written, in the version given (0: the
 * newest). False: it cannot, or need not, be said. */
void igmp_rx(struct net *net, const struct frame *frame, uint64_t now);
bool igmp_write(const struct net_conf *conf, const uint8_t gid[16], enum group_say what,
	uint8_t version, struct pkt *frame);
void mld_rx(struct net *net, const struct frame *frame, uint64_t now);
bool mld_write(const struct net_conf *conf, const uint8_t gid[16], enum group_say what,
	uint8_t version, struct pkt *frame);

/* arp.c, nd.c, icmp.c: each takes a frame of its kind; true when reply holds an answer.
 */
bool arp_rx(struct net *net, const struct frame *frame, struct pkt *reply, uint64_t now);
bool icmp4_rx(struct net *net, const struct frame *frame, struct pkt *reply);
bool icmp6_rx(struct net *net, const struct frame *frame, struct pkt *reply, uint64_t now);

/* An ICMPv6 message whose lengths and checksum are right. */
struct icmp6 {
	const uint8_t *src;
	const uint8_t *dst;
	const uint8_t *msg;
	uint32_t len; /* 4 at least */
	uint8_t hop_limit;
};
bool nd_rx(struct net *net, const struct frame *frame, const struct icmp6 *in,
	struct pkt *reply, uint64_t now);

/* A question about gid to mac, or to all when mac is NULL; announcements of an address.
 */
bool arp_request(const struct net_conf *conf, const uint8_t gid[16], const uint8_t *mac,
	struct pkt *frame);
bool arp_announce(const struct net_conf *conf, const uint8_t gid[16], struct pkt *frame);
bool nd_solicit(const struct net_conf *conf, const uint8_t gid[16], const uint8_t *mac,
	struct pkt *frame);
bool nd_announce(const struct net_conf *conf, const uint8_t gid[16], struct pkt *frame);

#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136

#endif
