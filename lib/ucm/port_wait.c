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
	uint32_t uid;
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
user_list(struct port_waits *t, uint32_t uid)
{
	return &t->by_user[uid % PORT_WAIT_BUCKETS];
}

static void
wait_free(struct port_waits *t, struct port_wait *w)
{
	TAILQ_REMOVE(&t->all, w, link);
	TAILQ_REMOVE(&t->by_port[port_bucket(w->binding.port)], w, port_link);
	TAILQ_REMOVE(user_list(t, w->uid), w, user_link);
	t->count--;
	alloc_put(&alloc_plain, w, sizeof(*w));
}

void
port_waits_fini(struct port_waits *t)
{
	while (!TAILQ_EMPTY(&t->all))
		wait_free(t, TAILQ_FIRST(&t->all));
}

/* Removes the user's port if it waits already: each port waits once. Then makes room for
 * one more port. */
static void
room_make(struct port_waits *t, const struct ucm_binding *b, uint32_t uid, uint64_t now)
{
	struct port_wait *w, *next, *oldest = NULL;
	uint32_t held = 0;

	for (w = TAILQ_FIRST(user_list(t, uid)); w != NULL; w = next) {
		next = TAILQ_NEXT(w, user_link);
		if (w->uid != uid)
			continue;
		if (w->binding.ps == b->ps && w->binding.port == b->port &&
			memcmp(&w->addr, b->addr, sizeof(w->addr)) == 0) {
			wait_free(t, w);
			continue;
		}
		if (held++ == 0)
			oldest = w;
	}
	if (held == PORT_WAITS_USER)
		wait_free(t, oldest);
	while ((w = TAILQ_FIRST(&t->all)) != NULL &&
		(w->until_ns <= now || t->count == PORT_WAITS_ALL))
		wait_free(t, w);
}

void
port_wait_begin(
	struct port_waits *t, const struct ucm_binding *b, uint32_t uid, uint64_t now)
{
	struct port_wait *w = alloc_get(&alloc_plain, "rdma_cm port", sizeof(*w));

	if (w == NULL)
		return;
	room_make(t, b, uid, now);
	w->binding = *b;
	w->addr = *b->addr;
	w->binding.addr = &w->addr;
	w->uid = uid;
	w->until_ns = now + PORT_WAIT_NS;
	TAILQ_INSERT_TAIL(&t->all, w, link);
	TAILQ_INSERT_TAIL(&t->by_port[port_bucket(b->port)], w, port_link);
	TAILQ_INSERT_TAIL(user_list(t, uid), w, user_link);
	t->count++;
}

bool
port_waits_for_other(const struct port_waits *t, const struct ucm_binding *b,
	uint32_t uid, uint64_t now)
{
	const struct port_wait *w;

	TAILQ_FOREACH (w, &t->by_port[port_bucket(b->port)], port_link) {
		if (w->uid != uid && w->until_ns > now &&
			ucm_bindings_conflict(&w->binding, b))
			return true;
	}
	return false;
}
