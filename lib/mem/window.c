/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/alloc.h"
#include "mem/window.h"

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

#define ACCESS_REMOTE                                                                    \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

int
window_create(struct key_table *t, uint32_t pd, bool type2, struct window **out)
{
	struct window *w = alloc_get(&alloc_plain, "window", sizeof(*w));
	int rc;

	if (w == NULL)
		return -ENOMEM;
	w->pd = pd;
	w->type2 = type2;
	rc = key_reserve(t, w, &w->rkey);
	if (rc != 0) {
		alloc_put(&alloc_plain, w, sizeof(*w));
		return rc;
	}
	*out = w;
	return 0;
}

/* Not bound any more: its key is refused from here on. */
static void
unbind(struct key_table *t, struct window *w)
{
	if (w->parent == 0)
		return;
	__atomic_store_n(&key_entry(t, w->rkey)->key, 0, __ATOMIC_RELEASE);
	__atomic_fetch_sub(key_bound(t, w->parent), 1, __ATOMIC_RELAXED);
	if (w->type2)
		LIST_REMOVE(w, link);
	STORE(w->parent, 0);
}

void
window_destroy(struct key_table *t, struct window *w)
{
	unbind(t, w);
	key_release(t, w->rkey);
	alloc_put(&alloc_plain, w, sizeof(*w));
}

/* IBA 10.6.7.2: what may be bound to what. The region that goes with it. */
static const struct key_entry *
bind_check(const struct key_table *t, const struct window *w, const struct window_bind *b)
{
	const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	const struct key_entry *mr = key_find(t, b->parent);

	/* Its right comes with the PD: a window or a dead region has neither. */
	if (mr == NULL || mr->rights >> 8 != w->pd ||
		(mr->rights & IBV_ACCESS_MW_BIND) == 0 ||
		(mr->rights & IBV_ACCESS_ZERO_BASED) != 0)
		return NULL;
	if ((b->access & ~(unsigned)(ACCESS_REMOTE | IBV_ACCESS_ZERO_BASED)) != 0 ||
		((b->access & writes) != 0 && (mr->rights & IBV_ACCESS_LOCAL_WRITE) == 0))
		return NULL;
	return key_entry_check(mr, b->va, b->len, 0) != NULL ? mr : NULL;
}

static void
bind_to(struct key_table *t, struct window *w, uint32_t qpn, struct window_list *list,
	const struct window_bind *b, const struct key_entry *mr)
{
	struct key_entry *e = key_entry(t, b->rkey);

	__atomic_fetch_add(key_bound(t, b->parent), 1, __ATOMIC_RELAXED);
	if (w->type2)
		LIST_INSERT_HEAD(list, w, link);
	/* Behind the key's 0: pairs with the acquire fence in window_check(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	STORE(w->parent, b->parent);
	STORE(w->qpn, qpn);
	STORE(w->access, b->access & ACCESS_REMOTE);
	STORE(w->va, b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->va);
	STORE(w->len, b->len);
	STORE(w->host, mr->host + (b->va - mr->va));
	/* Pairs with the acquire of the key in key_find(). */
	__atomic_store_n(&e->key, b->rkey, __ATOMIC_RELEASE);
}

static int
bind_locked(struct key_table *t, struct window *w, uint32_t qpn, struct window_list *list,
	const struct window_bind *b)
{
	const struct key_entry *mr = NULL;

	/* A window of type 2 that is bound must be invalidated first, and not by this. */
	if (w->type2 && (w->parent != 0 || b->len == 0))
		return -EINVAL;
	if (b->len != 0) {
		mr = bind_check(t, w, b);
		if (mr == NULL)
			return -EINVAL;
	}
	unbind(t, w);
	w->rkey = b->rkey;
	if (b->len != 0)
		bind_to(t, w, qpn, list, b, mr);
	return 0;
}

int
window_bind(struct key_table *t, uint32_t pd, uint32_t qpn, struct window_list *list,
	const struct window_bind *b)
{
	struct window *w = key_object(t, b->rkey);
	int rc;

	if (w == NULL || w->pd != pd)
		return -EINVAL;
	/* Two engines at once are the application's mistake; the later one fails. Pairs
	 * with the release below, and keeps both from waiting. */
	if (__atomic_exchange_n(&w->busy, 1, __ATOMIC_ACQUIRE) != 0)
		return -EINVAL;
	rc = bind_locked(t, w, qpn, list, b);
	__atomic_store_n(&w->busy, 0, __ATOMIC_RELEASE);
	return rc;
}

bool
window_valid(const struct key_table *t, uint32_t qpn, uint32_t rkey)
{
	const struct window *w = key_object(t, rkey);
	const struct key_entry *e = key_find(t, rkey);

	/* If it is this QP's, nobody else changes it: this is its engine. */
	return e != NULL && w != NULL && w->type2 && LOAD(w->parent) != 0 &&
	       LOAD(w->qpn) == qpn;
}

int
window_invalidate(struct key_table *t, uint32_t qpn, uint32_t rkey)
{
	if (!window_valid(t, qpn, rkey))
		return -EINVAL;
	unbind(t, key_object(t, rkey));
	return 0;
}

void
window_invalidate_all(struct key_table *t, struct window_list *list)
{
	while (!LIST_EMPTY(list))
		unbind(t, LIST_FIRST(list));
}

/* The memory, if what is bound is good for this; it may be of another bind than key's. */
static uint8_t *
bound_host(const struct key_table *t, const struct window *w, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, unsigned need)
{
	uint64_t offset = va - LOAD(w->va);
	uint64_t w_len = LOAD(w->len);
	const struct key_entry *mr = key_find(t, LOAD(w->parent));

	/* The region may have lost its memory meanwhile (key_kill()). */
	if (mr == NULL || __atomic_load_n(&mr->rights, __ATOMIC_RELAXED) >> 8 != pd)
		return NULL;
	if (w->pd != pd || (w->type2 && LOAD(w->qpn) != qpn) ||
		(LOAD(w->access) & need) != need)
		return NULL;
	if (va < LOAD(w->va) || offset > w_len || len > w_len - offset)
		return NULL;
	return LOAD(w->host) + offset;
}

uint8_t *
window_check(const struct key_table *t, const struct key_entry *e, uint32_t key,
	uint32_t pd, uint32_t qpn, uint64_t va, uint64_t len, unsigned need)
{
	const struct window *w = (const struct window *)e->host;
	uint8_t *host = bound_host(t, w, pd, qpn, va, len, need);

	/* Still the same bind: pairs with the release fence in bind_to(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&e->key, __ATOMIC_RELAXED) == key ? host : NULL;
}
