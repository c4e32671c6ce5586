/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>

#include "base/base_alloc.h"
#include "mem/memory_window.h"
#include "mem/on_demand.h"

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

#define ACCESS_REMOTE                                                                    \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

int
mw_create(struct key_table *t, uint32_t pd, bool type2, struct mw **out)
{
	struct mw *mw = alloc_get(&alloc_plain, "memory window", sizeof(*mw));
	int rc;

	if (mw == NULL)
		return -ENOMEM;
	mw->pd = pd;
	mw->type2 = type2;
	rc = key_reserve(t, mw, &mw->rkey);
	if (rc != 0) {
		alloc_put(&alloc_plain, mw, sizeof(*mw));
		return rc;
	}
	*out = mw;
	return 0;
}

/* Unbinds a memory window: its key is refused from here on. */
static void
mw_unbind(struct key_table *t, struct mw *mw)
{
	if (mw->parent == 0)
		return;
	__atomic_store_n(&key_entry(t, mw->rkey)->key, 0, __ATOMIC_RELEASE);
	__atomic_fetch_sub(key_mw_count(t, mw->parent), 1, __ATOMIC_RELAXED);
	if (mw->type2)
		LIST_REMOVE(mw, link);
	STORE(mw->parent, 0);
}

void
mw_destroy(struct key_table *t, struct mw *mw)
{
	mw_unbind(t, mw);
	key_release(t, mw->rkey);
	alloc_put(&alloc_plain, mw, sizeof(*mw));
}

/* IBV_ACCESS_LOCAL_WRITE grants nothing: a window is accessed by remote hosts only (IBA
 * 10.6.7.2). Programs pass it, because they pass the rights of the region. */
#define MW_BIND_ACCESS                                                                   \
	((unsigned)(ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED))

/* Checks a bind (IBA 10.6.7.2). Returns the region to bind to, or NULL if it is not
 * allowed. */
static const struct key_entry *
mw_bind_check(const struct key_table *t, const struct mw *mw, const struct mw_bind *b)
{
	const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	const struct key_entry *mr = key_find(t, b->parent);
	uint32_t rights = mr != NULL ? key_rights(mr) : 0;

	/* The PD comparison also rejects memory windows and invalidated regions: their PD
	 * field holds a value that is no PD (KEY_PD_MW, KEY_PD_INVALIDATED). */
	if (mr == NULL || key_pd(rights) != mw->pd ||
		(rights & IBV_ACCESS_MW_BIND) == 0 ||
		(rights & IBV_ACCESS_ZERO_BASED) != 0)
		return NULL;
	if ((b->access & ~MW_BIND_ACCESS) != 0 ||
		((b->access & writes) != 0 && (rights & IBV_ACCESS_LOCAL_WRITE) == 0))
		return NULL;
	return key_entry_holds(mr, b->va, b->len) ? mr : NULL;
}

static void
mw_bind_to(struct key_table *t, struct mw *mw, uint32_t qpn, struct mw_list *list,
	const struct mw_bind *b, const struct key_entry *mr)
{
	struct key_entry *e = key_entry(t, b->rkey);

	if (mw->type2)
		LIST_INSERT_HEAD(list, mw, link);
	/* Orders the stores below after the store of key 0. Pairs with the acquire fence
	 * in mw_check(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	STORE(mw->parent, b->parent);
	STORE(mw->qpn, qpn);
	STORE(mw->access, b->access & ACCESS_REMOTE);
	STORE(mw->va, b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->va);
	STORE(mw->len, b->len);
	/* The region may be all memory of the process, which begins at NULL. */
	STORE(mw->host, (uint8_t *)((uintptr_t)mr->host + (b->va - mr->va)));
	/* Pairs with the acquire of the key in key_find(). */
	__atomic_store_n(&e->key, b->rkey, __ATOMIC_RELEASE);
}

/* Counts a window of the region. Returns false if that is being freed or changed. */
static bool
region_hold(const struct key_table *t, uint32_t key)
{
	uint32_t *count = key_mw_count(t, key);

	if ((__atomic_fetch_add(count, 1, __ATOMIC_RELAXED) & KEY_LEAVING) == 0)
		return true;
	__atomic_fetch_sub(count, 1, __ATOMIC_RELAXED);
	return false;
}

static int
mw_bind_locked(struct key_table *t, struct mw *mw, uint32_t qpn, struct mw_list *list,
	const struct mw_bind *b)
{
	const struct key_entry *mr = NULL;

	/* A bound memory window of type 2 must be invalidated first. A bind of length 0
	 * cannot do that. */
	if (mw->type2 && (mw->parent != 0 || b->len == 0))
		return -EINVAL;
	if (b->len != 0) {
		mr = mw_bind_check(t, mw, b);
		if (mr == NULL || !region_hold(t, b->parent))
			return -EINVAL;
	}
	mw_unbind(t, mw);
	mw->rkey = b->rkey;
	if (b->len != 0)
		mw_bind_to(t, mw, qpn, list, b, mr);
	return 0;
}

int
mw_bind(struct key_table *t, uint32_t pd, uint32_t qpn, struct mw_list *list,
	const struct mw_bind *b)
{
	struct mw *mw = key_object(t, b->rkey);
	int rc;

	if (mw == NULL || mw->pd != pd)
		return -EINVAL;
	/* Two engines that bind one window at once are an application error. The later
	 * bind fails instead of waiting. Pairs with the release of busy below. */
	if (__atomic_exchange_n(&mw->busy, 1, __ATOMIC_ACQUIRE) != 0)
		return -EINVAL;
	rc = mw_bind_locked(t, mw, qpn, list, b);
	__atomic_store_n(&mw->busy, 0, __ATOMIC_RELEASE);
	return rc;
}

bool
mw_may_invalidate(const struct key_table *t, uint32_t qpn, uint32_t rkey)
{
	const struct mw *mw = key_object(t, rkey);
	const struct key_entry *e = key_find(t, rkey);

	/* Only the QP's own engine changes a window that the QP has bound, and that
	 * engine is the caller. */
	return e != NULL && mw != NULL && mw->type2 && LOAD(mw->parent) != 0 &&
	       LOAD(mw->qpn) == qpn;
}

int
mw_invalidate(struct key_table *t, uint32_t qpn, uint32_t rkey)
{
	if (!mw_may_invalidate(t, qpn, rkey))
		return -EINVAL;
	mw_unbind(t, key_object(t, rkey));
	return 0;
}

void
mw_invalidate_all(struct key_table *t, struct mw_list *list)
{
	while (!LIST_EMPTY(list))
		mw_unbind(t, LIST_FIRST(list));
}

/* Returns the host address if the memory window's current binding grants this access,
 * else NULL. *touch: the access is to an on-demand region. The binding may be newer than the key
 * that was looked up: mw_check() checks that. */
static uint8_t *
mw_host(const struct key_table *t, const struct mw *mw, const struct mw_use *use,
	bool *touch)
{
	uint64_t offset = use->va - LOAD(mw->va);
	uint64_t mw_len = LOAD(mw->len);
	const struct key_entry *mr = key_find(t, LOAD(mw->parent));
	uint32_t rights;

	if (mr == NULL)
		return NULL;
	/* The region may have been invalidated since the bind (key_invalidate_at()). */
	rights = __atomic_load_n(&mr->rights, __ATOMIC_RELAXED);
	if (key_pd(rights) != use->pd)
		return NULL;
	*touch = (rights & KEY_ACCESS_ON_DEMAND) != 0;
	if (mw->pd != use->pd || (mw->type2 && LOAD(mw->qpn) != use->qpn) ||
		(LOAD(mw->access) & use->need) != use->need)
		return NULL;
	if (use->va < LOAD(mw->va) || offset > mw_len || use->len > mw_len - offset)
		return NULL;
	return (uint8_t *)((uintptr_t)LOAD(mw->host) + offset);
}

uint8_t *
mw_check(const struct key_table *t, const struct key_entry *e, struct mw_use use)
{
	bool touch = false;
	uint8_t *host = mw_host(t, (const struct mw *)e->host, &use, &touch);

	/* Checks that the binding has not changed. Pairs with the release fence in
	 * mw_bind_to(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (host == NULL || __atomic_load_n(&e->key, __ATOMIC_RELAXED) != use.key)
		return NULL;
	if (touch && !on_demand_touch((uintptr_t)host, use.touch,
			     (use.need & KEY_ACCESS_WRITES) != 0))
		return NULL;
	return host;
}
