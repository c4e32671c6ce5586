/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbour table: lookup, limits, replacement.
 *
 * An entry is wanted once a user has asked for it by net_resolve(). It is charged to that
 * user, whose number of entries is limited. When the table is full, a wanted entry is
 * replaced if the neighbour does not answer, first if its user has ended, or if no user has
 * resolved it for long. The other entries are passive: their hosts have sent to us, and no
 * user has asked for them. Their number is small, the oldest is replaced first, and they
 * replace no wanted one, except those that do not answer and whose user has ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/net_addr.h"
#include "port/net_state.h"

/* ---- Lookup ---- */

/* Users choose the addresses that have entries. The key of the hash is secret: they cannot make one chain
 * of all of theirs, which each lookup would walk. */
static struct neigh **
neigh_bucket(struct net *net, const uint8_t gid[16])
{
	return &net->buckets[siphash24(&net->table_key, gid, 16) & (net->neigh_size - 1)];
}

struct neigh *
neigh_find(struct net *net, const uint8_t gid[16])
{
	struct neigh *e = *neigh_bucket(net, gid);

	while (e != NULL && memcmp(e->gid, gid, 16) != 0)
		e = e->chain;
	return e != NULL && neigh_check(net, e) ? e : NULL;
}

/* ---- Validity ---- */

bool
neigh_is_valid(const struct net *net, const struct neigh *e)
{
	if (e->epoch == net->epoch)
		return true;
	/* Modulo 2^32: no entry is older than the last sweep. */
	return (int32_t)(e->epoch - net->moved_epoch) >= 0 &&
	       net_is_onlink(&net->conf, e->gid) && !net_is_ours(&net->conf, e->gid);
}

bool
neigh_check(struct net *net, struct neigh *e)
{
	if (!neigh_is_valid(net, e)) {
		neigh_drop(net, e);
		return false;
	}
	e->epoch = net->epoch;
	return true;
}

/* ---- Lists ---- */

static void
neigh_link(struct neigh *e, struct neigh_list *list)
{
	if (e->list != NULL)
		TAILQ_REMOVE(e->list, e, link);
	e->list = list;
	if (list != NULL)
		TAILQ_INSERT_TAIL(list, e, link);
}

static void
neigh_use_link(struct neigh *e, struct neigh_list *list)
{
	if (e->use_list != NULL)
		TAILQ_REMOVE(e->use_list, e, use_link);
	e->use_list = list;
	if (list != NULL)
		TAILQ_INSERT_TAIL(list, e, use_link);
}

void
neigh_touch(struct net *net, struct neigh *e, uint64_t now)
{
	e->used_ns = now;
	neigh_use_link(e, e->use_list);
	neigh_charge(net, e, neigh_user(net, e));
}

bool
neigh_is_idle(const struct neigh *e, uint64_t now)
{
	return now > e->used_ns && now - e->used_ns > NEIGH_IDLE_NS;
}

void
neigh_state_set(struct net *net, struct neigh *e, enum neigh_state state)
{
	struct neigh_list *list = state == NEIGH_FAILED ? &net->failed : &net->used;

	neigh_charge_state(net, e, state);
	if (!e->wanted)
		list = &net->passive;
	if (e->use_list != list)
		neigh_use_link(e, list);
}

void
neigh_mark_due(struct net *net, struct neigh *e)
{
	bool first = e->state == NEIGH_INCOMPLETE && e->tries == 0;

	wheel_cancel(&net->wheel, &e->timer);
	neigh_link(e, !e->wanted ? &net->due_passive
		      : first    ? &net->due_first
				 : &net->due_again);
}

void
neigh_mark_idle(struct neigh *e)
{
	neigh_link(e, NULL);
}

/* ---- Adding and dropping ---- */

void
neigh_drop(struct net *net, struct neigh *e)
{
	struct neigh **at = neigh_bucket(net, e->gid);

	while (*at != e)
		at = &(*at)->chain;
	*at = e->chain;
	wheel_cancel(&net->wheel, &e->timer);
	if (!e->wanted)
		net->passive_count--;
	neigh_charge(net, e, NULL);
	neigh_use_link(e, NULL);
	neigh_link(e, &net->spare);
}

/* Chooses the wanted entry to be replaced: the least recently used of the unreachable
 * ones, else one that is not in use. NULL if there is none. */
static struct neigh *
neigh_victim(const struct net *net, uint64_t now)
{
	struct neigh *e = TAILQ_FIRST(&net->failed);

	if (e != NULL)
		return e;
	e = TAILQ_FIRST(&net->used);
	return e != NULL && neigh_is_idle(e, now) ? e : NULL;
}

static void
neigh_evict(struct net *net, struct neigh *e)
{
	neigh_drop(net, e);
	/* Users of the evicted MAC resolve again. */
	net_generation_bump(net);
}

/* Of users that come, ask, and end, again and again: each new entry takes the place of two of
 * theirs, until they have no more than a user may have. */
static void
abandoned_trim(struct net *net)
{
	for (unsigned i = 0; i < 2 && net->abandoned.count > NET_USER_UNRESOLVED; i++)
		neigh_evict(net, TAILQ_FIRST(&net->abandoned.list));
}

/* Returns an entry that is in no list: never used, spare, or evicted. NULL if all are in
 * use. */
static struct neigh *
neigh_alloc(struct net *net, bool wanted, uint64_t now)
{
	struct neigh *e = TAILQ_FIRST(&net->passive);

	abandoned_trim(net);
	if (!wanted && net->passive_count >= NET_MAX_PASSIVE) {
		neigh_drop(net, e);
	} else if (TAILQ_EMPTY(&net->spare) && net->used_count < net->neigh_size) {
		return &net->entries[net->used_count++];
	} else if (TAILQ_EMPTY(&net->spare) && net->abandoned.count != 0) {
		neigh_evict(net, TAILQ_FIRST(&net->abandoned.list));
	} else if (TAILQ_EMPTY(&net->spare) && e != NULL) {
		neigh_drop(net, e);
	} else if (TAILQ_EMPTY(&net->spare) && wanted) {
		e = neigh_victim(net, now);
		if (e == NULL)
			return NULL;
		neigh_evict(net, e);
	}
	e = TAILQ_FIRST(&net->spare);
	if (e != NULL)
		neigh_link(e, NULL);
	return e;
}

struct neigh *
neigh_add(struct net *net, const uint8_t gid[16], bool wanted, uint64_t now)
{
	struct neigh *e = neigh_alloc(net, wanted, now);
	struct neigh **bucket = neigh_bucket(net, gid);

	if (e == NULL)
		return NULL;
	memset(e, 0, sizeof(*e));
	wheel_timer_init(&e->timer);
	memcpy(e->gid, gid, 16);
	e->confirmed_ns = TIME_NEVER;
	e->used_ns = now;
	e->wanted = wanted;
	e->epoch = net->epoch;
	e->chain = *bucket;
	*bucket = e;
	if (!wanted)
		net->passive_count++;
	neigh_state_set(net, e, NEIGH_INCOMPLETE);
	return e;
}

void
neigh_promote(struct net *net, struct neigh *e, enum neigh_state state)
{
	wheel_cancel(&net->wheel, &e->timer);
	net->passive_count--;
	e->wanted = true;
	e->tries = 0;
	neigh_state_set(net, e, state);
}

int
neigh_table_init(struct net *net, uint32_t size)
{
	/* Unused entries cost no memory: calloc() does not touch their pages. */
	net->entries = calloc(size, sizeof(*net->entries));
	net->buckets = calloc(size, sizeof(*net->buckets));
	if (net->entries == NULL || net->buckets == NULL) {
		neigh_table_fini(net);
		return -ENOMEM;
	}
	net->neigh_size = size;
	net->sweep_at = UINT32_MAX;
	TAILQ_INIT(&net->due_first);
	TAILQ_INIT(&net->due_again);
	TAILQ_INIT(&net->due_passive);
	TAILQ_INIT(&net->used);
	TAILQ_INIT(&net->failed);
	TAILQ_INIT(&net->passive);
	TAILQ_INIT(&net->abandoned.list);
	TAILQ_INIT(&net->spare);
	rate_init(&net->request_rate,
		NEIGH_RATE_NS * NET_NEIGHS / RTE_MAX(size, (uint32_t)NET_NEIGHS),
		NEIGH_RATE_BURST);
	rate_init(&net->passive_rate, NEIGH_PASSIVE_RATE_NS, NEIGH_PASSIVE_RATE_BURST);
	return 0;
}

void
neigh_table_fini(struct net *net)
{
	free(net->entries);
	free(net->buckets);
}

uint32_t
net_neighs(const struct net *net)
{
	return net->neigh_size;
}

size_t
net_neigh_size(void)
{
	return sizeof(struct neigh) + sizeof(struct neigh *);
}

/* ---- Statistics ---- */

#define EACH_BATCH 256 /* entries for which the lock is held at a time */

static void
neigh_tell(const struct net *net, const struct neigh *e, uint64_t now,
	void (*fn)(const struct neigh_info *, void *), void *arg)
{
	static const char *const names[] = {
		[NEIGH_INCOMPLETE] = "incomplete",
		[NEIGH_REACHABLE] = "reachable",
		[NEIGH_STALE] = "stale",
		[NEIGH_PROBE] = "probe",
		[NEIGH_FAILED] = "failed",
	};
	struct neigh_info info = {.state = names[e->state], .age_ns = TIME_NEVER};

	if (e->list == &net->spare || !neigh_is_valid(net, e))
		return;
	memcpy(info.gid, e->gid, 16);
	memcpy(info.mac, e->mac, 6);
	if (e->confirmed_ns != TIME_NEVER)
		info.age_ns = now > e->confirmed_ns ? now - e->confirmed_ns : 0;
	fn(&info, arg);
}

void
net_each(struct net *net, uint64_t now, void (*fn)(const struct neigh_info *, void *),
	void *arg)
{
	bool more = true;

	for (uint32_t i = 0; more;) {
		rte_ticketlock_lock(&net->lock);
		for (uint32_t end = i + EACH_BATCH; i < end && i < net->used_count; i++)
			neigh_tell(net, &net->entries[i], now, fn, arg);
		more = i < net->used_count;
		rte_ticketlock_unlock(&net->lock);
	}
}
