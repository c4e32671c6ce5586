/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table. All calls are under the lock of struct net. The table writes no
 * frame: net.c asks it what to request. */
#ifndef ROCADE_PORT_NEIGH_H
#define ROCADE_PORT_NEIGH_H

#include <sys/queue.h>

#include "base/wheel.h"
#include "port/net.h"

#define NET_MAX_LEARNED 256 /* entries that were learned, not resolved */
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

/* Called by net.c. */

void neigh_table_init(struct net *net);
/* Drops the entries that are no longer on-link, or all entries. */
void neigh_flush(struct net *net, bool all);
void neigh_mark_due(struct net *net, struct neigh *e);
/* Advances an entry that is due. Returns true if a request is to be sent, to *mac, or to
 * all if that is NULL. */
bool neigh_request_due(
	struct net *net, struct neigh *e, const uint8_t **mac, uint64_t now);

/* Called by arp.c and nd.c. */

struct neigh *neigh_find(struct net *net, const uint8_t gid[16]);
/* Records that gid was seen at mac. learn: also adds an unknown gid, because it sent to
 * us. */
void neigh_seen(struct net *net, const uint8_t gid[16], const uint8_t mac[6], bool learn,
	uint64_t now);

#endif
