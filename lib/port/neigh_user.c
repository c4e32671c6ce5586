/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Users of the neighbour table, and the entries that are charged to them.
 *
 * An entry names its user by a serial number. So the end of a user costs the same however many
 * entries it has: their number is that of no user then. Those that do not answer go to the list of
 * abandoned entries, which make room for others first.
 */
#include "port/net_state.h"

bool
neigh_is_unresolved(const struct neigh *e)
{
	return e->state == NEIGH_INCOMPLETE || e->state == NEIGH_FAILED;
}

struct net_user *
neigh_user(const struct net *net, const struct neigh *e)
{
	struct net_user *user;

	if (e->user == 0)
		return NULL;
	LIST_FOREACH(user, &net->users[e->user % NEIGH_USER_BUCKETS], link)
	{
		if (user->serial == e->user)
			break;
	}
	return user;
}

bool
neigh_is_abandoned(const struct net *net, const struct neigh *e)
{
	return e->user != 0 && neigh_user(net, e) == NULL;
}

static void
user_begin(struct net *net, struct net_user *user)
{
	user->serial = ++net->user_serial;
	LIST_INSERT_HEAD(&net->users[user->serial % NEIGH_USER_BUCKETS], user, link);
}

/* Returns the list that the entry is in because of its user and its state; NULL: none. */
static struct neigh_charges *
charges_of(struct net *net, const struct neigh *e)
{
	struct net_user *user = neigh_user(net, e);

	if (user != NULL)
		return neigh_is_unresolved(e) ? &user->unresolved : &user->resolved;
	return e->user != 0 && neigh_is_unresolved(e) ? &net->abandoned : NULL;
}

static void
charges_leave(struct net *net, struct neigh *e)
{
	struct neigh_charges *charges = charges_of(net, e);

	if (charges == NULL)
		return;
	TAILQ_REMOVE(&charges->list, e, user_link);
	charges->count--;
}

static void
charges_enter(struct net *net, struct neigh *e)
{
	struct neigh_charges *charges = charges_of(net, e);

	if (charges == NULL)
		return;
	TAILQ_INSERT_TAIL(&charges->list, e, user_link);
	charges->count++;
}

void
neigh_charge(struct net *net, struct neigh *e, struct net_user *user)
{
	charges_leave(net, e);
	e->user = 0;
	if (user == NULL)
		return;
	if (user->serial == 0)
		user_begin(net, user);
	e->user = user->serial;
	charges_enter(net, e);
}

void
neigh_charge_state(struct net *net, struct neigh *e, enum neigh_state state)
{
	charges_leave(net, e);
	e->state = state;
	charges_enter(net, e);
}

void
net_user_init(struct net_user *user, bool recycles)
{
	TAILQ_INIT(&user->unresolved.list);
	TAILQ_INIT(&user->resolved.list);
	user->unresolved.count = user->resolved.count = 0;
	user->serial = 0;
	user->recycles = recycles;
}

void
net_user_fini(struct net *net, struct net_user *user)
{
	rte_ticketlock_lock(&net->lock);
	if (user->serial != 0)
		LIST_REMOVE(user, link);
	net->abandoned.count += user->unresolved.count;
	TAILQ_CONCAT(&net->abandoned.list, &user->unresolved.list, user_link);
	net_user_init(user, user->recycles);
	rte_ticketlock_unlock(&net->lock);
}
