/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolution: from a destination to a MAC, for users and for answers. */
#include <errno.h>
#include <string.h>

#include "port/net_addr.h"
#include "port/net_state.h"

static int
neigh_mac(const struct neigh *e, uint8_t mac[6])
{
	switch (e->state) {
	case NEIGH_INCOMPLETE:
		return -EAGAIN;
	case NEIGH_FAILED:
		return -EHOSTUNREACH;
	default:
		memcpy(mac, e->mac, 6);
		return 0;
	}
}

/* Whether the user may have one more neighbour that does not answer yet. Makes room for
 * it if the user's own entries allow that. Returns 0 or -EDQUOT. */
static int
user_admit(struct net *net, struct net_user *user, uint64_t now)
{
	struct neigh *e;

	if (user == NULL)
		return 0;
	if (user->unresolved.count >= NET_USER_UNRESOLVED) {
		if (!user->recycles)
			return -EDQUOT;
		neigh_drop(net, TAILQ_FIRST(&user->unresolved.list));
	}
	if (user->unresolved.count + user->resolved.count >=
		NET_USER_NEIGHS(net->neigh_size)) {
		e = TAILQ_FIRST(&user->resolved.list);
		if (e == NULL || !neigh_is_idle(e, now))
			return -EDQUOT;
		neigh_drop(net, e);
		net_generation_bump(net);
	}
	return 0;
}

/* A user wants a neighbour that was passive. A MAC that the neighbour gave in ARP or
 * ND is used; one that was only seen in a packet is not. */
static int
passive_want(struct net *net, struct net_user *user, struct neigh *e, uint64_t now)
{
	int rc = e->state == NEIGH_REACHABLE ? 0 : user_admit(net, user, now);

	if (rc != 0)
		return rc;
	if (e->state == NEIGH_REACHABLE) {
		neigh_promote(net, e, NEIGH_STALE);
	} else {
		neigh_promote(net, e, NEIGH_INCOMPLETE);
		neigh_mark_due(net, e);
	}
	neigh_charge(net, e, user);
	return 0;
}

/* An entry that has failed is asked for another user. */
static void
failed_ask(struct net *net, struct neigh *e)
{
	e->tries = NEIGH_TRIES;
	neigh_mark_due(net, e);
}

/* A user wants an unresolved neighbour whose user has ended: it is charged to this one. */
static int
abandoned_want(struct net *net, struct net_user *user, struct neigh *e, uint64_t now)
{
	int rc;

	if (e->state == NEIGH_FAILED && now < e->asked_ns + NEIGH_FAILED_NS)
		return -EHOSTUNREACH;
	rc = user_admit(net, user, now);
	if (rc != 0)
		return rc;
	neigh_charge(net, e, user);
	if (e->state == NEIGH_FAILED)
		failed_ask(net, e);
	return 0;
}

static int
neigh_want(struct net *net, struct net_user *user, const uint8_t hop[16], uint64_t now,
	struct neigh **out)
{
	struct neigh *e = neigh_find(net, hop);
	int rc;

	*out = e;
	if (e != NULL && !e->wanted)
		return passive_want(net, user, e, now);
	if (e != NULL)
		return neigh_is_unresolved(e) && neigh_is_abandoned(net, e)
			       ? abandoned_want(net, user, e, now)
			       : 0;
	rc = user_admit(net, user, now);
	if (rc != 0)
		return rc;
	e = neigh_add(net, hop, true, now);
	if (e == NULL)
		return -ENOSPC;
	neigh_charge(net, e, user);
	neigh_mark_due(net, e);
	*out = e;
	return 0;
}

/* A user other than the one whose requests have failed does not wait for the next
 * request. */
static void
failed_take_over(struct net *net, struct net_user *user, struct neigh *e, uint64_t now)
{
	if (neigh_user(net, e) == user || now < e->asked_ns + NEIGH_FAILED_NS ||
		user_admit(net, user, now) != 0)
		return;
	neigh_charge(net, e, user);
	failed_ask(net, e);
}

static int
neigh_resolve(struct net *net, struct net_user *user, const uint8_t hop[16],
	uint8_t mac[6], uint64_t now)
{
	struct neigh *e;
	int rc = neigh_want(net, user, hop, now, &e);

	if (rc != 0)
		return rc;
	neigh_touch(net, e, now);
	if (e->state == NEIGH_STALE)
		neigh_use_stale(net, e, now);
	else if (e->state == NEIGH_FAILED)
		failed_take_over(net, user, e, now);
	return neigh_mac(e, mac);
}

/* An answer adds a passive entry only, which takes no room from users. It does not count
 * as a use of an entry: a host that sends requests could keep the entry alive. */
static int
neigh_resolve_passive(
	struct net *net, const uint8_t hop[16], uint8_t mac[6], uint64_t now)
{
	struct neigh *e = neigh_find(net, hop);

	if (e == NULL) {
		e = neigh_add(net, hop, false, now);
		if (e == NULL)
			return -ENOSPC;
		neigh_mark_due(net, e);
	}
	return neigh_mac(e, mac);
}

/* Finds the MAC of a destination that needs no neighbour. Returns whether it does: then
 * *rc is the result, else *rc is 0 and *hop the neighbour to be resolved. */
static bool
destination_is_plain(const struct net_conf *conf, const uint8_t dst[16], uint8_t mac[6],
	int *rc, uint8_t hop[16])
{
	*rc = 0;
	if (net_is_ours(conf, dst))
		memcpy(mac, conf->mac, 6);
	else if (gid_is_multicast(dst))
		gid_multicast_mac(dst, mac);
	else
		*rc = net_next_hop(conf, dst, hop);
	return *rc != 0 || net_is_ours(conf, dst) || gid_is_multicast(dst);
}

int
net_resolve_for(struct net *net, struct net_user *user, const uint8_t dst[16],
	uint8_t mac[6], uint64_t now)
{
	uint8_t hop[16];
	int rc;

	rte_ticketlock_lock(&net->lock);
	if (!destination_is_plain(&net->conf, dst, mac, &rc, hop))
		rc = neigh_resolve(net, user, hop, mac, now);
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
	return rc;
}

int
net_resolve(struct net *net, const uint8_t dst[16], uint8_t mac[6], uint64_t now)
{
	return net_resolve_for(net, NULL, dst, mac, now);
}

int
net_resolve_answer(struct net *net, const uint8_t dst[16], uint8_t mac[6], uint64_t now)
{
	uint8_t hop[16];
	int rc;

	rte_ticketlock_lock(&net->lock);
	if (!destination_is_plain(&net->conf, dst, mac, &rc, hop))
		rc = neigh_resolve_passive(net, hop, mac, now);
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
	return rc;
}

int
net_lookup(struct net *net, const uint8_t dst[16], uint8_t mac[6])
{
	const struct neigh *e;
	uint8_t hop[16];
	int rc;

	rte_ticketlock_lock(&net->lock);
	if (!destination_is_plain(&net->conf, dst, mac, &rc, hop)) {
		e = neigh_find(net, hop);
		rc = e != NULL ? neigh_mac(e, mac) : -EHOSTUNREACH;
	}
	rte_ticketlock_unlock(&net->lock);
	return rc;
}
