/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>

#include "base/base_alloc.h"
#include "switch/sw_client.h"
#include "switch/sw_pair.h"

/* ---- Clients ---- */

bool
sw_pair_possible(const struct sw_client *a, const struct sw_client *b)
{
	const struct sw *sw = a->sw;

	/* The QPs of a client that has ended are freed some passes after its memory is unmapped. */
	if (b->owner == NULL)
		return false;
	/* A rate limit is kept by the switch, which does not see the packets of a pair. A client of
	 * another user could keep the partner's part mapped when the pair has ended, form the next
	 * pair, and so keep more and more memory that is charged to the partner. */
	return a != b && sw_clients_are_of_one_user(a, b) && sw->pair_ops != NULL &&
	       sw->conf.limits.pairs != 0 && sw->conf.limits.packets_per_s == 0 &&
	       !a->no_pairs && !b->no_pairs;
}

/* Tells the client that there is something to ask for. */
static void
client_notify(struct sw_client *c)
{
	uint32_t *events = &c->region.daemon->pair_events;

	/* Pairs with the acquire in pairs_are_due() of the client's progress thread. */
	__atomic_store_n(events, *events + 1, __ATOMIC_RELEASE);
	c->sw->wake(c->owner, NULL);
}

/* Returns the pair of the two clients that has not ended, or NULL. */
static struct sw_pair *
pair_between(const struct sw_client *a, const struct sw_client *b)
{
	struct sw_pair_side *side;

	TAILQ_FOREACH (side, &a->pairs, link) {
		if (sw_pair_other(side)->client == b && !side->pair->ended)
			return side->pair;
	}
	return NULL;
}

struct sw_pair_side *
sw_pair_side_find(struct sw_client *c, uint32_t partner)
{
	struct sw_pair_side *side;

	TAILQ_FOREACH (side, &c->pairs, link) {
		if (side->partner == partner && (side->told != 0 || side->done != 0))
			return side;
	}
	return NULL;
}

/* ---- Pairs ---- */

static void
side_join(struct sw_pair *pair, unsigned index, struct sw_client *c,
	const struct sw_client *partner)
{
	struct sw_pair_side *side = &pair->sides[index];

	*side = (struct sw_pair_side){.pair = pair, .client = c, .partner = partner->id};
	TAILQ_INSERT_TAIL(&c->pairs, side, link);
	c->pair_count++;
}

static struct sw_pair *
pair_create(struct sw_client *a, struct sw_client *b)
{
	const struct sw *sw = a->sw;
	struct sw_pair *pair;

	if (a->pair_count >= sw->conf.limits.pairs ||
		b->pair_count >= sw->conf.limits.pairs)
		return NULL;
	pair = alloc_get(&alloc_plain, "pair", sizeof(*pair));
	if (pair == NULL)
		return NULL;
	/* Both have memory of this geometry, unless the limits have changed in between. */
	pair->geom = pair_geom_of(&a->region.geom);
	side_join(pair, 0, a, b);
	side_join(pair, 1, b, a);
	if (sw->pair_ops->create(pair) == 0) {
		client_notify(a);
		client_notify(b);
		return pair;
	}
	for (unsigned i = 0; i < 2; i++) {
		TAILQ_REMOVE(&pair->sides[i].client->pairs, &pair->sides[i], link);
		pair->sides[i].client->pair_count--;
	}
	alloc_put(&alloc_plain, pair, sizeof(*pair));
	return NULL;
}

/* Frees the pair when neither a client nor a QP holds it. */
static void
pair_put(struct sw *sw, struct sw_pair *pair)
{
	if (pair->uses != 0 || pair->sides[0].client != NULL ||
		pair->sides[1].client != NULL)
		return;
	sw->pair_ops->destroy(pair);
	alloc_put(&alloc_plain, pair, sizeof(*pair));
}

static void
side_leave(struct sw_pair_side *side)
{
	struct sw_client *c = side->client;

	TAILQ_REMOVE(&c->pairs, side, link);
	c->pair_count--;
	side->client = NULL;
	c->sw->pair_ops->leave(side->pair, sw_pair_side_index(side));
}

/* The pair ends for both clients. One that has been told nothing of it is not told of its end. */
static void
pair_end(struct sw_pair *pair)
{
	if (pair->ended)
		return;
	pair->ended = true;
	for (unsigned i = 0; i < 2; i++) {
		struct sw_pair_side *side = &pair->sides[i];

		if (side->client == NULL)
			continue;
		if (side->told != 0 || side->done != 0)
			client_notify(side->client);
		else
			side_leave(side);
	}
}

/* ---- QPs ---- */

static void
qp_join(struct sw_qp *qp, struct sw_pair *pair)
{
	if (qp->pair == pair)
		return;
	sw_pair_disconnected(qp);
	qp->pair = pair;
	pair->uses++;
}

void
sw_pair_connected(struct sw_qp *a, struct sw_qp *b)
{
	struct sw_pair *pair;

	if (!sw_pair_possible(a->owner, b->owner))
		return;
	pair = pair_between(a->owner, b->owner);
	if (pair == NULL)
		pair = pair_create(a->owner, b->owner);
	if (pair == NULL) {
		sw_client_stats(a->owner, a->owner->sw->threads[0])->pairs_refused++;
		return;
	}
	qp_join(a, pair);
	qp_join(b, pair);
}

void
sw_pair_disconnected(struct sw_qp *qp)
{
	struct sw_pair *pair = qp->pair;

	qp->pair = NULL;
	if (pair == NULL)
		return;
	if (--pair->uses == 0)
		pair_end(pair);
	pair_put(qp->owner->sw, pair);
}

/* ---- Events ---- */

/* The client has done what it was told. */
static void
event_done(struct sw_pair_side *side)
{
	struct sw_pair *pair = side->pair;
	const struct sw_pair_ops *ops = side->client->sw->pair_ops;
	struct sw_pair_side *other = sw_pair_other(side);

	side->done = side->told;
	side->told = 0;
	if (side->done == SW_PAIR_END) {
		side_leave(side);
	} else if (side->done == SW_PAIR_OWN) {
		if (ops->check(pair, sw_pair_side_index(side)) != 0)
			pair_end(pair);
		else if (other->done == SW_PAIR_OWN && other->client != NULL)
			client_notify(other->client);
	} else if (other->done == SW_PAIR_PEER) {
		ops->settle(pair);
	}
}

/* Returns EINVAL if the client does not know the pair, or was told something else. */
static int
event_acknowledge(struct sw_client *c, uint32_t partner, uint32_t event)
{
	struct sw_pair_side *side = sw_pair_side_find(c, partner);
	struct sw_pair *pair;

	if (side == NULL || (event != SW_PAIR_FAILED && event != side->told))
		return EINVAL;
	pair = side->pair;
	if (event != SW_PAIR_FAILED)
		event_done(side);
	else
		pair_end(pair);
	pair_put(c->sw, pair);
	return 0;
}

/* Returns what the client is to be told of the pair, 0: nothing. */
static uint32_t
side_event(struct sw_pair_side *side)
{
	if (side->pair->ended)
		return SW_PAIR_END;
	if (side->told != 0)
		return side->told;
	if (side->done == 0)
		return SW_PAIR_OWN;
	if (side->done == SW_PAIR_OWN && sw_pair_other(side)->done != 0)
		return SW_PAIR_PEER;
	return 0;
}

int
sw_pair_serve(struct sw_client *c, const struct sw_request *req, struct sw_reply *reply)
{
	struct sw_pair_side *side;

	if (req->dest_qpn != SW_PAIR_NONE) {
		int err = event_acknowledge(c, req->qpn, req->dest_qpn);

		if (err != 0)
			return err;
	}
	reply->qpn = SW_PAIR_NONE;
	TAILQ_FOREACH (side, &c->pairs, link) {
		uint32_t event = side_event(side);

		if (event == 0)
			continue;
		/* Its descriptors are given once: those that a client has not received yet count
		 * against a limit of the daemon's user. */
		if (event == side->told && event != SW_PAIR_END)
			return EALREADY;
		side->told = event;
		reply->qpn = event;
		reply->client_id = side->partner;
		reply->pair = side->pair->geom;
		break;
	}
	return 0;
}

void
sw_pair_forget(struct sw_client *c)
{
	struct sw_pair_side *side;

	while ((side = TAILQ_FIRST(&c->pairs)) != NULL) {
		struct sw_pair *pair = side->pair;

		side_leave(side);
		pair_end(pair);
		pair_put(c->sw, pair);
	}
}

void
sw_pair_limits_changed(struct sw *sw)
{
	struct sw_client *c;

	if (sw->conf.limits.pairs != 0 && sw->conf.limits.packets_per_s == 0)
		return;
	sw_lock(sw);
	TAILQ_FOREACH (c, &sw->clients, link) {
		struct sw_pair_side *side, *next;

		for (side = TAILQ_FIRST(&c->pairs); side != NULL; side = next) {
			next = TAILQ_NEXT(side, link);
			pair_end(side->pair);
		}
	}
	sw_unlock(sw);
}

/* ---- Dumps ---- */

static bool
is_dumped(const struct sw_client *c)
{
	const struct sw *sw = c->sw;

	for (uint32_t i = 0; i < sw->dump_count; i++)
		if (sw->dumps[i]->dumps_all ||
			sw_clients_are_of_one_user(sw->dumps[i], c))
			return true;
	return false;
}

void
sw_pair_dumps_changed(struct sw *sw)
{
	struct sw_client *c;

	TAILQ_FOREACH (c, &sw->clients, link)
		__atomic_store_n(
			&c->region.daemon->pairs_off, is_dumped(c), __ATOMIC_RELAXED);
}
