/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/base_alloc.h"
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

/* Unbinds a memory window: its key is refused from here on. */
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

/* Checks a bind (IBA 10.6.7.2). Returns the region to bind to, or NULL if it is not
 * allowed. */
static const struct key_entry *
bind_check(const struct key_table *t, const struct window *w, const struct window_bind *b)
{
	const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	const struct key_entry *mr = key_find(t, b->parent);

	/* The PD comparison also rejects memory windows and invalidated regions: their PD
	 * field is none. */
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
	/* Orders the stores below after the store of key 0. Pairs with the acquire fence
	 * in window_check(). */
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

	/* A bound memory window of type 2 must be invalidated first. A bind of length 0
	 * cannot do that. */
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
	/* Binding from two engines at once is an application error; the later bind fails.
	 * busy makes it fail instead of wait. Pairs with the release below. */
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

	/* A window bound by this QP is changed by the QP's engine only, which is the
	 * caller. */
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

/* Returns the host address if the memory window's current binding grants this access,
 * else NULL. The binding may be newer than the key that was looked up. */
static uint8_t *
bound_host(const struct key_table *t, const struct window *w, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, unsigned need)
{
	uint64_t offset = va - LOAD(w->va);
	uint64_t w_len = LOAD(w->len);
	const struct key_entry *mr = key_find(t, LOAD(w->parent));

	/* The region may have been invalidated since the bind (key_invalidate_at()). */
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

	/* Checks that the binding has not changed. Pairs with the release fence in
	 * bind_to(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&e->key, __ATOMIC_RELAXED) == key ? host : NULL;
}
