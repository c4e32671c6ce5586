/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast group memberships. All calls are under the lock of struct net. They write no
 * frame: net.c asks which report is due. */
#ifndef ROCADE_PORT_NET_GROUP_H
#define ROCADE_PORT_NET_GROUP_H

#include <sys/queue.h>

#include "base/wheel.h"
#include "port/net.h"

#define NET_GROUPS (NET_MAX_GROUPS + NET_MAX_ADDRS)
#define GROUP_ROBUSTNESS 2 /* reports per change (RFC 3376 8.1) */
/* longest time between them (RFC 3376 8.11) */
#define GROUP_REPORT_INTERVAL_NS NS_PER_SEC
/* how long an older querier counts as present after a query (RFC 3376 8.12) */
#define GROUP_OLDER_QUERIER_NS (UINT64_C(260) * NS_PER_SEC)
/* Reports are sent at this rate, however many groups one query asks for, and queries are handled at this
 * rate. */
#define GROUP_RATE_NS (2 * NS_PER_MS)
#define GROUP_RATE_BURST 32

/* A multicast group that the port has joined, or has left with reports still to send. */
struct net_group {
	struct wheel_timer timer;    /* of the next report */
	TAILQ_ENTRY(net_group) link; /* in groups_due if due */
	uint8_t gid[16];
	uint16_t users;       /* joins less leaves; 0: left */
	uint8_t reports_left; /* reports of a change still to be sent */
	bool due;
	bool urgent; /* a change, or the answer to a query for this group alone */
	bool in_use;
};
TAILQ_HEAD(net_group_list, net_group);

/* State of a family's protocol, IGMP or MLD. */
struct group_proto {
	uint8_t version; /* version of an older querier: IGMP 1 or 2, MLD 1; 0: none */
	uint64_t until_ns;
};

enum group_report_type {
	GROUP_CURRENT_STATE, /* current state, the answer to a query */
	GROUP_JOINS,
	GROUP_LEAVES,
};

/* Called by net.c. */

void group_table_init(struct net *net);
/* Joins the solicited-node groups of conf's addresses. group_leave_nodes() leaves
 * them. */
void group_join_nodes(struct net *net, const struct net_conf *conf);
void group_leave_nodes(struct net *net, const struct net_conf *conf);
/* Schedules reports of all memberships. */
void group_announce(struct net *net);
void group_mark_due(struct net *net, struct net_group *g);
/* Returns the group whose report is to be sent now, within the rate limit; NULL: none. */
struct net_group *group_next_report(struct net *net, uint64_t now);
/* Advances a group that is due. Returns the report to be sent, in the protocol's given
 * version (0: the newest). */
enum group_report_type group_report_due(
	struct net *net, struct net_group *g, uint8_t *version, uint64_t now);

/* Called by igmp.c and mld.c. */

/* Handles a query for gid (NULL: all groups of the family), to be answered within max_ns.
 * version: the querier's, 0 if it is the newest. Returns DROP_none, or DROP_membership_rate: queries come
 * faster than reports may leave. */
enum drop_reason group_query_rx(struct net *net, const uint8_t *gid, bool ipv4,
	uint8_t version, uint64_t max_ns, uint64_t now);
/* Handles another host's report, of an older protocol version. */
void group_report_rx(struct net *net, const uint8_t gid[16], uint64_t now);

#endif
