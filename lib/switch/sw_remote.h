/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs of other hosts that are registered as peers. Each belongs to one user at a time:
 * packets to a connected QP do not name the QP that sent them, so a client of another
 * user could send into the connection. A remote QP that is no longer registered stays its
 * user's for SW_REMOTE_WAIT_NS (it waits), because the other host may not know yet that
 * the connection has ended.
 *
 * The service is no part of a remote QP's name: a QPN has one QP of one service.
 */
#ifndef ROCADE_SWITCH_SW_REMOTE_H
#define ROCADE_SWITCH_SW_REMOTE_H

#include <sys/queue.h>

#include "base/common.h"
#include "base/random.h"

#define SW_REMOTE_WAIT_NS (60 * NS_PER_SEC)
/* Most that wait, of all users. Beyond that the user with the most loses its oldest. */
#define SW_REMOTES_WAITING 65536

struct sw_remote_owner;

struct sw_remote {
	LIST_ENTRY(sw_remote) link;       /* in its bucket */
	TAILQ_ENTRY(sw_remote) wait_link; /* in owner->waiting, if it waits */
	struct sw_remote_owner *owner;
	uint32_t
		holder; /* the client that has it, where its owner is not one user; else 0 */
	uint64_t free_ns; /* if it waits: since when */
	uint8_t gid[16];
	uint32_t qpn;
	uint32_t qps; /* that have registered it; 0: it waits */
};

/* A user's share of the remote QPs. */
struct sw_remote_owner {
	LIST_ENTRY(sw_remote_owner) link; /* in sw_remotes.owners */
	TAILQ_HEAD(, sw_remote) waiting;  /* oldest first */
	uint32_t waiting_count;
};

LIST_HEAD(sw_remote_list, sw_remote);

struct sw_remotes {
	struct sw_remote_list *buckets;
	struct random_key key;
	LIST_HEAD(, sw_remote_owner) owners; /* those with a remote QP that waits */
	uint32_t waiting_count;
};

/* Returns 0 or -ENOMEM. */
int sw_remotes_init(struct sw_remotes *t, const struct random_key *random);
void sw_remotes_fini(struct sw_remotes *t);

void sw_remote_owner_init(struct sw_remote_owner *owner);
/* Forgets the owner's remote QPs, which all wait. */
void sw_remote_owner_fini(struct sw_remotes *t, struct sw_remote_owner *owner);

/* Registers a remote QP for one more QP of the owner's. Returns 0, -EADDRINUSE (it
 * belongs to another owner, or another holder) or -ENOMEM. */
int sw_remote_get(struct sw_remotes *t, struct sw_remote_owner *owner, uint32_t holder,
	const uint8_t gid[16], uint32_t qpn, uint64_t now, struct sw_remote **out);
void sw_remote_put(struct sw_remotes *t, struct sw_remote *remote, uint64_t now);

#endif
