/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table. All calls are under the lock of struct net. The table writes no
 * frame: net.c asks it what to request. */
#ifndef ROCADE_PORT_NEIGH_H
#define ROCADE_PORT_NEIGH_H

#include "base/wheel.h"
#include "port/net.h"

#define NET_MAX_PASSIVE 256 /* entries that no user has asked for */
#define NEIGH_USER_BUCKETS 1024
/* Limits of one net_tx(), however many neighbours there are: entries that a change of the
 * addresses concerns; timers. */
#define NEIGH_SWEEP_BATCH 64
#define NEIGH_TIMER_MOVES 4096
#define NEIGH_TIMERS_BATCH 128
#define NEIGH_UNICAST_TRIES 3 /* a neighbour that is known is first asked by unicast */
/* An entry that no user has resolved for this long may be replaced. Longer than
 * NEIGH_REFRESH_NS: a user who has cached the MAC resolves it again about that often. */
#define NEIGH_IDLE_NS (2 * NEIGH_REFRESH_NS)
/* an unreachable neighbour that no user has resolved for this long is forgotten */
#define NEIGH_FORGET_NS (20 * NS_PER_SEC)
#define NEIGH_FAILED_MAX_NS (60 * NS_PER_SEC) /* longest interval of its requests */
/* Another MAC is claimed for a known neighbour: this many requests to the known one, in
 * these intervals, have to remain unanswered first. */
#define NEIGH_CLAIM_TRIES 2
#define NEIGH_CLAIM_NS (50 * NS_PER_MS)
/* If this host itself has not run for this much longer than the interval, an answer may
 * have come and been lost: the request is repeated, this often at most. */
#define NEIGH_CLAIM_LATE_NS (10 * NS_PER_MS)
#define NEIGH_CLAIM_LATE_TRIES 8
/* shortest time between two claims that are looked at */
#define NEIGH_CLAIM_LOCK_NS NS_PER_SEC
/* Requests for wanted neighbours of a table of NET_NEIGHS entries: a larger one asks, and
 * confirms, more often. Then requests for passive ones. */
#define NEIGH_RATE_NS (2 * NS_PER_MS)
#define NEIGH_RATE_BURST 512
#define NEIGH_PASSIVE_RATE_NS (20 * NS_PER_MS)
#define NEIGH_PASSIVE_RATE_BURST 32

/* As in RFC 4861 7.3.2. */
enum neigh_state {
	NEIGH_INCOMPLETE, /* asked for; the MAC is not known */
	NEIGH_REACHABLE,
	NEIGH_STALE, /* the MAC is used; the next user makes it PROBE */
	NEIGH_PROBE, /* the MAC is used, and the neighbour asked to confirm it */
	NEIGH_FAILED,
};

struct neigh {
	/* INCOMPLETE, PROBE, FAILED: of the next request; REACHABLE: of the check whether
	 * it is used */
	struct wheel_timer timer;
	TAILQ_ENTRY(neigh) link;
	/* the list that contains it: one of those that are due, spare; NULL: none */
	struct neigh_list *list;
	TAILQ_ENTRY(neigh) use_link;
	struct neigh_list *use_list; /* passive, used or failed; NULL: not in the table */
	TAILQ_ENTRY(neigh) user_link;
	uint64_t user;         /* serial of the user it is charged to; 0: none */
	struct neigh *chain;   /* next in the same bucket */
	uint64_t confirmed_ns; /* TIME_NEVER: never */
	uint64_t used_ns;      /* last net_resolve() */
	uint64_t reachable_ns; /* since when it has been REACHABLE */
	uint64_t asked_ns;     /* last request */
	uint64_t ask_ns;       /* FAILED: next request */
	uint64_t claim_ns;     /* from when on a claim is looked at */
	uint32_t epoch;        /* of the addresses for which it is known to be on-link */
	uint8_t gid[16];
	uint8_t mac[6];
	uint8_t claim_mac[6];
	uint8_t state;
	uint8_t tries;
	uint8_t late_tries; /* claimed: requests repeated because this host did not run */
	bool wanted;        /* net_resolve() has asked for it; else it is passive */
	bool claimed;       /* PROBE: because claim_mac is claimed for it */
};

/* Called by net.c. */

/* size: the number of entries. Returns 0 or -ENOMEM. */
int neigh_table_init(struct net *net, uint32_t size);
void neigh_table_fini(struct net *net);
/* The addresses have changed: entries that are no longer on-link, or all entries, are not valid
 * any more. NEIGH_SWEEP_BATCH of them are dropped at once, the others by neigh_sweep(), and
 * meanwhile when they are met. */
void neigh_flush(struct net *net, bool all);
/* Goes on with what neigh_flush() and neigh_retry_failed() have begun. */
void neigh_sweep(struct net *net);
/* The timer of an entry has fired. */
void neigh_timer_fired(struct net *net, struct neigh *e, uint64_t now);
/* Asks all unreachable neighbours again: NEIGH_SWEEP_BATCH entries at once, the others by
 * neigh_sweep(). */
void neigh_retry_failed(struct net *net);
/* Returns the entry that the next request is for, within the rate limits; NULL if there
 * is none now. Returns in *mac where to send it, NULL: to all. */
struct neigh *neigh_next_request(struct net *net, const uint8_t **mac, uint64_t now);

/* Called by arp.c and nd.c. */

struct neigh *neigh_find(struct net *net, const uint8_t gid[16]);
/* Whether a MAC is known and used. */
bool neigh_is_known(const struct neigh *e);
/* Whether an answer is outstanding. */
bool neigh_is_asked(const struct neigh *e);
/* Records that gid was seen at mac. learn: also adds an unknown gid, because it sent to
 * us. */
void neigh_seen(struct net *net, const uint8_t gid[16], const uint8_t mac[6], bool learn,
	uint64_t now);

/* Called by neigh_state.c and neigh_resolve.c. */

/* Adds an entry that is INCOMPLETE. Returns NULL if all entries are in use. */
struct neigh *neigh_add(
	struct net *net, const uint8_t gid[16], bool wanted, uint64_t now);
void neigh_drop(struct net *net, struct neigh *e);
void neigh_state_set(struct net *net, struct neigh *e, enum neigh_state state);
void neigh_promote(struct net *net, struct neigh *e, enum neigh_state state);
void neigh_charge(struct net *net, struct neigh *e, struct net_user *user);
/* Changes the state of the entry, and what its user is charged for. */
void neigh_charge_state(struct net *net, struct neigh *e, enum neigh_state state);
bool neigh_is_unresolved(const struct neigh *e);
/* Returns the user that the entry is charged to; NULL: none, or it is gone. */
struct net_user *neigh_user(const struct net *net, const struct neigh *e);
/* Its user is gone, and no other has asked for it since: no more requests once they have failed. */
bool neigh_is_abandoned(const struct net *net, const struct neigh *e);
void neigh_touch(struct net *net, struct neigh *e, uint64_t now);
/* Returns whether the entry is still valid. neigh_check() drops it if it is not. */
bool neigh_is_valid(const struct net *net, const struct neigh *e);
bool neigh_check(struct net *net, struct neigh *e);
bool neigh_is_idle(const struct neigh *e, uint64_t now);
void neigh_mark_due(struct net *net, struct neigh *e);
void neigh_mark_idle(struct neigh *e);
/* Starts asking a known neighbour to confirm its MAC. */
void neigh_probe(struct net *net, struct neigh *e);
/* A user has resolved a STALE entry. */
void neigh_use_stale(struct net *net, struct neigh *e, uint64_t now);

#endif
