/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbour table. An entry is wanted once net_resolve() has asked for it. A wanted
 * entry is requested until it answers and then confirmed periodically for as long as it
 * exists, because users of its MAC resolve again only when the generation changes. The
 * other entries were learned from hosts that sent to us: their number is small, the
 * oldest is replaced first, and nothing is sent to them.
 */
#include <errno.h>
#include <string.h>

#include "port/net_addr.h"
#include "port/net_state.h"

static struct neigh **
neigh_bucket(struct net *net, const uint8_t gid[16])
{
	uint64_t high, low;

	memcpy(&high, gid, 8);
	memcpy(&low, gid + 8, 8);
	low ^= high * UINT64_C(0x9e3779b97f4a7c15);
	low *= UINT64_C(0xbf58476d1ce4e5b9);
	return &net->buckets[(low >> 32) % NEIGH_BUCKETS];
}

static void
neigh_link(struct neigh *e, struct neigh_list *list)
{
	if (e->list != NULL)
		TAILQ_REMOVE(e->list, e, link);
	e->list = list;
	if (list != NULL)
		TAILQ_INSERT_TAIL(list, e, link);
}

struct neigh *
neigh_find(struct net *net, const uint8_t gid[16])
{
	struct neigh *e = *neigh_bucket(net, gid);

	while (e != NULL && memcmp(e->gid, gid, 16) != 0)
		e = e->chain;
	return e;
}

static void
neigh_drop(struct net *net, struct neigh *e)
{
	struct neigh **at = neigh_bucket(net, e->gid);

	while (*at != e)
		at = &(*at)->chain;
	*at = e->chain;
	wheel_cancel(&net->wheel, &e->timer);
	if (!e->wanted)
		net->learned_count--;
	neigh_link(e, &net->spare);
}

/* Chooses the wanted entry to be replaced: the least recently used of the failed ones,
 * else of those not resolved for NEIGH_IDLE_NS. NULL if there is none. */
static struct neigh *
neigh_victim(struct net *net, uint64_t now)
{
	struct neigh *best = NULL;

	for (uint32_t i = 0; i < net->used; i++) {
		struct neigh *e = &net->entries[i];
		bool idle = now > e->used_ns && now - e->used_ns > NEIGH_IDLE_NS;

		if (e->list == &net->spare || !e->wanted)
			continue;
		if (e->state != NEIGH_FAILED && !idle)
			continue;
		if (best == NULL ||
			(e->state == NEIGH_FAILED && best->state != NEIGH_FAILED) ||
			((e->state == NEIGH_FAILED) == (best->state == NEIGH_FAILED) &&
				e->used_ns < best->used_ns))
			best = e;
	}
	return best;
}

/* Returns an entry that is in no list: never used, spare, or evicted. NULL if all are in
 * use. */
static struct neigh *
neigh_alloc(struct net *net, bool wanted, uint64_t now)
{
	struct neigh *e = TAILQ_FIRST(&net->learned);

	if (!wanted && net->learned_count >= NET_MAX_LEARNED) {
		neigh_drop(net, e);
	} else if (TAILQ_EMPTY(&net->spare) && net->used < NET_MAX_NEIGHS) {
		return &net->entries[net->used++];
	} else if (TAILQ_EMPTY(&net->spare) && e != NULL) {
		neigh_drop(net, e);
	} else if (TAILQ_EMPTY(&net->spare) && wanted) {
		e = neigh_victim(net, now);
		if (e == NULL)
			return NULL;
		neigh_drop(net, e);
		/* Users of the evicted MAC resolve again. */
		net_generation_bump(net);
	}
	e = TAILQ_FIRST(&net->spare);
	if (e != NULL)
		neigh_link(e, NULL);
	return e;
}

static struct neigh *
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
	e->chain = *bucket;
	*bucket = e;
	if (!wanted) {
		net->learned_count++;
		neigh_link(e, &net->learned);
	}
	return e;
}

void
neigh_table_init(struct net *net)
{
	TAILQ_INIT(&net->due);
	TAILQ_INIT(&net->learned);
	TAILQ_INIT(&net->spare);
}

void
neigh_flush(struct net *net, bool all)
{
	for (uint32_t i = 0; i < net->used; i++) {
		struct neigh *e = &net->entries[i];

		if (e->list == &net->spare)
			continue;
		if (all || !net_is_onlink(&net->conf, e->gid) ||
			net_is_ours(&net->conf, e->gid))
			neigh_drop(net, e);
	}
}

void
neigh_mark_due(struct net *net, struct neigh *e)
{
	wheel_cancel(&net->wheel, &e->timer);
	neigh_link(e, &net->due);
}

void
neigh_seen(struct net *net, const uint8_t gid[16], const uint8_t mac[6], bool learn,
	uint64_t now)
{
	struct neigh *e = neigh_find(net, gid);
	bool changed;

	if (e == NULL) {
		if (!learn || !net_is_onlink(&net->conf, gid) ||
			net_is_broadcast(&net->conf, gid))
			return;
		e = neigh_add(net, gid, false, now);
		if (e == NULL)
			return;
	}
	changed = e->state != NEIGH_REACHABLE || memcmp(e->mac, mac, 6) != 0;
	memmove(e->mac, mac, 6); /* mac may be e->mac */
	e->state = NEIGH_REACHABLE;
	e->confirmed_ns = now;
	e->tries = 0;
	if (!e->wanted) {
		neigh_link(e, &net->learned); /* to the newest end */
		return;
	}
	neigh_link(e, NULL);
	wheel_set(&net->wheel, &e->timer, now + NEIGH_REFRESH_NS);
	if (changed)
		net_generation_bump(net);
}

bool
neigh_request_due(struct net *net, struct neigh *e, const uint8_t **mac, uint64_t now)
{
	bool direct = e->state == NEIGH_REACHABLE && e->tries < NEIGH_UNICAST_TRIES;

	neigh_link(e, NULL);
	if (e->state == NEIGH_FAILED) {
		wheel_set(&net->wheel, &e->timer, now + NEIGH_FAILED_NS);
	} else if (e->tries >= NEIGH_TRIES) {
		e->state = NEIGH_FAILED;
		wheel_set(&net->wheel, &e->timer, now + NEIGH_FAILED_NS);
		net_generation_bump(net);
		return false;
	} else {
		e->tries++;
		wheel_set(&net->wheel, &e->timer, now + NEIGH_RETRY_NS);
	}
	*mac = direct ? e->mac : NULL;
	return true;
}

/* Turns a learned entry into a wanted one. It counts as confirmed at the time at which
 * the host was last heard of. */
static void
neigh_set_wanted(struct net *net, struct neigh *e, uint64_t now)
{
	e->wanted = true;
	net->learned_count--;
	neigh_link(e, NULL);
	if (now - e->confirmed_ns < NEIGH_REFRESH_NS)
		wheel_set(&net->wheel, &e->timer, e->confirmed_ns + NEIGH_REFRESH_NS);
	else
		neigh_mark_due(net, e);
}

static int
neigh_resolve(struct net *net, const uint8_t hop[16], uint8_t mac[6], uint64_t now)
{
	struct neigh *e = neigh_find(net, hop);

	if (e == NULL) {
		e = neigh_add(net, hop, true, now);
		if (e == NULL)
			return -ENOSPC;
		neigh_mark_due(net, e);
	} else if (!e->wanted) {
		neigh_set_wanted(net, e, now);
	}
	e->used_ns = now;
	switch (e->state) {
	case NEIGH_REACHABLE:
		memcpy(mac, e->mac, 6);
		return 0;
	case NEIGH_FAILED:
		return -EHOSTUNREACH;
	default:
		return -EAGAIN;
	}
}

int
net_resolve(struct net *net, const uint8_t dst[16], uint8_t mac[6], uint64_t now)
{
	uint8_t hop[16];
	int ret;

	rte_ticketlock_lock(&net->lock);
	if (net_is_ours(&net->conf, dst)) {
		memcpy(mac, net->conf.mac, 6);
		ret = 0;
	} else if (gid_is_multicast(dst)) {
		gid_multicast_mac(dst, mac);
		ret = 0;
	} else {
		ret = net_next_hop(&net->conf, dst, hop);
		if (ret == 0)
			ret = neigh_resolve(net, hop, mac, now);
	}
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
	return ret;
}

void
net_each(struct net *net, uint64_t now, void (*fn)(const struct neigh_info *, void *),
	void *arg)
{
	static const char *const names[] = {
		[NEIGH_INCOMPLETE] = "incomplete",
		[NEIGH_REACHABLE] = "reachable",
		[NEIGH_FAILED] = "failed",
	};

	rte_ticketlock_lock(&net->lock);
	for (uint32_t i = 0; i < net->used; i++) {
		const struct neigh *e = &net->entries[i];
		struct neigh_info info = {.state = names[e->state], .age_ns = TIME_NEVER};

		if (e->list == &net->spare)
			continue;
		memcpy(info.gid, e->gid, 16);
		memcpy(info.mac, e->mac, 6);
		if (e->confirmed_ns != TIME_NEVER)
			info.age_ns = now > e->confirmed_ns ? now - e->confirmed_ns : 0;
		fn(&info, arg);
	}
	rte_ticketlock_unlock(&net->lock);
}
