/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "mem/key.h"

#define CHUNK_BYTES (KEY_CHUNK * sizeof(struct key_entry))

/* What the entry's access field can hold. */
#define ACCESS_KEPT 0xFFu

static struct key_entry *
entry_at(const struct key_table *t, uint32_t index)
{
	return &t->chunks[index >> KEY_CHUNK_BITS][index & (KEY_CHUNK - 1)];
}

void
key_table_init(struct key_table *t, uint8_t variant_seed)
{
	memset(t, 0, sizeof(*t));
	rte_spinlock_init(&t->lock);
	t->fresh = 1;
	t->variant_seed = variant_seed;
}

void
key_table_fini(struct key_table *t)
{
	assert(t->used == 0);
	for (unsigned i = 0; i < KEY_CHUNKS; i++) {
		alloc_put(&alloc_plain, t->chunks[i], CHUNK_BYTES);
		t->chunks[i] = NULL;
	}
}

/* An index that was never used; 0 when there is none or no memory for it. */
static uint32_t
index_fresh(struct key_table *t)
{
	uint32_t chunk = t->fresh >> KEY_CHUNK_BITS;

	if (t->fresh == KEY_MAX)
		return 0;
	if (t->chunks[chunk] == NULL) {
		void *mem = alloc_get(&alloc_plain, "keys", CHUNK_BYTES);

		if (mem == NULL)
			return 0;
		/* Pairs with the acquire of the chunk in key_find(). */
		__atomic_store_n(&t->chunks[chunk], mem, __ATOMIC_RELEASE);
	}
	entry_at(t, t->fresh)->len = (uint8_t)(t->variant_seed - 1);
	return t->fresh++;
}

static uint32_t
index_reuse(struct key_table *t)
{
	uint32_t index = t->free_head;

	if (index == 0)
		return 0;
	t->free_head = (uint32_t)entry_at(t, index)->va;
	if (t->free_head == 0)
		t->free_tail = 0;
	return index;
}

/* 0 when there is none; the entry's len holds the last variant. */
static uint32_t
index_take(struct key_table *t)
{
	uint32_t free_count = t->fresh - 1 - t->used;
	uint32_t index = 0;

	if (free_count < KEY_CHUNK)
		index = index_fresh(t);
	if (index == 0)
		index = index_reuse(t);
	return index;
}

static bool
range_valid(uint64_t va, uint64_t len)
{
	return len == 0 || va + (len - 1) >= va;
}

static bool
access_valid(unsigned access)
{
	const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if ((access & ~ACCESS_KEPT) != 0)
		return false;
	/* ibv_reg_mr(3): who grants remote writing grants local writing. */
	return (access & writes) == 0 || (access & IBV_ACCESS_LOCAL_WRITE) != 0;
}

int
key_alloc(struct key_table *t, uint32_t pd, uint64_t va, void *host, uint64_t len,
	unsigned access, uint32_t *key)
{
	struct key_entry *e;
	uint32_t index;

	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	if (!range_valid(va, len) || !access_valid(access) || pd >> 24 != 0)
		return -EINVAL;
	if (host == NULL && len != 0)
		return -EINVAL;

	rte_spinlock_lock(&t->lock);
	index = index_take(t);
	if (index != 0) {
		e = entry_at(t, index);
		*key = index << 8 | (uint8_t)(e->len + 1);
		e->va = va;
		e->len = len;
		/* An empty region may be at NULL, which key_check() says for "no". */
		e->host = host != NULL ? host : (uint8_t *)t;
		e->pd = pd;
		e->access = access;
		/* Pairs with the acquire of the key in key_find(). */
		__atomic_store_n(&e->key, *key, __ATOMIC_RELEASE);
		t->used++;
	}
	rte_spinlock_unlock(&t->lock);
	return index != 0 ? 0 : -ENOMEM;
}

static void
index_release(struct key_table *t, uint32_t index)
{
	entry_at(t, index)->va = 0;
	if (t->free_tail != 0)
		entry_at(t, t->free_tail)->va = index;
	else
		t->free_head = index;
	t->free_tail = index;
}

int
key_free(struct key_table *t, uint32_t key)
{
	struct key_entry *e;
	int rc = -EINVAL;

	rte_spinlock_lock(&t->lock);
	if (key_find(t, key) != NULL) {
		e = entry_at(t, key >> 8);
		/* No release needed: the caller's gates keep every reader out. */
		__atomic_store_n(&e->key, 0, __ATOMIC_RELAXED);
		e->len = key & 0xFF;
		index_release(t, key >> 8);
		t->used--;
		rc = 0;
	}
	rte_spinlock_unlock(&t->lock);
	return rc;
}
