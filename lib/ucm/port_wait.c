/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/base_alloc.h"
#include "ucm/port_wait.h"
#include "ucm/ucm_state.h"

struct port_wait {
	TAILQ_ENTRY(port_wait) link;
	TAILQ_ENTRY(port_wait) port_link; /* in by_port */
	TAILQ_ENTRY(port_wait) user_link; /* in user->waits */
	struct ucm_binding binding;
	struct ucm_addr addr; /* of binding */
	struct port_user *user;
	uint64_t until_ns;
};

/* A user of which ports wait. */
struct port_user {
	TAILQ_ENTRY(port_user) link; /* in by_uid, in the order in which they came */
	struct port_wait_list waits;
	uint32_t count; /* of these */
	uint64_t user;
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
		TAILQ_INIT(&t->by_uid[i]);
	}
}

static unsigned
port_bucket(uint16_t port)
{
	return port % PORT_WAIT_BUCKETS;
}

static struct port_user_list *
uid_list(struct port_waits *t, uint64_t user)
{
	return &t->by_uid[(uint32_t)user % PORT_WAIT_BUCKETS];
}

/* Returns the user. Inserts the spare if no port of the user waits, else frees it. */
static struct port_user *
port_user_get(struct port_waits *t, uint64_t user, struct port_user *spare)
{
	struct port_user *u;

	TAILQ_FOREACH (u, uid_list(t, user), link) {
		if (u->user == user) {
			alloc_put(&alloc_plain, spare, sizeof(*spare));
			return u;
		}
	}
	TAILQ_INIT(&spare->waits);
	spare->count = 0;
	spare->user = user;
	TAILQ_INSERT_TAIL(uid_list(t, user), spare, link);
	return spare;
}

static void
wait_free(struct port_waits *t, struct port_wait *w)
{
	TAILQ_REMOVE(&t->all, w, link);
	TAILQ_REMOVE(&t->by_port[port_bucket(w->binding.port)], w, port_link);
	TAILQ_REMOVE(&w->user->waits, w, user_link);
	t->count--;
	if (--w->user->count == 0) {
		TAILQ_REMOVE(uid_list(t, w->user->user), w->user, link);
		alloc_put(&alloc_plain, w->user, sizeof(*w->user));
	}
	alloc_put(&alloc_plain, w, sizeof(*w));
}

void
port_waits_fini(struct port_waits *t)
{
	while (!TAILQ_EMPTY(&t->all))
		wait_free(t, TAILQ_FIRST(&t->all));
}

/* The ports of a uid are at their limit. Of several users with this uid the one with the most loses its oldest, or of
 * several with as many the last one that came. */
static void
uid_room_make(struct port_waits *t, uint64_t user)
{
	struct port_user *u, *most = NULL;

	TAILQ_FOREACH (u, uid_list(t, user), link) {
		if ((uint32_t)u->user == (uint32_t)user &&
			(most == NULL || u->count >= most->count))
			most = u;
	}
	wait_free(t, TAILQ_FIRST(&most->waits));
}

/* Returns the uid's port if it waits already. */
static struct port_wait *
same_port_find(struct port_waits *t, const struct ucm_binding *b, uint64_t user)
{
	struct port_wait *w;

	TAILQ_FOREACH (w, &t->by_port[port_bucket(b->port)], port_link) {
		if ((uint32_t)w->user->user == (uint32_t)user && w->binding.ps == b->ps &&
			w->binding.port == b->port &&
			memcmp(&w->addr, b->addr, sizeof(w->addr)) == 0)
			return w;
	}
	return NULL;
}

/* Returns how many ports of the uid wait. */
static uint32_t
uid_waits(struct port_waits *t, uint64_t user)
{
	const struct port_user *u;
	uint32_t n = 0;

	TAILQ_FOREACH (u, uid_list(t, user), link)
		n += (uint32_t)u->user == (uint32_t)user ? u->count : 0;
	return n;
}

/* Removes the user's port if it waits already: each port waits once. Then removes the ports whose time is
 * over, which count for no limit, and makes room for one more port. */
static void
room_make(struct port_waits *t, const struct ucm_binding *b, uint64_t user, uint64_t now)
{
	struct port_wait *w = same_port_find(t, b, user);

	if (w != NULL)
		wait_free(t, w);
	while ((w = TAILQ_FIRST(&t->all)) != NULL && w->until_ns <= now)
		wait_free(t, w);
	if (uid_waits(t, user) == PORT_WAITS_USER)
		uid_room_make(t, user);
	if (t->count == PORT_WAITS_ALL)
		wait_free(t, TAILQ_FIRST(&t->all));
}

void
port_wait_begin(
	struct port_waits *t, const struct ucm_binding *b, uint64_t user, uint64_t now)
{
	struct port_wait *w = alloc_get(&alloc_plain, "rdma_cm port", sizeof(*w));
	struct port_user *u, *spare;

	spare = alloc_get(&alloc_plain, "user of rdma_cm ports", sizeof(*spare));
	if (w == NULL || spare == NULL) {
		alloc_put(&alloc_plain, w, sizeof(*w));
		alloc_put(&alloc_plain, spare, sizeof(*spare));
		return;
	}
	room_make(t, b, user, now);
	u = port_user_get(t, user, spare);
	w->binding = *b;
	w->addr = *b->addr;
	w->binding.addr = &w->addr;
	w->user = u;
	u->count++;
	w->until_ns = now + PORT_WAIT_NS;
	TAILQ_INSERT_TAIL(&t->all, w, link);
	TAILQ_INSERT_TAIL(&t->by_port[port_bucket(b->port)], w, port_link);
	TAILQ_INSERT_TAIL(&u->waits, w, user_link);
	t->count++;
}

bool
port_waits_for_other(const struct port_waits *t, const struct ucm_binding *b,
	uint64_t user, uint64_t now)
{
	const struct port_wait *w;

	TAILQ_FOREACH (w, &t->by_port[port_bucket(b->port)], port_link) {
		if (w->user->user != user && w->until_ns > now &&
			ucm_bindings_conflict(&w->binding, b))
			return true;
	}
	return false;
}
