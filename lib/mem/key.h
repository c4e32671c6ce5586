/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key table: lkey and rkey (one value serves as both) -> what memory it grants, to which
 * protection domain, with which access (IBA 10.6). A key is index << 8 | variant; the variant
 * changes on every registration of an index, so a stale key does not match.
 *
 * Registration and release are control path, serialised by the table's lock. The data path
 * reads without a lock: a new entry is published by its key, and key_free() is called only
 * where no engine can be inside (the caller holds every engine's gate).
 */
#ifndef ROCADE_MEM_KEY_H
#define ROCADE_MEM_KEY_H

#include <infiniband/verbs.h>
#include <rte_spinlock.h>

#include "base/common.h"

#define KEY_CHUNK_BITS 10
#define KEY_CHUNK (1u << KEY_CHUNK_BITS)
#define KEY_CHUNKS 1024
#define KEY_MAX (KEY_CHUNK * KEY_CHUNKS) /* 2^20; index 0 is never handed out */

struct key_entry {
	uint64_t va;   /* the first address, as work requests name it (iova); free: the next */
	uint64_t len;  /* bytes; 0 is a valid, empty region; free: the variant it had last */
	uint8_t *host; /* where that first byte is in this process */
	uint32_t key;  /* 0: free */
	uint32_t pd : 24;
	uint32_t access : 8; /* IBV_ACCESS_LOCAL_WRITE .. IBV_ACCESS_ZERO_BASED, low bits */
};
static_assert(sizeof(struct key_entry) == 32, "two to a line");

struct key_table {
	struct key_entry *chunks[KEY_CHUNKS]; /* allocated as needed, never moved */
	rte_spinlock_t lock;
	uint32_t used;	/* live keys */
	uint32_t fresh; /* the lowest index never handed out; 1 at first */
	uint32_t free_head; /* released indices, oldest first, linked through va; 0: none */
	uint32_t free_tail;
	uint8_t variant_seed; /* so that two starts of a process do not repeat each other */
};

void key_table_init(struct key_table *t, uint8_t variant_seed);
/* Every key must have been freed (asserted). */
void key_table_fini(struct key_table *t);

/*
 * 0 and *key, or -ENOMEM, or -EINVAL where the region goes beyond 2^64 (to end there is well),
 * access asks for remote write or atomic without local write (ibv_reg_mr(3)) or has a bit that
 * an entry cannot hold, or host is NULL and len is not 0. access: IBV_ACCESS_*; optional bits
 * (IBV_ACCESS_OPTIONAL_RANGE) are ignored. An index rests until KEY_CHUNK wait, it among them,
 * as long as there are fresh ones: a stale key cannot match again before some KEY_CHUNK * 256
 * registrations.
 */
int key_alloc(struct key_table *t, uint32_t pd, uint64_t va, void *host, uint64_t len,
	unsigned access, uint32_t *key);

/* -EINVAL when there is no such key. The caller holds every gate. */
int key_free(struct key_table *t, uint32_t key);

/* The live entry of a key, else NULL. */
static inline const struct key_entry *
key_find(const struct key_table *t, uint32_t key)
{
	uint32_t index = key >> 8;
	const struct key_entry *chunk;

	/* Index 0 wraps and is out as well: its key would be that of a free entry. */
	if (unlikely(index - 1 >= KEY_MAX - 1))
		return NULL;
	/* Pairs with the release in index_fresh() of key.c. */
	chunk = __atomic_load_n(&t->chunks[index >> KEY_CHUNK_BITS], __ATOMIC_ACQUIRE);
	if (unlikely(chunk == NULL))
		return NULL;
	chunk += index & (KEY_CHUNK - 1);
	/* Pairs with the release in key_alloc(). */
	return likely(__atomic_load_n(&chunk->key, __ATOMIC_ACQUIRE) == key) ? chunk : NULL;
}

/*
 * The one check of every access: the key is live, of this PD, grants all of need (IBV_ACCESS_*
 * bits; 0 asks for local read), and [va, va + len) lies inside without wrapping (C10-56).
 * Returns the host address, NULL when anything fails. len 0 passes anywhere inside or at the
 * end of the region.
 */
static inline uint8_t *
key_check(const struct key_table *t, uint32_t key, uint32_t pd, uint64_t va, uint64_t len,
	unsigned need)
{
	const struct key_entry *e = key_find(t, key);

	if (unlikely(e == NULL || e->pd != pd || (e->access & need) != need))
		return NULL;
	if (unlikely(va < e->va || va - e->va > e->len || len > e->len - (va - e->va)))
		return NULL;
	return e->host + (va - e->va);
}

#endif
