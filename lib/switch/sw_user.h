/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Users (uids) of the clients: what is accounted over all clients of a user. A user is
 * remembered for a while after its last client, so that a client gains nothing when it
 * attaches anew.
 */
#ifndef ROCADE_SWITCH_SW_USER_H
#define ROCADE_SWITCH_SW_USER_H

#include "base/rate.h"
#include "port/net.h"
#include "switch/sw_remote.h"
#include "switch/sw_thread.h"

/*
 * Limits for how long the full rings of a user's clients may block senders of other
 * users: 1 % of the time, and 2 us for each packet that a client with a full ring takes,
 * about what it needs to process the packet. A user saves up what it does not use, at
 * most SW_HOLD_MAX_NS. So a receiver that keeps its ring full on purpose costs the
 * senders little more than one that takes its packets.
 */
#define SW_HOLD_MAX_NS (200 * NS_PER_MS)
#define SW_HOLD_SHARE 100 /* 1 / share of the time */
#define SW_HOLD_PACKET_NS (2 * NS_PER_US)
/* time beyond this since the last call is not charged: the daemon itself did not run */
#define SW_HOLD_STEP_NS NS_PER_MS

/* Other hosts that a user's clients may have the daemon ask for their extensions: one per
 * interval, and a burst. */
#define SW_EXT_QUERY_NS (125 * NS_PER_MS)
#define SW_EXT_QUERY_BURST 16

#define SW_USER_KEPT_NS (60 * NS_PER_SEC) /* after the last client of a user */
#define SW_USERS_KEPT 65536               /* without clients; the oldest is forgotten */
#define SW_USER_BUCKETS 1024

struct sw_hold {
	/* each ns earns 1; a ns for which senders are blocked costs SW_HOLD_SHARE */
	uint64_t credit;
	uint64_t changed_ns; /* when credit was last changed */
};

struct sw_user {
	LIST_ENTRY(sw_user) link;       /* in its bucket */
	TAILQ_ENTRY(sw_user) kept_link; /* if it has no clients */
	struct sw_remote_owner remotes;
	uint32_t uid;
	uint32_t clients;
	uint64_t kept_ns; /* without clients: when the last one left */
	struct sw_hold holds[SW_THREADS_MAX]; /* of its clients, by their thread */
	uint32_t waiting[SW_THREADS_MAX];     /* packets of its clients (sw_wait.h) */
	/* neighbours that the daemon's port resolves for this user's clients */
	struct net_user neighs;
	struct rate ext_rate; /* of hosts that are asked for their extensions */
};

struct sw_users {
	LIST_HEAD(, sw_user) buckets[SW_USER_BUCKETS]; /* by uid */
	TAILQ_HEAD(, sw_user) kept;                    /* without clients, oldest first */
	uint32_t kept_count;
	struct sw_remotes remotes;
};

/* Returns 0 or -ENOMEM. */
int sw_users_init(struct sw_users *users, const struct random_key *random);
void sw_users_fini(struct sw_users *users);

/* Returns the user of a new client; NULL without memory. sw_user_put(): the client
 * ends. */
struct sw_user *sw_user_get(struct sw_users *users, uint32_t uid, uint64_t now);
/* Returns NULL if the switch does not know the user. */
const struct sw_user *sw_user_find(const struct sw_users *users, uint32_t uid);
void sw_user_put(struct sw_users *users, struct sw_user *user, uint64_t now);

/* The full ring of a user's client would block a sender of another user. hold: of the user, for
 * the client's thread. taken: packets that the client has taken since the last call. Returns
 * whether it may. */
bool sw_user_hold(struct sw_hold *hold, uint32_t taken, uint64_t now);

#endif
