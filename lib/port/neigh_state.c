/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of a neighbour (RFC 4861 7.3): when it is asked, and what its answers do.
 *
 * Those who use a MAC keep it until the generation changes. So a neighbour that has been
 * REACHABLE for NEIGH_REFRESH_NS is asked to confirm its MAC only if it was resolved in
 * that time. Otherwise it becomes STALE, and the generation changes: if it is in use, its
 * users resolve it with their next packet, and it is asked then. Nothing is sent to
 * neighbours that are not in use.
 */
#include <string.h>

#include "port/frame.h"
#include "port/net_addr.h"
#include "port/net_state.h"

bool
neigh_is_known(const struct neigh *e)
{
	return e->state == NEIGH_REACHABLE || e->state == NEIGH_STALE ||
	       e->state == NEIGH_PROBE;
}

bool
neigh_is_asked(const struct neigh *e)
{
	return e->tries != 0 && e->state != NEIGH_REACHABLE && e->state != NEIGH_STALE;
}

/* ---- Requests ---- */

void
neigh_probe(struct net *net, struct neigh *e)
{
	e->tries = 0;
	neigh_state_set(net, e, NEIGH_PROBE);
	neigh_mark_due(net, e);
}

static void
neigh_set_reachable(struct net *net, struct neigh *e, uint64_t now)
{
	e->tries = 0;
	e->claimed = false;
	e->reachable_ns = now;
	neigh_state_set(net, e, NEIGH_REACHABLE);
	neigh_mark_idle(e);
	wheel_set(&net->wheel, &e->timer, now + NEIGH_REFRESH_NS);
}

/* Whether the neighbour has given its MAC in ARP or ND lately. */
static bool
neigh_is_fresh(const struct neigh *e, uint64_t now)
{
	return e->confirmed_ns != TIME_NEVER && now < e->confirmed_ns + NEIGH_REFRESH_NS;
}

void
neigh_use_stale(struct net *net, struct neigh *e, uint64_t now)
{
	if (neigh_is_fresh(e, now))
		neigh_set_reachable(net, e, now);
	else
		neigh_probe(net, e);
}

/* Waits until the next request to an unreachable neighbour, or until it is forgotten. */
static void
neigh_wait_failed(struct net *net, struct neigh *e)
{
	wheel_set(
		&net->wheel, &e->timer, RTE_MIN(e->ask_ns, e->used_ns + NEIGH_FORGET_NS));
}

/* The interval of requests to an unreachable neighbour doubles from one to the next. */
static uint64_t
failed_interval_ns(const struct neigh *e)
{
	unsigned doublings = RTE_MIN(e->tries - NEIGH_TRIES, 6);

	return RTE_MIN(NEIGH_FAILED_NS << doublings, NEIGH_FAILED_MAX_NS);
}

static void
neigh_request_sent(struct net *net, struct neigh *e, uint64_t now)
{
	neigh_mark_idle(e);
	e->asked_ns = now;
	e->tries += e->tries < UINT8_MAX;
	if (e->state == NEIGH_FAILED) {
		e->ask_ns = now + failed_interval_ns(e);
		neigh_wait_failed(net, e);
	} else {
		wheel_set(&net->wheel, &e->timer,
			now + (e->claimed ? NEIGH_CLAIM_NS : NEIGH_RETRY_NS));
	}
}

/* Returns the first entry whose request is due, or NULL. Those that are not to be asked any more
 * are dropped, a few at a time. */
static struct neigh *
due_first(struct net *net, const struct neigh_list *due)
{
	for (unsigned i = 0; i < NEIGH_SWEEP_BATCH; i++) {
		struct neigh *e = TAILQ_FIRST(due);

		if (e == NULL)
			return NULL;
		if (!neigh_check(net, e))
			continue;
		if (e->state != NEIGH_FAILED || !neigh_is_abandoned(net, e))
			return e;
		neigh_drop(net, e);
	}
	return NULL;
}

struct neigh *
neigh_next_request(struct net *net, const uint8_t **mac, uint64_t now)
{
	struct neigh *e = NULL;

	if (rate_ready_ns(&net->request_rate) <= now) {
		e = due_first(net, &net->due_first);
		if (e == NULL)
			e = due_first(net, &net->due_again);
		if (e != NULL)
			rate_take(&net->request_rate, now);
	}
	if (e == NULL && rate_ready_ns(&net->passive_rate) <= now) {
		e = due_first(net, &net->due_passive);
		if (e != NULL)
			rate_take(&net->passive_rate, now);
	}
	if (e == NULL)
		return NULL;
	*mac = e->state == NEIGH_PROBE && e->tries < NEIGH_UNICAST_TRIES ? e->mac : NULL;
	neigh_request_sent(net, e, now);
	return e;
}

/* ---- Timers ---- */

static void
neigh_fail(struct net *net, struct neigh *e, uint64_t now)
{
	net_generation_bump(net);
	if (neigh_is_abandoned(net, e)) {
		neigh_drop(net, e);
		return;
	}
	neigh_state_set(net, e, NEIGH_FAILED);
	/* A passive one is not asked again, only remembered for a time. */
	e->ask_ns = e->wanted ? now + NEIGH_FAILED_NS : TIME_NEVER;
	neigh_wait_failed(net, e);
}

/* The known MAC has remained silent: the claimed one takes its place, and has to be
 * confirmed by the next user (RFC 4861 7.2.3). */
static void
neigh_accept_claim(struct net *net, struct neigh *e)
{
	memcpy(e->mac, e->claim_mac, 6);
	e->claimed = false;
	e->tries = 0;
	e->confirmed_ns = TIME_NEVER;
	neigh_state_set(net, e, NEIGH_STALE);
	net_generation_bump(net);
}

/* No answer to the last request has been seen in time. */
static void
neigh_check_claim(struct net *net, struct neigh *e, uint64_t now)
{
	if (now <= e->asked_ns + NEIGH_CLAIM_NS + NEIGH_CLAIM_LATE_NS ||
		e->late_tries == NEIGH_CLAIM_LATE_TRIES) {
		neigh_accept_claim(net, e);
		return;
	}
	e->late_tries++;
	e->tries--;
	neigh_mark_due(net, e);
}

static void
neigh_check_use(struct net *net, struct neigh *e)
{
	if (e->used_ns > e->reachable_ns) {
		neigh_probe(net, e);
	} else {
		neigh_state_set(net, e, NEIGH_STALE);
		net_generation_bump(net);
	}
}

static void
neigh_check_failed(struct net *net, struct neigh *e, uint64_t now)
{
	if (now >= e->used_ns + NEIGH_FORGET_NS)
		neigh_drop(net, e);
	else if (neigh_is_abandoned(net, e))
		neigh_drop(net, e);
	else if (now >= e->ask_ns)
		neigh_mark_due(net, e);
	else
		neigh_wait_failed(net, e);
}

void
neigh_timer_fired(struct net *net, struct neigh *e, uint64_t now)
{
	if (!neigh_check(net, e))
		return;
	if (e->state == NEIGH_REACHABLE)
		neigh_check_use(net, e);
	else if (e->state == NEIGH_FAILED)
		neigh_check_failed(net, e, now);
	else if (e->claimed && e->tries >= NEIGH_CLAIM_TRIES)
		neigh_check_claim(net, e, now);
	else if (e->tries >= NEIGH_TRIES)
		neigh_fail(net, e, now);
	else
		neigh_mark_due(net, e);
}

/* ---- What neighbours send ---- */

static void
passive_seen(struct net *net, struct neigh *e, const uint8_t mac[6],
	enum neigh_state state, uint64_t now)
{
	bool asked = e->list != NULL || e->tries != 0;

	memmove(e->mac, mac, 6); /* mac may be e->mac */
	e->tries = 0;
	e->confirmed_ns = now;
	wheel_cancel(&net->wheel, &e->timer);
	neigh_mark_idle(e);
	neigh_state_set(net, e, state);
	neigh_touch(net, e, now); /* to the newest end */
	if (asked)
		net_generation_bump(net);
}

/* Another MAC is claimed for a known neighbour. Any host on the link can claim that, so
 * the known MAC is asked first. */
static void
neigh_claim(struct net *net, struct neigh *e, const uint8_t mac[6], uint64_t now)
{
	if (e->claimed || now < e->claim_ns)
		return;
	e->claimed = true;
	e->late_tries = 0;
	e->claim_ns = now + NEIGH_CLAIM_LOCK_NS;
	memcpy(e->claim_mac, mac, 6);
	neigh_probe(net, e);
}

/* Whether the neighbour is asked by broadcast because its MAC does not answer. */
static bool
neigh_is_lost(const struct neigh *e)
{
	return e->state == NEIGH_PROBE && e->tries > NEIGH_UNICAST_TRIES;
}

void
neigh_seen(struct net *net, const uint8_t gid[16], const uint8_t mac[6], bool learn,
	uint64_t now)
{
	struct neigh *e = neigh_find(net, gid);
	bool same;

	if (e == NULL) {
		if (!learn || !net_is_onlink(&net->conf, gid) ||
			net_is_broadcast(&net->conf, gid))
			return;
		e = neigh_add(net, gid, false, now);
		if (e == NULL)
			return;
	}
	if (!e->wanted) {
		passive_seen(net, e, mac, NEIGH_REACHABLE, now);
		return;
	}
	same = neigh_is_known(e) && memcmp(e->mac, mac, 6) == 0;
	if (neigh_is_known(e) && !same && !neigh_is_lost(e)) {
		neigh_claim(net, e, mac, now);
		return;
	}
	e->confirmed_ns = now;
	if (same && e->state != NEIGH_PROBE)
		return;
	memmove(e->mac, mac, 6); /* mac may be e->mac */
	neigh_set_reachable(net, e, now);
	if (!same)
		net_generation_bump(net);
}

void
net_hint(struct net *net, const uint8_t gid[16], const uint8_t mac[6], uint64_t now)
{
	const struct net_conf *conf = &net->conf;
	struct neigh *e;

	rte_ticketlock_lock(&net->lock);
	e = neigh_find(net, gid);
	if (e == NULL && mac_is_other(conf, mac) && gid_is_host(gid) &&
		net_is_onlink(conf, gid) && !net_is_ours(conf, gid) &&
		!net_is_broadcast(conf, gid))
		e = neigh_add(net, gid, false, now);
	if (e != NULL && !e->wanted && mac_is_other(conf, mac) &&
		(e->state != NEIGH_REACHABLE || !neigh_is_fresh(e, now)))
		passive_seen(net, e, mac, NEIGH_STALE, now);
	net_deadline_update(net);
	rte_ticketlock_unlock(&net->lock);
}
