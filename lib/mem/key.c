/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "mem/key_index.h"
#include "mem/on_demand.h"

void
key_table_init(struct key_table *t, const struct random_key *key)
{
	memset(t, 0, sizeof(*t));
	rte_spinlock_init(&t->lock);
	t->index_key = random_key_derive(key, RANDOM_KEY_INDICES);
	t->variant_key = random_key_derive(key, RANDOM_KEY_VARIANTS);
	t->regions_max = KEY_MAX - 1;
}

void
key_table_fini(struct key_table *t)
{
	assert(t->used == 0);
	for (unsigned i = 0; i < KEY_CHUNKS; i++) {
		alloc_put(&alloc_plain, t->chunks[i], KEY_CHUNK_BYTES);
		t->chunks[i] = NULL;
	}
}

static bool
range_valid(uint64_t va, uint64_t len)
{
	return len == 0 || va + (len - 1) >= va;
}

bool
key_access_valid(unsigned access)
{
	const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	const unsigned known = KEY_ACCESS_KEPT | IBV_ACCESS_ON_DEMAND |
			       IBV_ACCESS_HUGETLB | ACCESS_FLUSH_GLOBAL;

	/* Optional flags are hints by definition. */
	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	if ((access & ~known) != 0)
		return false;
	/* ibv_reg_mr(3): remote write and remote atomic access require local write
	 * access. */
	return (access & writes) == 0 || (access & IBV_ACCESS_LOCAL_WRITE) != 0;
}

static uint32_t
rights_pack(uint32_t pd, uint32_t kept)
{
	if (kept & KEY_ACCESS_ON_DEMAND)
		pd |= KEY_PD_ON_DEMAND;
	return pd << 8 | kept;
}

static uint32_t
rights_of(uint32_t pd, unsigned access)
{
	unsigned kept = access & KEY_ACCESS_KEPT;

	if (access & ACCESS_FLUSH_GLOBAL)
		kept |= KEY_ACCESS_FLUSH_GLOBAL;
	if (access & IBV_ACCESS_ON_DEMAND)
		kept |= KEY_ACCESS_ON_DEMAND;
	return rights_pack(pd, kept);
}

static int
region_check(uint32_t pd, uint64_t va, const void *host, uint64_t len, unsigned access)
{
	if (!range_valid(va, len) || !key_access_valid(access) || pd > KEY_PD_MAX)
		return -EINVAL;
	if (host != NULL || len == 0)
		return 0;
	return access & IBV_ACCESS_ON_DEMAND && va == 0 && len == UINT64_MAX ? 0
									     : -EINVAL;
}

/* An empty region may have host == NULL. key_check() returns NULL for a refused access,
 * so the entry gets another address that is never accessed: the table's. */
static uint8_t *
region_host(struct key_table *t, void *host, uint64_t len)
{
	return host != NULL || len != 0 ? host : (uint8_t *)t;
}

/* Takes an entry that key_find() does not return yet. NULL if no index is left. */
static struct key_entry *
entry_take(struct key_table *t, uint32_t *key)
{
	uint32_t index = key_index_take(t);
	struct key_entry *e;

	if (index == 0)
		return NULL;
	e = key_entry_at(t, index);
	*key = index << 8 | key_variant(t, index, (uint8_t)(e->len + 1));
	t->used++;
	return e;
}

int
key_alloc(struct key_table *t, uint32_t pd, uint64_t va, void *host, uint64_t len,
	unsigned access, uint32_t *key)
{
	int rc = region_check(pd, va, host, len, access);
	struct key_entry *e = NULL;

	if (rc != 0)
		return rc;
	rte_spinlock_lock(&t->lock);
	if (t->regions < t->regions_max)
		e = entry_take(t, key);
	if (e != NULL) {
		t->regions++;
		e->va = va;
		e->len = len;
		e->host = region_host(t, host, len);
		__atomic_store_n(&e->rights, rights_of(pd, access), __ATOMIC_RELAXED);
		/* Pairs with the acquire of the key in key_find(). */
		__atomic_store_n(&e->key, *key, __ATOMIC_RELEASE);
	}
	rte_spinlock_unlock(&t->lock);
	return e != NULL ? 0 : -ENOMEM;
}

/* Returns the entry of this key to the table. key: the last key of its index. No reader has found
 * the entry. */
static void
entry_put(struct key_table *t, uint32_t key)
{
	struct key_entry *e = key_entry_at(t, key >> 8);

	__atomic_store_n(&e->key, 0, __ATOMIC_RELAXED);
	e->len = key_turn(t, key);
	__atomic_store_n(&e->rights, 0, __ATOMIC_RELAXED);
	key_index_release(t, key >> 8);
	t->used--;
}

/* Finds the region of a key that is about to be freed or changed. -EINVAL if key is not that of a
 * region, -EBUSY while memory windows are bound to it, or another thread is about to do the same. */
static int
region_find(const struct key_table *t, uint32_t key, struct key_entry **out)
{
	const struct key_entry *e = key_find(t, key);

	if (e == NULL || key_rights(e) >> 8 == KEY_PD_MW)
		return -EINVAL;
	if (__atomic_load_n(key_mw_count(t, key), __ATOMIC_RELAXED) != 0)
		return -EBUSY;
	*out = key_entry_at(t, key >> 8);
	return 0;
}

/* From here on no memory window is bound to the region. -EBUSY: one has been since region_find(). */
static int
region_leave(const struct key_table *t, uint32_t key)
{
	uint32_t none = 0;

	return __atomic_compare_exchange_n(key_mw_count(t, key), &none, KEY_LEAVING,
		       false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
		       ? 0
		       : -EBUSY;
}

/* Lets windows be bound again. An engine that has just been refused one may still have counted it. */
static void
region_return(const struct key_table *t, uint32_t key)
{
	__atomic_fetch_sub(key_mw_count(t, key), KEY_LEAVING, __ATOMIC_RELAXED);
}

/* Releases the table's lock for the time. */
static void
readers_await(struct key_table *t)
{
	if (t->readers.await == NULL)
		return;
	rte_spinlock_unlock(&t->lock);
	t->readers.await(t->readers.arg);
	rte_spinlock_lock(&t->lock);
}

/* Returns when no reader uses the entry. Until then the handler of a fault knows its memory. */
static void
entry_withdraw(struct key_table *t, struct key_entry *e)
{
	__atomic_store_n(&e->key, KEY_WITHDRAWN, __ATOMIC_RELAXED);
	readers_await(t);
	__atomic_store_n(&e->key, 0, __ATOMIC_RELAXED);
	/* That handler does not see the stores behind this with the key before it. Pairs with the acquire
	 * in entry_invalidate_at(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

int
key_free(struct key_table *t, uint32_t key)
{
	struct key_entry *e;
	int rc;

	rte_spinlock_lock(&t->lock);
	rc = region_find(t, key, &e);
	if (rc == 0)
		rc = region_leave(t, key);
	if (rc == 0) {
		entry_withdraw(t, e);
		entry_put(t, key);
		t->regions--;
		region_return(t, key);
	}
	rte_spinlock_unlock(&t->lock);
	return rc;
}

/* Computes the entry as it is to be. before: as it is. */
static int
region_changed(struct key_table *t, const struct key_entry *before, int flags,
	const struct key_change *to, struct key_entry *next)
{
	int rc = 0;

	*next = *before;
	if (next->rights >> 8 == KEY_PD_INVALIDATED)
		return -EFAULT;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		next->va = to->va;
		next->len = to->len;
		next->host = region_host(t, to->host, to->len);
		rc = region_check(0, to->va, to->host, to->len, 0);
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		next->rights = rights_pack(to->pd, next->rights & 0xFF);
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		next->rights = rights_of(key_pd(next->rights), to->access);
	if (rc == 0)
		rc = region_check(flags & IBV_REREG_MR_CHANGE_PD ? to->pd : 0, 0, NULL, 0,
			flags & IBV_REREG_MR_CHANGE_ACCESS ? to->access : 0);
	if (flags & (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD))
		next->key = (next->key & ~0xFFu) |
			    key_variant(t, next->key >> 8,
				    (uint8_t)(key_turn(t, next->key) + 1));
	return rc;
}

/* An entry whose key stays changes its rights only, for the next lookup. -EFAULT: a reader has found
 * meanwhile that the memory is gone. */
static int
rights_replace(struct key_table *t, struct key_entry *e, uint32_t before, uint32_t rights)
{
	if (!__atomic_compare_exchange_n(&e->rights, &before, rights, false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return -EFAULT;
	readers_await(t);
	return 0;
}

/* An entry with a new key is withdrawn, and published again when no reader of the old key is left.
 * -EFAULT: such a reader has found that the memory is gone, and it is to stay. The old key is published
 * again then. */
static int
entry_replace(struct key_table *t, struct key_entry *e, const struct key_entry *before,
	const struct key_entry *next)
{
	bool moves = next->va != before->va || next->len != before->len ||
		     next->host != before->host;
	const struct key_entry *then = next;

	entry_withdraw(t, e);
	if (!moves && key_rights(e) != before->rights) {
		then = before;
	} else {
		e->va = next->va;
		e->len = next->len;
		e->host = next->host;
		__atomic_store_n(&e->rights, next->rights, __ATOMIC_RELAXED);
	}
	/* Pairs with the acquire of the key in key_find(). */
	__atomic_store_n(&e->key, then->key, __ATOMIC_RELEASE);
	return then == next ? 0 : -EFAULT;
}

int
key_change(struct key_table *t, uint32_t *key, int flags, const struct key_change *to)
{
	struct key_entry *e;
	struct key_entry before, next;
	int rc;

	rte_spinlock_lock(&t->lock);
	rc = region_find(t, *key, &e);
	if (rc != 0)
		goto out;
	before = (struct key_entry){e->va, e->len, e->host, *key, key_rights(e)};
	rc = region_changed(t, &before, flags, to, &next);
	if (rc == 0)
		rc = region_leave(t, *key);
	if (rc != 0)
		goto out;
	if (next.key == *key)
		rc = rights_replace(t, e, before.rights, next.rights);
	else
		rc = entry_replace(t, e, &before, &next);
	if (rc == 0)
		*key = next.key;
	region_return(t, *key);
out:
	rte_spinlock_unlock(&t->lock);
	return rc;
}

int
key_memory(struct key_table *t, uint32_t key, uint32_t pd, const uint8_t **host,
	uint64_t *len)
{
	const struct key_entry *e;
	int rc = -ENOENT;

	rte_spinlock_lock(&t->lock);
	e = key_find(t, key);
	if (e != NULL && key_pd(e->rights) == pd) {
		*host = e->host;
		*len = e->len;
		rc = 0;
	}
	rte_spinlock_unlock(&t->lock);
	return rc;
}

static bool
entry_invalidate_at(struct key_entry *e, const uint8_t *host)
{
	uint32_t rights;

	/* Pairs with the release in key_alloc(). */
	if (__atomic_load_n(&e->key, __ATOMIC_ACQUIRE) == 0)
		return false;
	rights = __atomic_load_n(&e->rights, __ATOMIC_RELAXED);
	if (rights >> 8 == KEY_PD_MW || (rights & KEY_ACCESS_ON_DEMAND) != 0 ||
		host < e->host || (uint64_t)(host - e->host) >= e->len)
		return false;
	/* The entry's key stays, so that the region can be deregistered. */
	__atomic_store_n(&e->rights, KEY_PD_INVALIDATED << 8, __ATOMIC_RELAXED);
	return true;
}

bool
key_invalidate_at(struct key_table *t, const void *host)
{
	bool any = false;

	for (unsigned c = 0; c < KEY_CHUNKS; c++) {
		struct key_entry *chunk =
			__atomic_load_n(&t->chunks[c], __ATOMIC_ACQUIRE);

		for (unsigned i = 0; chunk != NULL && i < KEY_CHUNK; i++)
			any |= entry_invalidate_at(&chunk[i], host);
	}
	return any;
}

/* ---- On-demand regions ---- */

/* Not by pointer arithmetic: all memory of the process begins at NULL. */
static uintptr_t
entry_host(const struct key_entry *e, uint64_t va)
{
	return (uintptr_t)e->host + (va - e->va);
}

uint8_t *
key_on_demand_check(const struct key_entry *e, uint32_t pd, uint64_t va, uint64_t len,
	uint64_t touch, unsigned need)
{
	uint32_t rights = e != NULL ? key_rights(e) : 0;
	uintptr_t host;

	if (e == NULL || key_pd(rights) != pd || (rights & need) != need ||
		!key_entry_holds(e, va, len))
		return NULL;
	host = entry_host(e, va);
	/* Since the caller has looked, the region may have become one that is not on-demand. */
	if (rights & KEY_ACCESS_ON_DEMAND &&
		!on_demand_touch(host, touch, (need & KEY_ACCESS_WRITES) != 0))
		return NULL;
	return (uint8_t *)host;
}

int
key_on_demand(struct key_table *t, uint32_t key, uint32_t pd, uint64_t va, uint64_t len,
	bool write, uintptr_t *host)
{
	const struct key_entry *e;
	int rc = 0;

	rte_spinlock_lock(&t->lock);
	e = key_find(t, key);
	if (e != NULL && e->rights >> 8 == KEY_PD_MW)
		rc = -EINVAL;
	else if (e == NULL || (e->rights & KEY_ACCESS_ON_DEMAND) == 0)
		rc = -ENOENT;
	else if (key_pd(e->rights) != pd ||
		 (write && (e->rights & IBV_ACCESS_LOCAL_WRITE) == 0))
		rc = -EPERM;
	else if (!key_entry_holds(e, va, len))
		rc = -EFAULT;
	else
		*host = entry_host(e, va);
	rte_spinlock_unlock(&t->lock);
	return rc;
}

/* ---- For memory windows ---- */

int
key_reserve(struct key_table *t, void *object, uint32_t *key)
{
	struct key_entry *e;

	rte_spinlock_lock(&t->lock);
	e = entry_take(t, key);
	if (e != NULL) {
		e->host = object;
		/* Pairs with the acquire in key_object(). */
		__atomic_store_n(&e->rights, KEY_PD_MW << 8, __ATOMIC_RELEASE);
	}
	rte_spinlock_unlock(&t->lock);
	return e != NULL ? 0 : -ENOMEM;
}

void
key_release(struct key_table *t, uint32_t key)
{
	rte_spinlock_lock(&t->lock);
	assert(key_object(t, key) != NULL);
	entry_put(t, key);
	rte_spinlock_unlock(&t->lock);
}

struct key_entry *
key_entry(const struct key_table *t, uint32_t key)
{
	struct key_entry *chunk;

	if (key >> 8 == 0 || key >> 8 >= KEY_MAX)
		return NULL;
	/* Pairs with the release in chunk_present(). */
	chunk = __atomic_load_n(&t->chunks[key >> 8 >> KEY_CHUNK_BITS], __ATOMIC_ACQUIRE);
	return chunk != NULL ? &chunk[key >> 8 & (KEY_CHUNK - 1)] : NULL;
}

void *
key_object(const struct key_table *t, uint32_t key)
{
	const struct key_entry *e = key_entry(t, key);

	/* Pairs with the release in key_reserve(). */
	if (e == NULL || __atomic_load_n(&e->rights, __ATOMIC_ACQUIRE) >> 8 != KEY_PD_MW)
		return NULL;
	return e->host;
}

uint32_t *
key_mw_count(const struct key_table *t, uint32_t key)
{
	uint32_t *counts =
		(uint32_t *)(t->chunks[key >> 8 >> KEY_CHUNK_BITS] + KEY_CHUNK);

	return &counts[key >> 8 & (KEY_CHUNK - 1)];
}
