/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/account.h"
#include "base/base_alloc.h"

const char *const account_names[ACCOUNT_KINDS] = {
#define ACCOUNT(name, text) #name,
#include "base/account.def"
#undef ACCOUNT
};

const char *const account_texts[ACCOUNT_KINDS] = {
#define ACCOUNT(name, text) text,
#include "base/account.def"
#undef ACCOUNT
};

/* Returns how much of `held` is not the user's own part. */
static uint32_t
beyond_reserve(const struct account_limit *limit, uint32_t held)
{
	return held - RTE_MIN(held, limit->reserve);
}

static void
capacity_set(struct account_limit *limit, uint32_t capacity, bool reserve)
{
	limit->capacity = capacity;
	limit->reserve = reserve ? capacity / ACCOUNT_PARTS : 0;
	limit->shared = capacity - ACCOUNT_USERS * limit->reserve;
}

void
account_limit_set(struct account_limit *limit, uint32_t capacity, bool reserve)
{
	*limit = (struct account_limit){.used = 0};
	capacity_set(limit, capacity, reserve);
}

/* Returns how much of n more is taken from the shared rest. */
static uint32_t
shared_part(const struct account_limit *limit, uint32_t held, uint32_t n)
{
	return beyond_reserve(limit, held + n) - beyond_reserve(limit, held);
}

static bool
has_room(const struct account_limit *limit, uint32_t held, uint32_t n)
{
	uint32_t more = shared_part(limit, held, n);

	return (uint64_t)limit->used + n <= limit->capacity &&
	       (more == 0 || (uint64_t)limit->shared_used + more <= limit->shared);
}

bool
account_limit_take(struct account_limit *limit, uint32_t held, uint32_t n)
{
	if (!has_room(limit, held, n))
		return false;
	limit->shared_used += shared_part(limit, held, n);
	limit->used += n;
	return true;
}

void
account_limit_give(struct account_limit *limit, uint32_t held, uint32_t n)
{
	assert(held >= n);
	limit->shared_used -=
		beyond_reserve(limit, held) - beyond_reserve(limit, held - n);
	limit->used -= n;
}

uint32_t
account_limit_most(const struct account_limit *limit)
{
	return limit->shared + limit->reserve;
}

void
accounts_init(struct accounts *all)
{
	TAILQ_INIT(&all->users);
	rate_init(&all->told, ACCOUNT_TOLD_ALL_NS, ACCOUNT_TOLD_ALL_BURST);
	rate_init(&all->told_first, ACCOUNT_TOLD_ALL_NS, ACCOUNT_TOLD_ALL_BURST);
	for (unsigned kind = 0; kind < ACCOUNT_KINDS; kind++)
		account_limit_set(&all->limits[kind], UINT32_MAX, false);
}

void
accounts_limit(
	struct accounts *all, enum account_kind kind, uint32_t capacity, bool reserve)
{
	struct account_limit *limit = &all->limits[kind];
	const struct account *account;

	capacity_set(limit, capacity, reserve);
	limit->shared_used = 0;
	/* Users that hold more than a new limit keep it. */
	TAILQ_FOREACH (account, &all->users, link)
		limit->shared_used += beyond_reserve(limit, account->held[kind]);
}

uint32_t
accounts_most(const struct accounts *all, enum account_kind kind)
{
	return account_limit_most(&all->limits[kind]);
}

const struct account *
accounts_from(const struct accounts *all, uint32_t from)
{
	const struct account *account, *best = NULL;

	TAILQ_FOREACH (account, &all->users, link) {
		if (account->holders != 0 && account->uid >= from &&
			(best == NULL || account->uid < best->uid))
			best = account;
	}
	return best;
}

static void
account_free(struct account *account)
{
	assert(account->holders == 0);
	TAILQ_REMOVE(&account->all->users, account, link);
	alloc_put(&alloc_plain, account, sizeof(*account));
}

void
accounts_fini(struct accounts *all)
{
	while (!TAILQ_EMPTY(&all->users))
		account_free(TAILQ_FIRST(&all->users));
}

/* Returns when the user's buckets are full. */
static uint64_t
account_full_ns(const struct account *account)
{
	return RTE_MAX(account->control_ns, account->told.full_ns);
}

/* Frees the accounts without holders whose buckets are full. Of more than ACCOUNT_KEPT others the first one that
 * would be full goes, but for that of uid, which connects. */
static void
unused_free(struct accounts *all, uint32_t uid, uint64_t now)
{
	struct account *account, *next, *first = NULL;
	unsigned kept = 0;

	for (account = TAILQ_FIRST(&all->users); account != NULL; account = next) {
		next = TAILQ_NEXT(account, link);
		if (account->holders != 0)
			continue;
		if (account_full_ns(account) <= now) {
			account_free(account);
			continue;
		}
		kept++;
		if (account->uid != uid &&
			(first == NULL ||
				account_full_ns(account) < account_full_ns(first)))
			first = account;
	}
	if (kept > ACCOUNT_KEPT)
		account_free(first);
}

struct account *
account_open(struct accounts *all, uint32_t uid, uint64_t now)
{
	struct account *account;

	unused_free(all, uid, now);
	TAILQ_FOREACH (account, &all->users, link) {
		if (account->uid == uid) {
			account->holders++;
			return account;
		}
	}
	account = alloc_get(&alloc_plain, "account", sizeof(*account));
	if (account == NULL)
		return NULL;
	account->all = all;
	account->uid = uid;
	account->holders = 1;
	rate_init(&account->told, ACCOUNT_TOLD_NS, ACCOUNT_TOLD_BURST);
	TAILQ_INIT(&account->parked);
	TAILQ_INSERT_TAIL(&all->users, account, link);
	return account;
}

void
account_hold(struct account *account)
{
	account->holders++;
}

void
account_close(struct account *account)
{
	if (--account->holders != 0)
		return;
	for (unsigned kind = 0; kind < ACCOUNT_KINDS; kind++)
		assert(account->held[kind] == 0);
}

bool
account_has_room(const struct account *account, enum account_kind kind, uint32_t n)
{
	return has_room(&account->all->limits[kind], account->held[kind], n);
}

bool
account_take(struct account *account, enum account_kind kind, uint32_t n)
{
	if (account == NULL)
		return true;
	if (!account_limit_take(&account->all->limits[kind], account->held[kind], n)) {
		account->refused[kind]++;
		account->full = 1u + kind;
		return false;
	}
	account->held[kind] += n;
	return true;
}

void
account_give(struct account *account, enum account_kind kind, uint32_t n)
{
	if (account == NULL)
		return;
	account_limit_give(&account->all->limits[kind], account->held[kind], n);
	account->held[kind] -= n;
}
