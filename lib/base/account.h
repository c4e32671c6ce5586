/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accounts: what each user (uid) of the daemon holds of what all users share, over all
 * processes and connections of the user.
 *
 * Of each kind, a part is reserved for each of ACCOUNT_USERS users, and the rest is
 * shared. A user takes from the part reserved for it first, then from the shared rest. So
 * no ACCOUNT_USERS - 1 users together can keep another one from its reserved part.
 */
#ifndef ROCADE_BASE_ACCOUNT_H
#define ROCADE_BASE_ACCOUNT_H

#include <sys/queue.h>

#include "base/rate.h"

#define ACCOUNT_USERS 8  /* users for whom a part is reserved */
#define ACCOUNT_PARTS 16 /* such a part is this fraction of everything */

/* A user is told the reason of ACCOUNT_TOLD_BURST refused connections, and then of one each
 * ACCOUNT_TOLD_NS. */
#define ACCOUNT_TOLD_BURST 64
#define ACCOUNT_TOLD_NS (10 * NS_PER_SEC)
/* The same of all users together: what they do not read is memory of the daemon, however many uids a host gives
 * out. The first message of a user whose own burst is full counts in a second limit: users that are refused again
 * and again leave that to the others. */
#define ACCOUNT_TOLD_ALL_BURST 1024
#define ACCOUNT_TOLD_ALL_NS NS_PER_SEC

/* Accounts without holders that are kept. There are more only after as many users had one at once. */
#define ACCOUNT_KEPT 256

enum account_kind {
#define ACCOUNT(name, text) ACCOUNT_##name,
#include "base/account.def"
#undef ACCOUNT
	ACCOUNT_KINDS
};

extern const char *const account_names[ACCOUNT_KINDS];
extern const char *const account_texts[ACCOUNT_KINDS];

struct account_limit {
	uint32_t capacity; /* of all users together */
	uint32_t reserve;  /* for each user */
	uint32_t shared;   /* capacity without the reserves of ACCOUNT_USERS users */
	uint32_t shared_used;
	uint32_t used; /* by all users, with what they have of their reserves */
};

/* Is part of what waits for a user's time, of a type that only the caller knows. */
struct account_waiter {
	TAILQ_ENTRY(account_waiter) link;
};

struct account {
	TAILQ_ENTRY(account) link;
	struct accounts *all;
	uint32_t uid;
	uint32_t holders; /* references */
	/* Time that requests of the user have taken. control_ns: token bucket, as the
	 * time when the user may send requests again. Then the sum, and how many
	 * requests. The caller fills them in. */
	uint64_t control_ns;
	uint64_t control_total_ns;
	uint64_t control_round; /* in which the user had a turn, 0: none yet */
	uint64_t requests;
	struct rate told; /* refused connections that were told why. The caller takes */
	/* The user's waiters until then, the longest first, and the place among users who have
	 * waiters. The caller fills them in. */
	TAILQ_HEAD(, account_waiter) parked;
	TAILQ_ENTRY(account) parked_link;
	uint32_t held[ACCOUNT_KINDS];
	uint64_t refused[ACCOUNT_KINDS];
	/* 1 + the kind that account_take() last refused. The caller resets it, to learn why what
	 * it then does fails. */
	unsigned full;
};

struct accounts {
	TAILQ_HEAD(, account) users;
	struct rate told;       /* as account->told, of all users */
	struct rate told_first; /* of those that find account->told full */
	struct account_limit limits[ACCOUNT_KINDS];
};

/* Initialises a limit of which nothing is used. reserve: as for accounts_limit(). */
void account_limit_set(struct account_limit *limit, uint32_t capacity, bool reserve);
/* Takes n for a user who holds `held` of it. Returns false if the user may not. */
bool account_limit_take(struct account_limit *limit, uint32_t held, uint32_t n);
void account_limit_give(struct account_limit *limit, uint32_t held, uint32_t n);
/* Returns how much a user may hold while the others hold nothing. */
uint32_t account_limit_most(const struct account_limit *limit);

/* No kind has a limit until accounts_limit(). */
void accounts_init(struct accounts *all);
/* reserve: whether a part is reserved for each user. Without it, one user may hold
 * everything. */
void accounts_limit(
	struct accounts *all, enum account_kind kind, uint32_t capacity, bool reserve);
/* The same as account_limit_most(), of a kind. */
uint32_t accounts_most(const struct accounts *all, enum account_kind kind);
/* Returns the account in use with the lowest uid that is at least `from`, or NULL. */
const struct account *accounts_from(const struct accounts *all, uint32_t from);

/* Frees all accounts. None may have a holder. */
void accounts_fini(struct accounts *all);

/* Returns the user's account; NULL without memory. It lives until every holder has closed
 * it, control_ns is over and `told` is full: then a later call, for any user, frees it. Otherwise
 * a user could clear its buckets by connecting anew. While more than ACCOUNT_KEPT wait for that, each call
 * frees the one that would wait for the shortest time. */
struct account *account_open(struct accounts *all, uint32_t uid, uint64_t now);
/* One more holder. */
void account_hold(struct account *account);
void account_close(struct account *account);

/* Returns whether account_take() would take n. */
bool account_has_room(const struct account *account, enum account_kind kind, uint32_t n);
/* Takes n. Returns false, counts in `refused`, and sets `full`, if the user may not. account NULL:
 * nothing is limited or counted. */
bool account_take(struct account *account, enum account_kind kind, uint32_t n);
void account_give(struct account *account, enum account_kind kind, uint32_t n);

#endif
