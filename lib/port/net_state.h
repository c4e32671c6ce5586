/* SPDX-License-Identifier: BSD-3-Clause */
/* The state behind net.h, for lib/port only. Each part of it belongs to one file. The
 * calls below are under its lock. */
#ifndef ROCADE_PORT_NET_STATE_H
#define ROCADE_PORT_NET_STATE_H

#include <rte_ticketlock.h>

#include "base/random.h"
#include "base/rate.h"
#include "port/neigh.h"
#include "port/net_group.h"

#define NET_ANNOUNCEMENTS 3
#define NET_ANNOUNCE_NS NS_PER_SEC

struct net {
	rte_ticketlock_t lock;
	uint32_t generation;
	uint64_t deadline_ns;
	struct wheel wheel;

	/* net.c */
	struct net_conf conf;
	struct wheel_timer announce_timer;
	uint8_t announce_left[NET_MAX_ADDRS];
	/* index of the next address to announce; addr_count: none in this round */
	unsigned announce_at;

	/* neigh.c. Entries whose request is due: the first one of a user, a further one
	 * of a user, a passive one. */
	struct neigh_list due_first, due_again, due_passive;
	struct neigh_list used; /* of users, and not failed; least recently used first */
	struct neigh_list failed;  /* of users, and failed */
	struct neigh_list passive; /* oldest first */
	struct neigh_list spare;
	struct rate request_rate, passive_rate;
	uint32_t passive_count;
	uint32_t neigh_size;         /* number of entries, and of buckets */
	uint32_t used_count;         /* entries[0..used_count) are or were in use */
	struct random_key table_key; /* of the hash of buckets */
	struct neigh **buckets;
	struct neigh *entries;

	/* neigh_sweep.c */
	uint32_t epoch;       /* changes with the addresses */
	uint32_t moved_epoch; /* entries of an earlier epoch are not valid any more */
	uint32_t sweep_at;    /* index of the next entry; UINT32_MAX: none */
	bool sweep_retries;   /* asks unreachable neighbours, too */

	/* neigh_user.c: those that have entries */
	LIST_HEAD(, net_user) users[NEIGH_USER_BUCKETS];
	uint64_t user_serial; /* the last one given */
	/* Entries that do not answer, of users that have ended; the longest ended one's first */
	struct neigh_charges abandoned;

	/* net_group.c */
	struct net_group_list groups_due;
	struct rate report_rate, query_rate;
	struct group_proto igmp, mld;
	uint32_t rand;
	uint32_t group_count; /* groups[0..group_count) are or were in use */
	struct net_group groups[NET_GROUPS];
};

/* Returns whether neigh_sweep() has something left. */
static inline bool
neigh_sweeps(const struct net *net)
{
	return net->sweep_at < net->used_count;
}

/* To be called when a neighbour's MAC or reachability, or an address, has changed. */
void net_generation_bump(struct net *net);
/* To be called before the lock is released, after a change of what is due. */
void net_deadline_update(struct net *net);

#endif
