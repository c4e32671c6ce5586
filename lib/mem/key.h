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
	uint8_t *host; /* where that first byte is in this process; a window: struct window */
	uint32_t key;  /* 0: free, or a window that is not bound */
	uint32_t rights; /* PD << 8 | KEY_ACCESS_* */
};
static_assert(sizeof(struct key_entry) == 32, "two to a line");

/* IBV_ACCESS_LOCAL_WRITE .. IBV_ACCESS_ZERO_BASED as they are; the right to flush, which stands
 * higher there, in the place of one that no entry needs. */
#define KEY_ACCESS_KEPT 0x3Fu
#define KEY_ACCESS_FLUSH_GLOBAL 0x40u

/* In place of a PD: what no PD of a QP is equal to. */
#define KEY_PD_WINDOW 0xFFFFFFu
#define KEY_PD_DEAD 0xFFFFFEu /* the memory is gone, see key_kill() */
#define KEY_PD_MAX 0xFFFFFDu

struct key_table {
	struct key_entry *chunks[KEY_CHUNKS]; /* allocated as needed, never moved; behind
						 the entries how many windows are bound to
						 each */
	rte_spinlock_t lock;
	uint32_t used;	/* live keys */
	uint32_t regions;     /* of them, those of regions, */
	uint32_t regions_max; /* and how many there may be */
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

/* -EINVAL when there is no such region, -EBUSY while windows are bound to it. The caller holds
 * every gate. */
int key_free(struct key_table *t, uint32_t key);

/*
 * What a region is, changed: flags are IBV_REREG_MR_*, the fields of what they name are taken.
 * Errors as key_alloc() and key_free(), -EFAULT after key_kill(); nothing has changed then. With another PD or other
 * memory it has another variant, so that the old key is refused. The caller holds every gate.
 */
struct key_change {
	uint32_t pd;
	unsigned access;
	uint64_t va;
	void *host;
	uint64_t len;
};
int key_change(struct key_table *t, uint32_t *key, int flags, const struct key_change *to);

/*
 * The memory at host is gone: every region that has this byte is refused from now on. Whether
 * there was one. For a signal handler: takes no lock, writes one word of each.
 */
bool key_kill(struct key_table *t, const void *host);

/* ---- For windows, which have indices of the same table ---- */

/* An index whose entry has no key yet and names object; -ENOMEM. */
int key_reserve(struct key_table *t, void *object, uint32_t *key);
/* Gives it back; key is the last it had. The caller holds every gate. */
void key_release(struct key_table *t, uint32_t key);
/* The object of an index that key_reserve() gave, else NULL. */
void *key_object(const struct key_table *t, uint32_t key);
struct key_entry *key_entry(const struct key_table *t, uint32_t key);
/* How many windows are bound to a region. Atomic: several engines bind. */
uint32_t *key_bound(const struct key_table *t, uint32_t key);
/* A bound window's part of key_check_remote(). */
uint8_t *window_check(const struct key_table *t, const struct key_entry *e, uint32_t key,
	uint32_t pd, uint32_t qpn, uint64_t va, uint64_t len, unsigned need);

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

static inline uint8_t *
key_entry_check(const struct key_entry *e, uint64_t va, uint64_t len, unsigned need)
{
	uint64_t offset = va - e->va;

	if (unlikely((e->rights & need) != need))
		return NULL;
	if (unlikely(va < e->va || offset > e->len || len > e->len - offset))
		return NULL;
	return e->host + offset;
}

/*
 * The one check of every local access: the key is live, of this PD, grants all of need
 * (KEY_ACCESS_* bits; 0 asks for local read), and [va, va + len) lies inside without wrapping
 * (C10-56). Returns the host address, NULL when anything fails. len 0 passes anywhere inside or
 * at the end of the region. No window passes.
 */
static inline uint8_t *
key_check(const struct key_table *t, uint32_t key, uint32_t pd, uint64_t va, uint64_t len,
	unsigned need)
{
	const struct key_entry *e = key_find(t, key);

	if (unlikely(e == NULL || e->rights >> 8 != pd))
		return NULL;
	return key_entry_check(e, va, len, need);
}

/* What a key was before it was checked. */
struct key_proof {
	const struct key_entry *entry; /* NULL: not live */
	uint32_t rights;
};

static inline struct key_proof
key_proof(const struct key_table *t, uint32_t key)
{
	const struct key_entry *e = key_find(t, key);

	return (struct key_proof){
		e, e != NULL ? __atomic_load_n(&e->rights, __ATOMIC_RELAXED) : 0};
}

/* Whether what the check said still holds, where there was no control call since: what is left is
 * key_kill(). */
static inline bool
key_proved(const struct key_proof *proof)
{
	return __atomic_load_n(&proof->entry->rights, __ATOMIC_RELAXED) == proof->rights;
}

/* The same for the request of a peer that reached QP qpn: a window passes too, one of type 2
 * through its QP alone. */
static inline uint8_t *
key_check_remote(const struct key_table *t, uint32_t key, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, unsigned need)
{
	const struct key_entry *e = key_find(t, key);

	if (unlikely(e == NULL))
		return NULL;
	if (unlikely(e->rights >> 8 != pd)) {
		if (e->rights >> 8 != KEY_PD_WINDOW)
			return NULL;
		return window_check(t, e, key, pd, qpn, va, len, need);
	}
	return key_entry_check(e, va, len, need);
}

/* Whether the key is a region's of this PD that grants need. */
static inline bool
key_grants(const struct key_table *t, uint32_t key, uint32_t pd, unsigned need)
{
	const struct key_entry *e = key_find(t, key);

	return e != NULL && e->rights >> 8 == pd && (e->rights & need) == need;
}

#endif
