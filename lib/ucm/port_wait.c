/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/base_alloc.h"
#include "ucm/port_wait.h"
#include "ucm/ucm_state.h"

struct port_wait {
	TAILQ_ENTRY(port_wait) link;
	TAILQ_ENTRY(port_wait) port_link; /* in by_port */
	TAILQ_ENTRY(port_wait) user_link; /* in by_user */
	struct ucm_binding binding;
	struct ucm_addr addr; /* of binding */
	uint64_t user;
	uint64_t until_ns;
};

bool
ucm_bindings_conflict(const struct ucm_binding *a, const struct ucm_binding *b)
{
	if (a->ps != b->ps || a->port != b->port)
		return false;
	if (a->afonly && b->afonly && a->addr->sa.sin6_family != b->addr->sa.sin6_family)
		return false;
	return a->addr->any || b->addr->any ||
	       memcmp(a->addr->gid, b->addr->gid, 16) == 0;
}

void
port_waits_init(struct port_waits *t)
{
	t->count = 0;
	TAILQ_INIT(&t->all);
	for (unsigned i = 0; i < PORT_WAIT_BUCKETS; i++) {
		TAILQ_INIT(&t->by_port[i]);
		TAILQ_INIT(&t->by_user[i]);
	}
}

static unsigned
port_bucket(uint16_t port)
{
	return port % PORT_WAIT_BUCKETS;
}

static struct port_wait_list *
user_list(struct port_waits *t, uint64_t user)
{
	return &t->by_user[(uint32_t)user % PORT_WAIT_BUCKETS];
}

static void
wait_free(struct port_waits *t, struct port_wait *w)
{
	TAILQ_REMOVE(&t->all, w, link);
	TAILQ_REMOVE(&t->by_port[port_bucket(w->binding.port)], w, port_link);
	TAILQ_REMOVE(user_list(t, w->user), w, user_link);
	t->count--;
	alloc_put(&alloc_plain, w, sizeof(*w));
}

void
port_waits_fini(struct port_waits *t)
{
	while (!TAILQ_EMPTY(&t->all))
		wait_free(t, TAILQ_FIRST(&t->all));
}

/* Returns how many ports of the user wait. */
static uint32_t
waits_of(struct port_waits *t, uint64_t user)
{
	const struct port_wait *w;
	uint32_t n = 0;

	TAILQ_FOREACH (w, user_list(t, user), user_link)
		n += w->user == user;
	return n;
}

/* The ports of a uid are at their limit. Of several users with this uid each loses its own oldest port. For one that
 * has none the user with the most does, or the latest of those. */
static void
uid_room_make(struct port_waits *t, uint64_t user)
{
	bool has_some = waits_of(t, user) != 0;
	uint64_t loser = user;
	uint32_t most = 0;
	struct port_wait *w;

	TAILQ_FOREACH (w, user_list(t, user), user_link) {
		uint32_t n = has_some || (uint32_t)w->user != (uint32_t)user
				     ? 0
				     : waits_of(t, w->user);

		if (n != 0 && n >= most) {
			most = n;
			loser = w->user;
		}
	}
	TAILQ_FOREACH (w, user_list(t, user), user_link) {
		if (w->user == loser) {
			wait_free(t, w);
			return;
		}
	}
}

/* Removes the user's port if it waits already: each port waits once. Then makes room for
 * one more port. */
static void
room_make(struct port_waits *t, const struct ucm_binding *b, uint64_t user, uint64_t now)
{
	struct port_wait *w, *next;
	uint32_t held = 0;

	for (w = TAILQ_FIRST(user_list(t, user)); w != NULL; w = next) {
		next = TAILQ_NEXT(w, user_link);
		if ((uint32_t)w->user != (uint32_t)user)
			continue;
		if (w->binding.ps == b->ps && w->binding.port == b->port &&
			memcmp(&w->addr, b->addr, sizeof(w->addr)) == 0) {
			wait_free(t, w);
			continue;
		}
		held++;
	}
	if (held == PORT_WAITS_USER)
		uid_room_make(t, user);
	while ((w = TAILQ_FIRST(&t->all)) != NULL &&
		(w->until_ns <= now || t->count == PORT_WAITS_ALL))
		wait_free(t, w);
}

void
port_wait_begin(
	struct port_waits *t, const struct ucm_binding *b, uint64_t user, uint64_t now)
{
	struct port_wait *w = alloc_get(&alloc_plain, "rdma_cm port", sizeof(*w));

	if (w == NULL)
		return;
	room_make(t, b, user, now);
	w->binding = *b;
	w->addr = *b->addr;
	w->binding.addr = &w->addr;
	w->user = user;
	w->until_ns = now + PORT_WAIT_NS;
	TAILQ_INSERT_TAIL(&t->all, w, link);
	TAILQ_INSERT_TAIL(&t->by_port[port_bucket(b->port)], w, port_link);
	TAILQ_INSERT_TAIL(user_list(t, user), w, user_link);
	t->count++;
}

bool
port_waits_for_other(const struct port_waits *t, const struct ucm_binding *b,
	uint64_t user, uint64_t now)
{
	const struct port_wait *w;

	TAILQ_FOREACH (w, &t->by_port[port_bucket(b->port)], port_link) {
		if (w->user != user && w->until_ns > now &&
			ucm_bindings_conflict(&w->binding, b))
			return true;
	}
	return false;
}
